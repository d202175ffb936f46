"""The lab on dropout: a network that overfits 200 digits, at four rates and with early stopping.

Source: LAB-4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from optdl.labs import digits
from optdl.labs.lab import Lab, Parts, on_threads
from optdl.labs.records import LabRecord, RecordError

__all__ = ["EPOCHS", "LAB", "RATES", "WIDTHS", "curves", "examples", "experiment", "results"]

RATES = (0.0, 0.2, 0.5, 0.8)
"""The probabilities with which units are dropped."""

EPOCHS = 120
"""How long a run trains, unless it stops early."""

WIDTHS = (64, 160, 160, 10)
"""The inputs of the network, its two hidden layers and its scores."""

BATCH = 20
LR = 0.005
PATIENCE = 10
PASSES = 50

Examples = tuple[Tensor, Tensor]


def examples(seed: int) -> tuple[Examples, Examples]:
    """Return 200 digits to train on and 288 for validation, each as ``(x, y)``.

    The digits to train on are drawn at random. Each of their labels is replaced with probability
    0.2 by a random one; the labels for validation are correct.
    """
    x, y, *validation = digits.standardized()
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randperm(len(y), generator=generator)[:200]
    replaced = torch.rand(200, generator=generator) < 0.2
    labels = torch.randint(10, (200,), generator=generator)
    return (x[rows], torch.where(replaced, labels, y[rows])), (validation[0], validation[1])


@on_threads(1)
def experiment(
    parts: Parts, setting: dict[str, Any], seed: int, steps: int | None = None
) -> tuple[dict[str, list[float]], Any]:
    """Train one network with what the student wrote; see :class:`optdl.labs.Lab`.

    A step is an epoch here. ``accuracy`` and ``ensemble`` are those of one pass and of the mean of
    50 passes with dropout, ``spread`` the standard deviation of these passes for examples that are
    classified correctly, and for the others.
    """
    train, validation = examples(seed)
    model = parts["with_dropout"](digits.dense(WIDTHS, seed), setting["p"], seed)
    stopper = parts["EarlyStopping"](setting["patience"]) if "patience" in setting else None
    generator = torch.Generator().manual_seed(seed)
    epochs = steps or EPOCHS
    losses, checked = parts["fit"](
        model, train, validation, epochs, LR, BATCH, generator, stopper=stopper
    )
    curves = {"loss": losses, "validation": checked}
    x, y = validation
    if steps is None:
        curves |= {"accuracy": [digits.accuracy(model, x, y)], **_ensemble(parts, model, x, y)}
    # to judge a record takes the losses alone, and this once, in the first run that drops units
    if setting["p"] == RATES[1] and not parts["monte_carlo"](model, x[:2], 2)[1].any():
        raise RecordError(
            "`monte_carlo` does not switch on your Dropout: compare `type(module).__name__` of "
            'each module with "Dropout", whatever the class is'
        )
    return curves, model


def _ensemble(parts: Parts, model: Any, x: Tensor, y: Tensor) -> dict[str, list[float]]:
    """Return the accuracy of the mean of 50 passes, and the spread of the likeliest class."""
    mean, deviation = parts["monte_carlo"](model, x, PASSES)
    best = mean.argmax(dim=1)
    spread = deviation.gather(1, best[:, None])[:, 0]
    right = best == y
    return {
        "ensemble": [float(right.float().mean())],
        "spread": [float(spread[rows].mean()) for rows in (right, ~right)],
    }


LAB = Lab(
    "LAB-4",
    [*({"p": p} for p in RATES), {"p": 0.0, "patience": PATIENCE}],
    experiment,
    predictions={
        "p": ("one of the rates " + ", ".join(map(str, RATES)), RATES.__contains__),
        "epoch": (f"a whole number from 1 to {EPOCHS}", range(1, EPOCHS + 1).__contains__),
    },
)
"""The runs of lab 4: each dropout probability, and early stopping without dropout."""


def _name(setting: Mapping[str, Any]) -> str:
    return f"p = {setting['p']:g}" + (", early stopping" if "patience" in setting else "")


def curves(record: LabRecord) -> dict[str, dict[str, list[float]]]:
    """Return the name of each run, and its ``training`` and ``validation`` losses by epoch."""
    return {
        _name(run.setting): {
            "training": run.curves["loss"],
            "validation": run.curves["validation"],
        }
        for run in record.runs
    }


def results(record: LabRecord) -> str:
    """Return what the final weights of each run reach on the validation examples, as a table."""
    lines = [
        f"{'run':22}{'epochs':>8}{'accuracy':>10}{'50 passes':>11}{'spread, right / wrong':>24}"
    ]
    for run in record.runs:
        single, many = run.curves["accuracy"][-1], run.curves["ensemble"][-1]
        right, wrong = run.curves["spread"]
        lines.append(
            f"{_name(run.setting):22}{len(run.curves['loss']):8}{single:10.3f}{many:11.3f}"
            f"{right:16.3f} / {wrong:.3f}"
        )
    return "\n".join(lines)
