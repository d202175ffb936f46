"""The product of a Hessian and a vector, by a central difference of two gradients."""

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
            "step": round(float(rng.uniform(0.1, 0.3)), 2),
        }


@exercise.fact("it is exact where the gradient is linear")
def _(function: Function, rng: np.random.Generator) -> bool:
    H, w, v = random_positive(rng, 4), rng.normal(size=4), rng.normal(size=4)
    return bool(np.allclose(function(partial(linear, H), w, v, 0.7), H @ v))


exercise.mistake(
    "you take a one-sided difference, whose error is of order s; use w + sv and w − sv",
    ("gradient(w - step * v)", "gradient(w)"),
    ("/ (2 * step)", "/ step"),
)

exercise.mistake(
    "you divide by s; the two points are 2s apart, so divide by 2s", ("/ (2 * step)", "/ step")
)

exercise.mistake(
    "you return the difference of the gradients; divide it by 2s", (" / (2 * step)", "")
)

exercise.mistake(
    "you move along all axes at once; move along v",
    ("gradient(w + step * v) - gradient(w - step * v)", "gradient(w + step) - gradient(w - step)"),
    ("/ (2 * step)", "/ (2 * step) * v"),
)
