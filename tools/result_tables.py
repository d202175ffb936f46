"""Write the tables of ``experiments/README.md``: ``python -m tools.result_tables``.

A comment above a table says which runs are its rows, and the names of the columns say what is told
of them. With ``--check`` nothing is written, and a table that differs from the results is an error.
"""

import argparse
import re
import runpy
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from optdl.experiments import Experiment, accuracy, tuning
from optdl.experiments.runs import rates_name
from optdl.records import Record
from tools.fingerprints import write_if_changed
from tools.layout import ROOT
from tools.terminal import ToolError, run

README = ROOT / "experiments" / "README.md"
RESULTS = ROOT / "experiments" / "results"
# what runs are called in the names of their files, in the order of the rows
LABELS = {
    "vanilla": "vanilla",
    "adam": "Adam",
    "bn": "BN",
    "bn-and-input": "BN+input",
    "ln": "LN",
    "gn": "GN",
    "renorm": "Renorm",
    "renorm-clipped": "Renorm, clipped",
    "4-things": "4 Things",
    "bnp": "BNP",
    "bnp-not-the-first-layer": "BNP, not the first layer",
    "hidden-bnp": "hidden BNP",
    "bnp-and-gn": "BNP+GN",
    "hidden-bnp-and-gn": "hidden BNP+GN",
    "centering-and-gn": "centering + GN",
    "scaling-and-gn": "scaling + GN",
    "rates-and-gn": "rates + GN",
    "bnp-corrected": "BNP, corrected",
    "vanilla-momentum": "momentum",
    "bnp-momentum": "BNP, then momentum",
    "bnp-split-momentum": "BNP, split form, momentum",
    "vanilla-adam": "Adam",
    "bnp-adam": "BNP, then Adam",
    "bnp-split-adam": "BNP, split form, Adam",
}
TABLE = re.compile(r"(<!-- rows: (.+?) -->\n(\|.+\n)(\|[-:|]+\n))((?:\|.*\n)*)")
NEXT_RUN = re.compile(r"(?:\w+: )?rate|one rate|first layer")
"""The columns from which on a row tells of the next of its runs."""


@cache
def records(name: str) -> list[Record]:
    """Return the seeds of a run, such as ``fig3/cifar10-fc3-60-bn-raw-0.01``."""
    files = sorted(RESULTS.glob(f"{name}-[0-9].json"))
    if not files:
        raise ToolError(f"there is no result of {name}", "correct the comment above the table")
    return [Record.load(file) for file in files]


def ended(name: str) -> list[Record]:
    """Return the seeds of a run that did not diverge."""
    return [record for record in records(name) if not record.stop.startswith("diverged")]


def last(name: str, curve: str = "test_error") -> np.ndarray:
    """Return a curve's last value for each seed that did not diverge; of errors, 100 − percent."""
    values = np.array([record.curves[curve][-1] for record in ended(name)])
    return 100 - 100 * values if curve.endswith("error") else values


def search(curve: str) -> dict[Any, float]:
    """Return the validation accuracy of each rate, or pair of rates, that a search tried."""
    folder, _, name = curve.partition("/")
    return tuning.scores(Record.load(RESULTS / folder / "tuning" / f"{name}.json"), 10)


def chosen(curve: str) -> str:
    """Return the name of the run with the best rate of a search; empty if there was none."""
    folder, _, name = curve.partition("/")
    if not (RESULTS / folder / "tuning" / f"{name}.json").exists():
        return ""
    return f"{curve}-{rates_name(tuning.best_rate(search(curve))).replace(' ', '-')}"


def of_paper(name: str) -> str:
    """Return the rate of the paper, the other one that was trained, and its accuracy."""
    here = f"{records(name)[0].config['rate']:g}"
    curve = name.removesuffix(f"-{here}")
    trained = {
        str(file)[len(f"{RESULTS / curve}-") : -7] for file in RESULTS.glob(f"{curve}-[0-9]*")
    }
    [rate] = trained - {here} or {here}
    told = "the same runs" if rate == here else accuracy(records(f"{curve}-{rate}"), "test_error")
    return f"{plain(float(rate))}: {told}"


def plain(number: float) -> str:
    """Return a number without an exponent."""
    return np.format_float_positional(number, trim="-")


def loss(name: str) -> str:
    """Return mean and range of the training loss of the last epoch."""
    values = last(name, "minibatch_loss")
    spread = f" ({values.min():.3f}–{values.max():.3f})" if len(values) > 1 else ""
    return f"{values.mean():.3f}{spread}"


def by_epoch(name: str) -> np.ndarray:
    """Return the test accuracy after each epoch, a row for each seed."""
    return 100 - 100 * np.array([record.curves["test_error"] for record in ended(name)])


def at_epoch(number: int, name: str) -> str:
    """Return the mean test accuracy after an epoch."""
    return f"{by_epoch(name).mean(axis=0)[number - 1]:.1f}"


def gain(number: int, name: str) -> str:
    """Return by how much the mean test accuracy rises in an epoch."""
    return f"{np.diff(by_epoch(name).mean(axis=0))[number - 2]:.1f}"


def setting(field: str, default: float = 0) -> Callable[[str], str]:
    """Return a column of what all seeds were run with."""

    def cell(name: str) -> str:
        config = records(name)[0].config
        value = config.get(field, config["settings"].get(field, default))
        return value if isinstance(value, str) else plain(value)

    return cell


COLUMNS: dict[str, Callable[[str], str]] = {
    "data": setting("data"),
    "optimizer": setting("optimizer"),
    "rate": setting("rate"),
    "one rate": setting("rate"),
    "other layers": setting("rate"),
    "first layer": setting("first_rate"),
    "epochs": setting("epochs"),
    "weights times": setting("init_scale", 1),
    "weight decay": setting("weight_decay"),
    "seeds": lambda name: str(len(records(name))),
    "accuracy": lambda name: accuracy(records(name), "test_error"),
    "validation": lambda name: accuracy(records(name), "validation_error"),
    "anew": lambda name: accuracy(records(name), "recomputed_error").partition(" ")[0],
    "training loss": loss,
    "at the paper's rate": of_paper,
}
COLUMNS |= {f"epoch {k}": partial(at_epoch, k) for k in range(1, 11)}
COLUMNS |= {f"gain in epoch {k}": partial(gain, k) for k in range(2, 11)}


def searched(text: str) -> list[tuple[str, list[str]]]:
    """Return the methods that stand for ``*`` in the names of searches, and the runs they chose."""
    patterns, _, methods = text.partition(" of ")
    rows = {m: [chosen(p.replace("*", m)) for p in patterns.split()] for m in LABELS}
    shown = methods.split() or [method for method, runs in rows.items() if all(runs)]
    return [(LABELS[method], runs) for method, runs in rows.items() if method in shown]


def listed(text: str) -> list[tuple[str, list[str]]]:
    """Return runs by their names, after what all names begin with."""
    prefix, *names = text.split()
    labels = sorted(LABELS, key=len, reverse=True)
    method = {
        name: next(m for m in labels if re.match(rf"(?:\w+-fc3-60-)?{m}-", name)) for name in names
    }
    return [(LABELS[method[name]], [prefix + name]) for name in names]


def filled(head: str, methods: list[tuple[str, list[str]]]) -> list[list[str]]:
    """Return the cells below the names of columns, for each method with its runs."""
    names = [name.strip() for name in head.strip("|\n").split("|")]
    rows = []
    for label, runs in methods:
        row, place = [label], -1
        for name in map(str.lower, names[1:]):
            place += bool(NEXT_RUN.fullmatch(name))
            shown = runs[max(place, 0)]
            row.append(COLUMNS[name.rpartition(": ")[2]](shown) if shown else "")
        rows.append(row)
    return rows


def totals() -> list[list[str]]:
    """Return how many runs there are, how many of them diverged, and the hours they took."""
    files = [file for file in RESULTS.glob("*/*.json") if file.parent.name != "recorded"]
    finals = [Record.load(file) for file in files]
    short = [Record.load(file) for file in RESULTS.glob("*/tuning/*.json")]
    lost = [record for record in finals if record.stop.startswith("diverged")]
    tried = [entry for record in short for entry in record.curves]
    failed = [entry for record in short for entry in record.config["diverged"]]
    return [
        [name, str(len(count)), str(len(diverged)), f"{sum(r.seconds for r in runs) / 3600:.1f}"]
        for name, count, diverged, runs in (
            ("final", finals, lost, finals),
            ("in searches for a rate", tried, failed, short),
        )
    ]


def of_figure(name: str) -> list[list[str]]:
    """Return the table that an experiment prints itself."""
    file = ROOT / "experiments" / f"{name}.py"
    program = runpy.run_path(str(file))
    return program["table"](Experiment(str(file), program["PANELS"], []))


def written(text: str) -> str:
    """Return the text with all its tables made of the results."""

    def table(match: re.Match[str]) -> str:
        kind, _, runs = match[2].partition(" ")
        if kind in ("search", "runs"):
            rows = filled(match[3], (searched if kind == "search" else listed)(runs))
        else:
            rows = totals() if kind == "totals" else of_figure(kind)
        return match[1] + "".join(f"| {' | '.join(row)} |\n" for row in rows)

    return TABLE.sub(table, text)


def command(arguments: argparse.Namespace) -> int:
    """Write the tables, or compare them."""
    before = README.read_text(encoding="utf-8")
    after = written(before)
    if not arguments.check:
        write_if_changed(README, after.encode())
        return 0
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    lines = [f"{number}: {new}" for number, (old, new) in enumerate(pairs, 1) if old != new]
    if before != after:
        problem = "experiments/README.md differs from the results in line\n"
        raise ToolError(problem + "\n".join(lines), "python -m tools.result_tables")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.result_tables", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, say what differs")
    return run(command, parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
