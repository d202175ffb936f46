"""Compute the path of gradient descent with momentum."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from optdl import optimizers
from optdl.checks.exercise import Case, Exercise, Function
from optdl.checks.optimizers.shared import Gradient, random_paths
from optdl.objectives import constant
from optdl.optimizers import run


def momentum(
    gradient: Gradient, start: np.ndarray, lr: float, alpha: float, steps: int
) -> np.ndarray:
    """Return every iterate of gradient descent with momentum."""
    return run(optimizers.Momentum(lr, alpha), gradient, start, steps)


exercise = Exercise("L1-26", momentum)


@exercise.answer
def _(gradient, start, lr, alpha, steps):
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        v = alpha * v - lr * gradient(theta)
        theta = theta + v
        path.append(theta)
    return np.array(path)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    return random_paths(rng, lr=(0.1, 0.05, 0.02), alpha=(0.5, 0.9, 0.8))


@exercise.fact("under a constant gradient g step t is −ηg (1 + α + … + αᵗ⁻¹)")
def _(function: Function, rng: np.random.Generator) -> bool:
    g = rng.normal(size=2)
    path = np.asarray(function(partial(constant, g), np.zeros(2), 0.1, 0.5, 12))
    expected = [-0.1 * g * sum(0.5**k for k in range(t)) for t in range(1, 13)]
    return bool(np.allclose(np.diff(path, axis=0), expected, rtol=1e-9))


@exercise.fact("under a constant gradient g the speed approaches η|g|/(1 − α)")
def _(function: Function, rng: np.random.Generator) -> bool:
    alpha = round(float(rng.uniform(0.4, 0.8)), 2)
    path = np.asarray(function(partial(constant, np.array([-2.0])), np.zeros(1), 0.1, alpha, 200))
    return bool(np.isclose((path[-1] - path[-2])[0], 0.2 / (1 - alpha), rtol=1e-9))


exercise.mistake(
    "you multiply the new gradient by 1 − α; here its weight is 1: v ← αv − ηg",
    ("- lr *", "- (1 - alpha) * lr *"),
)

exercise.mistake(
    "you move by the old velocity; first update v, then move by the new one",
    (
        "v = alpha * v - lr * gradient(theta)\n        theta = theta + v",
        "v, theta = alpha * v - lr * gradient(theta), theta + v",
    ),
)

exercise.mistake(
    "your velocity starts from zero in each step; keep v from one step to the next",
    ("alpha * v - lr", "-lr"),
)

exercise.mistake(
    "you take the gradient at θ + αv, as Nesterov does; momentum takes it at θ",
    ("gradient(theta)", "gradient(theta + alpha * v)"),
)
