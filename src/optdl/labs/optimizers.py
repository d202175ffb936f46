"""The lab on optimizers: a network on digits, trained at seven rates by two optimizers.

Source: LAB-1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from optdl.data import load
from optdl.labs.lab import Lab, Parts
from optdl.labs.records import LabRecord

__all__ = [
    "LAB",
    "RATES",
    "STEPS",
    "accuracy",
    "batches",
    "examples",
    "experiment",
    "final_losses",
    "network",
]

RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""The learning rates of the runs."""

STEPS = 300
"""How many updates a run makes."""

BATCH = 64


@cache
def examples() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the digits as ``(x, y, x_validation, y_validation)``, standardized by one number.

    The last 288 of the 1438 training examples are for validation; the test set is not touched.
    """
    digits = load("digits")
    x, y = torch.tensor(digits.x_train), torch.tensor(digits.y_train)
    x = (x - x[:1150].mean()) / x[:1150].std()
    return x[:1150], y[:1150], x[1150:], y[1150:]


def network(seed: int) -> nn.Sequential:
    """Return 64 inputs, two hidden layers of 64 units with ReLU, 10 scores, with weights of a seed.

    Weights are drawn from N(0, 2 / inputs), biases are 0.
    """
    model = nn.Sequential(
        *(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    )
    generator = torch.Generator().manual_seed(seed)
    for layer in model:
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=(2 / layer.in_features) ** 0.5, generator=generator)
            nn.init.zeros_(layer.bias)
    return model


def batches(seed: int, steps: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield minibatches of 64 examples, drawn anew for each step.

    Parameters
    ----------
    seed : int
        Seed of the examples.
    steps : int
        Number of minibatches.

    Yields
    ------
    (64, 64) tensor, (64,) tensor
        Features and labels.
    """
    x, y, _, _ = examples()
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        rows = torch.randint(len(y), (BATCH,), generator=generator)
        yield x[rows], y[rows]


@torch.no_grad()
def accuracy(model: nn.Module) -> float:
    """Return the share of the validation examples that a network classifies correctly."""
    _, _, x, y = examples()
    return float((model(x).argmax(dim=1) == y).float().mean())


def experiment(
    parts: Parts, setting: dict[str, Any], seed: int, steps: int | None = None
) -> tuple[dict[str, list[float]], nn.Module]:
    """Train one network with the student's optimizer and loop; see :class:`optdl.labs.Lab`."""
    model = network(seed)
    # lists, as an answer may go through them twice
    optimizer = parts[setting["optimizer"]](list(model.parameters()), lr=setting["lr"])
    losses = parts["train"](model, optimizer, list(batches(seed, steps or STEPS)))
    return {"loss": losses, "accuracy": [accuracy(model)]}, model


def _accuracy(curves: Mapping[str, list[float]]) -> float:
    return curves["accuracy"][-1]


LAB = Lab(
    "LAB-1",
    [{"optimizer": name, "lr": lr} for name in ("SGD", "AdamW") for lr in RATES],
    experiment,
    _accuracy,
)
"""The runs of lab 1: two optimizers, each with all learning rates."""


def final_losses(record: LabRecord) -> dict[str, dict[float, float]]:
    """Return for each optimizer its rates, and the mean loss of the last 20 steps at each.

    A run that diverged is left out.

    Returns
    -------
    dict
        ``SGD`` and ``AdamW`` to a dict of rates to losses.
    """
    losses: dict[str, dict[float, float]] = {"SGD": {}, "AdamW": {}}
    for run in record.runs:
        if run.stop == "done":
            last = run.curves["loss"][-20:]
            losses[run.setting["optimizer"]][run.setting["lr"]] = sum(last) / len(last)
    return losses
