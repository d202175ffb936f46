"""Chapter 2: what its lessons claim without printing it, and what they compute by hand."""

import math
from functools import cache

import numpy as np
import pytest
from chapters import text

from optdl import quadratic
from optdl.problems import Problem


def says(page: str, *parts: str) -> None:
    """Make sure that a lesson still says what a test is about."""
    for part in parts:
        assert part in text("quadratic", page), f"{page} no longer says: {part}"


@cache
def digits() -> tuple[np.ndarray, np.ndarray, Problem, Problem]:
    """Return inputs, centered inputs and the loss of both: threes against eights."""
    x, y = quadratic.threes_and_eights()
    centered = x - np.append(x[:, :64].mean(axis=0), 0.0)
    losses = [quadratic.logistic_regression(inputs, y, penalty=0.01) for inputs in (x, centered)]
    return x, centered, *losses


def test_only_the_penalty_curves_the_loss_along_blank_pixels() -> None:
    says("eigendirections", "only the penalty curves the loss along their weights")
    x, _, loss, _ = digits()
    values = np.linalg.eigvalsh(loss.hessian(loss.minimum))
    assert np.sum(np.isclose(values, 0.01, rtol=1e-9)) == np.sum(np.all(x == 0, axis=0))
    assert values[0] == pytest.approx(0.01, rel=1e-9)


def test_the_two_terms_of_the_example_in_two_dimensions() -> None:
    says("eigendirections", "$u_1 = (1,-1)^T/\\sqrt2$", "= \\tfrac34$, and their sum is $1")
    values, vectors = np.linalg.eigh(np.array([[2.0, 1.0], [1.0, 2.0]]))
    np.testing.assert_allclose(values, [1, 3], rtol=1e-12)
    terms = values * (vectors.T @ [1.0, 0.0]) ** 2 / 2
    np.testing.assert_allclose(terms, [0.25, 0.75], rtol=1e-12)


def test_the_steep_coefficient_leaves_its_line_near_the_end() -> None:
    says("descent", "thousands of times smaller than the flat one", "its dots leave their line")
    _, _, loss, _ = digits()
    values, vectors = quadratic.eigenbasis(loss.hessian(loss.minimum))
    start = loss.minimum + vectors @ np.full(65, 0.01)
    path = quadratic.gradient_descent(loss.gradient, start, 1.8 / values[-1], 60)
    coefficients = (path - loss.minimum) @ vectors
    ratios = coefficients[:, -1] / (0.01 * (-0.8) ** np.arange(61))
    assert np.abs(ratios[:43] - 1).max() < 0.3
    assert np.abs(ratios[[45, 48, 51, 54, 57, 60]] - 1).min() > 0.4
    assert np.all(np.abs(coefficients[45:, 0] / coefficients[45:, -1]) > 2000)


def test_the_loss_falls_in_every_step_of_three_of_the_four_runs() -> None:
    says("descent", "the loss falls in every step, as it does in B and in the one step of D")
    for fraction, falls in ((0.85, True), (0.2, True), (0.5, True), (1.04, False)):
        run = (1 - 2 * fraction) ** np.arange(6.0)
        loss = run[: 2 if fraction == 0.5 else 6] ** 2
        assert bool(np.all(np.diff(loss) < 0)) == falls


def test_steps_to_a_tenth_for_a_condition_number_of_nine() -> None:
    says("rate", "= 10.3$, so 11 steps", "= 5.2$, so 6 steps", "$r = 8/10$")
    assert math.log(0.1) / math.log(0.8) == pytest.approx(10.3, abs=0.05)
    assert math.log(0.1) / math.log(0.64) == pytest.approx(5.2, abs=0.05)


def test_the_curvature_is_nowhere_larger_than_at_zero_and_smaller_at_the_minimum() -> None:
    says("mean-input", "This is stable everywhere", "$\\lambda_{max}$ is larger at $w=0$")
    rng = np.random.default_rng(0)
    for loss in digits()[2:]:
        steepest = lambda w, loss=loss: np.linalg.eigvalsh(loss.hessian(w))[-1]  # noqa: E731
        assert all(steepest(0.3 * rng.normal(size=65)) < steepest(loss.start) for _ in range(20))
        assert steepest(loss.minimum) < steepest(loss.start) / 2


def test_the_bound_on_the_cosine_is_kept_by_least_squares() -> None:
    says("mean-input", "guarantees a cosine of at least")
    x, *_ = digits()
    mean, covariance = x.mean(axis=0), np.cov(x, rowvar=False, ddof=0)
    bound = math.sqrt(1 - np.linalg.eigvalsh(covariance)[-1] / (mean @ mean))
    steep = np.linalg.eigh(x.T @ x / len(x))[1][:, -1]
    assert quadratic.alignment(steep, mean) > bound > 0.9


def test_centering_leaves_the_small_eigenvalues_and_removes_the_large_one() -> None:
    says("mean-input", "it does not raise the small ones")
    x, centered, *_ = digits()
    # oracle: the singular values of the data matrix
    raw, new = (np.linalg.svd(inputs, compute_uv=False) ** 2 / len(x) for inputs in (x, centered))
    assert raw[0] / new[0] > 10
    assert new[54] == pytest.approx(raw[54], rel=1e-5)  # the other ten columns are blank


def test_the_example_of_two_inputs() -> None:
    says("mean-input", "(3+2\\sqrt2)^2 \\approx 34")
    x = np.array([[3.0, 1.0], [1.0, 1.0]])
    values = np.linalg.eigvalsh(x.T @ x / 2)
    np.testing.assert_allclose(values, [3 - 2 * 2**0.5, 3 + 2 * 2**0.5], rtol=1e-12)
    assert values[1] / values[0] == pytest.approx(34, abs=0.1)
    np.testing.assert_allclose((x - [2, 0]).T @ (x - [2, 0]) / 2, np.eye(2))


@pytest.mark.parametrize("seed", range(3))
def test_line_search_from_random_starts_ends_up_near_the_worst_case(seed: int) -> None:
    says("line-search", "The first step leaves less than a tenth")
    bowl = np.diag([0.2, 0.3, 0.5, 0.8, 1.0])
    path = quadratic.exact_line_search(bowl, np.random.default_rng(seed).normal(size=5), 50)
    J = np.einsum("ti,ij,tj->t", path, bowl, path)
    assert J[1] / J[0] < 0.1
    # Akaike: only the two ends of the spectrum are left
    assert np.abs(path[-1, 1:-1]).max() < 1e-3 * np.abs(path[-1]).max()


def test_orthogonal_steps_undo_earlier_progress() -> None:
    says("line-search", "which is not zero on this path")
    H, (w, following, *_) = np.diag([1.0, 0.15]), quadratic.zigzag(0.15, 2)
    g, later = H @ w, H @ following
    assert g @ later == pytest.approx(0, abs=1e-15)
    assert abs(g @ H @ later) > 0.1 * np.linalg.norm(g) * np.linalg.norm(later)


def test_every_line_of_the_worksheet() -> None:
    says("appendix-worksheet", "w^{(0)} = (9, -10)^T", "\\approx 53.6$")
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


def test_a_complex_pair_lets_the_norm_oscillate_with_the_period_of_half_a_turn() -> None:
    says(
        "appendix-matrix-powers", "the period is $\\\\pi/\\\\varphi = 15$ layers", "positive bounds"
    )
    rng, angle = np.random.default_rng(3), np.pi / 15
    turn = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    V = rng.normal(size=(2, 2))
    W = V @ turn @ np.linalg.inv(V)
    norms, _ = quadratic.depth_norms(W, rng.normal(size=2), np.ones(2), depth=60)
    np.testing.assert_allclose(norms[15:], norms[:-15], rtol=1e-9)
    assert norms.min() > 0
    assert norms.max() > 1.2 * norms.min()


def test_the_square_of_a_triangular_matrix() -> None:
    says("appendix-matrix-powers", "W^2 = \\begin{bmatrix}4&\\frac52\\\\0&\\frac14\\end{bmatrix}")
    W = np.array([[2.0, 1.0], [0.0, 0.5]])
    np.testing.assert_allclose(W @ W, [[4, 2.5], [0, 0.25]])


def test_a_signal_may_grow_at_first_although_all_eigenvalues_are_below_one() -> None:
    says("reference", "signal may grow in the first layers even if all $|\\lambda_i|<1$")
    W = np.array([[0.9, 10.0], [0.0, 0.8]])
    signal, _ = quadratic.depth_norms(W, np.array([0.0, 1.0]), np.ones(2), depth=200)
    assert signal[1] > 10
    assert signal[-1] < 1e-6
