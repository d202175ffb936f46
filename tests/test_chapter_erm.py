"""Chapter 1: what its prose says about its figures, checked against the data of the figures."""

import contextlib
import io
import itertools
import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from jaxtyping import config

from optdl import erm
from optdl.data import load
from optdl.erm import (
    SURROGATES,
    LinearPopulation,
    NoisyCurve,
    count_dichotomies,
    double_descent_risk,
    expected_least_squares_risks,
    standard_error,
)
from tools import pages

ROOT = Path(__file__).resolve().parent.parent
PAGE = (Path(__file__).resolve().parents[1] / "book" / "erm.md").read_text("utf-8")
TEXT = re.sub(r"\s+", " ", PAGE)


def says(*parts: str) -> None:
    """Make sure that the chapter still says what a test is about."""
    for part in parts:
        assert part in TEXT, f"the chapter no longer says: {part}"


CELLS = [
    cell.source
    for page in pages.find(ROOT)
    if page.name == "erm"
    for cell in page.cells
    if "name" not in cell.metadata.get("mystnb", {}).get("figure", {})
]

pytestmark = pytest.mark.xdist_group("chapter-erm")


@pytest.fixture(scope="module")
def states() -> list[dict[str, Any]]:
    """Run the cells of the page, except those that draw; return the variables after each."""
    config.update("jaxtyping_disable", True)  # as on the page; each test switches it on again
    now: dict[str, Any] = {}
    after = []
    folder = Path.cwd()
    os.chdir(ROOT / "book")
    try:
        for cell in CELLS:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(cell, now)
            after.append(dict(now))
    finally:
        os.chdir(folder)
    return after


@pytest.fixture
def after(states):
    """Return a function that gives the variables after the one cell that holds a text."""

    def state(text: str) -> dict[str, Any]:
        [found] = [now for cell, now in zip(CELLS, states, strict=True) if text in cell]
        return found

    return state


def local_minima(values: np.ndarray) -> np.ndarray:
    """Return the positions of the local minima on a circle, once for each flat stretch."""
    starts = np.flatnonzero(values != np.roll(values, 1))
    levels = values[starts]
    return starts[(levels < np.roll(levels, 1)) & (levels < np.roll(levels, -1))]


# --- Risk and empirical risk ------------------------------------------------------------------


def test_fifty_examples_are_1_1_standard_deviations_off_and_1730_give_one_point(after):
    says("= 0.059$. The two lie 1.1 standard deviations apart", "\\approx 1730")
    now = after("a fixed classifier")
    deviation = math.sqrt(now["risk"] * (1 - now["risk"]) / 50)
    assert deviation == pytest.approx(0.059, abs=5e-4)
    assert abs(now["J"] - now["risk"]) / deviation == pytest.approx(1.1, abs=0.05)
    assert now["risk"] * (1 - now["risk"]) / 0.01**2 == pytest.approx(1730, abs=10)


def test_340_of_360_empirical_risks_lie_within_two_standard_deviations(after):
    says("Of the 360 dots, 340 lie", "to within 0.011")
    now = after("cloud =")
    inside = np.abs(now["cloud"] - now["risk"]) <= 2 * now["spread"][:, None]
    assert (inside.sum(), inside.size) == (340, 360)
    assert np.abs(now["cloud"].mean(axis=1) - now["risk"]).max() < 0.0115


def test_ten_weights_on_twenty_examples():
    says("= 0.25$ and", "= 1.06$", "the gap is 0.81")
    J, risk = expected_least_squares_risks(10, 20, noise=1.0)
    assert (J, round(risk, 2), round(risk - J, 2)) == (0.25, 1.06, 0.81)


def test_measured_optimism_agrees_with_the_formula(after):
    """The sample and the formula lie on opposite sides of the noise; the risk is farther away."""
    now = after("least_squares_risks")
    J, risk = now["J"].mean(axis=1), now["risks"].mean(axis=1)
    errors = [values.std(axis=1) / math.sqrt(200) for values in (now["J"], now["risks"])]
    assert np.all(np.abs(J - now["expected"][:, 0]) < 4 * errors[0])
    # few examples for each weight make the tail heavy, so that the mean converges slowly
    assert np.all(np.abs(risk - now["expected"][:, 1])[1:] < 4 * errors[1][1:])
    assert np.all(J < 0.5)
    assert np.all(now["expected"][:, 1] - 0.5 > 0.5 - now["expected"][:, 0])


def test_with_few_examples_a_few_fits_have_a_very_large_risk(after):
    says("At $m = 15$ the mean risk of the 200 fits is 8 % below the formula")
    says("half of them are below 1.36, and the largest is 8.4")
    now = after("least_squares_risks")
    assert now["sizes"][0] == 15
    risks = now["risks"][0]
    assert risks.mean() / now["expected"][0, 1] == pytest.approx(0.92, abs=0.005)
    assert np.median(risks) == pytest.approx(1.36, abs=0.005)
    assert risks.max() == pytest.approx(8.4, abs=0.05)


@pytest.mark.row("L1-01")
def test_mean_of_one_over_chi_squared():
    for k in (3, 5, 12):
        mean = scipy.stats.chi2(k).expect(lambda x: 1 / x)
        assert mean == pytest.approx(1 / (k - 2), rel=1e-6)


@pytest.mark.row("L1-01")
def test_the_pencil_example_over_all_sixteen_samples(after):
    says("the risk is $J^* = \\tfrac12(4+5) = 4.5$", "= 3.75$", "= 1.25$")
    now = after("everyone =")
    assert (now["J"], now["risk"]) == (0.5, 4.5)
    samples = np.array(list(itertools.product([1, 3, 5, 7], repeat=2)), dtype=float)
    theta = samples.mean(axis=1)
    J = 0.5 * ((samples - theta[:, None]) ** 2).mean(axis=1)
    risk = 0.5 * ((theta - 4) ** 2 + 5)
    assert (J.mean(), risk.mean(), risk.min()) == (1.25, 3.75, 2.5)


# --- Overfitting ------------------------------------------------------------------------------


def test_the_risk_at_degree_11_is_29_times_the_least_and_the_sample_is_mild(after):
    says("0.109 at degree 3", "29 times larger at degree 11")
    now = after("default_rng(59)")
    assert now["risk"].argmin() == 3
    assert now["risk"][-1] / now["risk"].min() == pytest.approx(29, abs=0.5)
    assert np.all(np.diff(now["J"]) < 0)
    many = after("risks.argmin(axis=1)")
    assert many["ratio"] > 1e6 * now["risk"][-1] / now["risk"].min()
    assert np.bincount(many["best"]).argmax() == 3


@pytest.mark.row("L1-02")
@pytest.mark.parametrize("k", [2, 6, 14, 30])
def test_double_descent_agrees_with_many_fits(k, rng):
    weights = np.linspace(1, 0.2, 30)
    population = LinearPopulation(weights, np.eye(30), noise=0.5)
    risks = []
    for x, y in (population.sample(10, rng) for _ in range(3000)):
        w = np.append(np.linalg.pinv(x[:, :k]) @ y, np.zeros(30 - k))
        risks.append(population.risk(w))
    expected = double_descent_risk(k, 10, weights, noise=0.5)
    assert abs(np.mean(risks) - expected) < 4 * np.std(risks) / math.sqrt(3000)


@pytest.mark.row("L1-02")
def test_double_descent_below_interpolation_is_the_optimism_of_least_squares():
    expected = expected_least_squares_risks(10, 20, noise=1.5)[1]
    assert double_descent_risk(10, 20, np.ones(10), noise=1.5) == pytest.approx(expected)
    assert [double_descent_risk(k, 4, np.ones(9), 1.0) for k in (3, 4, 5)] == [math.inf] * 3
    with pytest.raises(ValueError, match="1 to 9 of the features; got k = 10"):
        double_descent_risk(10, 4, np.ones(9), 1.0)


def test_the_two_minima_of_the_double_descent(after):
    says(
        "a first minimum of 0.404 at $k = 4$",
        "exceeds 3 at $k = 18$ and at $k = 22$",
        "minimum of 0.405 near $k = 60$",
    )
    now = after("double_descent_risk")
    theory = dict(zip(now["used"], now["theory"], strict=True))
    curve = {k: double_descent_risk(k, 20, now["many"].weights, 0.2) for k in range(1, 101)}
    assert min((k for k in curve if k < 20), key=curve.__getitem__) == 4
    assert min((k for k in curve if k > 20), key=curve.__getitem__) in range(52, 69)
    assert theory[4] == pytest.approx(0.404, abs=5e-4)
    assert theory[60] == pytest.approx(0.405, abs=5e-4)
    assert theory[18] > 3 < theory[22]
    assert theory[1] == pytest.approx(0.45, abs=0.005)
    assert np.abs(now["means"] / now["theory"] - 1).max() < 0.6  # heavy tails near k = m
    assert np.median(np.abs(now["means"] / now["theory"] - 1)) < 0.05


# --- Surrogate losses -------------------------------------------------------------------------


@pytest.mark.row("L1-03")
@pytest.mark.parametrize(("m", "d"), [(3, 1), (4, 2), (5, 2), (5, 3)])
def test_with_a_bias_the_count_is_that_of_one_dimension_more(m, d, rng):
    """Try all labelings: one is linear if some (w, b) has all margins at least 1."""
    x = np.column_stack([rng.normal(size=(m, d)), np.ones(m)])
    feasible = 0
    for labels in itertools.product([-1, 1], repeat=m):
        program = scipy.optimize.linprog(
            np.zeros(d + 1),
            A_ub=-np.array(labels)[:, None] * x,
            b_ub=-np.ones(m),
            bounds=[(None, None)] * (d + 1),
        )
        feasible += program.status == 0
    assert count_dichotomies(m, d + 1) == feasible


def test_labelings_by_hand():
    says(
        "$C(4,2) = 2(1+3) = 8$",
        "$C(4,3) = 2(1+3+3) = 14$",
        "$3.5\\cdot10^{13}$",
        "$3.6\\cdot10^{16}$",
    )
    assert (count_dichotomies(4, 2), count_dichotomies(4, 3)) == (8, 14)
    assert (count_dichotomies(10, 2), count_dichotomies(10, 3)) == (20, 92)
    assert count_dichotomies(100, 11) == pytest.approx(3.5e13, rel=0.01)
    assert 2**100 / count_dichotomies(100, 11) == pytest.approx(3.6e16, rel=0.01)


def test_three_margins_by_hand():
    says("= 0.83$", "= 1.75$", "= 0.068$ against", "= 1.374$")
    z = np.array([2.0, 0.5, -1.0])
    means = [loss(z)[0].mean() for loss in (erm.hinge_loss, erm.squared_loss)]
    assert erm.zero_one_loss(z).mean() == pytest.approx(1 / 3)
    assert means == pytest.approx([5 / 6, 1.75])
    values = {name: loss(np.array([1.0, 3.0]))[0] for name, loss in SURROGATES.items()}
    assert [name for name, (one, three) in values.items() if three > one] == ["squared"]
    flat = [name for name, loss in SURROGATES.items() if loss(np.array([2.0]))[1][0] == 0]
    assert flat == ["hinge"]
    slopes = erm.logistic_loss(np.array([3.0, -3.0]))[1]
    assert slopes == pytest.approx([-0.068, -1.374], abs=5e-4)
    assert slopes[1] / slopes[0] == pytest.approx(math.exp(3))


def entropy(p: float) -> float:
    return float(scipy.stats.entropy([p, 1 - p], base=2))


PSI = {
    "hinge": (lambda e: e, 0.010),
    "squared": (lambda e: e**2, 0.100),
    "exponential": (lambda e: 1 - math.sqrt(1 - e**2), 0.141),
    "logistic (bits)": (lambda e: 1 - entropy((1 + e) / 2), 0.118),
}


@pytest.mark.row("L1-03")
@pytest.mark.parametrize("name", SURROGATES)
def test_a_wrong_sign_costs_at_least_psi(name):
    """Minimize the expected surrogate loss at one x, over all scores and over wrong ones."""
    psi, bound = PSI[name]
    for p in (0.55, 0.7, 0.9):

        def expected(f: float, p: float = p) -> float:
            loss = SURROGATES[name]
            return float(p * loss(np.array([f]))[0][0] + (1 - p) * loss(np.array([-f]))[0][0])

        least = scipy.optimize.minimize_scalar(
            expected, bounds=(-5, 5), method="bounded", options={"xatol": 1e-10}
        ).fun
        wrong = min(expected(f) for f in np.linspace(-5, 0, 501))
        assert wrong - least == pytest.approx(psi(2 * p - 1), abs=1e-6)
    solved = scipy.optimize.brentq(lambda e: psi(e) - 0.01, 0, 0.99)
    assert solved == pytest.approx(bound, abs=5e-4)


def test_the_staircase_and_its_surrogate(after):
    says(
        "in 76 jumps",
        "7 of its steps are lower than both neighbors",
        "in six wrong places",
        "at 34.5°",
    )
    now = after("turned =")
    steps, smooth = np.array(now["steps"])[:-1], np.array(now["smooth"])[:-1]
    degrees = np.degrees(now["angles"])[:-1]
    assert np.sum(steps != np.roll(steps, 1)) == 76
    assert len(local_minima(steps)) == 7
    [lowest] = local_minima(smooth)
    assert degrees[lowest] == pytest.approx(34.5)
    assert steps[lowest] == steps.min() == pytest.approx(0.1)
    assert np.all(smooth >= steps)
    assert np.sum(steps[local_minima(steps)] == steps.min()) == 1


# --- After the last training error, and early stopping ----------------------------------------


def test_after_zero_the_mean_test_error_falls_and_margins_grow(after):
    says(
        "from 12.0 % to 10.9 %, and 59 %",
        "from 0.0057 to 0.0292",
        "In two of the ten the test error rises, by at most 0.4 percentage points",
    )
    now = after("fell =")
    error, margin = now["error"], now["margin"]
    mean = error.mean(axis=0)
    assert (round(mean[0], 3), round(mean[-1], 3)) == (0.120, 0.109)
    assert (mean[0] - mean[20]) / (mean[0] - mean[-1]) == pytest.approx(0.59, abs=0.005)
    assert now["fell"] == 8
    assert 0.003 < (error[:, -1] - error[:, 0]).max() < 0.004
    assert np.all(margin[:, -1] > margin[:, 0])
    assert margin.mean(axis=0)[[0, -1]] == pytest.approx([0.0057, 0.0292], abs=5e-5)
    assert margin.mean(axis=0)[-1] / margin.mean(axis=0)[0] == pytest.approx(5.1, abs=0.1)


@pytest.mark.parametrize(("patience", "expected"), [(1, (1, 2)), (2, (3, 5)), (3, (3, 6))])
def test_early_stopping_by_hand(after, patience, expected):
    assert erm.early_stopping(after("errors = [0.30")["errors"], patience) == expected


def test_without_a_halt_the_validation_error_doubles_and_the_gradient_grows_first(after):
    says(
        "at the halt, 0.34, as after the first epoch, 0.32",
        "grows to 1.40 before it shrinks to 0.16",
        "all but 4 of its 500 labels",
        "from 7.2 % to 15.4 %",
        "= 1.2$ percentage points",
        "the smallest of 37 validation errors",
    )
    full = {name: np.array(values) for name, values in after("without a halt")["full"].items()}
    error, norm = full["validation_error"], full["batch_gradient_norm"]
    halted = after("halt after epoch {halt}, back")
    assert (halted["halt"], halted["stopper"].best) == (36, 26)
    assert round(norm[36], 2) == 0.34
    assert round(norm[0], 2) == 0.32
    assert round(norm.max(), 2) == 1.40
    assert norm.min() == norm[-1]
    assert round(norm[-1], 2) == 0.16
    assert (round(error.min(), 3), round(error[-1], 3)) == (0.072, 0.154)
    assert round(full["train_error"][-1] * 500) == 4
    assert 100 * math.sqrt(0.072 * 0.928 / 500) == pytest.approx(1.2, abs=0.05)


def test_a_gradient_that_points_everywhere_away_from_a_separating_direction(rng):
    u, x = rng.normal(size=3), rng.normal(size=(20, 3))
    y = np.sign(x @ u)
    for name in ("logistic (bits)", "exponential"):
        for w in rng.normal(size=(50, 3)):
            slope = SURROGATES[name](y * (x @ w))[1]
            assert u @ (x.T @ (slope * y)) < 0


# --- Minibatches ------------------------------------------------------------------------------


def test_the_softmax_gradient_by_hand():
    says("(-1.5, 1.5)")
    gradient = erm.per_example_gradients(np.zeros((1, 2)), np.array([[3.0]]), np.array([1]))
    assert gradient.tolist() == [[[-1.5, 1.5]]]


def test_pairs_of_the_four_labels():
    says("−2, −3, −4, −4, −5, −6", "10/6 = 5/3")
    means = [-np.mean(pair) for pair in itertools.combinations([1, 3, 5, 7], 2)]
    assert sorted(means) == [-6, -5, -4, -4, -3, -2]
    assert np.var(means) == pytest.approx(5 / 3)
    assert standard_error(math.sqrt(5), 2, 4) ** 2 == pytest.approx(5 / 3)


def test_finite_population_factors():
    says("\\sqrt{50/999} = 0.22$ and $\\sqrt{49900/49999} = 0.999")
    assert standard_error(1.0, 950, 1000) * math.sqrt(950) == pytest.approx(0.22, abs=0.005)
    assert standard_error(1.0, 100, 50_000) * 10 == pytest.approx(0.999, abs=5e-4)


def test_measured_errors_lie_within_eleven_percent(after):
    says("All 16 measured errors lie within 11 %")
    now = after('for name, N in (("with replacement"')
    ratio = np.array([now["measured"][k] / np.array(now["laws"][k]) for k in now["laws"]])
    assert ratio.size == 16
    assert np.abs(ratio - 1).max() < 0.11


@pytest.mark.row("L1-07")
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_progress_of_a_step_over_all_minibatches(n, rng):
    """Average J after a step over every minibatch with replacement, at the best rate."""
    gradients, curvature = rng.normal(size=(5, 2)) + 1, 3.0
    g = gradients.mean(axis=0)
    scale = erm.gradient_spread(gradients) ** 2 / (g @ g)
    drawn = gradients[list(itertools.product(range(5), repeat=n))].mean(axis=1)

    def change(lr: float) -> float:
        steps = -lr * drawn
        return float(np.mean(steps @ g + 0.5 * curvature * np.sum(steps**2, axis=1)))

    best = scipy.optimize.minimize_scalar(change)
    assert -best.fun == pytest.approx(g @ g / (2 * curvature) * n / (n + scale), rel=1e-8)
    assert best.x == pytest.approx(n / (n + scale) / curvature, rel=1e-5)


def test_the_noise_scale_of_digits_grows(after):
    says("grows from 68 to 1334", "With $n_c = 288$", "10 %, 50 % and 86 %")
    now = after("noise scale")
    pixels, y = now["pixels"], now["y"]
    V, scales = np.zeros((64, 10)), {}
    for step in range(401):
        if step in (0, 100, 400):
            each = erm.per_example_gradients(V, pixels, y).reshape(len(y), -1)
            g = each.mean(axis=0)
            scales[step] = math.ceil(np.mean(np.sum((each - g) ** 2, axis=1)) / (g @ g))
        V = V + 0.3 * erm.batch_gradient(V, pixels, y)
    assert scales == {0: 68, 100: 288, 400: 1334}
    assert [round(100 * n / (n + 288)) for n in (32, 288, 1797)] == [10, 50, 86]


def test_after_one_epoch_both_are_below_the_batch_method_after_ten(after):
    says(
        "both stochastic methods are below what the batch method reaches after ten",
        "between 0.004 and 0.092, with the mean 0.015",
        "between 0.017 and 0.032",
        "is then 8 % of the start, that of the minibatch method 25 %",
        "that of the batch method 88 %",
        "2/\\lambda_{max} = 0.174",
        "which is 86 %",
    )
    now = after("excess {start")
    J = {name: now["J"](path) - now["least"] for name, (_, path) in now["paths"].items()}
    one, ten = ({name: v[k * (len(v) - 1) // 10] for name, v in J.items()} for k in (1, 10))
    assert one["online"] < one["minibatch 30"] < ten["batch"]
    last = {name: J[name][-((len(J[name]) - 1) // 10) :] for name in ("minibatch 30", "online")}
    ranges = {name: (round(v.min(), 3), round(v.max(), 3)) for name, v in last.items()}
    assert ranges == {"minibatch 30": (0.017, 0.032), "online": (0.004, 0.092)}
    assert last["online"].mean() == pytest.approx(0.015, abs=5e-4)
    shares = {name: round(100 * one[name] / J[name][0]) for name in J}
    assert shares == {"batch": 88, "minibatch 30": 25, "online": 8}
    assert [len(v) - 1 for v in J.values()] == [10, 600, 18_000]
    largest = np.linalg.eigvalsh(now["a"].T @ now["a"] / 1800)[-1]
    assert 2 / largest == pytest.approx(0.174, abs=5e-4)
    assert 0.15 * largest / 2 == pytest.approx(0.86, abs=0.005)


def test_activations_by_hand():
    says("$10^6/1280 = 781$")
    assert erm.stored_activations(1, [64, 256, 10]) == 320
    assert 10**6 // (320 * 4) == 781


# --- Newton's method and streams --------------------------------------------------------------


def test_amplification_by_hand():
    says("The factor is 70.7")
    H, g, e = np.diag([1, 0.01]), np.array([1, 0.01]), np.array([0, 0.1])
    assert np.linalg.norm(e) / np.linalg.norm(g) == pytest.approx(0.1, abs=1e-4)
    assert erm.error_amplification(H, g, e) == pytest.approx(70.7, abs=0.05)


def test_newton_needs_sixteen_times_as_many(after):
    says(
        "327 examples and the Newton step 5255, 16 times as many",
        "its error is four times as large",
    )
    now = after("required_batch_size(each, tolerance=0.1)")
    sizes = [erm.required_batch_size(now[name], 0.1) for name in ("g", "newton")]
    assert sizes == [327, 5255]
    now = after("3000, 10_000]")
    ratio = now["laws"]["$H^{-1}g$"][0] / now["laws"]["$g$"][0]
    assert ratio == pytest.approx(4, abs=0.05)


def test_two_steps_on_the_stream_of_four_labels():
    says("= 2$ and $\\mathbb E\\,\\theta_2 = 2+\\tfrac12(4-2) = 3$")
    first = [0 - 0.5 * (0 - y) for y in (1, 3, 5, 7)]
    second = [theta - 0.5 * (theta - y) for theta in first for y in (1, 3, 5, 7)]
    assert first == [0.5, 1.5, 2.5, 3.5]
    assert (np.mean(first), np.mean(second)) == (2, 3)


def test_the_mean_of_400_runs_is_near_gradient_descent_on_the_risk(after):
    says("differ by at most 0.034")
    assert after("streams =")["largest"] < 0.0345


def test_the_bias_begins_with_the_second_epoch_and_the_rise_in_epoch_44(after):
    says("begins in epoch 44, after 174 steps", "the risk falls to 0.51")
    now = after("risk_again =")
    risk, turn = now["risk_again"], now["turn"]
    assert (turn, turn // 4 + 1) == (174, 44)
    assert risk[4 * 30] < 0.6 * risk[4]  # 29 epochs of biased gradients lowered it
    assert risk[-1] > 1.5 * risk[turn]
    stream = [now["wide"].risk(w) for w in now["fresh"][-400:]]
    assert min(stream) > 0.5
    assert np.mean(stream) == pytest.approx(0.515, abs=0.003)


def test_digits_are_1797_and_few_are_copies():
    says("other 1697 digits")
    digits = load("digits")
    assert len(digits.y_train) + len(digits.y_test) == 1797


def test_the_best_polynomials_are_not_below_the_noise():
    curve = NoisyCurve(lambda t: np.sin(np.pi * t), noise=0.3)
    assert curve.risk(lambda t: np.sin(np.pi * t)) == pytest.approx(0.09)
