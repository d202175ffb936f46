"""Batch normalization against torch, autograd, finite differences and numbers done by hand."""

import copy
import re

import numpy as np
import pytest
import torch
from torch import nn

from optdl import batchnorm as bn
from optdl.data import Examples
from optdl.networks import cnn5, fully_connected
from optdl.training import train

SHAPES = {"features": (6, 3), "sequences": (4, 3, 5), "images": (4, 3, 5, 2)}


@pytest.fixture
def batch(rng):
    """Return x, γ, β and an upstream gradient."""
    x = rng.normal(2.0, 3.0, size=(7, 4))
    return x, rng.normal(size=4), rng.normal(size=4), rng.normal(size=(7, 4))


def tensors(*arrays):
    return [torch.from_numpy(np.asarray(array)).requires_grad_() for array in arrays]


# --- The transform: L1-34, P-01 ---------------------------------------------------------------


@pytest.mark.row("L1-34", "P-01")
def test_forward_matches_torch(batch):
    x, gamma, beta, _ = batch
    y, _ = bn.batchnorm_forward(x, gamma, beta, eps=1e-3)
    theirs = nn.functional.batch_norm(
        *tensors(x), None, None, *tensors(gamma, beta), training=True, eps=1e-3
    )
    np.testing.assert_allclose(y, theirs.detach(), rtol=0, atol=1e-13)


@pytest.mark.row("L1-34")
def test_forward_on_paper():
    # the mean is 2, the variance (4 + 0 + 4)/3 = 8/3; with ε = 4/3 the root is 2
    y, _ = bn.batchnorm_forward(np.array([[0.0], [2.0], [4.0]]), np.ones(1), np.ones(1), 4 / 3)
    np.testing.assert_allclose(y.ravel(), [0, 1, 2], atol=1e-15)


@pytest.mark.row("L1-34", "P-01")
def test_erratum_the_variance_without_its_square_is_zero(rng):
    x = rng.normal(size=(50, 3))
    as_printed = (x - x.mean(0)).mean(0)
    np.testing.assert_allclose(as_printed, 0, atol=1e-14)
    y, _ = bn.batchnorm_forward(x, np.ones(3), np.zeros(3), eps=0.0)
    np.testing.assert_allclose(y.var(0), 1, rtol=1e-12)
    np.testing.assert_allclose(y.mean(0), 0, atol=1e-12)


# --- Backward: L1-35 --------------------------------------------------------------------------


@pytest.mark.row("L1-35")
def test_backward_matches_autograd(batch):
    x, gamma, beta, upstream = batch
    _, cache = bn.batchnorm_forward(x, gamma, beta)
    leaves = tensors(x, gamma, beta)
    y = nn.functional.batch_norm(leaves[0], None, None, *leaves[1:], training=True)
    y.backward(torch.from_numpy(upstream))
    for ours, leaf in zip(bn.batchnorm_backward(upstream, cache), leaves, strict=True):
        np.testing.assert_allclose(ours, leaf.grad, rtol=0, atol=1e-12)


@pytest.mark.row("L1-35")
def test_backward_matches_finite_differences(batch):
    x, gamma, beta, upstream = batch

    def loss(x, gamma, beta):
        return float((upstream * bn.batchnorm_forward(x, gamma, beta)[0]).sum())

    _, cache = bn.batchnorm_forward(x, gamma, beta)
    arguments, step = [x, gamma, beta], 1e-6
    for number, grad in enumerate(bn.batchnorm_backward(upstream, cache)):
        for index in np.ndindex(grad.shape):
            values = []
            for sign in (1, -1):
                moved = [argument.copy() for argument in arguments]
                moved[number][index] += sign * step
                values.append(loss(*moved))
            assert (values[0] - values[1]) / (2 * step) == pytest.approx(grad[index], abs=1e-7)


@pytest.mark.row("L1-35")
def test_input_gradient_has_no_shift_or_scale(batch):
    x, gamma, beta, upstream = batch
    _, cache = bn.batchnorm_forward(x, gamma, beta, eps=0.0)
    grad_x, _, _ = bn.batchnorm_backward(upstream, cache)
    np.testing.assert_allclose(grad_x.sum(0), 0, atol=1e-13)
    np.testing.assert_allclose((grad_x * cache.normalized).sum(0), 0, atol=1e-13)


# --- Inference: L1-36 -------------------------------------------------------------------------


@pytest.mark.row("L1-36")
def test_population_variance_is_unbiased(rng):
    # every ordered sample of m = 3 with replacement from 4 values: the expectation, without luck
    values = np.array([0.0, 1.0, 4.0, 11.0])
    samples = values[np.array(list(np.ndindex(4, 4, 4)))]
    means, variances = samples.mean(1)[:, None], samples.var(1)[:, None]
    mean, var = bn.population_statistics(means, variances, m=3)
    np.testing.assert_allclose([mean[0], var[0]], [values.mean(), values.var()], rtol=1e-13)


@pytest.mark.row("L1-36")
def test_population_statistics_of_one_example_are_refused():
    with pytest.raises(ValueError, match="2 examples or more to have a variance; got m=1"):
        bn.population_statistics(np.ones((2, 1)), np.ones((2, 1)), 1)


@pytest.mark.row("L1-36")
def test_inference_matches_torch(batch, rng):
    x, gamma, beta, _ = batch
    mean, var = rng.normal(size=4), rng.uniform(1, 2, size=4)
    arrays = (torch.from_numpy(array) for array in (x, mean, var, gamma, beta))
    theirs = nn.functional.batch_norm(*arrays, training=False)
    ours = bn.batchnorm_inference(x, gamma, beta, mean, var)
    np.testing.assert_allclose(ours, theirs.detach(), rtol=0, atol=1e-13)
    scale, shift = bn.affine_at_inference(gamma, beta, mean, var)
    np.testing.assert_allclose(scale * x + shift, ours, rtol=0, atol=1e-12)


@pytest.mark.row("L1-36")
def test_folded_layer_matches_torch(rng):
    layer, norm = nn.Linear(5, 3).double(), nn.BatchNorm1d(3).double()
    for _ in range(20):
        norm(layer(torch.from_numpy(rng.normal(1.0, 2.0, size=(8, 5)))))
    norm.eval()
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([0.5, -2.0, 3.0]))
        norm.bias.copy_(torch.tensor([1.0, 0.0, -1.0]))
        h = torch.from_numpy(rng.normal(size=(6, 5)))
        expected = norm(layer(h)).numpy()
    parts = (layer.weight, layer.bias, norm.weight, norm.bias, norm.running_mean, norm.running_var)
    W, b = bn.fold(*(part.detach().numpy() for part in parts))
    np.testing.assert_allclose(h.numpy() @ W.T + b, expected, rtol=0, atol=1e-12)


# --- Moving averages: L2-14 -------------------------------------------------------------------


@pytest.mark.row("L2-14")
def test_moving_average_is_a_weighted_sum(rng):
    values, rho, start = rng.normal(size=(6, 2)), 0.7, rng.normal(size=2)
    weights = 0.3 * rho ** np.arange(6)[::-1]
    expected = weights @ values + rho**6 * start
    np.testing.assert_allclose(bn.moving_average(values, rho, start)[-1], expected, rtol=1e-13)


@pytest.mark.row("L2-14")
def test_l2_moving_average_starts_at_first_value(rng):
    values, delta = rng.normal(size=(5, 2)), 0.2
    average = values[0]
    for value in values[1:]:
        average = delta * value + (1 - delta) * average
    np.testing.assert_allclose(bn.moving_average(values, 1 - delta)[-1], average, rtol=1e-13)


@pytest.mark.row("L2-14")
def test_torch_averages_the_unbiased_variance(rng):
    norm = nn.BatchNorm1d(3, momentum=0.2).double()
    batches = rng.normal(2.0, 3.0, size=(6, 5, 3))
    for one in batches:
        norm(torch.from_numpy(one))
    means = bn.moving_average(batches.mean(1), 0.8, start=np.zeros(3))
    np.testing.assert_allclose(norm.running_mean, means[-1], rtol=1e-12)
    unbiased = bn.moving_average(batches.var(1, ddof=1), 0.8, start=np.ones(3))
    np.testing.assert_allclose(norm.running_var, unbiased[-1], rtol=1e-12)
    biased = bn.moving_average(batches.var(1), 0.8, start=np.ones(3))
    assert not np.allclose(norm.running_var, biased[-1], rtol=1e-2)


@pytest.mark.row("L2-14")
@pytest.mark.parametrize("rho", [-0.1, 1.0])
def test_share_outside_its_range_is_refused(rho):
    with pytest.raises(ValueError, match=r"must be in \[0, 1\); got"):
        bn.moving_average(np.ones((2, 1)), rho)
    with pytest.raises(ValueError, match=r"must be in \[0, 1\); got"):
        bn.BatchNorm(3, rho=rho)


# --- Renormalization: P-03 --------------------------------------------------------------------


@pytest.mark.row("P-03")
def test_renormalization_forward_matches_inference(batch, rng):
    x, gamma, beta, _ = batch
    mean, var = rng.normal(size=4), rng.uniform(1, 2, size=4)
    y, _ = bn.renorm_forward(x, gamma, beta, mean, np.sqrt(var))
    expected = bn.batchnorm_inference(x, gamma, beta, mean, var, eps=0.0)
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-12)


@pytest.mark.row("P-03")
def test_renormalization_backward_holds_corrections_constant(batch, rng):
    x, gamma, beta, upstream = batch
    mean, std = rng.normal(size=4), rng.uniform(1, 2, size=4)
    _, cache = bn.renorm_forward(x, gamma, beta, mean, std)
    [leaf] = tensors(x)
    batch_std = (leaf.var(0, unbiased=False) + 1e-5).sqrt()
    s = (batch_std / torch.from_numpy(std)).detach()
    d = ((leaf.mean(0) - torch.from_numpy(mean)) / torch.from_numpy(std)).detach()
    x_hat = (leaf - leaf.mean(0)) / batch_std
    (torch.from_numpy(gamma) * (x_hat * s + d)).backward(torch.from_numpy(upstream))
    grad_x, _, grad_beta = bn.batchnorm_backward(upstream, cache)
    np.testing.assert_allclose(grad_x, leaf.grad, rtol=0, atol=1e-12)
    np.testing.assert_allclose(grad_beta, upstream.sum(0), rtol=1e-12)


# --- Relatives: P-04 --------------------------------------------------------------------------


@pytest.mark.row("P-04")
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_normalization_matches_torch(rng, groups):
    x, gamma, beta = rng.normal(size=(5, 6)), rng.normal(size=6), rng.normal(size=6)
    ours = bn.groupnorm_forward(x, gamma, beta, groups)
    theirs = nn.functional.group_norm(*tensors(x), groups, *tensors(gamma, beta))
    np.testing.assert_allclose(ours, theirs.detach(), rtol=0, atol=1e-12)
    if groups == 1:
        theirs = nn.functional.layer_norm(*tensors(x), (6,), *tensors(gamma, beta))
        np.testing.assert_allclose(ours, theirs.detach(), rtol=0, atol=1e-12)


@pytest.mark.row("P-04")
def test_unequal_groups_are_refused():
    with pytest.raises(ValueError, match="6 features cannot be divided into 4 equal groups"):
        bn.groupnorm_forward(np.ones((2, 6)), np.ones(6), np.ones(6), 4)
    with pytest.raises(ValueError, match="6 features cannot be divided into 0 equal groups"):
        bn.FourThingsNorm(6, groups=0)


# --- Scale invariance: P-08 -------------------------------------------------------------------


@pytest.mark.row("P-08")
def test_scale_invariant_gradient_matches_autograd(rng):
    W, h, upstream = rng.normal(size=(3, 4)), rng.normal(size=(6, 4)), rng.normal(size=(6, 3))
    [leaf] = tensors(W)
    y = nn.functional.batch_norm(
        torch.from_numpy(h) @ leaf.T, None, None, training=True, eps=1e-300
    )
    y.backward(torch.from_numpy(upstream))
    ours = bn.scale_invariant_gradient(W, h, upstream)
    np.testing.assert_allclose(ours, leaf.grad, rtol=0, atol=1e-12)


@pytest.mark.row("P-08")
@pytest.mark.parametrize("c", [0.01, 7.0])
def test_gradient_is_inverse_to_weight_scale(rng, c):
    W, h, upstream = rng.normal(size=(3, 4)), rng.normal(size=(6, 4)), rng.normal(size=(6, 3))
    g = bn.scale_invariant_gradient(W, h, upstream)
    np.testing.assert_allclose(bn.scale_invariant_gradient(c * W, h, upstream), g / c, rtol=1e-9)
    ones = np.ones(3)
    y = [bn.batchnorm_forward(h @ V.T, ones, ones, eps=0.0)[0] for V in (W, c * W)]
    np.testing.assert_allclose(*y, rtol=1e-10)


@pytest.mark.row("P-08")
def test_gradient_is_orthogonal_and_weight_grows(rng):
    W, h, upstream = rng.normal(size=(3, 4)), rng.normal(size=(6, 4)), rng.normal(size=(6, 3))
    g = bn.scale_invariant_gradient(W, h, upstream)
    np.testing.assert_allclose((g * W).sum(1), 0, atol=1e-12)
    grown = ((W - 0.3 * g) ** 2).sum(1)
    np.testing.assert_allclose(grown, (W**2).sum(1) + 0.09 * (g**2).sum(1), rtol=1e-12)


@pytest.mark.row("P-08")
def test_group_normalized_weights_are_scale_invariant_too(rng):
    [W] = tensors(rng.normal(size=(6, 4)))
    x = torch.from_numpy(rng.normal(size=(3, 4)))
    upstream = torch.from_numpy(rng.normal(size=(3, 6)))
    grads = [
        torch.autograd.grad(
            (upstream * nn.functional.group_norm(x @ (c * W).T, 2, eps=0.0)).sum(), W
        )[0]
        for c in (1.0, 5.0)
    ]
    # ∇_W f(cW) by the chain rule is c · (1/c) ∇f(W): the two are equal
    torch.testing.assert_close(*grads, rtol=1e-10, atol=1e-12)


# --- Layers -----------------------------------------------------------------------------------


def torchs(features, shape, **options):
    kinds = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}
    return kinds[len(shape)](features, **options).double()


@pytest.mark.row("L1-34", "L1-36", "L2-14", "P-01")
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_layer_matches_torch_in_both_modes(rng, shape):
    ours, theirs = bn.BatchNorm(3, rho=0.8).double(), torchs(3, shape, momentum=0.2)
    for layer in (ours, theirs):
        with torch.no_grad():
            layer.weight.copy_(torch.tensor([0.5, -2.0, 3.0]))
            layer.bias.copy_(torch.tensor([1.0, 0.0, -1.0]))
    for _ in range(3):
        x, upstream = rng.normal(2.0, 3.0, size=shape), torch.from_numpy(rng.normal(size=shape))
        inputs = [*tensors(x), *tensors(x)]
        outputs = [layer(one) for layer, one in zip((ours, theirs), inputs, strict=True)]
        torch.testing.assert_close(*outputs, rtol=0, atol=1e-12)
        for output in outputs:
            output.backward(upstream)
        torch.testing.assert_close(*(one.grad for one in inputs), rtol=0, atol=1e-12)
        torch.testing.assert_close(ours.weight.grad, theirs.weight.grad, rtol=0, atol=1e-11)
        torch.testing.assert_close(ours.bias.grad, theirs.bias.grad, rtol=0, atol=1e-11)
    torch.testing.assert_close(ours.running_mean, theirs.running_mean, rtol=0, atol=1e-12)
    torch.testing.assert_close(ours.running_var, theirs.running_var, rtol=0, atol=1e-12)
    [x] = tensors(rng.normal(size=shape))
    torch.testing.assert_close(ours.eval()(x), theirs.eval()(x), rtol=0, atol=1e-12)


@pytest.mark.row("P-03")
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_renormalization_in_training_matches_previous_inference(rng, shape):
    layer = bn.BatchRenorm(3).double()
    for _ in range(4):
        [x] = tensors(rng.normal(2.0, 3.0, size=shape))
        expected = copy.deepcopy(layer).eval()(x)
        torch.testing.assert_close(layer.train()(x), expected, rtol=0, atol=1e-12)


@pytest.mark.row("P-03")
def test_renormalization_with_tight_limits_is_batch_normalization(rng):
    layer = bn.BatchRenorm(3, s_max=1.0, d_max=0.0).double()
    plain = bn.BatchNorm(3).double()
    x = rng.normal(2.0, 3.0, size=(6, 3))
    inputs = [*tensors(x), *tensors(x)]
    outputs = [one(leaf) for one, leaf in zip((layer, plain), inputs, strict=True)]
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-12)
    for output in outputs:
        output[:, 0].square().sum().backward()
    torch.testing.assert_close(*(leaf.grad for leaf in inputs), rtol=0, atol=1e-12)


@pytest.mark.row("P-03")
def test_renormalization_gradient_matches_numpy(rng):
    layer = bn.BatchRenorm(4).double()
    for _ in range(3):
        layer(torch.from_numpy(rng.normal(2.0, 3.0, size=(7, 4))))
    mean, var = layer.running_mean.numpy().copy(), layer.running_var.numpy().copy()
    x, upstream = rng.normal(2.0, 3.0, size=(7, 4)), rng.normal(size=(7, 4))
    [leaf] = tensors(x)
    layer(leaf).backward(torch.from_numpy(upstream))
    one, zero = np.ones(4), np.zeros(4)
    _, cache = bn.renorm_forward(x, one, zero, mean, np.sqrt(var + layer.eps))
    expected, _, _ = bn.batchnorm_backward(upstream, cache)
    np.testing.assert_allclose(leaf.grad, expected, rtol=0, atol=1e-12)


@pytest.mark.row("P-04")
@pytest.mark.parametrize("examples", [6, 8])
def test_ghosts_are_separate_minibatches(rng, examples):
    layer, single = bn.GhostBatchNorm(3, ghost_size=3).double(), bn.BatchNorm(3).double()
    [x] = tensors(rng.normal(2.0, 3.0, size=(examples, 3, 2, 2)))
    # of 8 examples the last part has 5: one of 2 would have poor statistics
    expected = torch.cat([single(part) for part in (x[:3], x[3:])])
    torch.testing.assert_close(layer(x), expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(layer.running_var, single.running_var, rtol=0, atol=1e-12)


@pytest.mark.row("P-04")
def test_ghost_size_of_zero_is_refused():
    with pytest.raises(ValueError, match="ghost_size must be 1 example or more; got 0"):
        bn.GhostBatchNorm(3, ghost_size=0)


@pytest.mark.row("P-04")
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_four_things_without_their_options_are_batch_normalization(rng, shape):
    layer, plain = bn.FourThingsNorm(3).double(), bn.BatchNorm(3).double()
    for _ in range(3):
        [x] = tensors(rng.normal(2.0, 3.0, size=shape))
        torch.testing.assert_close(layer(x), plain(x), rtol=0, atol=1e-12)
    torch.testing.assert_close(layer.eval()(x), plain.eval()(x), rtol=0, atol=1e-11)


@pytest.mark.row("P-04")
def test_four_things_on_one_example_are_group_normalization(rng):
    layer = bn.FourThingsNorm(6, groups=2).double()
    [x] = tensors(rng.normal(2.0, 3.0, size=(1, 6, 3, 3)))
    expected = nn.functional.group_norm(x, 2)
    torch.testing.assert_close(layer(x), expected, rtol=0, atol=1e-12)
    # and, when inference asks the example alone, also for many examples
    layer.example_share = 1.0
    [x] = tensors(rng.normal(2.0, 3.0, size=(5, 6, 3, 3)))
    expected = nn.functional.group_norm(x, 2)
    torch.testing.assert_close(layer.eval()(x), expected, rtol=0, atol=1e-10)


@pytest.mark.row("P-04")
def test_four_things_share_statistics_over_examples_and_groups(rng):
    layer = bn.FourThingsNorm(4, groups=2, ghost_size=2).double()
    x = rng.normal(2.0, 3.0, size=(4, 4, 3))
    expected = np.empty_like(x)
    for ghost in (slice(0, 2), slice(2, 4)):
        for group in (slice(0, 2), slice(2, 4)):
            part = x[ghost, group]
            expected[ghost, group] = (part - part.mean()) / np.sqrt(part.var() + 1e-5)
    np.testing.assert_allclose(layer(torch.from_numpy(x)).detach(), expected, atol=1e-12)


@pytest.mark.row("P-04")
def test_inference_takes_a_share_of_the_example(rng):
    layer = bn.FourThingsNorm(2, example_share=0.25).double().eval()
    with torch.no_grad():
        layer.running_mean.copy_(torch.tensor([1.0, 2.0]))
        layer.running_var.copy_(torch.tensor([4.0, 9.0]))
    x = rng.normal(size=(1, 2, 5))
    mean = 0.25 * x.mean(2) + 0.75 * np.array([1.0, 2.0])
    square = 0.25 * (x**2).mean(2) + 0.75 * np.array([4.0 + 1.0, 9.0 + 4.0])
    expected = (x - mean[..., None]) / np.sqrt(square - mean**2 + 1e-5)[..., None]
    np.testing.assert_allclose(layer(torch.from_numpy(x)).detach(), expected, atol=1e-12)
    with pytest.raises(ValueError, match=r"example_share must be in \[0, 1\]; got 2"):
        bn.FourThingsNorm(2, example_share=2.0)


@pytest.mark.row("L2-15")
@pytest.mark.parametrize("make", [bn.BatchNorm, bn.BatchRenorm, bn.GhostBatchNorm])
def test_single_example_is_refused_only_in_training(make):
    layer = make(3)
    with pytest.raises(ValueError, match="a single value in this minibatch"):
        layer(torch.ones(1, 3))
    assert layer.eval()(torch.ones(1, 3)).shape == (1, 3)
    assert layer.train()(torch.ones(1, 3, 4, 4)).shape == (1, 3, 4, 4)


@pytest.mark.row("L2-15")
def test_two_examples_normalize_to_signs(rng):
    # whatever the two values are, they become −1 and 1: all else about them is lost
    x = rng.normal(size=(2, 50))
    y, _ = bn.batchnorm_forward(x, np.ones(50), np.zeros(50), eps=0.0)
    np.testing.assert_allclose(y, np.sign(x - x.mean(0)), rtol=1e-10)


@pytest.mark.row("L2-15")
def test_step_measurements_on_quadratic_match_closed_form(rng):
    # least squares: J = mean (x w − y)², g = 2 xᵀ(xw − y) / m, H = 2 xᵀx / m
    x, y, w = rng.normal(size=(9, 4)), rng.normal(size=(9, 1)), rng.normal(size=(4, 1))
    model = nn.Linear(4, 1, bias=False).double()
    model.weight.data = torch.from_numpy(w.T.copy())
    g, H = 2 * x.T @ (x @ w - y) / 9, 2 * x.T @ x / 9
    rates = [0.0, 0.1, 1.5]
    steps = bn.loss_along_step(
        model, torch.from_numpy(x), torch.from_numpy(y), rates, nn.functional.mse_loss
    )
    losses = [np.mean((x @ (w - rate * g) - y) ** 2) for rate in rates]
    np.testing.assert_allclose(steps.loss, losses, rtol=1e-12)
    ratio = np.linalg.norm(H @ g) / np.linalg.norm(g)
    np.testing.assert_allclose(steps.change, np.multiply(rates, ratio), rtol=1e-10)
    np.testing.assert_array_equal(model.weight.detach().numpy(), w.T)


@pytest.mark.row("L2-15")
def test_loss_along_step_leaves_network_unchanged(rng):
    x = torch.from_numpy(rng.normal(size=(8, 5))).float()
    y = torch.arange(8) % 3
    model = fully_connected((5, 6, 3), bn.BatchNorm)
    before = copy.deepcopy(model.state_dict())
    rate = 0.3
    measured = bn.loss_along_step(model, x, y, [rate])
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    nn.functional.cross_entropy(model(x), y).backward()  # the same step by hand
    first = [p.grad.clone() for p in model.parameters()]
    torch.optim.SGD(model.parameters(), lr=rate).step()
    model.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    apart = [p.grad - g for p, g in zip(model.parameters(), first, strict=True)]
    change = nn.utils.get_total_norm(apart) / nn.utils.get_total_norm(first)
    torch.testing.assert_close(measured.loss[0], loss.detach())
    torch.testing.assert_close(measured.change[0], change)


def test_hook_measures_at_first_and_periodic_steps(rng):
    x, y = torch.from_numpy(rng.normal(size=(12, 5))).float(), torch.arange(12) % 3
    model = fully_connected((5, 6, 3))
    hook = bn.AlongStepHook(x, y, [0.1], every=2)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, Examples(x.numpy(), y.numpy()), sgd, epochs=1, batch_size=4, hooks=[hook])
    assert len(hook.results) == 2  # after steps 1 and 3
    assert hook.results[0].loss != hook.results[1].loss


def test_wrong_feature_count_is_refused():
    with pytest.raises(ValueError, match=r"of shape \(m, 3\) or \(m, 3, …\); got \(2, 4\)"):
        bn.BatchNorm(3)(torch.ones(2, 4))


@pytest.mark.parametrize(("s_max", "d_max"), [(0.5, 0.0), (1.0, -1.0)])
def test_renormalization_refuses_invalid_limits(s_max, d_max):
    told = rf"s_max must be 1 or more, d_max 0 or more; got {s_max}, {d_max}"
    with pytest.raises(ValueError, match=re.escape(told)):
        bn.BatchRenorm(3, s_max=s_max, d_max=d_max)


@pytest.mark.row("P-03")
@pytest.mark.parametrize(
    ("mean", "std", "s", "d"),
    [(9.0, 8.0, 2.0, 0.5), (-9.0, 0.1, 0.5, -0.5), (0.25, 1.5, 1.5, 0.25)],
    ids=["above both limits", "below both limits", "between them"],
)
def test_renormalization_limits_hold_on_both_sides(mean, std, s, d):
    # the averages are 0 and 1, so that s is the deviation and d the mean of the minibatch
    layer = bn.BatchRenorm(1, eps=0.0, s_max=2.0, d_max=0.5).double()
    x = torch.tensor([[mean - std], [mean + std]]).double()
    torch.testing.assert_close(layer(x).ravel(), torch.tensor([d - s, d + s]).double())


@pytest.mark.row("P-02", "P-04")
@pytest.mark.parametrize("name", bn.NORMALIZATIONS)
def test_normalizations_train_in_networks(name, rng):
    factory = bn.NORMALIZATIONS[name]
    for model, shape in (
        (fully_connected((12, 8, 3), factory), (6, 12)),
        (cnn5(1, 18, 3, normalization=factory), (4, 1, 18, 18)),
    ):
        x = torch.from_numpy(rng.normal(size=shape)).float()
        y = torch.arange(len(x)) % 3
        rate = torch.optim.SGD(model.parameters(), lr=0.05)
        losses = []
        for _ in range(15):
            loss = nn.functional.cross_entropy(model(x), y)
            rate.zero_grad()
            loss.backward()
            rate.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0]
        assert model.eval()(x[:1]).isfinite().all()


@pytest.mark.row("P-01")
def test_layers_can_be_copied_saved_and_printed():
    layer = bn.FourThingsNorm(4, groups=2)
    layer(torch.randn(8, 4, generator=torch.Generator().manual_seed(0)))
    other = bn.FourThingsNorm(4, groups=2)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other.running_var, layer.running_var)
    assert repr(layer) == "FourThingsNorm(4, rho=0.9, eps=1e-05)"


# --- Statistics of many examples: F-12 --------------------------------------------------------


@pytest.mark.row("F-12", "L1-36")
@pytest.mark.parametrize("make", [bn.BatchNorm, bn.BatchRenorm, "bn"])
@torch.no_grad()
def test_population_statistics_match_full_minibatch(make, rng):
    x = torch.from_numpy(rng.normal(1.0, 2.0, size=(23, 3, 18, 18)))
    model = cnn5(3, 18, normalization=make, seed=1).double()
    for norm in (module for module in model.modules() if hasattr(module, "running_mean")):
        norm.weight.copy_(torch.linspace(0.5, 1.5, len(norm.weight)))
        norm.bias.copy_(torch.linspace(-1, 1, len(norm.bias)))
    theirs = cnn5(3, 18, normalization="bn", seed=1).double()
    theirs.load_state_dict(model.state_dict(), strict=False)
    before, model[0].training = copy.deepcopy(model.state_dict()), False
    with bn.use_population_statistics(model, x, chunk=7):
        torch.testing.assert_close(model(x), theirs(x), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    assert [model.training, model[0].training, model[1].training] == [True, False, True]


@pytest.mark.row("F-12")
def test_running_averages_are_restored_after_an_error(rng):
    model = nn.Sequential(nn.Linear(2, 2), bn.BatchNorm(2))
    x = torch.from_numpy(rng.normal(size=(9, 2))).float()
    seen = []

    def fail():
        with bn.use_population_statistics(model, x):
            seen.append(model[1].running_mean.abs().min().item())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert seen[0] > 0
    assert not model[1].running_mean.any()
    assert model.training


@pytest.mark.row("F-12")
def test_network_without_running_averages_is_refused():
    x = torch.ones(3, 2)
    with (
        pytest.raises(ValueError, match="batch normalization"),
        bn.use_population_statistics(nn.Linear(2, 2), x),
    ):
        pass
    with (
        pytest.raises(TypeError, match="FourThingsNorm"),
        bn.use_population_statistics(bn.FourThingsNorm(2), x),
    ):
        pass
