"""Claims of the lessons on initialization that no printed number carries."""

import math
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
from chapters import text
from scipy.integrate import quad
from torch import nn

from optdl import initialization as init
from optdl import quadratic
from optdl.data import load
from optdl.records import Record

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = runpy.run_path(str(ROOT / "experiments" / "recorded.py"))


def says(page: str, *sentences: str) -> None:
    """Require that a page still says what a test is about to verify."""
    for sentence in sentences:
        assert sentence in text("initialization", page), f"{page} no longer says {sentence!r}"


def recorded(name: str, what: str = "train_loss") -> dict[tuple[str, float], np.ndarray]:
    """Return the curves of a recording: (network, rate) to one row for each seed."""
    curves = Record.load(PROGRAM["FOLDER"] / f"initialization-{name}.json").curves
    found: dict[tuple[str, float], list] = {}
    for key, values in curves.items():
        label, rate, curve = re.fullmatch(r"(.+), rate ([\d.e-]+), seed \d: (\w+)", key).groups()
        if curve == what:
            found.setdefault((label, float(rate)), []).append(values)
    return {key: np.array(rows) for key, rows in found.items()}


def heights(name: str) -> dict[str, dict[float, float]]:
    """Return the mean of the logarithmic loss of each network at each rate."""
    found: dict[str, dict[float, float]] = {}
    for (label, rate), rows in recorded(name).items():
        found.setdefault(label, {})[rate] = np.log(rows).mean()
    return found


# --- Depth ------------------------------------------------------------------------------------


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


def test_fifty_layers_by_hand():
    says("scale", r"$1.44^{50} \approx 8\cdot10^7$, a factor of 9100", r"9\cdot10^{-16}")
    too_large = init.second_moments(1.0, [300] * 50, [1.44 / 300] * 50, "linear")[-1]
    assert too_large == pytest.approx(8.3e7, rel=0.01)
    assert math.sqrt(too_large) == pytest.approx(9100, rel=0.01)
    halved = init.relu_second_moments(1.0, [300] * 50, [1 / 300] * 50)[-1]
    assert halved == pytest.approx(9e-16, rel=0.02)


def tanh_ends(scale: float, depth: int, first: float = 1.0) -> tuple[float, float]:
    """Return the predicted mean squares of the last activations and of the first gradient."""
    variances = [scale**2 / 100] * depth
    forward = init.second_moments(first, [100] * depth, variances, "tanh")
    backward = init.backward_second_moments(1.0, [100] * (depth + 1), variances, "tanh", first)
    return forward[-1], backward[0]


@pytest.mark.row("L2-11")
def test_the_scale_at_which_the_gradient_of_tanh_arrives_depends_on_the_depth():
    says(
        "scale",
        "With about 1.18, where the activations keep 16 %",
        "in 100 layers the gradient then grows four times. There the factor is 1.13, and in 200 "
        "layers 1.10",
    )
    for depth, scale in ((50, 1.18), (100, 1.13), (200, 1.10)):
        assert tanh_ends(scale - 0.01, depth)[1] < 1 < tanh_ends(scale + 0.01, depth)[1]
    assert tanh_ends(1.18, 50)[0] == pytest.approx(0.16, abs=0.005)
    assert tanh_ends(1.18, 100)[1] == pytest.approx(4, abs=0.5)


@pytest.mark.row("L2-11")
def test_the_variance_of_a_gelu_network_is_not_stable():
    says("scale", "a $z$ of variance 0.8 has variance 0.0016 after 24 layers")

    def mean_square(variance: float) -> float:
        def integrand(z: float) -> float:
            value = torch.nn.functional.gelu(torch.tensor(z * math.sqrt(variance)).double()).item()
            return value**2 * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

        return quad(integrand, -9, 9)[0]

    variance, gain = 0.8, 1 / mean_square(1.0)
    for _ in range(24):
        variance = gain * mean_square(variance)
    assert variance == pytest.approx(0.0016, abs=5e-5)


@pytest.mark.row("L2-11")
def test_the_scales_that_solve_the_task_of_the_figure():
    says("scale", "scales from 1.11 to 1.31 do it for tanh", "from 1.38 to 1.45, a range 5 % wide")

    def solves(scale: float) -> bool:
        return all(0.1 <= end <= 10 for end in tanh_ends(scale, 50))

    assert [solves(s) for s in (1.10, 1.11, 1.2, 1.31, 1.32)] == [False, True, True, True, False]
    low, high = (math.sqrt(2) * 10**power for power in (-0.01, 0.01))
    assert (low, high) == pytest.approx((1.38, 1.45), abs=0.005)
    assert high / low - 1 == pytest.approx(0.05, abs=0.005)


@pytest.mark.row("L2-11")
def test_tanh_has_a_fixed_point_forward_and_chaos_backward_beyond_scale_one():
    for scale in (1.2, 1.5, 3.0):
        ends = [tanh_ends(scale, 400, first)[0] for first in (0.01, 1.0, 100.0)]
        assert max(ends) / min(ends) < 1.01  # whatever the input
        assert tanh_ends(scale, 400)[1] > 1e4
        # two inputs that are close to each other move apart
        rng = np.random.default_rng(0)
        near = rng.normal(size=300)
        far, small = near + 1e-8 * rng.normal(size=300), []
        for _ in range(25):
            W = scale * init.lecun_normal(300, 300, rng)
            near, far = np.tanh(W @ near), np.tanh(W @ far)
            small.append(np.linalg.norm(near - far))
        assert small[-1] > small[4]
    for scale in (0.8, 0.95):
        assert max(tanh_ends(scale, 400)) < 1e-6
    for depth in (50, 200, 800):
        assert tanh_ends(1.0, depth)[0] == pytest.approx(1 / (2 * depth), rel=0.05)


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


@pytest.mark.row("L2-12")
def test_each_best_rate_lies_inside_its_grid_unless_larger_ones_diverge():
    says("relu", "no best rate lies at the end of its grid")
    diverge = {"ReLU, 2": 0.002, "ReLU, 4": 1e-5}  # beyond the largest of the deep networks
    for name in ("rates", "factors", "deep"):
        for label, grid in heights(name).items():
            best, rates = min(grid, key=grid.get), sorted(grid)
            if name == "deep" and label in diverge:
                assert rates[0] < best < diverge[label]
            elif (name, label) != ("deep", "sigmoid, 1"):  # does not learn at any rate
                assert rates[0] < best < rates[-1], (name, label)


@pytest.mark.row("L2-12")
@pytest.mark.parametrize(("factor", "lr"), [(2, 0.002), (4, 1e-5)])
def test_deep_relu_networks_with_large_weights_diverge_beyond_their_grids(factor, lr):
    guess = math.log(10)
    losses = [
        PROGRAM["train_hidden_layers"](
            seed, "ReLU", factor, "normalized", lr, [], depth=10, epochs=1, batch_size=32
        ).curves["train_loss"]
        for seed in range(3)
    ]
    assert losses == [[guess]] * 3


@pytest.mark.row("L2-12")
def test_what_is_said_of_the_order_of_the_activations():
    three, factors, deep = heights("rates"), heights("factors"), heights("deep")
    best = {
        **{f"3 {label}": min(grid.values()) for label, grid in (three | factors).items()},
        **{f"10 {label}": min(grid.values()) for label, grid in deep.items()},
    }
    assert best["3 ReLU"] < best["3 tanh"] < best["3 sigmoid"] < best["3 sigmoid, 0.25"]
    assert best["10 tanh, 1"] < best["10 ReLU, 1"] < best["10 tanh, 4"] < best["10 sigmoid, 1"]
    for depth in (3, 10):
        plain = "" if depth == 3 else ", 1"
        for factor in (2, 4):
            loss = {
                name: best[f"{depth} {name}, {factor}"] - best[f"{depth} {name}{plain}"]
                for name in ("tanh", "ReLU")
            }
            assert loss["ReLU"] > loss["tanh"]
    assert math.log(2) < best["10 ReLU, 2"] < math.log(math.log(10)) < best["10 ReLU, 4"]
    # some of the ReLU networks diverge at η = 0.8
    ends = recorded("rates")["ReLU", 0.8][:, -1]
    assert 0 < np.sum(np.isclose(ends, math.log(10), rtol=1e-4)) < 5


@pytest.mark.row("L2-12")
def test_the_gradient_of_a_relu_network_grows_with_these_powers_of_the_factor():
    says("relu", "they grow by $4^3 = 64$", "hidden layer by $4^2 = 16$", "last layer's by 64")
    torch.manual_seed(0)
    weights = [torch.randn(8, 8) for _ in range(3)] + [torch.randn(3, 8)]
    x, grown = torch.randn(8), []
    for factor in (1, 4):
        own = [(factor if k < 3 else 1) * W for k, W in enumerate(weights)]
        own = [W.clone().requires_grad_() for W in own]
        h = x
        for W in own[:3]:
            h = torch.relu(W @ h)
        scores = own[3] @ h
        scores.sum().backward()
        grown.append([scores.norm().item()] + [W.grad.norm().item() for W in own])
    np.testing.assert_allclose(np.divide(grown[1], grown[0]), [64, 16, 16, 16, 64], rtol=1e-5)


# --- Inputs -----------------------------------------------------------------------------------


@pytest.mark.row("L2-13")
def test_the_mean_image_bounds_the_largest_eigenvalue_and_centering_leaves_that_of_the_bias():
    says("inputs", "the eigenvalue of the bias, 1, is then the largest")
    pixels = load("digits").split(validation=300, seed=0).train.x.astype(float)
    mean, spread = pixels.mean(axis=0), np.linalg.eigvalsh(np.cov(pixels.T, ddof=0))[-1]
    largest = quadratic.eigenbasis(init.least_squares_hessian(pixels))[0][-1]
    assert 1 + mean @ mean <= largest <= 1 + mean @ mean + spread
    values, vectors = quadratic.eigenbasis(init.least_squares_hessian(pixels - mean))
    assert values[-1] == pytest.approx(1)
    assert abs(vectors[0, -1]) == pytest.approx(1)


@pytest.mark.row("L2-13")
def test_a_pixel_that_is_black_in_all_images_but_one_becomes_large():
    says("inputs", r"$\sqrt{m-1} \approx 34$ for $m = 1138$")
    m = len(load("digits").split(validation=300, seed=0).train.y)
    pixel = np.zeros((m, 1))
    pixel[0] = 0.5
    [value] = init.InputNormalizer.fit(pixel)(pixel)[0]
    assert value == pytest.approx(math.sqrt(m - 1), rel=1e-3)
    assert round(value) == 34
