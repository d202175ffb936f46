"""Minibatches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from optdl.checks.exercise import Case, Exercise
from optdl.labs.drivers import bnp_cnn as drivers
from optdl.observation import observe


class Batches:
    """Minibatches of examples that lie on a device, in a new order in each epoch.

    Source: LAB-6.
    """

    def __init__(
        self, x: Tensor, y: Tensor, size: int, generator: torch.Generator, device: str = "cpu"
    ) -> None:
        self.x, self.y = x.to(device), y.to(device)
        self.size, self.generator = size, generator

    def __len__(self) -> int:
        return -(-len(self.y) // self.size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        order = torch.randperm(len(self.y), generator=self.generator, device=self.y.device)
        for rows in order.split(self.size):  # type: ignore[no-untyped-call]
            yield self.x[rows], self.y[rows]


exercise = Exercise(
    "LAB-6:batches",
    Batches,
    use=drivers.iterate,
    parts=(
        *("the number of minibatches", "the first epoch", "the second epoch"),
        *("the device of the examples", "the device of the order"),
    ),
)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for m, size, device in [(5, 2, "cpu"), (7, 7, "cpu"), (9, 3, "cpu"), (3, 3, "meta")]:
        yield {
            "x": rng.normal(size=(m, 1, 2, 1)).round(2),
            "y": rng.permutation(m),
            "size": size,
            "seed": int(rng.integers(1000)),
            "device": device,
        }


@exercise.fact("each epoch has every example once, with its own label")
def _(kind: Any, rng: np.random.Generator) -> bool:
    """Return whether each epoch has every example once, with its own label."""
    y, seed = np.arange(11), int(rng.integers(1000))
    epochs = observe(drivers.iterate, kind, 10.0 * y, y, 4, seed, "cpu")[1:3]
    for epoch in epochs:
        pairs = [(float(a), int(b)) for xs, ys in epoch for a, b in zip(xs, ys, strict=True)]
        if sorted(pairs) != [(10.0 * label, label) for label in range(11)]:
            return False
    return True


_ORDER = "torch.randperm(len(self.y), generator=self.generator, device=self.y.device)"


exercise.mistake(
    "all your epochs have the same order; draw one in `__iter__`, which begins "
    "an epoch, with a generator that goes on",
    (
        "self.size, self.generator = size, generator",
        "self.size = size\n        self.order = torch.randperm(len(y), generator=generator)",
    ),
    (_ORDER, "self.order"),
)

exercise.mistake(
    "you leave out the last examples, where the size does not divide their "
    "number; the last minibatch is smaller",
    ("-(-len(self.y) // self.size)", "len(self.y) // self.size"),
    (
        "in order.split(self.size):",
        "in order[: len(self) * self.size].split(self.size):",
    ),
)

exercise.mistake(
    "`len` does not count the last minibatch where it is smaller; round up",
    ("-(-len(self.y) // self.size)", "len(self.y) // self.size"),
)

exercise.mistake(
    "`len` is the number of examples; it is that of the minibatches of an epoch",
    ("-(-len(self.y) // self.size)", "len(self.y)"),
)

exercise.mistake(
    "images and labels have orders of their own, so that labels are wrong; take "
    "both by the same rows",
    (
        "            yield self.x[rows], self.y[rows]",
        "            others = torch.randperm(len(rows), generator=self.generator)\n"
        "            yield self.x[rows], self.y[rows[others]]",
    ),
)

exercise.mistake(
    "you draw rows with replacement; an epoch has each example once: use `torch.randperm`",
    ("torch.randperm(len(self.y),", "torch.randint(len(self.y), (len(self.y),),"),
)

exercise.mistake(
    "your examples come in the order in which they lie; draw a new one for each epoch",
    (_ORDER, "torch.arange(len(self.y))"),
)

exercise.mistake(
    "you draw from torch's global generator, so a run cannot be repeated by its "
    "seed; draw from the one that you are given",
    ("generator=self.generator, ", ""),
)

exercise.mistake(
    "your examples stay where they lie; bring all of them to `device`, in `__init__`",
    ("x.to(device), y.to(device)", "x, y"),
)

exercise.mistake(
    "you draw the order on the CPU, where the generator of a GPU is refused; "
    "give `torch.randperm` the device of the examples",
    (", device=self.y.device", ""),
)
