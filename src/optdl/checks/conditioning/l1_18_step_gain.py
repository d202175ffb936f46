"""The change of the loss that the quadratic model predicts for a step."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.conditioning.shared import random_positive
from optdl.checks.exercise import Case, Exercise, Function
from optdl.conditioning import step_gain

exercise = Exercise("L1-18:gain", step_gain)


@exercise.answer
def _(gradient, hessian, lr):
    return -lr * gradient @ gradient + 0.5 * lr**2 * gradient @ hessian @ gradient


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for n in (1, 2, 3):
        yield {
            "gradient": rng.normal(size=n).round(1) + 0.05,
            "hessian": random_positive(rng, n).round(1) + np.eye(n),
            "lr": round(float(rng.uniform(0.1, 0.9)), 2),
        }


@exercise.fact("the prediction is exact on a quadratic")
def _(function: Function, rng: np.random.Generator) -> bool:
    H, w = random_positive(rng, 3), rng.normal(size=3)
    after = w - 0.3 * H @ w
    return bool(np.isclose(function(H @ w, H, 0.3), after @ H @ after / 2 - w @ H @ w / 2))


exercise.mistake("your curvature term lacks its factor ½; it is ½η² gᵀHg", ("0.5 * ", ""))

exercise.mistake("your curvature term has η; it has η²", ("lr**2", "lr"))

exercise.mistake(
    "your linear term is positive; a step against the gradient lowers the loss, by −η gᵀg",
    ("-lr", "lr"),
)

exercise.mistake(
    "you take ‖g‖; the linear term has gᵀg = ‖g‖²",
    ("gradient @ gradient", "np.linalg.norm(gradient)"),
)

exercise.mistake(
    "your prediction has no curvature term; add ½η² gᵀHg",
    (" + 0.5 * lr**2 * gradient @ hessian @ gradient", ""),
)
