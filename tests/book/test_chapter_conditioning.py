"""What the chapter on conditioning says in words, where no cell of it prints the number."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chapters import text

from optdl import conditioning, quadratic
from optdl.records import Record

ROOT = Path(__file__).resolve().parents[2]
TEXT = text("conditioning")


def says(*parts: str) -> None:
    """Make sure that the chapter still says what a test is about."""
    for part in parts:
        assert part in TEXT, f"the chapter no longer says: {part}"


def test_little_of_the_error_from_zero_lies_along_the_flattest_directions():
    says("Where the penalty is weak, little of their error lies along the flattest directions")
    loss = quadratic.logistic_regression(*quadratic.threes_and_eights(), penalty=0.001)
    eigenvalues, U = np.linalg.eigh(loss.hessian(loss.minimum))
    flat = U[:, eigenvalues < 1.5 * eigenvalues[0]]
    anywhere = np.random.default_rng(0).normal(size=65)
    zero, around = (np.sum((e @ flat) ** 2) / (e @ e) for e in (loss.minimum, anywhere))
    assert 20 * zero < around


def test_the_worked_example_with_small_integers():
    says("g^THg = 1\\cdot 7 + 2\\cdot 11 = 29", "10/29 \\approx 0.345", "5/29 \\approx 0.172")
    network, w = conditioning.two_weights(), np.array([2.0, 1.0])
    g, H = network.gradient(w), network.hessian(w)
    assert g.tolist() == [1, 2]
    assert H.tolist() == [[1, 3], [3, 4]]
    assert (g @ g, (H @ g).tolist(), g @ H @ g) == (5, [7, 11], 29)
    assert conditioning.uphill_step(g, H) == pytest.approx(10 / 29)
    says("\\frac{432}{841} \\approx 0.514", "J \\approx 0.118", "from 0.5 to 0.118")
    after = w - 10 / 29 * g
    assert after.prod() == pytest.approx(432 / 841)
    assert network.value(after) == pytest.approx(0.118, abs=5e-4)


def test_the_terms_beyond_the_second_order_raise_the_real_loss():
    says("the terms beyond the second order add up to a positive number here")
    loss = quadratic.logistic_regression(*quadratic.threes_and_eights(), penalty=0.01)
    w = 0.3 * np.random.default_rng(0).normal(size=65)
    g, H = loss.gradient(w), loss.hessian(w)
    for rate in np.linspace(0.2, 1.2, 6) * conditioning.uphill_step(g, H):
        assert loss.value(w - rate * g) - loss.value(w) > conditioning.step_gain(g, H, rate)


def test_small_hessians_of_the_answers():
    says("has the eigenvalues $6$ and $-2$")
    np.testing.assert_allclose(np.linalg.eigvalsh([[2, 4], [4, 2]]), [-2, 6])
    network = conditioning.two_weights()
    at = network.hessian(np.array([2.0, 0.5]))
    assert conditioning.condition_number(at) == pytest.approx(1)
    np.testing.assert_allclose(at @ [2, -0.5], 0, atol=1e-15)
    np.testing.assert_allclose(np.linalg.eigvalsh(network.hessian(np.zeros(2))), [-1, 1])


def recorded(name: str, label: str, curve: str) -> np.ndarray:
    """Return a curve of a recorded run, one row for each start."""
    path = ROOT / "experiments" / "results" / "recorded" / f"conditioning-{name}.json"
    curves = Record.load(path).curves
    return np.array([curves[f"{label}, seed {seed}: {curve}"] for seed in range(3)])


def test_the_claim_on_gradient_and_curvature_is_seen_from_each_start():
    says("**(1) The norm does not shrink: true.**", "It stays below its value in the first epoch.")
    early, late = slice(4, 8), slice(40, 60)
    norm, curvature, loss = (
        recorded("minibatches", "0.05", curve)
        for curve in ("gradient_norm", "curvature", "train_loss")
    )
    assert np.all(np.abs(norm[:, late].mean(axis=1) / norm[:, early].mean(axis=1) - 1) < 0.05)
    assert np.all(curvature[:, late].mean(axis=1) > 1.2 * curvature[:, early].mean(axis=1))
    assert np.all(curvature[:, 1:].max(axis=1) < curvature[:, 0])
    assert np.all(loss[:, 59] < 0.6 * loss[:, 7])


def test_after_60_epochs_a_larger_rate_is_ahead_and_a_dropped_one_behind():
    says("The order is the same for each of the three starts.")
    small, middle, large, dropped = (
        recorded("minibatches", label, "train_loss")[:, 59]
        for label in ("0.02", "0.05", "0.2", "0.05 and 0.005")
    )
    assert np.all((small > middle) & (middle > large) & (dropped > middle))


def test_at_the_edge_learning_is_not_slower_from_any_start():
    says(
        "the larger the learning rate, the lower the loss after 1500 steps, for each of the three "
        "starts"
    )
    losses = [recorded("edge", lr, "loss")[:, -1] for lr in ("0.05", "0.15", "0.25")]
    assert np.all(np.diff(losses, axis=0) < 0)
    for lr in ("0.15", "0.25"):
        norm, curvature = (recorded("edge", lr, c) for c in ("gradient_norm", "curvature"))
        for values in (norm, curvature):  # "They stay below their values at the start."
            assert np.all(values[:, 36:].max(axis=1) < values[:, 0])


def test_an_oscillation_moves_two_weights_toward_balance():
    says("a^2 - b^2 \\ \\leftarrow\\", "(1 - \\eta^2z^2)")
    network, w, lr = conditioning.two_weights(), np.array([2.0, 0.7]), 0.3
    r = w.prod() - 1
    after = w - lr * network.gradient(w)
    expected = (w[0] ** 2 - w[1] ** 2) * (1 - lr**2 * r**2)
    assert after[0] ** 2 - after[1] ** 2 == pytest.approx(expected)


def test_which_minima_a_rate_of_a_quarter_can_reach():
    says("9 + \\tfrac19 > 8 = 2/\\eta")
    network = conditioning.two_weights()
    for minimum, attracts in (([3.0, 1 / 3], False), ([1.0, 1.0], True)):
        point = np.array(minimum) + np.array([1e-4, 0])
        for _ in range(60):
            point = point - 0.25 * network.gradient(point)
        assert (np.linalg.norm(point - minimum) < 2e-4) == attracts


def test_equivalent_settings_are_counted():
    says("$(3!)^2 = 36$", "$2^6 = 64$", "$3!\\cdot2^3 = 48$", "\\approx 1.1\\cdot10^{45}")
    assert conditioning.equivalent_minima(3, 2) == 36
    assert math.factorial(3) * 2**3 == 48
    assert math.factorial(32) * 2**32 == pytest.approx(1.1e45, rel=0.05)
    assert math.factorial(32) == pytest.approx(2.6e35, rel=0.02)


def test_units_that_agree_make_fewer_settings_and_a_continuum():
    says("two units that agree can share their outgoing weights in any proportion")
    w, b, x = np.array([[1.0, 2.0], [1.0, 2.0]]), np.array([0.5, 0.5]), np.eye(2)
    hidden = np.tanh(x @ w.T + b)
    np.testing.assert_allclose(hidden @ [3.0, 1.0], hidden @ [-2.0, 6.0])


def test_many_weights_beyond_30_are_still_growing():
    says("many of these weights are still growing")
    x, y, _ = conditioning.student_teacher(2)
    value = conditioning.tanh_regression(x, y, 3).value
    starts = np.random.default_rng([2, 3]).normal(size=(30, 12))
    ends = conditioning.fit_from(x, y, starts)
    weights = np.abs(ends).max(axis=1)
    far = (weights > 30) & (np.array([value(end) for end in ends]) > 1e-10)
    later = np.abs(conditioning.fit_from(x, y, ends[far])).max(axis=1)
    assert far.sum() >= 5
    assert np.mean(later > 1.01 * weights[far]) > 0.6


def test_the_times_near_a_saddle():
    says("10 steps", "needs 97 steps", "194")
    assert conditioning.escape_steps(1e-3, 1.0, 1.0, 1.0) == 10
    steps = [conditioning.escape_steps(d, 1.0, 0.1, 1.0) for d in (1e-4, 1e-8)]
    assert steps == [97, 194]


def test_a_start_beside_the_stable_manifold_comes_near_the_saddle_first():
    says("stays near it for some time, and then leaves along $(1,1)$ to a minimum")
    network, point = conditioning.two_weights(), np.array([1.5, -1.5 + 1e-4])
    closest = np.inf
    for _ in range(300):
        point = point - 0.1 * network.gradient(point)
        closest = min(closest, np.linalg.norm(point))
    assert closest < 0.05
    np.testing.assert_allclose(point, [1, 1], atol=1e-3)


def test_the_fraction_of_minima_in_two_dimensions_and_beyond():
    says("(2 − √2)/4", "\\approx 0.146", "the fraction is even smaller")
    rng = np.random.default_rng(0)
    error = math.sqrt(0.146 * 0.854 / 200_000)
    measured = conditioning.minima_fraction(2, 200_000, rng)
    assert measured == pytest.approx((2 - math.sqrt(2)) / 4, abs=4 * error)
    for D in (3, 4):
        assert conditioning.minima_fraction(D, 50_000, rng) < 0.5**D


def test_the_median_loss_of_critical_points_does_not_rise_at_every_step():
    says("the medians do not rise at every step")
    path = ROOT / "experiments" / "results" / "recorded" / "conditioning-saddles.json"
    curves, falls = Record.load(path).curves, 0
    for seed in range(8):
        index = np.array(curves[f"teacher {seed}: negative_eigenvalues"])
        loss = np.array(curves[f"teacher {seed}: loss"]).round(6)
        medians = [np.median(np.unique(loss[index == k])) for k in np.unique(index[index >= 0])]
        falls += np.any(np.diff(medians) < 0)
    assert falls > 2


def test_the_plateau_of_a_sigmoid_unit():
    says("about 22,000 such steps", "by a factor of $e \\approx 2.7$")
    assert math.exp(10) == pytest.approx(22_000, rel=0.01)

    def steps(w):
        count = 0
        while w < 0:
            s = 1 / (1 + math.exp(-w))
            w, count = w + s * (1 - s) ** 2, count + 1
        return count

    assert steps(-9.0) / steps(-8.0) == pytest.approx(math.e, rel=0.01)


def test_products_of_fifty_slopes():
    says("$0.9^{50} \\approx 0.005$", "$1.1^{50} \\approx 117$")
    assert (round(0.9**50, 3), round(1.1**50)) == (0.005, 117)


def test_clipping_thirty_and_forty():
    says("$(3, 4)$ by norm, and $(5, 5)$ by value")
    g = [np.array([30.0, 40.0])]
    assert conditioning.clip_by_norm(g, 5.0)[0].tolist() == [3, 4]
    assert conditioning.clip_by_value(g, 5.0)[0].tolist() == [5, 5]


def test_the_limits_of_biased_gradients():
    says("(-1, -0.15)", "almost seven times as large", "which is zero at $w = \\frac19$")
    limit = conditioning.limit_point(np.diag([0.3, 2.0]), np.zeros(2), np.array([0.3, 0.3]))
    np.testing.assert_allclose(limit, [-1, -0.15])
    assert limit[0] / limit[1] == pytest.approx(6.7, abs=0.05)
    examples = np.array([0.0] * 9 + [10.0])
    assert conditioning.clipped_limit(examples, 1.0) == pytest.approx(1 / 9)


def test_the_noisy_runs_agree_with_the_prediction_within_two_standard_errors():
    says("The predictions agree with the measurements within two standard errors")
    page = (ROOT / "book" / "conditioning" / "wrong-gradients.md").read_text("utf-8")
    [cell] = re.findall(r"^```{code-cell} ipython3\n(H, lr, rng.*?)^```", page, re.M | re.S)
    names: dict[str, Any] = {"np": np, "conditioning": conditioning}
    exec(cell, names)
    measured = names["noisy"][-1].var(axis=0)
    difference = np.abs(measured - names["variance"])
    assert np.all(difference < 2 * measured * math.sqrt(2 / 5000))


def test_noise_whose_variance_depends_on_w_has_another_limit():
    """Noise with variance s² + c²w², as minibatches have: the recursion of V gains c²V."""
    says("If $\\sigma_e^2$ depended on $w$, $V$ would appear in the noise term as well")
    rng, lr, curvature, s, c = np.random.default_rng(0), 0.2, 1.0, 0.5, 1.0
    w = np.zeros(20_000)
    for _ in range(100):
        w = w - lr * (curvature * w + rng.normal(size=len(w)) * np.sqrt(s**2 + c**2 * w**2))
    V = lr**2 * s**2 / (1 - (1 - lr * curvature) ** 2 - lr**2 * c**2)
    assert w.var() == pytest.approx(V, rel=0.05)
    formula = conditioning.stationary_variance(np.array([curvature]), lr, s)[0]
    assert w.var() > 1.08 * formula


def test_momentum_moves_the_threshold():
    """Heavy ball on one curvature: the eigenvalues of its matrix leave the unit disc there."""
    says("from $2/\\eta$ to $3.8/\\eta$")
    lr, alpha = 0.1, 0.9
    for factor, stable in ((0.99, True), (1.01, False)):
        curvature = factor * 3.8 / lr
        matrix = np.array([[1 + alpha - lr * curvature, -alpha], [1.0, 0.0]])
        assert (np.abs(np.linalg.eigvals(matrix)).max() < 1) == stable
