"""The lab on BNP: one network on digits, trained four ways at four rates, on two kinds of inputs.

The student's ``BNP`` sees the network through hooks; plain gradient descent and batch normalization
stand beside it. One of the ways leaves the first layer alone, so that the gain can be located.

Source: LAB-5.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import islice
from typing import Any

import torch
from torch import nn

from optdl.labs import digits
from optdl.labs.lab import Lab, Parts
from optdl.labs.records import LabRecord, Run

__all__ = [
    "EVERY",
    "INPUTS",
    "LAB",
    "METHODS",
    "RATES",
    "STEPS",
    "WIDTHS",
    "best_curves",
    "best_rates",
    "examples",
    "experiment",
    "last_loss",
]

INPUTS = ("raw", "standardized")
"""How the inputs arrive."""

METHODS = ("SGD", "BN", "BNP", "BNP hidden")
"""What is compared."""

RATES = (0.03, 0.1, 0.3, 1.0)
"""The learning rates of the runs."""

STEPS = 300
"""How many updates a run makes."""

EVERY = 20
"""The loss over all training examples is measured after so many steps."""

WIDTHS = (64, 64, 64, 10)
"""The inputs of the network, its two hidden layers and its scores."""

BATCH = 8
RHO = 0.95


@cache
def examples(inputs: str) -> digits.Data:
    """Return the digits as ``(x, y, x_validation, y_validation)``.

    The last 288 of the 1438 training examples are for validation; the test set is not touched.
    The inputs are ``raw``, pixels from 0 to 1, or ``standardized``: less the mean of each pixel,
    divided by its standard deviation plus 0.1, as the pixels at the border hardly ever differ
    from 0.
    """
    if inputs not in INPUTS:
        raise ValueError(f"inputs must be one of {', '.join(INPUTS)}, got {inputs!r}")
    x, y, x_validation, y_validation = digits.pixels()
    if inputs == "standardized":
        mean, std = x.mean(dim=0), x.std(dim=0, correction=0) + 0.1
        x, x_validation = (x - mean) / std, (x_validation - mean) / std
    return x, y, x_validation, y_validation


def experiment(
    parts: Parts, setting: dict[str, Any], seed: int, steps: int | None = None
) -> tuple[dict[str, list[float]], nn.Module]:
    """Train one network with the student's BNP and loop; see :class:`optdl.labs.Lab`.

    Between two calls of the loop the network is measured, in evaluation mode.
    """
    inputs, method = setting["inputs"], setting["method"]
    x, y, *validation = examples(inputs)
    model = digits.dense(WIDTHS, seed, normalized=method == "BN")
    optimizer = torch.optim.SGD(model.parameters(), lr=setting["lr"])
    part = {"BNP": model, "BNP hidden": model[1:]}.get(method)
    bnp = None if part is None else parts["BNP"](part, rho=RHO)
    losses, measured, rows = [], [], digits.batches(x, y, BATCH, seed, steps or STEPS)
    while chunk := list(islice(rows, EVERY)):
        losses += parts["train"](model, optimizer, bnp, chunk)
        if len(chunk) == EVERY:
            with torch.no_grad():
                measured.append(float(nn.functional.cross_entropy(model.eval()(x), y)))
    if bnp is not None:
        bnp.remove()
    curves = {"loss": losses, "training loss": measured}
    if steps is None:  # to judge a record takes the losses alone
        curves["accuracy"] = [digits.accuracy(model, *validation)]
    return {name: [float(f"{one:.6g}") for one in values] for name, values in curves.items()}, model


LAB = Lab(
    "LAB-5",
    [
        {"inputs": inputs, "method": method, "lr": lr}
        for inputs in INPUTS
        for method in METHODS
        for lr in RATES
    ],
    experiment,
    predictions=dict.fromkeys(
        INPUTS, ("one of the methods " + ", ".join(METHODS), METHODS.__contains__)
    ),
)
"""The runs of lab 5: all inputs, methods and learning rates."""


def last_loss(losses: Sequence[float]) -> float:
    """Return the mean of the last five measurements.

    Examples
    --------
    >>> last_loss([9.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    3.0
    """
    return sum(losses[-5:]) / len(losses[-5:])


def best_rates(record: LabRecord, inputs: str) -> dict[str, float]:
    """Return for each method the rate at which the last losses are smallest, see :func:`last_loss`.

    Only runs on this kind of inputs are compared; a run that diverged is left out.
    """
    return {name: run.setting["lr"] for name, run in _best_runs(record, inputs).items()}


def best_curves(record: LabRecord, inputs: str) -> dict[str, list[float]]:
    """Return for each method the training losses at its best rate, one after each 20 steps."""
    return {name: run.curves["training loss"] for name, run in _best_runs(record, inputs).items()}


def _best_runs(record: LabRecord, inputs: str) -> dict[str, Run]:
    best: dict[str, Run] = {}
    for run in record.runs:
        name, losses = run.setting["method"], run.curves["training loss"]
        if run.setting["inputs"] != inputs or len(losses) < STEPS // EVERY:
            continue
        if name not in best or last_loss(losses) < last_loss(best[name].curves["training loss"]):
            best[name] = run
    return best
