"""Objectives against finite differences, autograd and SciPy; the population against sampling."""

import itertools
import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from oracles import assert_derivatives, slopes
from scipy.optimize import minimize
from scipy.stats import norm

from optdl import conditioning, problems
from optdl.problems import TwoGaussians, beale, mixture, quadratic, rosenbrock, saddle, valley

WELLS = np.array([[-1.5, 0.0], [1.2, 1.0], [1.0, -1.6]])
PAIR = np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]])
DEPTHS, WIDTHS = np.array([1.0, 2.0]), np.array([1.0, 0.5])
BEALE = ((1, 1.5), (2, 2.25), (3, 2.625))
SPD, CENTER = [[3.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]], [1.0, -2.0, 0.5]


def squares(p):
    d = p - torch.tensor(CENTER).double()
    return d @ torch.tensor(SPD).double() @ d / 2


def cliff(p):
    h = torch.tensor(0.5, dtype=torch.float64)
    for _ in range(12):
        h = torch.sigmoid(p[0] * h + p[1])
    return (h - 0.7) ** 2


def wells(centers, depths, widths):
    c, depth, width = map(torch.tensor, (centers, depths, widths))
    return lambda p: -(depth * torch.exp(-((p - c) ** 2).sum(1) / (2 * width**2))).sum()


PROBLEMS = {
    "quadratic": (quadratic(np.array(SPD), np.array(CENTER)), squares),
    "valley": (valley(0.3), lambda p: (p[0] ** 2 + 0.3 * p[1] ** 2) / 2),
    "saddle": (saddle(), lambda p: (p[0] ** 2 - p[1] ** 2) / 2),
    "beale": (beale(), lambda p: sum((a - p[0] * (1 - p[1] ** k)) ** 2 for k, a in BEALE)),
    "rosenbrock": (rosenbrock(), lambda p: 100 * (p[1] - p[0] ** 2) ** 2 + (1 - p[0]) ** 2),
    "mixture": (mixture(), wells(WELLS, np.array([1.0, 1.4, 0.8]), np.array([0.8, 0.7, 0.6]))),
    "wells in 3-D": (mixture(PAIR, DEPTHS, WIDTHS), wells(PAIR, DEPTHS, WIDTHS)),
    "two weights": (conditioning.two_weights(), lambda p: (p[0] * p[1] - 1) ** 2 / 2),
    "cliff": (conditioning.recurrent_cliff(steps=12), cliff),
}


@pytest.mark.row("L1-12", "L1-16", "L1-21", "L1-22", "L2-02", "F-02", "F-04")
@pytest.mark.parametrize(("problem", "oracle"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_value_gradient_and_hessian_match_autograd(problem, oracle, rng):
    for x in (problem.start, *rng.normal(size=(10, len(problem.start)))):
        assert_derivatives(problem, oracle, x)
        assert_array_equal(problem.hessian(x), problem.hessian(x).T)
    points = rng.normal(size=(7, len(problem.start)))
    each = [problem.gradient(point) for point in points]
    assert_allclose(problem.gradients(points), each, rtol=1e-12, atol=1e-13)
    assert np.linalg.norm(problem.gradient(problem.start)) > 1e-3
    if problem.minimum is None:
        assert problem.name in ("saddle", "recurrent cliff")
    else:
        assert_allclose(problem.gradient(problem.minimum), 0, atol=1e-13)
        assert np.linalg.eigvalsh(problem.hessian(problem.minimum))[0] > -1e-12


@pytest.mark.row("F-03")
@pytest.mark.parametrize("problem", [valley(0.2), saddle(), beale(), rosenbrock(), mixture()])
def test_rotated_problem_matches_complex_rotation(problem, rng):
    def turned(w):
        z = complex(*w) * np.exp(1j * math.radians(35))
        return np.array([z.real, z.imag])

    other, point = problems.rotated(problem, 35), rng.normal(size=2)
    w = turned(point)
    assert other.value(w) == pytest.approx(problem.value(point), rel=1e-12)
    assert_allclose(other.gradient(w), turned(problem.gradient(point)), atol=1e-9)
    assert_allclose(other.gradients(w[None]), other.gradient(w)[None], rtol=1e-10)
    assert_allclose(other.hessian(w), slopes(other.gradient, w), rtol=1e-4, atol=1e-4)
    assert_allclose(other.start, turned(problem.start), rtol=1e-13)
    if problem.minimum is None:
        assert other.minimum is None
    else:
        assert_allclose(other.minimum, turned(problem.minimum), atol=1e-12)


@pytest.mark.row("L2-02")
def test_minimum_is_deepest_well_and_overlapping_wells_merge():
    problem = mixture()
    found = [minimize(problem.value, c, jac=problem.gradient, tol=1e-12).x for c in WELLS]
    assert min(np.linalg.norm(a - b) for a, b in itertools.pairwise(found)) > 1
    assert_allclose(problem.minimum, min(found, key=problem.value), atol=1e-6)
    # at twice the width they just merge: the bottom is so flat that the search ends early, near it
    for half, tolerance in ((0.5, 1e-7), (1.0, 0.02)):
        merged = mixture(np.array([[-half, 0.0], [half, 0.0]]))
        assert_allclose(merged.minimum, [0.0, 0.0], atol=tolerance)


def test_problem_keeps_its_own_copy():
    H, w = np.eye(2), np.zeros(2)
    problem = quadratic(H, w)
    H[0, 0], w[0] = 50.0, 50.0
    problem.hessian(w)[1, 1] = 50.0
    assert problem.value(np.array([1.0, 1.0])) == 1.0


CASES = [
    (TwoGaussians(np.array([1.0, 0.5])), np.array([1.0, 0.2]), 0.1),
    (TwoGaussians(np.array([1.0, -0.5]), std=2.0, prior=0.3), np.array([-0.4, 1.0]), -0.7),
    (TwoGaussians(np.array([0.2]), std=0.5, prior=0.9), np.array([3.0]), 0.5),
]


@pytest.mark.row("L1-01")
@pytest.mark.parametrize(("population", "w", "b"), CASES)
def test_risks_match_scipys_normal_scores(population, w, b):
    spread, zero_one, squared = population.std * np.linalg.norm(w), 0.0, 0.0
    for y, weight in ((1, population.prior), (-1, 1 - population.prior)):
        score = norm(y * (w @ population.mean) + b, spread)
        zero_one += weight * (score.cdf(0) if y == 1 else score.sf(0))
        squared += weight * score.expect(lambda s, y=y: (s - y) ** 2)  # by quadrature
    assert population.zero_one_risk(w, b) == pytest.approx(zero_one, abs=1e-9)
    assert population.squared_risk(w, b) == pytest.approx(squared, rel=1e-9)


@pytest.mark.row("L1-01")
@pytest.mark.parametrize("population", [case[0] for case in CASES])
def test_bayes_rule_and_squared_minimizer_are_optimal(population, rng):
    w, b = population.bayes_rule
    x, _ = population.sample(5, rng)
    squares = [np.sum((x - sign * population.mean) ** 2, axis=1) for sign in (-1, 1)]
    odds = math.log(population.prior / (1 - population.prior))
    log_odds = odds + (squares[0] - squares[1]) / (2 * population.std**2)
    assert_allclose(x @ w + b, log_odds, rtol=1e-10, atol=1e-12)
    for step in rng.normal(scale=0.3, size=(50, len(w) + 1)):
        assert population.zero_one_risk(w + step[:-1], b + step[-1]) >= population.bayes_error
    n = len(population.mean)
    best = minimize(lambda p: population.squared_risk(p[:n], p[n]), np.zeros(n + 1), tol=1e-12)
    assert_allclose(np.append(*population.squared_minimizer), best.x, atol=1e-6)


def test_constant_classifier_errs_on_the_other_class():
    population = TwoGaussians(np.array([1.0]), prior=0.7)
    risks = [population.zero_one_risk(np.zeros(1), b) for b in (1.0, -1.0, 0.0)]
    assert risks == pytest.approx([0.3, 0.7, 1.0])
