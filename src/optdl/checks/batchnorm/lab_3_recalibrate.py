"""Statistics computed anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from optdl.checks.compare import disagreement
from optdl.checks.exercise import Case, Exercise
from optdl.labs.drivers import batchnorm as drivers
from optdl.observation import observe


@torch.no_grad()
def recalibrate(model: nn.Module, batches: Iterable[Tensor]) -> None:
    """Replace the running averages by means over minibatches, with all weights fixed.

    Source: LAB-3.
    """
    layers: list[Any] = [one for one in model.modules() if hasattr(one, "running_mean")]
    momenta = [layer.momentum for layer in layers]
    training = model.training
    for layer in layers:
        layer.num_batches_tracked.zero_()
        layer.momentum = None
    model.train()
    for x in batches:
        model(x)
    model.train(training)
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum


_RECALIBRATED_PARTS = (
    ("running_mean", "running_var", "running_mean of the last layer", "its running_var"),
    "num_batches_tracked",
    "the momenta",
    "the network is left in",
    "the parameters",
)


exercise = Exercise(
    "LAB-3:recalibrate", recalibrate, use=drivers.recalibrated, parts=_RECALIBRATED_PARTS
)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for sizes, training in [((3, 3), True), ((4, 4, 3), False), ((5, 2, 3, 3), True)]:
        yield {
            "batches": [rng.normal(1, 2, size=(m, 2)).round(2) for m in sizes],
            "training": training,
            "seed": int(rng.integers(1000)),
        }


@exercise.fact("one minibatch leaves its mean and its unbiased variance")
def _(function: Any, rng: np.random.Generator) -> bool:
    """Return whether one minibatch leaves the mean and the unbiased variance of its features."""
    x = rng.normal(4, 2, size=(8, 3))
    expected = x.mean(axis=0), x.var(axis=0, ddof=1)
    return disagreement(expected, observe(drivers.averaged, function, x), 1e-5, 1e-8) is None


exercise.mistake(
    "your network is in evaluation mode during the pass, where the averages do "
    "not change; call `model.train()` first",
    ("    model.train()\n", "    model.eval()\n"),
)

exercise.mistake(
    "your network passes the minibatches in the mode in which it comes; call `model.train()` first",
    ("    model.train()\n", ""),
)

exercise.mistake(
    "you leave the network in training mode; give it back in the mode in which it came",
    ("    model.train(training)\n", ""),
)

exercise.mistake(
    "you put the network into evaluation mode at the end, whatever its mode was; "
    "give it back in the mode in which it came",
    ("model.train(training)", "model.eval()"),
)

exercise.mistake(
    "your layers go on from their old averages and counts; set num_batches_tracked to 0 first",
    ("        layer.num_batches_tracked.zero_()\n", ""),
)

exercise.mistake(
    "your layers keep their momentum, so that the last minibatches count most "
    "and the old averages still count; set momentum to None for the pass",
    ("        layer.momentum = None\n", ""),
)

exercise.mistake(
    "your layers have no momentum afterwards; give each its own back",
    ("        layer.momentum = momentum\n", "        pass\n"),
)

exercise.mistake(
    "your layers have the momentum 0.1 afterwards; give each its own back",
    ("        layer.momentum = momentum\n", "        layer.momentum = 0.1\n"),
)

exercise.mistake(
    "you reset the parameters of the layers, too; weight and bias stay as they are",
    (
        "layer.num_batches_tracked.zero_()",
        "layer.num_batches_tracked.zero_()\n        layer.weight.fill_(1)\n"
        "        layer.bias.zero_()",
    ),
)

exercise.mistake(
    "you find certain classes only, by `isinstance`; a normalization is any "
    "module that has the attribute `running_mean`",
    (
        'if hasattr(one, "running_mean")',
        "if isinstance(one, nn.BatchNorm1d | nn.BatchNorm2d)",
    ),
)

exercise.mistake(
    "you go through the children of the network and miss the layers within them; "
    "go through `model.modules()`",
    ("model.modules()", "model.children()"),
)

exercise.mistake(
    "your statistics are those of the first minibatch; go through all of them",
    ("        model(x)\n", "        model(x)\n        break\n"),
)

exercise.mistake(
    "your statistics are those of the last minibatch; take the mean over all of them",
    ("        layer.momentum = None\n", "        layer.momentum = 1.0\n"),
)

exercise.mistake(
    "you join all examples into one minibatch; here the statistics of the minibatches are averaged",
    ("for x in batches:", "for x in [torch.cat(list(batches))]:"),
)

exercise.mistake(
    "you pass the minibatches twice; each counts once",
    ("        model(x)\n", "        model(x)\n        model(x)\n"),
)
