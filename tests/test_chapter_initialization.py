"""The numbers that the chapter on initialization states, where no cell of it prints them."""

import math
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from optdl import initialization as init
from optdl import quadratic
from optdl.data import load
from optdl.records import Record

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = runpy.run_path(str(ROOT / "experiments" / "recorded.py"))


@pytest.fixture(scope="module")
def pixels():
    return load("digits").split(validation=300, seed=0).train.x.astype(float)


def recorded(name):
    """Return the curves of a recording: (activation or inputs, rate) to one row for each seed."""
    curves = Record.load(PROGRAM["FOLDER"] / f"initialization-{name}.json").curves
    found: dict[str, dict[tuple[str, float], list]] = {}
    for key, values in curves.items():
        label, rate, what = re.fullmatch(r"(.+), rate ([\d.]+), seed \d: (\w+)", key).groups()
        found.setdefault(what, {}).setdefault((label, float(rate)), []).append(values)
    return {
        what: {key: np.array(rows) for key, rows in part.items()} for what, part in found.items()
    }


def best(losses, label):
    """Return the rate with the smallest mean loss after the last epoch, and the grid."""
    rates = sorted(rate for name, rate in losses if name == label)
    return min(rates, key=lambda rate: losses[label, rate][:, -1].mean()), rates


# --- Gradients and symmetry -------------------------------------------------------------------


def test_the_sigmoid_loses_this_factor_in_each_layer():
    rng = np.random.default_rng(0)
    Q = [np.linalg.qr(rng.normal(size=(64, 64)))[0] for _ in range(30)]
    x, upstream = rng.normal(size=64), rng.normal(size=64)

    def per_layer(scale):
        norms = init.gradient_norms([scale * W for W in Q], x, upstream, "sigmoid")
        return (norms[0] / norms[-1]) ** (1 / 30)

    assert per_layer(1) == pytest.approx(0.236, abs=5e-4)
    assert per_layer(4) == pytest.approx(0.64, abs=5e-3)


def test_the_worked_example_is_that_of_autograd():
    h0 = torch.tensor([3.0, 1.0], requires_grad=True)
    h1 = torch.relu(torch.tensor([[1.0, -1], [-1, 2], [2, 0]]) @ h0)
    h1.retain_grad()
    h2 = torch.relu(torch.tensor([[1.0, 2, 0], [0, 1, 1]]) @ h1)
    h2.backward(torch.ones(2))
    assert h1.tolist() == [2, 0, 6]
    assert h2.tolist() == [2, 6]
    assert h1.grad.tolist() == [1, 3, 1]
    assert h0.grad.tolist() == [3, -1]


@pytest.mark.parametrize(
    ("w", "new_w", "new_v"),
    [([1.0, 1.0], [0.5, 0.5], [0.5, 0.5]), ([1.0, 2.0], [0.25, 1.25], [0.25, -0.5])],
)
def test_one_step_of_two_linear_units(w, new_w, new_v):
    w, v = torch.tensor(w, requires_grad=True), torch.ones(2, requires_grad=True)
    ((v @ w) ** 2 / 2).backward()
    assert (w - w.grad / 4).tolist() == new_w
    assert (v - v.grad / 4).tolist() == new_v


def test_a_relu_with_zero_weights_and_random_outgoing_weights_does_not_move():
    W, v = torch.zeros(3, 2, requires_grad=True), torch.randn(3, requires_grad=True)
    ((torch.relu(torch.randn(5, 2) @ W.T) @ v - 1) ** 2).mean().backward()
    assert torch.all(W.grad == 0)
    assert torch.all(v.grad == 0)


# --- The size of the weights ------------------------------------------------------------------


def test_fifty_layers_in_numbers():
    too_large = init.second_moments(1.0, [300] * 50, [1.44 / 300] * 50, "linear")[-1]
    assert too_large == pytest.approx(8.3e7, rel=0.01)
    assert math.sqrt(too_large) == pytest.approx(9100, rel=0.01)
    halved = init.relu_second_moments(1.0, [300] * 50, [1 / 300] * 50)[-1]
    assert halved == pytest.approx(9e-16, rel=0.02)
    forward = init.second_moments(1.0, [300] * 50, [1 / 300] * 50, "tanh")
    backward = init.backward_second_moments(1.0, [300] * 51, [1 / 300] * 50, "tanh")
    assert forward[-1] == pytest.approx(0.010, abs=5e-4)
    assert backward[0] == pytest.approx(0.014, abs=5e-4)


def test_the_default_of_torch_has_a_third_of_lecuns_variance():
    torch.manual_seed(0)
    layer = nn.Linear(600, 400)
    assert layer.weight.abs().max().item() <= 1 / math.sqrt(600)
    assert layer.weight.var().item() * 600 == pytest.approx(1 / 3, rel=0.02)
    assert layer.bias.abs().max().item() <= 1 / math.sqrt(600)


def test_with_the_default_of_torch_the_signal_shrinks_sixfold_per_layer():
    torch.manual_seed(0)
    hidden = [part for _ in range(6) for part in (nn.Linear(512, 512), nn.ReLU())]
    outputs = init.layer_outputs(nn.Sequential(*hidden), torch.randn(400, 512))
    # the part that depends on the input, by the spread over examples
    spread = [np.var(h, axis=0).mean() for name, h in outputs.items() if int(name) % 2]
    factors = np.array(spread[:-1]) / np.array(spread[1:])
    assert np.all((factors > 4) & (factors < 9))


def test_recommended_gains():
    gains = {name: nn.init.calculate_gain(name) for name in ("relu", "tanh", "sigmoid")}
    assert gains == pytest.approx({"relu": math.sqrt(2), "tanh": 5 / 3, "sigmoid": 1})


# --- ReLU against tanh ------------------------------------------------------------------------


def test_tanh_is_saturated_beyond_this_point():
    assert np.arctanh(np.sqrt(1 - 0.05)) == pytest.approx(2.18, abs=5e-3)


@pytest.mark.row("L2-12")
def test_each_best_rate_lies_inside_its_grid():
    losses = recorded("rates")["train_loss"]
    for label, expected in (("sigmoid", 1.6), ("tanh", 0.8), ("ReLU", 0.4)):
        rate, grid = best(losses, label)
        assert rate == expected
        assert grid[0] < rate < grid[-1]


@pytest.mark.row("L2-12")
def test_what_is_said_of_relu_and_tanh_at_tuned_and_at_equal_rates():
    losses = recorded("rates")["train_loss"]
    relu, tanh, sigmoid = losses["ReLU", 0.4], losses["tanh", 0.8], losses["sigmoid", 1.6]
    assert relu.shape == (5, 8)
    assert relu[:, -1].mean() == pytest.approx(0.0013, abs=5e-5)
    assert tanh[:, -1].mean() == pytest.approx(0.0024, abs=5e-5)
    assert sigmoid[:, -1].mean() == pytest.approx(0.21, abs=5e-3)
    assert relu[:, -1].max() < tanh[:, -1].min()
    for lr in (0.1, 0.2, 0.4):
        ratio = losses["tanh", lr][:, -1].mean() / losses["ReLU", lr][:, -1].mean()
        assert 3.25 < ratio < 5.45
    assert losses["ReLU", 0.8][:, -1].mean() == pytest.approx(0.29, abs=5e-3)
    first = {name: np.argmax(loss < 0.1, axis=1) + 1 for name, loss in (("r", relu), ("t", tanh))}
    assert set(first["t"]) == {2}
    assert set(first["r"]) == {2, 3}


@pytest.mark.row("L2-12")
def test_what_is_said_of_weights_that_are_too_large():
    factors, plain = recorded("factors"), recorded("rates")
    losses, errors = factors["train_loss"], factors["validation_error"]
    assert best(losses, "tanh, 4")[0] == best(plain["train_loss"], "tanh")[0] == 0.8
    assert best(losses, "ReLU, 4")[0] == 0.02
    for label in ("tanh, 0.5", "tanh, 2", "tanh, 4", "ReLU, 4"):
        rate, grid = best(losses, label)
        assert grid[0] < rate < grid[-1]
    end = losses["tanh, 4", 0.8][:, -1].mean() / plain["train_loss"]["tanh", 0.8][:, -1].mean()
    assert end == pytest.approx(1.9, abs=0.05)
    twice = losses["tanh, 2", 1.6][:, -1]
    assert twice.mean() == pytest.approx(0.0011, abs=5e-5)
    before = [
        plain["validation_error"][key][:, -1].mean() for key in (("tanh", 0.8), ("ReLU", 0.4))
    ]
    after = [errors[key][:, -1].mean() for key in (("tanh, 4", 0.8), ("ReLU, 4", 0.02))]
    np.testing.assert_allclose(before, [0.04, 0.04], atol=5e-3)
    np.testing.assert_allclose(after, [0.10, 0.18], atol=5e-3)


@pytest.mark.row("L2-12")
@pytest.mark.parametrize(("factor", "lr"), [(0.5, 0.8), (2, 0.4)])
def test_twice_the_largest_rate_of_the_grid_diverges_for_some_seed(factor, lr):
    assert lr == 2 * max(PROGRAM["FACTOR_RATES"]["ReLU", factor])

    def train_all_seeds():
        for seed in range(3):
            PROGRAM["train_three_layers"](
                seed, "ReLU", factor, "normalized", lr, [], epochs=8, batch_size=32
            )

    with pytest.raises(FloatingPointError, match="the loss is"):
        train_all_seeds()


# --- Diagnostics ------------------------------------------------------------------------------


@pytest.mark.row("F-06")
def test_one_long_step_kills_units_of_the_later_layers():
    examples, _ = PROGRAM["prepared_digits"]("normalized")
    x, y = torch.from_numpy(examples.x), torch.from_numpy(examples.y)
    shares = {}
    for lr in (0.3, 3, 10):
        network = PROGRAM["three_hidden_layers"]("ReLU", 1, seed=0)
        nn.functional.cross_entropy(network(x), y).backward()
        torch.optim.SGD(network.parameters(), lr=lr).step()
        outputs = init.layer_outputs(network, x)
        shares[lr] = [init.dead_share(outputs[name]) for name in ("1", "3", "5")]
    assert [part[0] for part in shares.values()] == [0, 0, 0]
    assert shares[0.3] == [0, 0, 0]
    assert shares[10][2] > shares[3][2] > 0.1
    assert shares[10][2] > 0.3


# --- Inputs -----------------------------------------------------------------------------------


@pytest.mark.row("L2-13")
def test_two_examples_by_hand():
    before = init.least_squares_hessian(np.array([[1.0], [3.0]]))
    np.testing.assert_array_equal(before, [[1, 2], [2, 5]])
    assert np.linalg.cond(before) == pytest.approx((3 + math.sqrt(8)) ** 2)
    assert np.linalg.cond(before) == pytest.approx(34, abs=0.05)
    after, _ = init.normalize_inputs(np.array([[1.0], [3.0]]), np.zeros((1, 1)), 0.0)
    np.testing.assert_array_equal(init.least_squares_hessian(after), np.eye(2))


@pytest.mark.row("L2-13")
def test_in_other_units_the_largest_stable_rate_is_another():
    """The second moments of uniform x₁ in [1, 2] and x₂ in [0.1, 0.2]: μ² + w²/12."""
    mean, square = np.array([1.5, 0.15]), np.array([1.5**2 + 1 / 12, 0.15**2 + 0.01 / 12])
    H = np.array([[1, *mean], [mean[0], square[0], mean.prod()], [mean[1], mean.prod(), square[1]]])
    assert quadratic.largest_stable_step(np.linalg.eigvalsh(H)) == pytest.approx(0.6, abs=0.01)


@pytest.mark.row("L2-13")
def test_the_mean_image_sets_the_largest_eigenvalue_and_centering_removes_it(pixels):
    mean, covariance = pixels.mean(axis=0), np.cov(pixels.T, ddof=0)
    steepest = 1 + mean @ mean
    spread = np.linalg.eigvalsh(covariance)[-1]
    assert mean @ mean == pytest.approx(10.3, abs=0.05)
    assert spread == pytest.approx(0.69, abs=5e-3)
    largest = np.linalg.eigvalsh(init.least_squares_hessian(pixels))[-1]
    centered = np.linalg.eigvalsh(init.least_squares_hessian(pixels - mean))[-1]
    assert steepest <= largest <= steepest + spread
    assert centered == pytest.approx(1)
    assert largest / centered == pytest.approx(11.5, abs=0.05)
    assert 2 / (steepest + spread) == pytest.approx(0.17, abs=5e-3)
    assert 2 / steepest == pytest.approx(0.18, abs=5e-3)


@pytest.mark.row("L2-13")
def test_at_equal_rates_centering_alone_changes_almost_nothing(pixels):
    split = load("digits").split(validation=300, seed=0)
    target = np.where(split.train.y % 2 == 0, 1.0, -1.0)
    excess = {}
    for kind, x in (("raw", pixels), ("centered", pixels - pixels.mean(axis=0))):
        eigenvalues, vectors = quadratic.eigenbasis(init.least_squares_hessian(x))
        X = np.column_stack([np.ones(len(x)), x])
        start = -vectors.T @ np.linalg.lstsq(X, target, rcond=None)[0]
        for lr in (0.05, 0.1, 0.15):
            path = quadratic.gd_coefficients(start, eigenvalues, lr, 100)
            excess[kind, lr] = 0.5 * eigenvalues @ path[-1] ** 2
    for lr in (0.05, 0.1, 0.15):
        assert excess["centered", lr] == pytest.approx(excess["raw", lr], rel=0.02)


@pytest.mark.row("L2-13")
def test_a_tiny_guard_enlarges_pixels_that_hardly_vary(pixels):
    validation = load("digits").split(validation=300, seed=0).validation.x.astype(float)
    train, other = init.normalize_inputs(pixels, validation, 1e-8)
    assert np.abs(train).max() == pytest.approx(math.sqrt(len(pixels) - 1), abs=0.1)
    assert np.abs(train).max() == pytest.approx(34, abs=0.5)
    assert np.abs(other).max() == pytest.approx(625, abs=0.5)
    guarded, _ = init.normalize_inputs(pixels, validation, 1e-3)
    assert np.abs(guarded).max() < 15
