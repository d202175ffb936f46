"""Chapter 1: every result is compared with one that the code did not produce."""

import inspect
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import torch
from sklearn.linear_model import LogisticRegression

from optdl import erm
from optdl.data import Examples, load
from optdl.erm import (
    SURROGATES,
    EarlyStopping,
    GradientNormHook,
    LinearPopulation,
    MarginHook,
    NoisyCurve,
    batch_gradient,
    capacity_sweep,
    classification_margins,
    count_dichotomies,
    double_descent_risk,
    early_stopping,
    empirical_risk,
    empirical_risks,
    error_amplification,
    examples_needed,
    expected_least_squares_risks,
    exponential_loss,
    fit_polynomial,
    generalization_gap,
    gradient_spread,
    hinge_loss,
    hinge_risk_gradient,
    least_squares,
    least_squares_risks,
    log_likelihoods,
    logistic_loss,
    margins,
    minibatch_errors,
    minibatches,
    newton_direction,
    per_example_gradients,
    required_batch_size,
    risk_estimate,
    sgd,
    sine_risk,
    softmax_noise,
    squared_gradients,
    squared_loss,
    standard_error,
    stored_activations,
    stream,
    stream_sgd,
    unique_examples,
    update_cost,
    zero_one_loss,
    zero_one_risk,
)
from optdl.problems import TwoGaussians
from optdl.training import train

torch.set_num_threads(1)

POPULATION = TwoGaussians(np.array([1.0, 0.5]), std=1.0, prior=0.4)
CLASSIFIER = np.array([1.0, -0.3]), 0.2


def correlated(d: int, noise: float = 0.5) -> LinearPopulation:
    """Return a linear population whose features are neither independent nor of one scale."""
    A = np.random.default_rng(3).normal(size=(d, d)) / np.sqrt(d) + np.eye(d)
    return LinearPopulation(np.linspace(-1, 1, d), A @ A.T, noise)


def in_torch(*arrays):
    return [torch.as_tensor(array) for array in arrays]


# --- Risk and empirical risk


@pytest.mark.row("L1-01")
def test_empirical_risk_matches_torch(rng):
    w, x, y = rng.normal(size=3), rng.normal(size=(20, 3)), rng.normal(size=20)
    ours = empirical_risk(lambda f, y: np.abs(f - y), lambda x, w: x @ w, w, x, y)
    w, x, y = in_torch(w, x, y)
    assert ours == pytest.approx(torch.nn.functional.l1_loss(x @ w, y).item(), rel=1e-13)


@pytest.mark.row("L1-01")
def test_loss_receives_prediction_then_label():
    one = np.ones(1)
    risk = empirical_risk(lambda f, y: f - 10 * y, lambda x, w: x * w, 3 * one, one, 2 * one)
    assert risk == 3 - 20


@pytest.mark.row("L1-01")
def test_empirical_risk_needs_a_label_for_each_example():
    function = inspect.unwrap(empirical_risk)
    with pytest.raises(ValueError, match="got 2 examples and 3 labels"):
        function(None, None, None, np.ones(2), np.ones(3))
    with pytest.raises(ValueError, match="at least one example"):
        function(None, None, None, np.ones(0), np.ones(0))


@pytest.mark.row("L1-01")
def test_mixture_gap_matches_closed_form(rng):
    """Mean J*, spread √(J*(1 − J*)/m): the 0–1 loss of an example is a biased coin."""
    w, b = CLASSIFIER
    risk, sizes, repeats = POPULATION.zero_one_risk(w, b), [10, 100, 1000], 400
    J = empirical_risks(
        POPULATION, lambda x, y: zero_one_loss(margins(w, b, x, y)), sizes, repeats, rng
    )
    spread = np.sqrt(risk * (1 - risk) / np.array(sizes))
    assert J.shape == (3, 400)
    assert np.all(np.abs(J.mean(axis=1) - risk) < 4 * spread / np.sqrt(repeats))
    np.testing.assert_allclose(J.std(axis=1), spread, rtol=4 / np.sqrt(2 * repeats))
    gaps = [np.mean(np.abs(generalization_gap(risk, 0.0) - row)) for row in J]
    assert gaps[0] > 2 * gaps[1] > 4 * gaps[2]


@pytest.mark.row("L1-01")
def test_gap_is_risk_minus_empirical_risk():
    assert generalization_gap(risk=0.75, sample_risk=0.5) == 0.25


@pytest.mark.row("L1-01", "L1-11")
def test_linear_population_risk_matches_gaussian_integral():
    population = LinearPopulation(np.array([2.0]), np.array([[3.0]]), noise=0.7)

    def integrand(e, x, w):
        density = np.exp(-(x**2) / 6 - e**2 / (2 * 0.49)) / (2 * np.pi * np.sqrt(3) * 0.7)
        return 0.5 * (w * x - 2 * x - e) ** 2 * density

    for w in (-1.0, 2.0, 2.5):
        integral = scipy.integrate.dblquad(integrand, -15, 15, -6, 6, args=(w,))[0]
        assert population.risk(np.array([w])) == pytest.approx(integral, rel=1e-6)


@pytest.mark.row("L1-01", "L1-11")
def test_risk_gradient_matches_finite_differences(rng):
    population, w = correlated(4), rng.normal(size=4)
    slope = scipy.optimize.approx_fprime(w, population.risk, 1e-7)
    np.testing.assert_allclose(population.gradient(w), slope, atol=1e-5)
    assert not population.gradient(population.weights).any()


@pytest.mark.row("L1-01")
def test_samples_have_the_moments_of_the_population(rng):
    population = correlated(3, noise=0.5)
    x, y = population.sample(40_000, rng)
    np.testing.assert_allclose(x.T @ x / len(y), population.covariance, atol=0.12)
    assert np.std(y - x @ population.weights) == pytest.approx(0.5, rel=0.02)


@pytest.mark.row("L1-01")
def test_invalid_linear_population_is_refused():
    with pytest.raises(ValueError, match="at least 0; got -1"):
        LinearPopulation(np.ones(2), np.eye(2), -1.0)
    fields = SimpleNamespace(weights=np.ones(2), covariance=np.eye(3), noise=1.0)
    with pytest.raises(ValueError, match=r"shape \(2, 2\).*got \(3, 3\)"):
        inspect.unwrap(LinearPopulation.__post_init__)(fields)


@pytest.mark.row("L1-01")
def test_least_squares_solves_the_normal_equations(rng):
    x, y = rng.normal(size=(30, 4)), rng.normal(size=30)
    np.testing.assert_allclose(least_squares(x, y), np.linalg.solve(x.T @ x, x.T @ y), rtol=1e-10)


@pytest.mark.row("L1-01")
def test_least_squares_optimism_matches_closed_form(rng):
    d, sizes, repeats = 5, [10, 20, 80], 3000
    J, risk = least_squares_risks(correlated(d, noise=0.8), sizes, repeats, rng)
    for row, m in enumerate(sizes):
        expected = expected_least_squares_risks(d, m, noise=0.8)
        for measured, value in zip((J[row], risk[row]), expected, strict=True):
            assert abs(measured.mean() - value) < 4 * measured.std() / np.sqrt(repeats)


@pytest.mark.row("L1-01")
def test_too_few_examples_have_no_expected_risk():
    with pytest.raises(ValueError, match="m > d \\+ 1 = 6; got m = 6"):
        expected_least_squares_risks(5, 6, 1.0)


@pytest.mark.row("L1-01")
def test_risk_estimate_deviation_matches_simulation(rng):
    """The oracle is the scatter of the estimates themselves."""
    population = NoisyCurve(np.sin, noise=0.5)

    def squared(f, y):
        return (f - y) ** 2

    def twice(x, theta):
        return theta * x

    drawn = [population.sample(200, rng) for _ in range(1000)]
    estimates, deviations = np.transpose(
        [risk_estimate(squared, twice, np.array(2.0), x, y) for x, y in drawn]
    )
    assert estimates.std() == pytest.approx(deviations.mean(), rel=0.08)
    risk = population.risk(lambda x: 2 * x)
    assert abs(estimates.mean() - risk) < 4 * deviations.mean() / np.sqrt(1000)


# --- Overfitting

CURVE = NoisyCurve(lambda x: np.sin(np.pi * x), noise=0.3)


@pytest.mark.row("L1-02")
def test_polynomial_risk_matches_quadrature_and_sampling(rng):
    fit = fit_polynomial(*CURVE.sample(12, rng), degree=7)
    error = scipy.integrate.quad(lambda t: (fit(t) - np.sin(np.pi * t)) ** 2, -1, 1, limit=200)[0]
    assert CURVE.risk(fit) == pytest.approx(error / 2 + 0.09, rel=1e-9)
    x, y = CURVE.sample(200_000, rng)
    losses = (fit(x) - y) ** 2
    assert abs(losses.mean() - CURVE.risk(fit)) < 4 * losses.std() / np.sqrt(len(x))


@pytest.mark.row("L1-02")
def test_polynomial_fit_agrees_with_polyfit(rng):
    x, y = CURVE.sample(15, rng)
    ours = fit_polynomial(x, y, degree=4)
    np.testing.assert_allclose(ours(x), np.polyval(np.polyfit(x, y, 4), x), rtol=1e-9)


@pytest.mark.row("L1-02")
@pytest.mark.parametrize("seed", range(5))
def test_empirical_risk_vanishes_while_risk_rises(seed):
    x, y = CURVE.sample(12, np.random.default_rng(seed))
    J, risk = capacity_sweep(CURVE, x, y, range(12))
    assert np.all(np.diff(J) <= 1e-12)
    assert J[-1] < 1e-18
    assert risk.min() > 0.09  # nobody beats the noise
    assert 1 < risk.argmin() < 9
    assert risk[-1] > 3 * risk.min()


@pytest.mark.row("L1-02")
@pytest.mark.parametrize("degree", [-1, 3])
def test_degree_without_unique_fit_is_refused(degree):
    with pytest.raises(ValueError, match=f"0 to 2; got {degree}"):
        fit_polynomial(np.arange(3.0), np.ones(3), degree)


@pytest.mark.row("L1-02")
@pytest.mark.parametrize("k", [2, 6, 14, 30])
def test_double_descent_is_the_mean_of_many_fits(k, rng):
    weights, risks = np.linspace(1, 0.2, 30), np.empty(1500)
    population = LinearPopulation(weights, np.eye(30), noise=0.5)
    for n in range(len(risks)):
        x, y = population.sample(10, rng)
        w = np.append(np.linalg.pinv(x[:, :k]) @ y, np.zeros(30 - k))
        risks[n] = population.risk(w)
    expected = double_descent_risk(k, 10, weights, noise=0.5)
    assert abs(risks.mean() - expected) < 4 * risks.std() / np.sqrt(len(risks))


@pytest.mark.row("L1-02")
def test_double_descent_below_and_at_interpolation():
    expected = expected_least_squares_risks(10, 20, noise=1.5)[1]
    assert double_descent_risk(10, 20, np.ones(10), noise=1.5) == pytest.approx(expected)
    assert [double_descent_risk(k, 4, np.ones(9), 1.0) for k in (3, 4, 5)] == [np.inf] * 3
    with pytest.raises(ValueError, match="1 to 9 of the features; got k = 10"):
        double_descent_risk(10, 4, np.ones(9), 1.0)


@pytest.mark.row("L1-38")
def test_sine_risk_and_slope_match_autograd(rng):
    x, y, frequencies = rng.uniform(-1, 1, size=9), rng.normal(size=9), np.array([0.3, 2.0, 7.1])
    omega, inputs, labels = in_torch(frequencies, x, y)
    omega.requires_grad_(True)
    losses = ((torch.sin(torch.pi * omega[:, None] * inputs) - labels) ** 2).mean(axis=1)
    losses.sum().backward()
    J, slope = sine_risk(frequencies, x, y)
    np.testing.assert_allclose(J, losses.detach(), rtol=1e-12)
    np.testing.assert_allclose(slope, omega.grad, rtol=1e-12, atol=1e-14)


@pytest.mark.row("L1-38")
def test_three_starts_reach_three_different_minima():
    """The oracle is a search of all minima on a fine grid, which knows nothing of slopes."""

    def h(t):
        return np.sin(2 * np.pi * t) + 0.9 * np.sin(5 * np.pi * t)

    x, y = NoisyCurve(h, noise=0.3).sample(20, np.random.default_rng(1))
    grid = np.linspace(1, 9.5, 4001)
    J = np.mean((np.sin(np.pi * np.outer(grid, x)) - y) ** 2, axis=1)
    minima = grid[1:-1][(J[1:-1] < J[:-2]) & (J[1:-1] < J[2:])]
    starts = [np.array([start]) for start in (1.3, 4.2, 8.6)]
    ends = [sgd(lambda w, _: sine_risk(w, x, y)[1], w, [x] * 400, lr=0.02)[-1] for w in starts]
    np.testing.assert_allclose(np.concatenate(ends), minima, atol=3e-3)
    good, acceptable, bad = np.interp(minima, grid, J)
    assert good < acceptable < 1.05 * good
    assert bad > 2 * good


# --- Losses of the margin


@pytest.mark.row("L1-03")
def test_margin_is_positive_for_right_answers_only(rng):
    (w, b), (x, y) = CLASSIFIER, POPULATION.sample(300, rng)
    right = np.sign(x @ w + b) == y
    np.testing.assert_array_equal(margins(w, b, x, y) > 0, right)
    assert zero_one_risk(w, b, x, y) == (~right).mean()


@pytest.mark.row("L1-03")
@pytest.mark.parametrize("name", SURROGATES)
def test_surrogates_bound_zero_one_loss(name):
    grid = np.append(np.linspace(-8, 8, 4001), 0.0)
    value, _ = SURROGATES[name](grid)
    assert np.all(value >= zero_one_loss(grid))
    assert SURROGATES[name](np.zeros(1))[0][0] == pytest.approx(1, abs=1e-15)


@pytest.mark.row("L1-03")
def test_in_nats_the_logistic_loss_is_no_bound():
    nats = np.log(2) * logistic_loss(np.zeros(1))[0]
    assert nats[0] == pytest.approx(0.6931471805599453)
    assert nats[0] < zero_one_loss(np.zeros(1))[0]


@pytest.mark.row("L1-03")
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (logistic_loss, lambda m: torch.nn.functional.softplus(-m, threshold=1e9) / np.log(2)),
        (hinge_loss, lambda m: torch.clamp(1 - m, min=0)),
        (exponential_loss, lambda m: torch.exp(-m)),
        (
            squared_loss,
            lambda m: torch.nn.functional.mse_loss(m, torch.ones_like(m), reduction="none"),
        ),
    ],
    ids=["logistic", "hinge", "exponential", "squared"],
)
def test_values_and_derivatives_agree_with_torch(ours, theirs, rng):
    grid = rng.normal(scale=3, size=100)
    tensor = torch.tensor(grid, requires_grad=True)
    losses = theirs(tensor)
    losses.sum().backward()
    value, derivative = ours(grid)
    np.testing.assert_allclose(value, losses.detach(), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(derivative, tensor.grad, rtol=1e-12, atol=1e-15)


@pytest.mark.row("L1-03")
def test_logistic_loss_does_not_overflow():
    value, derivative = logistic_loss(np.array([-5000.0, 5000.0]))
    np.testing.assert_allclose(value, [5000 / np.log(2), 0])
    np.testing.assert_allclose(derivative, [-1 / np.log(2), 0])


@pytest.mark.row("L1-03")
def test_zero_one_gradient_vanishes_unlike_surrogates(rng):
    (w, b), (x, y) = CLASSIFIER, POPULATION.sample(200, rng)
    risk = lambda w: zero_one_risk(w, b, x, y)  # noqa: E731
    assert not scipy.optimize.approx_fprime(w, risk, 1e-9).any()
    for loss in SURROGATES.values():
        slope = x.T @ (loss(margins(w, b, x, y))[1] * y) / len(y)
        assert np.linalg.norm(slope) > 1e-3


@pytest.mark.row("L1-03")
def test_hinge_gradient_agrees_with_torch(rng):
    w, x, y = rng.normal(size=3), rng.normal(size=(50, 3)), rng.choice([-1, 1], size=50)
    v, a, labels = in_torch(w.copy(), x, y)
    v.requires_grad_(True)
    torch.clamp(1 - labels * (a @ v), min=0).mean().backward()
    np.testing.assert_allclose(hinge_risk_gradient(w, x, y), v.grad, rtol=1e-12)


@pytest.mark.row("L1-03")
@pytest.mark.parametrize(("m", "d"), [(1, 1), (4, 1), (4, 2), (5, 2), (5, 3), (4, 4), (3, 5)])
def test_dichotomy_count_matches_enumeration(m, d, rng):
    """A labeling is linear if some w has all margins at least 1: a linear program."""
    x = rng.normal(size=(m, d))
    feasible = 0
    for labels in itertools.product([-1, 1], repeat=m):
        program = scipy.optimize.linprog(
            np.zeros(d),
            A_ub=-np.array(labels)[:, None] * x,
            b_ub=-np.ones(m),
            bounds=[(None, None)] * d,
        )
        feasible += program.status == 0
    assert count_dichotomies(m, d) == feasible


@pytest.mark.row("L1-03")
def test_dichotomies_need_points():
    with pytest.raises(ValueError, match="got m = 0, d = 2"):
        count_dichotomies(0, 2)


# --- Margins of a network, and early stopping


@pytest.mark.row("L1-04")
def test_classification_margins_agree_with_sorting(rng):
    scores, labels = rng.normal(size=(40, 5)), rng.integers(5, size=40)
    ours = classification_margins(scores, labels)
    for row, label, margin in zip(scores, labels, ours, strict=True):
        assert margin == row[label] - max(s for k, s in enumerate(row) if k != label)
    np.testing.assert_array_equal(ours > 0, scores.argmax(axis=1) == labels)


@pytest.mark.row("L1-04")
def test_rescaling_leaves_normalized_margin_unchanged(rng):
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(4, 6, bias=False), torch.nn.ReLU(), torch.nn.Linear(6, 3, bias=False)
    )
    inputs, labels = torch.randn(10, 4), rng.integers(3, size=10)
    hook, state = MarginHook(inputs, labels), SimpleNamespace(model=network, curves={})
    for _ in range(2):
        hook.after_epoch(state)
        with torch.no_grad():
            for weight in network.parameters():
                weight *= 3
    # of the first margins, by hand
    scores = network(inputs).detach().numpy() / 81
    by_hand = [
        row[label] - np.delete(row, label).max() for row, label in zip(scores, labels, strict=True)
    ]
    curves = state.curves
    assert curves["smallest_margin"][0] == pytest.approx(min(by_hand), rel=1e-4)
    median = np.median(by_hand)
    assert curves["median_margin"] == pytest.approx([median, 9 * median], rel=1e-4)
    first, second = curves["normalized_margin"]
    assert second == pytest.approx(first, rel=1e-5)


@pytest.mark.row("L1-05")
def test_gradient_norm_hook_matches_numpy_softmax_regression(softmax):
    W, x, labels = softmax
    network = torch.nn.Linear(4, 3, bias=False, dtype=torch.float64)
    network.weight.data = torch.tensor(W.T.copy())
    optimizer = torch.optim.SGD(network.parameters(), lr=1.0)
    state = SimpleNamespace(model=network, optimizer=optimizer, curves={})
    hook = GradientNormHook(*in_torch(x, labels), torch.nn.functional.cross_entropy)
    hook.after_epoch(state)
    hook.after_epoch(state)
    expected = np.linalg.norm(batch_gradient(W, x, labels))
    assert state.curves["batch_gradient_norm"] == pytest.approx([expected] * 2)
    assert network.weight.grad is None


@pytest.mark.row("L1-05")
def test_early_stopping_hook_keeps_best_weights():
    errors, hook = [0.5, 0.3, 0.4, 0.2, 0.3, 0.3, 0.1], EarlyStopping(patience=2)
    network = torch.nn.Linear(1, 1)
    state = SimpleNamespace(model=network, stop=None, curves={"validation_error": []})
    for epoch, error in enumerate(errors):
        torch.nn.init.constant_(network.weight, epoch)
        state.curves["validation_error"].append(error)
        hook.after_epoch(state)
        if state.stop:
            break
    assert (hook.best, epoch) == early_stopping(errors, 2) == (3, 5)
    assert state.stop == "no better validation error for 2 epochs"
    assert hook.best_weights["weight"].item() == 3


def small_network(bias):
    """Return a network for digits with one hidden layer, the same every time."""
    torch.manual_seed(0)
    first, last = torch.nn.Linear(64, 256, bias=bias), torch.nn.Linear(256, 10, bias=bias)
    return torch.nn.Sequential(first, torch.nn.ReLU(), last)


def all_digits(seed):
    digits = load("digits")
    x, y = (
        np.append(digits.x_train, digits.x_test, axis=0),
        np.append(digits.y_train, digits.y_test),
    )
    order = np.random.default_rng(seed).permutation(len(y))
    return x[order], y[order]


@pytest.mark.row("L1-04")
def test_test_error_falls_after_zero_training_error():
    """Of four networks, each with other data: the mean falls, every smallest margin grows."""
    before, after = [], []
    for seed in range(4):
        x, y = all_digits(seed)
        network, few = small_network(bias=False), Examples(x[:100], y[:100])
        record = train(
            network,
            few,
            torch.optim.SGD(network.parameters(), lr=0.05),
            validation=Examples(x[100:], y[100:]),
            epochs=140,
            batch_size=8,
            hooks=[MarginHook(torch.from_numpy(few.x), few.y)],
            seed=seed,
        )
        curves = record.curves
        zero = np.flatnonzero(curves["train_error"])[-1] + 1
        assert zero < 80
        before.append(curves["validation_error"][zero])
        after.append(curves["validation_error"][-1])
        assert curves["normalized_margin"][-1] > 2 * curves["normalized_margin"][zero] > 0
        assert curves["median_margin"][-1] > curves["median_margin"][zero]
    assert np.mean(after) < np.mean(before) - 0.005


@pytest.mark.row("L1-05")
def test_early_stopping_halts_at_large_surrogate_gradient(capsys):
    x, y = all_digits(0)
    rng = np.random.default_rng(0)
    wrong = rng.choice(500, size=100, replace=False)
    y[wrong] = (y[wrong] + rng.integers(1, 10, size=100)) % 10
    network, stopper = small_network(bias=True), EarlyStopping(patience=10)
    inputs, labels = torch.from_numpy(x[:500]), torch.from_numpy(y[:500])
    measure = GradientNormHook(inputs, labels, torch.nn.functional.cross_entropy)
    record = train(
        network,
        Examples(x[:500], y[:500]),
        torch.optim.SGD(network.parameters(), lr=0.05),
        validation=Examples(x[500:1000], y[500:1000]),
        epochs=200,
        batch_size=16,
        hooks=[measure, stopper],
        seed=0,
    )
    errors, norms = (record.curves[name] for name in ("validation_error", "batch_gradient_norm"))
    assert early_stopping(errors, 10) == (stopper.best, len(errors) - 1)
    assert len(errors) < 100  # it did halt
    print(f"gradient norm at the halt {norms[-1]:.2f}, after the first epoch {norms[0]:.2f}")
    assert "gradient norm at the halt" in capsys.readouterr().out
    assert norms[-1] > 0.5 * norms[0]
    network.load_state_dict(stopper.best_weights)
    scores = network(torch.from_numpy(x[500:1000])).detach().numpy()
    assert np.mean(scores.argmax(axis=1) != y[500:1000]) == pytest.approx(min(errors))


def best_and_halt_by_definition(errors, patience):
    """Read the rule as it is told: try every epoch as the halt."""
    for halt in range(len(errors)):
        best = int(np.argmin(errors[: halt + 1]))
        if halt - best >= patience:
            return best, halt
    return int(np.argmin(errors)), len(errors) - 1


@pytest.mark.row("L1-05")
def test_early_stopping_agrees_with_its_definition(rng):
    for _ in range(300):
        errors = rng.integers(1, 8, size=rng.integers(1, 15)) / 10
        patience = int(rng.integers(1, 5))
        assert early_stopping(list(errors), patience) == best_and_halt_by_definition(
            errors, patience
        )


@pytest.mark.row("L1-05")
@pytest.mark.parametrize(
    ("errors", "patience", "expected"),
    [
        ([0.3], 1, (0, 0)),
        ([0.3, 0.2, 0.1], 1, (2, 2)),
        ([0.3, 0.3], 1, (0, 1)),
        ([0.3, 0.4, 0.2, 0.5, 0.6, 0.1], 2, (2, 4)),
        ([0.3, 0.4, 0.5, 0.6], 9, (0, 3)),
    ],
)
def test_early_stopping_by_hand(errors, patience, expected):
    assert early_stopping(errors, patience) == expected


@pytest.mark.row("L1-05")
def test_early_stopping_refuses_invalid_arguments():
    with pytest.raises(ValueError, match="0 epochs and patience 3"):
        early_stopping([], 3)
    with pytest.raises(ValueError, match="patience 0"):
        early_stopping([0.1], 0)
    with pytest.raises(ValueError, match="at least 1 epoch; got 0"):
        EarlyStopping(0)


# --- Log-likelihood


@pytest.fixture
def softmax(rng):
    return rng.normal(size=(4, 3)), rng.normal(size=(12, 4)), rng.integers(3, size=12)


@pytest.mark.row("L1-06")
def test_log_likelihoods_agree_with_torch(softmax):
    W, x, labels = in_torch(*softmax)
    theirs = -torch.nn.functional.cross_entropy(x @ W, labels, reduction="none")
    np.testing.assert_allclose(log_likelihoods(*softmax), theirs, rtol=1e-12)


@pytest.mark.row("L1-06")
def test_per_example_gradients_match_autograd(softmax):
    W, x, labels = in_torch(*softmax)

    def log_p(W, x, label):
        return -torch.nn.functional.cross_entropy(x @ W, label)

    ours = per_example_gradients(*softmax)
    for i in range(len(x)):
        V = W.clone().requires_grad_(True)
        log_p(V, x[i], labels[i]).backward()
        np.testing.assert_allclose(ours[i], V.grad, atol=1e-14)


@pytest.mark.row("L1-06")
def test_per_example_gradients_sum_to_batch_gradient(softmax):
    W, x, labels = in_torch(*softmax)
    W.requires_grad_(True)
    (-torch.nn.functional.cross_entropy(x @ W, labels, reduction="sum")).backward()
    np.testing.assert_allclose(per_example_gradients(*softmax).sum(axis=0), W.grad, atol=1e-13)
    np.testing.assert_allclose(batch_gradient(*softmax), W.grad / len(x), atol=1e-14)


@pytest.mark.row("L1-06")
def test_gradient_vanishes_at_scikit_learn_maximum_likelihood(softmax):
    _, x, labels = softmax
    x = np.repeat(x, 10, axis=0) + np.random.default_rng(0).normal(size=(120, 4))
    labels = np.repeat(labels, 10)
    model = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=2000)
    weights = model.fit(x, labels).coef_.T
    assert np.abs(batch_gradient(weights, x, labels)).max() < 1e-5
    assert np.abs(batch_gradient(0 * weights, x, labels)).max() > 1e-2


# --- The noise of a minibatch


@pytest.mark.row("L1-07")
@pytest.mark.parametrize("n", [1, 2, 3, 5, 6])
def test_standard_error_is_exact_over_all_minibatches(n, rng):
    """Enumerate every possible minibatch, with and without replacement."""
    values = rng.normal(size=6)
    without = [np.mean(c) for c in itertools.combinations(values, n)]
    assert standard_error(float(values.std()), n, 6) == pytest.approx(np.std(without), abs=1e-15)
    if n <= 3:
        drawn = [np.mean(c) for c in itertools.product(values, repeat=n)]
        assert standard_error(float(values.std()), n) == pytest.approx(np.std(drawn))


@pytest.mark.row("L1-07")
def test_both_sigma_conventions_agree(rng):
    values, n = rng.normal(size=9), 4
    s = values.std(ddof=1)
    other = s / np.sqrt(n) * np.sqrt(1 - n / 9)
    assert standard_error(float(values.std()), n, 9) == pytest.approx(other)


@pytest.mark.row("L1-07")
@pytest.mark.parametrize("replace", [True, False])
def test_measured_minibatch_noise_agrees_with_the_formula(replace, rng):
    gradients, sizes, draws = rng.normal(size=(60, 4)) * [1, 2, 3, 4], [2, 10, 40], 2000
    measured = minibatch_errors(gradients, sizes, draws, rng, replace)
    sigma = gradient_spread(gradients)
    formula = [standard_error(sigma, n, None if replace else 60) for n in sizes]
    np.testing.assert_allclose(measured, formula, rtol=0.06)


@pytest.mark.row("L1-07")
def test_returns_are_less_than_linear():
    assert standard_error(1.0, 10_000) == standard_error(1.0, 100) / 10


@pytest.mark.row("L1-07")
def test_spread_is_root_trace_of_covariance(rng):
    gradients = rng.normal(size=(30, 4))
    assert gradient_spread(gradients) == pytest.approx(
        np.sqrt(np.trace(np.cov(gradients.T, bias=True)))
    )


@pytest.mark.row("L1-07")
def test_standard_error_refuses_invalid_arguments():
    assert standard_error(2.0, 1, 1) == 0  # the only minibatch there is
    with pytest.raises(ValueError, match="cannot draw 5 different values out of 4"):
        standard_error(1.0, 5, 4)
    with pytest.raises(ValueError, match="n = 0"):
        standard_error(1.0, 0)
    with pytest.raises(ValueError, match="sigma = -1"):
        standard_error(-1.0, 1)


@pytest.mark.row("L1-08")
@pytest.mark.parametrize("copies", [2, 5])
def test_deduplicated_data_give_the_same_gradient(copies, softmax):
    W, x, labels = softmax
    many = batch_gradient(W, np.tile(x, (copies, 1)), np.tile(labels, copies))
    np.testing.assert_allclose(batch_gradient(W, x, labels), many, atol=1e-15)
    once, y, shares = unique_examples(np.tile(x, (copies, 1)), np.tile(labels, copies))
    assert once.shape == x.shape
    np.testing.assert_allclose(shares, 1 / len(x))
    np.testing.assert_allclose(batch_gradient(W, once, y), many, atol=1e-15)


@pytest.mark.row("L1-08")
def test_merged_examples_keep_gradient_and_labels(softmax, rng):
    W, x, labels = softmax
    drawn = rng.integers(len(x), size=100)
    x, labels = x[drawn], labels[drawn]
    x[3], labels[3], labels[4] = x[4], 0, 1  # equal features, other label: not a copy
    once, y, shares = unique_examples(x, labels)
    assert len(y) < 20
    merged = np.tensordot(shares, per_example_gradients(W, once, y), axes=1)
    W, x, labels = in_torch(W, x, labels)
    W.requires_grad_(True)
    (-torch.nn.functional.cross_entropy(x @ W, labels)).backward()
    np.testing.assert_allclose(merged, W.grad, atol=1e-14)


@pytest.mark.row("L1-07")
@pytest.mark.parametrize("population", [None, 1, 2, 37, 400])
def test_examples_needed_is_the_smallest_sufficient_size(population):
    """The oracle tries one size after the other."""
    for error in (0.05, 0.21, 0.9, 3.0):
        sizes = itertools.count(1)
        first = next(n for n in sizes if standard_error(1.3, n, population) <= error)
        assert examples_needed(error, 1.3, population) == first
    with pytest.raises(ValueError, match="got 0 and 1"):
        examples_needed(0, 1)


@pytest.mark.row("L1-06", "L1-07")
def test_softmax_noise_matches_autograd(softmax):
    W, x, labels = softmax
    W, x, labels = in_torch(W, x, labels)
    W.requires_grad_(True)
    gradients = []
    for features, label in zip(x, labels, strict=True):
        loss = torch.nn.functional.cross_entropy((features @ W)[None], label[None])
        gradients.append(torch.autograd.grad(loss, W)[0].ravel())
    each = torch.stack(gradients)
    spread = torch.sqrt(each.var(dim=0, correction=0).sum())
    expected = each.mean(dim=0).norm().item(), spread.item()
    np.testing.assert_allclose(softmax_noise(*softmax), expected, rtol=1e-10)
    one = [array[:1] for array in softmax[1:]]
    assert softmax_noise(softmax[0], *one)[1] == pytest.approx(0, abs=1e-7)


# --- Batch, minibatch, online


@pytest.mark.row("L1-09")
@pytest.mark.parametrize(("m", "n"), [(10, 3), (10, 10), (10, 1), (12, 4)])
def test_minibatches_partition_the_epoch(m, n, rng):
    batches = minibatches(m, n, rng)
    assert sorted(np.concatenate(batches)) == list(range(m))
    assert [len(b) for b in batches[:-1]] == [n] * (len(batches) - 1)
    assert len(batches) == update_cost(m, n).updates_per_epoch
    assert len(batches[-1]) == (m % n or n)


@pytest.mark.row("L1-09")
def test_minibatches_match_torch_loader():
    loader = torch.utils.data.DataLoader(torch.arange(23), batch_size=5)
    lengths = [len(batch) for batch in loader]
    assert [len(b) for b in minibatches(23, 5, np.random.default_rng(0))] == lengths


@pytest.mark.row("L1-09")
def test_first_minibatch_is_uniform_over_examples(rng):
    first = np.concatenate([minibatches(6, 2, rng)[0] for _ in range(3000)])
    np.testing.assert_allclose(np.bincount(first) / 3000, 1 / 3, atol=0.04)


@pytest.mark.row("L1-09")
@pytest.mark.parametrize(("n", "name"), [(50, "batch"), (7, "minibatch"), (1, "online")])
def test_names_and_costs_of_an_update(n, name):
    cost = update_cost(50, n)
    assert (cost.name, cost.gradients_per_update) == (name, n)
    assert cost.updates_per_epoch == np.ceil(50 / n)


@pytest.mark.row("L1-09")
@pytest.mark.parametrize("n", [0, 11])
def test_minibatch_size_out_of_range_is_refused(n, rng):
    with pytest.raises(ValueError, match=f"got n = {n}"):
        minibatches(10, n, rng)
    with pytest.raises(ValueError, match=f"got n = {n}"):
        update_cost(10, n)


@pytest.mark.row("L1-09")
@pytest.mark.parametrize("n", [1, 8, 64])
def test_memory_matches_tensors_saved_by_autograd(n):
    widths = [20, 16, 12, 5]
    layers = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.Tanh()]
    network = torch.nn.Sequential(*layers[:-1])
    weights = {p.data_ptr() for p in network.parameters()}
    saved = {}

    def pack(tensor):
        if tensor.data_ptr() not in weights:
            saved[tensor.data_ptr()] = tensor.numel()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = network(torch.randn(n, 20)).sum()
    assert out.requires_grad  # the graph is alive: no address was used twice
    assert stored_activations(n, widths) == sum(saved.values())


@pytest.mark.row("L1-09")
@pytest.mark.parametrize("n", [1, 4, 12])
def test_sgd_matches_torch(n, rng):
    x, y, w = rng.normal(size=(12, 3)), rng.normal(size=12), rng.normal(size=3)
    batches = minibatches(12, n, rng)
    path = sgd(lambda w, i: squared_gradients(w, x[i], y[i]).mean(axis=0), w, batches, lr=0.1)
    v = torch.tensor(w, requires_grad=True)
    optimizer = torch.optim.SGD([v], lr=0.1)
    a, labels = in_torch(x, y)
    for indices, iterate in zip(batches, path[1:], strict=True):
        optimizer.zero_grad()
        (0.5 * (a[indices] @ v - labels[indices]) ** 2).mean().backward()
        optimizer.step()
        np.testing.assert_allclose(iterate, v.detach(), rtol=1e-11)
    np.testing.assert_array_equal(path[0], w)


# --- Batch sizes that a method tolerates


@pytest.fixture
def stiff(rng):
    """A Hessian with κ = 1000 in a rotated basis."""
    u, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    return (u * np.geomspace(1, 1000, 5)) @ u.T


@pytest.mark.row("L1-10")
def test_newton_direction_reaches_quadratic_minimum(stiff, rng):
    minimum, w = rng.normal(size=5), rng.normal(size=5)
    np.testing.assert_allclose(w - newton_direction(stiff, stiff @ (w - minimum)), minimum)


@pytest.mark.row("L1-10")
def test_amplification_matches_inverse_and_respects_kappa(stiff, rng):
    inverse = np.linalg.inv(stiff)
    for _ in range(200):
        g, e = rng.normal(size=(2, 5))
        relative = np.linalg.norm(inverse @ (g + e) - inverse @ g) / np.linalg.norm(inverse @ g)
        expected = relative / (np.linalg.norm(e) / np.linalg.norm(g))
        assert error_amplification(stiff, g, e) == pytest.approx(expected, rel=1e-9)
        assert error_amplification(stiff, g, e) <= np.linalg.cond(stiff) * (1 + 1e-9)


@pytest.mark.row("L1-10")
def test_worst_directions_amplify_by_kappa(stiff):
    _, u = np.linalg.eigh(stiff)
    assert error_amplification(stiff, u[:, -1], 0.1 * u[:, 0]) == pytest.approx(1000)
    assert error_amplification(stiff, u[:, 0], 0.1 * u[:, -1]) == pytest.approx(1 / 1000)


@pytest.mark.row("L1-10")
def test_damping_bounds_the_amplification_and_ends_it(stiff):
    _, u = np.linalg.eigh(stiff)
    worst = error_amplification(stiff, u[:, -1], 0.1 * u[:, 0], damping=99.0)
    assert worst == pytest.approx((1000 + 99) / (1 + 99))
    assert error_amplification(stiff, u[:, -1], u[:, 0], damping=1e9) == pytest.approx(1, abs=1e-5)


@pytest.mark.row("L1-10")
def test_zero_vectors_have_no_relative_error():
    with pytest.raises(ValueError, match="not zero"):
        error_amplification(np.eye(2), np.zeros(2), np.ones(2))
    with pytest.raises(ValueError, match="not zero"):
        error_amplification(np.eye(2), np.ones(2), np.zeros(2))


@pytest.mark.row("L1-10")
def test_newton_needs_larger_batches_of_sufficient_size(rng):
    """Monte Carlo: minibatches of the required size have the required error."""
    population = LinearPopulation(np.ones(4), np.diag([100.0, 10.0, 1.0, 0.5]), noise=1.0)
    gradients = squared_gradients(np.zeros(4), *population.sample(5000, rng))
    newton = np.linalg.solve(population.covariance, gradients.T).T
    small, large = (required_batch_size(each, tolerance=0.3) for each in (gradients, newton))
    assert large > 5 * small
    for each, n in ((gradients, small), (newton, large)):
        (error,) = minibatch_errors(each, [n], 400, rng, replace=True)
        assert error / np.linalg.norm(each.mean(axis=0)) == pytest.approx(0.3, rel=0.15)


@pytest.mark.row("L1-10")
def test_required_batch_size_by_hand():
    gradients = np.array([[1.0], [3.0]])  # mean 2, σ = 1
    assert required_batch_size(gradients, 0.05) == 100
    assert required_batch_size(gradients, 0.3) == 3  # 2.78
    with pytest.raises(ValueError, match="above 0; got 0"):
        required_batch_size(gradients, 0.0)


# --- A stream of fresh data


@pytest.mark.row("L1-11")
def test_stream_gradients_are_unbiased(rng):
    population, w, count = correlated(3), rng.normal(size=3), 4000
    batches = itertools.islice(stream(population, 5, rng), count)
    gradients = np.array([squared_gradients(w, x, y).mean(axis=0) for x, y in batches])
    z = (gradients.mean(axis=0) - population.gradient(w)) / gradients.std(axis=0) * count**0.5
    assert np.abs(z).max() < 4


@pytest.mark.row("L1-11")
def test_fixed_sample_gradients_are_biased(rng):
    """They are unbiased for another gradient, that of the empirical risk."""
    population, w = correlated(3), rng.normal(size=3)
    x, y = population.sample(20, rng)
    gradients = squared_gradients(w, x, y)
    epoch = [gradients[i].mean(axis=0) for _ in range(500) for i in minibatches(20, 5, rng)]
    np.testing.assert_allclose(np.mean(epoch, axis=0), gradients.mean(axis=0), atol=1e-12)
    z = (np.mean(epoch, axis=0) - population.gradient(w)) / np.std(epoch, axis=0) * 2000**0.5
    assert np.abs(z).max() > 4


@pytest.mark.row("L1-11")
def test_stream_never_repeats_examples(rng):
    batches = itertools.islice(stream(correlated(2), 3, rng), 50)
    x = np.concatenate([x for x, _ in batches])
    assert len(np.unique(x[:, 0])) == 150


@pytest.mark.row("L1-11")
def test_mean_stream_path_matches_risk_gradient_descent(rng):
    """For a quadratic loss this is exact: E[w] ← E[w] − η ∇J*(E[w])."""
    population, steps, runs, lr = correlated(2), 6, 3000, 0.08
    start = np.array([2.0, -1.0])
    paths = np.array(
        [stream_sgd(start, *population.sample(4 * steps, rng), lr=lr, n=4) for _ in range(runs)]
    )
    w = start
    for step in range(1, steps + 1):
        w = w - lr * population.covariance @ (w - population.weights)
        z = (paths[:, step].mean(axis=0) - w) / paths[:, step].std(axis=0) * np.sqrt(runs)
        assert np.abs(z).max() < 4


@pytest.mark.row("L1-11")
def test_stream_must_divide_into_minibatches():
    with pytest.raises(ValueError, match="stream of 5 examples must divide into minibatches of 2"):
        stream_sgd(np.zeros(1), np.ones((5, 1)), np.ones(5), 0.1, 2)


# --- The module


def test_public_objects_name_their_source_row():
    for name in erm.__all__:
        thing = getattr(erm, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert name == "Population" or "Source: L1-" in thing.__doc__, name
