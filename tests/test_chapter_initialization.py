"""The numbers that the chapter on initialization states, where no cell of it prints them."""

import contextlib
import io
import math
import re
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from torch import nn

from optdl import initialization as init
from optdl import quadratic, training
from optdl.data import load
from optdl.records import Record

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = runpy.run_path(str(ROOT / "experiments" / "recorded.py"))
PLAIN = " ".join((ROOT / "book" / "initialization.md").read_text(encoding="utf-8").split())


def says(*sentences: str) -> None:
    """Require that the page still says what a test is about to verify."""
    for sentence in sentences:
        assert sentence in PLAIN, f"the page no longer says {sentence!r}: change this test too"


@pytest.fixture(scope="module")
def pixels():
    return load("digits").split(validation=300, seed=0).train.x.astype(float)


def printed(monkeypatch, marker, needed=None):
    """Run the cells of the page up to that with the marker, and return what that one prints.

    With ``needed`` only the cells that contain one of these words are run before it.
    """
    monkeypatch.chdir(ROOT / "book")
    text = (ROOT / "book" / "initialization.md").read_text(encoding="utf-8")
    space: dict[str, object] = {}
    with plt.rc_context():
        for cell in re.findall(r"^```{code-cell} ipython3\n(.*?)^```$", text, re.M | re.S):
            code = cell.split("\n---\n", 1)[1] if cell.startswith("---") else cell
            code = re.sub(r"^:tags:.*\n", "", code)
            if needed and marker not in code and not any(word in code for word in needed):
                continue
            with contextlib.redirect_stdout(io.StringIO()) as shown:
                exec(code, space)
            plt.close("all")
            if marker in code:
                return shown.getvalue()
    raise AssertionError(f"no cell of the page contains {marker!r}")


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
    says(
        r"a factor of $1.5\cdot10^{-19}$ over 30 layers, 0.236 per layer",
        "by a factor of 0.64 per layer in this network",
        "Tanh keeps 21 % of the norm",
        r"The ReLU keeps $7\cdot10^{-6}$",
    )
    rng = np.random.default_rng(0)
    Q = [np.linalg.qr(rng.normal(size=(64, 64)))[0] for _ in range(30)]
    x, upstream = rng.normal(size=64), rng.normal(size=64)

    def kept(scale, name):
        """Return the share of the norm that is left at the input, by autograd."""
        h = start = torch.tensor(x, requires_grad=True)
        for W in Q:
            h = getattr(torch, name)(torch.tensor(scale * W) @ h)
        h.backward(torch.tensor(upstream))
        return start.grad.norm().item() / np.linalg.norm(upstream)

    assert kept(1, "sigmoid") == pytest.approx(1.5e-19, rel=0.05)
    assert kept(1, "sigmoid") ** (1 / 30) == pytest.approx(0.236, abs=5e-4)
    assert kept(4, "sigmoid") ** (1 / 30) == pytest.approx(0.64, abs=5e-3)
    assert kept(1, "tanh") == pytest.approx(0.21, abs=5e-3)
    assert kept(1, "relu") == pytest.approx(7e-6, rel=0.05)


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


def test_how_many_different_units_are_left_and_how_far_they_move(monkeypatch):
    says(
        "One, one, six and six",
        "in this run the weights have moved by only 0.05 after 3000 steps",
        "other draws of $v$ are faster or slower",
    )
    found = printed(monkeypatch, "different = len")
    moved, units = zip(*re.findall(r"moved ([\d.]+)   different units (\d)", found), strict=True)
    assert units == ("1", "1", "6", "6")
    assert moved[0] == "0.00"
    assert float(moved[2]) == pytest.approx(0.05, abs=0.02)
    others = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x, v = rng.normal(size=(40, 2)), 0.4 * rng.normal(size=6)
        y = np.sin(2 * x[:, 0]) * x[:, 1]
        others.append(np.abs(init.train_hidden_layer(np.zeros((6, 2)), v, x, y, 0.3, 3000)).max())
    assert min(others) < 0.05
    assert max(others) > 0.5


def test_a_relu_with_zero_weights_and_random_outgoing_weights_does_not_move():
    W, v = torch.zeros(3, 2, requires_grad=True), torch.randn(3, requires_grad=True)
    ((torch.relu(torch.randn(5, 2) @ W.T) @ v - 1) ** 2).mean().backward()
    assert torch.all(W.grad == 0)
    assert torch.all(v.grad == 0)


# --- The size of the weights ------------------------------------------------------------------


def test_fifty_layers_in_numbers():
    says(
        r"$1.44^{50} \approx 8\cdot10^7$, which is a factor of 9100",
        r"$2^{-50} \approx 9\cdot10^{-16}$",
        "$q$ falls from 1 to 0.010 in 50 layers",
        "the mean square of the gradient falls to 0.014",
    )
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
    says("where $|z| > 2.18$: 3 %, 47 % and 83 % of a normal variable")
    shares = [math.erfc(2.18 / s / math.sqrt(2)) for s in (1, 3, 10)]
    assert shares == pytest.approx([0.03, 0.47, 0.83], abs=5e-3)
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
    says(
        "is smaller than that of tanh by a factor of 3.3 to 5.4",
        "the mean loss of the ReLU networks is 0.29",
        "the ReLU ends at 0.0013 and tanh at 0.0024",
        "tanh falls below 0.1 in epoch 2 for all seeds, the ReLU in epoch 2 or 3",
        "The sigmoid is slow at every learning rate: its loss is 0.21 at best",
        "The sigmoid has the largest (1.6), tanh has 0.8 and the ReLU the smallest (0.4)",
    )
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
    says(
        "Its loss after 8 epochs is 1.9 times that of Glorot's weights",
        "Its best learning rate falls from 0.4 to 0.02, and it needs 5 or 6 epochs where it needed "
        "2 or 3",
        "at η = 1.6 its loss after 8 epochs is 0.0011 (mean of 3 seeds)",
        "the validation error grows: from 4 % to 10 % (tanh) and from 4 % to 18 % (ReLU)",
        "reduce the best learning rate of the ReLU by a factor of 20",
    )
    factors, plain = recorded("factors"), recorded("rates")
    slow = np.argmax(factors["train_loss"]["ReLU, 4", 0.02] < 0.1, axis=1) + 1
    assert set(slow) == {5, 6}
    assert set(np.argmax(factors["train_loss"]["tanh, 4", 0.8] < 0.1, axis=1) + 1) == {2}
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
    says(
        "At twice the largest learning rate of the grids for the factors 0.5 and 2, at least one "
        "of three seeds diverges."
    )
    assert lr == 2 * max(PROGRAM["FACTOR_RATES"]["ReLU", factor])

    def train_all_seeds():
        for seed in range(3):
            PROGRAM["train_three_layers"](
                seed, "ReLU", factor, "normalized", lr, [], epochs=8, batch_size=32
            )

    with pytest.raises(FloatingPointError, match="the loss is"):
        train_all_seeds()


@pytest.mark.row("L2-12")
def test_the_gradient_of_a_relu_network_grows_with_these_powers_of_the_factor():
    says("multiplies the scores by 64", "hidden layer by $4^2 = 16$", "by $4^3 = 64$")
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


# --- Diagnostics ------------------------------------------------------------------------------


@pytest.mark.row("F-06")
def test_half_of_the_tanh_outputs_are_saturated_by_weights_four_times_too_large():
    says("starts with 54 % of the outputs of its third hidden layer saturated")
    examples, _ = PROGRAM["prepared_digits"]("normalized")
    network = PROGRAM["three_hidden_layers"]("tanh", 4, seed=0)
    z = init.layer_outputs(network, torch.from_numpy(examples.x))["4"]
    slopes = 1 - np.tanh(np.asarray(z, float)) ** 2
    assert np.mean(slopes < 0.05) == pytest.approx(0.54, abs=0.03)


@pytest.mark.row("F-06")
def test_ten_layers_of_tanh_halve_the_signal_with_half_of_glorots_weights():
    says("each layer about halves the standard deviation", "Too small (above): the signal vanishes")
    examples, _ = PROGRAM["prepared_digits"]("normalized")
    torch.manual_seed(0)
    h, spread = torch.from_numpy(examples.x), []
    for _ in range(10):
        layer = nn.Linear(64, 64, bias=False)
        nn.init.xavier_normal_(layer.weight, 0.5)
        h = torch.tanh(layer(h))
        spread.append(h.std().item())
    factors = np.divide(spread[1:], spread[:-1])
    assert np.all((factors > 0.4) & (factors < 0.6))


@pytest.mark.row("F-06")
def test_the_update_ratio_passes_through_the_rule_of_thumb_at_the_best_rate():
    says(
        r"at a ratio of $10^{-4}$ the loss is still 2.1 after 6 epochs",
        r"it starts at $3\cdot10^{-2}$ and is below $10^{-3}$ in the last epoch",
        "(1.9 to 2.2 with three other seeds)",
    )
    examples, _ = PROGRAM["prepared_digits"]("normalized")

    def trained(lr, seed):
        network = PROGRAM["three_hidden_layers"]("ReLU", 1, seed=seed)
        sgd = torch.optim.SGD(network.parameters(), lr=lr)
        return training.train(
            network, examples, sgd, epochs=6, batch_size=32, hooks=[init.UpdateRatioHook()]
        ).curves

    slow = [trained(0.001, seed) for seed in range(3)]
    assert all(0.7e-4 < curves["update_ratio 2.weight"][-1] < 2e-4 for curves in slow)
    assert all(1.85 < curves["train_loss"][-1] < 2.25 for curves in slow)
    best_ratios = trained(0.4, 0)["update_ratio 2.weight"]
    assert best_ratios[0] == pytest.approx(3e-2, rel=0.2)
    assert best_ratios[-1] < 1e-3


@pytest.mark.row("F-06")
def test_one_long_step_kills_units_of_the_later_layers(monkeypatch):
    says(
        "None, 14 % and 36 %, as the cell shows",
        "33 times as long kills 36 % of the last hidden",
        "a step with η = 0.4 kills no unit either, and a step with η = 10 kills 28 to 55 %",
    )
    found = printed(monkeypatch, "init.dead_share", ("use_style", "normalizer =", "def network"))
    shares = {rate: row.split() for rate, row in re.findall(r"η = +([\d.]+) .*: +(.*)", found)}
    assert shares["0.3"] == ["0%"] * 3
    assert (shares["3"][2], shares["10"][2]) == ("14%", "36%")
    assert [row[0] for row in shares.values()] == ["0%"] * 4
    examples, _ = PROGRAM["prepared_digits"]("normalized")
    x, y = torch.from_numpy(examples.x), torch.from_numpy(examples.y)
    last: dict[float, list[float]] = {0.4: [], 10: []}
    for lr, seed in ((lr, seed) for lr in last for seed in range(5)):
        network = PROGRAM["three_hidden_layers"]("ReLU", 1, seed=seed)
        nn.functional.cross_entropy(network(x), y).backward()
        torch.optim.SGD(network.parameters(), lr=lr).step()
        outputs = init.layer_outputs(network, x)
        last[lr].append(init.dead_share(outputs["5"]))
        assert init.dead_share(outputs["1"]) == 0
    assert last[0.4] == [0] * 5
    assert (min(last[10]), max(last[10])) == pytest.approx((0.28, 0.55), abs=0.02)


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
    says(
        "learning rates up to 0.6 would have been stable from the start",
        "which that change of units alone reduces to about 4200 and normalization to 1.03",
        r"grows from $8\cdot10^{-7}$ to 2",
        "14,460 for the inputs that are only rescaled, and 2 after normalization",
    )
    mean, square = np.array([1.5, 0.15]), np.array([1.5**2 + 1 / 12, 0.15**2 + 0.01 / 12])
    H = np.array([[1, *mean], [mean[0], square[0], mean.prod()], [mean[1], mean.prod(), square[1]]])
    assert quadratic.largest_stable_step(np.linalg.eigvalsh(H)) == pytest.approx(0.6, abs=0.01)
    # the sample of the page has 500 examples; these are the numbers of infinitely many
    assert np.linalg.cond(H) == pytest.approx(4200, rel=0.1)
    units = np.diag([1, 1000, 1])
    as_given = np.linalg.eigvalsh(units @ H @ units)[-1]
    assert 2 / as_given == pytest.approx(8e-7, rel=0.1)
    steps = [math.log(1e-3) / math.log((k - 1) / (k + 1)) for k in (np.linalg.cond(H), 1.03)]
    assert steps[0] == pytest.approx(14_460, rel=0.1)
    assert 1 < steps[1] < 2


@pytest.mark.row("L2-13")
def test_the_mean_image_sets_the_largest_eigenvalue_and_centering_removes_it(pixels):
    says(
        r"$\lVert\mu\rVert^2 = 10.3$ and $\lambda_{max}(C) = 0.69$",
        "multiplies the largest stable learning rate by 11.5",
        "between $2/12.0 = 0.17$ and $2/11.3 = 0.18$",
    )
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
    says(
        "the raw and the centered curve coincide within 2 %",
        "excess loss is 5.4 times smaller than with centering alone",
        "The curve of normalized inputs lies about ten times lower and ends at 0.28",
    )
    split = load("digits").split(validation=300, seed=0)
    target = np.where(split.train.y % 2 == 0, 1.0, -1.0)
    excess = {}
    kinds = {
        "raw": pixels,
        "centered": pixels - pixels.mean(axis=0),
        "normalized": init.normalize_inputs(pixels, pixels, 1e-3)[0],
    }
    lowest, limit = {}, {}
    for kind, x in kinds.items():
        eigenvalues, vectors = quadratic.eigenbasis(init.least_squares_hessian(x))
        X = np.column_stack([np.ones(len(x)), x])
        start = -vectors.T @ np.linalg.lstsq(X, target, rcond=None)[0]
        for lr in (0.05, 0.1, 0.15):
            path = quadratic.gd_coefficients(start, eigenvalues, lr, 100)
            excess[kind, lr] = 0.5 * eigenvalues @ path[-1] ** 2
        limit[kind] = 2 / eigenvalues[-1]
        rates = np.linspace(0.02, 0.999, 60) * limit[kind]
        ends = [quadratic.gd_coefficients(start, eigenvalues, lr, 100)[-1] for lr in rates]
        lowest[kind] = min(0.5 * eigenvalues @ end**2 for end in ends)
    assert lowest["centered"] / lowest["normalized"] == pytest.approx(5.4, abs=0.05)
    assert limit["normalized"] == pytest.approx(0.28, abs=5e-3)
    for lr in (0.05, 0.1, 0.15):
        assert 7 < excess["raw", lr] / excess["normalized", lr] < 15
    for lr in (0.05, 0.1, 0.15):
        assert excess["centered", lr] == pytest.approx(excess["raw", lr], rel=0.02)


@pytest.mark.row("L2-13")
def test_what_is_said_of_a_network_with_raw_centered_and_normalized_inputs():
    says(
        "0.092 for raw, 0.011 for centered and 0.0023 for normalized inputs",
        "(0.092, 0.037 and 0.0076 at 0.2)",
        "at 0.8 the mean loss is 1.96 for raw inputs, 0.13 for centered and 0.99 for normalized",
    )
    losses = recorded("inputs")["train_loss"]
    mean = {key: rows[:, -1].mean() for key, rows in losses.items()}
    for kind, at_best, at_fifth, at_largest in (
        ("raw", 0.092, 0.092, 1.96),
        ("centered", 0.011, 0.037, 0.13),
        ("normalized", 0.0023, 0.0076, 0.99),
    ):
        rate, grid = best(losses, kind)
        assert grid[0] < rate < grid[-1]
        assert mean[kind, rate] == pytest.approx(at_best, rel=0.03)
        assert mean[kind, 0.2] == pytest.approx(at_fifth, rel=0.02)
        assert mean[kind, 0.8] == pytest.approx(at_largest, rel=0.02)


@pytest.mark.row("L2-13")
def test_a_tiny_guard_enlarges_pixels_that_hardly_vary(pixels):
    says("about $\\sqrt{m-1} \\approx 34$ for $m = 1138$", "one input becomes 625", "exceeds 15.")
    validation = load("digits").split(validation=300, seed=0).validation.x.astype(float)
    train, other = init.normalize_inputs(pixels, validation, 1e-8)
    assert np.abs(train).max() == pytest.approx(math.sqrt(len(pixels) - 1), abs=0.1)
    assert np.abs(train).max() == pytest.approx(34, abs=0.5)
    assert np.abs(other).max() == pytest.approx(625, abs=0.5)
    guarded, _ = init.normalize_inputs(pixels, validation, 1e-3)
    assert np.abs(guarded).max() < 15
