"""The student preconditions the two gradients of a dense layer in place."""

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


@exercise.fact("ε₁ is 0.01 and ε₂ is 0.0001 where they are not given")
def _(function: Any, rng: np.random.Generator) -> bool:
    arrays, rows = [rng.uniform(0.1, 2, size=shape) for shape in ((3, 6), (3,), (6,), (6,))], 4
    defaults, given = (
        observe(drivers.change_gradients, function, *arrays, rows, *eps)
        for eps in [(), (1e-2, 1e-4)]
    )
    return all(map(np.allclose, defaults, given))


@exercise.fact("the gradients are those of `optdl.bnp.precondition_dense`")
def _(function: Any, rng: np.random.Generator) -> bool:
    weight, bias, mean = rng.normal(size=(3, 6)), rng.normal(size=3), rng.normal(size=6)
    arrays = weight, bias, mean, rng.uniform(0.1, 2, size=6)
    gradients = observe(drivers.change_gradients, function, *arrays, 4)
    expected = optdl.bnp.precondition_dense(*arrays, 4)
    return all(np.allclose(*pair) for pair in zip(gradients, expected, strict=False))


@exercise.fact("with μ = 0, σ² = 1 and ε₂ = 1 the weight gradient is halved, in float32, too")
def _(function: Any, rng: np.random.Generator) -> bool:
    G_w, G_b = rng.normal(size=(2, 3)).astype(np.float32), rng.normal(size=2).astype(np.float32)
    arrays = G_w, G_b, np.zeros(3, np.float32), np.ones(3, np.float32)
    weight, bias, *_ = observe(drivers.change_gradients, function, *arrays, 3, 0.0, 1.0)
    return np.allclose(weight, G_w / 2) and np.allclose(bias, G_b)


exercise.hints(
    "Which of the four tensors are to change, and which must stay as they are? Which operations in "
    "the formulas can therefore be done in place?",
    r"All products $\mu(j)\,G_b(i)$ together are the `torch.outer` of two vectors, and the sum "
    r"over $j$ is a product of a matrix and a vector. Compute $\tilde\sigma^2$ and $q^2$ as new "
    r"values first.",
    r"In place, subtract the outer product from `grad_weight`, and divide by "
    r"$q^2\,\tilde\sigma^2$. Then, again in place, divide `grad_bias` by $q^2$, and subtract the "
    r"new `grad_weight` times `mean`.",
)

exercise.mistakes(r"""
you compute new tensors, and the gradients stay as they are: `a = a - b` gives the name a to another
tensor; change the tensor itself, with `sub_`, `div_` or `copy_`
    grad_weight.sub_( → grad_weight = grad_weight.sub(
    .div_(q2 * → .div(q2 *
    grad_bias.div_(q2).sub_( → grad_bias = grad_bias.div(q2).sub(
you smooth `var` in place and so spoil the running average, which belongs to the caller; compute a
new tensor
    var + eps1 * var.max() + eps2 → var.add_(eps1 * var.max() + eps2)
your new bias gradient uses the old weight gradient; it uses the new one
    grad_weight.sub_( → old = grad_weight.clone()\n    grad_weight.sub_(
    grad_weight @ → old @
you change the bias gradient before the weight gradient; each needs the other one: the new G_w is
made of the old G_b, and the new G_b of the new G_w
    grad_bias.div_(q2).sub_(grad_weight @ mean) →
    grad_weight.sub_( → grad_bias.div_(q2).sub_(grad_weight @ mean)\n    grad_weight.sub_(
your outer product is transposed, (n, o) in place of (o, n): μ belongs to the columns of the weight
gradient, one for each input
    outer(grad_bias, mean) → outer(mean, grad_bias)
you divide the rows of the weight gradient by the variances; they belong to the columns, one for
each input
    smoothed) → smoothed[:, None])
you divide by the standard deviation; P and Pᵀ divide by it once each, which makes the variance
    smoothed) → smoothed.sqrt())
your q² counts the outputs of the layer; it is max{n/N, 1} with the number n of inputs
    shape[1] → shape[0]
your q² falls below 1 for minibatches that are larger than the layer; it is max{n/N, 1}
    max(grad_weight.shape[1] / batch_size, 1) → grad_weight.shape[1] / batch_size
you divide by q; both gradients are divided by q² = max{n/N, 1}
    batch_size, 1) → batch_size, 1) ** 0.5
your q² is a whole number, because `//` rounds n/N down; divide with `/`
    / batch_size → // batch_size
you divide the weight gradient by q² once more on its way into the bias; only the old bias gradient
is divided by q²
    grad_bias.div_(q2).sub_(grad_weight @ mean) → grad_bias.sub_(grad_weight @ mean).div_(q2)
you do not divide the bias gradient by q²; both gradients are divided
    bias.div_(q2) → bias
you leave out the largest variance in the floor; σ̃² is σ² + ε₁ max σ² + ε₂
    eps1 * var.max() → eps1
you add the means times the bias gradient; they are subtracted from the weight gradient
    grad_weight.sub_( → grad_weight.add_(
you divide the bias gradient by q² first, and the weight gradient takes in the divided one; the new
G_w is made of the old G_b
    grad_weight.sub_( → grad_bias.div_(q2)\n    grad_weight.sub_(
    grad_bias.div_(q2).sub_(grad_weight → grad_bias.sub_(grad_weight
your quotient is upside down; q² is max{n/N, 1}
    grad_weight.shape[1] / batch_size → batch_size / grad_weight.shape[1]
""")
