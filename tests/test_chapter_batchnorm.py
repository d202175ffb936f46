"""What the chapter on batch normalization says in words about its own figures and examples."""

import copy
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
from optdl.hooks import State
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


def test_what_the_lag_of_the_averages_costs() -> None:
    assert 45_000 / 60 == 750
    assert round(0.99**750, 4) == 0.0005
    cost, changes = {}, {}
    for name in ("raw-0.01", "standardized-0.1"):
        records = [
            Record.load(RESULTS / f"cifar10-fc3-60-bn-{name}-{seed}.json") for seed in range(5)
        ]
        lagging, anew = (
            100 * np.array([record.curves[curve] for record in records])
            for curve in ("test_error", "recomputed_error")
        )
        cost[name] = (lagging - anew).mean(axis=0)
        changes[name] = [np.abs(np.diff(e[:, 9:], axis=1)).mean() for e in (lagging, anew)]
    says("cost 1.9 to 5.8 points, 3.4 after 20 epochs")
    raw, standardized = cost["raw-0.01"], cost["standardized-0.1"]
    assert [round(value, 1) for value in (raw.min(), raw.max(), raw[-1])] == [1.9, 5.8, 3.4]
    says("it changes by 1.8 points from one epoch to the next", "computed anew by 0.4 points")
    assert [round(change, 1) for change in changes["raw-0.01"]] == [1.8, 0.4]
    says("differ by at most 0.4 points after each epoch, and by less than 0.1 points after 20")
    assert round(np.abs(standardized).max(), 1) == 0.4
    assert abs(standardized[-1]) < 0.1
    says(
        "the cost on the same raw pixels is 0.2 points after 20 epochs", "On MNIST it is below 0.1"
    )
    for name, low, high in (
        ("cifar10-fc3-60-bn-and-input-raw-0.3", 0.15, 0.25),
        ("mnist-fc3-60-bn-raw-0.3", 0, 0.1),
    ):
        ends = [
            record.curves["test_error"][-1] - record.curves["recomputed_error"][-1]
            for record in map(Record.load, sorted(RESULTS.glob(f"{name}-*.json")))
        ]
        assert low < 100 * np.mean(ends) < high, name


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


def test_how_far_training_is_from_inference() -> None:
    """Repeat the chapter's figure: the last of 200 minibatches, by its size."""
    says("is 7.7 to 9.4 times smaller")
    gaps: dict[type[bn.BatchNorm], list[float]] = {bn.BatchNorm: [], bn.BatchRenorm: []}
    for make, measured in gaps.items():
        for m in (2, 4, 8, 16, 32, 64, 128):
            layer = make(20, rho=0.9).double()
            draws = torch.randn(200, m, 20, generator=torch.Generator().manual_seed(0)).double()
            trained = [layer(batch) for batch in draws][-1]
            measured.append((trained - layer.eval()(draws[-1])).square().mean().sqrt().item())
    plain, renorm = (np.array(measured) for measured in gaps.values())
    assert [round(f(plain / renorm), 1) for f in (min, max)] == [7.7, 9.4]
    for curve in (plain, renorm):  # "From 8 examples on, both differences fall about as 1/√m"
        assert curve[2] / curve[6] == pytest.approx(4, rel=0.15)


def test_a_relu_before_the_normalization_keeps_the_invariance() -> None:
    says("with a bias the statements are about $w$ and $b$ together")
    rng = np.random.default_rng(0)
    h, w, b = rng.normal(size=(8, 5)), rng.normal(size=(3, 5)), rng.normal(size=3)
    one, zero = np.ones(3), np.zeros(3)
    outputs = [
        batchnorm_forward(np.maximum(c * (h @ w.T + b), 0), one, zero, eps=0.0)[0] for c in (1, 7)
    ]
    np.testing.assert_allclose(outputs[0], outputs[1], atol=1e-12)


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
    says("For short steps, up to η = 0.1, the ranges of the three seeds overlap")
    for column in (1, 2):
        assert change["none"][:, column].min() < change["bn"][:, column].max()
        assert change["bn"][:, column].min() < change["none"][:, column].max()
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
    says("and η = 0.05 the gradient of the plain network changes *less*, by 0.07 of its length")
    assert first["none"].mean() == pytest.approx(0.07, abs=0.006)
    assert first["bn"].mean() == pytest.approx(0.23, abs=0.006)
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


def errors_after(
    epochs: int, method: str, rates: list[float], factors: list[float], seeds: int
) -> np.ndarray:
    """Return the mean error of networks with these rates and factors on their initial weights."""
    examples, validation = digits()
    networks = Ensemble(
        (64, 50, 50, 10),
        method,
        [seed for seed in range(seeds) for _ in rates],
        [*rates] * seeds,
        settings={"rho": 0.9},
    )
    for layer in networks.dense:
        layer.weight *= torch.tensor(factors * seeds)[:, None, None]
    records = train_ensemble(networks, examples, validation, epochs=epochs, batch_size=32)
    errors = [record.curves["validation_error"][-1] for record in records]
    return np.reshape(errors, (seeds, -1)).mean(axis=0)


@pytest.mark.row("L2-15")
def test_larger_rates_and_other_initial_weights() -> None:
    rates, factors = [0.01, 0.03, 0.1, 0.3, 1.0], [0.03, 0.1, 0.3, 3.0, 10.0]
    plain, normalized = (
        errors_after(5, method, [*rates, *[0.1] * 5], [*[1.0] * 5, *factors], seeds=5)
        for method in ("vanilla", "BN")
    )
    says(
        "the mean error is below 15 % at five rates, from 0.01 to 1, and without it at two, 0.1 and"
    )
    assert (normalized[:5] < 0.15).all()
    assert (plain[:5] < 0.15).tolist() == [False, False, True, True, False]
    assert (plain[0], plain[4]) > (0.5, 0.5)
    says("The best mean errors, both at 0.3, are 5.1 % with and 9.5 % without normalization")
    assert plain[:5].argmin() == normalized[:5].argmin() == 3
    assert normalized[3] == pytest.approx(0.051, abs=0.004)
    assert plain[3] == pytest.approx(0.095, abs=0.004)
    says("is below 10 % for factors from 0.03 to 3. Without it, it is below 15 % only for 1 and 3")
    assert (normalized[[2, 5, 6, 7, 8]] < 0.1).all()
    assert normalized[9] == pytest.approx(0.2, abs=0.04)
    assert (plain[[5, 6, 7, 2, 8, 9]] < 0.15).tolist() == [False, False, False, True, True, False]
    assert (plain[5:7] > 0.85).all()


@pytest.mark.row("L2-15")
def test_large_initial_weights_need_more_epochs() -> None:
    says("the mean error at the factor 10 is about 20 % after 5 epochs, and 9 % after 40")
    assert errors_after(40, "BN", [0.1], [10.0], seeds=3)[0] == pytest.approx(0.09, abs=0.02)


@pytest.mark.row("L2-15")
def test_large_initial_weights_turn_less() -> None:
    says("turn by 2 to 3 degrees on average, instead of 14 to 15")
    says("output layer, which are ten times as long, turn by 3 degrees instead of 21")
    examples, validation = digits()
    for factor, expected in ((1.0, [15, 14, 21]), (10.0, [3, 2, 3])):
        networks = Ensemble((64, 50, 50, 10), "BN", [0, 1, 2], 0.1, settings={"rho": 0.9})
        before = []
        for layer in networks.dense:
            layer.weight *= factor
            before.append(layer.weight.clone())
        train_ensemble(networks, examples, validation, epochs=5, batch_size=32)
        turned = [  # the columns are the weight vectors of the units
            torch.cosine_similarity(old, layer.weight, dim=1)
            .clamp(max=1)
            .arccos()
            .rad2deg()
            .mean()
            .item()
            for old, layer in zip(before, networks.dense, strict=True)
        ]
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
    curves = Record.load(ROOT / "experiments/results/recorded/batchnorm-sizes.json").curves
    return {
        m: 100
        * np.array([curves[f"{name}, {m}, seed {s}: validation_error"][-1] for s in range(3)])
        for m in (1, 2, 4, 8, 16, 32, 64)
        if f"{name}, {m}, seed 0: validation_error" in curves
    }


@pytest.mark.row("P-04", "L2-15")
def test_small_minibatches_and_the_relatives() -> None:
    says("error of 35.7 %, 2.9 times that", "have 6.4 to 7.6 % there, and 6.6 to 8.7 % with")
    says("From 8 examples on batch normalization has 6.1 to 6.6 %")
    means = {
        name: {m: errors.mean() for m, errors in errors_by_size(name).items()}
        for name in ("none", "BN", "ghost BN", "LN", "GN", "four things")
    }
    assert round(means["BN"][2], 1) == 35.7
    assert round(means["BN"][2] / means["none"][2], 1) == 2.9
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
