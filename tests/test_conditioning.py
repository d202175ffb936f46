"""Ill-conditioning and the landscape: dense matrices, autograd, torch and theorems as oracles."""

import math
from itertools import pairwise, permutations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from optdl import conditioning, problems, training
from optdl.data import load


def positive(rng, n, kappa=50.0):
    """Return a positive definite matrix with eigenvalues from 1 to κ."""
    rotation, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return (rotation * np.geomspace(1, kappa, n)) @ rotation.T


# --- The condition number --------------------------------------------------------------------


@pytest.mark.row("L1-17")
@pytest.mark.parametrize("shape", [(3, 3), (6, 2), (2, 5)])
def test_the_condition_number_is_that_of_numpy(shape, rng):
    A = rng.normal(size=shape)
    assert conditioning.condition_number(A) == pytest.approx(np.linalg.cond(A), rel=1e-10)


@pytest.mark.row("L1-17")
def test_largest_stands_over_smallest():
    """The erratum: as the lecture words it, κ would be ¼ here, and less than 1 for every matrix."""
    H = np.diag([2.0, 8.0])
    assert conditioning.condition_number(H) == 4.0
    assert np.linalg.cond(H) == 4.0


@pytest.mark.row("P-06")
def test_a_singular_matrix_has_the_condition_number_of_its_nonzero_part(rng):
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
def test_the_number_of_steps_is_that_of_gradient_descent(kappa):
    H, w = np.array([1.0, kappa]), np.ones(2)
    count, lr = 0, 2 / (1 + kappa)
    while np.linalg.norm(w) > 1e-4 * math.sqrt(2):
        w, count = w - lr * H * w, count + 1
    assert conditioning.iterations_needed(kappa, 1e-4) == count


@pytest.mark.row("L1-17")
def test_the_number_of_steps_grows_like_the_condition_number():
    kappas = np.geomspace(10, 1e6, 12)
    steps = [conditioning.iterations_needed(kappa, 1e-3) for kappa in kappas]
    slope = np.polyfit(np.log(kappas), np.log(steps), 1)[0]
    assert slope == pytest.approx(1, abs=0.01)
    with pytest.raises(ValueError, match="expected κ ≥ 1"):
        conditioning.iterations_needed(0.5, 0.1)


# --- Uphill ----------------------------------------------------------------------------------


@pytest.mark.row("L1-18")
@pytest.mark.parametrize("lr", [0.0, 0.01, 0.3, 5.0])
def test_the_gain_is_exact_on_quadratics(lr, rng):
    bowl = problems.quadratic(positive(rng, 4))
    w = rng.normal(size=4)
    g = bowl.gradient(w)
    expected = bowl.value(w - lr * g) - bowl.value(w)
    gain = conditioning.step_gain(g, bowl.hessian(w), lr)
    assert gain == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.row("L1-18")
def test_beyond_the_limit_a_step_goes_uphill_and_before_it_downhill(rng):
    bowl = problems.quadratic(positive(rng, 4))
    w = rng.normal(size=4)
    g, limit = bowl.gradient(w), conditioning.uphill_step(bowl.gradient(w), bowl.hessian(w))
    assert bowl.value(w - 0.999 * limit * g) < bowl.value(w) < bowl.value(w - 1.001 * limit * g)


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


def dense_hessian(model, x, y):
    names, parts = zip(*model.named_parameters(), strict=True)
    sizes, shapes = [p.numel() for p in parts], [p.shape for p in parts]

    def loss(flat):
        values = torch.split(flat, sizes)
        weights = {n: v.reshape(s) for n, v, s in zip(names, values, shapes, strict=True)}
        return functional.cross_entropy(torch.func.functional_call(model, weights, (x,)), y)

    flat = torch.cat([p.detach().flatten() for p in parts])
    return torch.autograd.functional.hessian(loss, flat)


@pytest.mark.row("L1-19")
def test_products_are_those_of_the_dense_hessian(network):
    model, x, y = network
    parameters = list(model.parameters())
    v = [torch.randn_like(p) for p in parameters]
    loss = functional.cross_entropy(model(x), y)
    products = conditioning.hessian_vector_product(loss, parameters, v)
    expected = dense_hessian(model, x, y) @ torch.cat([part.flatten() for part in v])
    torch.testing.assert_close(torch.cat([p.flatten() for p in products]), expected)


@pytest.mark.row("L1-19")
def test_extreme_eigenvalues_are_those_of_the_dense_hessian(network):
    model, x, y = network
    loss = functional.cross_entropy(model(x), y)
    expected = torch.linalg.eigvalsh(dense_hessian(model, x, y))
    smallest, largest = conditioning.extreme_eigenvalues(loss, list(model.parameters()))
    assert smallest == pytest.approx(expected[0].item(), rel=1e-6)
    assert largest == pytest.approx(expected[-1].item(), rel=1e-6)


@pytest.mark.row("L1-19")
def test_two_gradients_give_the_product_to_second_order():
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
def test_a_linear_loss_has_no_curvature():
    w = torch.ones(3, requires_grad=True)
    (product,) = conditioning.hessian_vector_product(w.sum(), [w], [torch.ones(3)])
    assert product.tolist() == [0, 0, 0]


def test_bad_arguments_of_products_are_named():
    w = torch.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match=r"shapes \[\(2,\)\], got \[\(3,\)\]"):
        conditioning.hessian_vector_product((w**2).sum(), [w], [torch.ones(3)])
    with pytest.raises(ValueError, match=r"one number, got shape \(2,\)"):
        conditioning.hessian_vector_product(w**2, [w], [w])
    with pytest.raises(ValueError, match="at least 3 parameters"):
        conditioning.extreme_eigenvalues((w**2).sum(), [w])


@pytest.mark.row("L1-19")
def test_the_hook_tracks_norm_and_curvature_of_real_training(network):
    split = load("digits").split(validation=300, seed=0)
    model = nn.Sequential(nn.Linear(64, 6), nn.Tanh(), nn.Linear(6, 10))
    torch.manual_seed(1)
    x, y = torch.tensor(split.train.x[:50]).float(), torch.tensor(split.train.y[:50])
    hook = conditioning.CurvatureHook(x, y, functional.cross_entropy, every=5)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    training.train(model, split.train, sgd, epochs=1, batch_size=100, hooks=[hook])
    assert hook.steps == list(range(5, 5 * len(hook.steps) + 1, 5))
    H = dense_hessian(model.double(), x.double(), y)
    loss = functional.cross_entropy(model(x.double()), y)
    gradient = torch.autograd.grad(loss, list(model.parameters()))
    g = torch.cat([part.flatten() for part in gradient])
    norm, curvature = conditioning.CurvatureHook(x.double(), y, functional.cross_entropy).measure(
        model
    )
    assert norm == pytest.approx(g.norm().item(), rel=1e-10)
    assert curvature == pytest.approx((g @ H @ g).item(), rel=1e-8)


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
    alpha = np.exp(rng.normal(size=7))
    for other in (
        conditioning.permute_hidden_units(W, b, v, order),
        conditioning.rescale_hidden_units(W, b, v, alpha),
    ):
        np.testing.assert_allclose(outputs(x, *other), outputs(x, W, b, v), rtol=1e-10, atol=1e-12)
        assert not np.allclose(other[0], W)


@pytest.mark.row("L1-20")
def test_equivalent_orders_are_counted_by_listing_them():
    layers = [tuple(permutations(range(3)))] * 2
    assert conditioning.equivalent_minima(3, 2) == len(layers[0]) * len(layers[1])


def test_what_is_no_permutation_and_no_positive_factor_is_refused():
    W, b, v = np.eye(2), np.zeros(2), np.ones(2)
    with pytest.raises(ValueError, match=r"permutation of 0 to 1, got \[0, 0\]"):
        conditioning.permute_hidden_units(W, b, v, [0, 0])
    with pytest.raises(ValueError, match="positive factors, got -1"):
        conditioning.rescale_hidden_units(W, b, v, np.array([1.0, -1.0]))


@pytest.mark.row("P-06")
def test_the_hessian_at_a_fit_is_that_of_autograd_and_scalings_are_in_its_null_space(rng):
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
def test_descent_to_the_manifold_has_the_rate_of_the_nonzero_eigenvalues(rng):
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
def test_the_share_of_minima_is_known_for_one_and_two_parameters():
    """½, and (2 − √2)/4 for two: the angle of the cone of positive definite matrices."""
    for n, exact in ((1, 0.5), (2, (2 - math.sqrt(2)) / 4)):
        share = conditioning.minima_share(n, 60_000, np.random.default_rng(3))
        assert share == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 60_000))


@pytest.mark.row("L1-21")
def test_the_share_of_minima_falls_faster_and_faster():
    rng = np.random.default_rng(0)
    shares = [conditioning.minima_share(n, 40_000, rng) for n in (1, 2, 3, 4)]
    ratios = [b / a for a, b in pairwise(shares)]
    assert all(ratio < 0.35 for ratio in ratios)
    assert ratios[0] > ratios[1] > ratios[2]


@pytest.mark.row("L1-22")
def test_the_cliff_has_the_derivatives_of_autograd(rng):
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
def test_clipping_is_that_of_torch(bound, rng):
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


def test_clipping_refuses_what_it_cannot_do():
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
def test_a_biased_gradient_ends_where_predicted(rng):
    H, minimum, bias = positive(rng, 3, 10), rng.normal(size=3), rng.normal(size=3)
    w = np.zeros(3)
    for _ in range(2000):
        w = w - 0.1 * (H @ (w - minimum) + bias)
    np.testing.assert_allclose(w, conditioning.limit_point(H, minimum, bias), rtol=1e-10)


@pytest.mark.row("L1-23")
def test_a_noisy_gradient_spreads_as_predicted():
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
