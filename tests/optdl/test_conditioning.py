"""Ill-conditioning and the landscape: dense matrices, autograd, torch and theorems as oracles."""

import copy
import math
from itertools import pairwise, permutations, product

import numpy as np
import pytest
import scipy.optimize
import torch
from torch import nn
from torch.nn import functional

from optdl import conditioning, problems, training
from optdl.data import load
from optdl.networks import fully_connected


def positive(rng, n, kappa=50.0):
    """Return a positive definite matrix with eigenvalues from 1 to κ."""
    rotation, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return (rotation * np.geomspace(1, kappa, n)) @ rotation.T


# --- The condition number --------------------------------------------------------------------


@pytest.mark.row("L1-17")
@pytest.mark.parametrize("shape", [(3, 3), (6, 2), (2, 5)])
def test_condition_number_matches_numpy(shape, rng):
    A = rng.normal(size=shape)
    assert conditioning.condition_number(A) == pytest.approx(np.linalg.cond(A), rel=1e-10)


@pytest.mark.row("L1-17")
def test_largest_stands_over_smallest():
    """The erratum: as the lecture words it, κ would be ¼ here, and less than 1 for every matrix."""
    H = np.diag([2.0, 8.0])
    assert conditioning.condition_number(H) == 4.0
    assert np.linalg.cond(H) == 4.0


@pytest.mark.row("P-06")
def test_singular_matrix_condition_number_ignores_zeros(rng):
    H = positive(rng, 4, kappa=20)
    basis, _ = np.linalg.qr(rng.normal(size=(7, 4)))
    assert conditioning.condition_number(basis @ H @ basis.T) == pytest.approx(20, rel=1e-9)


@pytest.mark.parametrize(
    ("A", "said"),
    [
        (np.zeros((2, 2)), "not zero"),
        (np.zeros((0, 2)), "not zero"),
        (np.full((1, 1), np.nan), "finite"),
    ],
)
def test_matrices_without_a_condition_number_are_refused(A, said):
    with pytest.raises(ValueError, match=said):
        conditioning.condition_number(A)


@pytest.mark.row("L1-17")
@pytest.mark.parametrize("kappa", [1.5, 10.0, 300.0])
def test_iterations_needed_match_gradient_descent(kappa):
    H, w = np.array([1.0, kappa]), np.ones(2)
    count, lr = 0, 2 / (1 + kappa)
    while np.linalg.norm(w) > 1e-4 * math.sqrt(2):
        w, count = w - lr * H * w, count + 1
    assert conditioning.iterations_needed(kappa, 1e-4) == count


@pytest.mark.row("L1-17")
def test_iterations_needed_grow_linearly_with_kappa():
    kappas = np.geomspace(10, 1e6, 12)
    steps = [conditioning.iterations_needed(kappa, 1e-3) for kappa in kappas]
    slope = np.polyfit(np.log(kappas), np.log(steps), 1)[0]
    assert slope == pytest.approx(1, abs=0.01)
    with pytest.raises(ValueError, match="expected κ ≥ 1"):
        conditioning.iterations_needed(0.5, 0.1)


@pytest.mark.row("L1-17")
def test_steps_with_singular_hessian_match_gradient_descent(rng):
    rotation, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    H = (rotation * [0, 0, 0.5, 3, 8]) @ rotation.T
    w, lr, count = rotation[:, 2] + rotation[:, 4] + rotation[:, 0], 2 / 8.5, 0
    while np.linalg.norm(w - rotation[:, 0]) > 1e-2 * math.sqrt(2):
        w, count = w - lr * H @ w, count + 1
    assert conditioning.steps_needed(H, 1e-2) == count


# --- Uphill ----------------------------------------------------------------------------------


@pytest.mark.row("L1-18")
@pytest.mark.parametrize("lr", [0.0, 0.01, 0.3, 5.0])
def test_step_gain_is_exact_on_quadratics(lr, rng):
    bowl = problems.quadratic(positive(rng, 4))
    w = rng.normal(size=4)
    g = bowl.gradient(w)
    expected = bowl.value(w - lr * g) - bowl.value(w)
    gain = conditioning.step_gain(g, bowl.hessian(w), lr)
    assert gain == pytest.approx(expected, rel=1e-9, abs=1e-9)
    d = rng.normal(size=4)
    expected = bowl.value(w - lr * d) - bowl.value(w)
    gain = conditioning.step_gain(g, bowl.hessian(w), lr, d)
    assert gain == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.row("L1-18")
def test_uphill_step_separates_descent_from_ascent(rng):
    bowl = problems.quadratic(positive(rng, 4))
    w = rng.normal(size=4)
    g, limit = bowl.gradient(w), conditioning.uphill_step(bowl.gradient(w), bowl.hessian(w))
    assert bowl.value(w - 0.999 * limit * g) < bowl.value(w) < bowl.value(w - 1.001 * limit * g)
    d = g + 0.3 * np.linalg.norm(g) * rng.normal(size=4) / 2
    limit = conditioning.uphill_step(g, bowl.hessian(w), d)
    assert bowl.value(w - 0.999 * limit * d) < bowl.value(w) < bowl.value(w - 1.001 * limit * d)
    assert conditioning.uphill_step(g, bowl.hessian(w), -d) == 0
    assert bowl.value(w + 1e-6 * d) > bowl.value(w)


@pytest.mark.row("L1-18")
def test_negative_curvature_has_no_limit():
    saddle = problems.saddle()
    w = np.array([0.0, 1.0])
    direction = saddle.gradient(w) if saddle.hessian(w)[1, 1] < 0 else saddle.gradient(w[::-1])
    assert conditioning.uphill_step(direction, saddle.hessian(w)) == math.inf
    with pytest.raises(ValueError, match="learning rate of 0 or more, got -1"):
        conditioning.step_gain(np.ones(1), np.eye(1), -1.0)


# --- Hessian-vector products -----------------------------------------------------------------


@pytest.fixture
def network():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    x, y = torch.randn(20, 4).double(), torch.randint(0, 3, (20,))
    return model, x, y


def dense_hessian(model, x, y, criterion=functional.cross_entropy):
    names, parts = zip(*model.named_parameters(), strict=True)
    sizes, shapes = [p.numel() for p in parts], [p.shape for p in parts]

    def loss(flat):
        values = torch.split(flat, sizes)
        weights = {n: v.reshape(s) for n, v, s in zip(names, values, shapes, strict=True)}
        return criterion(torch.func.functional_call(model, weights, (x,)), y)

    flat = torch.cat([p.detach().flatten() for p in parts])
    return torch.autograd.functional.hessian(loss, flat)


@pytest.mark.row("L1-19")
def test_hessian_vector_products_match_dense_hessian(network):
    model, x, y = network
    parameters = list(model.parameters())
    v = [torch.randn_like(p) for p in parameters]
    loss = functional.cross_entropy(model(x), y)
    products = conditioning.hessian_vector_product(loss, parameters, v)
    expected = dense_hessian(model, x, y) @ torch.cat([part.flatten() for part in v])
    torch.testing.assert_close(torch.cat([p.flatten() for p in products]), expected)


@pytest.mark.row("L1-19")
def test_extreme_eigenvalues_match_dense_hessian(network):
    model, x, y = network
    loss = functional.cross_entropy(model(x), y)
    expected = torch.linalg.eigvalsh(dense_hessian(model, x, y))
    smallest, largest = conditioning.extreme_eigenvalues(loss, list(model.parameters()))
    assert smallest == pytest.approx(expected[0].item(), rel=1e-6)
    assert largest == pytest.approx(expected[-1].item(), rel=1e-6)


@pytest.mark.row("L1-19")
def test_difference_product_has_second_order_error():
    problem = problems.rosenbrock()
    w, v = np.array([0.3, -0.5]), np.array([1.0, 2.0])
    exact = problem.hessian(w) @ v
    errors = [
        np.linalg.norm(
            conditioning.difference_hessian_vector_product(problem.gradient, w, v, step) - exact
        )
        for step in (0.1, 0.05)
    ]
    assert errors[0] / errors[1] == pytest.approx(4, rel=1e-6)
    with pytest.raises(ValueError, match="positive step"):
        conditioning.difference_hessian_vector_product(problem.gradient, w, v, 0.0)


@pytest.mark.row("L1-19")
def test_power_iteration_finds_largest_absolute_eigenvalue():
    problem = problems.rosenbrock()
    w = np.array([0.3, -0.5])
    values = np.linalg.eigvalsh(problem.hessian(w))
    for sign in (1, -1):
        estimates = conditioning.power_iteration(
            lambda w, sign=sign: sign * problem.gradient(w), w, np.array([1.0, 3.0]), 1e-4, 30
        )
        assert estimates[-1] == pytest.approx(sign * values[np.abs(values).argmax()], rel=1e-6)


@pytest.mark.row("L1-19")
def test_linear_loss_has_zero_curvature():
    w = torch.ones(3, requires_grad=True)
    (product,) = conditioning.hessian_vector_product(w.sum(), [w], [torch.ones(3)])
    assert product.tolist() == [0, 0, 0]


def test_invalid_arguments_of_products_are_refused():
    w = torch.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match=r"shapes \[\(2,\)\], got \[\(3,\)\]"):
        conditioning.hessian_vector_product((w**2).sum(), [w], [torch.ones(3)])
    with pytest.raises(ValueError, match=r"one number, got shape \(2,\)"):
        conditioning.hessian_vector_product(w**2, [w], [w])
    with pytest.raises(ValueError, match="at least 3 parameters"):
        conditioning.extreme_eigenvalues((w**2).sum(), [w])


@pytest.mark.row("L1-19")
def test_hook_measures_slope_and_curvature_along_minibatch_gradient(network):
    model, x, y = network
    parameters = list(model.parameters())
    value = functional.cross_entropy(model(x), y)
    g = torch.cat([part.flatten() for part in torch.autograd.grad(value, parameters)])
    hook = conditioning.CurvatureHook(x, y, functional.cross_entropy)
    state = training.State(model, torch.optim.SGD(parameters), curves={})
    expected = []
    for rows in (slice(3), slice(3, 8)):
        model.zero_grad()
        functional.cross_entropy(model(x[rows]), y[rows]).backward()
        batch = torch.cat([part.grad.flatten() for part in parameters])
        hook.after_backward(state)
        expected.append([float(g @ batch), float(batch @ dense_hessian(model, x, y) @ batch)])
    hook.after_epoch(state)
    slope, curvature = np.mean(expected, axis=0)
    assert state.curves["slope"] == pytest.approx([slope], rel=1e-10)
    assert state.curves["curvature"] == pytest.approx([curvature], rel=1e-8)
    assert hook.rows == []


# --- Equivalent weights ----------------------------------------------------------------------


def outputs(x, W, b, v):
    return np.maximum(x @ W.T + b, 0) @ v


@pytest.mark.row("L1-20")
@pytest.mark.parametrize("seed", range(5))
def test_permuted_and_rescaled_networks_compute_the_same(seed):
    rng = np.random.default_rng(seed)
    W, b, v = rng.normal(size=(7, 3)), rng.normal(size=7), rng.normal(size=7)
    x = rng.normal(size=(30, 3))
    order = rng.permutation(7).tolist()
    factors = np.exp(rng.normal(size=7))
    for other in (
        conditioning.permute_hidden_units(W, b, v, order),
        conditioning.rescale_hidden_units(W, b, v, factors),
    ):
        np.testing.assert_allclose(outputs(x, *other), outputs(x, W, b, v), rtol=1e-10, atol=1e-12)
        assert not np.allclose(other[0], W)


@pytest.mark.row("L1-20")
def test_canonical_units_are_invariant_under_equivalence(rng):
    W, b, v = rng.normal(size=(5, 3)), rng.normal(size=5), rng.normal(size=5)
    x = rng.normal(size=(30, 3))
    canonical = conditioning.canonical_units(W, b, v)
    np.testing.assert_allclose(outputs(x, *canonical), outputs(x, W, b, v), rtol=1e-10, atol=1e-12)
    moved = conditioning.rescale_hidden_units(W, b, v, np.exp(rng.normal(size=5)))
    moved = conditioning.permute_hidden_units(*moved, [3, 1, 4, 0, 2])
    for left, right in zip(conditioning.canonical_units(*moved), canonical, strict=True):
        np.testing.assert_allclose(left, right)
    # weight decay cannot make the sum of squares smaller without changing the function

    def squares(logarithms):
        parts = conditioning.rescale_hidden_units(W, b, v, np.exp(logarithms))
        return sum((part**2).sum() for part in parts)

    least = scipy.optimize.minimize(squares, np.zeros(5)).fun
    assert sum((part**2).sum() for part in canonical) == pytest.approx(least, rel=1e-8)
    with pytest.raises(ValueError, match="not zero"):
        conditioning.canonical_units(W, b, 0 * v)


@pytest.mark.row("L1-20")
def test_equivalent_orders_are_counted_by_listing_them():
    layers = [tuple(permutations(range(3)))] * 2
    assert conditioning.equivalent_minima(3, 2) == len(layers[0]) * len(layers[1])


def test_invalid_permutation_and_factor_are_refused():
    W, b, v = np.eye(2), np.zeros(2), np.ones(2)
    with pytest.raises(ValueError, match=r"permutation of 0 to 1, got \[0, 0\]"):
        conditioning.permute_hidden_units(W, b, v, [0, 0])
    with pytest.raises(ValueError, match="positive factors, got -1"):
        conditioning.rescale_hidden_units(W, b, v, np.array([1.0, -1.0]))


@pytest.mark.row("P-06")
def test_fit_hessian_matches_autograd_and_annihilates_scalings(rng):
    W, v, x = rng.normal(size=(3, 2)), rng.normal(size=3), rng.normal(size=(40, 2))
    y = torch.from_numpy(np.maximum(x @ W.T, 0) @ v)

    def loss(p):
        hidden = torch.relu(torch.from_numpy(x) @ p[:6].reshape(3, 2).T)
        return ((hidden @ p[6:] - y) ** 2).mean() / 2

    point = torch.from_numpy(np.concatenate([W.ravel(), v]))
    H = conditioning.relu_hessian_at_a_fit(W, v, x)
    np.testing.assert_allclose(H, torch.autograd.functional.hessian(loss, point), atol=1e-10)
    tangents = conditioning.scaling_tangents(W, v)
    np.testing.assert_allclose(H @ tangents.T, 0, atol=1e-10)
    eigenvalues = np.linalg.eigvalsh(H)
    assert np.sum(eigenvalues < 1e-10 * eigenvalues[-1]) == 3  # one for each unit, and no more


@pytest.mark.row("P-06")
def test_descent_rate_follows_nonzero_eigenvalues(rng):
    """Away from the flat directions the error falls at the rate (κ* − 1)/(κ* + 1)."""
    W, v, x = rng.normal(size=(2, 2)), rng.normal(size=2), rng.normal(size=(60, 2))
    y = np.maximum(x @ W.T, 0) @ v
    H = conditioning.relu_hessian_at_a_fit(W, v, x)
    eigenvalues = np.linalg.eigvalsh(H)
    nonzero = eigenvalues[eigenvalues > 1e-10 * eigenvalues[-1]]
    kappa = conditioning.condition_number(H)
    assert kappa == pytest.approx(nonzero[-1] / nonzero[0], rel=1e-8)
    p = np.concatenate([W.ravel(), v]) + 1e-4 * rng.normal(size=6)
    lr, residuals = 2 / (nonzero[0] + nonzero[-1]), []
    for _ in range(400):
        z = x @ p[:4].reshape(2, 2).T
        r = (np.maximum(z, 0) @ p[4:] - y) / len(y)
        gradient_w = ((r[:, None] * (z > 0) * p[4:]).T @ x).ravel()
        gradient = np.concatenate([gradient_w, np.maximum(z, 0).T @ r])
        residuals.append(np.linalg.norm(gradient))
        p = p - lr * gradient
    rate = (kappa - 1) / (kappa + 1)
    measured = (residuals[-1] / residuals[-101]) ** (1 / 100)
    assert measured == pytest.approx(rate, abs=2e-3)


# --- Saddles, cliffs, basins -----------------------------------------------------------------


@pytest.mark.row("L1-21")
def test_minima_fraction_matches_exact_values():
    """½, and (2 − √2)/4 for two: the angle of the cone of positive definite matrices."""
    for n, exact in ((1, 0.5), (2, (2 - math.sqrt(2)) / 4)):
        share = conditioning.minima_fraction(n, 60_000, np.random.default_rng(3))
        assert share == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 60_000))


@pytest.mark.row("L1-21")
def test_minima_fraction_falls_faster_than_geometrically():
    rng = np.random.default_rng(0)
    shares = [conditioning.minima_fraction(n, 40_000, rng) for n in (1, 2, 3, 4)]
    ratios = [b / a for a, b in pairwise(shares)]
    assert all(ratio < 0.35 for ratio in ratios)
    assert ratios[0] > ratios[1] > ratios[2]


@pytest.mark.row("L1-22")
def test_cliff_derivatives_match_autograd(rng):
    cliff = conditioning.recurrent_cliff(steps=12)

    def loss(p):
        h = torch.tensor(0.5, dtype=torch.float64)
        for _ in range(12):
            h = torch.sigmoid(p[0] * h + p[1])
        return (h - 0.7) ** 2

    for p in (np.array([6.0, -3.1]), np.array([2.0, 0.4])):
        point = torch.from_numpy(p).requires_grad_()
        (gradient,) = torch.autograd.grad(loss(point), point)
        assert cliff.value(p) == pytest.approx(loss(point).item(), rel=1e-12)
        np.testing.assert_allclose(cliff.gradient(p), gradient, rtol=1e-9)
        hessian = torch.autograd.functional.hessian(loss, point.detach())
        np.testing.assert_allclose(cliff.hessian(p), hessian, rtol=1e-8)


@pytest.mark.row("L1-22")
@pytest.mark.parametrize("bound", [0.5, 3.0, 100.0])
def test_clipping_matches_torch(bound, rng):
    shapes = [(3, 4), (4,), (2, 2)]
    arrays = {str(i): rng.normal(size=s) for i, s in enumerate(shapes)}
    for ours, theirs in (
        (conditioning.clip_by_norm, nn.utils.clip_grad_norm_),
        (conditioning.clip_by_value, nn.utils.clip_grad_value_),
    ):
        parameters = [nn.Parameter(torch.zeros(s, dtype=torch.float64)) for s in shapes]
        for parameter, array in zip(parameters, arrays.values(), strict=True):
            parameter.grad = torch.from_numpy(array.copy())
        theirs(parameters, bound)
        tensors = [torch.from_numpy(array) for array in arrays.values()]
        for one, two, parameter in zip(
            ours(arrays, bound).values(), ours(tensors, bound), parameters, strict=True
        ):
            # torch divides by the norm plus 1e-6
            np.testing.assert_allclose(one, parameter.grad, rtol=3e-6)
            np.testing.assert_allclose(two, one, rtol=1e-14)


def test_clipping_refuses_invalid_arguments():
    with pytest.raises(ValueError, match="positive max_norm, got 0"):
        conditioning.clip_by_norm([np.ones(1)], 0.0)
    with pytest.raises(ValueError, match="hold NaN or infinity"):
        conditioning.clip_by_norm((np.array([np.nan]),), 1.0)
    with pytest.raises(ValueError, match="positive limit, got -1"):
        conditioning.clip_by_value([np.ones(1)], -1.0)


@pytest.mark.row("L2-02")
def test_descent_ends_in_the_nearest_of_three_wells(rng):
    centers = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    wells = problems.mixture(centers)
    starts = np.concatenate([c + 0.8 * rng.uniform(-1, 1, size=(10, 2)) for c in centers])
    ends = conditioning.basins(wells, centers, starts, lr=0.5, steps=200)
    assert ends.tolist() == [0] * 10 + [1] * 10 + [2] * 10
    far = conditioning.basins(wells, centers, np.array([[50.0, 50.0]]), lr=0.5, steps=10)
    assert np.isnan(far).all()


# --- Inexact gradients -----------------------------------------------------------------------


@pytest.mark.row("L1-23")
def test_biased_gradient_reaches_predicted_limit(rng):
    H, minimum, bias = positive(rng, 3, 10), rng.normal(size=3), rng.normal(size=3)
    w = np.zeros(3)
    for _ in range(2000):
        w = w - 0.1 * (H @ (w - minimum) + bias)
    np.testing.assert_allclose(w, conditioning.limit_point(H, minimum, bias), rtol=1e-10)


@pytest.mark.row("L1-23")
def test_noisy_gradient_has_predicted_variance():
    rng = np.random.default_rng(0)
    eigenvalues, lr, sigma = np.array([0.5, 2.0, 6.0]), 0.2, 1.5
    w = np.zeros((4000, 3))
    for _ in range(300):
        w = w - lr * (eigenvalues * w + sigma * rng.normal(size=w.shape))
    expected = conditioning.stationary_variance(eigenvalues, lr, sigma)
    np.testing.assert_allclose(w.var(axis=0), expected, rtol=5 * math.sqrt(2 / 4000))
    assert np.all(np.abs(w.mean(axis=0)) < 5 * np.sqrt(expected / 4000))
    with pytest.raises(ValueError, match=r"learning rate in \(0, 0.333333\), got 0.4"):
        conditioning.stationary_variance(eigenvalues, 0.4, sigma)


@pytest.mark.row("L1-23")
def test_excess_loss_matches_simulated_mean(rng):
    H, bias, lr, sigma = positive(rng, 3), rng.normal(size=3), 0.1, 0.7
    lr = min(lr, 1 / np.linalg.eigvalsh(H)[-1])
    w = np.zeros((20_000, 3))
    for _ in range(int(8 / (lr * np.linalg.eigvalsh(H)[0]))):
        w = w - lr * (w @ H + bias + sigma * rng.normal(size=w.shape))
    losses = np.einsum("ij,jk,ik->i", w, H, w) / 2
    error = losses.std() / math.sqrt(20_000)
    expected = conditioning.excess_loss(H, bias, lr, sigma)
    assert losses.mean() == pytest.approx(expected, abs=5 * error)
    with pytest.raises(ValueError, match="learning rate"):
        conditioning.excess_loss(H, bias, 3 / np.linalg.eigvalsh(H)[-1], sigma)


@pytest.mark.row("L1-22")
@pytest.mark.row("L1-23")
def test_clipped_gradients_reach_huber_minimum(rng):
    x, c = rng.exponential(size=200), 0.4

    def huber(w):
        r = np.abs(w - x)
        return np.where(r <= c, r**2 / 2, c * r - c**2 / 2).mean()

    expected = scipy.optimize.minimize_scalar(huber, bounds=(0, 5), options={"xatol": 1e-10}).x
    assert conditioning.clipped_limit(x, c) == pytest.approx(expected, abs=1e-6)
    assert conditioning.clipped_limit(x, 1e3) == pytest.approx(x.mean(), rel=1e-9)
    assert conditioning.clipped_limit(x, 1e-6) == pytest.approx(np.median(x), abs=0.02)
    assert conditioning.clipped_limit(np.ones(3), 1.0) == 1.0
    with pytest.raises(ValueError, match="positive limit, got 0"):
        conditioning.clipped_limit(x, 0.0)


# --- Edge of stability -----------------------------------------------------------------------


def small_classifier(seed):
    """Return a network for digits with 1210 parameters, in double precision."""
    torch.manual_seed(seed)
    layers = nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 10)
    return nn.Sequential(*layers).double()


@pytest.fixture(scope="module")
def images():
    split = load("digits").split(validation=300, seed=0)
    return torch.tensor(split.train.x[:300]).double(), torch.tensor(split.train.y[:300])


@pytest.mark.row("F-02")
@pytest.mark.row("L1-19")
def test_largest_eigenpair_matches_dense_hessian(network):
    model, x, y = network
    loss = functional.cross_entropy(model(x), y)
    values, vectors = np.linalg.eigh(dense_hessian(model, x, y).numpy())
    value, vector = conditioning.largest_eigenvalue(loss, list(model.parameters()))
    assert value == pytest.approx(values[-1], rel=1e-6)
    assert abs(vector @ vectors[:, -1]) == pytest.approx(1, abs=1e-5)
    again, _ = conditioning.largest_eigenvalue(loss, list(model.parameters()), vector, 1e-4)
    assert again == pytest.approx(value, rel=1e-4)


@pytest.mark.row("F-02")
def test_tracked_descent_matches_torch(network):
    model, x, y = network
    twin = copy.deepcopy(model)
    run = conditioning.track_descent(model, x, y, conditioning.squared_error, 0.3, 6, 3)
    assert run.steps.tolist() == [0, 3]
    sgd, losses, gradients = torch.optim.SGD(twin.parameters(), lr=0.3), [], []
    for step in range(6):
        one_hot = functional.one_hot(y, 3).double()
        loss = 3 * functional.mse_loss(twin(x), one_hot) / 2
        losses.append(loss.item())
        sgd.zero_grad()
        loss.backward()
        g = torch.cat([part.grad.flatten() for part in twin.parameters()])
        gradients.append(g)
        if step == 3:
            H = dense_hessian(twin, x, y, conditioning.squared_error)
            assert run.gradient_norms[1] == pytest.approx(g.norm().item(), rel=1e-10)
            assert run.curvatures[1] == pytest.approx((g @ H @ g).item(), rel=1e-8)
            assert run.sharpness[1] == pytest.approx(torch.linalg.eigvalsh(H)[-1].item(), rel=1e-3)
            expected = conditioning.step_gain(g.numpy(), H.numpy(), 0.3)
            assert run.predictions[1] == pytest.approx(expected, rel=1e-8)
        sgd.step()
    np.testing.assert_allclose(run.losses[:6], losses, rtol=1e-10)
    cosines = functional.cosine_similarity(torch.stack(gradients[1:]), torch.stack(gradients[:-1]))
    np.testing.assert_allclose(run.cosines, cosines, rtol=1e-10)
    assert run.changes[1] == pytest.approx(run.losses[4] - run.losses[3], abs=1e-14)


@pytest.mark.row("F-02")
def test_quadratic_gradient_cosines_flip_beyond_threshold(rng):
    """In the eigenbasis each step multiplies the gradient's coefficients by 1 − ηλ."""
    eigenvalues = np.array([0.5, 1.0, 4.0])
    start = rng.normal(size=3)
    for lr in (0.1, 0.6):
        cosines = conditioning.gradient_cosines(lambda w: eigenvalues * w, start, lr, 30)
        path = eigenvalues * start * (1 - lr * eigenvalues) ** np.arange(31)[:, None]
        unit = path / np.linalg.norm(path, axis=1, keepdims=True)
        np.testing.assert_allclose(cosines, np.sum(unit[1:] * unit[:-1], axis=1), rtol=1e-10)
        assert cosines[-1] == pytest.approx(1 if lr < 0.5 else -1, abs=1e-3)


@pytest.mark.row("F-02")
@pytest.mark.parametrize("lr", [0.15, 0.25])
def test_sharpness_settles_at_two_over_rate(images, lr):
    """Cohen et al. (2021): the oracle is the threshold 2/η, which comes from quadratics."""
    run = conditioning.track_descent(
        small_classifier(0), *images, conditioning.squared_error, lr, 1400, 50
    )
    late = run.sharpness[run.steps >= 900]
    assert np.all(np.abs(late * lr / 2 - 1) < 0.12)
    assert late.mean() * lr / 2 == pytest.approx(1, abs=0.06)
    assert abs(run.sharpness[0] * lr / 2 - 1) > 0.15  # it was elsewhere at the start
    assert run.losses[-1] < 0.8 * run.losses[500]


@pytest.mark.row("F-02")
def test_minima_beyond_threshold_repel_descent():
    network, rng = conditioning.two_weights(), np.random.default_rng(0)
    for lr in (0.1, 0.4, 0.45):
        points = rng.uniform(-2, 2, size=(300, 2))
        with np.errstate(all="ignore"):
            for _ in range(3000):
                points = points - lr * network.gradients(points)
            ended = points[np.abs(points.prod(axis=1) - 1) < 1e-9]
        assert len(ended) > 200
        assert np.all(np.sum(ended**2, axis=1) < 2 / lr)


# --- Kinds of critical points ----------------------------------------------------------------


@pytest.mark.row("F-04")
@pytest.mark.row("L1-21")
@pytest.mark.parametrize(
    ("spectrum", "kind"),
    [
        ([1, 2, 3], "minimum"),
        ([-3, -2, -1], "maximum"),
        ([-1, 2, 3], "strict saddle"),
        ([-2, -1, 3], "strict saddle"),
        ([-1, 0, 3], "strict saddle"),
        ([0, 1, 2], "degenerate"),
        ([-1, -1, 0], "degenerate"),
    ],
)
def test_critical_point_kind_follows_the_spectrum(spectrum, kind, rng):
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    H = (rotation * np.array(spectrum)) @ rotation.T
    assert conditioning.critical_point_kind(np.zeros(3), H, 1e-9) == kind
    assert conditioning.critical_point_kind(np.full(3, 0.1), H, 1e-9) == "not critical"


def test_kinds_and_escapes_refuse_invalid_arguments():
    with pytest.raises(ValueError, match="tolerance of 0 or more, got -1"):
        conditioning.critical_point_kind(np.zeros(1), np.eye(1), -1.0)
    with pytest.raises(ValueError, match=r"got 0, 1, 0\.1 and 1"):
        conditioning.escape_steps(0.0, 1.0, 0.1, 1.0)


@pytest.mark.row("F-04")
@pytest.mark.parametrize("distance", [0.3, 1e-3, 1e-9, 2.0])
def test_escape_steps_match_gradient_descent_on_saddle(distance):
    """The closed form on ½(x² − y²), against steps of gradient descent that are counted."""
    point, count = np.array([1.0, distance]), 0
    while abs(point[1]) < 1.5:
        point, count = point - 0.07 * problems.saddle().gradient(point), count + 1
    assert conditioning.escape_steps(distance, 1.5, 0.07, 1.0) == count


@pytest.mark.row("F-04")
def test_escape_steps_grow_logarithmically():
    distances = np.geomspace(1e-3, 1e-30, 10)
    steps = [conditioning.escape_steps(d, 1.0, 0.1, 1.0) for d in distances]
    slope = np.polyfit(np.log(1 / distances), steps, 1)[0]
    assert slope == pytest.approx(1 / math.log(1.1), rel=0.01)


@pytest.mark.row("F-04")
def test_two_weights_derivatives_match_autograd(rng):
    network = conditioning.two_weights()
    for p in rng.normal(size=(4, 2)):
        point = torch.from_numpy(p)

        def loss(q):
            return (q[0] * q[1] - 1) ** 2 / 2

        H = torch.autograd.functional.hessian(loss, point)
        np.testing.assert_allclose(network.hessian(p), H, rtol=1e-10)
        (g,) = torch.autograd.grad(loss(point.requires_grad_()), point)
        np.testing.assert_allclose(network.gradient(p), g, rtol=1e-10)
        np.testing.assert_allclose(network.gradients(p[None])[0], g, rtol=1e-10)
    origin = np.zeros(2)
    kind = conditioning.critical_point_kind(network.gradient(origin), network.hessian(origin), 1e-9)
    assert kind == "strict saddle"
    at_minimum = np.linalg.eigvalsh(network.hessian(np.array([2.0, 0.5])))
    np.testing.assert_allclose(at_minimum, [0, 4.25], atol=1e-12)


@pytest.mark.row("F-04")
def test_random_starts_do_not_end_at_the_saddle(rng):
    """Lee et al. (2016): the starts that converge to a strict saddle have measure zero."""
    network, points = conditioning.two_weights(), rng.uniform(-2, 2, size=(5000, 2))
    for _ in range(500):
        points = points - 0.1 * network.gradients(points)
    np.testing.assert_allclose(points.prod(axis=1), 1, atol=1e-6)


@pytest.mark.row("F-04")
def test_critical_point_indices_match_finite_differences(rng):
    x, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    problem = conditioning.tanh_regression(x, y, units=2)
    found = conditioning.critical_points(problem, rng.normal(size=(30, 6)))
    assert len(found.losses) >= 5
    assert set(found.indices) - {0}
    for p, index in zip(found.points, found.indices, strict=True):
        columns = [
            (problem.gradient(p + 1e-5 * e) - problem.gradient(p - 1e-5 * e)) / 2e-5
            for e in np.eye(6)
        ]
        eigenvalues = np.linalg.eigvalsh((np.array(columns) + np.array(columns).T) / 2)
        clear = np.abs(eigenvalues) > 1e-6
        assert np.sum(eigenvalues[clear] < 0) == pytest.approx(index, abs=np.sum(~clear))
        assert np.linalg.norm(problem.gradient(p)) < 1e-10


# --- Local minima ----------------------------------------------------------------------------


@pytest.mark.row("L1-37")
def test_tanh_regression_derivatives_match_autograd(rng):
    x, y, p = rng.normal(size=(9, 3)), rng.normal(size=9), rng.normal(size=8)

    def loss(q):
        hidden = torch.tanh(torch.from_numpy(x) @ q[:6].reshape(2, 3).T)
        return ((hidden @ q[6:] - torch.from_numpy(y)) ** 2).mean() / 2

    problem, point = conditioning.tanh_regression(x, y, units=2), torch.from_numpy(p)
    assert problem.value(p) == pytest.approx(loss(point).item(), rel=1e-12)
    H = torch.autograd.functional.hessian(loss, point)
    np.testing.assert_allclose(problem.hessian(p), H, atol=1e-12)
    (g,) = torch.autograd.grad(loss(point.requires_grad_()), point)
    np.testing.assert_allclose(problem.gradient(p), g, atol=1e-12)


def teacher_and_points():
    x, y, teacher = conditioning.student_teacher(0)
    return x, teacher, y, np.random.default_rng(1)


@pytest.mark.row("L1-37")
def test_equal_size_student_recovers_teacher_up_to_symmetry():
    """Sussmann (1992): a tanh network is identifiable up to these symmetries, and no others."""
    x, teacher, y, rng = teacher_and_points()
    ends = conditioning.fit_from(x, y, rng.normal(size=(30, 12)))
    value = conditioning.tanh_regression(x, y, 3).value
    right = [end for end in ends if value(end) < 1e-10]
    assert 5 < len(right) < 28
    for end in right:
        rows = np.column_stack([end[:9].reshape(3, 3), end[9:]])
        assert conditioning.nearest_order(teacher, rows)[2] < 1e-6
    with pytest.raises(ValueError, match="multiple of 4 parameters, got 11"):
        conditioning.fit_from(x, y, rng.normal(size=(1, 11)))


@pytest.mark.row("L1-37")
def test_wide_students_meet_fewer_bad_minima():
    x, _, y, rng = teacher_and_points()
    at_zero = {}
    for units in (3, 8):
        problem = conditioning.tanh_regression(x, y, units)
        ends = conditioning.fit_from(x, y, rng.normal(size=(40, 4 * units)))
        losses = np.array([problem.value(end) for end in ends])
        at_zero[units] = np.mean(losses < 1e-10)
        if units == 3:
            bad = ends[(losses > 1e-6) & (np.abs(ends).max(axis=1) < 30)]
            slopes = [problem.gradient(p) for p in bad]
            kinds = [
                conditioning.critical_point_kind(g, problem.hessian(p), 1e-10)
                for p, g in zip(bad, slopes, strict=True)
            ]
            assert kinds.count("minimum") >= 3
    assert at_zero[8] > at_zero[3] + 0.2


@pytest.mark.row("L1-37")
def test_convexity_holds_only_for_linear_model(rng):
    bowl, network = problems.quadratic(positive(rng, 4)), conditioning.two_weights()
    for _ in range(50):
        u, v, share = *rng.normal(size=(2, 4)), rng.uniform()
        chord = share * bowl.value(u) + (1 - share) * bowl.value(v)
        assert bowl.value(share * u + (1 - share) * v) <= chord + 1e-12
    one, other = np.array([1.0, 1.0]), np.array([-1.0, -1.0])
    assert network.value(one) == network.value(other) == 0
    assert network.value((one + other) / 2) == 0.5


@pytest.mark.row("L1-20")
def test_maxout_units_can_be_rescaled(rng):
    w, b, v, x = rng.normal(size=(4, 3)), rng.normal(size=4), 1.3, rng.normal(size=(20, 3))
    before = v * np.max(x @ w.T + b, axis=1)
    np.testing.assert_allclose(v / 2.5 * np.max(x @ (2.5 * w).T + 2.5 * b, axis=1), before)


# --- The nearest minimizer -------------------------------------------------------------------


@pytest.mark.row("L2-02")
def test_nearest_order_matches_exhaustive_search(rng):
    start, end = rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    order, signs, distance = conditioning.nearest_order(start, end)
    best = min(
        np.linalg.norm(start - np.array(turned)[:, None] * end[list(other)])
        for other in permutations(range(4))
        for turned in product([1, -1], repeat=4)
    )
    assert distance == pytest.approx(best, rel=1e-12)
    assert np.linalg.norm(start - signs[:, None] * end[order]) == pytest.approx(best, rel=1e-12)


@pytest.mark.row("L2-02")
@pytest.mark.parametrize("seed", range(4))
def test_training_keeps_the_nearest_unit_order(seed):
    split = load("digits").split(validation=300, seed=0)
    net = fully_connected((64, 32, 10), activation=nn.Tanh, seed=seed)

    def units():
        parts = net[1].weight, net[1].bias[:, None], net[3].weight.T
        return torch.cat(parts, dim=1).detach().double().numpy()

    begin = units()
    sgd = torch.optim.SGD(net.parameters(), lr=0.2)
    training.train(net, split.train, sgd, epochs=15, batch_size=64, seed=0)
    order, signs, distance = conditioning.nearest_order(begin, units())
    assert order.tolist() == list(range(32))
    assert np.all(signs == 1)
    assert distance == pytest.approx(np.linalg.norm(begin - units()), rel=1e-9)


@pytest.mark.row("P-06")
def test_distance_to_scalings_matches_numerical_search(rng):
    W, v = rng.normal(size=(2, 3)), rng.normal(size=2)
    point = np.concatenate([W.ravel(), v]) + 0.05 * rng.normal(size=8)

    def distance(log_alpha):
        alpha = np.exp(log_alpha)
        return np.linalg.norm(np.concatenate([(alpha[:, None] * W).ravel(), v / alpha]) - point)

    best = scipy.optimize.minimize(distance, np.zeros(2), method="Nelder-Mead", tol=1e-10).fun
    assert conditioning.distance_to_scalings(W, v, point) == pytest.approx(best, rel=1e-6)
    assert best < np.linalg.norm(np.concatenate([W.ravel(), v]) - point)


@pytest.mark.row("P-06")
def test_nearest_minimizer_distance_shrinks_at_kappa_rate(rng):
    W, v, x = rng.normal(size=(2, 2)), rng.normal(size=2), rng.normal(size=(60, 2))
    H = conditioning.relu_hessian_at_a_fit(W, v, x)
    kappa, eigenvalues = conditioning.condition_number(H), np.linalg.eigvalsh(H)
    start = np.concatenate([W.ravel(), v]) + 1e-5 * rng.normal(size=6)
    lr = 2 / (eigenvalues[2] + eigenvalues[-1])
    path = conditioning.relu_descent(W, v, x, start, lr, 300)
    late, later = (conditioning.distance_to_scalings(W, v, path[k]) for k in (200, 300))
    assert (later / late) ** 0.01 == pytest.approx((kappa - 1) / (kappa + 1), abs=1e-3)
    # the fixed minimizer is not where it ends
    assert np.linalg.norm(path[-1] - np.concatenate([W.ravel(), v])) > 100 * later


@pytest.mark.row("P-06")
def test_relu_descent_matches_torch(rng):
    W, v, x = rng.normal(size=(2, 2)), rng.normal(size=2), rng.normal(size=(9, 2))
    start = rng.normal(size=6)
    p = torch.from_numpy(start.copy()).requires_grad_()
    sgd, targets = torch.optim.SGD([p], lr=0.1), torch.from_numpy(np.maximum(x @ W.T, 0) @ v)
    for _ in range(5):
        hidden = torch.relu(torch.from_numpy(x) @ p[:4].reshape(2, 2).T)
        sgd.zero_grad()
        (((hidden @ p[4:] - targets) ** 2).mean() / 2).backward()
        sgd.step()
    path = conditioning.relu_descent(W, v, x, start, 0.1, 5)
    np.testing.assert_allclose(path[-1], p.detach(), rtol=1e-10)
