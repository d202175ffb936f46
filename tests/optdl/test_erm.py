"""Chapter 1: every result is compared with one that the code did not produce."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import torch
from numpy.testing import assert_allclose, assert_array_equal
from oracles import torch_path
from scipy import stats
from torch.nn import functional

from optdl import erm
from optdl.erm import LinearPopulation, NoisyCurve, standard_error
from optdl.problems import TwoGaussians

POPULATION = TwoGaussians(np.array([1.0, 0.5]), std=1.5, prior=0.4)
CLASSIFIER = np.array([1.0, -0.3]), 0.2


def correlated(d: int, noise: float = 0.5) -> LinearPopulation:
    """Return a linear population whose features are neither independent nor of one scale."""
    A = np.random.default_rng(3).normal(size=(d, d)) / np.sqrt(d) + np.eye(d)
    return LinearPopulation(np.linspace(-1, 1, d), A @ A.T, noise)


@pytest.mark.row("L1-01")
def test_column_has_the_empirical_risk_of_a_row():
    # the loss gets the prediction, then the label: 3 · 1 − 10 · 2
    one = np.ones((1, 1))
    assert erm.empirical_risk(lambda f, y: f - 10 * y, np.multiply, 3 * one, one, 2 * one) == -17


def assert_mean(values, expected, deviations=4):
    """Compare the mean of independent values with its expectation, in standard errors."""
    errors = np.abs(np.mean(values, axis=0) - expected) * np.sqrt(len(values))
    assert np.all(errors < deviations * np.std(values, axis=0))


@pytest.mark.row("L1-01")
def test_mixture_gap_matches_closed_form(rng):
    """Mean J*, spread √(J*(1 − J*)/m): the 0–1 loss of an example is a biased coin."""
    (w, b), sizes, repeats = CLASSIFIER, [10, 100, 1000], 400
    risk = POPULATION.zero_one_risk(w, b)
    J = erm.empirical_risks(
        POPULATION, lambda x, y: erm.zero_one_loss(erm.margins(w, b, x, y)), sizes, repeats, rng
    )
    spread = np.sqrt(risk * (1 - risk) / np.array(sizes))
    assert_mean(J.T, risk)
    assert_allclose(J.std(axis=1), spread, rtol=4 / np.sqrt(2 * repeats))


@pytest.mark.row("L1-01", "L1-11")
def test_linear_population_risk_matches_its_sample(rng):
    population, w = correlated(4), rng.normal(size=4)
    slope = scipy.optimize.approx_fprime(w, population.risk, 1e-7)
    assert_allclose(population.gradient(w), slope, atol=1e-5)
    x, y = population.sample(40_000, rng)
    assert_allclose(x.T @ x / len(y), population.covariance, atol=0.12)
    assert np.std(y - x @ population.weights) == pytest.approx(0.5, rel=0.02)
    assert_mean((x @ w - y) ** 2 / 2, population.risk(w))


@pytest.mark.row("L1-01")
def test_least_squares_optimism_matches_closed_form(rng):
    d, sizes, repeats = 5, [10, 20, 80], 3000
    J, risk = erm.least_squares_risks(correlated(d, noise=0.8), sizes, repeats, rng)
    for row, m in enumerate(sizes):
        expected = erm.expected_least_squares_risks(d, m, noise=0.8)
        assert_mean(np.transpose([J[row], risk[row]]), expected)


CURVE = NoisyCurve(lambda x: np.sin(np.pi * x), noise=0.3)


@pytest.mark.row("L1-02")
def test_polynomial_fit_and_risk_match_polyfit_and_quadrature(rng):
    x, y = CURVE.sample(12, rng)
    fit = erm.fit_polynomial(x, y, degree=7)
    assert_allclose(fit(x), np.polyval(np.polyfit(x, y, 7), x), rtol=1e-7)
    error = scipy.integrate.quad(lambda t: (fit(t) - np.sin(np.pi * t)) ** 2, -1, 1, limit=200)[0]
    assert CURVE.risk(fit) == pytest.approx(error / 2 + 0.09, rel=1e-9)
    x, y = CURVE.sample(200_000, rng)
    assert_mean((fit(x) - y) ** 2, CURVE.risk(fit))


@pytest.mark.row("L1-02")
@pytest.mark.parametrize("k", [2, 6, 14, 30])
def test_double_descent_is_the_mean_of_many_fits(k, rng):
    weights, risks = np.linspace(1, 0.2, 30), []
    population = LinearPopulation(weights, np.eye(30), noise=0.5)
    for _ in range(1500):
        x, y = population.sample(10, rng)
        risks.append(population.risk(np.append(np.linalg.pinv(x[:, :k]) @ y, np.zeros(30 - k))))
    assert_mean(risks, erm.double_descent_risk(k, 10, weights, noise=0.5))
    assert [erm.double_descent_risk(k, 4, np.ones(9), 1.0) for k in (3, 4, 5)] == [np.inf] * 3


@pytest.mark.row("L1-38")
def test_sine_risk_and_slope_match_autograd(rng):
    x, y, frequencies = rng.uniform(-1, 1, size=9), rng.normal(size=9), np.array([0.3, 2.0, 7.1])
    omega, inputs, labels = map(torch.from_numpy, (frequencies, x, y))
    omega.requires_grad_(True)
    losses = ((torch.sin(torch.pi * omega[:, None] * inputs) - labels) ** 2).mean(axis=1)
    losses.sum().backward()
    J, slope = erm.sine_risk(frequencies, x, y)
    assert_allclose(J, losses.detach(), rtol=1e-12)
    assert_allclose(slope, omega.grad, rtol=1e-12, atol=1e-14)


IN_TORCH = {
    "logistic (bits)": lambda m: functional.softplus(-m, threshold=1e9) / np.log(2),
    "hinge": lambda m: torch.clamp(1 - m, min=0),
    "exponential": lambda m: torch.exp(-m),
    "squared": lambda m: (m - 1) ** 2,
}


@pytest.mark.row("L1-03")
@pytest.mark.parametrize("name", erm.SURROGATES)
def test_surrogates_match_torch_and_bound_zero_one_loss(name, rng):
    grid = np.append(rng.normal(scale=3, size=100), 0.0)
    tensor = torch.tensor(grid, requires_grad=True)
    losses = IN_TORCH[name](tensor)
    losses.sum().backward()
    value, derivative = erm.SURROGATES[name](grid)
    assert_allclose(value, losses.detach(), rtol=1e-12, atol=1e-15)
    assert_allclose(derivative, tensor.grad, rtol=1e-12, atol=1e-15)
    assert np.all(value >= erm.zero_one_loss(grid) - 1e-15)


@pytest.mark.row("L1-40")
@pytest.mark.parametrize("p", [0.05, 0.5, 0.8])
def test_log_odds_minimize_expected_negative_log_likelihood(p):
    loss = lambda f: -stats.bernoulli(p).expect(lambda k: stats.logistic.logsf((1 - 2 * k) * f))  # noqa: E731
    best = scipy.optimize.minimize_scalar(loss, bounds=(-9, 9), options={"xatol": 1e-9})
    assert erm.log_odds(p) == pytest.approx(best.x, abs=1e-6)
    assert loss(erm.log_odds(p)) == pytest.approx(stats.bernoulli(p).entropy(), rel=1e-12)


@pytest.mark.row("L1-03")
@pytest.mark.parametrize(("m", "d"), [(1, 1), (4, 1), (4, 2), (5, 3), (4, 4), (3, 5)])
def test_dichotomy_count_matches_enumeration(m, d, rng):
    """A labeling is linear if some w has all margins at least 1: a linear program."""
    x, feasible = rng.normal(size=(m, d)), 0
    for labels in itertools.product([-1, 1], repeat=m):
        margins, bounds = np.array(labels)[:, None] * x, [(None, None)] * d
        program = scipy.optimize.linprog(np.zeros(d), -margins, -np.ones(m), bounds=bounds)
        feasible += program.status == 0
    assert erm.count_dichotomies(m, d) == feasible


@pytest.mark.row("L1-04")
def test_rescaling_leaves_normalized_margin_unchanged(rng):
    def by_definition(scores):
        return [row[k] - np.delete(row, k).max() for row, k in zip(scores, labels, strict=True)]

    scores, labels = rng.normal(size=(40, 3)), rng.integers(3, size=40)
    assert_array_equal(erm.classification_margins(scores, labels), by_definition(scores))
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(4, 6, bias=False), torch.nn.ReLU(), torch.nn.Linear(6, 3, bias=False)
    )
    inputs = torch.randn(40, 4)
    first = by_definition(network(inputs).detach().numpy())
    hook, state = erm.MarginHook(inputs, labels), SimpleNamespace(model=network, curves={})
    for _ in range(2):
        hook.after_epoch(state)
        with torch.no_grad():
            for weight in network.parameters():
                weight *= 3
    assert state.curves["smallest_margin"][0] == pytest.approx(min(first), rel=1e-4)
    median = np.median(first)
    assert state.curves["median_margin"] == pytest.approx([median, 9 * median], rel=1e-4)
    first, second = state.curves["normalized_margin"]
    assert second == pytest.approx(first, rel=1e-5)


@pytest.mark.row("L1-05")
def test_gradient_norm_hook_matches_numpy_softmax_regression(softmax):
    W, x, labels = softmax
    network = torch.nn.Linear(4, 3, bias=False, dtype=torch.float64)
    network.weight.data = torch.tensor(W.T.copy())
    optimizer = torch.optim.SGD(network.parameters(), lr=1.0)
    state = SimpleNamespace(model=network, optimizer=optimizer, curves={})
    hook = erm.GradientNormHook(*map(torch.from_numpy, (x, labels)), functional.cross_entropy)
    hook.after_epoch(state)
    hook.after_epoch(state)
    expected = np.linalg.norm(erm.batch_gradient(W, x, labels))
    assert state.curves["batch_gradient_norm"] == pytest.approx([expected] * 2)
    assert network.weight.grad is None


@pytest.mark.row("L1-05")
def test_early_stopping_hook_halts_as_the_function(rng):
    network = torch.nn.Linear(1, 1)
    for _ in range(60):
        errors = list(rng.integers(1, 8, size=rng.integers(1, 15)) / 10)
        hook = erm.EarlyStopping(patience=int(rng.integers(1, 5)))
        state = SimpleNamespace(model=network, stop=None, curves={"validation_error": []})
        for epoch, error in enumerate(errors):
            torch.nn.init.constant_(network.weight, epoch)
            state.curves["validation_error"].append(error)
            hook.after_epoch(state)
            if state.stop:
                assert state.stop == f"no better validation error for {hook.patience} epochs"
                break
        assert (hook.best, epoch) == erm.early_stopping(errors, hook.patience)
        assert hook.best_weights["weight"].item() == hook.best
    assert erm.early_stopping([math.nan, 0.3, 0.4, 0.5, 0.1], 2) == (1, 3)


@pytest.fixture
def softmax(rng):
    return rng.normal(size=(4, 3)), rng.normal(size=(12, 4)), rng.integers(3, size=12)


@pytest.mark.row("L1-06", "L1-07", "L1-08")
def test_gradients_of_softmax_regression_match_autograd(softmax):
    W, x, labels = map(torch.from_numpy, softmax)
    W.requires_grad_(True)
    losses = functional.cross_entropy(x @ W, labels, reduction="none")
    each = torch.stack([torch.autograd.grad(-one, W, retain_graph=True)[0] for one in losses])
    assert_allclose(erm.per_example_gradients(*softmax), each, atol=1e-14)
    for copies in (1, 2, 5):  # repeated data give the same gradient
        many = np.tile(softmax[1], (copies, 1)), np.tile(softmax[2], copies)
        assert_allclose(erm.batch_gradient(softmax[0], *many), each.mean(dim=0), atol=1e-14)


@pytest.mark.row("L1-07")
@pytest.mark.parametrize("replace", [True, False])
def test_measured_minibatch_noise_agrees_with_the_formula(replace, rng):
    gradients, sizes = rng.normal(size=(60, 4)) * [1, 2, 3, 4], [2, 10, 40]
    measured = erm.minibatch_errors(gradients, sizes, 2000, rng, replace)
    sigma = erm.gradient_spread(gradients)
    assert sigma == pytest.approx(np.sqrt(np.trace(np.cov(gradients.T, bias=True))))
    formula = [standard_error(sigma, n, None if replace else 60) for n in sizes]
    assert_allclose(measured, formula, rtol=0.06)
    assert standard_error(2.0, 1, 1) == 0  # the only minibatch there is


@pytest.mark.row("L1-09")
@pytest.mark.parametrize(("n", "name"), [(1, "online"), (5, "minibatch"), (12, "batch")])
def test_sgd_matches_torch_at_n_gradients_an_update(n, name, rng):
    x, y, w = rng.normal(size=(12, 3)), rng.normal(size=12), rng.normal(size=3)
    batches = erm.minibatches(12, n, rng)
    cost = erm.update_cost(12, n)
    assert (cost.name, cost.gradients_per_update, cost.updates_per_epoch) == (name, n, len(batches))
    gradient = lambda w, i: erm.squared_gradients(w, x[i], y[i]).mean(axis=0)  # noqa: E731
    path = erm.sgd(gradient, w, batches, lr=0.1)
    v, left = torch.tensor(w, requires_grad=True), iter(batches)
    inputs, labels = map(torch.from_numpy, (x, y))

    def loss():
        rows = next(left)
        return (0.5 * (inputs[rows] @ v - labels[rows]) ** 2).mean()

    expected = torch_path(torch.optim.SGD([v], lr=0.1), v, loss, len(batches))
    assert_allclose(path, expected, rtol=1e-11)


@pytest.mark.row("L1-11")
def test_stream_repeats_no_example_and_is_unbiased(rng):
    population, w, count = correlated(3), rng.normal(size=3), 4000
    batches = [*itertools.islice(erm.stream(population, 5, rng), count)]
    assert len(np.unique([x[:, 0] for x, _ in batches])) == 5 * count
    gradients = [erm.squared_gradients(w, x, y).mean(axis=0) for x, y in batches]
    assert_mean(gradients, population.gradient(w))
