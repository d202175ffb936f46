"""The lab on batch normalization: digits in minibatches of 64, 8 and 2, with it and without.

Source: LAB-3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from optdl.labs import digits
from optdl.labs.lab import Lab, Parts
from optdl.labs.records import LabRecord, RecordError

__all__ = ["EVERY", "EXAMPLES", "LAB", "MOMENTUM", "SIZES", "WIDTHS", "accuracies", "batches"]
__all__ += ["examples_seen", "experiment", "initialize", "mean_losses"]

SIZES = (64, 8, 2)
"""The sizes of the minibatches."""

WIDTHS = (64, 64, 64, 10)
"""The inputs of the network, its two hidden layers and its scores."""

EXAMPLES = 5120
"""Each run takes so many examples, in steps of its own minibatches."""

EVERY = 512
"""The networks are tested each time they have seen so many examples more."""

MOMENTUM = 0.01
"""The weight of the new value in the running averages."""

NAMES = ("no normalization", "running averages", "computed anew")
"""The curves of one size."""


def batches(seed: int, size: int, steps: int) -> list[tuple[Tensor, Tensor]]:
    """Return minibatches of so many training examples each, drawn with replacement.

    All sizes get the same examples in the same order, at most 5120 in all: pairs of (size, 64)
    features and (size,) labels.
    """
    x, y, _, _ = digits.pixels()
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(len(y), (EXAMPLES,), generator=generator)[: steps * size]
    return list(zip(torch.split(x[rows], size), torch.split(y[rows], size), strict=True))


def initialize(model: nn.Module, seed: int) -> None:
    """Draw the matrices of a network from N(0, 2 / inputs) with a seed.

    Entries whose names end in ``bias`` are set to 0; all else stays.
    """
    generator = torch.Generator().manual_seed(seed)
    for name, value in model.state_dict().items():  # which shares memory with the network
        if value.dim() == 2:
            nn.init.normal_(value, std=(2 / value.shape[1]) ** 0.5, generator=generator)
        elif name.endswith("bias"):
            nn.init.zeros_(value)


def experiment(
    parts: Parts, setting: dict[str, Any], seed: int, steps: int | None = None
) -> tuple[dict[str, list[float]], nn.Module]:
    """Train one network, and test it after each 512 examples; see :class:`optdl.labs.Lab`.

    The learning rate is proportional to the size of the minibatch.
    """
    size, is_normalized = setting["size"], setting["normalized"]
    kind = parts["BatchNorm"] if is_normalized else None
    model = parts["Network"](WIDTHS, kind, momentum=MOMENTUM)
    initialize(model, seed)
    todo = batches(seed, size, steps or EXAMPLES // size)
    curves: dict[str, list[float]] = {"loss": [], "accuracy": [], "anew": []}
    for start in range(0, len(todo), EVERY // size):
        curves["loss"] += model.fit(todo[start : start + EVERY // size], lr=0.3 * size / 64)
        if steps is None:
            _append_accuracies(parts, model, curves, is_normalized)
    if steps is not None and is_normalized and size == SIZES[0]:
        # a record is judged without the tests above, in which the statistics are computed anew
        _recalibrate(parts, model, torch.split(todo[0][0][:4], 2))
    return curves, model


def _append_accuracies(
    parts: Parts, model: nn.Module, curves: dict[str, list[float]], anew: bool
) -> None:
    """Append the accuracy with running averages, and that with statistics computed anew.

    The network gets its running averages back, except after the last test.
    """
    x, _, *validation = digits.pixels()
    saved = {name: value.clone() for name, value in model.state_dict().items()}
    curves["accuracy"].append(parts["evaluate"](model, *validation, 100)[1])
    if anew:
        _recalibrate(parts, model, torch.split(x, 115))
        curves["anew"].append(parts["evaluate"](model, *validation, 100)[1])
        if len(curves["anew"]) < EXAMPLES // EVERY:
            model.load_state_dict(saved)


def _recalibrate(parts: Parts, model: nn.Module, minibatches: Sequence[Tensor]) -> None:
    """Compute the statistics anew; raise :class:`RecordError` if those of a layer are not.

    The check of ``recalibrate`` has PyTorch's layers only.
    """
    parts["recalibrate"](model, minibatches)
    state = model.state_dict().items()
    counts = {int(value) for name, value in state if name.endswith("num_batches_tracked")}
    if counts != {len(minibatches)}:
        raise RecordError(
            "`recalibrate` does not compute the statistics of your BatchNorm anew: go through all "
            "modules that have the attribute `running_mean`, whatever their class"
        )


def _last_accuracy(curves: Mapping[str, list[float]]) -> float:
    """Return the accuracy of the network as the run leaves it."""
    return (curves["anew"] or curves["accuracy"])[-1]


LAB = Lab(
    "LAB-3",
    [{"size": size, "normalized": normalized} for size in SIZES for normalized in (False, True)],
    experiment,
    _last_accuracy,
    predictions={
        "size": ("one of the sizes 64, 8 and 2", SIZES.__contains__),
        "accuracy": ("a number from 0 to 1", lambda p: isinstance(p, int | float) and 0 <= p <= 1),
    },
)
"""The runs of lab 3: each size of the minibatch, with normalization and without."""


def examples_seen() -> list[int]:
    """Return how many examples a network had seen at each of its tests.

    Examples
    --------
    >>> examples_seen()[:3], examples_seen()[-1]
    ([512, 1024, 1536], 5120)
    """
    return list(range(EVERY, EXAMPLES + 1, EVERY))


def accuracies(record: LabRecord, size: int) -> dict[str, list[float]]:
    """Return the validation accuracies of a size at each test, by the name of the network.

    There is one between 0 and 1 for each entry of :func:`examples_seen`.
    """
    plain, normalized = _both(record, size)
    curves = (plain["accuracy"], normalized["accuracy"], normalized["anew"])
    return dict(zip(NAMES, curves, strict=True))


def mean_losses(record: LabRecord, size: int) -> dict[str, list[float]]:
    """Return the training losses of a size, averaged over the steps between two tests, by name.

    There is one for each entry of :func:`examples_seen`.
    """
    by_name = zip(("no normalization", "batch normalization"), _both(record, size), strict=True)
    return {
        name: torch.tensor(curves["loss"]).reshape(-1, EVERY // size).mean(dim=1).tolist()
        for name, curves in by_name
    }


def _both(record: LabRecord, size: int) -> list[dict[str, list[float]]]:
    """Return the curves of a size without normalization, and with it."""
    runs = [record.find({"size": size, "normalized": normalized}) for normalized in (False, True)]
    return [run.curves for run in runs if run is not None]
