"""Dropout against torch, autograd, closed forms, and all its subnetworks written out."""

import inspect
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch
from scipy import stats
from torch.nn import functional

from optdl import dropout as drop
from optdl.data import Examples, load

rates = pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9])


# --- The layer -------------------------------------------------------------------------------


@pytest.mark.row("L2-16")
@rates
def test_mask_and_values_match_torch(p, rng):
    """Torch drops some of many ones; draws that drop the same give the same mask."""
    torch.manual_seed(1)
    theirs = torch.nn.Dropout(p)(torch.full((40_000,), 3.0, dtype=torch.float64)).numpy()
    # A draw of 0 is dropped unless p is 0; a draw just below 1 is kept.
    draws = (theirs > 0) * (1 - 1e-9)
    np.testing.assert_allclose(3 * drop.dropout_mask(draws, p), theirs, rtol=1e-12)
    x = np.full(40_000, 3.0)
    ours, mask = drop.dropout_forward(x, p, rng)
    np.testing.assert_allclose(np.unique(ours), np.unique(theirs), rtol=1e-12)
    np.testing.assert_allclose(ours, x * mask)
    assert stats.binomtest(int((ours == 0).sum()), len(x), p).pvalue > 1e-3
    # draws are uniform in [0, 1): a draw of p itself is kept
    eighths = np.arange(8) / 8
    np.testing.assert_array_equal(drop.dropout_mask(eighths, 0.25), [0, 0] + [4 / 3] * 6)


@pytest.mark.row("L2-16")
def test_entries_are_dropped_independently(rng):
    """Two entries are dropped together in p² of the cases: in a row, a column, and in time."""
    masks = [drop.dropout_forward(np.ones((300, 301)), 0.3, rng)[1] for _ in range(2)]
    gone, later = (mask == 0 for mask in masks)
    for both in (gone[:, 1:] & gone[:, :-1], gone[1:] & gone[:-1], gone & later):
        assert both.mean() == pytest.approx(0.09, abs=0.006)


@pytest.mark.row("L2-16")
def test_inference_is_the_identity_and_draws_nothing():
    generator, untouched = np.random.default_rng(3), np.random.default_rng(3)
    x = np.arange(6.0).reshape(2, 3)
    y, mask = drop.dropout_forward(x, 0.7, generator, training=False)
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(mask, np.ones((2, 3)))
    assert generator.random() == untouched.random()


@pytest.mark.row("L2-16")
@pytest.mark.parametrize("p", ["0", "1/5", "1/2", "7/8"])
def test_mean_and_variance_match_two_point_distribution(p):
    """y is 0 with probability p, else x / (1 − p): the sums in exact fractions."""
    chance, x = Fraction(p), Fraction(-3, 2)
    values = {Fraction(0): chance, x / (1 - chance): 1 - chance}
    mean = sum(value * weight for value, weight in values.items())
    var = sum((value - mean) ** 2 * weight for value, weight in values.items())
    ours = drop.dropout_moments(np.array([float(x)]), float(chance))
    np.testing.assert_allclose(np.ravel(ours), [float(mean), float(var)], rtol=1e-12)


@pytest.mark.row("L2-17")
def test_gradient_matches_autograd_and_finite_differences(rng):
    x = torch.tensor(1 + rng.random((6, 5)), requires_grad=True)
    upstream = rng.normal(size=(6, 5))
    y = torch.nn.Dropout(0.4)(x)
    y.backward(torch.from_numpy(upstream))
    ours = drop.dropout_backward(upstream, (y / x).detach().numpy())
    np.testing.assert_allclose(ours, x.grad, rtol=1e-12)
    # the same generator state gives the same mask: the output is linear in x
    at, step = rng.normal(size=(6, 5)), rng.normal(size=(6, 5))
    values = [drop.dropout_forward(z, 0.5, np.random.default_rng(4)) for z in (at + step, at)]
    (after, mask), (before, _) = values
    slope = np.sum(step * drop.dropout_backward(upstream, mask))
    assert slope == pytest.approx(np.sum(upstream * (after - before)), rel=1e-9)


# --- The module for torch --------------------------------------------------------------------


@pytest.mark.row("L2-16")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@rates
def test_module_values_and_share_match_torch(p, dtype):
    x = torch.full((200, 100), 1.5, dtype=dtype)
    torch.manual_seed(0)
    ours, theirs = drop.Dropout(p)(x), torch.nn.Dropout(p)(x)
    assert ours.dtype == theirs.dtype
    torch.testing.assert_close(ours.unique(), theirs.unique())
    share = (ours == 0).double().mean().item()
    assert share == pytest.approx(p, abs=5 * np.sqrt(p * (1 - p) / 20_000))
    assert torch.equal(drop.Dropout(p).eval()(x), x)


@pytest.mark.row("L2-16")
def test_module_matches_numpy_layer():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(7, 5, dtype=torch.float64, generator=generator).requires_grad_()
    layer = drop.Dropout(0.3, generator=torch.Generator().manual_seed(5))
    y = layer(x)
    y.backward(torch.full((7, 5), 2.0, dtype=torch.float64))
    u = torch.rand(7, 5, generator=torch.Generator().manual_seed(5)).double().numpy()
    mask = drop.dropout_mask(u, 0.3)
    np.testing.assert_allclose(y.detach(), x.detach().numpy() * mask, rtol=1e-12)
    expected = drop.dropout_backward(np.full((7, 5), 2.0), mask)
    np.testing.assert_allclose(x.grad, expected, rtol=1e-12)
    assert repr(torch.nn.Dropout(0.3)).startswith(repr(layer)[:-1])
    assert list(layer.state_dict()) == []


# --- Dropout as an ensemble ------------------------------------------------------------------


def enumerated(W, b, x, keep):
    """Multiply the probabilities of torch's softmax, subnetwork by subnetwork."""
    total = torch.ones(len(b), dtype=torch.float64)
    for mask in product([0.0, 1.0], repeat=len(x)):
        chance = np.prod([keep if on else 1 - keep for on in mask])
        scores = torch.from_numpy(W @ (np.array(mask) * x) + b)
        total *= functional.softmax(scores, dim=0) ** chance
    return (total / total.sum()).numpy()


@pytest.mark.row("L2-17")
@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9, 1.0])
@pytest.mark.parametrize(("c", "n"), [(2, 1), (3, 4), (5, 7)])
def test_geometric_ensemble_and_weight_scaling_match_enumeration(c, n, keep, rng):
    W, b, x = 2 * rng.normal(size=(c, n)), rng.normal(size=c), rng.normal(size=n)
    expected = enumerated(W, b, x, keep)
    np.testing.assert_array_equal(drop.subnetwork_masks(n), [*product([0, 1], repeat=n)])
    for function in (drop.geometric_ensemble, drop.weight_scaling):
        np.testing.assert_allclose(function(W, b, x, keep), expected, rtol=1e-10)
        # at keep = ½ these scores differ by 500, and nothing overflows
        large = function(np.array([[1000.0], [0.0]]), np.zeros(2), np.ones(1), 0.5)
        np.testing.assert_allclose(large, [1.0, np.exp(-500)], rtol=1e-9)


# --- The typical experiment ------------------------------------------------------------------


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
        np.testing.assert_allclose(ours, theirs.detach(), rtol=1e-9, atol=1e-12)
    first, second = (scores(inputs, np.ones(9)).detach() for inputs in x[:2])
    labels = torch.from_numpy(y)
    losses = [
        functional.cross_entropy(first, labels[0]),
        functional.cross_entropy(second, labels[1]),
    ]
    error = (second.argmax(dim=1) != labels[1]).double().mean()
    ours = drop.functions._losses(*trained, Examples(x[0], y[0]), Examples(x[1], y[1]))
    np.testing.assert_allclose(ours, [*losses, error], rtol=1e-9)


def halves():
    split = load("digits").subset(200).split(100)
    return split.train, split.validation


@pytest.mark.row("L2-18")
def test_curves_are_evaluated_without_dropout_and_follow_the_seed():
    """With a learning rate of 0 nothing moves: every value is that of the first network."""
    curves = drop.train_with_dropout(*halves(), 0.5, lr=0.0, epochs=3)
    for curve in (curves.train_loss, curves.validation_loss, curves.validation_error):
        assert curve.shape == (4,)
        assert np.ptp(curve) == 0
    other = drop.train_with_dropout(*halves(), 0.0, lr=0.0, epochs=1)
    assert other.validation_loss[0] == curves.validation_loss[0]
    first, again, other = (
        drop.train_with_dropout(*halves(), 0.5, seed, epochs=2).validation_loss
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert np.all(first != other)


@pytest.mark.row("L2-18")
@pytest.mark.parametrize("seed", range(5))
def test_dropout_learns_more_slowly_and_overfits_less(seed):
    """On 300 digits, a tenth relabeled at random, without and with dropout."""
    digits, rng = load("digits"), np.random.default_rng(seed)
    split = digits.split(len(digits.y_train) - 300, seed=seed)
    y = np.where(rng.random(300) < 0.1, rng.integers(10, size=300), split.train.y)
    train = Examples(split.train.x, y)
    plain, dropped = (drop.train_with_dropout(train, split.validation, p, seed) for p in (0.0, 0.5))
    early = [1, 2, 4, 8]
    assert np.all(dropped.validation_loss[early] > plain.validation_loss[early])
    assert dropped.validation_loss[-1] < 0.95 * plain.validation_loss[-1]
    assert dropped.validation_loss.min() < plain.validation_loss.min()
    assert dropped.validation_error[-1] < plain.validation_error[-1]
    # less training loss is bought with more validation loss: the gap is the overfitting
    gap, small = (run.validation_loss[-1] - run.train_loss[-1] for run in (plain, dropped))
    assert 0 < small < 0.75 * gap


# --- What is refused -------------------------------------------------------------------------


@pytest.mark.parametrize("p", [-0.1, 1.0, 1.5, float("nan")])
def test_probability_outside_range_is_refused(p):
    zeros, generator = np.zeros(2), np.random.default_rng(0)
    for call in (
        lambda: drop.dropout_mask(zeros, p),
        lambda: drop.dropout_forward(zeros, p, generator),
        lambda: drop.dropout_forward(zeros, p, generator, training=False),
        lambda: drop.dropout_moments(zeros, p),
        lambda: drop.Dropout(p),
        lambda: drop.train_with_dropout(*halves(), p),
    ):
        with pytest.raises(ValueError, match=r"expected 0 ≤ p < 1.* dropped; got .*1 − p"):
            call()


@pytest.mark.parametrize("function", [drop.geometric_ensemble, drop.weight_scaling])
def test_other_arguments_out_of_range_are_refused(function):
    for keep in (0.0, -0.5, 1.1):
        with pytest.raises(ValueError, match=r"expected 0 < keep ≤ 1.* kept; got"):
            inspect.unwrap(function)(np.ones((2, 2)), np.ones(2), np.ones(2), keep)
    for n in (0, 21):
        with pytest.raises(ValueError, match=f"expected 1 to 20 units; got {n}"):
            drop.subnetwork_masks(n)
    with pytest.raises(ValueError, match=r"expected at least 500 training examples.*got 100"):
        drop.train_with_dropout(*halves(), 0.5, batch_size=500)
