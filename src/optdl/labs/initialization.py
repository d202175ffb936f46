"""The lab on initialization: a network of fifteen hidden layers, with five initial weights.

Source: LAB-2.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from optdl.labs import digits
from optdl.labs.lab import Lab, Parts
from optdl.labs.records import LabRecord

__all__ = ["DEPTH", "GAINS", "LAB", "curves_by_start", "damage", "deviations", "experiment"]
__all__ += ["network", "sample"]

DEPTH = 15
"""How many hidden layers the network has."""

WIDTH = 48
STEPS = 400
"""How many updates a run makes."""

RATE = 0.01

GAINS = {
    "small": 3**-0.5,
    "Glorot": 1.0,
    "He": 2**0.5,
    "damaged": 2**0.5,
    "mended": 2**0.5,
}
"""The gain of each run's initial weights: their variance is its square over the number of inputs.

That of ``small`` gives a third of LeCun's variance, as the default of ``nn.Linear`` does. Between
hidden layers of equal width Glorot's variance is LeCun's.
"""


def network() -> nn.Sequential:
    """Return 64 inputs, fifteen hidden layers of 48 units with ReLU, and 10 scores."""
    layers: list[nn.Module] = []
    for number in range(DEPTH):
        layers += [nn.Linear(WIDTH if number else 64, WIDTH), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(WIDTH, 10))


@torch.no_grad()
def damage(model: nn.Sequential, seed: int) -> tuple[int, int, int]:
    """Damage three hidden layers behind the first, which the seed chooses, and return them.

    Counted from 1, these are the hidden layer whose weights are a hundred times too small, that
    whose biases are -30, so that no unit is active, and that whose weights are all equal.
    """
    generator = torch.Generator().manual_seed(seed)
    small, dead, equal = (torch.randperm(DEPTH - 1, generator=generator)[:3] + 2).tolist()
    layers = [layer for layer in model if isinstance(layer, nn.Linear)]
    layers[small - 1].weight.mul_(0.01)
    layers[dead - 1].bias.fill_(-30.0)
    layers[equal - 1].weight.fill_(1 / WIDTH)
    return small, dead, equal


def sample() -> Tensor:
    """Return the 256 examples on which activations are measured."""
    return digits.standardized()[0][:256]


def experiment(
    parts: Parts, setting: dict[str, Any], seed: int, steps: int | None = None
) -> tuple[dict[str, list[float]], nn.Module]:
    """Start one network with the student's functions and train it; see :class:`optdl.labs.Lab`."""
    model = _started(parts, setting["start"], seed)
    # to judge a record takes the losses alone
    statistics = parts["activation_statistics"](model, sample()).values() if steps is None else ()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
    x, y, *validation = digits.standardized()
    stream = digits.batches(x, y, 64, seed, steps or STEPS)
    x, y = next(stream)
    losses = [nn.functional.cross_entropy(model(x), y).item()]
    ratios = parts["update_ratios"](model, optimizer, x, y).values()
    for x, y in stream:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
    curves = {
        "loss": losses,
        "accuracy": [digits.accuracy(model, *validation)],
        "deviation": [layer["std"] for layer in statistics],
        "dead": [layer["dead"] for layer in statistics],
        "ratio": list(ratios),
    }
    return curves, model


def _started(parts: Parts, start: str, seed: int) -> nn.Sequential:
    model = network()
    parts["initialize"](model, GAINS[start], torch.Generator().manual_seed(seed))
    if start in ("damaged", "mended"):
        damage(model, seed)
    if start == "mended":
        parts["mend"](model, sample(), torch.Generator().manual_seed(seed + 1))
    return model


LAB = Lab(
    "LAB-2",
    [{"start": start} for start in GAINS],
    experiment,
    predictions={
        "vanished": (f"a layer, from 1 to {DEPTH}", range(1, DEPTH + 1).__contains__),
        "trained": (f"a number from 0 to {len(GAINS)}", range(len(GAINS) + 1).__contains__),
    },
)
"""The runs of lab 2: one for each scale of the initial weights."""


def curves_by_start(record: LabRecord) -> dict[str, dict[str, list[float]]]:
    """Return the curves of each run, by the name of its initial weights."""
    return {run.setting["start"]: run.curves for run in record.runs}


def deviations(record: LabRecord) -> dict[str, list[float]]:
    """Return the standard deviations of the activations, by the name of the initial weights.

    There is one for each hidden layer, from the input on, and none where a run measured none.
    """
    curves = curves_by_start(record)
    return {start: of_run.get("deviation", []) for start, of_run in curves.items()}
