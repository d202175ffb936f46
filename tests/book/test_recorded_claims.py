"""What pages say in words about recorded runs: orders, signs and bounds, for every seed."""

import math
import re
import runpy
from functools import cache

import numpy as np
import pytest

from optdl import conditioning
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


def test_most_weights_beyond_30_are_still_growing():
    x, y, _ = conditioning.student_teacher(2)
    value = conditioning.tanh_regression(x, y, 3).value
    ends = conditioning.fit_from(x, y, np.random.default_rng([2, 3]).normal(size=(30, 12)))
    weights = np.abs(ends).max(axis=1)
    far = (weights > 30) & (np.array([value(end) for end in ends]) > 1e-10)
    later = np.abs(conditioning.fit_from(x, y, ends[far])).max(axis=1)
    assert far.sum() >= 5
    assert np.mean(later > 1.01 * weights[far]) > 0.6


METHODS = "method", "normalization", "activation"
"""What names the methods that a recorded run compares."""


@pytest.mark.row("F-07")
def test_methods_at_one_rate_have_a_recorded_search():
    tried: dict[tuple[str, str], set[tuple]] = {}
    compared: dict[str, dict[str, set[tuple]]] = {}
    for run in runpy.run_path(str(ROOT / "experiments" / "recorded.py"))["RUNS"]:
        for own in run.trainings.values():
            method = next((own[key] for key in METHODS if key in own), None)
            rate = tuple(own.get(key) for key in ("lr", "times", "smallest"))
            tried.setdefault((run.topic, method), set()).add(rate)
            compared.setdefault(run.name, {}).setdefault(method, set()).add(rate)
    for name, rates in compared.items():
        if len(rates) > 1 and len(set.union(*rates.values())) == 1:
            for method in rates:
                assert len(tried[name.split("-")[0], method]) > 2, f"{name}: {method}"


def test_pages_that_lean_on_one_seed_say_so():
    for run in runpy.run_path(str(ROOT / "experiments" / "recorded.py"))["RUNS"]:
        if len({own["seed"] for own in run.trainings.values()}) > 1:
            continue
        for page in (ROOT / "book" / run.topic).glob("*.md"):
            if re.search(rf"""["/]{run.name}[".]""", text := page.read_text("utf-8")):
                print(f"{page.relative_to(ROOT)} leans on one seed of {run.name}")
                assert re.search(r"\b(one|single|this) (run|seed|start)\b", text), page


@pytest.mark.row("L1-27")
def test_nesterov_and_momentum_overlap_on_raw_inputs_only():
    heavy, nesterov, *normalized = (
        curves("optimizers-curves", f"{name}, ")[:, -1]
        for name in ("Momentum", "Nesterov", "normalized Momentum", "normalized Nesterov")
    )
    assert nesterov.min() < heavy.mean() < nesterov.max()
    assert heavy.min() < nesterov.mean() < heavy.max()
    assert np.all(normalized[0] < normalized[1])


@pytest.mark.row("L2-12")
@pytest.mark.parametrize("name", ["rates", "factors", "deep"])
def test_best_rates_lie_inside_their_grids(name):
    for label, grid in heights(f"initialization-{name}").items():
        at, last = sorted(grid).index(min(grid, key=grid.get)), len(grid) - 1
        # larger rates diverge for two networks
        assert 0 < at < last + (name == "deep" and label in ("ReLU, 2", "ReLU, 4")), label


@pytest.mark.row("L2-12")
@pytest.mark.parametrize(("factor", "lr"), [(2, 0.002), (4, 1e-5)])
def test_deep_relu_networks_diverge_beyond_their_grids(factor, lr):
    assert lr > max(heights("initialization-deep")[f"ReLU, {factor}"])
    train = runpy.run_path(str(ROOT / "experiments" / "recorded.py"))["train_hidden_layers"]
    setting = {"depth": 10, "epochs": 1, "batch_size": 32}
    for seed in range(3):
        run = train(seed, "ReLU", factor, "normalized", lr, [], **setting)
        assert run.curves["train_loss"] == [GUESS]
