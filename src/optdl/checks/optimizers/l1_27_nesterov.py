"""Compute the path of Nesterov momentum."""

from collections.abc import Iterator

import numpy as np

from optdl import optimizers
from optdl.checks.exercise import Case, Exercise, Function
from optdl.checks.optimizers.shared import Gradient, objective, random_paths, random_start
from optdl.optimizers import run


def nesterov(
    gradient: Gradient, start: np.ndarray, lr: float, alpha: float, steps: int
) -> np.ndarray:
    """Return every iterate of Nesterov momentum."""
    return run(optimizers.Nesterov(lr, alpha), gradient, start, steps)


exercise = Exercise("L1-27", nesterov)


@exercise.answer
def _(gradient, start, lr, alpha, steps):
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        interim = theta + alpha * v
        v = alpha * v - lr * gradient(interim)
        theta = theta + v
        path.append(theta)
    return np.array(path)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    return random_paths(rng, lr=(0.1, 0.05, 0.02), alpha=(0.5, 0.9, 0.8))


@exercise.fact("it evaluates the gradient at θ + αv")
def _(function: Function, rng: np.random.Generator) -> bool:
    asked = []

    def gradient(theta: np.ndarray) -> np.ndarray:
        asked.append(float(theta[0]))
        return np.ones(1)

    function(gradient, np.zeros(1), 1.0, 0.5, 4)
    # the velocities are −1, −1.5, −1.75: θ = 0, −1, −2.5, −4.25 and θ̃ = θ + v/2
    return {0, -1.5, -3.25, -5.125} <= set(np.round(asked, 9).tolist())


@exercise.fact("with α = 0 it is gradient descent")
def _(function: Function, rng: np.random.Generator) -> bool:
    gradient, _ = objective(rng, 2)
    start = random_start(rng, 2)
    expected = run(optimizers.SGD(0.05), gradient, start, 5)
    return bool(np.allclose(function(gradient, start, 0.05, 0.0, 5), expected, rtol=1e-9))


exercise.mistake(
    "you take the gradient at θ; Nesterov takes it at the interim point θ + αv",
    ("gradient(interim)", "gradient(theta)"),
)

exercise.mistake(
    "your interim point is θ + v; the next step keeps only αv of the velocity: θ + αv",
    ("theta + alpha * v", "theta + v"),
)

exercise.mistake(
    "your interim point lies behind, at θ − αv; it lies ahead, at θ + αv",
    ("theta + alpha * v", "theta - alpha * v"),
)

exercise.mistake(
    "you move on from the interim point, so αv counts twice; move from θ itself: θ ← θ + v",
    ("theta = theta + v", "theta = interim + v"),
)

exercise.mistake("your new velocity lacks the old one; it is αv − ηg", ("alpha * v - lr", "-lr"))

exercise.mistake(
    "you return the interim points, which torch calls the parameters; return θ",
    ("path.append(theta)", "path.append(theta + alpha * v)"),
)
