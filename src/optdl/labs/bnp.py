"""The lab on BNP: one network on digits, trained four ways at four rates, on two kinds of inputs.

The student's ``BNP`` sees the network through hooks; plain gradient descent and batch normalization
stand beside it. One of the ways leaves the first layer alone, so that the gain can be located.

Source: LAB-5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from optdl.data import load
from optdl.labs.lab import Lab, Parts
from optdl.labs.records import LabRecord, Run

__all__ = [
    "EVERY",
    "INPUTS",
    "LAB",
    "METHODS",
    "RATES",
    "STEPS",
    "accuracy",
    "batches",
    "best_curves",
    "best_rates",
    "examples",
    "experiment",
    "last_loss",
    "network",
    "training_loss",
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

BATCH = 8
RHO = 0.95


@cache
def examples(inputs: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the digits as ``(x, y, x_validation, y_validation)``.

    The last 288 of the 1438 training examples are for validation; the test set is not touched.

    Parameters
    ----------
    inputs : str
        ``raw`` for pixels from 0 to 1, or ``standardized``: less the mean of each pixel, divided
        by its standard deviation plus 0.1, as the pixels at the border hardly ever differ from 0.
    """
    if inputs not in INPUTS:
        raise ValueError(f"inputs must be one of {', '.join(INPUTS)}, got {inputs!r}")
    digits = load("digits")
    x, y = torch.tensor(digits.x_train), torch.tensor(digits.y_train)
    if inputs == "standardized":
        x = (x - x[:1150].mean(dim=0)) / (x[:1150].std(dim=0, correction=0) + 0.1)
    return x[:1150], y[:1150], x[1150:], y[1150:]


def network(seed: int, *, normalized: bool = False) -> nn.Sequential:
    """Return 64 inputs, two hidden layers of 64 units with ReLU, 10 scores, with weights of a seed.

    Weights are drawn from N(0, 2 / inputs), biases are 0. With ``normalized`` a batch
    normalization stands before each ReLU.
    """
    layers: list[nn.Module] = []
    for _ in range(2):
        layers += [nn.Linear(64, 64), *([nn.BatchNorm1d(64)] if normalized else []), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(64, 10))
    generator = torch.Generator().manual_seed(seed)
    for layer in model:
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=(2 / layer.in_features) ** 0.5, generator=generator)
            nn.init.zeros_(layer.bias)
    return model


def batches(inputs: str, seed: int, steps: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield minibatches of 8 examples, drawn anew for each step.

    Parameters
    ----------
    inputs : str
        The kind of inputs: see :func:`examples`.
    seed : int
        Seed of the examples.
    steps : int
        Number of minibatches.

    Yields
    ------
    (8, 64) tensor, (8,) tensor
        Features and labels.
    """
    x, y, _, _ = examples(inputs)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        rows = torch.randint(len(y), (BATCH,), generator=generator)
        yield x[rows], y[rows]


@torch.no_grad()
def training_loss(model: nn.Module, inputs: str) -> float:
    """Return the mean loss over all training examples, in evaluation mode."""
    x, y, _, _ = examples(inputs)
    return float(nn.functional.cross_entropy(model.eval()(x), y))


@torch.no_grad()
def accuracy(model: nn.Module, inputs: str) -> float:
    """Return the share of the validation examples that a network classifies correctly."""
    _, _, x, y = examples(inputs)
    return float((model.eval()(x).argmax(dim=1) == y).float().mean())


def experiment(
    parts: Parts, setting: dict[str, Any], seed: int, steps: int | None = None
) -> tuple[dict[str, list[float]], nn.Module]:
    """Train one network with the student's BNP and loop; see :class:`optdl.labs.Lab`.

    Between two calls of the loop the network is measured, in evaluation mode.
    """
    inputs, method = setting["inputs"], setting["method"]
    model = network(seed, normalized=method == "BN")
    optimizer = torch.optim.SGD(model.parameters(), lr=setting["lr"])
    part = {"BNP": model, "BNP hidden": model[1:]}.get(method)
    bnp = None if part is None else parts["BNP"](part, rho=RHO)
    losses, measured, rows = [], [], batches(inputs, seed, steps or STEPS)
    while chunk := list(islice(rows, EVERY)):
        losses += parts["train"](model, optimizer, bnp, chunk)
        if len(chunk) == EVERY:
            measured.append(training_loss(model, inputs))
    if bnp is not None:
        bnp.remove()
    curves = {"loss": losses, "training loss": measured}
    if steps is None:  # to judge a record takes the losses alone
        curves["accuracy"] = [accuracy(model, inputs)]
    return {name: [float(f"{one:.6g}") for one in values] for name, values in curves.items()}, model


def _accuracy(curves: Mapping[str, list[float]]) -> float:
    return curves["accuracy"][-1]


LAB = Lab(
    "LAB-5",
    [
        {"inputs": inputs, "method": method, "lr": lr}
        for inputs in INPUTS
        for method in METHODS
        for lr in RATES
    ],
    experiment,
    _accuracy,
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

    A run that diverged is left out.

    Parameters
    ----------
    record : LabRecord
        The student's record.
    inputs : str
        The kind of inputs whose runs are compared.
    """
    return {name: run.setting["lr"] for name, run in _best_runs(record, inputs).items()}


def best_curves(record: LabRecord, inputs: str) -> dict[str, list[float]]:
    """Return for each method the training losses at its best rate, one after each 20 steps.

    Parameters
    ----------
    record : LabRecord
        The student's record.
    inputs : str
        The kind of inputs whose runs are compared.
    """
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
