"""The student replaces the running averages of a network by means over minibatches."""

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


exercise = Exercise(
    "LAB-3:recalibrate",
    recalibrate,
    use=drivers.recalibrated,
    parts=(
        ("running_mean", "running_var", "running_mean of the last layer", "its running_var"),
        "num_batches_tracked of each normalization",
        "the momentum of each normalization (−1 is None)",
        "the number of modules left in training mode",
        "the parameters",
    ),
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
    x = rng.normal(4, 2, size=(8, 3))
    expected = x.mean(axis=0), x.var(axis=0, ddof=1)
    return disagreement(expected, observe(drivers.averaged, function, x), 1e-5, 1e-8) is None


exercise.hints(
    "For which value of `momentum` do all minibatches count equally, and which share must the "
    "first one have if nothing of the old averages is to remain?",
    "With `momentum=None` the $t$-th minibatch has the share $1/t$. If the count starts again at "
    "0, the first minibatch has the share 1, and it replaces the old averages.",
    "Remember the mode and each momentum. Set each count to 0 and each momentum to `None`, pass "
    "all minibatches through the network in training mode without gradients, and restore what you "
    "remembered.",
)

exercise.mistakes(r"""
your network is in evaluation mode during the pass, where the averages do not change; call
`model.train()` first
    model.train() → model.eval()
your network passes the minibatches in the mode in which it comes; call `model.train()` first
    model.train() → pass
you leave the network in training mode; give it back in the mode in which it came
    model.train(training) → pass
you put the network into evaluation mode at the end, whatever its mode was; give it back in the mode
in which it came
    model.train(training) → model.eval()
your layers go on from their old averages and counts; set num_batches_tracked to 0 first
    layer.num_batches_tracked.zero_() → pass
your layers keep their momentum, so the last minibatches count most and the old averages still
count; set momentum to None for the pass
    layer.momentum = None → pass
you begin with mean 0 and variance 1 and keep the momentum, so these count as well, and the last
minibatches most; set momentum to None for the pass
    layer.momentum = None → layer.reset_running_stats()
your layers have no momentum afterwards; give each its own back
    layer.momentum = momentum → pass
you reset the parameters of the layers, too; weight and bias stay as they are
    layer.num_batches_tracked.zero_() → layer.reset_parameters()
you find certain classes only, by `isinstance`; a normalization is any module that has the attribute
`running_mean`
    hasattr(one, "running_mean") → isinstance(one, nn.BatchNorm1d | nn.BatchNorm2d)
you prepare none of the normalizations, as `isinstance(…, BatchNorm)` finds none of PyTorch's own; a
normalization is any module that has the attribute `running_mean`
    hasattr(one, "running_mean") → False
you go through the children of the network and miss the layers within them; go through
`model.modules()`
    model.modules() → model.children()
your statistics are those of the first minibatch; go through all of them
    model(x) → model(x)\n        break
your statistics are those of the last minibatch; take the mean over all of them
    layer.momentum = None → layer.momentum = 1.0
you join all examples into one minibatch; here the statistics of the minibatches are averaged
    in batches: → in [torch.cat(list(batches))]:
you pass the minibatches twice; each counts once
    model(x) → model(x), model(x)
you give all normalizations one momentum at the end; give each its own back
    layer.momentum = momentum → layer.momentum = momenta[-1]
you set the averages back and not the count, so the first minibatch has a share of less than 1; set
num_batches_tracked to 0
    layer.num_batches_tracked.zero_() → _ = layer.running_mean.zero_(), layer.running_var.fill_(1)
""")
