"""Chapter 1: what its lessons claim without printing it, and what they compute by hand."""

import itertools
import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from chapters import BOOK, text

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
from optdl.problems import TwoGaussians
from optdl.records import Record

RECORDED = Path(__file__).resolve().parents[2] / "experiments" / "results" / "recorded"


def says(page: str, *parts: str) -> None:
    """Make sure that a lesson still says what a test is about."""
    for part in parts:
        assert part in text("erm", page), f"{page} no longer says: {part}"


# --- Risk and empirical risk ------------------------------------------------------------------


def test_1730_examples_give_one_percentage_point():
    says("risk", "0.223\\cdot0.777/0.01^2 \\approx 1730")
    population = TwoGaussians(mean=np.array([1.0, 0.5]), prior=0.4)
    w, b = np.array([1.0, -0.3]), 0.2
    x, y = population.sample(50, np.random.default_rng(1))
    J, risk = erm.zero_one_risk(w, b, x, y), population.zero_one_risk(w, b)
    assert (J, round(risk, 3)) == (0.16, 0.223)
    assert risk * (1 - risk) / 0.01**2 == pytest.approx(1730, abs=10)


def test_a_safe_range_for_the_next_hundred_errors():
    says("risk", "or 5.2 percentage points", "scatter by another 3.7")
    says("risk", "is as wide as 3 to 29 errors")
    known, scatter = (100 * math.sqrt(0.16 * 0.84 / m) for m in (50, 100))
    assert (round(known, 1), round(scatter, 1)) == (5.2, 3.7)
    assert 2 * math.hypot(known, scatter) == pytest.approx(13, abs=0.5)


@pytest.mark.row("L1-01")
def test_the_worked_example_over_all_sixteen_samples():
    says(
        "risk", "$J^* = \\tfrac12(4+5) = 4.5$", "= 3.75$", "= 1.25$", "$J = \\tfrac12\\cdot9 = 4.5$"
    )
    samples = np.array(list(itertools.product([1, 3, 5, 7], repeat=2)), dtype=float)
    theta = samples.mean(axis=1)
    J = 0.5 * ((samples - theta[:, None]) ** 2).mean(axis=1)
    risk = 0.5 * ((theta - 4) ** 2 + 5)
    assert (J.mean(), risk.mean(), risk.min()) == (1.25, 3.75, 2.5)
    assert J[samples.tolist().index([1, 7])] == 4.5
    assert risk[samples.tolist().index([1, 3])] == 4.5


@pytest.mark.row("L1-01")
def test_mean_of_one_over_chi_squared():
    for k in (3, 5, 12):
        mean = scipy.stats.chi2(k).expect(lambda x: 1 / x)
        assert mean == pytest.approx(1 / (k - 2), rel=1e-6)


# --- Overfitting ------------------------------------------------------------------------------


def test_ten_weights_on_twenty_examples():
    says("overfitting", "\\cdot\\tfrac12 = 0.25$", "0.5\\,(1+1)$")
    says("appendix-optimism", "$\\tfrac12(1+\\tfrac{10}{9}) = 1.06$")
    J, risk = expected_least_squares_risks(10, 20, noise=1.0)
    assert (J, round(risk, 2)) == (0.25, 1.06)
    assert expected_least_squares_risks(10**6, 2 * 10**6, noise=1.0)[1] == pytest.approx(1)


def test_a_sine_has_the_risk_of_the_noise():
    says("overfitting", "the variance of the noise, $0.3^2 = 0.09$")
    curve = NoisyCurve(lambda t: np.sin(np.pi * t), noise=0.3)
    assert curve.risk(lambda t: np.sin(np.pi * t)) == pytest.approx(0.09)


def test_the_task_of_the_figure_on_capacity_has_an_answer():
    """Degree 4 is the last below 0.2 for 12 examples; degree 8 gets there before 40."""
    says(
        "overfitting",
        "for $m = 12$, find the highest degree whose median risk (the line) is below 0.2",
    )
    curve = NoisyCurve(lambda t: np.sin(np.pi * t), noise=0.3)

    def medians(m):
        samples = [curve.sample(m, np.random.default_rng(seed)) for seed in range(100)]
        return np.median([erm.capacity_sweep(curve, *s, range(9))[1] for s in samples], axis=0)

    twelve, twenty, forty = medians(12), medians(20), medians(40)
    assert np.flatnonzero(twelve < 0.2).tolist() == [3, 4]
    assert twenty[8] > 0.2 > forty[8]


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


# --- Surrogate losses -------------------------------------------------------------------------


@pytest.mark.row("L1-03")
def test_the_exact_minimum_of_the_number_of_errors_is_a_needle_with_a_larger_risk():
    """The oracle turns a line through every gap between two points, by cross products."""
    says("surrogates", "although the needle makes one fewer error on the sample")
    population = TwoGaussians(mean=np.array([1.0, 0.5]), prior=0.4)
    x, y = population.sample(40, np.random.default_rng(2))
    normals = np.concatenate([x[:, ::-1] * [1, -1], x[:, ::-1] * [-1, 1]])
    normals = normals[np.argsort(np.arctan2(normals[:, 1], normals[:, 0]))]
    unit = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    between = unit + np.roll(unit, -1, axis=0)
    errors = np.sum(y * (between @ x.T) <= 0, axis=1)
    needle = between[errors.argmin()]
    assert np.sum(errors != np.roll(errors, 1)) == len(errors) == 80
    assert sorted(errors)[:2] == [3, 4]
    assert np.degrees(np.arctan2(needle[1], needle[0])) == pytest.approx(45.08, abs=0.005)
    angle = scipy.optimize.minimize_scalar(
        lambda a: np.logaddexp(0, -2 * y * (x @ [math.cos(a), math.sin(a)])).mean(),
        bounds=(0, 1.5),
        method="bounded",
    ).x
    logistic = np.array([math.cos(angle), math.sin(angle)])
    assert np.sum(y * (x @ logistic) <= 0) == 4
    assert population.zero_one_risk(logistic, 0.0) < population.zero_one_risk(needle, 0.0)


def test_the_squared_loss_of_margin_5():
    says("surrogates", "An example with margin 5 has loss 16")
    assert erm.squared_loss(np.array([5.0]))[0] == 16


def test_surrogates_that_reward_and_that_rest():
    """One surrogate rises again beyond margin 1, one has derivative 0 there."""
    says("surrogates", "The squared loss: it rises again beyond margin 1")
    says("stopping", "The hinge, once all margins exceed 1")
    values = {name: loss(np.array([1.0, 3.0]))[0] for name, loss in SURROGATES.items()}
    assert [name for name, (one, three) in values.items() if three > one] == ["squared"]
    flat = [name for name, loss in SURROGATES.items() if loss(np.array([2.0]))[1][0] == 0]
    assert flat == ["hinge"]


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
    says("appendix-surrogates", "$C(4,2) = 2(1+3) = 8$", "$C(4,3) = 2(1+3+3) = 14$")
    assert (count_dichotomies(4, 2), count_dichotomies(4, 3)) == (8, 14)


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


# --- After the last training error, and early stopping ----------------------------------------


def test_margins_grow_in_each_run_and_most_of_the_ten_test_errors_fall():
    says("stopping", "The bottom panel shows the smallest one, which grows in each of the ten runs")
    kept = Record.load(RECORDED / "erm-after-zero.json").curves
    for seed in range(10):
        zero = np.flatnonzero(kept[f"seed {seed}: train_error"])[-1] + 1
        margin = kept[f"seed {seed}: normalized_margin"][zero:][:100]
        assert margin[-1] > margin[0]


@pytest.mark.parametrize(("patience", "expected"), [(1, (1, 2)), (2, (3, 5)), (3, (3, 6))])
def test_early_stopping_by_hand(patience, expected):
    keep, halt = expected
    says("stopping", f"Patience {patience}: keep epoch {keep}, halt after epoch {halt}.")
    errors = [0.30, 0.22, 0.25, 0.21, 0.21, 0.24, 0.23, 0.05]
    assert erm.early_stopping(errors, patience) == expected


def test_without_a_halt_the_gradient_is_smallest_where_training_is_worst():
    says(
        "stopping",
        "it is smallest at the very end",
        "= 1.2$ percentage points",
    )
    kept = Record.load(RECORDED / "erm-without-halt.json").curves
    norm = np.array(kept["seed 0: batch_gradient_norm"])
    error = np.array(kept["seed 0: validation_error"])
    _, halt = erm.early_stopping(error.tolist(), 10)
    assert norm.argmin() == len(norm) - 1
    assert norm[halt] == pytest.approx(norm[0], rel=0.05)
    assert error[-1] == pytest.approx(2 * error.min(), rel=0.1)
    assert 100 * math.sqrt(0.072 * 0.928 / 500) == pytest.approx(1.2, abs=0.05)


def test_a_gradient_that_points_everywhere_away_from_a_separating_direction(rng):
    u, x = rng.normal(size=3), rng.normal(size=(20, 3))
    y = np.sign(x @ u)
    for name in ("logistic (bits)", "exponential"):
        for w in rng.normal(size=(50, 3)):
            slope = SURROGATES[name](y * (x @ w))[1]
            assert u @ (x.T @ (slope * y)) < 0


# --- Minibatches ------------------------------------------------------------------------------


def test_pairs_of_the_four_labels():
    says("gradient-noise", "−2, −3, −4, −4, −5, −6", "$10/6 = \\tfrac53$")
    means = [-np.mean(pair) for pair in itertools.combinations([1, 3, 5, 7], 2)]
    assert sorted(means) == [-6, -5, -4, -4, -3, -2]
    assert np.var(means) == pytest.approx(5 / 3)
    assert standard_error(math.sqrt(5), 2, 4) ** 2 == pytest.approx(5 / 3)


def test_finite_population_factors():
    says("gradient-noise", "\\sqrt{50/999} = 0.22$ and $\\sqrt{49900/49999} = 0.999")
    assert standard_error(1.0, 950, 1000) * math.sqrt(950) == pytest.approx(0.22, abs=0.005)
    assert standard_error(1.0, 100, 50_000) * 10 == pytest.approx(0.999, abs=5e-4)


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
    # the appendix: the same fraction is the mean product of two independent minibatches
    product = np.mean(drawn @ drawn.T) / np.mean(np.sum(drawn**2, axis=1))
    assert product == pytest.approx(n / (n + scale))


def test_progress_by_hand():
    says("batch-size", "You have 1797 examples, $n_c = 288$", "only 86 %")
    assert round(100 * 1797 / (1797 + 288)) == 86


def test_the_noise_scale_of_digits_grows_twentyfold():
    says("batch-size", "where it grows twentyfold")
    digits = load("digits")
    pixels = np.concatenate([digits.x_train, digits.x_test]).astype(float)
    y = np.concatenate([digits.y_train, digits.y_test])
    V, scales = np.zeros((64, 10)), []
    for step in range(401):
        if step in (0, 400):
            norm, spread = erm.softmax_noise(V, pixels, y)
            scales.append((spread / norm) ** 2)
        V = V + 0.3 * erm.batch_gradient(V, pixels, y)
    assert scales[1] / scales[0] == pytest.approx(20, abs=0.5)


@cache
def descents() -> dict[str, np.ndarray]:
    """Return the empirical risk above its minimum, for three sizes of the minibatch."""
    digits = load("digits")
    pixels = np.concatenate([digits.x_train, digits.x_test]).astype(float)[:360]
    y = np.concatenate([digits.y_train, digits.y_test])[:360]
    a = np.tile(np.column_stack([pixels, np.ones(360)]), (5, 1))
    t = np.tile(np.where(y % 2 == 0, 1.0, -1.0), 5)
    rng, found = np.random.default_rng(0), {}
    least = 0.5 * np.mean((a @ np.linalg.lstsq(a, t, rcond=None)[0] - t) ** 2)
    for name, n, lr in (("batch", 1800, 0.15), ("minibatch", 30, 0.05), ("online", 1, 0.01)):
        w, values = np.zeros(65), []
        for _ in range(10):
            for i in erm.minibatches(1800, n, rng):
                w = w - lr * (a[i] @ w - t[i]) @ a[i] / len(i)
            values.append(0.5 * np.mean((a @ w - t) ** 2) - least)
        found[name] = np.array(values)
    return found


@pytest.mark.row("L1-09")
def test_after_one_epoch_both_are_below_the_batch_method_after_ten():
    says("batch-size", "both stochastic methods are below what the batch method reaches after ten")
    J = descents()
    assert J["online"][0] < J["minibatch"][0] < J["batch"][-1]


# --- Newton's method and streams --------------------------------------------------------------


def test_amplification_by_hand():
    says("appendix-second-order", "$10/\\sqrt2 = 7.07$, or 707 %", "a factor of 70.7")
    H, g, e = np.diag([1, 0.01]), np.array([1, 0.01]), np.array([0, 0.1])
    assert np.linalg.norm(e) / np.linalg.norm(g) == pytest.approx(0.1, abs=1e-4)
    assert np.linalg.norm(np.linalg.solve(H, e)) == 10
    assert np.linalg.solve(H, g) == pytest.approx([1, 1])
    assert erm.error_amplification(H, g, e) == pytest.approx(70.7, abs=0.05)


@pytest.mark.row("L1-10")
@pytest.mark.parametrize("distance", [0.1, 1.0])
def test_errors_of_newton_steps_with_an_exact_and_with_an_estimated_hessian(distance, rng):
    """Both rows of the table, against many minibatches; far away the estimate is the better."""
    says(
        "appendix-second-order",
        "$\\bigl(2J^*(w)\\operatorname{tr}H^{-1}+\\lVert w-w^*\\rVert^2\\bigr)/n$",
        "$2J^*(w^*)\\operatorname{tr}H^{-1}/(n-d-1)$",
    )
    d, n, H = 3, 40, np.diag([1.0, 0.3, 0.1])
    population = LinearPopulation(np.ones(d), H, noise=0.5)
    w = (1 + distance) * np.ones(d)
    errors = np.empty((2, 4000))
    for k in range(4000):
        x, y = population.sample(n, rng)
        g = x.T @ (x @ w - y) / n
        steps = np.linalg.inv(H) @ g, np.linalg.inv(x.T @ x / n) @ g
        errors[:, k] = [np.sum((step - (w - population.weights)) ** 2) for step in steps]
    trace = np.trace(np.linalg.inv(H))
    exact = (2 * population.risk(w) * trace + np.sum((w - 1) ** 2)) / n
    same = 0.25 * trace / (n - d - 1)
    np.testing.assert_allclose(errors.mean(axis=1), [exact, same], rtol=0.06)
    assert (exact > same) == (distance == 1.0)


def test_two_steps_on_the_stream_of_four_labels():
    says("fresh-data", "= 2$ and $\\mathbb E\\,\\theta_2 = 2+\\tfrac12(4-2) = 3$")
    first = [0 - 0.5 * (0 - y) for y in (1, 3, 5, 7)]
    second = [theta - 0.5 * (theta - y) for theta in first for y in (1, 3, 5, 7)]
    assert first == [0.5, 1.5, 2.5, 3.5]
    assert (np.mean(first), np.mean(second)) == (2, 3)


def test_digits_that_are_left():
    says("stopping", "the other 1697 digits")
    digits = load("digits")
    assert len(digits.y_train) + len(digits.y_test) - 100 == 1697


# --- The map of the difficulties --------------------------------------------------------------

DIFFICULTIES = [  # in the order of the lecture
    "ill conditioning",
    "local minima",
    "plateaus",
    "saddle points",
    "flat region",
    "cliffs",
    "exploding gradients",
    "vanishing gradients",
    "long-term dependencies",
    "inexact gradients",
]


@pytest.mark.row("L1-38")
def test_each_difficulty_of_the_lecture_leads_to_a_section_that_exists():
    lines = (BOOK / "erm" / "appendix-difficulties.md").read_text("utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line[:2] == "| "]
    assert [name for name, _, _ in rows[1:]] == DIFFICULTIES
    pages = "\n".join(path.read_text("utf-8") for path in BOOK.glob("*/*.md"))
    for name, _, links in rows[1:]:
        labels = re.findall(r"\{ref\}`[^`<]+<([\w-]+)>`", links)
        assert labels, f"{name} leads nowhere"
        for label in labels:
            assert f"\n({label})=\n" in pages, f"{name}: no section has the label {label}"
