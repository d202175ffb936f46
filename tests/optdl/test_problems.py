"""Objectives against finite differences, autograd and SciPy; the population against sampling."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.optimize import check_grad, minimize, rosen, rosen_der, rosen_hess

from optdl.problems import (
    Problem,
    TwoGaussians,
    beale,
    mixture,
    quadratic,
    rosenbrock,
    saddle,
    valley,
)

SPD = np.array([[3.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])
PROBLEMS = {
    "quadratic": quadratic(SPD, np.array([1.0, -2.0, 0.5])),
    "valley": valley(0.3),
    "saddle": saddle(),
    "beale": beale(),
    "rosenbrock": rosenbrock(),
    "mixture": mixture(),
    "wells in 3-D": mixture(
        np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]]), np.array([1.0, 2.0]), np.array([1.0, 0.5])
    ),
}
each = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS.keys())


def difference(function, x, h=1e-6):
    """Central differences of a function of x, one column per coordinate."""
    steps = h * np.eye(len(x))
    return np.stack([(function(x + e) - function(x - e)) / (2 * h) for e in steps], axis=-1)


@each
@pytest.mark.row("L1-12", "L2-02")
def test_gradient_and_hessian_match_finite_differences(problem: Problem, rng):
    for x in rng.normal(size=(10, len(problem.start))):
        slope, curvature = problem.gradient(x), problem.hessian(x)
        np.testing.assert_allclose(slope, difference(problem.value, x), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(curvature, difference(problem.gradient, x), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(curvature, curvature.T)
    points = rng.normal(size=(7, len(problem.start)))
    slopes = [problem.gradient(point) for point in points]
    np.testing.assert_allclose(problem.gradients(points), slopes, rtol=1e-12, atol=1e-13)
    assert np.linalg.norm(problem.gradient(problem.start)) > 1e-3
    if problem.minimum is not None:
        x = problem.minimum
        np.testing.assert_allclose(problem.gradient(x), 0, atol=1e-13)
        assert np.linalg.eigvalsh(problem.hessian(x))[0] > 0


@pytest.mark.row("L1-16", "L1-21")
def test_valley_and_saddle_by_hand():
    w = np.array([2.0, 4.0])
    assert valley(0.5).value(w) == 0.5 * (4 + 0.5 * 16)
    np.testing.assert_array_equal(valley(0.5).start, [0.5, 1.0])
    assert saddle().value(np.array([0.0, 2.0])) == -2.0
    assert saddle().minimum is None
    np.testing.assert_array_equal(saddle().gradient(np.zeros(2)), 0)
    np.testing.assert_array_equal(np.linalg.eigvalsh(saddle().hessian(w)), [-1.0, 1.0])


def torch_beale(p):
    x, y = p
    terms = (1.5 - x + x * y, 2.25 - x + x * y**2, 2.625 - x + x * y**3)
    return sum(term**2 for term in terms)


def torch_wells(p):
    c = torch.tensor([[-1.5, 0.0], [1.2, 1.0], [1.0, -1.6]], dtype=torch.float64)
    depth, width = torch.tensor([[1.0, 1.4, 0.8], [0.8, 0.7, 0.6]], dtype=torch.float64)
    return -(depth * torch.exp(-(((p - c) ** 2).sum(1)) / (2 * width**2))).sum()


@pytest.mark.parametrize(("problem", "oracle"), [(beale(), torch_beale), (mixture(), torch_wells)])
def test_value_gradient_and_hessian_match_autograd(problem, oracle, rng):
    for x in rng.normal(size=(5, 2)):
        point = torch.tensor(x, requires_grad=True)
        assert problem.value(x) == pytest.approx(oracle(point).item(), rel=1e-12)
        slope = torch.autograd.functional.jacobian(oracle, point)
        curvature = torch.autograd.functional.hessian(oracle, point)
        np.testing.assert_allclose(problem.gradient(x), slope.numpy(), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(problem.hessian(x), curvature.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.row("L1-12")
def test_rosenbrock_matches_scipy(rng):
    problem = rosenbrock()
    for x in rng.normal(size=(10, 2)):
        assert problem.value(x) == pytest.approx(rosen(x), rel=1e-13)
        np.testing.assert_allclose(problem.gradient(x), rosen_der(x), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(problem.hessian(x), rosen_hess(x), rtol=1e-12)
    assert np.linalg.cond(problem.hessian(np.ones(2))) == pytest.approx(2508, rel=1e-3)


@pytest.mark.row("L2-02")
def test_deepest_well_is_the_reported_minimum():
    problem = mixture()
    found = [
        minimize(problem.value, c, jac=problem.gradient, tol=1e-12).x
        for c in ([-1.5, 0.0], [1.2, 1.0], [1.0, -1.6])
    ]
    assert min(np.linalg.norm(a - b) for a, b in itertools.pairwise(found)) > 1
    lowest = min(found, key=problem.value)
    np.testing.assert_allclose(problem.minimum, lowest, atol=1e-6)
    assert problem.value(problem.minimum) <= min(map(problem.value, found))


def test_overlapping_wells_merge_into_one_minimum_between_them():
    problem = mixture(np.array([[-0.5, 0.0], [0.5, 0.0]]))
    np.testing.assert_allclose(problem.minimum, [0.0, 0.0], atol=1e-7)
    # at twice the width they just merge: the bottom is so flat that the search ends early, near it
    flat = mixture(np.array([[-1.0, 0.0], [1.0, 0.0]]))
    np.testing.assert_allclose(flat.minimum, [0.0, 0.0], atol=0.02)


def test_surface_has_y_rows_and_x_columns():
    x, y = np.array([0.0, 1.0, 3.0]), np.array([-1.0, 2.0])
    X, Y = np.meshgrid(x, y)
    surface = beale().surface(x, y)
    assert surface.shape == (2, 3)
    expected = (1.5 - X + X * Y) ** 2 + (2.25 - X + X * Y**2) ** 2 + (2.625 - X + X * Y**3) ** 2
    np.testing.assert_allclose(surface, expected)


def test_problem_keeps_its_own_copy():
    H, w = np.eye(2), np.zeros(2)
    problem = quadratic(H, w)
    H[0, 0], w[0] = 50.0, 50.0
    problem.hessian(w)[1, 1] = 50.0
    assert problem.value(np.array([1.0, 1.0])) == 1.0
    assert check_grad(problem.value, problem.gradient, np.array([0.3, 0.4])) < 1e-6


CASES = [
    (TwoGaussians(np.array([1.0, 0.5])), np.array([1.0, 0.2]), 0.1),
    (TwoGaussians(np.array([1.0, -0.5]), std=2.0, prior=0.3), np.array([-0.4, 1.0]), -0.7),
    (TwoGaussians(np.array([0.2]), std=0.5, prior=0.9), np.array([3.0]), 0.5),
]


@pytest.mark.row("L1-01")
@pytest.mark.parametrize(("population", "w", "b"), CASES)
def test_risks_match_numerical_integration(population, w, b):
    # the score is Gaussian given y: integrate the loss against its density
    spread = population.std * np.linalg.norm(w)
    zero_one = squared = 0.0
    for y, weight in ((1, population.prior), (-1, 1 - population.prior)):
        center = y * (w @ population.mean) + b

        def density(s, center=center):
            return math.exp(-(((s - center) / spread) ** 2) / 2) / (spread * math.sqrt(2 * math.pi))

        low, high = center - 12 * spread, center + 12 * spread
        wrong = (low, min(max(0.0, low), high)) if y == 1 else (min(max(0.0, low), high), high)
        zero_one += weight * quad(density, *wrong, epsabs=1e-12)[0]
        squared += weight * quad(lambda s: (s - y) ** 2 * density(s), low, high, epsabs=1e-12)[0]  # noqa: B023
    assert population.zero_one_risk(w, b) == pytest.approx(zero_one, abs=1e-9)
    assert population.squared_risk(w, b) == pytest.approx(squared, rel=1e-9)
    # and with those of a sample, which the seed alone determines
    x, y = population.sample(200_000, np.random.default_rng(2))
    again, _ = population.sample(200_000, np.random.default_rng(2))
    np.testing.assert_array_equal(x, again)
    for losses, risk in (((y * (x @ w + b) <= 0) * 1.0, zero_one), ((x @ w + b - y) ** 2, squared)):
        assert abs(losses.mean() - risk) < 4 * losses.std() / math.sqrt(len(y))


@pytest.mark.row("L1-01")
@pytest.mark.parametrize("population", [case[0] for case in CASES])
def test_bayes_rule_is_log_odds_and_optimal(population, rng):
    w, b = population.bayes_rule
    x, _ = population.sample(5, rng)
    log_odds = math.log(population.prior / (1 - population.prior)) + (
        np.sum((x + population.mean) ** 2, axis=1) - np.sum((x - population.mean) ** 2, axis=1)
    ) / (2 * population.std**2)
    np.testing.assert_allclose(x @ w + b, log_odds, rtol=1e-10, atol=1e-12)
    for step in rng.normal(scale=0.3, size=(50, len(w) + 1)):
        assert population.zero_one_risk(w + step[:-1], b + step[-1]) >= population.bayes_error


@pytest.mark.row("L1-01")
@pytest.mark.parametrize("population", [case[0] for case in CASES])
def test_squared_minimizer_matches_scipy(population):
    n = len(population.mean)
    best = minimize(lambda p: population.squared_risk(p[:n], p[n]), np.zeros(n + 1), tol=1e-12)
    w, b = population.squared_minimizer
    np.testing.assert_allclose(np.append(w, b), best.x, atol=1e-6)


def test_constant_classifier_errs_on_the_other_class():
    population = TwoGaussians(np.array([1.0]), prior=0.7)
    nothing = np.zeros(1)
    assert population.zero_one_risk(nothing, 1.0) == pytest.approx(0.3)
    assert population.zero_one_risk(nothing, -1.0) == pytest.approx(0.7)
    assert population.zero_one_risk(nothing, 0.0) == 1.0
