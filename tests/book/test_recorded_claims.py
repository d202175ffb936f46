"""What pages say in words about recorded runs: orders, signs and bounds, for every seed."""

import math
import re
import runpy
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from optdl import conditioning, erm
from optdl.records import Record
from tools.layout import ROOT

RECORDED = ROOT / "experiments" / "results" / "recorded"
GUESS = math.log(10)


@cache
def record(name: str) -> dict[str, list[float]]:
    return Record.load(RECORDED / f"{name}.json").curves


def curves(name: str, label: str, curve: str = "train_loss") -> np.ndarray:
    """Return a curve of a recorded run, one row for each seed."""
    key = re.compile(rf"{re.escape(label)}seed \d+: {curve}")
    return np.array([values for text, values in record(name).items() if key.fullmatch(text)])


def heights(name: str) -> dict[str, dict[float, float]]:
    """Return the mean logarithmic loss of each network at each learning rate."""
    keys = {tuple(key.split(", seed")[0].split(", rate ")) for key in record(name)}
    levels: dict[str, dict[float, float]] = {}
    for label, lr in keys:
        rows = curves(name, f"{label}, rate {lr}, ")
        levels.setdefault(label, {})[float(lr)] = np.log(rows).mean()
    return levels


@pytest.mark.row("L1-04")
def test_margins_grow_after_the_last_training_error():
    names = "train_error", "normalized_margin", "validation_error"
    falls = []
    for wrong, margin, error in zip(*(curves("erm-after-zero", "", n) for n in names), strict=True):
        zero = np.flatnonzero(wrong)[-1] + 1
        assert margin[zero + 99] > 2 * margin[zero] > 0
        falls.append(error[zero] - error[zero + 99])
    assert np.mean(falls) > 0.005


@pytest.mark.row("L1-05")
def test_gradient_is_smallest_where_validation_is_worst():
    [norm] = curves("erm-without-halt", "", "batch_gradient_norm")
    [error] = curves("erm-without-halt", "", "validation_error")
    assert norm.argmin() == len(norm) - 1
    assert error[-1] > 1.8 * error.min()
    assert norm[erm.early_stopping(error.tolist(), 10)[1]] > 0.5 * norm[0]


@pytest.mark.row("L1-19")
def test_gradient_norm_stays_while_curvature_grows():
    early, late = slice(4, 8), slice(40, 60)
    norm, curvature = (
        curves("conditioning-minibatches", "0.05, ", name)
        for name in ("gradient_norm", "curvature")
    )
    assert np.all(np.abs(norm[:, late].mean(axis=1) / norm[:, early].mean(axis=1) - 1) < 0.05)
    assert np.all(curvature[:, late].mean(axis=1) > 1.2 * curvature[:, early].mean(axis=1))
    assert np.all(curvature[:, 1:].max(axis=1) < curvature[:, 0])


@pytest.mark.parametrize(
    ("name", "labels", "curve"),
    [
        ("minibatches", ("0.2", "0.05", "0.02"), "train_loss"),
        ("minibatches", ("0.05", "0.05 and 0.005"), "train_loss"),
        ("edge", ("0.25", "0.15", "0.05"), "loss"),
    ],
)
def test_larger_rates_end_lower_from_each_start(name, labels, curve):
    ends = [curves(f"conditioning-{name}", f"{label}, ", curve)[:, -1] for label in labels]
    assert np.all(np.diff(ends, axis=0) > 0)


@pytest.mark.row("F-02")
@pytest.mark.parametrize("curve", ["gradient_norm", "curvature"])
@pytest.mark.parametrize("lr", ["0.15", "0.25"])
def test_edge_values_stay_below_their_start(lr, curve):
    values = curves("conditioning-edge", f"{lr}, ", curve)
    assert np.all(values[:, 36:].max(axis=1) < values[:, 0])


@pytest.mark.row("F-02")
@pytest.mark.parametrize("lr", [0.15, 0.25])
def test_sharpness_settles_at_two_over_rate(lr):
    """Cohen et al. (2021): the oracle is the threshold 2/η, which comes from quadratics."""
    sharpness, loss = (curves("conditioning-edge", f"{lr}, ", k) for k in ("sharpness", "loss"))
    late = sharpness[:, 36:] * lr / 2
    assert np.all(np.abs(late - 1) < 0.12)
    assert late.mean() == pytest.approx(1, abs=0.06)
    assert np.all(np.abs(sharpness[:, 0] * lr / 2 - 1) > 0.1)  # it was elsewhere at the start
    assert np.all(loss[:, -1] < 0.8 * loss[:, 17])


def test_median_loss_of_critical_points_sometimes_falls():
    falls = 0
    for seed in range(8):
        index, loss = (
            np.array(record("conditioning-saddles")[f"teacher {seed}: {name}"]).round(6)
            for name in ("negative_eigenvalues", "loss")
        )
        medians = [np.median(np.unique(loss[index == k])) for k in np.unique(index[index >= 0])]
        falls += np.any(np.diff(medians) < 0)
    assert falls > 2


def test_most_weights_beyond_30_are_still_growing():
    x, y, _ = conditioning.student_teacher(2)
    value = conditioning.tanh_regression(x, y, 3).value
    ends = conditioning.fit_from(x, y, np.random.default_rng([2, 3]).normal(size=(30, 12)))
    weights = np.abs(ends).max(axis=1)
    far = (weights > 30) & (np.array([value(end) for end in ends]) > 1e-10)
    later = np.abs(conditioning.fit_from(x, y, ends[far])).max(axis=1)
    assert far.sum() >= 5
    assert np.mean(later > 1.01 * weights[far]) > 0.6


@cache
def methods() -> list[str]:
    """Return the optimizers that were compared, each at its best learning rate."""
    labels = {key.split(", ")[0] for key in record("optimizers-curves")}
    return sorted(label for label in labels if " at " not in label)


@pytest.mark.row("F-16")
def test_muon_starts_among_worst_and_ends_among_best():
    means = {name: curves("optimizers-curves", f"{name}, ").mean(axis=0) for name in methods()}
    first, last = (sorted(means, key=lambda name: means[name][k]) for k in (0, -1))
    assert set(first[-2:]) == {"Muon", "Lion"}
    assert set(last[-2:]) == {"SGD", "AdaGrad"}
    assert set(last[:3]) == {"Muon", "Momentum", "Nesterov"}


@pytest.mark.row("F-16")
def test_most_methods_cannot_be_ordered_by_validation_error():
    wrong = [curves("optimizers-curves", f"{n}, ", "validation_error")[:, -1] for n in methods()]
    overlap = [a.min() <= b.max() and b.min() <= a.max() for a, b in combinations(wrong, 2)]
    assert np.mean(overlap) > 0.5


@pytest.mark.row("F-07")
def test_four_rates_show_four_kinds_of_curve():
    A, B, C, D = (
        curves("optimizers-curves", f"{name}, ")
        for name in ("SGD at 3", "SGD at 0.03", "SGD", "SGD at 1")
    )
    assert np.all(np.abs(A.mean(axis=0) - GUESS) < 0.1)
    assert np.all(np.diff(B, axis=1) < 0)
    assert np.diff(np.log(D.mean(axis=0))).max() > 2 * np.diff(np.log(C.mean(axis=0))).max()
    assert D[:, 4].mean() > C[:, 4].mean()
    assert D[:, -1].mean() < C[:, -1].mean()


@pytest.mark.row("L1-27")
def test_nesterov_and_momentum_end_within_each_others_range():
    ends = [curves("optimizers-curves", f"{name}, ")[:, -1] for name in ("Momentum", "Nesterov")]
    for one, other in (ends, ends[::-1]):
        assert other.min() < one.mean() < other.max()


@pytest.mark.row("L2-12")
@pytest.mark.parametrize("name", ["rates", "factors", "deep"])
def test_best_rates_lie_inside_their_grids(name):
    for label, grid in heights(f"initialization-{name}").items():
        at, last = sorted(grid).index(min(grid, key=grid.get)), len(grid) - 1
        # larger rates diverge for two networks, and one does not learn at any rate
        if name != "deep" or label not in ("ReLU, 2", "ReLU, 4", "sigmoid, 1"):
            assert 0 < at < last, label
        elif label != "sigmoid, 1":
            assert at > 0, label


@pytest.mark.row("L2-12")
@pytest.mark.parametrize(("factor", "lr"), [(2, 0.002), (4, 1e-5)])
def test_deep_relu_networks_diverge_beyond_their_grids(factor, lr):
    assert lr > max(heights("initialization-deep")[f"ReLU, {factor}"])
    train = runpy.run_path(str(ROOT / "experiments" / "recorded.py"))["train_hidden_layers"]
    setting = {"depth": 10, "epochs": 1, "batch_size": 32}
    for seed in range(3):
        run = train(seed, "ReLU", factor, "normalized", lr, [], **setting)
        assert run.curves["train_loss"] == [GUESS]


@pytest.mark.row("L2-12")
def test_order_of_activations_by_depth_and_weights():
    levels = heights("initialization-rates") | heights("initialization-factors")
    three = {label: min(grid.values()) for label, grid in levels.items()}
    ten = {label: min(grid.values()) for label, grid in heights("initialization-deep").items()}
    assert three["ReLU"] < three["tanh"] < three["sigmoid"] < three["sigmoid, 0.25"]
    assert ten["tanh, 1"] < ten["ReLU, 1"] < ten["tanh, 4"] < ten["sigmoid, 1"]
    assert math.log(2) < ten["ReLU, 2"] < math.log(GUESS) < ten["ReLU, 4"]
    for best, plain in ((three, ""), (ten, ", 1")):
        for factor in (2, 4):
            harm = {n: best[f"{n}, {factor}"] - best[f"{n}{plain}"] for n in ("ReLU", "tanh")}
            assert harm["ReLU"] > harm["tanh"]
    ends = curves("initialization-rates", "ReLU, rate 0.8, ")[:, -1]
    assert 0 < np.isclose(ends, GUESS, rtol=1e-4).sum() < len(ends)
