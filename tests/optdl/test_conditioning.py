"""Ill-conditioning and the landscape: dense matrices, autograd, torch and theorems as oracles."""

import copy
import math
from itertools import pairwise, permutations, product

import numpy as np
import pytest
import scipy.optimize
import torch
from torch import nn
from torch.autograd.functional import hessian as autograd_hessian
from torch.nn import functional

from optdl import conditioning, problems, training
from optdl.conditioning import condition_number, critical_point_kind, escape_steps, step_gain
from optdl.data import load
from optdl.networks import fully_connected


def positive(rng, n, kappa=50.0):
    """Return a positive definite matrix with eigenvalues from 1 to κ."""
    rotation, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return (rotation * np.geomspace(1, kappa, n)) @ rotation.T


def assert_derivatives(problem, loss, p):
    """Compare the value, the gradient and the Hessian with those that autograd finds."""
    point = torch.from_numpy(p).requires_grad_()
    (gradient,) = torch.autograd.grad(loss(point), point)
    assert problem.value(p) == pytest.approx(loss(point).item(), rel=1e-12)
    np.testing.assert_allclose(problem.gradient(p), gradient, rtol=1e-9, atol=1e-12)
    expected = autograd_hessian(loss, point.detach())
    np.testing.assert_allclose(problem.hessian(p), expected, rtol=1e-8, atol=1e-12)


# --- The condition number --------------------------------------------------------------------


@pytest.mark.row("L1-17", "P-06")
def test_condition_number_matches_numpy(rng):
    """The erratum: as the lecture words it, κ would be at most 1 for every matrix."""
    for shape in ((3, 3), (6, 2), (2, 5)):
        A = rng.normal(size=shape)
        assert condition_number(A) == pytest.approx(np.linalg.cond(A), rel=1e-10)
    # eigenvalues of zero do not count
    basis, _ = np.linalg.qr(rng.normal(size=(7, 4)))
    H = basis @ positive(rng, 4, kappa=20) @ basis.T
    assert condition_number(H) == pytest.approx(20, rel=1e-9)


def steps_by_counting(H, w, minimum, error):
    """Descend at the best rate until less than a fraction of the first distance is left."""
    values = np.linalg.eigvalsh(H)
    lr, first, count = 2 / (values[values > 1e-9][0] + values[-1]), np.linalg.norm(w - minimum), 0
    while np.linalg.norm(w - minimum) > error * first:
        w, count = w - lr * H @ w, count + 1
    return count


@pytest.mark.row("L1-17")
@pytest.mark.parametrize("kappa", [1.5, 10.0, 300.0])
def test_iterations_needed_match_gradient_descent(kappa, rng):
    count = steps_by_counting(np.diag([1.0, kappa]), np.ones(2), 0, 1e-4)
    assert conditioning.iterations_needed(kappa, 1e-4) == count
    rotation, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    H = (rotation * [0, 0, 0.5, 3, 8]) @ rotation.T
    start = rotation[:, 2] + rotation[:, 4] + rotation[:, 0]
    count = steps_by_counting(H, start, rotation[:, 0], 1e-2)
    assert conditioning.steps_needed(H, 1e-2) == count


@pytest.mark.row("L1-17")
def test_iterations_needed_grow_linearly_with_kappa():
    kappas = np.geomspace(10, 1e6, 12)
    steps = [conditioning.iterations_needed(kappa, 1e-3) for kappa in kappas]
    assert np.polyfit(np.log(kappas), np.log(steps), 1)[0] == pytest.approx(1, abs=0.01)


# --- Uphill ----------------------------------------------------------------------------------


@pytest.mark.row("L1-18")
def test_step_gain_and_uphill_step_are_exact_on_quadratics(rng):
    bowl, w = problems.quadratic(positive(rng, 4)), rng.normal(size=4)
    g, H = bowl.gradient(w), bowl.hessian(w)
    d = g + 0.15 * np.linalg.norm(g) * rng.normal(size=4)
    for lr in (0.0, 0.01, 0.3, 5.0):
        for gain, step in ((step_gain(g, H, lr), g), (step_gain(g, H, lr, d), d)):
            expected = bowl.value(w - lr * step) - bowl.value(w)
            assert gain == pytest.approx(expected, rel=1e-9, abs=1e-9)
    for limit, step in (
        (conditioning.uphill_step(g, H), g),
        (conditioning.uphill_step(g, H, d), d),
    ):
        below, above = (bowl.value(w - c * limit * step) for c in (0.999, 1.001))
        assert below < bowl.value(w) < above
    assert conditioning.uphill_step(g, H, -d) == 0
    assert conditioning.uphill_step(np.array([0.0, -1.0]), np.diag([1.0, -1.0])) == math.inf


# --- Hessian-vector products -----------------------------------------------------------------


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
    products = conditioning.hessian_vector_product(loss, parameters, v)
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
def test_difference_product_and_power_iteration_match_hessian():
    problem, w, v = problems.rosenbrock(), np.array([0.3, -0.5]), np.array([1.0, 2.0])
    difference = conditioning.difference_hessian_vector_product
    errors = [
        np.linalg.norm(difference(problem.gradient, w, v, step) - problem.hessian(w) @ v)
        for step in (0.1, 0.05)
    ]
    assert errors[0] / errors[1] == pytest.approx(4, rel=1e-6)  # of second order
    values = np.linalg.eigvalsh(problem.hessian(w))
    for sign in (1, -1):
        estimates = conditioning.power_iteration(
            lambda w, sign=sign: sign * problem.gradient(w), w, np.array([1.0, 3.0]), 1e-4, 30
        )
        assert estimates[-1] == pytest.approx(sign * values[np.abs(values).argmax()], rel=1e-6)


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


# --- Equivalent weights ----------------------------------------------------------------------


def outputs(x, W, b, v):
    return np.maximum(x @ W.T + b, 0) @ v


@pytest.mark.row("L1-20")
@pytest.mark.parametrize("seed", range(3))
def test_equivalent_networks_compute_the_same_and_have_one_canonical_form(seed):
    rng = np.random.default_rng(seed)
    W, b, v, x = (rng.normal(size=s) for s in ((5, 3), 5, 5, (30, 3)))
    factors, order = np.exp(rng.normal(size=5)), rng.permutation(5).tolist()
    rescaled = conditioning.rescale_hidden_units(W, b, v, factors)
    permuted = conditioning.permute_hidden_units(W, b, v, order)
    canonical = conditioning.canonical_units(W, b, v)
    for other in (rescaled, permuted, canonical):
        np.testing.assert_allclose(outputs(x, *other), outputs(x, W, b, v), rtol=1e-9, atol=1e-12)
        assert not np.allclose(other[0], W)
    moved = conditioning.permute_hidden_units(*rescaled, order)
    for left, right in zip(conditioning.canonical_units(*moved), canonical, strict=True):
        np.testing.assert_allclose(left, right)

    # weight decay cannot make the sum of squares smaller without changing the function
    def squares(logarithms):
        parts = conditioning.rescale_hidden_units(W, b, v, np.exp(logarithms))
        return sum((part**2).sum() for part in parts)

    least = scipy.optimize.minimize(squares, np.zeros(5)).fun
    assert sum((part**2).sum() for part in canonical) == pytest.approx(least, rel=1e-8)
    assert conditioning.equivalent_minima(3, 2) == len([*permutations(range(3))]) ** 2


@pytest.mark.row("L1-20")
def test_maxout_units_can_be_rescaled(rng):
    w, b, v, x = rng.normal(size=(4, 3)), rng.normal(size=4), 1.3, rng.normal(size=(20, 3))
    before = v * np.max(x @ w.T + b, axis=1)
    np.testing.assert_allclose(v / 2.5 * np.max(x @ (2.5 * w).T + 2.5 * b, axis=1), before)


@pytest.mark.row("P-06")
def test_fit_hessian_matches_autograd_and_has_a_flat_direction_per_unit(rng):
    W, v, x = rng.normal(size=(3, 2)), rng.normal(size=3), rng.normal(size=(40, 2))
    y = torch.from_numpy(np.maximum(x @ W.T, 0) @ v)

    def loss(p):
        hidden = torch.relu(torch.from_numpy(x) @ p[:6].reshape(3, 2).T)
        return ((hidden @ p[6:] - y) ** 2).mean() / 2

    H = conditioning.relu_hessian_at_a_fit(W, v, x)
    point = torch.from_numpy(np.concatenate([W.ravel(), v]))
    np.testing.assert_allclose(H, autograd_hessian(loss, point), atol=1e-10)
    eigenvalues = np.linalg.eigvalsh(H)
    assert np.sum(eigenvalues < 1e-10 * eigenvalues[-1]) == 3


@pytest.mark.row("P-06")
def test_nearest_minimizer_distance_shrinks_at_kappa_rate(rng):
    """Away from the flat directions the error falls at the rate (κ* − 1)/(κ* + 1)."""
    W, v, x = rng.normal(size=(2, 2)), rng.normal(size=2), rng.normal(size=(60, 2))
    H = conditioning.relu_hessian_at_a_fit(W, v, x)
    kappa, eigenvalues = condition_number(H), np.linalg.eigvalsh(H)
    assert kappa == pytest.approx(eigenvalues[-1] / eigenvalues[2], rel=1e-8)
    fitted = np.concatenate([W.ravel(), v])
    start, lr = fitted + 1e-5 * rng.normal(size=6), 2 / (eigenvalues[2] + eigenvalues[-1])
    path = conditioning.relu_descent(W, v, x, start, lr, 300)
    late, later = (conditioning.distance_to_scalings(W, v, path[k]) for k in (200, 300))
    assert (later / late) ** 0.01 == pytest.approx((kappa - 1) / (kappa + 1), abs=1e-3)
    # the fixed minimizer is not where it ends
    assert np.linalg.norm(path[-1] - fitted) > 100 * later


@pytest.mark.row("P-06")
def test_distance_to_scalings_matches_numerical_search(rng):
    W, v = rng.normal(size=(2, 3)), rng.normal(size=2)
    point = np.concatenate([W.ravel(), v]) + 0.05 * rng.normal(size=8)

    def distance(log_alpha):
        alpha = np.exp(log_alpha)
        return np.linalg.norm(np.concatenate([(alpha[:, None] * W).ravel(), v / alpha]) - point)

    best = scipy.optimize.minimize(distance, np.zeros(2), method="Nelder-Mead", tol=1e-10).fun
    assert conditioning.distance_to_scalings(W, v, point) == pytest.approx(best, rel=1e-6)


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


# --- Saddles, cliffs, basins -----------------------------------------------------------------


@pytest.mark.row("L1-21")
def test_minima_fraction_matches_exact_values_and_falls_faster_than_geometrically():
    """½, and (2 − √2)/4 for two: the angle of the cone of positive definite matrices."""
    rng = np.random.default_rng(3)
    shares = [conditioning.minima_fraction(n, 60_000, rng) for n in (1, 2, 3, 4)]
    for share, exact in zip(shares, (0.5, (2 - math.sqrt(2)) / 4), strict=False):
        assert share == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 60_000))
    ratios = [b / a for a, b in pairwise(shares)]
    assert 0.35 > ratios[0] > ratios[1] > ratios[2]


@pytest.mark.row("L1-22")
@pytest.mark.parametrize("p", [(6.0, -3.1), (2.0, 0.4)])
def test_cliff_derivatives_match_autograd(p):
    def loss(p):
        h = torch.tensor(0.5, dtype=torch.float64)
        for _ in range(12):
            h = torch.sigmoid(p[0] * h + p[1])
        return (h - 0.7) ** 2

    assert_derivatives(conditioning.recurrent_cliff(steps=12), loss, np.array(p))


@pytest.mark.row("L1-22")
@pytest.mark.parametrize("bound", [0.5, 3.0, 100.0])
def test_clipping_matches_torch(bound, rng):
    arrays = {str(shape): rng.normal(size=shape) for shape in ((3, 4), (4,), (2, 2))}
    for ours, theirs in (
        (conditioning.clip_by_norm, nn.utils.clip_grad_norm_),
        (conditioning.clip_by_value, nn.utils.clip_grad_value_),
    ):
        parameters = [nn.Parameter(torch.from_numpy(0 * array)) for array in arrays.values()]
        for parameter, array in zip(parameters, arrays.values(), strict=True):
            parameter.grad = torch.from_numpy(array.copy())
        theirs(parameters, bound)
        tensors = [torch.from_numpy(array) for array in arrays.values()]
        clipped = zip(ours(arrays, bound).values(), ours(tensors, bound), parameters, strict=True)
        for array, tensor, parameter in clipped:
            # torch divides by the norm plus 1e-6
            np.testing.assert_allclose(array, parameter.grad, rtol=3e-6)
            np.testing.assert_allclose(tensor, array, rtol=1e-14)


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
def test_noise_and_bias_leave_the_predicted_error(rng):
    """Iterate many times at once, until the start is forgotten."""
    H, bias, sigma, runs = positive(rng, 3), rng.normal(size=3), 0.7, 20_000
    values = np.linalg.eigvalsh(H)
    lr, w = min(0.1, 1 / values[-1]), np.zeros((runs, 3))
    for _ in range(int(8 / (lr * values[0]))):
        w = w - lr * (w @ H + bias + sigma * rng.normal(size=w.shape))
    limit = conditioning.limit_point(H, np.zeros(3), bias)
    spread = np.sqrt(conditioning.stationary_variance(values, lr, sigma))
    along = (w - limit) @ np.linalg.eigh(H)[1]
    np.testing.assert_allclose(along.std(axis=0), spread, rtol=5 / math.sqrt(2 * runs))
    assert np.all(np.abs(along.mean(axis=0)) < 5 * spread / math.sqrt(runs))
    losses = np.einsum("ij,jk,ik->i", w, H, w) / 2
    expected = conditioning.excess_loss(H, bias, lr, sigma)
    assert losses.mean() == pytest.approx(expected, abs=5 * losses.std() / math.sqrt(runs))


@pytest.mark.row("L1-22", "L1-23")
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


# --- Edge of stability -----------------------------------------------------------------------


@pytest.mark.row("F-02")
def test_tracked_descent_matches_torch(network):
    model, x, y = network
    twin = copy.deepcopy(model)
    run = conditioning.track_descent(model, x, y, conditioning.squared_error, 0.3, 6, 3)
    assert run.steps.tolist() == [0, 3]
    sgd, losses, gradients = torch.optim.SGD(twin.parameters(), lr=0.3), [], []
    for step in range(6):
        loss = 3 * functional.mse_loss(twin(x), functional.one_hot(y, 3).double()) / 2
        losses.append(loss.item())
        sgd.zero_grad()
        loss.backward()
        g = flat(part.grad for part in twin.parameters())
        gradients.append(g)
        if step == 3:
            H = dense_hessian(twin, x, y, conditioning.squared_error)
            assert run.gradient_norms[1] == pytest.approx(g.norm().item(), rel=1e-10)
            assert run.curvatures[1] == pytest.approx((g @ H @ g).item(), rel=1e-8)
            assert run.sharpness[1] == pytest.approx(torch.linalg.eigvalsh(H)[-1].item(), rel=1e-3)
            expected = step_gain(g.numpy(), H.numpy(), 0.3)
            assert run.predictions[1] == pytest.approx(expected, rel=1e-8)
        sgd.step()
    np.testing.assert_allclose(run.losses[:6], losses, rtol=1e-10)
    cosines = functional.cosine_similarity(torch.stack(gradients[1:]), torch.stack(gradients[:-1]))
    np.testing.assert_allclose(run.cosines, cosines, rtol=1e-10)
    assert run.changes[1] == pytest.approx(run.losses[4] - run.losses[3], abs=1e-14)


@pytest.mark.row("F-02")
def test_quadratic_gradient_cosines_flip_beyond_threshold(rng):
    """In the eigenbasis each step multiplies the gradient's coefficients by 1 − ηλ."""
    eigenvalues, start = np.array([0.5, 1.0, 4.0]), rng.normal(size=3)
    for lr in (0.1, 0.6):
        cosines = conditioning.gradient_cosines(lambda w: eigenvalues * w, start, lr, 30)
        path = eigenvalues * start * (1 - lr * eigenvalues) ** np.arange(31)[:, None]
        unit = path / np.linalg.norm(path, axis=1, keepdims=True)
        np.testing.assert_allclose(cosines, np.sum(unit[1:] * unit[:-1], axis=1), rtol=1e-10)
        assert cosines[-1] == pytest.approx(1 if lr < 0.5 else -1, abs=1e-3)


@pytest.mark.row("F-02")
@pytest.mark.parametrize("lr", [0.15, 0.25])
def test_sharpness_settles_at_two_over_rate(lr):
    """Cohen et al. (2021): the oracle is the threshold 2/η, which comes from quadratics."""
    train = load("digits").split(validation=300, seed=0).train
    x, y = torch.tensor(train.x[:300]).double(), torch.tensor(train.y[:300])
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 10)).double()
    run = conditioning.track_descent(model, x, y, conditioning.squared_error, lr, 1400, 50)
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


@pytest.mark.row("F-04", "L1-21")
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
    assert critical_point_kind(np.zeros(3), H, 1e-9) == kind
    assert critical_point_kind(np.full(3, 0.1), H, 1e-9) == "not critical"


@pytest.mark.row("F-04")
@pytest.mark.parametrize("distance", [0.3, 1e-3, 1e-9, 2.0])
def test_escape_steps_match_gradient_descent_on_saddle(distance):
    """The closed form on ½(x² − y²), against steps of gradient descent that are counted."""
    point, count = np.array([1.0, distance]), 0
    while abs(point[1]) < 1.5:
        point, count = point - 0.07 * problems.saddle().gradient(point), count + 1
    assert escape_steps(distance, 1.5, 0.07, 1.0) == count


@pytest.mark.row("F-04")
def test_two_weights_derivatives_match_autograd_and_starts_leave_its_saddle(rng):
    """Lee et al. (2016): the starts that converge to a strict saddle have measure zero."""
    network, origin = conditioning.two_weights(), np.zeros(2)
    for p in rng.normal(size=(4, 2)):
        assert_derivatives(network, lambda q: (q[0] * q[1] - 1) ** 2 / 2, p)
        np.testing.assert_allclose(network.gradients(p[None])[0], network.gradient(p), rtol=1e-10)
    kind = critical_point_kind(network.gradient(origin), network.hessian(origin), 1e-9)
    assert kind == "strict saddle"
    points = rng.uniform(-2, 2, size=(5000, 2))
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
        steps = 1e-5 * np.eye(6)
        columns = np.array([problem.gradient(p + e) - problem.gradient(p - e) for e in steps])
        eigenvalues = np.linalg.eigvalsh(columns + columns.T) / 4e-5
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

    assert_derivatives(conditioning.tanh_regression(x, y, units=2), loss, p)


@pytest.mark.row("L1-37")
def test_equal_size_students_recover_the_teacher_and_wide_ones_meet_fewer_bad_minima():
    """Sussmann (1992): a tanh network is identifiable up to these symmetries, and no others."""
    (x, y, teacher), rng, at_zero = conditioning.student_teacher(0), np.random.default_rng(1), {}
    for units in (3, 8):
        problem = conditioning.tanh_regression(x, y, units)
        ends = conditioning.fit_from(x, y, rng.normal(size=(40, 4 * units)))
        losses = np.array([problem.value(end) for end in ends])
        at_zero[units] = np.mean(losses < 1e-10)
        if units == 3:
            for end in ends[losses < 1e-10]:
                rows = np.column_stack([end[:9].reshape(3, 3), end[9:]])
                assert conditioning.nearest_order(teacher, rows)[2] < 1e-6
            bad = ends[(losses > 1e-6) & (np.abs(ends).max(axis=1) < 30)]
            kinds = [
                critical_point_kind(problem.gradient(p), problem.hessian(p), 1e-10) for p in bad
            ]
            assert kinds.count("minimum") >= 3
    assert at_zero[8] > at_zero[3] + 0.2 > 0.2


@pytest.mark.row("L1-37")
def test_convexity_holds_only_for_linear_model(rng):
    bowl, network = problems.quadratic(positive(rng, 4)), conditioning.two_weights()
    for _ in range(50):
        u, v, share = *rng.normal(size=(2, 4)), rng.uniform()
        chord = share * bowl.value(u) + (1 - share) * bowl.value(v)
        assert bowl.value(share * u + (1 - share) * v) <= chord + 1e-12
    assert network.value(np.ones(2)) == network.value(-np.ones(2)) == 0
    assert network.value(np.zeros(2)) == 0.5


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
@pytest.mark.parametrize("seed", range(2))
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
