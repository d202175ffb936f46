"""Write the tables of ``experiments/README.md``: ``python -m tools.site.result_tables``.

A comment above a table says which runs are its rows: ``fig4/cifar10-fc3-1-*-raw of vanilla bnp``
are two runs at the best rates of their searches. The names of the columns say what is told of them.
"""

import re
import runpy
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from optdl.experiments import Experiment, accuracy, tuning
from optdl.experiments.runs import rates_name
from optdl.records import Record
from tools.fingerprints import write_if_changed
from tools.layout import ROOT
from tools.terminal import ToolError, command

README = ROOT / "experiments" / "README.md"
RESULTS = ROOT / "experiments" / "results"
TABLE = re.compile(r"(<!-- rows: (.+?) -->\n(\|.+\n)\|[-:|]+\n)(?:\|.*\n)*")
NEXT_RUN = re.compile(r"(?:\w+: )?rate|one rate|first layer")
"""The columns from which on a row tells of the next of its runs."""
load = cache(Record.load)


def records(name: str) -> list[Record]:
    """Return the seeds of a run, such as ``fig3/cifar10-fc3-60-bn-raw-0.01``."""
    if not (files := sorted(RESULTS.glob(f"{name}-[0-9].json"))):
        raise ToolError(f"{README}: there is no result of {name}", "correct the comment there")
    return [load(file) for file in files]


def search(curve: str) -> dict[Any, float]:
    """Return the validation accuracy of each rate, or pair of rates, that a search tried."""
    file = RESULTS / re.sub("/", "/tuning/", f"{curve}.json")
    return tuning.scores(load(file), 10) if file.exists() else {}


def chosen(curve: str) -> str:
    """Return the run with the best rate of a search; where there was none, the name as it is."""
    scores = search(curve)
    return f"{curve}-{rates_name(tuning.best_rate(scores))}".replace(" ", "-") if scores else curve


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


def by_epoch(name: str, curve: str = "test_error") -> np.ndarray:
    """Return a curve, of errors the accuracy in percent: a row for each seed but those diverged."""
    ended = [record for record in records(name) if not record.stop.startswith("diverged")]
    values = np.array([record.curves[curve] for record in ended])
    return 100 - 100 * values if curve.endswith("error") else values


def loss(name: str, epoch: int = 0) -> str:
    """Return mean and range of the training loss of the last epoch, or of another."""
    values = by_epoch(name, "minibatch_loss")[:, epoch - 1]
    spread = f" ({values.min():.3f}–{values.max():.3f})" if len(values) > 1 else ""
    return f"{values.mean():.3f}{spread}"


def mean_accuracy(name: str, epoch: int) -> str:
    """Return the mean test accuracy after an epoch."""
    return f"{by_epoch(name).mean(axis=0)[epoch - 1]:.1f}"


def setting(field: str, default: float, name: str) -> str:
    """Return what all seeds were run with."""
    config = records(name)[0].config
    value = config.get(field, config["settings"].get(field, default))
    return value if isinstance(value, str) else plain(value)


COLUMNS: dict[str, Callable[[str], str]] = {
    **{name: partial(setting, name, 0) for name in ("data", "optimizer", "rate", "epochs")},
    **dict.fromkeys(("one rate", "other layers"), partial(setting, "rate", 0)),
    "method": partial(setting, "label", 0),
    "first layer": partial(setting, "first_rate", 0),
    "weights times": partial(setting, "init_scale", 1),
    "weight decay": partial(setting, "weight_decay", 0),
    "seeds": lambda name: str(len(records(name))),
    "accuracy": lambda name: accuracy(records(name), "test_error"),
    "validation": lambda name: accuracy(records(name), "validation_error"),
    "anew": lambda name: accuracy(records(name), "recomputed_error").partition(" ")[0],
    "training loss": loss,
    "training loss of epoch 1": partial(loss, epoch=1),
    "at the paper's rate": of_paper,
    "at one rate for both": of_paper,
    "gain in epoch 9": lambda name: f"{np.diff(by_epoch(name).mean(axis=0))[7]:.1f}",
}
COLUMNS |= {f"epoch {n}": partial(mean_accuracy, epoch=n) for n in (1, 2, 3, 4, 8)}


def filled(head: str, text: str) -> list[list[str]]:
    """Return the cells below the names of columns: a row for each name that stands for ``*``."""
    patterns, _, names = text.partition(" of ")
    columns = [column.strip().lower() for column in head.strip("|\n").split("|")]
    rows = []
    for name in names.split():
        runs = [chosen(pattern.replace("*", name)) for pattern in patterns.split()]
        place, row = -1, []
        for column in columns:
            place += bool(NEXT_RUN.fullmatch(column))
            shown = runs[max(place, 0)]
            lacks = place > 0 and not list(RESULTS.glob(f"{shown}-[0-9].json"))
            if (kind := column.rpartition(": ")[2]) not in COLUMNS:
                raise ToolError(f"{README}: no column {kind!r}", f"one of {', '.join(COLUMNS)}")
            row.append("" if lacks else COLUMNS[kind](shown))
        rows.append(row)
    return rows


def totals() -> list[list[str]]:
    """Return how many runs there are, how many of them diverged, and the hours they took."""
    rows = []
    for kind, files in (("final", "*/*.json"), ("in searches for a rate", "*/tuning/*.json")):
        found = [load(file) for file in RESULTS.glob(files) if file.parent.name != "recorded"]
        number = diverged = 0
        for record in found:  # that of a search has a curve for each of its runs
            searched = record.config.get("diverged")
            number += 1 if searched is None else len(record.curves)
            diverged += record.stop.startswith("diverged") if searched is None else len(searched)
        hours = sum(record.seconds for record in found) / 3600
        rows.append([kind, f"{number}", f"{diverged}", f"{hours:.1f}"])
    return rows


def written(text: str) -> str:
    """Return the text with all its tables made of the results."""

    def table(match: re.Match[str]) -> str:
        if " of " in match[2]:
            rows = filled(match[3], match[2])
        elif match[2] == "totals":
            rows = totals()
        else:  # an experiment prints it itself
            file = str(ROOT / "experiments" / f"{match[2]}.py")
            program = runpy.run_path(file)
            rows = program["table"](Experiment(file, program["PANELS"], []))
        return match[1] + "".join(f"| {' | '.join(row)} |\n" for row in rows)

    return TABLE.sub(table, text)


@command()
def main() -> None:
    """Write the page."""
    write_if_changed(README, written(README.read_text(encoding="utf-8")).encode())
