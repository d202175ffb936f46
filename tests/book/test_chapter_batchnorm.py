"""What the lessons on batch normalization say in words, and what they compute by hand."""

import copy
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from chapters import text
from torch import nn

from optdl import batchnorm as bn
from optdl.batchnorm import batchnorm_backward, batchnorm_forward
from optdl.data import Examples, load
from optdl.networks import fully_connected
from optdl.records import Record
from optdl.training import State, order_seed, train

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "experiments/results/recorded"
TEXT = text("batchnorm")
X = np.array([[0.0], [0.0], [4.0], [4.0]])


def test_the_transform_by_hand() -> None:
    y, cache = batchnorm_forward(X, np.array([3.0]), np.array([1.0]), eps=0.0)
    assert y.ravel().tolist() == [-2, -2, 4, 4]
    assert cache.normalized.ravel().tolist() == [-1, -1, 1, 1]
    again, _ = batchnorm_forward(X, np.array([2.0]), np.array([2.0]), eps=0.0)
    np.testing.assert_array_equal(again, X)


def test_the_gradient_by_hand() -> None:
    _, cache = batchnorm_forward(X, np.ones(1), np.zeros(1), eps=0.0)
    grad_x, _, _ = batchnorm_backward(np.eye(4)[:, :1], cache)
    assert grad_x.ravel() == pytest.approx([0.25, -0.25, 0, 0], abs=1e-15)


def test_the_folded_layer_by_hand() -> None:
    gamma, beta, mean, var = (np.array([value]) for value in (4.0, 1.0, 1.0, 4.0))
    layer = np.array([[2.0, -1.0]]), np.array([3.0])
    weight, bias = bn.fold(*layer, gamma, beta, mean, var, eps=0.0)
    assert (weight.tolist(), bias.tolist()) == ([[4, -2]], [5])
    assert 4 * ((2 - 1 + 3) - 1) / 2 + 1 == 7 == 4 - 2 + 5


def test_the_variances_of_all_minibatches_of_two() -> None:
    batches = np.array([*product((0, 2), repeat=2)])
    assert batches.var(axis=1).tolist() == [0, 1, 1, 0]


def test_how_long_the_start_of_an_average_lasts() -> None:
    for rho, steps in ((0.9, 29), (0.99, 299)):
        assert math.ceil(math.log(0.05) / math.log(rho)) == steps
        assert rho**steps < 0.05 < rho ** (steps - 1)
    assert [round(5 * (1 - rho**10), 2) for rho in (0.9, 0.99)] == [3.26, 0.48]


def test_two_examples_normalized_in_two_ways() -> None:
    x = torch.tensor([[1.0, 5.0], [3.0, 7.0]], dtype=torch.float64)
    over_examples = torch.nn.functional.batch_norm(x, None, None, training=True, eps=1e-12)
    over_features = torch.nn.functional.layer_norm(x, (2,), eps=1e-12)
    assert over_examples[0].tolist() == pytest.approx([-1, -1], abs=1e-9)
    assert over_features[0].tolist() == pytest.approx([-1, 1], abs=1e-9)


def test_the_first_epoch_forgets_the_initial_value() -> None:
    says("An epoch has 750 minibatches, and $0.99^{750} = 0.0005$")
    assert 45_000 / 60 == 750
    assert round(0.99**750, 4) == 0.0005


def says(*parts: str) -> None:
    """Make sure that a lesson still says what a test is about."""
    for part in parts:
        assert part in TEXT, f"no lesson says any more: {part}"


def digits() -> tuple[Examples, Examples]:
    """Return the examples that the chapter trains on and those that it validates with."""
    split = load("digits").split(validation=300, seed=0)
    return Examples(split.train.x[:1024], split.train.y[:1024]), split.validation


def test_the_normalized_value_of_one_example_is_bounded() -> None:
    says("\\lvert\\hat x_1\\rvert \\le \\sqrt{m-1}")
    rng = np.random.default_rng(0)
    for m in (2, 3, 10):
        x = rng.normal(size=(m, 100)) * rng.uniform(0.1, 10, size=(m, 1))
        y, _ = batchnorm_forward(x, np.ones(100), np.zeros(100), eps=0.0)
        assert np.abs(y).max() <= np.sqrt(m - 1) * (1 + 1e-12)
        extreme = np.zeros((m, 1))
        extreme[0] = 7.0  # the bound is attained
        y, _ = batchnorm_forward(extreme, np.ones(1), np.zeros(1), eps=0.0)
        assert y[0, 0] == pytest.approx(np.sqrt(m - 1))


def test_the_lag_behind_a_mean_that_moves() -> None:
    says("0.18 for ρ = 0.9 and 1.98 for ρ = 0.99")
    moving = 0.02 * np.arange(5000)[:, None]
    for rho, lag in ((0.9, 0.18), (0.99, 1.98)):
        behind = moving[-1] - bn.moving_average(moving, rho)[-1]
        assert behind[0] == pytest.approx(lag, abs=1e-6)


def test_a_shorter_memory_has_less_lag_and_more_noise() -> None:
    says("ρ = 0.83. The running mean", "mean of one minibatch, 0.30 instead of 0.23")
    assert 0.02 * 0.83 / 0.17 < 0.1 < 0.02 * 0.84 / 0.16
    for rho, noise in ((0.83, 0.30), (0.9, 0.23)):
        weights = bn.moving_average(np.eye(500)[0][:, None], rho, start=np.zeros(1))
        assert round(float(np.linalg.norm(weights)), 2) == noise


def test_a_relu_before_the_normalization_keeps_the_invariance() -> None:
    says("with a bias the statements are about $w$ and $b$ together")
    rng = np.random.default_rng(0)
    h, w, b = rng.normal(size=(8, 5)), rng.normal(size=(3, 5)), rng.normal(size=3)
    one, zero = np.ones(3), np.zeros(3)
    outputs = [
        batchnorm_forward(np.maximum(c * (h @ w.T + b), 0), one, zero, eps=0.0)[0] for c in (1, 7)
    ]
    np.testing.assert_allclose(outputs[0], outputs[1], atol=1e-12)


AHEAD = [0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6]


def along_steps(network: str, what: str) -> np.ndarray:
    """Return the loss or the change of the gradient by seed, epoch and rate."""
    curves = Record.load(RECORDED / "batchnorm-smoothness.json").curves
    return np.array(
        [
            np.transpose([curves[f"{network}, seed {s}: {what} {r:g}"] for r in AHEAD])
            for s in range(5)
        ]
    )


@pytest.mark.row("L2-15")
def test_the_loss_is_smoother_along_long_steps() -> None:
    says("With batch normalization it stays below 1 on average up to η = 0.8, and no measured step")
    plain, normal = (along_steps(name, "change").mean(axis=1) for name in ("none", "bn"))
    loss = along_steps("bn", "loss")
    assert (loss <= loss[:, :, :1]).all()
    assert (normal.mean(axis=0)[:6] < 1).all()
    for rate in (3, 4, 5, 6):  # in every seed
        assert plain[:, rate].min() > normal[:, rate].max()
    says("For short steps, up to η = 0.1, the ranges of the five seeds overlap")
    for rate in (1, 2):
        assert plain[:, rate].min() < normal[:, rate].max()
        assert normal[:, rate].min() < plain[:, rate].max()
    says("the relative change of the gradient is nearly proportional to η")
    ratios = plain.mean(axis=0)[1:] / AHEAD[1:]
    assert ratios.max() < 1.15 * ratios.min()


@pytest.mark.row("L2-15")
def test_the_loss_is_no_smoother_at_the_start() -> None:
    says("At the start it is larger *with* batch normalization")
    plain, normal = (along_steps(name, "change")[:, 0, 1] for name in ("none", "bn"))
    assert normal.min() > plain.max()  # in every seed


@pytest.mark.row("L2-15")
def test_the_comparison_at_equal_loss() -> None:
    says("at a loss of about 0.2, after 193 steps without normalization and 33 with it")
    changes = []
    for name, step in (("none", 193), ("bn", 33)):
        epoch = (step - 1) // 32
        assert along_steps(name, "loss")[:, epoch, 0].mean() == pytest.approx(0.2, abs=0.04)
        changes.append(along_steps(name, "change")[:, epoch, 5])
    assert changes[0].min() > changes[1].max()  # in every seed


def trained(factor: float, seed: int, epochs: int) -> tuple[list[torch.Tensor], nn.Module, Record]:
    """Train the normalized network from weights times a factor; return these, too."""
    examples, validation = digits()
    network = fully_connected(
        (64, 50, 50, 10), lambda features: bn.BatchNorm(features, 0.9, 1e-3), seed=seed
    )
    weights = [layer.weight for layer in network if isinstance(layer, nn.Linear)]
    with torch.no_grad():
        before = [weight.mul_(factor).clone() for weight in weights]
    record = train(
        network,
        examples,
        torch.optim.SGD(network.parameters(), lr=0.1),
        validation=validation,
        epochs=epochs,
        batch_size=32,
        seed=order_seed(seed),
    )
    return before, network, record


@pytest.mark.row("L2-15")
def test_larger_rates_and_other_initial_weights() -> None:
    curves = Record.load(RECORDED / "batchnorm-rates.json").curves

    def means(name: str, what: str, values: str) -> np.ndarray:
        labels = [[f"{name}, {what} {v}, seed {s}" for s in range(5)] for v in values.split()]
        return np.array(
            [np.mean([curves[f"{x}: validation_error"][-1] for x in row]) for row in labels]
        )

    says("The lowest mean errors, both at 0.3,")
    for name in ("none", "bn"):
        assert means(name, "rate", "0.01 0.03 0.1 0.3 1 3").argmin() == 3
    says("it is below 15 % only for 1 and 3, and for factors of 0.1 and less the network does no")
    plain = means("none", "factor", "0.03 0.1 0.3 1 3 10")
    assert (plain < 0.15).tolist() == [False, False, False, True, True, False]
    assert (plain[:2] > 0.85).all()


@pytest.mark.row("L2-15")
def test_large_initial_weights_need_more_epochs() -> None:
    says("after 5 epochs, and 9 % after 40 (three seeds)")
    errors = [trained(10.0, seed, 40)[2].curves["validation_error"][-1] for seed in range(3)]
    assert np.mean(errors) == pytest.approx(0.09, abs=0.02)


@pytest.mark.row("L2-15")
def test_large_initial_weights_turn_less() -> None:
    says("turn by 2 to 3 degrees on average, instead of 14 to 15")
    says("output layer, which are ten times as long, turn by 3 degrees instead of 21")
    for factor, expected in ((1.0, [15, 14, 21]), (10.0, [3, 2, 3])):
        turned = []
        for seed in range(3):
            before, network, _ = trained(factor, seed, 5)
            after = [layer.weight for layer in network if isinstance(layer, nn.Linear)]
            turned.append(
                [  # the rows are the weight vectors of the units
                    torch.cosine_similarity(old, new, dim=1)
                    .clamp(max=1)
                    .arccos()
                    .rad2deg()
                    .mean()
                    .item()
                    for old, new in zip(before, after, strict=True)
                ]
            )
        turned = np.mean(turned, axis=0)
        assert turned == pytest.approx(expected, abs=0.5)


@pytest.mark.row("L2-15", "P-08")
def test_a_long_step_hardly_lengthens_the_normalized_weights() -> None:
    says("in one step with η = 1.6 they become longer by about one percent on average")
    examples, _ = digits()
    x, y = torch.from_numpy(examples.x), torch.from_numpy(examples.y)
    growth = []

    class Watch:
        """The growth of the weights, bias included, of the normalized layers in a long step."""

        def after_step(self, state: State) -> None:
            if (state.step - 1) % 16:
                return
            model = copy.deepcopy(state.model)
            torch.nn.functional.cross_entropy(model(x.float()), y).backward()
            for layer in [one for one in model if isinstance(one, torch.nn.Linear)][:2]:
                whole, gradient = (
                    torch.cat([weight, bias[:, None]], dim=1)
                    for weight, bias in (
                        (layer.weight, layer.bias),
                        (layer.weight.grad, layer.bias.grad),
                    )
                )
                moved = (whole - 1.6 * gradient).norm(dim=1) / whole.norm(dim=1)
                growth.append(100 * (moved.mean().item() - 1))

    for seed in range(3):
        model = fully_connected((64, 50, 50, 10), bn.BatchNorm, seed=seed)
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        train(model, examples, sgd, epochs=5, batch_size=32, seed=seed, hooks=[Watch()])
    assert len(growth) == 60
    assert round(float(np.mean(growth))) == 1
    for layer in (0, 1):
        assert 0 < np.mean(growth[layer::2]) < 1.2


def errors_by_size(name: str) -> dict[int, np.ndarray]:
    """Return the errors of the three seeds in percent, by the size of the minibatch."""
    curves = Record.load(RECORDED / "batchnorm-sizes.json").curves
    return {
        m: 100
        * np.array([curves[f"{name}, {m}, seed {s}: validation_error"][-1] for s in range(3)])
        for m in (1, 2, 4, 8, 16, 32, 64)
        if f"{name}, {m}, seed 0: validation_error" in curves
    }


@pytest.mark.row("P-04", "L2-15")
def test_small_minibatches_and_the_relatives() -> None:
    says("on no other layer has a mean error below the range of batch normalization's three seeds")
    says("At 32 no layer has a lower mean error than batch normalization")
    means = {
        name: {m: errors.mean() for m, errors in errors_by_size(name).items()}
        for name in ("none", "BN", "ghost BN", "LN", "GN", "four things")
    }
    others = [means[name] for name in ("LN", "GN", "four things")]
    assert max(other[2] for other in others) < means["none"][2] < means["ghost BN"][2]
    ranges = errors_by_size("BN")
    for name in ("ghost BN", "LN", "GN", "four things"):
        for m in (8, 16, 32, 64):  # none is clearly better: its best seed is in BN's range or worse
            assert means[name][m] > ranges[m].min()
    for m in (2, 4, 8, 16):
        assert means["ghost BN"][m] == means["BN"][m]
    assert all(means["ghost BN"][m] >= means["BN"][m] for m in (32, 64))
    assert min(other[32] for other in [*others, means["ghost BN"]]) >= means["BN"][32]
    assert {1} == {*means["none"]} - {*means["BN"]}
