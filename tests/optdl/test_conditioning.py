"""Ill-conditioning and the landscape: dense matrices, autograd, torch and theorems as oracles."""

import copy
import inspect
import math
from itertools import pairwise, permutations, product

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import torch
from numpy.testing import assert_allclose
from oracles import assert_derivatives, torch_path, with_spectrum
from torch import nn
from torch.autograd.functional import hessian as autograd_hessian
from torch.nn import functional

from optdl import conditioning, problems, training
from optdl.conditioning import condition_number, critical_point_kind, step_gain


@pytest.mark.row("L1-17", "P-06")
def test_condition_number_matches_numpy(rng):
    """The erratum: as the lecture words it, κ would be at most 1 for every matrix."""
    for shape in ((3, 3), (6, 2), (2, 5)):
        A = rng.normal(size=shape)
        assert condition_number(A) == pytest.approx(np.linalg.cond(A), rel=1e-10)
    # eigenvalues of zero do not count
    basis, _ = np.linalg.qr(rng.normal(size=(7, 4)))
    H = basis @ with_spectrum(rng, np.geomspace(1, 20, 4)) @ basis.T
    assert condition_number(H) == pytest.approx(20, rel=1e-9)
    assert condition_number(H.astype(np.float32)) == pytest.approx(20, rel=1e-4)
    assert condition_number(np.diag([1, 1e-6]).astype(np.float32)) == pytest.approx(1e6)


@pytest.fixture
def network():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    x, y = torch.randn(20, 4).double(), torch.randint(0, 3, (20,))
    return model, x, y


def flat(parts):
    return torch.cat([part.flatten() for part in parts])


def dense_hessian(model, x, y, criterion=functional.cross_entropy):
    names, parts = zip(*model.named_parameters(), strict=True)

    def loss(row):
        values = torch.split(row, [p.numel() for p in parts])
        named = zip(names, values, parts, strict=True)
        weights = {name: value.reshape(part.shape) for name, value, part in named}
        return criterion(torch.func.functional_call(model, weights, (x,)), y)

    return autograd_hessian(loss, flat(parts).detach())


@pytest.mark.row("L1-19", "F-02")
def test_products_and_largest_eigenpair_match_dense_hessian(network):
    model, x, y = network
    parameters, H = list(model.parameters()), dense_hessian(*network)
    v = [torch.randn_like(p) for p in parameters]
    loss = functional.cross_entropy(model(x), y)
    products = conditioning.hessian_vector_product(loss, model.parameters(), v)
    torch.testing.assert_close(flat(products), H @ flat(v))
    values, vectors = np.linalg.eigh(H.numpy())
    value, vector = conditioning.largest_eigenvalue(loss, parameters)
    assert value == pytest.approx(values[-1], rel=1e-6)
    assert abs(vector @ vectors[:, -1]) == pytest.approx(1, abs=1e-5)
    again, _ = conditioning.largest_eigenvalue(loss, parameters, vector, 1e-4)
    assert again == pytest.approx(value, rel=1e-4)
    # a linear loss has no curvature
    w = torch.ones(3, requires_grad=True)
    (product,) = conditioning.hessian_vector_product(w.sum(), [w], [torch.ones(3)])
    assert product.tolist() == [0, 0, 0]


@pytest.mark.row("L1-19")
def test_difference_product_has_an_error_of_second_order():
    problem, w, v = problems.rosenbrock(), np.array([0.3, -0.5]), np.array([1.0, 2.0])
    difference = conditioning.difference_hessian_vector_product
    coarse, fine = (
        np.linalg.norm(difference(problem.gradient, w, v, step) - problem.hessian(w) @ v)
        for step in (0.1, 0.05)
    )
    assert coarse / fine == pytest.approx(4, rel=1e-6)


@pytest.mark.row("L1-19")
def test_hook_measures_slope_and_curvature_along_minibatch_gradient(network):
    model, x, y = network
    parameters, expected = list(model.parameters()), []
    g = flat(torch.autograd.grad(functional.cross_entropy(model(x), y), parameters))
    hook = conditioning.CurvatureHook(x, y, functional.cross_entropy)
    state = training.State(model, torch.optim.SGD(parameters), curves={})
    for rows in (slice(3), slice(3, 8)):
        model.zero_grad()
        functional.cross_entropy(model(x[rows]), y[rows]).backward()
        batch = flat(part.grad for part in parameters)
        hook.after_backward(state)
        expected.append([float(g @ batch), float(batch @ dense_hessian(*network) @ batch)])
    hook.after_epoch(state)
    slope, curvature = np.mean(expected, axis=0)
    assert state.curves["slope"] == pytest.approx([slope], rel=1e-10)
    assert state.curves["curvature"] == pytest.approx([curvature], rel=1e-8)
    assert hook.rows == []


def outputs(x, W, b, v):
    return np.maximum(x @ W.T + b, 0) @ v


@pytest.mark.row("L1-20")
def test_equivalent_networks_share_outputs(rng):
    W, b, v, x = (rng.normal(size=s) for s in ((5, 3), 5, 5, (30, 3)))
    factors, order = np.exp(rng.normal(size=5)), rng.permutation(5).tolist()
    rescaled = conditioning.rescale_hidden_units(W, b, v, factors)
    permuted = conditioning.permute_hidden_units(W, b, v, order)
    for other in (rescaled, permuted, conditioning.canonical_units(W, b, v)):
        assert_allclose(outputs(x, *other), outputs(x, W, b, v), rtol=1e-9, atol=1e-12)
        assert not np.allclose(other[0], W)


def one_layer(x, y, units, activation):
    """Half the mean squared error of a network without biases, for autograd."""
    x, y = torch.from_numpy(x), torch.from_numpy(y)

    def loss(p):
        hidden = activation(x @ p[:-units].reshape(units, -1).T)
        return ((hidden @ p[-units:] - y) ** 2).mean() / 2

    return loss


@pytest.mark.row("P-06")
def test_fit_hessian_and_descent_match_autograd(rng):
    W, v, x = rng.normal(size=(3, 2)), rng.normal(size=3), rng.normal(size=(40, 2))
    H = conditioning.relu_hessian_at_a_fit(W, v, x)
    loss = one_layer(x, outputs(x, W, 0, v), 3, torch.relu)
    point = torch.from_numpy(np.append(W, v))
    assert_allclose(H, autograd_hessian(loss, point), atol=1e-10)
    eigenvalues = np.linalg.eigvalsh(H)
    assert np.sum(eigenvalues < 1e-10 * eigenvalues[-1]) == 3  # a flat direction for each unit
    p = torch.tensor(rng.normal(size=9), requires_grad=True)
    start, sgd = p.detach().numpy().copy(), torch.optim.SGD([p], lr=0.1)
    path = conditioning.relu_descent(W, v, x, start, 0.1, 5)
    assert_allclose(path, torch_path(sgd, p, lambda: loss(p), 5), rtol=1e-10)


@pytest.mark.row("P-06")
def test_nearest_minimizer_distance_shrinks_at_kappa_rate(rng):
    """Away from the flat directions the error falls at the rate (κ* − 1)/(κ* + 1)."""
    W, v, x = rng.normal(size=(2, 2)), rng.normal(size=2), rng.normal(size=(60, 2))
    H = conditioning.relu_hessian_at_a_fit(W, v, x)
    kappa, eigenvalues = condition_number(H), np.linalg.eigvalsh(H)
    assert kappa == pytest.approx(eigenvalues[-1] / eigenvalues[2], rel=1e-8)
    fitted = np.append(W, v)
    start, lr = fitted + 1e-5 * rng.normal(size=6), 2 / (eigenvalues[2] + eigenvalues[-1])
    path = conditioning.relu_descent(W, v, x, start, lr, 300)
    late, later = (conditioning.distance_to_scalings(W, v, path[k]) for k in (200, 300))
    assert (later / late) ** 0.01 == pytest.approx((kappa - 1) / (kappa + 1), abs=1e-3)
    # the fixed minimizer is not where it ends
    assert np.linalg.norm(path[-1] - fitted) > 100 * later


@pytest.mark.row("P-06")
def test_distance_to_scalings_matches_numerical_search(rng):
    W, v = rng.normal(size=(2, 3)), rng.normal(size=2)
    point = np.append(W, v) + 0.05 * rng.normal(size=8)

    def distance(log_alpha):
        alpha = np.exp(log_alpha)
        return np.linalg.norm(np.append(alpha[:, None] * W, v / alpha) - point)

    best = scipy.optimize.minimize(distance, np.zeros(2), method="Nelder-Mead", tol=1e-10).fun
    assert conditioning.distance_to_scalings(W, v, point) == pytest.approx(best, rel=1e-6)


@pytest.mark.row("L1-21")
def test_minima_fraction_matches_exact_values_with_falling_ratios():
    """½, and (2 − √2)/4 for two: the angle of the cone of positive definite matrices."""
    rng = np.random.default_rng(3)
    shares = [conditioning.minima_fraction(n, 60_000, rng) for n in (1, 2, 3, 4)]
    for share, exact in zip(shares, (0.5, (2 - math.sqrt(2)) / 4), strict=False):
        assert share == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 60_000))
    ratios = [b / a for a, b in pairwise(shares)]
    assert 0.35 > ratios[0] > ratios[1] > ratios[2]


@pytest.mark.row("L1-22")
@pytest.mark.parametrize("bound", [0.5, 3.0, 100.0])
def test_clipping_matches_torch(bound, rng):
    arrays = {str(shape): rng.normal(size=shape) for shape in ((3, 4), (4,), (2, 2))}
    for ours, theirs in (
        (conditioning.clip_by_norm, nn.utils.clip_grad_norm_),
        (conditioning.clip_by_value, nn.utils.clip_grad_value_),
    ):
        parameters = [nn.Parameter(torch.from_numpy(0 * array)) for array in arrays.values()]
        tensors = [torch.from_numpy(array) for array in arrays.values()]
        for parameter, tensor in zip(parameters, tensors, strict=True):
            parameter.grad = tensor.clone()
        theirs(parameters, bound)
        clipped = zip(ours(arrays, bound).values(), ours(tensors, bound), parameters, strict=True)
        for array, tensor, parameter in clipped:
            # torch divides by the norm plus 1e-6
            assert_allclose(array, parameter.grad, rtol=3e-6)
            assert_allclose(tensor, array, rtol=1e-14)
    # half precision has no room for the squares
    [half] = conditioning.clip_by_norm([np.full(4, 300.0, np.float16)], 2.0)
    assert (half.dtype, half.tolist()) == (np.float16, [1.0] * 4)


@pytest.mark.row("L2-02")
def test_descent_ends_in_the_nearest_of_three_wells(rng):
    centers = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    wells = problems.mixture(centers)
    starts = np.concatenate([c + 0.8 * rng.uniform(-1, 1, size=(10, 2)) for c in centers])
    ends = conditioning.basins(wells, centers, starts, lr=0.5, steps=200)
    assert ends.tolist() == [0] * 10 + [1] * 10 + [2] * 10
    far = conditioning.basins(wells, centers, np.array([[50.0, 50.0]]), lr=0.5, steps=10)
    assert np.isnan(far).all()


@pytest.mark.row("L1-23")
def test_noise_and_bias_leave_the_predicted_error(rng):
    """Iterate many times at once, until the start is forgotten."""
    H, bias, sigma, runs = with_spectrum(rng, [1, 7, 50]), rng.normal(size=3), 0.7, 20_000
    values = np.linalg.eigvalsh(H)
    lr, w = min(0.1, 1 / values[-1]), np.zeros((runs, 3))
    for _ in range(int(8 / (lr * values[0]))):
        w = w - lr * (w @ H + bias + sigma * rng.normal(size=w.shape))
    limit = conditioning.limit_point(H, np.zeros(3), bias)
    spread = np.sqrt(conditioning.stationary_variance(values, lr, sigma))
    along = (w - limit) @ np.linalg.eigh(H)[1]
    assert_allclose(along.std(axis=0), spread, rtol=5 / math.sqrt(2 * runs))
    assert np.all(np.abs(along.mean(axis=0)) < 5 * spread / math.sqrt(runs))


@pytest.mark.row("L1-22", "L1-23")
def test_clipped_gradients_reach_huber_minimum(rng):
    x, c = rng.exponential(size=200), 0.4
    expected = scipy.optimize.minimize_scalar(
        lambda w: scipy.special.huber(c, w - x).mean(), bounds=(0, 5), options={"xatol": 1e-10}
    ).x
    assert conditioning.clipped_limit(x, c) == pytest.approx(expected, abs=1e-6)
    assert conditioning.clipped_limit(np.ones(3), 1.0) == 1.0


@pytest.mark.row("F-02")
def test_tracked_descent_matches_torch(network):
    model, x, y = network
    twin = copy.deepcopy(model)
    run = conditioning.track_descent(model, x, y[:, None], conditioning.squared_error, 0.3, 6, 3)
    assert run.steps.tolist() == [0, 3]
    sgd, losses, gradients = torch.optim.SGD(twin.parameters(), lr=0.3), [], []
    for step in range(6):
        loss = 3 * functional.mse_loss(twin(x), functional.one_hot(y, 3).double()) / 2
        losses.append(loss.item())
        sgd.zero_grad()
        loss.backward()
        gradients.append(flat(part.grad for part in twin.parameters()).numpy())
        if step == 3:
            H = dense_hessian(twin, x, y, conditioning.squared_error).numpy()
        sgd.step()
    g, measured = gradients[3], (run.gradient_norms, run.curvatures, run.predictions)
    expected = np.linalg.norm(g), g @ H @ g, step_gain(g, H, 0.3)
    assert [values[1] for values in measured] == pytest.approx(expected, rel=1e-8)
    assert run.sharpness[1] == pytest.approx(np.linalg.eigvalsh(H)[-1], rel=1e-3)
    assert_allclose(run.losses[:6], losses, rtol=1e-10)
    units = gradients / np.linalg.norm(gradients, axis=1, keepdims=True)
    assert_allclose(run.cosines, np.sum(units[1:] * units[:-1], axis=1), rtol=1e-10)
    assert run.changes[1] == pytest.approx(losses[4] - losses[3], abs=1e-14)


@pytest.mark.row("F-04", "L1-21")
@pytest.mark.parametrize(
    ("kind", "spectrum"),
    [("strict saddle", [-1, 0, 3]), ("degenerate", [0, 1, 2]), ("degenerate", [-1, -1, 0])],
)
def test_critical_point_kind_follows_the_spectrum(kind, spectrum, rng):
    H = with_spectrum(rng, spectrum)
    assert critical_point_kind(np.zeros(3), H, 1e-9) == kind
    for slope in (0.1, math.nan):
        assert critical_point_kind(np.full(3, slope), H, 1e-9) == "not critical"


@pytest.mark.row("F-04", "L1-37")
def test_critical_points_have_autograds_derivatives_and_indices(rng):
    x, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    problem = inspect.unwrap(conditioning.tanh_regression)(x, y[:, None], units=2)
    assert_derivatives(problem, one_layer(x, y, 2, torch.tanh), rng.normal(size=6))
    found = conditioning.critical_points(problem, rng.normal(size=(30, 6)))
    assert len(found.losses) >= 5
    assert set(found.indices) - {0}
    for p, index in zip(found.points, found.indices, strict=True):
        eigenvalues = np.linalg.eigvalsh(problem.hessian(p))
        clear = np.abs(eigenvalues) > 1e-6
        assert np.sum(eigenvalues[clear] < 0) == pytest.approx(index, abs=np.sum(~clear))
        assert np.linalg.norm(problem.gradient(p)) < 1e-10


@pytest.mark.row("L1-37")
def test_students_recover_teacher_or_reach_bad_minima():
    """Sussmann (1992): a tanh network is identifiable up to these symmetries, and no others."""
    x, y, teacher = conditioning.student_teacher(0)
    problem = conditioning.tanh_regression(x, y, units=3)
    ends = conditioning.fit_from(x, y, np.random.default_rng(1).normal(size=(40, 12)))
    losses = np.array([problem.value(end) for end in ends])
    assert np.any(losses < 1e-10)
    for end in ends[losses < 1e-10]:
        rows = np.column_stack([end[:9].reshape(3, 3), end[9:]])
        assert conditioning.nearest_order(teacher, rows)[2] < 1e-6
    bad = ends[(losses > 1e-6) & (np.abs(ends).max(axis=1) < 30)]
    kinds = [critical_point_kind(problem.gradient(p), problem.hessian(p), 1e-10) for p in bad]
    assert kinds.count("minimum") >= 3


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
