"""The way out of a saddle."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.conditioning import escape_steps

exercise = Exercise("F-04", escape_steps)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    yield {"distance": 0.125, "radius": 2.0, "lr": 0.5, "curvature": 2.0}
    yield {"distance": 3.0, "radius": 2.0, "lr": 0.5, "curvature": 1.0}
    for exponent in (-1, -3, -6, -9):
        yield {
            "distance": float(round(rng.uniform(1, 9), 1) * 10.0**exponent),
            "radius": round(float(rng.uniform(1.5, 4)), 1),
            "lr": round(float(rng.uniform(0.05, 0.4)), 2),
            "curvature": round(float(rng.uniform(0.5, 2)), 1),
        }


@exercise.fact("iterating the factor 1 + ηλ gives the same number")
def _(function: Function, rng: np.random.Generator) -> bool:
    distance, lr = 10.0 ** -rng.uniform(2, 8), rng.uniform(0.05, 0.5)
    steps = function(distance, 1.0, lr, 1.5)
    after = distance * (1 + 1.5 * lr) ** np.array([steps - 1, steps])
    return bool(after[0] < 1 <= after[1] * (1 + 1e-9))


@exercise.mistake("each step multiplies the distance by 1 + ηλ; you add a constant amount")
def _(distance, radius, lr, curvature):
    return max(0, int(np.ceil((radius - distance) / (lr * curvature * distance))))


@exercise.mistake("you divide by ηλ, as in continuous time; for steps divide by ln(1 + ηλ)")
def _(distance, radius, lr, curvature):
    return max(0, int(np.ceil(np.log(radius / distance) / (lr * curvature))))


@exercise.mistake("you use the factor 1 − ηλ of a positive eigenvalue; along −λ it is 1 + ηλ")
def _(distance, radius, lr, curvature):
    factor = abs(1 - lr * curvature)
    if factor == 0:
        return 0
    return max(0, int(np.ceil(np.log(radius / distance) / abs(np.log(factor)))))


@exercise.mistake("you round down; after so many steps the distance is still below R, so round up")
def _(distance, radius, lr, curvature):
    return max(0, int(np.floor(np.log(radius / distance) / np.log1p(lr * curvature) - 1e-9)))


@exercise.mistake("you count the steps to the distance 1; the one to reach is R, so take ln(R/d)")
def _(distance, radius, lr, curvature):
    return max(0, int(np.ceil(np.log(1 / distance) / np.log1p(lr * curvature))))


@exercise.mistake(
    "your number is negative where d ≥ R at the start; no step is needed there, so return 0"
)
def _(distance, radius, lr, curvature):
    return int(np.ceil(np.log(radius / distance) / np.log1p(lr * curvature) - 1e-12))
