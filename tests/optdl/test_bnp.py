"""The mathematics of BNP against matrices, autograd and the paper; its benchmark."""

import math
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
from bnp_loops import batch
from oracles import assert_close
from torch import nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from optdl import bnp
from optdl.data import load


def activations(rng, rows=40, features=6):
    """Return ReLU activations with very different sizes and means away from zero."""
    H = rng.normal(size=(rows, features)) * np.logspace(0, 2, features) + rng.normal(size=features)
    return np.maximum(H, 0) + 0.1 * rng.normal(size=(rows, features))


def digit_activations(rows, layer):
    """Return what a layer reads: the pixels that vary, or a random tanh layer of them."""
    x = torch.from_numpy(load("digits").x_train[:rows]).double()
    torch.manual_seed(4)
    hidden = nn.Linear(64, 20, dtype=torch.float64)(x).tanh().detach()
    H = (x if layer == "pixels" else hidden).numpy()
    return H[:, H.std(0) > 0.02]


REAL = [(400, "pixels"), (100, "tanh"), (25, "tanh"), (12, "tanh"), (8, "pixels")]


@pytest.mark.row("P-10")
@pytest.mark.parametrize("case", [*range(8), *REAL])
def test_hessian_condition_number_is_bounded_by_factors(case):
    """With N < n the Hessian is singular, and κ counts the eigenvalues that are not zero."""
    rng = np.random.default_rng(case if isinstance(case, int) else 0)
    H = activations(rng, features=4) if isinstance(case, int) else digit_activations(*case)
    curvatures = rng.uniform(0.01, 1, size=len(H))
    eigenvalues = np.linalg.eigvalsh(bnp.layer_hessian(H, curvatures))
    eigenvalues = eigenvalues[-min(len(H), H.shape[1] + 1) :]
    values = np.linalg.svd(bnp.extended_activations(H), compute_uv=False)
    kappa = values[0] / values[values > values[0] * 1e-12][-1]
    bound = kappa**2 * curvatures.max() / curvatures.min()
    assert 1 < eigenvalues[-1] / eigenvalues[0] <= bound * (1 + 1e-6)


DRAWS = {
    "normal": lambda rng, size: rng.normal(size=size),
    "signs": lambda rng, size: rng.choice([-1.0, 1.0], size=size),
    "even": lambda rng, size: rng.uniform(-1, 1, size=size),
    "rectified": lambda rng, size: np.maximum(rng.normal(size=size), 0),
}


@pytest.mark.row("P-13")
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_expected_norm_is_bounded_for_any_width(draw):
    """C = 2 is what random matrices reach at n = N; 1 is what no matrix Ĝ falls below."""
    rng, rows = np.random.default_rng(6), 32
    for share in (1 / 8, 1 / 2, 1, 2, 8, 32):
        features = int(share * rows)
        q = math.sqrt(bnp.scale_dense(features, rows))
        draws = (draw(rng, (rows, features)) for _ in range(3))
        norms = [np.linalg.norm(bnp.normalized_activations(H), 2) for H in draws]
        ratio = np.mean(norms) / q / math.sqrt(rows)
        assert 1 - 1e-12 <= ratio < 2.05
        if share == 32:  # without q the norm follows √n
            assert ratio * q > 5


@pytest.mark.row("P-16")
def test_flops_match_counted_operations():
    """Each array operation of Algorithm 2 costs as many flops as it has elements."""
    n, o, N = 7, 3, 11
    statistics = N * n + 3 * N * n  # sum; subtract, square and sum
    running = 2 * 3 * n + 2 * n  # two averages of three operations; σ̃²
    weight = 2 * o * n + 2 * o * n  # multiply and subtract; divide by q² and by σ̃²
    bias = o + 2 * o * n + o
    assert bnp.bnp_flops(n, o, N) == statistics + running + weight + bias


@pytest.mark.row("P-17")
@pytest.mark.parametrize("loss", [functional.cross_entropy, lambda a, y: (a.T[0] - y).pow(2).sum()])
def test_deep_normalized_step_matches_absorbed_step(loss):
    """Autograd goes through both networks; the statistics of each layer are held constant."""
    torch.manual_seed(1)
    layers = [nn.Linear(*sizes, dtype=torch.float64) for sizes in ((5, 7), (7, 6), (6, 3))]
    x, y = batch(12), torch.arange(12) % 3
    normalized, plain, steps = x, x, []
    for layer in layers:
        mean, var = normalized.detach().mean(0), normalized.detach().var(0, correction=0)
        arrays = [value.detach().numpy() for value in (*layer.parameters(), mean, var.sqrt())]
        absorbed = [torch.from_numpy(p).requires_grad_() for p in bnp.absorb_normalization(*arrays)]
        steps.append((layer, absorbed, mean.numpy(), var.numpy()))
        normalized = layer(functional.batch_norm(normalized, mean, var, eps=0.0)).tanh()
        plain = functional.linear(plain, *absorbed).tanh()
    assert_close(plain.detach(), normalized.detach())
    loss(normalized, y).backward()
    loss(plain, y).backward()
    for layer, absorbed, mean, var in steps:
        own = [p.grad.numpy() for p in absorbed]
        g = bnp.precondition_dense(*own, mean, var, 12, eps1=0.0, eps2=0.0)
        stepped = [(p.detach() - 0.1 * p.grad).numpy() for p in layer.parameters()]
        expected = bnp.absorb_normalization(*stepped, mean, np.sqrt(var))
        for parameter, gradient, right in zip(absorbed, g, expected, strict=True):
            assert_close(parameter.detach().numpy() - 0.1 * gradient, right)


@pytest.mark.row("P-18")
def test_condition_number_after_matches_normalized_inputs(rng):
    H, curvatures = activations(rng, features=4), rng.uniform(0.1, 1, size=40)
    std = np.sqrt(H.var(0) + 0.01 * H.var(0).max() + 1e-4)
    extended = np.column_stack([np.ones(40), H])
    normalized = np.column_stack([np.ones(40), (H - H.mean(0)) / std])
    hessians = [(rows.T * curvatures) @ rows for rows in (extended, normalized)]
    sizes = [1.0, *(1 / std)]
    expected = [*map(np.linalg.cond, hessians), max(sizes) / min(sizes)]
    np.testing.assert_allclose(bnp.hessian_condition_numbers(H, curvatures), expected, rtol=1e-7)


@pytest.mark.row("P-20")
def test_benchmark_compares_networks_of_table_1(monkeypatch, capsys):
    root = Path(__file__).resolve().parents[2]
    bench = runpy.run_path(str(root / "benchmarks" / "bench_bnp.py"))
    networks = map(bench["network"], (False, True))
    plain, normalized = (sum(p.numel() for p in net.parameters()) for net in networks)
    assert plain == 3072 * 100 + 100 + 100 * 100 + 100 + 100 * 10 + 10
    assert normalized == plain + 4 * 100
    main = bench["main"]
    monkeypatch.setitem(main.__globals__, "BATCHES", {1: 1, 4: 1})
    monkeypatch.setitem(main.__globals__, "ROUNDS", 1)
    main([])
    _, *lines = (line.split() for line in capsys.readouterr().out.splitlines())
    assert [kind for _, kind, *_ in lines] == ["vanilla", *bench["KINDS"][2:], *bench["KINDS"]]
    assert {cells[4] for cells in lines[:3]} == {"nan"}  # no BN of one row
    vanilla, bn, own, attached = ([*map(float, cells[2:])] for cells in lines[3:])
    for ms, *ratios, memory in (own, attached):
        assert ratios == pytest.approx([ms / vanilla[0], ms / bn[0]], abs=0.02)
        # no less than parameters and gradients, no more than two copies of them beside
        assert 2 * 4 * plain / 2**20 < memory < 4 * 4 * plain / 2**20


@pytest.mark.row("F-09")
def test_input_factor_is_the_hessian_of_least_squares(rng):
    """For ½‖a − y‖² the Fisher matrix of a layer is I ⊗ A: K-FAC is exact, with B = I."""
    H, W = 2 + torch.from_numpy(rng.normal(size=(9, 3))), torch.from_numpy(rng.normal(size=(2, 4)))

    def loss(flat):
        rows = flat.reshape(2, 4)
        return (rows[:, 0] + H @ rows[:, 1:].T).square().sum() / 2 / len(H)

    hessian = torch.autograd.functional.hessian(loss, W.flatten()).numpy()
    expected = np.kron(np.eye(2), bnp.input_factor(H.numpy()))
    np.testing.assert_allclose(hessian, expected, atol=1e-12)


@pytest.mark.row("F-09")
def test_bnp_inverts_the_input_factor_without_correlations(rng):
    H, G = 3 + rng.normal(size=(20, 4)) * [1, 2, 3, 4], rng.normal(size=(5, 5))
    step = bnp.precondition_dense(G[:, 1:], G[:, 0], H.mean(0), H.var(0), 20, eps1=0.0, eps2=0.0)
    expected = np.linalg.solve(bnp.input_factor(H, diagonal=True), G.T).T
    np.testing.assert_allclose(np.column_stack(step[::-1]), expected, rtol=1e-9)
    full = np.linalg.solve(bnp.input_factor(H), G.T).T
    assert np.abs(full - expected).max() > 0.01  # correlations are what BNP leaves out


@pytest.mark.row("P-29")
def test_flops_of_relatives_match_torchs_count():
    n, o, N = 12, 5, 7
    H, delta, G = torch.randn(N, n), torch.randn(N, o), torch.randn(o, n)
    left, right = torch.randn(o, o), torch.randn(n, n)
    products = {
        "FOOF": lambda: (H.T @ H, G @ right),
        "K-FAC": lambda: (H.T @ H, delta.T @ delta, left @ G @ right),
        "Shampoo": lambda: (G.T @ G, G @ G.T, left @ G @ right),
    }
    flops = bnp.preconditioning_flops(n, o, N)
    for name, multiply in products.items():
        with FlopCounterMode(display=False) as counter:
            multiply()
        assert flops[name] == counter.get_total_flops()
    assert flops["BNP"] == bnp.bnp_flops(n, o, N)
