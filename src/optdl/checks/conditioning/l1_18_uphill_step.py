"""The learning rate beyond which a step goes uphill in the quadratic model."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.conditioning.shared import random_positive
from optdl.checks.exercise import Case, Exercise, Function
from optdl.conditioning import uphill_step

exercise = Exercise("L1-18:uphill", uphill_step)


@exercise.answer
def _(gradient, hessian):
    curvature = gradient @ hessian @ gradient
    return 2 * gradient @ gradient / curvature if curvature > 0 else np.inf


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    yield {"gradient": np.array([2.0]), "hessian": np.array([[5.0]])}
    yield {"gradient": np.array([1.0, 2.0]), "hessian": np.array([[1.0, 0.0], [0.0, -3.0]])}
    for n in (2, 3, 4):
        yield {
            "gradient": rng.normal(size=n).round(1) + 0.05,
            "hessian": random_positive(rng, n).round(1),
        }
    yield {"gradient": np.ones(2), "hessian": np.diag([1.0, -1.0])}
    yield {"gradient": np.zeros(2), "hessian": np.eye(2)}
    yield {"gradient": np.array([0.5, 0.0, 0.0]), "hessian": np.eye(3)}


@exercise.fact("there the predicted gain is zero")
def _(function: Function, rng: np.random.Generator) -> bool:
    g, H = rng.normal(size=4), random_positive(rng, 4)
    rate = function(g, H)
    return bool(np.isclose(-rate * g @ g + rate**2 * g @ H @ g / 2, 0))


exercise.mistake(
    "you return the best learning rate along g; a step goes uphill beyond twice that",
    ("2 * ", ""),
)

exercise.mistake(
    "you return 2/λ_max, the bound for a gradient along the steepest eigenvector; for this "
    "gradient it is 2gᵀg/gᵀHg",
    ("2 * gradient @ gradient / curvature", "2 / np.linalg.eigvalsh(hessian)[-1]"),
)

exercise.mistake(
    "your ratio is upside down; gᵀg stands above and gᵀHg below",
    ("gradient @ gradient / curvature", "curvature / (gradient @ gradient)"),
)

exercise.mistake(
    "you divide by gᵀHg whatever its sign is; where gᵀHg ≤ 0 the quadratic model falls for "
    "every η, so return np.inf",
    (" if curvature > 0 else np.inf", ""),
)
