"""The mathematics of BNP against matrices, autograd and the paper; its benchmark."""

import math
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
from bnp_loops import batch
from oracles import assert_close
from scipy.optimize import minimize
from torch import nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from optdl import bnp
from optdl.data import load


@pytest.mark.row("P-14")
@pytest.mark.parametrize("eps", [{}, {"eps1": 0.5, "eps2": 0.25}])
@pytest.mark.parametrize(("outputs", "features", "rows"), [(4, 3, 10), (2, 9, 4), (1, 1, 1)])
def test_dense_step_matches_matrix_form(rng, outputs, features, rows, eps):
    """(1/q²) PPᵀ[G_b; G_w], with P as a matrix."""
    G = rng.normal(size=(outputs, features + 1))
    mean, var = rng.normal(size=features), rng.uniform(0.1, 9, size=features)
    std = np.sqrt(bnp.smoothed_variance(var, **eps))
    expected = G @ (P := np.linalg.multi_dot(bnp.preconditioner(mean, std))) @ P.T
    weight, bias = bnp.precondition_dense(G[:, 1:], G[:, 0], mean, var, rows, **eps)
    assert_close(np.column_stack([bias, weight]) * max(features / rows, 1), expected)


def activations(rng, rows=40, features=6):
    """Return ReLU activations with very different sizes and means away from zero."""
    H = rng.normal(size=(rows, features)) * np.logspace(0, 2, features) + rng.normal(size=features)
    return np.maximum(H, 0) + 0.1 * rng.normal(size=(rows, features))


def digit_activations(rows, layer):
    """Return what a layer reads: the pixels that vary, or a random ReLU or tanh layer of them."""
    x = torch.from_numpy(load("digits").x_train[:rows]).double()
    if layer == "pixels":
        H = x.numpy()
    else:
        torch.manual_seed(4)
        hidden = nn.Linear(64, 20, dtype=torch.float64)(x)
        H = {"relu": torch.relu, "tanh": torch.tanh}[layer](hidden).detach().numpy()
    return H[:, H.std(0) > 0.02]


REAL = [(400, "pixels"), (400, "relu"), (100, "tanh"), (25, "tanh")]


@pytest.mark.row("P-09")
def test_layer_hessian_matches_autograd(rng):
    H = torch.from_numpy(activations(rng, rows=7, features=3))
    w, b = torch.from_numpy(rng.normal(size=3)) / 50, torch.tensor(0.3, dtype=torch.float64)

    def loss(parameters):
        return functional.softplus(H @ parameters[1:] + parameters[0]).mean()

    parameters = torch.cat([b[None], w])
    expected = torch.autograd.functional.hessian(loss, parameters).numpy()
    p = torch.sigmoid(H @ w + b)
    assert_close(bnp.layer_hessian(H.numpy(), (p * (1 - p)).numpy()), expected, 1e-12)


@pytest.mark.row("P-10")
@pytest.mark.parametrize("case", [*range(20), *REAL, (12, "tanh"), (8, "pixels")])
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


@pytest.mark.row("P-12")
@pytest.mark.parametrize("case", [*range(20), *REAL])
def test_centering_strictly_helps_for_any_mean(case):
    rng = np.random.default_rng(case if isinstance(case, int) else 0)
    if isinstance(case, int):
        H = rng.normal(size=(30, 4)) * np.exp(rng.normal(size=4, scale=2))
        H += [1e-3, 1.0, 100.0][case % 3] * rng.normal(size=4) - H.mean(0)
    else:
        H = digit_activations(*case)
    centered = H - H.mean(0)
    versions = [bnp.extended_activations(one) for one in (H, centered, centered / H.std(0))]
    assert abs(H.mean(0) @ np.linalg.svd(centered)[2][0]) > 1e-6  # what the theorem asks for
    assert np.linalg.matrix_rank(versions[0]) == H.shape[1] + 1
    plain, shifted, scaled = bnp.condition_numbers(H)
    assert_close([plain, shifted, scaled], [*map(np.linalg.cond, versions)], 1e-8)
    assert shifted < (1 if isinstance(case, int) else 0.9) * plain
    assert shifted <= scaled * max(1, H.std(0).max()) / min(1, H.std(0).min())  # κ(D) at most


@pytest.mark.row("P-12")
@pytest.mark.parametrize("case", [0, 1, 2, 3, "pixels", "relu", "tanh"])
def test_searched_diagonal_scalings_respect_the_bound(case):
    rng = np.random.default_rng(5)
    if isinstance(case, str):
        H = digit_activations(200, case)[:, :5]
    else:  # features that lean on each other, where D is not the best
        mixing = np.exp(rng.normal(size=(case + 1, 4, 4)))[case]
        H = rng.normal(size=(30, 4)) @ mixing
    n = H.shape[1]
    U, _ = bnp.preconditioner(H.mean(0), H.std(0))
    centered = bnp.extended_activations(H) @ U

    def logarithm(exponents):
        return math.log(np.linalg.cond(centered * np.exp(exponents)))

    ours = np.concatenate([[0.0], -np.log(H.std(0))])
    starts = [ours, *rng.normal(size=(30, n + 1), scale=2)]
    best = min(starts[1:], key=logarithm)
    found = min(
        minimize(logarithm, start, method="Nelder-Mead", options={"maxiter": 600}).fun
        for start in (ours, best)
    )
    scaled = bnp.condition_numbers(H)[2]
    assert math.exp(found) < scaled * (1 - 1e-3)  # the search does find better ones
    assert scaled <= math.sqrt(n + 1) * math.exp(found)


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
    rng = np.random.default_rng(6)
    for rows in (32, 64):
        for share in (1 / 8, 1 / 2, 1, 2, 8, 32):
            features = int(share * rows)
            q = math.sqrt(bnp.scale_dense(features, rows))
            draws = (draw(rng, (rows, features)) for _ in range(8))
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
