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
@pytest.mark.parametrize("function", [drop.geometric_ensemble, drop.weight_scaling])
def test_ensemble_predictions_do_not_overflow(function):
    W, b, x = np.array([[1000.0], [0.0]]), np.zeros(2), np.ones(1)
    assert_allclose(function(W, b, x, 0.5), [1.0, np.exp(-500)], rtol=1e-9)
    assert_allclose(function(W, b, x, 1.0), [1.0, 0.0])


@pytest.mark.row("L2-18")
def test_losses_and_errors_match_torch(rng):
    W, V, x = rng.normal(size=(9, 4)), rng.normal(size=(3, 9)), rng.normal(size=(2, 5, 4))
    y = rng.integers(3, size=(2, 5))
    scores, labels = torch.from_numpy(np.maximum(x @ W.T, 0) @ V.T), torch.from_numpy(y)
    losses = [functional.cross_entropy(*each) for each in zip(scores, labels, strict=True)]
    error = (scores[1].argmax(dim=1) != labels[1]).double().mean()
    ours = drop.functions._losses(W, V, *map(Examples, x, y))
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
