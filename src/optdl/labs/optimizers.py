"""The lab on optimizers: a network on digits, trained at seven rates by two optimizers.

Source: LAB-1.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from optdl.labs import digits
from optdl.labs.lab import Lab, Parts
from optdl.labs.records import LabRecord

__all__ = ["LAB", "RATES", "STEPS", "WIDTHS", "experiment", "final_losses"]

RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""The learning rates of the runs."""

STEPS = 300
"""How many updates a run makes."""

WIDTHS = (64, 64, 64, 10)
"""The inputs of the network, its two hidden layers and its scores."""

BATCH = 64


def experiment(
    parts: Parts, setting: dict[str, Any], seed: int, steps: int | None = None
) -> tuple[dict[str, list[float]], nn.Module]:
    """Train one network with the student's optimizer and loop; see :class:`optdl.labs.Lab`."""
    x, y, *validation = digits.standardized()
    model = digits.dense(WIDTHS, seed)
    # lists, as an answer may go through them twice
    optimizer = parts[setting["optimizer"]](list(model.parameters()), lr=setting["lr"])
    minibatches = list(digits.batches(x, y, BATCH, seed, steps or STEPS))
    losses = parts["train"](model, optimizer, minibatches)
    return {"loss": losses, "accuracy": [digits.accuracy(model, *validation)]}, model


LAB = Lab(
    "LAB-1",
    [{"optimizer": name, "lr": lr} for name in ("SGD", "AdamW") for lr in RATES],
    experiment,
    predictions=dict.fromkeys(
        ("SGD", "AdamW"), (f"one of the rates {', '.join(map(str, RATES))}", RATES.__contains__)
    ),
)
"""The runs of lab 1: two optimizers, each with all learning rates."""


def final_losses(record: LabRecord) -> dict[str, dict[float, float]]:
    """Return for ``SGD`` and ``AdamW`` the mean loss of the last 20 steps at each rate.

    A run that diverged is left out.
    """
    losses: dict[str, dict[float, float]] = {"SGD": {}, "AdamW": {}}
    for run in record.runs:
        if run.stop == "done":
            last = run.curves["loss"][-20:]
            losses[run.setting["optimizer"]][run.setting["lr"]] = sum(last) / len(last)
    return losses
