"""Dropout against torch, autograd, closed forms, and all its subnetworks written out."""

import inspect
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch
from scipy import stats

from optdl import dropout as drop
from optdl.data import Examples, load

RATES = (0.0, 0.1, 0.5, 0.9)


def masked(rng, shape, p=0.4):
    return drop.dropout_mask(rng.random(shape), p)


# --- The layer -------------------------------------------------------------------------------


@pytest.mark.row("L2-16")
@pytest.mark.parametrize("p", RATES)
def test_mask_matches_torch(p):
    """Torch drops some of a million ones; draws that drop the same give the same mask."""
    torch.manual_seed(1)
    theirs = torch.nn.Dropout(p)(torch.ones(1000, dtype=torch.float64)).numpy()
    kept = (theirs > 0).astype(float)
    # A draw of 0 is dropped unless p is 0; a draw just below 1 is kept.
    draws = kept * (1 - 1e-9)
    np.testing.assert_allclose(drop.dropout_mask(draws, p), theirs, rtol=1e-12)


@pytest.mark.row("L2-16")
def test_draw_equal_to_p_is_kept():
    """Draws are even in [0, 1): the share below p is p, with p itself left out."""
    eighths = np.arange(8) / 8
    np.testing.assert_array_equal(drop.dropout_mask(eighths, 0.25), [0, 0] + [4 / 3] * 6)


@pytest.mark.row("L2-16")
@pytest.mark.parametrize("p", RATES)
def test_values_shares_and_distribution_match_torch(p, rng):
    x = np.full(40_000, 3.0)
    ours, mask = drop.dropout_forward(x, p, rng)
    torch.manual_seed(0)
    theirs = torch.nn.Dropout(p)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(np.unique(ours), np.unique(theirs), rtol=1e-12)
    np.testing.assert_allclose(ours, x * mask)
    chance = stats.binomtest(int((ours == 0).sum()), len(x), p).pvalue
    assert chance > 1e-3


@pytest.mark.row("L2-16")
def test_entries_are_dropped_independently(rng):
    """Two entries are dropped together in p² of the cases: within a row, and within a column."""
    _, mask = drop.dropout_forward(np.ones((300, 301)), 0.3, rng)
    gone = mask == 0
    for both in (gone[:, 1:] & gone[:, :-1], gone[1:] & gone[:-1]):
        assert both.mean() == pytest.approx(0.09, abs=0.006)


@pytest.mark.row("L2-16")
def test_successive_minibatches_have_different_masks(rng):
    x = np.ones((5, 20))
    first, second = (drop.dropout_forward(x, 0.5, rng)[1] for _ in range(2))
    assert np.any(first != second)


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
    assert ours[0] == pytest.approx(float(mean), rel=1e-12)
    assert ours[1] == pytest.approx(float(var), rel=1e-12)


@pytest.mark.row("L2-16")
@pytest.mark.parametrize("p", [0.2, 0.5, 0.8])
def test_samples_have_the_mean_and_the_variance(p):
    x, count = np.array([1.0, -2.0, 5.0]), 40_000
    samples, _ = drop.dropout_forward(np.tile(x, (count, 1)), p, np.random.default_rng(2))
    mean, var = drop.dropout_moments(x, p)
    np.testing.assert_array_less(np.abs(samples.mean(axis=0) - mean), 5 * np.sqrt(var / count))
    np.testing.assert_allclose(samples.var(axis=0), var, rtol=0.05)


@pytest.mark.row("L2-17")
def test_gradient_matches_autograd(rng):
    x = torch.tensor(1 + rng.random((6, 5)), requires_grad=True)
    grad = torch.from_numpy(rng.normal(size=(6, 5)))
    torch.manual_seed(0)
    y = torch.nn.Dropout(0.4)(x)
    y.backward(grad)
    mask = (y / x).detach().numpy()
    np.testing.assert_allclose(drop.dropout_backward(grad.numpy(), mask), x.grad, rtol=1e-12)


@pytest.mark.row("L2-17")
def test_gradient_matches_finite_differences(rng):
    """The same generator state gives the same mask, so that the loss is a function of x alone."""
    x, upstream = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))

    def loss(at):
        return np.sum(upstream * drop.dropout_forward(at, 0.5, np.random.default_rng(4))[0])

    _, mask = drop.dropout_forward(x, 0.5, np.random.default_rng(4))
    quotients = np.empty_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-3
        quotients[place] = (loss(x + step) - loss(x - step)) / 2e-3
    ours = drop.dropout_backward(upstream, mask)
    np.testing.assert_allclose(ours, quotients, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("p", [-0.1, 1.0, 1.5, float("nan")])
@pytest.mark.parametrize(
    "call",
    [
        lambda p: drop.dropout_mask(np.zeros(2), p),
        lambda p: drop.dropout_forward(np.zeros(2), p, np.random.default_rng(0)),
        lambda p: drop.dropout_forward(np.zeros(2), p, np.random.default_rng(0), training=False),
        lambda p: drop.dropout_moments(np.zeros(2), p),
        lambda p: drop.Dropout(p),
        lambda p: drop.train_with_dropout(*halves(), p),
    ],
    ids=["mask", "forward", "inference", "moments", "module", "training"],
)
def test_probability_outside_range_is_refused(p, call):
    with pytest.raises(ValueError, match=r"expected 0 ≤ p < 1.* dropped; got .*1 − p"):
        call(p)


# --- The module for torch --------------------------------------------------------------------


@pytest.mark.row("L2-16")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("p", RATES)
def test_module_values_and_share_match_torch(p, dtype):
    x = torch.full((200, 100), 1.5, dtype=dtype)
    torch.manual_seed(0)
    ours, theirs = drop.Dropout(p)(x), torch.nn.Dropout(p)(x)
    assert ours.dtype == theirs.dtype
    torch.testing.assert_close(ours.unique(), theirs.unique())
    share = (ours == 0).double().mean().item()
    assert share == pytest.approx(p, abs=5 * np.sqrt(p * (1 - p) / 20_000))


@pytest.mark.row("L2-16")
def test_module_matches_numpy_layer():
    x = torch.randn(7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    x.requires_grad_()
    y = drop.Dropout(0.3, generator=torch.Generator().manual_seed(5))(x)
    y.backward(torch.full((7, 5), 2.0, dtype=torch.float64))
    u = torch.rand(7, 5, generator=torch.Generator().manual_seed(5)).double().numpy()
    mask = drop.dropout_mask(u, 0.3)
    assert set(np.unique(mask)) == {0.0, 1 / 0.7}
    np.testing.assert_allclose(y.detach(), x.detach().numpy() * mask, rtol=1e-12)
    np.testing.assert_allclose(
        x.grad, drop.dropout_backward(np.full((7, 5), 2.0), mask), rtol=1e-12
    )


@pytest.mark.row("L2-16")
def test_module_is_inactive_in_evaluation_mode():
    layer, x = drop.Dropout(0.9).eval(), torch.randn(4, 3)
    assert torch.equal(layer(x), x)
    assert repr(torch.nn.Dropout(0.9)).startswith(repr(layer)[:-1])
    assert list(layer.state_dict()) == []


# --- Dropout as an ensemble ------------------------------------------------------------------


@pytest.mark.row("L2-17")
@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_subnetwork_masks_enumerate_all_binary_words(n):
    np.testing.assert_array_equal(drop.subnetwork_masks(n), list(product([0, 1], repeat=n)))


@pytest.mark.parametrize("n", [0, 21])
def test_too_many_masks_are_not_written_out(n):
    with pytest.raises(ValueError, match=f"expected 1 to 20 units; got {n}"):
        drop.subnetwork_masks(n)


def enumerated(W, b, x, keep):
    """Multiply the probabilities of torch's softmax, subnetwork by subnetwork."""
    total = torch.ones(len(b), dtype=torch.float64)
    for mask in product([0.0, 1.0], repeat=len(x)):
        chance = np.prod([keep if on else 1 - keep for on in mask])
        scores = torch.from_numpy(W @ (np.array(mask) * x) + b)
        total *= torch.nn.functional.softmax(scores, dim=0) ** chance
    return (total / total.sum()).numpy()


@pytest.mark.row("L2-17")
@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9, 1.0])
@pytest.mark.parametrize(("c", "n"), [(2, 1), (3, 4), (5, 7)])
def test_geometric_ensemble_and_weight_scaling_match_enumeration(c, n, keep, rng):
    W, b, x = 2 * rng.normal(size=(c, n)), rng.normal(size=c), rng.normal(size=n)
    expected = enumerated(W, b, x, keep)
    np.testing.assert_allclose(drop.geometric_ensemble(W, b, x, keep), expected, rtol=1e-10)
    np.testing.assert_allclose(drop.weight_scaling(W, b, x, keep), expected, rtol=1e-10)


@pytest.mark.row("L2-17")
def test_large_scores_do_not_overflow():
    """At keep = ½ the scores differ by 500: the second probability is e⁻⁵⁰⁰."""
    W, b, x = np.array([[1000.0], [0.0]]), np.zeros(2), np.ones(1)
    for function in (drop.geometric_ensemble, drop.weight_scaling):
        np.testing.assert_allclose(function(W, b, x, 0.5), [1.0, np.exp(-500)], rtol=1e-9)


@pytest.mark.parametrize("keep", [0.0, -0.5, 1.1])
@pytest.mark.parametrize("name", ["geometric_ensemble", "weight_scaling"])
def test_keep_probability_outside_range_is_refused(name, keep):
    function = inspect.unwrap(getattr(drop, name))
    with pytest.raises(ValueError, match=r"expected 0 < keep ≤ 1.* kept; got"):
        function(np.ones((2, 2)), np.ones(2), np.ones(2), keep)


# --- The typical experiment ------------------------------------------------------------------


def torch_sgd(W, V, x, y, masks, lr):
    W, V = (torch.tensor(part, requires_grad=True) for part in (W, V))
    optimizer = torch.optim.SGD([W, V], lr=lr)
    for inputs, labels, mask in zip(x, y, masks, strict=True):
        optimizer.zero_grad()
        hidden = torch.relu(torch.from_numpy(inputs) @ W.T) * torch.from_numpy(mask)
        torch.nn.functional.cross_entropy(hidden @ V.T, torch.from_numpy(labels)).backward()
        optimizer.step()
    return W.detach().numpy(), V.detach().numpy()


@pytest.mark.row("L2-17", "L2-18")
@pytest.mark.parametrize("p", [0.0, 0.3, 0.8])
def test_training_matches_torch(p, rng):
    case = (rng.normal(size=(9, 4)), rng.normal(size=(3, 9)), rng.normal(size=(20, 5, 4)))
    y, masks = rng.integers(3, size=(20, 5)), masked(rng, (20, 5, 9), p)
    for ours, theirs in zip(
        drop.dropout_sgd(*case, y, masks, 0.2), torch_sgd(*case, y, masks, 0.2), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.row("L2-18")
def test_curves_are_evaluated_without_dropout(rng):
    """With a learning rate of 0 nothing moves: every value is that of the first network."""
    train, validation = halves()
    curves = drop.train_with_dropout(train, validation, 0.5, lr=0.0, epochs=3)
    for curve in (curves.train_loss, curves.validation_loss, curves.validation_error):
        assert curve.shape == (4,)
        assert np.ptp(curve) == 0
    other = drop.train_with_dropout(train, validation, 0.0, lr=0.0, epochs=1)
    assert other.validation_loss[0] == curves.validation_loss[0]


@pytest.mark.row("L2-18")
def test_losses_match_torch(rng):
    weights = rng.normal(size=(6, 4)), rng.normal(size=(3, 6))
    parts = [Examples(rng.normal(size=(m, 4)), rng.integers(3, size=m)) for m in (8, 5)]
    scores = [
        torch.relu(torch.from_numpy(part.x @ weights[0].T)) @ torch.from_numpy(weights[1].T)
        for part in parts
    ]
    labels = [torch.from_numpy(part.y) for part in parts]
    losses = map(torch.nn.functional.cross_entropy, scores, labels)
    error = (scores[1].argmax(dim=1) != labels[1]).double().mean()
    expected = [*(loss.item() for loss in losses), error.item()]
    np.testing.assert_allclose(drop.functions._losses(*weights, *parts), expected, rtol=1e-12)


@pytest.mark.row("L2-18")
def test_seed_determines_the_run():
    first, again, other = (
        drop.train_with_dropout(*halves(), 0.5, seed, epochs=2) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.validation_loss, again.validation_loss)
    assert np.all(first.validation_loss != other.validation_loss)


def test_too_few_examples_are_refused():
    train, validation = halves()
    with pytest.raises(ValueError, match=r"expected at least 500 training examples.*got 100"):
        drop.train_with_dropout(train, validation, 0.5, batch_size=500)


def halves():
    split = load("digits").subset(200).split(100)
    return split.train, split.validation


@pytest.fixture(scope="module")
def experiments():
    """Run without and with dropout on 300 digits, a tenth relabeled at random; five seeds."""
    digits, runs = load("digits"), []
    for seed in range(5):
        split = digits.split(len(digits.y_train) - 300, seed=seed)
        rng = np.random.default_rng(seed)
        y = np.where(rng.random(300) < 0.1, rng.integers(10, size=300), split.train.y)
        train = Examples(split.train.x, y)
        runs.append([drop.train_with_dropout(train, split.validation, p, seed) for p in (0.0, 0.5)])
    return runs


@pytest.mark.row("L2-18")
def test_validation_first_improves_more_slowly_with_dropout(experiments):
    for plain, dropped in experiments:
        for epoch in (1, 2, 4, 8):
            assert dropped.validation_loss[epoch] > plain.validation_loss[epoch]


@pytest.mark.row("L2-18")
def test_validation_is_better_in_the_end_with_dropout(experiments):
    for plain, dropped in experiments:
        assert dropped.validation_loss[-1] < 0.95 * plain.validation_loss[-1]
        assert dropped.validation_loss.min() < plain.validation_loss.min()
        assert dropped.validation_error[-1] < plain.validation_error[-1]


@pytest.mark.row("L2-18")
def test_dropout_overfits_less(experiments):
    """Less training loss is bought with more validation loss: the gap is the overfitting."""
    for plain, dropped in experiments:
        gap, small = (run.validation_loss[-1] - run.train_loss[-1] for run in (plain, dropped))
        assert 0 < small < 0.75 * gap
