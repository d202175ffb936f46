"""What the chapter on batch normalization says in words about its own figures and examples."""

import math
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from optdl import batchnorm as bn
from optdl.batchnorm import batchnorm_backward, batchnorm_forward
from optdl.data import Examples, load
from optdl.ensembles import Ensemble, train_ensemble
from optdl.networks import fully_connected
from optdl.records import Record
from optdl.training import train

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "experiments/results/fig3"
TEXT = re.sub(r"\s+", " ", (ROOT / "book/batchnorm.md").read_text("utf-8"))
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


def test_what_the_lag_of_the_averages_costs() -> None:
    cost = {}
    for name in ("raw-0.01", "standardized-0.1"):
        records = [
            Record.load(RESULTS / f"cifar10-fc3-60-bn-{name}-{seed}.json") for seed in range(5)
        ]
        lagging, anew = (
            np.array([record.curves[curve][-1] for record in records])
            for curve in ("test_error", "recomputed_error")
        )
        cost[name] = 100 * (lagging.mean() - anew.mean())
    assert round(cost["raw-0.01"], 1) == 3.4
    assert abs(cost["standardized-0.1"]) < 0.1


def says(*parts: str) -> None:
    """Make sure that the chapter still says what a test is about."""
    for part in parts:
        assert part in TEXT, f"the chapter no longer says: {part}"


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


@pytest.fixture(scope="module")
def along_steps() -> dict[str, np.ndarray]:
    """Return loss and change of the gradient: (seed, step, quantity, rate) for each network."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    examples, _ = digits()
    x, y = torch.from_numpy(examples.x), torch.from_numpy(examples.y)
    measured: dict[str, np.ndarray] = {}
    for name in ("none", "bn"):
        runs = []
        for seed in range(3):
            model = fully_connected((64, 50, 50, 10), bn.NORMALIZATIONS[name], seed=seed)
            watch = bn.AlongStepHook(x, y, [0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6], every=16)
            sgd = torch.optim.SGD(model.parameters(), lr=0.1)
            train(model, examples, sgd, epochs=5, batch_size=32, seed=seed, hooks=[watch])
            runs.append([[step.loss.numpy(), step.change.numpy()] for step in watch.results])
        measured[name] = np.array(runs)
    torch.set_num_threads(threads)
    return measured


@pytest.mark.row("L2-15")
def test_the_loss_is_smoother_along_long_steps(along_steps: dict[str, np.ndarray]) -> None:
    says("It reaches 2 at η = 0.4, where about half of the steps raise $J$")
    says("stays below 1 on average up to η = 0.8, and no measured step raises $J$, even at η = 1.6")
    change = {name: steps[:, :, 1].mean(axis=1) for name, steps in along_steps.items()}
    raised = {
        name: (steps[:, :, 0] > steps[:, :, 0, :1]).mean(axis=(0, 1))
        for name, steps in along_steps.items()
    }
    assert change["none"].mean(axis=0)[4] == pytest.approx(2, abs=0.1)
    assert raised["none"][4] == pytest.approx(0.5, abs=0.1)
    assert raised["bn"].max() == 0
    assert (change["bn"].mean(axis=0)[:6] < 1).all()
    for column in (4, 5, 6):  # in every seed
        assert change["none"][:, column].min() > change["bn"][:, column].max()
    ratios = change["none"].mean(axis=0)[1:] / [0.05, 0.1, 0.2, 0.4, 0.8, 1.6]
    assert ratios.max() < 1.1 * ratios.min()  # "nearly proportional to η"
    assert 4 < change["none"].mean(axis=0)[5] / change["bn"].mean(axis=0)[5] < 5


@pytest.mark.row("L2-15")
def test_the_loss_is_no_smoother_along_short_steps(along_steps: dict[str, np.ndarray]) -> None:
    first, last = (
        {name: steps[:, k, 1, 1] for name, steps in along_steps.items()} for k in (0, -1)
    )
    assert first["bn"].min() > first["none"].max()  # in every seed
    assert first["bn"].mean() > 3 * first["none"].mean()
    says("the means are 0.34 without and 0.23 with normalization, but the ranges overlap")
    assert last["none"].mean() == pytest.approx(0.34, abs=0.02)
    assert last["bn"].mean() == pytest.approx(0.23, abs=0.02)
    assert last["bn"].max() > last["none"].min()
    assert last["none"].max() > last["bn"].min()


@pytest.mark.row("L2-15")
def test_the_comparison_at_equal_loss(along_steps: dict[str, np.ndarray]) -> None:
    says(
        "after 113 steps without normalization and 17 with it, the change at η = 0.8 is 5.7 and 1.2"
    )
    for name, step, change in (("none", 113, 5.7), ("bn", 17, 1.2)):
        measured = along_steps[name][:, (step - 1) // 16].mean(axis=0)
        assert measured[0, 0] == pytest.approx(0.4, abs=0.03)
        assert measured[1, 5] == pytest.approx(change, abs=0.25)


@pytest.mark.row("L2-15")
def test_larger_rates_and_other_initial_weights() -> None:
    examples, validation = digits()
    rates, factors = [0.01, 0.3, 1.0, 0.1, 0.1, 0.1], [1, 1, 1, 0.03, 3, 10]
    errors = {}
    for method in ("vanilla", "BN"):
        seeds = [seed for seed in range(5) for _ in rates]
        networks = Ensemble((64, 50, 50, 10), method, seeds, [*rates] * 5, settings={"rho": 0.9})
        for layer in networks.dense:
            layer.weight *= torch.tensor(factors * 5)[:, None, None]
        records = train_ensemble(networks, examples, validation, epochs=5, batch_size=32)
        final = [record.curves["validation_error"][-1] for record in records]
        errors[method] = np.reshape(final, (5, -1)).mean(axis=0)
    plain, normalized = errors["vanilla"], errors["BN"]
    assert min(plain[0], plain[2]) > 0.5 > 0.15 > plain[1]
    assert (normalized[:3] < 0.2).all()
    assert plain[3] > 0.8
    assert (normalized[3:5] < 0.1).all()
    assert normalized[5] == pytest.approx(0.2, abs=0.04)


def errors_by_size(name: str) -> dict[int, np.ndarray]:
    """Return the errors of the three seeds in percent, by the size of the minibatch."""
    curves = Record.load(ROOT / "experiments/results/recorded/batchnorm-sizes.json").curves
    return {
        m: 100
        * np.array([curves[f"{name}, {m}, seed {s}: validation_error"][-1] for s in range(3)])
        for m in (1, 2, 4, 8, 16, 32, 64)
        if f"{name}, {m}, seed 0: validation_error" in curves
    }


@pytest.mark.row("P-04", "L2-15")
def test_small_minibatches_and_the_relatives() -> None:
    says("an error of 35.7 %, three times that", "have 6.4 to 7.6 % there, and 6.6 to 8.7 % with")
    says("From 8 examples on batch normalization has 6.1 to 6.6 %")
    means = {
        name: {m: errors.mean() for m, errors in errors_by_size(name).items()}
        for name in ("none", "BN", "ghost BN", "LN", "GN", "four things")
    }
    assert round(means["BN"][2], 1) == 35.7
    assert 2.5 < means["BN"][2] / means["none"][2] < 3.5
    others = [means[name] for name in ("LN", "GN", "four things")]
    for m, low, high in ((2, 6.4, 7.6), (1, 6.6, 8.7)):
        assert [round(f(other[m] for other in others), 1) for f in (min, max)] == [low, high]
    large = [means["BN"][m] for m in (8, 16, 32, 64)]
    assert [round(min(large), 1), round(max(large), 1)] == [6.1, 6.6]
    ranges = errors_by_size("BN")
    for name in ("ghost BN", "LN", "GN", "four things"):
        for m in (8, 16, 32, 64):  # none is clearly better: its best seed is in BN's range or worse
            assert means[name][m] > ranges[m].min()
    for m in (2, 4, 8, 16):
        assert means["ghost BN"][m] == means["BN"][m]
    assert all(means["ghost BN"][m] >= means["BN"][m] for m in (32, 64))
    # "At 32 examples none of them has a lower mean error than batch normalization"
    assert min(other[32] for other in [*others, means["ghost BN"]]) >= means["BN"][32]
    assert {1} == {*means["none"]} - {*means["BN"]}


def test_from_which_size_on_ghost_batches_are_parts() -> None:
    x = torch.randn(32, 3, generator=torch.Generator().manual_seed(0))
    for m, same in ((16, True), (31, True), (32, False)):
        outputs = bn.GhostBatchNorm(3, ghost_size=16)(x[:m]), bn.BatchNorm(3)(x[:m])
        assert torch.allclose(*outputs, atol=1e-6) == same
