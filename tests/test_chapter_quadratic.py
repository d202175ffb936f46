"""Chapter 2: the numbers that its prose states and that no cell prints."""

import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from optdl import problems, quadratic
from optdl.data import load
from optdl.problems import Problem

PAGE = (Path(__file__).resolve().parents[1] / "book" / "quadratic.md").read_text("utf-8")
TEXT = re.sub(r"\s+", " ", PAGE)


def says(*parts: str) -> None:
    """Make sure that the chapter still says what a test is about."""
    for part in parts:
        assert part in TEXT, f"the chapter no longer says: {part}"


@cache
def digits() -> tuple[np.ndarray, np.ndarray, Problem, Problem]:
    """Return inputs, centered inputs and the loss of both: threes against eights."""
    data = load("digits")
    chosen = np.isin(data.y_train, [3, 8])
    pixels = data.x_train[chosen].astype(float)
    y = np.where(data.y_train[chosen] == 3, 1.0, -1.0)
    x, centered = (
        np.column_stack([inputs, np.ones(len(y))]) for inputs in (pixels, pixels - pixels.mean(0))
    )
    return (
        x,
        centered,
        quadratic.logistic_regression(x, y, penalty=0.01),
        quadratic.logistic_regression(centered, y, penalty=0.01),
    )


def spectrum(problem: Problem) -> np.ndarray:
    """Return the eigenvalues of the Hessian at the minimum."""
    return np.linalg.eigvalsh(problem.hessian(problem.minimum))


# --- The quadratic model ----------------------------------------------------------------------


def test_the_model_is_off_by_half_a_percent_nearby_and_below_a_tenth_farther_away() -> None:
    says("it is off by 0.5 %", "less than a tenth of the loss")
    problem, center = problems.beale(), np.array([2.2, 0.1])
    model = quadratic.QuadraticModel.of(problem, center)
    near, far = center + 0.1, center + 0.5
    assert 1 - model(near) / problem.value(near) == pytest.approx(0.005, abs=0.0005)
    assert model(far) < problem.value(far) / 10


def test_errors_at_the_distance_1_lie_above_the_lines_by_the_stated_factors() -> None:
    says("is 1.2 times the value on the line", "is 11 times that value")
    _, _, loss, _ = digits()
    direction = np.random.default_rng(0).normal(size=65)
    cases = [(problems.beale(), np.array([2.2, 0.1]), np.ones(2)), (loss, loss.minimum, direction)]
    for case, factor in zip(cases, (11, 1.2), strict=True):
        first, last = quadratic.approximation_error(*case, np.array([0.01, 1.0]))
        assert last / (first * 100**3) == pytest.approx(factor, rel=0.05)


def test_the_expansion_of_the_exponential_at_one_half() -> None:
    says("1.6487$. The error is 0.0237, and $w^3/6 = 0.0208$")
    assert math.exp(0.5) == pytest.approx(1.6487, abs=5e-5)
    assert math.exp(0.5) - (1 + 0.5 + 0.125) == pytest.approx(0.0237, abs=5e-5)
    assert round(0.5**3 / 6, 4) == 0.0208


# --- The spectrum and gradient descent --------------------------------------------------------


def test_the_spectrum_of_the_digits_is_as_its_caption_says() -> None:
    says(
        "One eigenvalue is 0.96, the next is 0.06, and 61 of the 65 are below 0.03",
        "ten pixels are blank",
        "is 16 times the next one",
    )
    x, _, loss, _ = digits()
    values = spectrum(loss)
    assert np.sum(values < 0.03) == 61
    assert values[-1] == pytest.approx(0.96, abs=0.005)
    assert values[-2] == pytest.approx(0.06, abs=0.005)
    assert values[-1] / values[-2] == pytest.approx(16, abs=0.5)
    assert np.sum(np.all(x == 0, axis=0)) == 10
    assert np.sum(np.isclose(values, 0.01, rtol=1e-9)) == 10


def test_axes_of_the_ellipses() -> None:
    says("\\sqrt{2.8/0.2} \\approx 3.7")
    values = np.linalg.eigvalsh(np.array([[2.0, 1.2], [1.2, 1.0]]))
    np.testing.assert_allclose(values, [0.2, 2.8], rtol=1e-12)
    assert math.sqrt(values[1] / values[0]) == pytest.approx(3.7, abs=0.05)


def test_a_start_ten_times_as_near_leaves_a_tenth_of_the_difference() -> None:
    says("1.1 % comes from the terms", "difference is 0.1 %")
    _, _, loss, _ = digits()
    values, vectors = quadratic.eigenbasis(loss.hessian(loss.minimum))
    shares = []
    for size in (0.01, 0.001):
        start = loss.minimum + vectors @ np.full(65, size)
        path = quadratic.gradient_descent(loss.gradient, start, 1.8 / values[-1], 60)
        expected = size * (1 - 1.8 / values[-1] * values) ** np.arange(61)[:, None]
        shares.append(np.abs((path - loss.minimum) @ vectors - expected).max() / size)
    assert shares == pytest.approx([0.0105, 0.00104], rel=0.02)


def test_the_steep_coefficient_leaves_its_line_after_step_42() -> None:
    says("From step 45 on", "more than 5000 times smaller")
    _, _, loss, _ = digits()
    values, vectors = quadratic.eigenbasis(loss.hessian(loss.minimum))
    start = loss.minimum + vectors @ np.full(65, 0.01)
    path = quadratic.gradient_descent(loss.gradient, start, 1.8 / values[-1], 60)
    coefficients = (path - loss.minimum) @ vectors
    ratios = coefficients[:, -1] / (0.01 * (-0.8) ** np.arange(61))
    assert np.abs(ratios[:43] - 1).max() < 0.3
    assert np.abs(ratios[[45, 48, 51, 54, 57, 60]] - 1).min() > 0.4
    assert 5000 < abs(coefficients[45, 0] / coefficients[45, -1]) < 10_000


def test_steps_for_one_more_digit_and_the_share_of_the_limit() -> None:
    says(
        "shrinks the error by 2.1 %",
        "takes 110 steps",
        "10 steps instead of 110",
        "95.7 to 8.79",
        "99 % of the limit",
        "= 10.3$, so 11 steps",
    )
    _, _, *losses = digits()
    for loss, kappa, steps in zip(losses, (95.7, 8.79), (110, 10), strict=True):
        values = spectrum(loss)
        assert values[-1] / values[0] == pytest.approx(kappa, abs=0.05)
        r = quadratic.convergence_rate(quadratic.optimal_step(values), values)
        assert math.log(0.1) / math.log(r) == pytest.approx(steps, abs=0.5)
    values = spectrum(losses[0])
    r = quadratic.convergence_rate(quadratic.optimal_step(values), values)
    assert 1 - r == pytest.approx(0.021, abs=0.0005)
    assert quadratic.optimal_step(values) * values[-1] / 2 == pytest.approx(0.99, abs=0.001)
    assert math.log(0.1) / math.log(0.8) == pytest.approx(10.3, abs=0.05)


# --- The mean input ---------------------------------------------------------------------------


def test_bound_and_cosines_of_the_mean_input() -> None:
    says(
        "a cosine of at least 0.967",
        "measured cosine is 0.99998",
        "the cosine is 0.998 with the plain mean and again 0.99998",
    )
    x, _, loss, _ = digits()
    mean, covariance = x.mean(axis=0), np.cov(x, rowvar=False, ddof=0)
    bound = 1 - np.linalg.eigvalsh(covariance)[-1] / (mean @ mean)
    assert math.sqrt(bound) == pytest.approx(0.967, abs=0.0005)
    steep = np.linalg.eigh(x.T @ x / len(x))[1][:, -1]
    assert quadratic.alignment(steep, mean) == pytest.approx(0.99998, abs=5e-6)
    probability = expit(x @ loss.minimum)
    weights = probability * (1 - probability)
    steep = np.linalg.eigh(loss.hessian(loss.minimum))[1][:, -1]
    weighted = np.average(x, axis=0, weights=weights)
    assert quadratic.alignment(steep, mean) == pytest.approx(0.998, abs=5e-4)
    assert quadratic.alignment(steep, weighted) == pytest.approx(0.99998, abs=5e-6)


def test_centering_changes_the_largest_eigenvalue_and_hardly_any_other() -> None:
    says(
        "falls by a factor of 11",
        "less than 9 %",
        "0.059 before and 0.058 after",
        "cosine of 0.95",
        "0.1817 and 0.1811",
    )
    _, _, *losses = digits()
    raw, centered = (spectrum(loss) for loss in losses)
    assert raw[-1] / centered[-1] == pytest.approx(11, abs=0.5)
    assert np.abs(centered / raw - 1)[:-1].max() < 0.09
    assert (raw[-2], centered[-2]) == pytest.approx((0.059, 0.058), abs=5e-4)
    steep = np.linalg.eigh(losses[1].hessian(losses[1].minimum))[1][:, -1]
    assert abs(steep[-1]) == pytest.approx(0.95, abs=0.005)
    least = [loss.value(loss.minimum) for loss in losses]
    assert least == pytest.approx([0.1817, 0.1811], abs=5e-5)


def test_nonzero_condition_number_of_least_squares_before_and_after_centering() -> None:
    says("$1.5\\cdot10^6$ to $1.1\\cdot10^5$", "by the factor 13", "from 12.99 to 1")
    x, centered, _, _ = digits()
    kappas, largest = [], []
    for inputs in (x, centered):
        # oracle: the singular values of the data matrix; ten columns are blank
        values = np.linalg.svd(inputs, compute_uv=False) ** 2 / len(inputs)
        kappas.append(values[0] / values[54])
        largest.append(values[0])
        assert np.all(values[55:] < 1e-12 * values[0])
    assert kappas == pytest.approx([1.5e6, 1.1e5], rel=0.03)
    assert largest == pytest.approx([12.99, 1.0], abs=0.005)
    assert kappas[0] / kappas[1] == pytest.approx(13, abs=0.1)


def test_the_curvature_is_largest_at_the_start_and_the_best_rate_of_the_minimum_fails_there() -> (
    None
):
    says(
        "is 3.26 at $w=0$",
        "at the minimum, 2.07",
        "the limit of 0.61",
        "the loss jumps up before it converges",
    )
    _, _, loss, _ = digits()
    values, start = spectrum(loss), np.linalg.eigvalsh(loss.hessian(loss.start))
    assert start[-1] == pytest.approx(3.26, abs=0.005)
    assert 2 / start[-1] == pytest.approx(0.61, abs=0.005)
    best = quadratic.optimal_step(values)
    assert best == pytest.approx(2.07, abs=0.005)
    path = quadratic.gradient_descent(loss.gradient, loss.start, best, 400)
    J = np.array([loss.value(w) for w in path])
    assert np.diff(J).max() > 1  # it jumps up
    assert J[-1] == pytest.approx(loss.value(loss.minimum), abs=1e-9)  # and converges


def test_centering_makes_the_descent_12_6_times_as_fast() -> None:
    says("12.6 times as fast")
    _, _, *losses = digits()
    steps = []
    for loss in losses:
        lr = 1 / np.linalg.eigvalsh(loss.hessian(loss.start))[-1]
        path = quadratic.gradient_descent(loss.gradient, loss.start, lr, 400)
        excess = np.array([loss.value(w) for w in path]) - loss.value(loss.minimum)
        assert np.all(np.diff(excess) < 1e-12)
        steps.append(int(np.argmax(excess < 1e-3 * excess[0])))
    assert steps == [340, 27]
    assert round(steps[0] / steps[1], 1) == 12.6


def test_the_example_of_two_inputs() -> None:
    says("(3+2\\sqrt2)^2 \\approx 34")
    x = np.array([[3.0, 1.0], [1.0, 1.0]])
    values = np.linalg.eigvalsh(x.T @ x / 2)
    np.testing.assert_allclose(values, [3 - 2 * 2**0.5, 3 + 2 * 2**0.5], rtol=1e-12)
    assert values[1] / values[0] == pytest.approx(34, abs=0.1)
    np.testing.assert_allclose((x - [2, 0]).T @ (x - [2, 0]) / 2, np.eye(2))


# --- Exact line search, the worked example, powers --------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_line_search_from_random_starts_ends_up_near_the_worst_case(seed: int) -> None:
    says("The first step leaves less than a tenth", "41 % to 44 %")
    bowl = np.diag([0.2, 0.3, 0.5, 0.8, 1.0])
    path = quadratic.exact_line_search(bowl, np.random.default_rng(seed).normal(size=5), 50)
    J = np.einsum("ti,ij,tj->t", path, bowl, path)
    factors = J[1:] / J[:-1]
    assert factors[0] < 0.1
    assert np.all((factors[10:] > 0.41) & (factors[10:] < 0.4444445))
    # Akaike: only the two ends of the spectrum are left
    assert np.abs(path[-1, 1:-1]).max() < 1e-3 * np.abs(path[-1]).max()


def test_orthogonal_steps_undo_earlier_progress() -> None:
    H, (w, following, *_) = np.diag([1.0, 0.15]), quadratic.zigzag(0.15, 2)
    g, later = H @ w, H @ following
    assert g @ later == pytest.approx(0, abs=1e-15)
    assert abs(g @ H @ later) > 0.1 * np.linalg.norm(g) * np.linalg.norm(later)


def test_the_zigzag_for_b_one_third() -> None:
    says("$(-\\tfrac16, \\tfrac12)$ and $(\\tfrac1{12}, \\tfrac14)$")
    expected = [[1 / 3, 1], [-1 / 6, 1 / 2], [1 / 12, 1 / 4]]
    path = quadratic.exact_line_search(np.diag([1.0, 1 / 3]), np.array([1 / 3, 1.0]), 2)
    np.testing.assert_allclose(path, expected, rtol=1e-12)


def test_every_line_of_the_worked_example() -> None:
    says("w^{(0)} = (9, -10)^T", "\\approx 53.6$ above")
    H, c = np.array([[5.0, 2.0], [2.0, 2.0]]), np.array([7.0, 4.0])
    J = lambda w: 0.5 * w @ H @ w - c @ w  # noqa: E731
    w_star, start = np.linalg.solve(H, c), np.array([9.0, -10.0])
    np.testing.assert_allclose(w_star, [1, 1], rtol=1e-12)
    assert J(w_star) == pytest.approx(-5.5)
    values, vectors = np.linalg.eigh(H)
    np.testing.assert_allclose(values, [1, 6], rtol=1e-12)
    alpha = vectors.T @ (start - w_star)
    np.testing.assert_allclose(np.abs(alpha), [6 * 5**0.5, 5**0.5], rtol=1e-12)
    np.testing.assert_allclose(values * alpha**2 / 2, [90, 15], rtol=1e-12)
    assert J(start) - J(w_star) == pytest.approx(105)
    g = H @ start - c
    np.testing.assert_allclose(g, [18, -6])
    assert (g @ g, g @ H @ g) == (360, 1260)
    after = start - 2 / 7 * g
    np.testing.assert_allclose(after - w_star, [20 / 7, -65 / 7], rtol=1e-12)
    np.testing.assert_allclose(vectors.T @ (after - w_star), alpha * [5 / 7, -5 / 7], rtol=1e-12)
    assert J(after) - J(w_star) == pytest.approx(105 * 25 / 49)
    assert J(after) - J(w_star) == pytest.approx(53.6, abs=0.05)


def test_fifty_layers() -> None:
    says("a factor of 70 000", "0.0052")
    assert round(1.25**50, -3) == 70_000
    assert round(0.9**50, 4) == 0.0052


def test_a_signal_may_grow_at_first_although_all_eigenvalues_are_below_one() -> None:
    W = np.array([[0.9, 10.0], [0.0, 0.8]])
    signal, _ = quadratic.depth_norms(W, np.array([0.0, 1.0]), np.ones(2), depth=200)
    assert signal[1] > 10
    assert signal[-1] < 1e-6
