"""The student computes the loss and the accuracy of a network in evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from optdl.checks.compare import disagreement
from optdl.checks.exercise import Case, Exercise
from optdl.labs.drivers import batchnorm as drivers
from optdl.observation import observe


@torch.no_grad()
def evaluate(model: nn.Module, x: Tensor, y: Tensor, size: int) -> tuple[float, float]:
    """Return the mean cross-entropy and the share of correct answers, in evaluation mode.

    Source: LAB-3.
    """
    training = model.training
    model.eval()
    loss, correct = 0.0, 0.0
    for inputs, labels in zip(torch.split(x, size), torch.split(y, size), strict=True):
        scores = model(inputs)
        loss += nn.functional.cross_entropy(scores, labels, reduction="sum").item()
        correct += (scores.argmax(dim=1) == labels).sum().item()
    model.train(training)
    return loss / len(y), correct / len(y)


exercise = Exercise(
    "LAB-3:evaluate",
    evaluate,
    use=drivers.evaluated,
    parts=(
        "the sizes of the minibatches",
        "whether the examples keep their order",
        "whether the scores have no graph",
        "the loss",
        "the accuracy",
        "whether both are floats",
        "the number of modules left in training mode",
        ("running_mean", "running_var"),
    ),
    rtol=1e-6,
)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for m, size, training in [(4, 2, True), (5, 2, False), (7, 3, True), (9, 4, False)]:
        yield {
            "x": rng.normal(size=(m, 4)).round(2),
            "y": rng.integers(0, 3, size=m),
            "size": size,
            "training": training,
            "seed": int(rng.integers(1000)),
        }


@exercise.fact("the size of the minibatches changes nothing")
def _(function: Any, rng: np.random.Generator) -> bool:
    x, y, seed = rng.normal(size=(11, 4)), rng.integers(0, 3, size=11), int(rng.integers(1000))
    whole, split = (
        observe(drivers.evaluated, function, x, y, size, True, seed)[3:5] for size in (11, 3)
    )
    return disagreement(whole, split, 1e-5, 1e-8) is None


exercise.hints(
    "How must the results of minibatches of different sizes be combined if each example is to "
    "count equally?",
    'Sum over the examples, and divide once at the end. With `reduction="sum"`, `cross_entropy` '
    "returns the sum over a minibatch, and correct answers can be counted.",
    "Remember the mode and switch to evaluation mode. Split `x` and `y` with `torch.split`, add up "
    "the losses and the matches of `argmax` with the labels, restore the mode, and divide both "
    "sums by `len(y)`.",
)

exercise.mistakes(r"""
you compute all scores at once; compute them in minibatches of `size` examples
    zip(torch.split(x, size), torch.split(y, size), strict=True) → [(x, y)]
your network is tested in training mode, with the statistics of each minibatch; call `model.eval()`
first
    model.eval() → model.train()
your network is tested in the mode in which it comes; call `model.eval()` first
    model.eval() → pass
you leave the network in evaluation mode; give it back in the mode in which it came
    model.train(training) → pass
you put the network into training mode at the end, whatever its mode was; give it back in the mode
in which it came
    model.train(training) → model.train()
you compute the scores with their graph; no backward pass follows here, so use `torch.no_grad()`
    @torch.no_grad() →
your results are means over the minibatches, in which the examples of a smaller last minibatch count
for more; take the mean over the examples
    , reduction="sum").item() → ).item() * len(y) / -(-len(y) // size)
    labels).sum().item() → labels).double().mean().item() * len(y) / -(-len(y) // size)
you add the mean losses of the minibatches; multiply each by the number of its examples, and divide
the sum by the number of all
    , reduction="sum") → )
    loss / len(y) → loss
you divide the sum of the mean losses by the number of examples; multiply each mean by the number of
its examples first
    , reduction="sum") → )
you multiply each mean loss by `size`, but the last minibatch may be smaller; multiply by the number
of its own examples
    , reduction="sum").item() → ).item() * size
you leave out the last minibatch when it is smaller; all examples count
    scores = model(inputs) → if len(inputs) < size: break\n        scores = model(inputs)
you return tensors; return numbers, with `.item()`
    "sum").item() → "sum")
    .sum().item() → .sum()
you apply softmax before cross_entropy, which applies it itself; give it the scores
    cross_entropy(scores, → cross_entropy(scores.softmax(dim=1),
""")
