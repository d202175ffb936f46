"""How a network is tested."""

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


_EVALUATED_PARTS = (
    "the loss",
    "the accuracy",
    "their types",
    "the sizes of the minibatches",
    "the scores were computed with",
    "the network is left in",
    ("running_mean", "running_var"),
)


exercise = Exercise(
    "LAB-3:evaluate", evaluate, use=drivers.evaluated, parts=_EVALUATED_PARTS, rtol=1e-6
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
    """Return whether the size of the minibatches has no influence on the answer."""
    x, y, seed = rng.normal(size=(11, 4)), rng.integers(0, 3, size=11), int(rng.integers(1000))
    whole, split = (
        observe(drivers.evaluated, function, x, y, size, True, seed)[:2] for size in (11, 3)
    )
    return disagreement(whole, split, 1e-5, 1e-8) is None


exercise.mistake(
    "you compute all scores at once; compute them in minibatches of `size` examples",
    (
        "zip(torch.split(x, size), torch.split(y, size), strict=True)",
        "[(x, y)]",
    ),
)

exercise.mistake(
    "your network is tested in training mode, with the statistics of each "
    "minibatch; call `model.eval()` first",
    ("    model.eval()\n", "    model.train()\n"),
)

exercise.mistake(
    "your network is tested in the mode in which it comes; call `model.eval()` first",
    ("    model.eval()\n", ""),
)

exercise.mistake(
    "you leave the network in evaluation mode; give it back in the mode in which it came",
    ("    model.train(training)\n", ""),
)

exercise.mistake(
    "you put the network into training mode at the end, whatever its mode was; "
    "give it back in the mode in which it came",
    ("model.train(training)", "model.train()"),
)

exercise.mistake(
    "you compute the scores with their graph; nothing goes back here: use `torch.no_grad()`",
    ("@torch.no_grad()\n", ""),
)

exercise.mistake(
    "your results are means over the minibatches, in which the examples of a "
    "smaller last one count for more; take the mean over the examples",
    (', reduction="sum")', ")"),
    (".sum().item()", ".double().mean().item()"),
    (
        "return loss / len(y), correct / len(y)",
        "return loss / len(torch.split(x, size)), correct / len(torch.split(x, size))",
    ),
)

exercise.mistake(
    "you add the mean losses of the minibatches; multiply each by the number of "
    "its examples, and divide the sum by the number of all",
    (', reduction="sum")', ")"),
    ("return loss / len(y)", "return loss"),
)

exercise.mistake(
    "you divide the sum of the mean losses by the number of examples; multiply "
    "each mean by the number of its examples first",
    (', reduction="sum")', ")"),
)

exercise.mistake(
    "you multiply each mean loss by `size`, though the last minibatch is "
    "smaller; multiply by the number of its own examples",
    (
        'nn.functional.cross_entropy(scores, labels, reduction="sum").item()',
        "nn.functional.cross_entropy(scores, labels).item() * size",
    ),
)

exercise.mistake(
    "you leave out the last minibatch when it is smaller; all examples count",
    (
        "        scores = model(inputs)\n",
        "        if len(inputs) < size:\n            break\n        scores = model(inputs)\n",
    ),
    (
        "return loss / len(y), correct / len(y)",
        "return loss / (len(y) // size * size), correct / (len(y) // size * size)",
    ),
)

exercise.mistake(
    "your accuracy is the number of correct answers; divide it by the number of examples",
    ("correct / len(y)", "correct"),
)

exercise.mistake(
    "your accuracy is in percent; here it is a share between 0 and 1",
    ("correct / len(y)", "100 * correct / len(y)"),
)

exercise.mistake(
    "your second number is the error; asked is the accuracy",
    ("correct / len(y)", "1 - correct / len(y)"),
)

exercise.mistake(
    "you return tensors; return numbers, with `.item()`",
    ('reduction="sum").item()', 'reduction="sum")'),
    (".sum().item()", ".sum()"),
)

exercise.mistake(
    "you apply softmax before cross_entropy, which applies it itself; give it the scores",
    ("cross_entropy(scores,", "cross_entropy(scores.softmax(dim=1),"),
)
