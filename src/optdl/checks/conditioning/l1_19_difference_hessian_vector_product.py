"""Hessian-vector products."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from optdl.checks.conditioning.shared import random_positive
from optdl.checks.exercise import Case, Exercise, Function
from optdl.conditioning import difference_hessian_vector_product
from optdl.objectives import cubic_gradient, linear, named

exercise = Exercise("L1-19", difference_hessian_vector_product)


@exercise.answer
def _(gradient, w, v, step):
    return (gradient(w + step * v) - gradient(w - step * v)) / (2 * step)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for n in (1, 2, 3):
        A = rng.uniform(0.5, 1.5, size=(n + 1, n)).round(1)
        formula = f"w ↦ A.T @ (A @ w) ** 3, A = {A.tolist()}"
        yield {
            "gradient": named(formula, cubic_gradient, A),
            "w": rng.uniform(0.5, 1, size=n).round(1),
            "v": rng.normal(size=n).round(1) + 0.05,
            "step": 0.2,
        }


@exercise.fact("it is exact where the gradient is linear")
def _(function: Function, rng: np.random.Generator) -> bool:
    H, w, v = random_positive(rng, 4), rng.normal(size=4), rng.normal(size=4)
    return bool(np.allclose(function(partial(linear, H), w, v, 0.7), H @ v))


@exercise.mistake(
    "you take a one-sided difference, whose error is of order s; use w + sv and w − sv"
)
def _(gradient, w, v, step):
    return (gradient(w + step * v) - gradient(w)) / step


exercise.mistake("the two points are 2s apart; divide by 2s", ("(2 * step)", "step"))


@exercise.mistake("divide the difference of the gradients by 2s")
def _(gradient, w, v, step):
    return gradient(w + step * v) - gradient(w - step * v)


@exercise.mistake("move along v, not along all axes at once")
def _(gradient, w, v, step):
    return (gradient(w + step) - gradient(w - step)) / (2 * step) * v
