"""The tables and totals of ``experiments/README.md`` are those of the result files.

The files are read as plain data, without the package that wrote them.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
RESULTS = EXPERIMENTS / "results"
TEXT = (EXPERIMENTS / "README.md").read_text(encoding="utf-8")
PLAIN = " ".join(TEXT.split())

DENSE = {
    "vanilla": "vanilla",
    "BN": "bn",
    "BN+input": "bn-and-input",
    "LN": "ln",
    "Renorm": "renorm",
    "Renorm, clipped": "renorm-clipped",
    "BNP": "bnp",
    "BNP, not the first layer": "bnp-not-the-first-layer",
}
FIVE = {name: name.lower().replace(" ", "-") for name in ("vanilla", "Adam", "BN", "4 Things")}
FIVE |= {"Renorm": "renorm", "BNP": "bnp"}
RESIDUAL = {"BN": "bn", "GN": "gn", "BNP": "bnp", "BNP+GN": "bnp-and-gn"}
BEYOND = {
    "momentum": "vanilla-momentum",
    "BNP, then momentum": "bnp-momentum",
    "BNP, split form, momentum": "bnp-split-momentum",
    "Adam": "vanilla-adam",
    "BNP, then Adam": "bnp-adam",
    "BNP, split form, Adam": "bnp-split-adam",
}
SPLIT = {"vanilla": "vanilla", "BN": "bn", "LN": "ln", "BNP": "bnp", "hidden BNP": "hidden-bnp"}
SPLIT_RESIDUAL = {"GN": "gn", "BNP+GN": "bnp-and-gn", "hidden BNP+GN": "hidden-bnp-and-gn"}
PARTS = {f"{part} + GN": f"{part}-and-gn" for part in ("centering", "scaling", "rates")}
PARTS["BN"] = "bn"
PANELS = {
    "Figure 3, CIFAR-10, minibatches of 60": ("fig3/cifar10-fc3-60-", DENSE),
    "Figure 3, MNIST, minibatches of 60": ("fig3/mnist-fc3-60-", DENSE),
    "Figure 4, CIFAR-10, minibatches of 6": ("fig4/cifar10-fc3-6-", DENSE),
    "Figure 4, CIFAR-10, minibatches of 1": ("fig4/cifar10-fc3-1-", DENSE),
    "Figure 4, five layers, minibatches of 1": ("fig4/cifar10-cnn5-1-", FIVE),
    "Figure 5, five layers, minibatches of 128": ("fig5/cifar10-cnn5-128-", FIVE),
    "Figure 5, five layers, minibatches of 2": ("fig5/cifar10-cnn5-2-", FIVE),
    "Figure 6 in small": ("fig6/cifar10-resnet14-128-", RESIDUAL),
    "Beyond the paper: BNP with momentum and with Adam": ("beyond/cifar10-fc3-60-", BEYOND),
    "five layers, minibatches of 8, Adam": (
        "split/cifar10-cnn5-8-",
        {name: f"{key}-adam" for name, key in SPLIT.items()},
    ),
    "five layers, minibatches of 8, momentum": (
        "split/cifar10-cnn5-8-",
        {name: f"{key}-momentum" for name, key in SPLIT.items()},
    ),
    "ResNet-14, minibatches of 8, Adam": (
        "split/cifar10-resnet14-8-",
        {name: f"{key}-adam" for name, key in (SPLIT_RESIDUAL | PARTS).items()},
    ),
    "ResNet-14, minibatches of 8, momentum": (
        "split/cifar10-resnet14-8-",
        {name: f"{key}-momentum" for name, key in SPLIT_RESIDUAL.items()},
    ),
    "Beyond the paper: MNIST, minibatches of 6": ("mnist/mnist-fc3-6-", DENSE),
    "Beyond the paper: MNIST, minibatches of 1": ("mnist/mnist-fc3-1-", DENSE),
}


def finals() -> list[dict[str, Any]]:
    """Return the records of all runs that measured the test images."""
    folders = [one for one in RESULTS.iterdir() if one.name != "recorded"]
    return [json.loads(file.read_text()) for one in folders for file in one.glob("*.json")]


def searches() -> list[dict[str, Any]]:
    """Return the records of all searches for a rate; a curve is one short run."""
    return [json.loads(file.read_text()) for file in RESULTS.glob("*/tuning/*.json")]


def lines(title: str) -> Iterator[dict[str, str]]:
    """Yield the rows of the first table below a title by its columns, with the kind of input."""
    section = TEXT.split(title)[1]
    table = re.search(r"^\|.+?^$", section, re.MULTILINE | re.DOTALL)
    assert table
    head, _, *rows = (line.strip("|") for line in table[0].splitlines())
    names, inputs = [], "standardized"
    for name in head.split("|"):
        kind, colon, rest = name.strip().rpartition(": ")
        inputs = kind.lower() if colon else inputs
        names.append(rest if rest in {"Method"} else f"{inputs}: {rest.lower()}")
    for row in rows:
        yield dict(zip(names, (cell.strip() for cell in row.split("|")), strict=True))


def seeds(name: str) -> list[dict[str, Any]]:
    """Return the records of a run."""
    return [json.loads(file.read_text()) for file in sorted(RESULTS.glob(f"{name}-[0-9].json"))]


def outcome(name: str, curve: str = "test_error") -> str:
    """Return the accuracy of a run after its last epoch as a cell of the tables tells it."""
    found = seeds(name)
    ended = [one for one in found if not one["stop"].startswith("diverged")]
    lost = len(found) - len(ended)
    assert found, f"no result file of {name}"
    if not ended:
        return f"all {lost} diverged"
    last = [100 * (1 - one["curves"][curve][-1]) for one in ended]
    spread = f" ({min(last):.1f}–{max(last):.1f})" if len(last) > 1 else ""
    text = f"{np.mean(last):.1f}{spread}"
    return f"{text}, {lost} of {len(found)} diverged" if lost else text


def rates(run: str) -> tuple[str, str]:
    """Return the rate that the search finds best, and the paper's: the other one with files."""
    folder, _, name = run.partition("/")
    record = json.loads((RESULTS / folder / "tuning" / f"{name}.json").read_text())
    errors: dict[str, list[float]] = {}
    for short, curve in record["curves"].items():
        rate = short.partition(",")[0]
        lost = short in record["config"]["diverged"]
        errors.setdefault(rate, []).append(0.9 if lost else curve[-1])
    best = min(errors, key=lambda rate: np.mean(errors[rate]))
    order = sorted(errors, key=float)
    assert order[0] != best != order[-1], f"the best rate of {run} is at an edge: {best} of {order}"
    trained = {
        found[1]
        for file in (RESULTS / folder).glob(f"{name}-*.json")
        if (found := re.fullmatch(rf"{re.escape(name)}-([0-9.e-]+?)-\d", file.stem))
    }
    rest = trained - {best}
    assert best in trained, f"{run} was not trained at {best}"
    assert len(rest) < 2, f"{run} was trained at {sorted(rest)} as well"
    return best, rest.pop() if rest else best


@pytest.mark.row("P-19", "P-26", "P-27", "F-10", "F-11")
@pytest.mark.parametrize("title", PANELS)
def test_the_tables_are_those_of_the_files(title: str) -> None:
    prefix, methods = PANELS[title]
    for row in lines(title):
        run = prefix + methods[row.pop("Method").replace("*", "")]
        cells = {name: cell.replace("*", "") for name, cell in row.items()}
        for inputs in {name.partition(":")[0] for name in cells}:
            rate, paper = rates(f"{run}-{inputs}")
            cell = {n.partition(": ")[2]: c for n, c in cells.items() if n.startswith(inputs)}
            assert float(cell.pop("rate")) == float(rate)
            assert cell.pop("accuracy") == outcome(f"{run}-{inputs}-{rate}")
            if "anew" in cell:
                assert cell.pop("anew") == anew(f"{run}-{inputs}-{rate}")
            told = outcome(f"{run}-{inputs}-{paper}")
            if "at the paper's rate, 1 seed" in cell:
                again = f"{told.partition(' ')[0]} (3 seeds, the same runs)"
                said = cell.pop("at the paper's rate, 1 seed")
                assert said == f"{float(paper):g}: {again if paper == rate else told}"
            assert not {*cell.values()} - {told}, (run, cell)


def anew(run: str) -> str:
    """Return the mean accuracy with statistics computed anew, if it was measured."""
    whole = [one for one in seeds(run) if not one["stop"].startswith("diverged")]
    last = [100 - 100 * one["curves"].get("recomputed_error", [np.nan])[-1] for one in whole]
    return "" if np.isnan(last).any() else f"{np.mean(last):.1f}"


TWO_RATES = re.findall(r"^\*\*(Minibatches of (\d+), (\w+) pixels)", TEXT, re.MULTILINE)


@pytest.mark.row("F-10")
@pytest.mark.parametrize(("title", "batch", "inputs"), TWO_RATES)
def test_the_rates_of_the_first_layer_are_those_of_the_files(
    title: str, batch: str, inputs: str
) -> None:
    for row in lines(f"**{title}"):
        method, rate, *one, first, rest, accuracy, loss = row.values()
        run = f"cifar10-fc3-{batch}-{DENSE[method]}-{inputs}"
        common = f"{'fig3' if batch == '60' else 'fig4'}/{run}-{rate}"
        assert one == [outcome(common), f"{final_loss(common):.3f}"]
        two = f"first_layer/{run}-{rest}-first-{first}"
        assert [accuracy, loss] == [outcome(two), f"{final_loss(two):.3f}"]
        assert len(seeds(two)) == 5


SIXTY = (
    "bnp-not-the-first-layer-standardized-0.1-first-0.03",
    "vanilla-standardized-0.1-first-0.03",
    "ln-standardized-0.1-first-0.3",
)
SIX = (
    "bnp-not-the-first-layer-standardized-0.1-first-0.003",
    "vanilla-standardized-0.01-first-0.003",
    "ln-standardized-0.03-first-0.01",
)


@pytest.mark.row("F-10")
def test_what_is_said_of_the_rates_of_the_first_layer() -> None:
    table = {
        (size, row["Method"]): [*row.values()][1:]
        for title, size, _ in TWO_RATES
        if title.endswith("standardized pixels")
        for row in lines(f"**{title}")
    }
    for size, figure, own, common in (("60", "fig3", SIXTY, "0.3"), ("6", "fig4", SIX, "0.3")):
        runs = [f"first_layer/cifar10-fc3-{size}-{run}" for run in own]
        runs.append(f"{figure}/cifar10-fc3-{size}-bnp-standardized-{common}")
        losses = [[one["curves"]["minibatch_loss"][-1] for one in seeds(run)] for run in runs]
        for values in losses:
            assert f"{np.mean(values):.3f} ({min(values):.3f}–{max(values):.3f})" in PLAIN
        hidden, *others = losses
        assert max(hidden) < min(min(values) for values in others)
    assert float(table["60", "LN"][6]) < float(table["60", "LN"][2])
    assert float(table["60", "vanilla"][6]) > float(table["60", "vanilla"][2])
    changes = {
        cell: abs(float(row[after].split()[0]) - float(row[before].split()[0]))
        for (size, method), row in table.items()
        if method in ("vanilla", "LN") and size != "60"
        for cell, before, after in (((size, method, 0), 1, 5), ((size, method, 1), 2, 6))
    }
    assert max(value for cell, value in changes.items() if cell[2] == 0) < 0.41
    assert max(value for cell, value in changes.items() if cell[2] == 1) < 0.0051
    one = {method: row for (size, method), row in table.items() if size == "1"}
    for method in ("vanilla", "LN"):
        assert one[method][0] == one[method][3] == one[method][4]
    own = RESULTS / "first_layer/tuning/cifar10-fc3-1-bnp-not-the-first-layer-standardized.json"
    search = json.loads(own.read_text())["curves"]
    chosen, next_one = (
        np.mean([100 - 100 * search[f"{rate} first 0.001, seed {k}"][-1] for k in range(3)])
        for rate in ("0.03", "0.1")
    )
    assert f"only {chosen - next_one:.2f} points lower" in PLAIN


HIDDEN = ("bnp-not-the-first-layer", "vanilla", "ln")
RAW = {
    # the pairs of HIDDEN, how they were found, and where BNP with one rate is
    "60": (("0.1-first-0.03", "0.03-first-0.03", "0.03-first-0.03"), "raw", "fig3"),
    "6": (("0.1-first-0.0003", "0.03-first-0.001", "0.01-first-0.0003"), "grid-raw", "fig4"),
    "1": (("0.03-first-1e-05", "0.003-first-0.0003", "0.01-first-3e-05"), "grid-raw", "fig4"),
}


@pytest.mark.row("F-10")
@pytest.mark.parametrize("size", RAW)
def test_what_is_said_of_the_rates_of_the_first_layer_on_raw_pixels(size: str) -> None:
    pairs, how, folder = RAW[size]
    run = f"cifar10-fc3-{size}"
    runs = [f"first_layer/{run}-{m}-{how}-{p}" for m, p in zip(HIDDEN, pairs, strict=True)]
    runs.append(f"{folder}/{run}-bnp-raw-0.1")
    losses, errors = (
        [[one["curves"][name][-1] for one in seeds(run)] for run in runs]
        for name in ("minibatch_loss", "test_error")
    )
    for values in losses:
        assert len(values) == 5
        assert f"{np.mean(values):.3f} ({min(values):.3f}–{max(values):.3f})" in PLAIN
    hidden, vanilla, ln, whole = losses
    assert max(whole) < min(hidden) <= max(hidden) < min(*vanilla, *ln)
    assert np.mean(vanilla) - np.mean(hidden) < 0.5 * (np.mean(vanilla) - np.mean(whole))
    assert max(map(min, errors[:3])) < min(map(max, errors[:3])), "they overlap"
    if size == "6":
        one_rate = final_loss(f"fig4/{run}-ln-raw-0.01")
        assert f"{one_rate - np.mean(ln):.3f}" == "0.049"
        assert f"{np.mean(ln) - np.mean(hidden):.3f}" == "0.061"


@pytest.mark.row("F-10")
@pytest.mark.parametrize("size", ["6", "1"])
def test_the_best_pairs_of_a_grid_are_those_of_the_files(size: str) -> None:
    for row in lines(f"**The best pairs of a grid, minibatches of {size}"):
        method, first, rest, accuracy, loss = row.values()
        run = f"cifar10-fc3-{size}-{DENSE[method]}"
        scores = validation(f"{run}-grid-raw")
        assert len(scores) == {"6": 20, "1": 25}[size]
        pair = f"{float(rest):g} first {float(first):g}"
        assert max(scores, key=lambda each: scores[each]) == pair
        found = f"first_layer/{run}-grid-raw-{pair.replace(' ', '-')}"
        assert [accuracy, loss] == [outcome(found), f"{final_loss(found):.3f}"]
        searched = validation(f"{run}-raw")
        ended = max(searched, key=lambda each: searched[each])
        assert (ended != pair) == (size == "1" or method == "LN")
        assert ended == pair or scores[pair] > searched[ended]
    if size == "1":
        own = validation("cifar10-fc3-1-bnp-not-the-first-layer-grid-raw")
        assert abs(own["0.03 first 1e-05"] - own["0.03 first 3e-05"]) < 0.0005


def validation(curve: str) -> dict[str, float]:
    """Return the validation accuracy of each pair of rates that was tried, the mean of 3 seeds."""
    search = json.loads((RESULTS / f"first_layer/tuning/{curve}.json").read_text())["curves"]
    pairs = {name.partition(",")[0] for name in search}
    return {
        pair: 1 - float(np.mean([search[f"{pair}, seed {seed}"][-1] for seed in range(3)]))
        for pair in pairs
    }


@pytest.mark.row("F-10")
def test_the_second_best_pairs_are_those_of_the_searches() -> None:
    for row in lines("**The pairs with the second-best"):
        method, first, rest, accuracy, loss = row.values()
        run = f"cifar10-fc3-1-{DENSE[method]}"
        scores = validation(f"{run}-standardized")
        assert sorted(scores, key=lambda pair: -scores[pair])[1] == f"{rest} first {first}"
        second = f"first_layer/{run}-second-standardized-{rest}-first-{first}"
        assert [accuracy, loss] == [outcome(second), f"{final_loss(second):.3f}"]


def final_loss(run: str) -> np.floating:
    """Return the training loss of the last epoch, the mean of the seeds that did not diverge."""
    ended = [one for one in seeds(run) if not one["stop"].startswith("diverged")]
    return np.mean([one["curves"]["minibatch_loss"][-1] for one in ended])


@pytest.mark.row("P-27")
def test_the_other_rates_of_the_residual_network_are_those_of_the_files() -> None:
    prefix, compared = "fig6/cifar10-resnet14-128-", {}
    for row in lines("At other rates, for all ten epochs"):
        method, rate, count, *cells = row.values()
        name = f"{prefix}{RESIDUAL[method]}"
        searched, other = (f"{name}{kind}-standardized-{rate}" for kind in ("", f"-rate-{rate}"))
        run = searched if seeds(searched) else other
        assert int(count) == len(seeds(run))
        assert cells == [outcome(run, "validation_error"), outcome(run)]
        compared[method, float(rate)] = [
            100 - 100 * one["curves"]["test_error"][-1] for one in seeds(run)
        ]
    gn, both = compared["GN", 0.3], compared["BNP+GN", 0.1]
    assert min(both) < min(gn) <= max(gn) < max(both), "the ranges overlap"
    for run in ("gn-rate-0.3-standardized-0.3", "bnp-and-gn-standardized-0.1"):
        assert outcome(f"{prefix}{run}").replace(" (", " % (") in TEXT
    paper = outcome(f"{prefix}bnp-rate-0.1-standardized-0.1").replace(" (", " % (")
    bnp, best, first = (
        np.mean(compared[one]).round(1) for one in (("BNP", 0.1), ("GN", 0.3), ("BNP+GN", 0.1))
    )
    assert f"{paper}, {bnp - first:.1f} points more than BNP+GN and {bnp - best:.1f} more" in TEXT


@pytest.mark.row("P-27")
def test_what_happens_when_the_rate_of_the_residual_network_drops() -> None:
    prefix = "fig6/cifar10-resnet14-128-"
    right, loss = {}, {}
    for run in ("bn-standardized-0.3", "gn-standardized-0.03", "bnp-standardized-0.3",
                "bnp-and-gn-standardized-0.1", "gn-rate-0.1-standardized-0.1",
                "bnp-rate-0.1-standardized-0.1"):  # fmt: skip
        curves = [one["curves"] for one in seeds(prefix + run)]
        name = run.replace("-standardized", "").replace("-rate-0.1", "")
        right[name] = 100 - 100 * np.array([one["test_error"] for one in curves])
        loss[name] = np.mean([one["minibatch_loss"] for one in curves], axis=0)
        settings = [one["config"]["settings"] for one in seeds(prefix + run)]
        assert {each["weight_decay"] for each in settings} == {0.0001}
        assert not any("init_scale" in each for each in settings)
    gains = {name: each[:, 8] - each[:, 7] for name, each in right.items()}
    mean = {name: each.mean().round(1) for name, each in gains.items()}
    bnp, bn = right["bnp-0.1"].mean(axis=0)[:8], right["bn-0.3"].mean(axis=0)[:8]
    assert (
        f"in {(bnp > bn).sum()} of the first 8 epochs, with {bnp[7]:.1f} % against {bn[7]:.1f} %"
        in PLAIN
    )
    assert f"then {loss['bnp-0.1'][7]:.2f} and {loss['bn-0.3'][7]:.2f}." in PLAIN
    assert (
        f"BNP gains {mean['bnp-0.1']} points in epoch 9, BNP+GN {mean['bnp-and-gn-0.1']} and "
        f"GN {mean['gn-0.1']}, in both seeds"
    ) in PLAIN
    assert max(gains["bnp-0.1"]) < min(gains["bnp-and-gn-0.1"])
    assert max(gains["bnp-and-gn-0.1"]) < min(gains["gn-0.1"])
    assert (
        f"BN gains {mean['bn-0.3']} points, GN {mean['gn-0.03']}, BNP {mean['bnp-0.3']}, "
        f"BNP+GN {mean['bnp-and-gn-0.1']}."
    ) in PLAIN


def test_what_is_said_of_mnist_with_small_minibatches() -> None:
    six, one = (
        {
            row["Method"]: [float(row[f"{kind}: accuracy"].split()[0]) for kind in kinds]
            for row in lines(f"Beyond the paper: MNIST, minibatches of {size}")
        }
        for size, kinds in ((6, ("raw", "standardized")), (1, ("raw", "standardized")))
    )
    batch_norm = [*six.pop("BN"), *six.pop("BN+input")]
    rest = [value for values in six.values() for value in values]
    assert f"end at {min(batch_norm)} % to {max(batch_norm)} %, on both kinds" in PLAIN
    assert f"all other methods between {min(rest)} % and {max(rest)} %." in PLAIN
    assert [max(six, key=lambda name: six[name][kind]) for kind in (0, 1)] == ["BNP", "LN"]
    last = one.pop("BNP, not the first layer")
    assert f"is lowest, at {last[0]} % and {last[1]} %." in PLAIN
    for kind in (0, 1):
        values = [accuracies[kind] for accuracies in one.values()]
        assert last[kind] < min(values)
        assert round(max(values) - min(values), 1) <= 0.3


@pytest.mark.row("P-20")
def test_the_seconds_are_those_of_the_files() -> None:
    for row in lines("Figure 9 and Table 1"):
        batch, bn, bnp, ratio, _ = row.values()
        one, two = (
            np.array([s["curves"]["epoch_seconds"] for s in seeds(f"fig9/cifar10-fc2-{batch}-{m}")])
            for m in ("bn-raw-0.01", "bnp-raw-0.01")
        )
        each = np.median(two / one, axis=1)
        assert (bn, bnp) == (f"{one.mean():.2f}", f"{two.mean():.2f}")
        assert ratio == f"{np.median(each):.2f} ({each.min():.2f}–{each.max():.2f})"


@pytest.mark.row("P-18")
def test_the_condition_numbers_are_those_of_the_files() -> None:
    found = [one["curves"] for one in seeds("fig8/cifar10-fc2-60-bnp-raw-0.1")]
    kinds = {"of the step": "running", "of the minibatch": "minibatch"}
    for row in lines("Figure 8"):
        name, least, *cells = row.values()
        kind = kinds[name.partition(" (")[0]]
        kappa = np.array([one[f"{kind} D {least}"] for one in found])
        gain = np.array([one["hessian"] for one in found])
        gain /= np.array([one[f"{kind} P {least}"] for one in found])
        each = np.median(gain, axis=1)
        assert cells == [
            f"{np.median(gain):.1f} ({each.min():.1f}–{each.max():.1f})",
            f"{np.median(kappa):.1f}",
            f"{np.median(gain / kappa):.2g}",
            f"{np.median(gain / kappa**2):.2g}",
        ]


@pytest.mark.row("P-13")
def test_the_corrected_averages_are_those_of_the_files() -> None:
    for row in lines("Averages that are right from the first step"):
        data, rate, epochs, *cells = row.values()
        prefix = f"beyond/{data.lower().replace('-', '')}-fc3-60-bnp"
        runs = [f"{prefix}-raw-{rate}", f"{prefix}-corrected-raw-{rate}"]
        assert cells == [outcome(run) for run in runs]
        assert {seed["config"]["epochs"] for run in runs for seed in seeds(run)} == {int(epochs)}


def test_the_totals_are_those_of_the_files() -> None:
    runs, short = finals(), searches()
    hours = [sum(one["seconds"] for one in records) / 3600 for records in (runs, short)]
    lost = sum(one["stop"].startswith("diverged") for one in runs)
    assert f"are {len(runs)} result files" in PLAIN
    assert f"They took {hours[0]:.1f} hours" in PLAIN
    assert f"{lost} runs diverged" in PLAIN
    curves = sum(len(one["curves"]) for one in short)
    diverged = sum(len(one["config"]["diverged"]) for one in short)
    assert f"{curves} short runs" in PLAIN
    assert f"{hours[1]:.1f} hours" in PLAIN
    assert f"{diverged} of them diverged" in PLAIN


@pytest.mark.row("F-11")
@pytest.mark.parametrize("optimizer", ["adam", "momentum"])
def test_what_is_said_of_the_split_form_in_a_convolutional_network(optimizer: str) -> None:
    section = " ".join(TEXT.split("minibatches of 8, momentum")[1].split("###")[0].split())
    losses, right = {}, {}
    for name, key in SPLIT.items():
        run = f"split/cifar10-cnn5-8-{key}-{optimizer}-standardized"
        found = seeds(f"{run}-{rates(run)[0]}")
        assert [one["seed"] for one in found] == [0, 1]
        losses[name] = np.array([one["curves"]["minibatch_loss"][-1] for one in found])
        right[name] = [one["curves"]["test_error"][-1] for one in found]
        low, high = losses[name].min(), losses[name].max()
        assert f"{name} {losses[name].mean():.3f} ({low:.3f}–{high:.3f})" in section
    for other in ("vanilla", "BN", "LN"):
        assert losses["BNP"].max() < losses[other].min()
    assert losses["BN"].min() > max(each.max() for name, each in losses.items() if name != "BN")
    assert min(right["LN"]) <= max(right["BNP"])
    assert min(right["BNP"]) <= max(right["LN"])
    ahead = 100 * (np.mean(right["LN"]) - np.mean(right["hidden BNP"]))
    if optimizer == "adam":
        assert max(right["hidden BNP"]) < min(right["LN"])
        assert f"above LN's, by {ahead:.1f} points" in section
    else:
        assert losses["hidden BNP"].min() > losses["LN"].max()


RESNET = "split/cifar10-resnet14-8-"


def residual(key: str, optimizer: str) -> tuple[np.ndarray, np.ndarray]:
    """Return training losses and accuracies of ResNet-14 with a method at its best rate."""
    run = f"{RESNET}{key}-{optimizer}-standardized"
    found = seeds(f"{run}-{rates(run)[0]}")
    assert [(one["seed"], one["stop"]) for one in found] == [(s, "all 1 epochs") for s in (0, 1)]
    curves = [one["curves"] for one in found]
    losses, errors = ([each[c][-1] for each in curves] for c in ("minibatch_loss", "test_error"))
    return np.array(losses), 100 - 100 * np.array(errors)


@pytest.mark.row("F-11")
@pytest.mark.parametrize("optimizer", ["adam", "momentum"])
def test_what_is_said_of_the_split_form_in_a_residual_network(optimizer: str) -> None:
    section = " ".join(
        TEXT.split("ResNet-14, minibatches of 8, momentum")[1].split("###")[0].split()
    )
    keys = SPLIT_RESIDUAL | (PARTS if optimizer == "adam" else {})
    found = {name: residual(key, optimizer) for name, key in keys.items()}
    losses, right = ({name: each[i] for name, each in found.items()} for i in (0, 1))
    for name in ("GN", "BNP+GN", "hidden BNP+GN", *(["BN"] if optimizer == "adam" else [])):
        each = losses[name]
        assert f"{each.mean():.3f} ({each.min():.3f}–{each.max():.3f})" in section
    assert max(right["GN"]) < min(right["BNP+GN"])
    assert max(losses["BNP+GN"]) < min(losses["GN"])
    others = {
        "adam": {"0.0003": "gn-adam-rate-0.0003", "0.003": "gn-adam-rate-0.003"},
        "momentum": {"0.01": "gn-rate-0.01", "0.03": "gn-rate-0.03"},
    }[optimizer]
    for rate, run in others.items():
        assert f"{outcome(f'{RESNET}{run}-standardized-{rate}')} at {rate}" in section
    if optimizer == "momentum":
        assert max(right["BNP+GN"]) < min(right["hidden BNP+GN"])
        assert (losses["hidden BNP+GN"] < losses["BNP+GN"]).all()
        again = seeds(f"{RESNET}gn-rate-0.01-standardized-0.01")
        best = np.array([100 - 100 * one["curves"]["test_error"][-1] for one in again])
        assert best.max() < min(right["BNP+GN"])
        ahead = {name: each.mean() - best.mean() for name, each in right.items()}
        assert f"ahead by {ahead['BNP+GN']:.1f} points" in section
        assert f"hidden BNP by {ahead['hidden BNP+GN']:.1f};" in section
        return
    lead = {name: each.mean() - right["GN"].mean() for name, each in right.items()}
    assert f"far ahead of GN, by {lead['BNP+GN']:.1f} points" in section
    assert f"raise it to {anew(f'{RESNET}bn-adam-standardized-0.001')}." in section
    assert losses["BN"].min() > losses["BNP+GN"].max()
    fresh = float(anew(f"{RESNET}bn-adam-standardized-0.001"))
    assert min(right["BNP+GN"]) < fresh < max(right["BNP+GN"])  # level
    assert max(right["rates + GN"]) <= max(right["GN"])
    for part in ("centering", "scaling"):
        assert f"{part} alone gains {lead[f'{part} + GN']:.1f} points" in section.lower()


@pytest.mark.row("F-11")
def test_what_is_said_of_four_epochs_of_a_residual_network() -> None:
    told, right, losses, time = lines("**Four epochs with Adam,**"), {}, {}, {}
    rate_of = {"GN": ("gn", "0.001"), "BN": ("bn", "0.001"), "BNP+GN": ("bnp-and-gn", "0.003")}
    for (name, (key, rate)), row in zip(rate_of.items(), told, strict=True):
        found = seeds(f"{RESNET}{key}-adam-four-epochs-standardized-{rate}")
        assert {one["stop"] for one in found} == {"all 4 epochs"}
        assert {tuple(one["config"]["settings"]["decay"]) for one in found} == {(3,)}
        right[name] = 100 - 100 * np.mean([one["curves"]["test_error"] for one in found], 0)
        losses[name] = np.mean([one["curves"]["minibatch_loss"][-1] for one in found])
        cells = [*(f"{value:.1f}" for value in right[name]), f"{losses[name]:.3f}"]
        assert list(row.values()) == [name, *cells]
        time[name] = np.mean([one["seconds"] for one in found])
    ends = {name: each[-1] for name, each in right.items()}
    assert f"{ends['BNP+GN'] - ends['GN']:.1f} points at the end" in PLAIN
    assert f"BN the highest accuracy, by {ends['BN'] - ends['BNP+GN']:.1f} points" in PLAIN
    assert min(losses, key=losses.__getitem__) == "BNP+GN"
    assert f"{right['BNP+GN'][1]:.1f} against {ends['GN']:.1f} %" in PLAIN
    assert ends["GN"] < right["BNP+GN"][1]
    assert time["BNP+GN"] < 2 * time["GN"]


@pytest.mark.row("P-27")
def test_what_is_said_of_the_papers_weights() -> None:
    prefix, right = "fig6/cifar10-resnet14-128-", {}
    rows = {
        "BN": "bn-the-paper-s",
        "BNP": "bnp-the-paper-s",
        "BNP+GN": "bnp-and-gn-the-paper-s",
        "GN": "gn-weights-of-bnp-and-gn",
        "BN, small": "bn-weights-of-bnp-and-gn",
    }
    told = lines("With the paper's rate, weights and weight decay")
    for (name, run), row in zip(rows.items(), told, strict=True):
        [one] = seeds(f"{prefix}{run}-standardized-0.1")
        settings = one["config"]["settings"]
        right[name] = each = 100 - 100 * np.array(one["curves"]["test_error"])
        assert list(row.values()) == [
            name.removesuffix(", small"),
            f"{settings.get('init_scale', 1):g}",
            f"{settings['weight_decay']:.5f}".rstrip("0"),
            f"{each[7]:.1f}",
            f"{each[9]:.1f}",
        ]
    bn, both = right["BN"], right["BNP+GN"]
    small = right["BN, small"]
    assert f"ends {bn[9] - both[9]:.1f} points below BN" in PLAIN
    assert f"and {small[9] - both[9]:.1f} below BN with its own" in PLAIN
    assert f"BN is {small[9] - bn[9]:.1f} points higher with them" in PLAIN
    same = seeds(f"{prefix}bnp-rate-0.1-standardized-0.1")[0]["curves"]["test_error"]
    level = (
        f"at {bn[7]:.1f} % after epoch 8, and BNP in the same seed at {100 - 100 * same[7]:.1f} %"
    )
    assert level in PLAIN
    assert small[7] > both[7] > bn[7]
    usual = {
        name: [100 - 100 * one["curves"]["test_error"][9] for one in seeds(prefix + run)]
        for name, run in {
            "GN": "gn-rate-0.1-standardized-0.1",
            "BNP": "bnp-rate-0.1-standardized-0.1",
            "BNP+GN": "bnp-and-gn-standardized-0.1",
        }.items()
    }
    low, high = min(usual["BNP+GN"]), max(usual["BNP+GN"])
    assert f"usual weights it has {low:.1f} to {high:.1f} %" in PLAIN
    assert high < both[9]
    means = [np.mean(usual[name]) for name in ("GN", "BNP")]
    assert f"({means[0]:.1f} % at this rate), and so does BNP alone ({means[1]:.1f} %)" in PLAIN
    assert max(right[name][9] - min(usual[name]) for name in ("GN", "BNP")) < 0
    gains = [right[name][8] - right[name][7] for name in ("BNP+GN", "BNP")]
    assert f"{gains[0]:.1f} points in epoch 9 against {gains[1]:.1f}" in PLAIN
    assert gains[0] < gains[1]
