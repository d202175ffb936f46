"""BNP against its matrix form, and in every kind of training loop."""

import copy
import inspect
import itertools
import math
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import typechecking
from scipy.optimize import minimize
from torch import nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from optdl import bnp
from optdl.bnp import BNP
from optdl.data import load

torch.set_num_threads(1)


# --- Oracles: the matrix form, with matrices ---------------------------------------------------


def matrix_form(grad_weight, grad_bias, mean, var, scale, eps1=1e-2, eps2=1e-4):
    """Return (1/q²) P Pᵀ [G_b; G_w], row by row of the weight, with P written out in float64."""
    std = np.sqrt(var + eps1 * var.max() + eps2)
    U, D = np.eye(len(mean) + 1), np.diag([1.0, *(1 / std)])
    U[0, 1:] = -mean
    stacked = np.vstack([grad_bias, grad_weight.reshape(len(grad_bias), -1).T])
    result = U @ D @ D.T @ U.T @ stacked / scale
    return result[1:].T.reshape(grad_weight.shape), result[0]


def plain_gradients(model, x, y, loss=functional.cross_entropy):
    """Return the gradients of a copy of the model, by name."""
    twin = copy.deepcopy(model)
    loss(twin(x), y).backward()
    return {name: p.grad.numpy().copy() for name, p in twin.named_parameters()}


def dense_net(dtype=torch.float64, sizes=(5, 7, 3)):
    torch.manual_seed(1)
    layers = []
    for n, o in itertools.pairwise(sizes):
        layers += [nn.Linear(n, o, dtype=dtype), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


def examples(count, features=5, classes=3, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    x = 3 + 2 * torch.randn(count, features, generator=generator, dtype=dtype)
    return x, torch.randint(0, classes, (count,), generator=generator)


def assert_close(actual, expected, tolerance=1e-12):
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


# --- One step --------------------------------------------------------------------------------


@pytest.mark.row("P-14")
@pytest.mark.parametrize(("outputs", "features", "rows"), [(4, 3, 10), (2, 9, 4), (1, 1, 1)])
def test_dense_step_matches_matrix_form(rng, outputs, features, rows):
    weight, bias = rng.normal(size=(outputs, features)), rng.normal(size=outputs)
    mean, var = rng.normal(size=features), rng.uniform(0.1, 9, size=features)
    expected = matrix_form(weight, bias, mean, var, max(features / rows, 1))
    for actual, right in zip(
        bnp.precondition_dense(weight, bias, mean, var, rows), expected, strict=True
    ):
        assert_close(actual, right)


@pytest.mark.row("P-14")
def test_step_matches_paper_calculation():
    """σ̃² = 3 + 0.5·3 + 0.5 = 5, q² = 1: G_w = (11 − 2·3)/5 = 1, G_b = 3 − 1·2 = 1."""
    weight, bias = bnp.precondition_dense(
        np.array([[11.0]]), np.array([3.0]), np.array([2.0]), np.array([3.0]), 4, 0.5, 0.5
    )
    assert (weight.item(), bias.item()) == (1.0, 1.0)


@pytest.mark.row("P-14", "P-24")
def test_tensors_match_arrays(rng):
    arrays = [rng.normal(size=(2, 3, 3, 3)), rng.normal(size=2), *rng.uniform(1, 2, size=(2, 3))]
    from_arrays = bnp.precondition_conv(*arrays, 4, 5, 5)
    from_tensors = bnp.precondition_conv(*map(torch.from_numpy, arrays), 4, 5, 5)
    for one, other in zip(from_arrays, from_tensors, strict=True):
        assert_close(other.numpy(), one, 1e-14)


def test_mismatched_shapes_are_refused():
    step = inspect.unwrap(bnp.precondition_dense)
    good = (np.ones((2, 3)), np.ones(2), np.ones(3), np.ones(3))
    for place, wrong, said in (
        (0, np.ones(3), "grad_weight must have 2 axes"),
        (1, np.ones(3), r"grad_bias must have shape \(2,\)"),
        (2, np.ones(2), r"mean must have shape \(3,\)"),
        (3, np.ones((3, 1)), r"var must have shape \(3,\)"),
    ):
        arguments = list(good)
        arguments[place] = wrong
        with pytest.raises(ValueError, match=said):
            step(*arguments, 4)


@pytest.mark.row("P-15")
def test_single_example_variance_uses_running_mean():
    mean, var = bnp.batch_statistics(np.array([[3.0, 0.0]]), np.array([1.0, 0.5]))
    assert mean.tolist() == [3.0, 0.0]
    assert var.tolist() == [4.0, 0.25]
    assert bnp.batch_statistics(np.array([[3.0]]))[1].tolist() == [0.0]


@pytest.mark.row("P-14", "P-15")
@pytest.mark.parametrize("sizes", [(4, 7, 3), (1, 1, 1), (3, 1, 2, 1)])
def test_running_statistics_match_the_module(sizes):
    layer = nn.Linear(5, 1, dtype=torch.float64)
    preconditioner = BNP(layer, rho=0.7)
    batches = [examples(size, seed=step)[0] for step, size in enumerate(sizes)]
    means, variances = bnp.running_statistics([x.numpy() for x in batches], 0.7)
    for x, mean, var in zip(batches, means, variances, strict=True):
        layer(x).sum().backward()
        preconditioner.step()
        state = preconditioner.state_dict()[""]
        assert_close(mean, state["mean"][0].numpy())
        assert_close(var, state["var"][0].numpy())


@pytest.mark.row("P-14")
def test_running_statistics_have_a_closed_form(rng):
    """After t steps on one minibatch: ρᵗ of where they began, and 1 − ρᵗ of the minibatch."""
    H = rng.normal(3, 2, size=(6, 4))
    means, variances = bnp.running_statistics([H] * 5, 0.9)
    kept = 0.9 ** np.arange(1, 6)[:, None]
    assert_close(means, (1 - kept) * H.mean(0))
    assert_close(variances, kept + (1 - kept) * H.var(0))


@pytest.mark.row("P-15")
def test_single_example_update_matches_calculation():
    """μ = ½·2 + ½·6 = 4, and σ² = ½·3 + ½·(6 − 4)² = 3.5."""
    mean, var = bnp.update_statistics(np.array([[6.0]]), np.array([2.0]), np.array([3.0]), 0.5)
    assert (mean.item(), var.item()) == (4.0, 3.5)


def test_statistics_refuse_invalid_arguments():
    with pytest.raises(ValueError, match="expected at least one minibatch, got none"):
        bnp.running_statistics([])
    with pytest.raises(ValueError, match=r"rho must lie in \[0, 1\), got 1.0"):
        bnp.update_statistics(np.ones((2, 1)), np.zeros(1), np.ones(1), 1.0)


# --- BNP(model) is the algorithm -------------------------------------------------------------


@pytest.mark.row("P-14")
def test_three_steps_of_a_network_follow_the_algorithm():
    model = dense_net()
    preconditioner = BNP(model, rho=0.9)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    running = {"0": (np.zeros(5), np.ones(5)), "2": (np.zeros(7), np.ones(7))}
    for step in range(3):
        x, y = examples(4, seed=step)
        plain = plain_gradients(model, x, y)
        with torch.no_grad():
            inputs = {"0": x.numpy(), "2": model[:2](x).numpy()}
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        preconditioner.step()
        for name, (mean, var) in running.items():
            H = inputs[name]
            mean = 0.9 * mean + 0.1 * H.mean(0)
            var = 0.9 * var + 0.1 * H.var(0)
            running[name] = (mean, var)
            scale = max(H.shape[1] / 4, 1)
            weight, bias = matrix_form(
                plain[f"{name}.weight"], plain[f"{name}.bias"], mean, var, scale
            )
            assert_close(model.get_parameter(f"{name}.weight").grad.numpy(), weight)
            assert_close(model.get_parameter(f"{name}.bias").grad.numpy(), bias)
        optimizer.step()


# --- The theory ------------------------------------------------------------------------------


def kappa(matrix):
    """Return largest over smallest nonzero singular value."""
    values = np.linalg.svd(matrix, compute_uv=False)
    return values[0] / values[values > values[0] * 1e-12][-1]


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
@pytest.mark.parametrize("seed", range(20))
def test_hessian_condition_number_is_bounded_by_factors(seed):
    rng = np.random.default_rng(seed)
    H, curvatures = activations(rng, features=4), rng.uniform(0.01, 1, size=40)
    bound = kappa(bnp.extended_activations(H)) ** 2 * kappa(np.diag(curvatures))
    assert kappa(bnp.layer_hessian(H, curvatures)) <= bound * (1 + 1e-9)


@pytest.mark.row("P-10")
@pytest.mark.parametrize(("rows", "layer"), [*REAL, (12, "tanh"), (8, "pixels")])
def test_bound_holds_on_digits_and_few_examples(rng, rows, layer):
    """With N < n the Hessian is singular, and κ counts the eigenvalues that are not zero."""
    H, curvatures = digit_activations(rows, layer), rng.uniform(0.05, 0.25, size=rows)
    hessian = bnp.layer_hessian(H, curvatures)
    rank = min(rows, H.shape[1] + 1)
    eigenvalues = np.linalg.eigvalsh(hessian)[-rank:]
    bound = kappa(bnp.extended_activations(H)) ** 2 * curvatures.max() / curvatures.min()
    assert 1 < eigenvalues[-1] / eigenvalues[0] <= bound * (1 + 1e-6)


@pytest.mark.row("P-11")
def test_preconditioned_activations_are_the_standardized_ones(rng):
    H = activations(rng)
    expected = np.column_stack([np.ones(40), (H - H.mean(0)) / H.std(0)])
    assert_close(bnp.normalized_activations(H), expected, 1e-11)
    U, D = bnp.preconditioner(H.mean(0), H.std(0))
    curvatures = rng.uniform(size=40)
    transformed = (U @ D).T @ bnp.layer_hessian(H, curvatures) @ (U @ D)
    assert_close(transformed, (expected.T * curvatures / 40) @ expected, 1e-10)


def test_constant_feature_is_refused():
    with pytest.raises(ValueError, match="got 0 in feature 1: a constant feature"):
        inspect.unwrap(bnp.preconditioner)(np.zeros(2), np.array([1.0, 0.0]))


@pytest.mark.row("P-12")
@pytest.mark.parametrize("seed", range(20))
def test_centering_and_scaling_improve_the_condition_number(seed):
    rng = np.random.default_rng(seed)
    H = activations(rng, features=5)
    extended = bnp.extended_activations(H)
    U, D = bnp.preconditioner(H.mean(0), H.std(0))
    assert kappa(extended @ U) <= kappa(extended) * (1 + 1e-9)
    for _ in range(20):  # Van der Sluis: no diagonal scaling beats D by more than √(n + 1)
        other = np.diag(np.exp(rng.normal(size=6, scale=2)))
        assert kappa(extended @ U @ D) <= math.sqrt(6) * kappa(extended @ U @ other)


@pytest.mark.row("P-12")
def test_centering_helps_if_mean_meets_principal_component():
    spread = np.array([[1.0, 0], [-1, 0], [0, 0.1], [0, -0.1]])
    for mean, strict in (((3.0, 0.0), True), ((0.0, 0.0), False)):
        extended = bnp.extended_activations(spread + np.array(mean))
        U, _ = bnp.preconditioner(np.array(mean), np.ones(2))
        assert bool(kappa(extended @ U) < kappa(extended) * 0.99) is strict


@pytest.mark.row("P-12")
@pytest.mark.parametrize(("rows", "layer"), REAL)
def test_centering_strictly_helps_on_digits(rows, layer):
    H = digit_activations(rows, layer)
    mean, centered = H.mean(0), H - H.mean(0)
    principal = np.linalg.svd(centered)[2][0]
    assert abs(mean @ principal) > 1e-3  # what the theorem asks for
    plain, shifted, scaled = bnp.condition_numbers(H)
    expected = [
        np.column_stack([np.ones(rows), columns]) for columns in (H, centered, centered / H.std(0))
    ]
    assert np.linalg.matrix_rank(expected[0]) == expected[0].shape[1]
    assert_close([plain, shifted, scaled], [np.linalg.cond(one) for one in expected], 1e-8)
    assert shifted < 0.9 * plain
    assert shifted <= scaled * max(1, H.std(0).max()) / min(1, H.std(0).min())  # κ(D) at most


@pytest.mark.row("P-12")
@pytest.mark.parametrize("seed", range(20))
def test_centering_improves_condition_number_for_any_mean(seed):
    rng = np.random.default_rng(seed)
    spread = rng.normal(size=(30, 4)) * np.exp(rng.normal(size=4, scale=2))
    spread -= spread.mean(0)
    principal = np.linalg.svd(spread)[2][0]
    centered = bnp.condition_numbers(spread)
    assert_close(centered[0], centered[1], 1e-9)
    for size in (1e-3, 1.0, 100.0):
        mean = size * rng.normal(size=4)
        assert mean @ principal != 0
        plain, shifted, _ = bnp.condition_numbers(spread + mean)
        assert shifted < plain
        assert_close(shifted, centered[1], 1e-8)


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
        return math.log(kappa(centered * np.exp(exponents)))

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


@pytest.mark.row("P-12")
def test_features_that_repeat_leave_condition_numbers_finite(rng):
    H = activations(rng, features=3)
    once, twice = bnp.condition_numbers(H), bnp.condition_numbers(np.column_stack([H, H[:, 0]]))
    assert max(twice) < 2 * once[0]  # κ leaves the zero singular value out
    with pytest.raises(ValueError, match="got 0 in feature 3: a constant feature"):
        inspect.unwrap(bnp.condition_numbers)(np.column_stack([H, np.ones(40)]))


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
            norms = [
                np.linalg.norm(bnp.normalized_activations(draw(rng, (rows, features))), 2)
                for _ in range(8)
            ]
            ratio = np.mean(norms) / q / math.sqrt(rows)
            assert 1 - 1e-12 <= ratio < 2.05
            if share == 32:  # without q the norm follows √n
                assert ratio * q > 5


@pytest.mark.row("P-13")
def test_longest_row_exceeds_the_mean_row():
    """The paper's proof takes the expected maximum for the expected value of each row."""
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(2000, 60, 4)) ** 2).sum(2)
    assert rows.mean() == pytest.approx(4, rel=0.01)
    assert rows.max(1).mean() == pytest.approx(13.5, abs=0.2)  # stated in the chapter


@pytest.mark.row("P-13")
def test_heavy_tails_leave_the_norm_unbounded():
    """Rare large entries: mean zero, variance one, and a norm that grows like √n at n = N."""
    rng = np.random.default_rng(0)
    ratios = []
    for n, draws in ((16, 200), (64, 60), (256, 16)):
        large = rng.random((draws, n, n)) < 1 / n**2
        norms = [np.linalg.norm(n * G * rng.choice([-1, 1], size=(n, n)), 2) for G in large]
        ratios.append(np.mean(norms) / np.sqrt(n))
    assert ratios[0] == pytest.approx(2.8, abs=0.5)
    assert ratios[1] == pytest.approx(5.0, abs=0.7)
    assert ratios[2] == pytest.approx(10.0, abs=3.0)


@pytest.mark.row("P-16")
def test_flops_match_counted_operations():
    """Each array operation of Algorithm 2 costs as many flops as it has elements."""
    n, o, N = 7, 3, 11
    statistics = N * n + 3 * N * n  # sum; subtract, square and sum
    running = 2 * 3 * n + 2 * n  # two averages of three operations; σ̃²
    weight = 2 * o * n + 2 * o * n  # multiply and subtract; divide by q² and by σ̃²
    bias = o + 2 * o * n + o
    assert bnp.bnp_flops(n, o, N) == statistics + running + weight + bias
    assert bnp.bn_flops(n, N) == 32 * n * N + 4 * n


@pytest.mark.row("P-17")
def test_normalization_is_absorbed_by_plain_layer(rng):
    W, b, h = rng.normal(size=(3, 5)), rng.normal(size=3), 4 + 3 * rng.normal(size=(9, 5))
    mean, var = rng.normal(size=5), rng.uniform(0.1, 9, size=5)
    normalized = functional.batch_norm(*map(torch.from_numpy, (h, mean, var)), eps=0.0)
    expected = functional.linear(normalized, torch.from_numpy(W), torch.from_numpy(b)).numpy()
    absorbed, bias = bnp.absorb_normalization(W, b, mean, np.sqrt(var))
    assert_close(h @ absorbed.T + bias, expected)
    with pytest.raises(ValueError, match="got 0 in feature 1"):
        inspect.unwrap(bnp.absorb_normalization)(W, b, mean, np.array([1.0, 0, 1, 1, 1]))


@pytest.mark.row("P-17")
@pytest.mark.parametrize(
    "loss", [functional.cross_entropy, lambda a, y: (a[:, 0] - y).pow(2).sum()]
)
def test_deep_normalized_step_matches_absorbed_step(loss):
    """Autograd goes through both networks; the statistics of each layer are held constant."""
    layers = [layer for layer in dense_net(sizes=(5, 7, 6, 3)) if isinstance(layer, nn.Linear)]
    x, y = examples(12)
    normalized, plain, statistics, absorbed = x, x, [], []
    for number, layer in enumerate(layers):
        inputs = [torch.tanh(h) if number else h for h in (normalized, plain)]
        mean, var = inputs[0].detach().mean(0), inputs[0].detach().var(0, correction=0)
        arrays = (value.detach().numpy() for value in (layer.weight, layer.bias, mean, var.sqrt()))
        statistics.append((mean, var))
        absorbed.append(
            [torch.from_numpy(one).requires_grad_() for one in bnp.absorb_normalization(*arrays)]
        )
        normalized = layer(functional.batch_norm(inputs[0], mean, var, eps=0.0))
        plain = functional.linear(inputs[1], *absorbed[-1])
    assert_close(plain.detach(), normalized.detach())
    loss(normalized, y).backward()
    loss(plain, y).backward()
    for layer, (mean, var), (W, b) in zip(layers, statistics, absorbed, strict=True):
        G_w, G_b = bnp.precondition_dense(
            *(value.numpy() for value in (W.grad, b.grad, mean, var)), 12, eps1=0.0, eps2=0.0
        )
        stepped = [p.detach() - 0.1 * p.grad for p in layer.parameters()]
        expected = bnp.absorb_normalization(
            *(value.numpy() for value in (*stepped, mean, var.sqrt()))
        )
        assert_close(W.detach().numpy() - 0.1 * G_w, expected[0])
        assert_close(b.detach().numpy() - 0.1 * G_b, expected[1])


# --- In anyone's loop ------------------------------------------------------------------------


def test_network_is_unchanged_by_bnp():
    model = dense_net()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    x, _ = examples(4)
    output = model(x)
    preconditioner = BNP(model)
    assert torch.equal(model(x), output)
    assert list(model.state_dict()) == list(before)
    preconditioner.remove()
    model(x)
    assert not model[0]._forward_hooks


# --- Several processes -----------------------------------------------------------------------


"""Examples of each process."""


# --- Compiled ---------------------------------------------------------------------------------

# of Dynamo itself, wherever it meets an autograd.Function
DYNAMO = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile wants a C++ compiler")
def test_compiled_step_gives_the_same_gradients():
    # in a process of its own: here each function of optdl is wrapped to check its arguments
    script = """
import torch
from optdl.bnp import BNP
torch.manual_seed(0)
nets = [torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Linear(4, 3)).double() for _ in "ab"]
nets[1].load_state_dict(nets[0].state_dict())
steps = [BNP(nets[0]).step, BNP(nets[1], check_finite=False).step]
steps[1] = torch.compile(steps[1], backend="aot_eager", fullgraph=True)
for rows in (6, 6, 9):
    x = torch.randn(rows, 5).double()
    for net, step in zip(nets, steps):
        net.zero_grad()
        net(x).square().mean().backward()
        step()
    for one, other in zip(nets[0].parameters(), nets[1].parameters()):
        torch.testing.assert_close(one.grad, other.grad, rtol=0, atol=1e-12)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile wants a C++ compiler")
@DYNAMO
def test_code_compiled_before_bnp_is_reported():
    typechecking.end()
    torch.compiler.reset()
    x, y = examples(6)
    torch.compile(dense_net(), backend="aot_eager")(x)  # no hooks are in this code
    model = dense_net()
    preconditioner = BNP(model)
    compiled = torch.compile(model, backend="aot_eager")
    functional.cross_entropy(compiled(x), y).backward()
    with pytest.raises(RuntimeError, match=r"call torch\.compiler\.reset\(\) after BNP"):
        preconditioner.step()
    torch.compiler.reset()
    functional.cross_entropy(compiled(x), y).backward()
    preconditioner.step()


# --- Misuse ----------------------------------------------------------------------------------


def test_step_requires_forward_and_backward():
    model = dense_net()
    preconditioner = BNP(model)
    with pytest.raises(RuntimeError, match="found no forward pass since the last step"):
        preconditioner.step()
    model(examples(4)[0])
    with pytest.raises(RuntimeError, match=r"call loss\.backward\(\) before bnp\.step\(\)"):
        preconditioner.step()


@pytest.mark.row("P-18")
@pytest.mark.parametrize("seed", range(5))
def test_condition_number_after_matches_normalized_inputs(seed):
    rng = np.random.default_rng(seed)
    H, curvatures = activations(rng, features=4), rng.uniform(0.1, 1, size=40)
    std = np.sqrt(H.var(0) + 0.01 * H.var(0).max() + 1e-4)
    extended = np.column_stack([np.ones(40), H])
    normalized = np.column_stack([np.ones(40), (H - H.mean(0)) / std])
    hessians = [(rows.T * curvatures) @ rows for rows in (extended, normalized)]
    sizes = [1.0, *(1 / std)]
    expected = [*map(np.linalg.cond, hessians), max(sizes) / min(sizes)]
    np.testing.assert_allclose(bnp.hessian_condition_numbers(H, curvatures), expected, rtol=1e-7)


BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "bench_bnp.py"


@pytest.mark.row("P-20")
def test_benchmark_compares_networks_of_table_1(monkeypatch, capsys):
    bench = runpy.run_path(str(BENCHMARK))
    plain, normalized = (
        sum(p.numel() for p in bench["network"](kind).parameters()) for kind in (False, True)
    )
    assert plain == 3072 * 100 + 100 + 100 * 100 + 100 + 100 * 10 + 10
    assert normalized == plain + 4 * 100
    main = bench["main"]
    monkeypatch.setitem(main.__globals__, "BATCHES", {1: 1, 4: 1})
    monkeypatch.setitem(main.__globals__, "ROUNDS", 1)
    main([])
    header, one, four = (line.split() for line in capsys.readouterr().out.splitlines())
    times = ["vanilla/ms", "BN/ms", "BNP/ms", "BNP/vanilla", "BNP/BN"]
    assert header == ["batch", *times, "BN/MB", "BNP/MB", "BNP/BN"]
    assert [i for i, cell in enumerate(one) if cell == "nan"] == [2, 5, 6, 8]  # no BN of one row
    size, vanilla, bn, own, to_vanilla, ratio, bn_memory, memory, memory_ratio = map(float, four)
    assert size == 4
    assert to_vanilla == pytest.approx(own / vanilla, abs=0.02)
    assert ratio == pytest.approx(own / bn, abs=0.02)
    assert memory_ratio == pytest.approx(memory / bn_memory, abs=0.02)
    # no less than parameters and gradients, no more than two copies of them beside
    assert 2 * 4 * plain / 2**20 < memory < 4 * 4 * plain / 2**20


def test_model_without_layers_is_refused():
    with pytest.raises(ValueError, match="found none"):
        BNP(nn.Sequential(nn.ReLU(), nn.BatchNorm1d(3)))


# --- Relatives --------------------------------------------------------------------------------


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
    assert flops["BNP"] == 4 * n * N + 6 * n * o + 2 * o + 8 * n
