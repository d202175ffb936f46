"""Dropout against torch and autograd; its ensemble against the scaled weights."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch.nn import functional

from optdl import dropout as drop
from optdl.data import Examples, load

rates = pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9])


@pytest.mark.row("L2-16", "L2-17")
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@rates
def test_module_matches_numpy_layer(p, dtype):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(70, 50, dtype=dtype, generator=generator).requires_grad_()
    layer = drop.Dropout(p, generator=torch.Generator().manual_seed(5))
    y = layer(x)
    y.backward(torch.full_like(y, 2.0))
    u = torch.rand(70, 50, generator=torch.Generator().manual_seed(5)).double().numpy()
    mask, tolerance = drop.dropout_mask(u, p), 4 * torch.finfo(dtype).eps
    assert y.dtype == dtype
    assert_allclose(y.detach(), x.detach().double().numpy() * mask, rtol=tolerance)
    expected = drop.dropout_backward(np.full((70, 50), 2.0), mask)
    assert_allclose(x.grad, expected, rtol=tolerance)
    assert torch.equal(layer.eval()(x), x)
    assert repr(torch.nn.Dropout(p)).startswith(repr(layer)[:-1])
    assert list(layer.state_dict()) == []


@pytest.mark.row("L2-17")
@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9, 1.0])
@pytest.mark.parametrize(("c", "n"), [(2, 1), (3, 4), (5, 7)])
def test_geometric_ensemble_is_weight_scaling_without_overflow(c, n, keep, rng):
    W, b, x = 2 * rng.normal(size=(c, n)), rng.normal(size=c), rng.normal(size=n)
    ensemble, scaled = drop.geometric_ensemble, drop.weight_scaling
    assert_allclose(ensemble(W, b, x, keep), scaled(W, b, x, keep), rtol=1e-10)
    for function in (ensemble, scaled):  # at keep = ½ these scores differ by 500
        large = function(np.array([[1000.0], [0.0]]), np.zeros(2), np.ones(1), 0.5)
        assert_allclose(large, [1.0, np.exp(-500)], rtol=1e-9)


@pytest.mark.row("L2-17", "L2-18")
@pytest.mark.parametrize("p", [0.0, 0.3, 0.8])
def test_training_and_losses_match_torch(p, rng):
    W, V, x = rng.normal(size=(9, 4)), rng.normal(size=(3, 9)), rng.normal(size=(20, 5, 4))
    y, masks = rng.integers(3, size=(20, 5)), drop.dropout_mask(rng.random((20, 5, 9)), p)
    parts = [torch.tensor(part, requires_grad=True) for part in (W, V)]
    optimizer = torch.optim.SGD(parts, lr=0.2)

    def scores(inputs, mask):
        hidden = torch.relu(torch.from_numpy(inputs) @ parts[0].T) * torch.from_numpy(mask)
        return hidden @ parts[1].T

    for inputs, labels, mask in zip(x, y, masks, strict=True):
        optimizer.zero_grad()
        functional.cross_entropy(scores(inputs, mask), torch.from_numpy(labels)).backward()
        optimizer.step()
    trained = drop.dropout_sgd(W, V, x, y, masks, 0.2)
    for ours, theirs in zip(trained, parts, strict=True):
        assert_allclose(ours, theirs.detach(), rtol=1e-9, atol=1e-12)
    first, second = (scores(inputs, np.ones(9)).detach() for inputs in x[:2])
    labels = torch.from_numpy(y)
    losses = [functional.cross_entropy(first, labels[0])]
    losses += [functional.cross_entropy(second, labels[1])]
    error = (second.argmax(dim=1) != labels[1]).double().mean()
    ours = drop.functions._losses(*trained, Examples(x[0], y[0]), Examples(x[1], y[1]))
    assert_allclose(ours, [*losses, error], rtol=1e-9)


@pytest.mark.row("L2-18")
def test_curves_omit_dropout_and_follow_the_seed():
    """With a learning rate of 0 nothing moves: every value is that of the first network."""
    split = load("digits").subset(200).split(100)
    halves = split.train, split.validation
    curves = drop.train_with_dropout(*halves, 0.5, lr=0.0, epochs=3)
    for curve in (curves.train_loss, curves.validation_loss, curves.validation_error):
        assert curve.shape == (4,)
        assert np.ptp(curve) == 0
    other = drop.train_with_dropout(*halves, 0.0, lr=0.0, epochs=1)
    assert other.validation_loss[0] == curves.validation_loss[0]
    first, again, other = (
        drop.train_with_dropout(*halves, 0.5, seed, epochs=2).validation_loss for seed in (1, 1, 2)
    )
    assert_array_equal(first, again)
    assert np.all(first != other)
