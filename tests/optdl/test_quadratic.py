"""Chapter 2: every result is compared with one that the code did not produce."""

import inspect
import itertools

import numpy as np
import pytest
import scipy.optimize
import scipy.spatial
import torch

from optdl import problems
from optdl.problems import Problem
from optdl.quadratic import (
    QuadraticModel,
    alignment,
    approximation_error,
    approximation_order,
    contributions_from_gradient,
    convergence_rate,
    depth_norms,
    eigen_contributions,
    eigen_power,
    eigenbasis,
    exact_line_search,
    gd_coefficients,
    gradient_descent,
    largest_stable_step,
    logistic_regression,
    mean_and_covariance,
    measured_rates,
    optimal_step,
    prediction_ratio,
    scheduled_coefficients,
    search_along,
    second_moment,
    threes_and_eights,
    zigzag,
)

torch.set_num_threads(1)

# torch's own forward-mode code still uses it
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")


def positive_definite(rng, n, low=0.3, high=4.0):
    """A full matrix with equally spaced eigenvalues from low to high."""
    rotation, _ = np.linalg.qr(rng.normal(size=(n, n)))
    H = (rotation * np.linspace(low, high, n)) @ rotation.T
    return (H + H.T) / 2


def in_torch(w):
    """The test function J(w) = log(1 + e^(w₀w₁)) + sin(w₂) w₀ + ½ w₁², for autograd."""
    return torch.nn.functional.softplus(w[0] * w[1]) + torch.sin(w[2]) * w[0] + w[1] ** 2 / 2


def autograd_problem():
    """The test function with the derivatives that autograd gives."""
    tensor = lambda w: torch.as_tensor(w, dtype=torch.float64)  # noqa: E731
    return Problem(
        name="test function",
        value=lambda w: float(in_torch(tensor(w))),
        gradient=lambda w: torch.func.grad(in_torch)(tensor(w)).numpy(),
        hessian=lambda w: torch.func.hessian(in_torch)(tensor(w)).numpy(),
        minimum=None,
        start=np.zeros(3),
    )


def digits_problem(penalty=1e-2):
    """Logistic regression that tells the digits 3 and 8 apart; 64 pixels and a bias."""
    x, y = threes_and_eights()
    return x, y, logistic_regression(x, y, penalty)


# --- the model: L1-12, L1-13 ------------------------------------------------------------------


@pytest.mark.row("L1-12")
def test_model_is_the_second_order_taylor_polynomial(rng):
    # oracle: derivatives of t ↦ J(ŵ + t d) at 0, by autograd along the line
    center, d = rng.normal(size=3), rng.normal(size=3)
    line = lambda t: in_torch(torch.tensor(center) + t * torch.tensor(d))  # noqa: E731
    zero = torch.zeros((), dtype=torch.float64)
    slope, curvature = torch.func.grad(line)(zero), torch.func.grad(torch.func.grad(line))(zero)
    expected = float(line(zero) + slope + 0.5 * curvature)
    assert QuadraticModel.of(autograd_problem(), center)(center + d) == pytest.approx(
        expected, rel=1e-12
    )


@pytest.mark.row("L1-12")
def test_model_of_a_quadratic_is_exact(rng):
    H, w_star = positive_definite(rng, 4), rng.normal(size=4)
    center, w = rng.normal(size=4), rng.normal(size=4)
    expected = 7.0 + 0.5 * (w - w_star) @ H @ (w - w_star)
    loss = Problem(
        name="quadratic",
        value=lambda v: 7.0 + 0.5 * float((v - w_star) @ H @ (v - w_star)),
        gradient=lambda v: H @ (v - w_star),
        hessian=lambda v: H,
        minimum=w_star,
        start=center,
    )
    got = QuadraticModel.of(loss, center)(w)
    assert got == pytest.approx(expected, rel=1e-12)


@pytest.mark.row("L1-12")
def test_prediction_ratio_error_follows_third_derivative(rng):
    # oracle: for J = e^w at 0 and the change h: (e^h − 1)/(h + h²/2) = 1 + h²/6 + …
    at = lambda w: float(np.exp(w[0]))  # noqa: E731
    for h in (1e-2, -1e-2):
        ratio = prediction_ratio(
            at, np.exp, lambda w: np.diag(np.exp(w)), np.zeros(1), np.array([h])
        )
        assert ratio - 1 == pytest.approx(h**2 / 6, rel=0.01)
    H, w_star = positive_definite(rng, 3), rng.normal(size=3)
    bowl = problems.quadratic(H, w_star)
    center, w = w_star + rng.normal(size=3), w_star
    ratio = prediction_ratio(bowl.value, bowl.gradient, bowl.hessian, center, w)
    assert ratio == pytest.approx(1, rel=1e-12)


@pytest.mark.row("L1-12")
def test_error_is_third_order_on_smooth_function(rng):
    distances = np.geomspace(1e-3, 1e-1, 9)
    for _ in range(5):
        center, d = rng.normal(size=3), rng.normal(size=3)
        errors = approximation_error(autograd_problem(), center, d, distances)
        assert approximation_order(distances, errors) == pytest.approx(3, abs=0.2)


@pytest.mark.row("L1-12")
def test_rosenbrock_error_matches_third_derivative():
    # oracle: along (1, 0) from (x, y), the third derivative of 100(y − x²)² + (1 − x)² is 2400x;
    # the fourth is 2400, and there are no higher ones
    distances = np.geomspace(1e-3, 1e-1, 9)
    center, d = np.array([0.5, 0.2]), np.array([1.0, 0.0])
    errors = approximation_error(problems.rosenbrock(), center, d, distances)
    expected = 2400 * 0.5 / 6 * distances**3 + 2400 / 24 * distances**4
    np.testing.assert_allclose(errors, expected, rtol=1e-6)
    assert approximation_order(distances, errors) == pytest.approx(3, abs=0.05)


@pytest.mark.row("L1-12")
def test_error_is_of_third_order_on_real_data(rng):
    _, _, problem = digits_problem()
    distances = np.geomspace(0.02, 0.5, 7)
    errors = approximation_error(problem, rng.normal(size=65) / 8, rng.normal(size=65), distances)
    assert approximation_order(distances, errors) == pytest.approx(3, abs=0.3)


@pytest.mark.row("L1-12")
def test_order_recovers_the_exponent_of_a_power_law():
    h = np.geomspace(0.01, 1, 5)
    for p in (1, 2, 3, 4):
        assert approximation_order(h, 0.3 * h**p) == pytest.approx(p, abs=1e-12)


@pytest.mark.row("L1-13")
def test_model_gradient_matches_autograd(rng):
    H, g, center = positive_definite(rng, 4), rng.normal(size=4), rng.normal(size=4)
    w = torch.tensor(rng.normal(size=4), requires_grad=True)
    d = w - torch.tensor(center)
    (2.0 + d @ torch.tensor(g) + 0.5 * d @ torch.tensor(H) @ d).backward()
    model = QuadraticModel(2.0, g, H, center)
    np.testing.assert_allclose(model.gradient(w.detach().numpy()), w.grad.numpy(), rtol=1e-12)


@pytest.mark.row("L1-13")
def test_model_gradient_error_is_second_order(rng):
    problem, center, d = autograd_problem(), rng.normal(size=3), rng.normal(size=3)
    model = QuadraticModel.of(problem, center)
    distances = np.geomspace(1e-3, 1e-1, 7)
    errors = [
        np.linalg.norm(problem.gradient(center + h * d) - model.gradient(center + h * d))
        for h in distances
    ]
    assert approximation_order(distances, np.array(errors)) == pytest.approx(2, abs=0.2)


@pytest.mark.row("L1-39")
@pytest.mark.parametrize("curvature", [-1, 0, 1])
def test_curvature_sign_decides_decrease_against_tangent(rng, curvature):
    # oracle: the exact loss; its difference from the tangent is ½η²gᵀHg for a quadratic
    H = curvature * positive_definite(rng, 3)
    g, center, lr = rng.normal(size=3), rng.normal(size=3), 0.3
    loss = lambda w: g @ (w - center) + 0.5 * (w - center) @ H @ (w - center)  # noqa: E731
    model = QuadraticModel(0.0, g, H, center)
    after, tangent = center - lr * g, -lr * g @ g
    difference = model(after) - tangent
    assert difference == pytest.approx(loss(after) - tangent, abs=1e-12)
    assert difference == pytest.approx(0.5 * lr**2 * g @ H @ g, abs=1e-12)
    assert np.sign(round(difference, 12)) == curvature


@pytest.mark.row("L1-13")
def test_model_minimum_matches_scipy(rng):
    model = QuadraticModel(1.0, rng.normal(size=3), positive_definite(rng, 3), rng.normal(size=3))
    found = scipy.optimize.minimize(model, np.zeros(3), jac=model.gradient, tol=1e-10)
    np.testing.assert_allclose(model.minimum, found.x, atol=1e-7)
    np.testing.assert_allclose(model.gradient(model.minimum), 0, atol=1e-12)


def test_model_without_minimum_raises():
    saddle = QuadraticModel(0.0, np.zeros(2), np.diag([1.0, -2.0]), np.zeros(2))
    with pytest.raises(ValueError, match=r"positive definite.*-2"):
        _ = saddle.minimum


# --- the eigenbasis: L1-14 --------------------------------------------------------------------


@pytest.mark.row("L1-14")
def test_eigenbasis_agrees_with_numpy_and_is_orthonormal(rng):
    H = positive_definite(rng, 6)
    eigenvalues, U = eigenbasis(H)
    expected_values, expected_vectors = np.linalg.eigh(H)
    np.testing.assert_allclose(eigenvalues, expected_values, rtol=1e-12)
    np.testing.assert_allclose(np.abs(U.T @ expected_vectors), np.eye(6), atol=1e-12)
    np.testing.assert_allclose(U.T @ U, np.eye(6), atol=1e-13)
    np.testing.assert_allclose(H @ U, U * eigenvalues, atol=1e-13)
    assert np.all(U[np.abs(U).argmax(axis=0), np.arange(6)] > 0)


@pytest.mark.row("L1-14")
def test_contributions_match_numpy_and_sum_to_loss(rng):
    H, w_star, w = positive_definite(rng, 5), rng.normal(size=5), rng.normal(size=5)
    terms = eigen_contributions(H, w - w_star)
    eigenvalues, U = np.linalg.eigh(H)
    alpha = np.linalg.solve(U, w - w_star)  # the coefficients, without using orthonormality
    np.testing.assert_allclose(terms, eigenvalues * alpha**2 / 2, rtol=1e-10)
    assert terms.sum() == pytest.approx(problems.quadratic(H, w_star).value(w), rel=1e-12)


@pytest.mark.row("L1-14")
def test_contributions_from_gradient_match_displacement(rng):
    H, displacement = positive_definite(rng, 5), rng.normal(size=5)
    terms = contributions_from_gradient(H, H @ displacement)
    np.testing.assert_allclose(terms, eigen_contributions(H, displacement), rtol=1e-9)
    # oracle: the decrease by Newton's step, ½ gᵀH⁻¹g
    g = rng.normal(size=5)
    newton = 0.5 * g @ np.linalg.solve(H, g)
    assert contributions_from_gradient(H, g).sum() == pytest.approx(newton, rel=1e-12)


@pytest.mark.row("L1-14")
def test_expansion_describes_a_real_loss_near_its_minimum(rng):
    _, _, problem = digits_problem()
    d = rng.normal(size=65)
    distances = np.geomspace(0.02, 0.5, 7)
    errors = []
    for h in distances:
        step = h * d / np.linalg.norm(d)
        excess = problem.value(problem.minimum + step) - problem.value(problem.minimum)
        terms = eigen_contributions(problem.hessian(problem.minimum), step)
        errors.append(abs(excess - terms.sum()))
    assert approximation_order(distances, np.array(errors)) == pytest.approx(3, abs=0.3)


# --- gradient descent: L1-15 ------------------------------------------------------------------


@pytest.mark.row("L1-15")
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 1.0, 1.05])
def test_closed_form_matches_iterated_gradient_descent(rng, share):
    H, w_star, start = positive_definite(rng, 5), rng.normal(size=5), rng.normal(size=5)
    eigenvalues, U = np.linalg.eigh(H)
    lr = share * 2 / eigenvalues[-1]
    path = gradient_descent(problems.quadratic(H, w_star).gradient, start, lr, steps=40)
    measured = (path - w_star) @ U
    expected = gd_coefficients(U.T @ (start - w_star), eigenvalues, lr, steps=40)
    np.testing.assert_allclose(expected, measured, rtol=1e-12, atol=1e-12)


@pytest.mark.row("L1-15")
def test_scheduled_coefficients_follow_iteration_to_the_minimum(rng):
    H, w = positive_definite(rng, 4), rng.normal(size=4)
    eigenvalues, U = np.linalg.eigh(H)
    lrs = rng.uniform(0.1, 0.6, size=7)
    rows = scheduled_coefficients(U.T @ w, eigenvalues, lrs)
    for row, lr in zip(rows, [*lrs, 0.0], strict=True):
        np.testing.assert_allclose(U @ row, w, atol=1e-12)
        w = w - lr * H @ w
    last = scheduled_coefficients(np.ones(4), eigenvalues, 1 / rng.permutation(eigenvalues))[-1]
    np.testing.assert_allclose(last, 0, atol=1e-12)


@pytest.mark.row("L1-15")
def test_gradient_descent_matches_torch_sgd(rng):
    H, start = positive_definite(rng, 4), rng.normal(size=4)
    w = torch.tensor(start, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.2)
    expected = [start]
    for _ in range(6):
        optimizer.zero_grad()
        (0.5 * w @ torch.tensor(H) @ w).backward()
        optimizer.step()
        expected.append(w.detach().numpy().copy())
    np.testing.assert_allclose(gradient_descent(lambda v: H @ v, start, 0.2, 6), expected)


@pytest.mark.row("L1-15")
def test_one_step_shrinks_coefficients_by_their_eigenvalues():
    rows = gd_coefficients(np.array([2.0, -3.0]), np.array([0.5, 4.0]), lr=0.1, steps=1)
    np.testing.assert_allclose(rows[1] - rows[0], [-0.1 * 0.5 * 2.0, -0.1 * 4.0 * -3.0])


@pytest.mark.row("L1-15")
def test_descent_is_stable_exactly_below_the_limit(rng):
    for n in (1, 3, 8):
        H = positive_definite(rng, n)
        limit = largest_stable_step(np.linalg.eigvalsh(H))
        # oracle: the spectral radius of the iteration matrix
        for share, stable in ((0.01, True), (0.999, True), (1.001, False), (1.5, False)):
            radius = np.abs(np.linalg.eigvals(np.eye(n) - share * limit * H)).max()
            assert bool(radius < 1) == stable
            path = gradient_descent(lambda w, H=H: H @ w, np.ones(n), share * limit, steps=300)
            assert bool(np.linalg.norm(path[-1]) < np.linalg.norm(path[-100])) == stable


@pytest.mark.row("L1-15")
def test_negative_eigenvalue_diverges_at_any_step_size():
    rows = gd_coefficients(np.array([1e-3]), np.array([-1.0]), lr=0.01, steps=1000)
    assert np.all(np.diff(rows[:, 0]) > 0)
    assert rows[-1, 0] == pytest.approx(1e-3 * 1.01**1000)


@pytest.mark.row("L1-15")
def test_prediction_holds_on_real_data_near_the_minimum():
    _, _, problem = digits_problem()
    eigenvalues, U = np.linalg.eigh(problem.hessian(problem.minimum))
    start = problem.minimum + U @ np.full(65, 1e-4)
    lr = 1.8 / eigenvalues[-1]
    measured = (gradient_descent(problem.gradient, start, lr, 50) - problem.minimum) @ U
    predicted = gd_coefficients(np.full(65, 1e-4), eigenvalues, lr, 50)
    # the cubic term, of the order of the distance squared, is all that separates them
    np.testing.assert_allclose(measured, predicted, atol=1e-6)


@pytest.mark.row("L1-12", "L1-15")
def test_logistic_derivatives_and_minimum_match_libraries():
    from sklearn.linear_model import LogisticRegression

    x, y, problem = digits_problem()
    w = np.random.default_rng(3).normal(size=65)
    margins = lambda v: torch.tensor(y) * (torch.tensor(x) @ v)  # noqa: E731
    J = lambda v: torch.nn.functional.softplus(-margins(v)).mean() + 0.005 * v @ v  # noqa: E731
    at = torch.tensor(w)
    assert problem.value(w) == pytest.approx(float(J(at)), rel=1e-12)
    np.testing.assert_allclose(problem.gradient(w), torch.func.grad(J)(at).numpy(), atol=1e-13)
    np.testing.assert_allclose(problem.hessian(w), torch.func.hessian(J)(at).numpy(), atol=1e-13)
    np.testing.assert_allclose(problem.gradient(problem.minimum), 0, atol=1e-11)
    library = LogisticRegression(C=1 / (0.01 * len(y)), fit_intercept=False, tol=1e-10)
    library.set_params(solver="newton-cholesky").fit(x, y)
    np.testing.assert_allclose(problem.minimum, library.coef_[0], atol=1e-6)


# --- rates: P-05 ------------------------------------------------------------------------------


@pytest.mark.row("P-05")
def test_rate_is_the_norm_of_the_iteration_matrix(rng):
    H = positive_definite(rng, 5)
    for lr in (0.01, 0.3, 0.5, 0.7):
        expected = np.linalg.norm(np.eye(5) - lr * H, ord=2)
        assert convergence_rate(lr, np.linalg.eigvalsh(H)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.row("P-05")
def test_error_and_loss_fall_at_predicted_rate(rng):
    H = positive_definite(rng, 5)
    eigenvalues, U = np.linalg.eigh(H)
    for lr in (0.1, 0.3, 0.45):
        powers = convergence_rate(lr, eigenvalues) ** np.arange(13)
        path = gradient_descent(lambda w: H @ w, rng.normal(size=5), lr, 12)
        errors, losses = np.linalg.norm(path, axis=1), np.einsum("ti,ij,tj->t", path, H, path)
        assert np.all(errors <= powers * errors[0] * (1 + 1e-12))
        assert np.all(losses <= powers**2 * losses[0] * (1 + 1e-12))
        # a start along the slowest direction attains the bound
        slowest = U[:, np.abs(1 - lr * eigenvalues).argmax()]
        path = gradient_descent(lambda w: H @ w, slowest, lr, 12)
        np.testing.assert_allclose(np.linalg.norm(path, axis=1), powers, rtol=1e-10)


@pytest.mark.row("P-05")
def test_rate_depends_only_on_extreme_eigenvalues(rng):
    eigenvalues = rng.uniform(0.2, 3.0, size=20)
    ends = np.array([eigenvalues.min(), eigenvalues.max()])
    for lr in np.linspace(0, 1, 21):
        assert convergence_rate(lr, eigenvalues) == convergence_rate(lr, ends)


@pytest.mark.row("P-05")
def test_optimal_step_matches_scalar_minimization(rng):
    for _ in range(5):
        eigenvalues = rng.uniform(0.1, 5.0, size=6)
        found = scipy.optimize.minimize_scalar(
            convergence_rate,
            bounds=(0, 2 / eigenvalues.max()),
            args=(eigenvalues,),
            method="bounded",
            options={"xatol": 1e-10},
        )
        kappa = eigenvalues.max() / eigenvalues.min()
        assert optimal_step(eigenvalues) == pytest.approx(found.x, abs=1e-7)
        assert found.fun == pytest.approx((kappa - 1) / (kappa + 1), abs=1e-7)


@pytest.mark.row("P-05")
def test_measured_rate_reaches_the_predicted_one(rng):
    H = positive_definite(rng, 4)
    eigenvalues = np.linalg.eigvalsh(H)
    lrs = np.array([0.2, 0.5, 0.8, 0.95, 1.02]) * 2 / eigenvalues[-1]
    measured = measured_rates(H, rng.normal(size=4), lrs, steps=300)
    expected = [np.abs(1 - lr * eigenvalues).max() for lr in lrs]
    np.testing.assert_allclose(measured, expected, rtol=1e-6)


@pytest.mark.row("P-05")
def test_measured_rate_of_the_first_step_by_hand():
    # from (1, 1) with H = diag(1, 2) and step ½: (1, 1) → (½, 0) → (¼, 0)
    H = np.diag([1.0, 2.0])
    assert measured_rates(H, np.ones(2), np.array([0.5]), 1)[0] == pytest.approx(0.5 / 2**0.5)
    assert measured_rates(H, np.ones(2), np.array([0.5]), 2)[0] == pytest.approx(0.5)


# --- the mean input: F-08 ---------------------------------------------------------------------


@pytest.mark.row("F-08")
def test_second_moment_matches_autograd_hessians(rng):
    # oracle: autograd of the two losses
    x, y = torch.tensor(rng.normal(size=(20, 4)) + 2), torch.tensor(rng.choice([-1.0, 1.0], 20))
    w = torch.tensor(rng.normal(size=4))
    squared = lambda v: ((x @ v - y) ** 2).mean() / 2  # noqa: E731
    logistic = lambda v: torch.nn.functional.softplus(-y * (x @ v)).mean()  # noqa: E731
    slope = torch.sigmoid(x @ w)
    for loss, weights in ((squared, None), (logistic, (slope * (1 - slope)).numpy())):
        expected = torch.func.hessian(loss)(w).numpy()
        np.testing.assert_allclose(second_moment(x.numpy(), weights), expected, atol=1e-12)


@pytest.mark.row("F-08")
def test_mean_and_covariance_match_numpy(rng):
    x, weights = rng.normal(size=(30, 5)) + 3, rng.uniform(0, 2, size=30)
    for s in (None, weights):
        mean, covariance = mean_and_covariance(x, s)
        np.testing.assert_allclose(mean, np.average(x, axis=0, weights=s), rtol=1e-12)
        expected = np.cov(x, rowvar=False, ddof=0, aweights=s)
        np.testing.assert_allclose(covariance, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.row("F-08")
def test_hessian_is_covariance_plus_rank_one(rng):
    x, weights = rng.normal(size=(30, 5)) + 3, rng.uniform(0, 2, size=30)
    mean, covariance = mean_and_covariance(x, weights)
    remainder = second_moment(x, weights) / weights.mean() - covariance
    values, vectors = np.linalg.eigh(remainder)
    np.testing.assert_allclose(values[:-1], 0, atol=1e-12)
    assert values[-1] == pytest.approx(np.sum(mean**2), rel=1e-12)
    assert abs(vectors[:, -1] @ mean) == pytest.approx(np.linalg.norm(mean), rel=1e-12)


@pytest.mark.row("F-08")
@pytest.mark.parametrize("shift", [0.0, 0.3, 2.0, 20.0])
def test_hessian_spectrum_interlaces_with_covariance(rng, shift):
    # oracle: Cauchy's interlacing for an update of rank one, and Rayleigh's bounds
    x = rng.normal(size=(40, 6)) @ np.diag([1, 0.5, 2, 0.1, 1, 3]) + shift
    mean, covariance = mean_and_covariance(x)
    values, vectors = np.linalg.eigh(second_moment(x))
    spread = np.linalg.eigvalsh(covariance)
    slack = 1e-10 * values[-1]
    assert np.all(values >= spread - slack)
    assert np.all(values[:-1] <= spread[1:] + slack)
    assert np.sum(mean**2) - slack <= values[-1] <= np.sum(mean**2) + spread[-1] + slack
    sine = 1 - alignment(vectors[:, -1], mean) ** 2
    assert sine <= spread[-1] / np.sum(mean**2) + 1e-12


@pytest.mark.row("F-08")
def test_steep_direction_is_mean_image_until_centering():
    x, y, raw = digits_problem()
    centered = np.column_stack([x[:, :64] - x[:, :64].mean(axis=0), np.ones(len(x))])
    kappas, steep = [], []
    for problem in (raw, logistic_regression(centered, y, 1e-2)):
        values, vectors = np.linalg.eigh(problem.hessian(problem.minimum))
        kappas.append(values[-1] / values[0])
        steep.append(vectors[:, -1])
        assert values[0] == pytest.approx(0.01, rel=1e-9)  # the penalty is the floor of both
    assert alignment(steep[0], x.mean(axis=0)) == pytest.approx(0.998, abs=5e-4)
    assert kappas[0] == pytest.approx(95.7, abs=0.05)
    assert kappas[1] == pytest.approx(8.79, abs=0.005)


@pytest.mark.row("F-08")
def test_alignment_is_absolute_scipy_cosine(rng):
    for _ in range(5):
        a, b = rng.normal(size=6), rng.normal(size=6)
        expected = abs(1 - scipy.spatial.distance.cosine(a, b))
        assert alignment(a, b) == pytest.approx(expected, rel=1e-12)
        assert alignment(-3 * a, b) == pytest.approx(expected, rel=1e-12)


# --- exact line search: L1-16 -----------------------------------------------------------------


@pytest.mark.row("L1-16")
@pytest.mark.parametrize("b", [0.01, 0.1, 0.5, 0.9, 1.0])
def test_zigzag_matches_exact_line_search(b):
    path = exact_line_search(problems.valley(b).hessian(np.zeros(2)), np.array([b, 1.0]), 20)
    np.testing.assert_allclose(zigzag(b, 20), path, rtol=1e-9, atol=1e-13)


@pytest.mark.row("L1-16")
def test_line_search_steps_match_scalar_minimizer(rng):
    H, start = positive_definite(rng, 4), rng.normal(size=4)
    f = problems.quadratic(H).value
    path = exact_line_search(H, start, 5)
    for w, following in itertools.pairwise(path):
        g = H @ w
        found = scipy.optimize.minimize_scalar(lambda a, w=w, g=g: f(w - a * g))
        np.testing.assert_allclose(following, w - found.x * g, atol=1e-6)


@pytest.mark.row("L1-16")
def test_search_along_matches_scalar_minimizer(rng):
    H, start, directions = positive_definite(rng, 3), rng.normal(size=3), rng.normal(size=(5, 3))
    f = problems.quadratic(H).value
    path = search_along(H, start, directions)
    for w, following, p in zip(path, path[1:], directions, strict=False):
        found = scipy.optimize.minimize_scalar(lambda t, w=w, p=p: f(w + t * p))
        np.testing.assert_allclose(following, w + found.x * p, atol=1e-6)


@pytest.mark.row("L1-16")
def test_search_along_covers_line_search_and_gauss_seidel(rng):
    H, start = positive_definite(rng, 3), rng.normal(size=3)
    path = exact_line_search(H, start, 6)
    np.testing.assert_allclose(search_along(H, start, path[:-1] @ H), path, rtol=1e-9)
    # oracle: one sweep of Gauss–Seidel on Hw = 0 solves the lower triangle
    sweep = np.linalg.solve(np.tril(H), -np.triu(H, 1) @ start)
    np.testing.assert_allclose(search_along(H, start, np.eye(3))[-1], sweep, rtol=1e-10)


@pytest.mark.row("L1-16")
def test_consecutive_gradients_are_orthogonal(rng):
    H = positive_definite(rng, 6)
    gradients = exact_line_search(H, rng.normal(size=6), 12) @ H
    units = gradients / np.linalg.norm(gradients, axis=1, keepdims=True)
    cosines = (units[1:] * units[:-1]).sum(axis=1)
    np.testing.assert_allclose(cosines, 0, atol=1e-12)


@pytest.mark.row("L1-16", "P-05")
def test_zigzag_takes_the_optimal_fixed_step():
    b = 0.2
    step = optimal_step(np.array([b, 1.0]))
    fixed = gradient_descent(lambda w: np.array([w[0], b * w[1]]), np.array([b, 1.0]), step, 15)
    np.testing.assert_allclose(zigzag(b, 15), fixed, atol=1e-14)
    kappa = 1 / b
    f = 0.5 * (zigzag(b, 15) ** 2 @ np.array([1.0, b]))
    np.testing.assert_allclose(f[1:] / f[:-1], ((kappa - 1) / (kappa + 1)) ** 2, rtol=1e-10)


@pytest.mark.row("L1-16")
def test_line_search_obeys_kantorovichs_bound(rng):
    # oracle: one exact step leaves at most ((κ−1)/(κ+1))² of the loss, from any start
    H = positive_definite(rng, 5)
    eigenvalues = np.linalg.eigvalsh(H)
    kappa = eigenvalues[-1] / eigenvalues[0]
    for _ in range(20):
        path = exact_line_search(H, rng.normal(size=5), 5)
        f = np.einsum("ti,ij,tj->t", path, H, path)
        assert np.all(f[1:] <= ((kappa - 1) / (kappa + 1)) ** 2 * f[:-1] * (1 + 1e-12))


@pytest.mark.row("L1-16")
def test_line_search_stays_at_the_minimum():
    path = exact_line_search(np.eye(2), np.array([1.0, 2.0]), 3)
    np.testing.assert_array_equal(path[1:], 0)


# --- powers of a matrix: L2-01 ----------------------------------------------------------------


@pytest.mark.row("L2-01")
def test_power_is_the_repeated_product(rng):
    for n in (2, 3, 5):
        W = rng.normal(size=(n, n)) / np.sqrt(n)  # complex eigenvalues as well
        for k in (0, 1, 2, 7):
            np.testing.assert_allclose(eigen_power(W, k), np.linalg.matrix_power(W, k), atol=1e-10)


@pytest.mark.row("L2-01")
def test_power_has_the_eigenvalues_to_the_power():
    W = np.array([[1.2, 0.7], [0.0, 0.5]])  # triangular: its eigenvalues are 1.2 and 0.5
    eigenvalues = np.sort(np.linalg.eigvals(eigen_power(W, 9)))
    np.testing.assert_allclose(eigenvalues, [0.5**9, 1.2**9], rtol=1e-10)


@pytest.mark.row("L2-01")
def test_deep_linear_signal_and_gradient_match_autograd(rng):
    W, x, v = 0.6 * rng.normal(size=(4, 4)), rng.normal(size=4), rng.normal(size=4)
    signal, gradient = depth_norms(W, x, v, depth=6)
    for k in range(7):
        inputs = torch.tensor(x, requires_grad=True)
        h = inputs
        for _ in range(k):
            h = torch.tensor(W) @ h
        (torch.tensor(v) @ h).backward()
        assert signal[k] == pytest.approx(float(h.detach().norm()), rel=1e-12)
        assert gradient[k] == pytest.approx(float(inputs.grad.norm()), rel=1e-12)


@pytest.mark.row("L2-01")
@pytest.mark.parametrize("radius", [0.8, 1.0, 1.25])
def test_deep_signal_grows_like_the_largest_eigenvalue(rng, radius):
    V = rng.normal(size=(3, 3))
    W = V @ np.diag([-radius, 0.5 * radius, 0.2 * radius]) @ np.linalg.inv(V)
    for norms in depth_norms(W, rng.normal(size=3), rng.normal(size=3), depth=80):
        assert norms[80] / norms[79] == pytest.approx(radius, rel=1e-8)


# --- boundaries -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: approximation_order(np.array([1.0, 2.0]), np.array([0.0, 1.0])), "positive"),
        (lambda: largest_stable_step(np.array([0.0, 1.0])), "every eigenvalue must be positive"),
        (lambda: optimal_step(np.array([-1.0, 1.0])), "every eigenvalue must be positive"),
        (lambda: gd_coefficients(np.ones(1), np.ones(1), 0.1, -1), "0 or more"),
        (lambda: measured_rates(np.eye(2), np.ones(2), np.ones(1), 0), "at least 1 step"),
        (lambda: exact_line_search(-np.eye(2), np.ones(2), 1), "must be positive"),
        (lambda: search_along(-np.eye(2), np.ones(2), np.eye(2)), "must be positive"),
        (lambda: contributions_from_gradient(np.zeros((2, 2)), np.ones(2)), "must be positive"),
        (lambda: zigzag(0.0, 3), "0 < b"),
        (lambda: zigzag(1.5, 3), "0 < b"),
        (lambda: eigenbasis(np.array([[1.0, 2.0], [0.0, 1.0]])), "differs from its transpose"),
        (lambda: eigen_power(np.array([[1.0, 1.0], [0.0, 1.0]]), 2), "not diagonalizable"),
        (lambda: alignment(np.zeros(2), np.ones(2)), "not zero"),
        (lambda: second_moment(np.ones((2, 1)), np.array([1.0, -1.0])), "weights must be 0 or"),
        (lambda: mean_and_covariance(np.ones((2, 1)), np.zeros(2)), "not all zero"),
        (lambda: logistic_regression(np.ones((2, 1)), np.array([0.0, 1.0])), "labels"),
        (lambda: logistic_regression(np.ones((1, 1)), np.ones(1), penalty=0.0), "penalty"),
        (
            lambda: approximation_error(
                problems.valley(0.5), np.ones(2), np.zeros(2), np.array([0.1])
            ),
            "nonzero",
        ),
    ],
)
def test_errors_say_what_was_expected(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_shape_errors_are_friendly_without_the_shape_checker():
    bare = inspect.unwrap(eigenbasis)
    with pytest.raises(ValueError, match=r"square.*\(2, 3\)"):
        bare(np.ones((2, 3)))
    model = object.__new__(QuadraticModel)
    for name, value in {"slope": np.ones(3), "hessian": np.eye(2), "center": np.ones(2)}.items():
        object.__setattr__(model, name, value)
    with pytest.raises(ValueError, match=r"must have shape \(2,\).*got \(3,\) and \(2,\)"):
        QuadraticModel.__post_init__(model)
