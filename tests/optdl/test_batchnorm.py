"""Batch normalization against torch, autograd, finite differences and numbers done by hand."""

import copy

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn
from torch.nn import functional

from optdl import batchnorm as bn
from optdl.data import Examples
from optdl.networks import cnn5, fully_connected
from optdl.training import train

SHAPES = {"features": (6, 3), "sequences": (4, 3, 5), "images": (4, 3, 5, 2)}
shapes = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


@pytest.fixture
def batch(rng):
    """Return x, γ, β and an upstream gradient."""
    x = rng.normal(2.0, 3.0, size=(7, 4))
    return x, rng.normal(size=4), rng.normal(size=4), rng.normal(size=(7, 4))


def tensors(*arrays):
    return [torch.from_numpy(np.asarray(array)).requires_grad_() for array in arrays]


def assert_close(actual, expected, tolerance=1e-12):
    both = map(torch.as_tensor, (actual, expected))
    torch.testing.assert_close(*both, rtol=0, atol=tolerance)


@pytest.mark.row("L1-34", "L1-35", "P-01")
@pytest.mark.parametrize("eps", [1e-3, 0.0])
def test_forward_and_backward_match_torch(batch, eps):
    x, gamma, beta, upstream = batch
    y, cache = bn.batchnorm_forward(x, gamma, beta, eps=eps)
    leaves = tensors(x, gamma, beta)
    # torch wants an ε, however small
    theirs = functional.batch_norm(leaves[0], None, None, *leaves[1:], True, eps=eps or 1e-300)
    theirs.backward(torch.from_numpy(upstream))
    assert_close(y, theirs.detach())
    for grad, leaf in zip(bn.batchnorm_backward(upstream, cache), leaves, strict=True):
        assert_close(grad, leaf.grad)


@pytest.mark.row("L1-36")
def test_inference_matches_torch(batch, rng):
    x, gamma, beta, _ = batch
    mean, var = rng.normal(size=4), rng.uniform(1, 2, size=4)
    ours = bn.batchnorm_inference(x, gamma, beta, mean, var)
    arrays = (torch.from_numpy(array) for array in (x, mean, var, gamma, beta))
    assert_close(ours, functional.batch_norm(*arrays, training=False))
    scale, shift = bn.affine_at_inference(gamma, beta, mean, var)
    assert_close(scale * x + shift, ours)
    # a linear layer before it absorbs it
    W, b, h = rng.normal(size=(4, 5)), rng.normal(size=4), rng.normal(size=(6, 5))
    folded_W, folded_b = bn.fold(W, b, gamma, beta, mean, var)
    expected = bn.batchnorm_inference(h @ W.T + b, gamma, beta, mean, var)
    assert_close(h @ folded_W.T + folded_b, expected)


@pytest.mark.row("P-03")
def test_renormalization_backward_holds_corrections_constant(batch, rng):
    x, gamma, beta, upstream = batch
    layer, [leaf, at_layer, scale, shift] = bn.BatchRenorm(4).double(), tensors(x, x, gamma, beta)
    layer.running_mean.copy_(torch.from_numpy(rng.normal(size=4)))
    layer.running_var.copy_(torch.from_numpy(rng.uniform(1, 2, size=4)))
    layer.weight, layer.bias = map(nn.Parameter, (scale, shift))
    mean, std = layer.running_mean.clone(), (layer.running_var + 1e-5).sqrt()
    batch_std = (leaf.var(0, unbiased=False) + 1e-5).sqrt()
    s, d = (batch_std / std).detach(), ((leaf.mean(0) - mean) / std).detach()
    x_hat = (leaf - leaf.mean(0)) / batch_std
    y = scale * (x_hat * s + d) + shift
    y.backward(torch.from_numpy(upstream))
    ours, cache = bn.renorm_forward(x, gamma, beta, mean.numpy(), std.numpy())
    assert_close(ours, y.detach())
    grad_x, _, grad_beta = bn.batchnorm_backward(upstream, cache)
    assert_close(grad_x, leaf.grad)
    assert_allclose(grad_beta, upstream.sum(0), rtol=1e-12)
    layer(at_layer).backward(torch.from_numpy(upstream))
    assert_close(at_layer.grad, leaf.grad)


@pytest.mark.row("P-04", "F-23")
def test_group_and_rms_normalization_match_torch(rng):
    x, gamma, beta = 3 + rng.normal(size=(5, 6)), rng.normal(size=6), rng.normal(size=6)
    inputs, scale, shift = (torch.from_numpy(array) for array in (x, gamma, beta))
    for groups in (1, 2, 6):
        theirs = functional.group_norm(inputs, groups, scale, shift)
        assert_close(bn.groupnorm_forward(x, gamma, beta, groups), theirs)
    theirs = functional.rms_norm(inputs, (6,), scale, eps=0.01)
    assert_close(bn.rmsnorm_forward(x, gamma, eps=0.01), theirs)


@pytest.mark.row("L1-41")
def test_random_shift_moves_whole_minibatches_in_training():
    torch.manual_seed(0)
    layer, x = bn.RandomShift(400, size=0.5), torch.arange(5.0).double()[:, None].expand(5, 400)
    slopes = []
    for _ in range(2):
        y = layer(x)
        shift, slope = y[0], y[1] - y[0]
        assert_close(y, shift + slope * x)  # one line for all examples
        assert_allclose([slope.min(), slope.max()], [1, 1.25], atol=0.01)
        assert_allclose([shift.min(), shift.max()], [-0.5, 0.5], atol=0.02)
        slopes.append(slope)
    assert (slopes[0] - slopes[1]).abs().max() > 0.1
    assert_close(layer.eval()(x), x)
    images = bn.RandomShift(3, size=0.5)(torch.ones(2, 3, 3, 3))  # of each channel alone
    assert_close(images, images[:1, :, :1, :1].expand_as(images))


@pytest.mark.row("L1-34", "L1-36", "L2-14", "P-01")
@pytest.mark.parametrize("precision", ["double", "float", "half", "bfloat16", "autocast"])
@shapes
def test_layer_matches_torch_in_both_modes(rng, shape, precision):
    kind = nn.BatchNorm2d if len(shape) == 4 else nn.BatchNorm1d
    ours, theirs = bn.BatchNorm(3, rho=0.8), kind(3, momentum=0.2)
    with torch.no_grad():
        theirs.weight.copy_(torch.tensor([0.5, -2.0, 3.0]))
        theirs.bias.copy_(torch.tensor([1.0, 0.0, -1.0]))
    ours.load_state_dict(theirs.state_dict())
    narrow = {"double": torch.double, "float": torch.float, "half": torch.half}
    dtype = narrow.get(precision, torch.bfloat16)
    for layer in (ours, theirs):
        layer.to(torch.float if precision == "autocast" else dtype)
    # torch rounds the mean and the deviation to the precision of the layer
    digits = {torch.double: 1e-12, torch.float: 1e-5}.get(dtype, 3e-2)
    tolerance = {"rtol": digits, "atol": digits}
    # its squares overflow in half precision
    center, spread = (300.0, 100.0) if dtype is torch.half else (2.0, 3.0)
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "autocast"):
        for _ in range(3):
            x = torch.from_numpy(rng.normal(center, spread, size=shape)).to(dtype)
            upstream = torch.from_numpy(rng.normal(size=shape)).to(dtype)
            inputs = [x.clone().requires_grad_() for _ in range(2)]
            outputs = [layer(one) for layer, one in zip((ours, theirs), inputs, strict=True)]
            torch.testing.assert_close(*outputs, **tolerance)
            for output in outputs:
                output.backward(upstream)
            torch.testing.assert_close(*(one.grad for one in inputs), **tolerance)
            for name in ("weight", "bias"):
                grads = (getattr(layer, name).grad for layer in (ours, theirs))
                torch.testing.assert_close(*grads, **tolerance)
        for name, value in ours.state_dict().items():
            torch.testing.assert_close(value, theirs.state_dict()[name], **tolerance)
        torch.testing.assert_close(ours.eval()(x), theirs.eval()(x), **tolerance)


@pytest.mark.parametrize("make", [bn.BatchRenorm, bn.GhostBatchNorm, bn.FourThingsNorm])
def test_relatives_compute_under_autocast_and_in_half_precision(make, rng):
    x = torch.from_numpy(rng.normal(300, 400, size=(8, 4, 3)))
    exact = make(4)
    expected = [exact(x.float()), exact.eval()(x.float())]
    for dtype, layer in ((torch.bfloat16, make(4)), (torch.half, make(4).half())):
        narrow = x.to(dtype)
        for before in expected:
            found = layer(narrow)
            assert found.dtype == dtype
            torch.testing.assert_close(found.float(), before, rtol=0.05, atol=0.05)
            layer.eval()


@pytest.mark.row("P-03")
@shapes
def test_renormalization_in_training_matches_previous_inference(rng, shape):
    layer = bn.BatchRenorm(3).double()
    for _ in range(4):
        [x] = tensors(rng.normal(2.0, 3.0, size=shape))
        expected = copy.deepcopy(layer).eval()(x)
        assert_close(layer.train()(x), expected)


@pytest.mark.row("P-03")
@pytest.mark.parametrize(
    ("mean", "std", "s", "d"),
    [(9.0, 8.0, 2.0, 0.5), (-9.0, 0.1, 0.5, -0.5)],  # above both limits, and below both
)
def test_renormalization_limits_hold_on_both_sides(mean, std, s, d):
    # the averages are 0 and 1, so that s is the deviation and d the mean of the minibatch
    layer = bn.BatchRenorm(1, eps=0.0, s_max=2.0, d_max=0.5).double()
    x = torch.tensor([[mean - std], [mean + std]]).double()
    assert_close(layer(x).ravel(), torch.tensor([d - s, d + s]).double(), 1e-6)


@pytest.mark.row("P-04")
@pytest.mark.parametrize("examples", [6, 8])
def test_ghosts_are_separate_minibatches(rng, examples):
    layer, single = bn.GhostBatchNorm(3, ghost_size=3).double(), bn.BatchNorm(3).double()
    [x] = tensors(rng.normal(2.0, 3.0, size=(examples, 3, 2, 2)))
    # of 8 examples the last part has 5: one of 2 would have poor statistics
    assert_close(layer(x), torch.cat([single(part) for part in (x[:3], x[3:])]))
    assert_close(layer.running_var, single.running_var)


@pytest.mark.row("P-04")
@shapes
def test_four_things_without_their_options_are_batch_normalization(rng, shape):
    layer, plain = bn.FourThingsNorm(3).double(), bn.BatchNorm(3).double()
    for _ in range(3):
        [x] = tensors(rng.normal(2.0, 3.0, size=shape))
        assert_close(layer(x), plain(x))
    assert_close(layer.eval()(x), plain.eval()(x), 1e-11)
    assert repr(layer) == "FourThingsNorm(3, rho=0.9, eps=1e-05)"


@pytest.mark.row("P-04")
def test_four_things_share_statistics_over_examples_and_groups(rng):
    layer = bn.FourThingsNorm(4, groups=2, ghost_size=2).double()
    x = rng.normal(2.0, 3.0, size=(4, 4, 3))
    expected = np.empty_like(x)
    for ghost in (slice(0, 2), slice(2, 4)):
        for group in (slice(0, 2), slice(2, 4)):
            part = x[ghost, group]
            expected[ghost, group] = (part - part.mean()) / np.sqrt(part.var() + 1e-5)
    assert_close(layer(torch.from_numpy(x)).detach(), expected)
    # on one example it is group normalization, and where inference asks the example alone
    layer, one = bn.FourThingsNorm(4, groups=2).double(), torch.from_numpy(x[:1])
    assert_close(layer(one).detach(), functional.group_norm(one, 2))
    layer.example_share = 1.0
    many = torch.from_numpy(x)
    assert_close(layer.eval()(many).detach(), functional.group_norm(many, 2), 1e-10)


@pytest.mark.row("P-04")
def test_inference_takes_a_share_of_the_example(rng):
    layer = bn.FourThingsNorm(2, example_share=0.25).double().eval()
    layer.running_mean.copy_(torch.tensor([1.0, 2.0]))
    layer.running_var.copy_(torch.tensor([0.5, 0.75]))
    x = rng.normal(size=(1, 2, 5))
    mean = 0.25 * x.mean(2) + 0.75 * np.array([1.0, 2.0])
    square = 0.25 * (x**2).mean(2) + 0.75 * np.array([0.5 + 1.0, 0.75 + 4.0])
    expected = (x - mean[..., None]) / np.sqrt(square - mean**2 + 1e-5)[..., None]
    assert_close(layer(torch.from_numpy(x)).detach(), expected)


@pytest.mark.row("L2-15")
@pytest.mark.parametrize(
    "make", [bn.BatchNorm, bn.BatchRenorm, bn.GhostBatchNorm, bn.FourThingsNorm]
)
def test_single_example_is_refused_only_in_training(make):
    layer = make(3)
    for count in (0, 1):
        with pytest.raises(ValueError, match="no two values in this minibatch"):
            layer(torch.ones(count, 3))
    assert layer.eval()(torch.ones(1, 3)).shape == (1, 3)
    assert layer.train()(torch.ones(1, 3, 4, 4)).shape == (1, 3, 4, 4)


@pytest.mark.row("L2-15")
def test_step_measurements_on_quadratic_match_closed_form(rng):
    # least squares: J = mean (x w − y)², g = 2 xᵀ(xw − y) / m, H = 2 xᵀx / m
    x, y, w = rng.normal(size=(9, 4)), rng.normal(size=(9, 1)), rng.normal(size=(4, 1))
    model = nn.Linear(4, 1, bias=False).double()
    model.weight.data = torch.from_numpy(w.T.copy())
    g, H, rates = 2 * x.T @ (x @ w - y) / 9, 2 * x.T @ x / 9, [0.0, 0.1, 1.5]
    points = torch.from_numpy(x), torch.from_numpy(y)
    steps = bn.loss_along_step(model, *points, rates, functional.mse_loss)
    losses = [np.mean((x @ (w - rate * g) - y) ** 2) for rate in rates]
    assert_allclose(steps.loss, losses, rtol=1e-12)
    ratio = np.linalg.norm(H @ g) / np.linalg.norm(g)
    assert_allclose(steps.change, np.multiply(rates, ratio), rtol=1e-10)


@pytest.mark.row("L2-15")
def test_loss_along_step_leaves_network_unchanged(rng):
    x, y = torch.from_numpy(rng.normal(size=(8, 5))).float(), torch.arange(8) % 3
    model = fully_connected((5, 6, 3), bn.BatchNorm)
    before = copy.deepcopy(model.state_dict())
    bn.loss_along_step(model, x, y, [0.3])
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    hook = bn.AlongStepHook(x, y, [0.1], every=2)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    examples = Examples(x.numpy(), y.numpy())
    curves = train(model, examples, sgd, epochs=1, batch_size=3, hooks=[hook]).curves
    assert len(curves["loss 0.1"]) == len(curves["change 0.1"]) == 2  # after steps 1 and 3
    assert curves["loss 0.1"][0] != curves["loss 0.1"][1]


@pytest.mark.row("P-08")
def test_normalized_weights_grow_as_pythagoras_says(rng):
    x, y = torch.from_numpy(rng.normal(size=(9, 3))), torch.arange(9) % 2
    model = nn.Sequential(nn.Linear(3, 4), bn.BatchNorm(4, eps=1e-12), nn.Linear(4, 2)).double()
    start = model[0].weight.detach().clone()
    hook = bn.WeightVectorHook(x, y, rate=0.5, every=5)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    examples = Examples(x.numpy(), y.numpy())
    curves = train(model, examples, sgd, epochs=1, batch_size=9, hooks=[hook]).curves
    model.train().zero_grad()
    functional.cross_entropy(model(x), y).backward()
    w, g = model[0].weight.detach(), model[0].weight.grad  # orthogonal; the bias has no gradient
    squares = w.square().sum(1) + model[0].bias.detach().square()
    growth = (1 + 0.25 * g.square().sum(1) / squares).sqrt() - 1
    assert curves["longer"] == pytest.approx([100 * growth.mean().item()], rel=1e-6)
    cosines = (w * start).sum(1) / w.norm(dim=1) / start.norm(dim=1)
    turned = np.degrees(np.arccos(cosines.numpy())).mean()
    assert curves["turned 1"] == pytest.approx([turned], rel=1e-6)
    assert curves["turned 2"][0] > 0


@pytest.mark.row("F-12", "L1-36", "L2-19")
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

    def fail():
        with bn.use_population_statistics(model, x, chunk=7):
            torch.testing.assert_close(model(x), theirs(x), rtol=1e-10, atol=1e-12)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):  # all is restored after an error, too
        fail()
    with pytest.raises(RuntimeError, match="channels"):
        bn.use_population_statistics(model, x[:, :2]).__enter__()
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    assert [model.training, model[0].training, model[1].training] == [True, False, True]
