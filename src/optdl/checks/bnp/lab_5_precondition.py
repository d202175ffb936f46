"""Precondition in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

import optdl.bnp
from optdl.checks.exercise import Case, Exercise
from optdl.labs.drivers import bnp as drivers
from optdl.observation import observe


def precondition(
    grad_weight: Tensor,
    grad_bias: Tensor,
    mean: Tensor,
    var: Tensor,
    batch_size: int,
    eps1: float = 1e-2,
    eps2: float = 1e-4,
) -> None:
    """Change the gradients of a layer as steps 3 to 5 of Algorithm 2 do, in place.

    Source: LAB-5.
    """
    q2 = max(grad_weight.shape[1] / batch_size, 1)
    smoothed = var + eps1 * var.max() + eps2
    grad_weight.sub_(torch.outer(grad_bias, mean)).div_(q2 * smoothed)
    grad_bias.div_(q2).sub_(grad_weight @ mean)


exercise = Exercise(
    "LAB-5:precondition",
    precondition,
    use=drivers.change_gradients,
    parts=("grad_weight", "grad_bias", "mean after the call", "var after the call"),
)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for outputs, inputs, rows in [(1, 2, 4), (2, 2, 1), (3, 5, 2), (4, 3, 8)]:
        yield {
            "grad_weight": rng.normal(size=(outputs, inputs)).round(2),
            "grad_bias": rng.normal(size=outputs).round(2),
            "mean": rng.normal(size=inputs).round(2),
            "var": rng.uniform(0.2, 3, size=inputs).round(2),
            "batch_size": rows,
            "eps1": 0.1 if rows > 1 else 0.2,
            "eps2": 0.05,
        }


@exercise.fact("the gradients are those of the function on arrays")
def _(function: Any, rng: np.random.Generator) -> bool:
    """Return whether the gradients are those of the function of the chapter, on arrays."""
    arrays = [rng.normal(size=(3, 6)), rng.normal(size=3), rng.normal(size=6)]
    arrays += [rng.uniform(0.1, 2, size=6)]
    gradients = observe(drivers.change_gradients, function, *arrays, 4)[:2]
    weight, bias, mean, var = arrays
    expected = optdl.bnp.precondition_dense(weight, bias, mean, var, 4)
    return all(np.allclose(*pair) for pair in zip(gradients, expected, strict=True))


@exercise.fact("with μ = 0, σ² = 1 and ε₂ = 1 the weight gradient is halved, in float32, too")
def _(function: Any, rng: np.random.Generator) -> bool:
    """Return whether a function changes gradients in float32, which stay the tensors they are."""
    G_w, G_b = rng.normal(size=(2, 3)).astype(np.float32), rng.normal(size=2).astype(np.float32)
    mean, var = np.zeros(3, np.float32), np.ones(3, np.float32)
    arrays = G_w, G_b, mean, var
    weight, bias = observe(drivers.change_gradients, function, *arrays, 3, 0.0, 1.0)[:2]
    return np.allclose(weight, G_w / 2) and np.allclose(bias, G_b)


exercise.mistake(
    "you compute new tensors, and the gradients stay as they are: `a = a - b` "
    "gives the name a to another tensor; change the tensor itself, with `sub_`, "
    "`div_` or `copy_`",
    (
        "grad_weight.sub_(torch.outer(grad_bias, mean)).div_(q2 * smoothed)",
        "grad_weight = (grad_weight - torch.outer(grad_bias, mean)) / (q2 * smoothed)",
    ),
    (
        "grad_bias.div_(q2).sub_(grad_weight @ mean)",
        "grad_bias = grad_bias / q2 - grad_weight @ mean\n    return grad_weight, grad_bias",
    ),
)

exercise.mistake(
    "the gradient of your bias stays as it is; it changes, too, and in place, by "
    "an operation whose name ends in _",
    ("grad_bias.div_(q2).sub_(", "grad_bias.div(q2).sub("),
)

exercise.mistake(
    "you smooth `var` in place and so spoil the running average, which belongs "
    "to the caller; compute a new tensor",
    (
        "smoothed = var + eps1 * var.max() + eps2",
        "smoothed = var.add_(eps1 * var.max() + eps2)",
    ),
)

exercise.mistake(
    "your new bias gradient uses the old weight gradient; it uses the new one",
    ("    grad_weight.sub_(", "    old = grad_weight.clone()\n    grad_weight.sub_("),
    ("sub_(grad_weight @ mean)", "sub_(old @ mean)"),
)

exercise.mistake(
    "your outer product is transposed, (n, o) in place of (o, n): μ belongs to "
    "the columns of the weight gradient, one for each input",
    ("torch.outer(grad_bias, mean)", "torch.outer(mean, grad_bias)"),
)

exercise.mistake(
    "you divide the rows of the weight gradient by the variances; they belong to "
    "the columns, one for each input",
    (".div_(q2 * smoothed)", ".div_(q2 * smoothed[:, None])"),
)

exercise.mistake(
    "you divide by the standard deviation; P and Pᵀ divide by it once each, "
    "which makes the variance",
    (".div_(q2 * smoothed)", ".div_(q2 * smoothed.sqrt())"),
)

exercise.mistake(
    "your q² counts the outputs of the layer; it is max{n/N, 1} with the number n of inputs",
    ("grad_weight.shape[1]", "grad_weight.shape[0]"),
)

exercise.mistake(
    "your q² falls below 1 for minibatches that are larger than the layer; it is max{n/N, 1}",
    ("max(grad_weight.shape[1] / batch_size, 1)", "grad_weight.shape[1] / batch_size"),
)

exercise.mistake(
    "you divide the weight gradient by q² once more on its way into the bias; "
    "only the old bias gradient is divided by q²",
    (
        "grad_bias.div_(q2).sub_(grad_weight @ mean)",
        "grad_bias.sub_(grad_weight @ mean).div_(q2)",
    ),
)

exercise.mistake(
    "you do not divide the bias gradient by q²; both gradients are divided",
    ("grad_bias.div_(q2).sub_(", "grad_bias.sub_("),
)

exercise.mistake(
    "you leave out the largest variance in the floor; σ̃² is σ² + ε₁ max σ² + ε₂",
    ("eps1 * var.max()", "eps1"),
)

exercise.mistake(
    "you add the means times the bias gradient; they are subtracted from the weight gradient",
    ("grad_weight.sub_(", "grad_weight.add_("),
)
