"""Chapter 2: every result is compared with one that the code did not produce."""

import numpy as np
import pytest
import scipy.optimize
import scipy.spatial
import torch
from numpy.testing import assert_allclose
from oracles import torch_path, with_spectrum
from sklearn.linear_model import LogisticRegression
from torch.nn.functional import softplus

from optdl import problems, quadratic
from optdl.quadratic import QuadraticModel, approximation_order, gradient_descent

# torch's own forward-mode code still uses it
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")


@pytest.mark.row("L1-12", "L1-13", "L1-39")
def test_model_has_autograds_derivatives_and_scipys_minimum(rng):
    H, (g, center) = with_spectrum(rng, np.linspace(0.3, 4.0, 4)), rng.normal(size=(2, 4))
    w = torch.tensor(rng.normal(size=4), requires_grad=True)
    d = w - torch.tensor(center)
    expected = 2.0 + d @ torch.tensor(g) + 0.5 * d @ torch.tensor(H) @ d
    expected.backward()
    model, at = QuadraticModel(2.0, g, H, center), w.detach().numpy()
    assert model(at) == pytest.approx(expected.item(), rel=1e-12)
    assert_allclose(model.gradient(at), w.grad.numpy(), rtol=1e-12)
    found = scipy.optimize.minimize(model, np.zeros(4), jac=model.gradient, tol=1e-10)
    assert_allclose(model.minimum, found.x, atol=1e-7)


@pytest.mark.row("L1-12", "L1-13")
def test_approximation_error_is_what_taylors_formula_leaves():
    # along (1, 0) from (x, y), the third derivative of 100(y − x²)² + (1 − x)² is 2400x; the
    # fourth is 2400, and there are no higher ones
    h, center, d = np.geomspace(1e-3, 1e-1, 9), np.array([0.5, 0.2]), np.array([1.0, 0.0])
    errors = quadratic.approximation_error(problems.rosenbrock(), center, d, h)
    assert_allclose(errors, 2400 * 0.5 / 6 * h**3 + 2400 / 24 * h**4, rtol=1e-6)
    assert approximation_order(h[:3], errors[:3]) == pytest.approx(3, abs=0.01)


@pytest.mark.row("L1-14")
def test_eigenbasis_agrees_with_numpy(rng):
    H = with_spectrum(rng, np.linspace(0.3, 4.0, 6))
    eigenvalues, U = quadratic.eigenbasis(H)
    expected_values, expected_vectors = np.linalg.eigh(H)
    assert_allclose(eigenvalues, expected_values, rtol=1e-12)
    assert_allclose(np.abs(U.T @ expected_vectors), np.eye(6), atol=1e-12)
    assert np.all(U[np.abs(U).argmax(axis=0), np.arange(6)] > 0)


@pytest.mark.row("L1-15")
@pytest.mark.parametrize("share", [0.1, 0.9, 1.0, 1.05])
def test_closed_forms_match_torchs_gradient_descent(rng, share):
    H, start = with_spectrum(rng, np.linspace(0.3, 4.0, 5)), rng.normal(size=5)
    eigenvalues, U = np.linalg.eigh(H)
    lr, w = share * 2 / eigenvalues[-1], torch.tensor(start, requires_grad=True)
    loss = lambda: 0.5 * w @ torch.tensor(H) @ w  # noqa: E731
    path = torch_path(torch.optim.SGD([w], lr=lr), w, loss, 40)
    assert_allclose(gradient_descent(lambda v: H @ v, start, lr, 40), path, rtol=1e-10)
    coefficients = quadratic.gd_coefficients(U.T @ start, eigenvalues, lr, steps=40)
    assert_allclose(coefficients, np.array(path) @ U, rtol=1e-12, atol=1e-12)


@pytest.mark.row("F-26")
def test_filter_contributions_and_risk_follow_least_squares_fit(rng):
    x, y, lr, w = rng.normal(size=(30, 6)), rng.normal(size=30), 0.1, np.zeros((6, 31))
    # the fit is linear in the labels: of column 0 it is w, of each other column a unit of noise
    labels, sigma = np.column_stack([y, np.eye(30)]), 1.7
    fit = np.linalg.lstsq(x, y, rcond=None)[0]
    eigenvalues, U = np.linalg.eigh(x.T @ x / 30)
    learned = quadratic.spectral_filter(eigenvalues, lr, steps=40)
    terms = quadratic.loss_contributions(U.T @ fit, eigenvalues, lr, steps=40)
    risks = quadratic.excess_risk(U.T @ fit, eigenvalues, lr, 40, sigma, 30)
    loss = lambda v: np.mean((x @ v - y) ** 2) / 2  # noqa: E731
    for fractions, parts, risk in zip(learned, terms, risks, strict=True):
        assert_allclose(U @ (fractions * (U.T @ fit)), w[:, 0], atol=1e-12)
        assert parts.sum() == pytest.approx(loss(w[:, 0]) - loss(fit), rel=1e-9)
        missing, noise = x @ (w[:, 0] - fit), sigma * x @ w[:, 1:]
        assert risk == pytest.approx((missing @ missing + (noise**2).sum()) / 60, rel=1e-9)
        w = w - lr * x.T @ (x @ w - labels) / 30


@pytest.mark.row("L1-12", "L1-15")
def test_logistic_derivatives_and_minimum_match_libraries():
    x, y = quadratic.two_digits()  # 64 pixels and a bias
    problem = quadratic.logistic_regression(x, y, 0.01)
    at = torch.tensor(np.random.default_rng(3).normal(size=65))
    margins = lambda v: torch.tensor(y) * (torch.tensor(x) @ v)  # noqa: E731
    J = lambda v: softplus(-margins(v)).mean() + 0.005 * v @ v  # noqa: E731
    w, minimum = at.numpy(), problem.minimum
    assert problem.value(w) == pytest.approx(float(J(at)), rel=1e-12)
    assert_allclose(problem.gradient(w), torch.func.grad(J)(at).numpy(), atol=1e-13)
    assert_allclose(problem.hessian(w), torch.func.hessian(J)(at).numpy(), atol=1e-13)
    library = LogisticRegression(C=1 / (0.01 * len(y)), fit_intercept=False, tol=1e-10)
    library.set_params(solver="newton-cholesky").fit(x, y)
    assert_allclose(minimum, library.coef_[0], atol=1e-6)


@pytest.mark.row("F-08")
def test_hessian_is_numpys_covariance_plus_rank_one(rng):
    x, weights = rng.normal(size=(30, 5)) + 3, rng.uniform(0, 2, size=30)
    for s, share in ((None, 1.0), (weights, weights.mean())):
        mean, covariance = quadratic.mean_and_covariance(x, s)
        assert_allclose(mean, np.average(x, axis=0, weights=s), rtol=1e-12)
        expected = np.cov(x, rowvar=False, ddof=0, aweights=s)
        assert_allclose(covariance, expected, rtol=1e-10, atol=1e-12)
        remainder = quadratic.second_moment(x, s) / share - covariance
        assert_allclose(remainder, np.outer(mean, mean), rtol=1e-10)
    expected = abs(1 - scipy.spatial.distance.cosine(x[0], mean))
    assert quadratic.alignment(-3 * x[0], mean) == pytest.approx(expected, rel=1e-12)


@pytest.mark.row("L1-16", "P-05")
@pytest.mark.parametrize("b", [0.01, 0.1, 0.5, 0.9, 1.0])
def test_zigzag_matches_line_search_and_optimal_fixed_step(b):
    H, start, zigzag = np.diag([1.0, b]), np.array([b, 1.0]), quadratic.zigzag(b, 20)
    path = quadratic.exact_line_search(H, start, 20)
    assert_allclose(zigzag, path, rtol=1e-9, atol=1e-13)
    step = quadratic.optimal_step(np.array([b, 1.0]))
    fixed = gradient_descent(lambda w: H @ w, start, step, 20)
    assert_allclose(zigzag, fixed, atol=1e-14)


@pytest.mark.row("L1-16")
def test_line_searches_match_kantorovich_and_gauss_seidel(rng):
    H, start = with_spectrum(rng, np.linspace(0.3, 4.0, 3)), rng.normal(size=3)
    path = quadratic.exact_line_search(H, start, 6)
    gradients, losses = path @ H, np.einsum("ti,ij,tj->t", path, H, path)
    assert_allclose((gradients[1:] * gradients[:-1]).sum(axis=1), 0, atol=1e-12)
    kappa = np.linalg.cond(H)  # Kantorovich's bound on what a step leaves
    assert np.all(losses[1:] <= ((kappa - 1) / (kappa + 1)) ** 2 * losses[:-1] * (1 + 1e-12))
    assert_allclose(quadratic.search_along(H, start, path[:-1] @ H), path, rtol=1e-9)
    # oracle: one sweep of Gauss–Seidel on Hw = 0 solves the lower triangle
    sweep = np.linalg.solve(np.tril(H), -np.triu(H, 1) @ start)
    assert_allclose(quadratic.search_along(H, start, np.eye(3))[-1], sweep, rtol=1e-10)


@pytest.mark.row("L2-01")
@pytest.mark.parametrize("radius", [0.8, 1.0, 1.25])
def test_deep_linear_signal_and_gradient_match_autograd(rng, radius):
    V, x, v = rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3)
    W = V @ np.diag([-radius, 0.5 * radius, 0.2 * radius]) @ np.linalg.inv(V)
    signal, gradient = quadratic.depth_norms(W, x, v, depth=80)
    for k in range(7):
        h = inputs = torch.tensor(x, requires_grad=True)
        for _ in range(k):
            h = torch.tensor(W) @ h
        (torch.tensor(v) @ h).backward()
        assert signal[k] == pytest.approx(float(h.detach().norm()), rel=1e-12)
        assert gradient[k] == pytest.approx(float(inputs.grad.norm()), rel=1e-12)
    for norms in (signal, gradient):  # the largest eigenvalue wins
        assert norms[80] / norms[79] == pytest.approx(radius, rel=1e-8)
