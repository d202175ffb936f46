"""Compute the path of RMSProp with Nesterov momentum."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from optdl import optimizers
from optdl.checks.exercise import Case, Exercise, Function
from optdl.checks.optimizers.shared import Gradient, objective, random_paths, random_start
from optdl.objectives import constant, times
from optdl.optimizers import run


def rmsprop(
    gradient: Gradient,
    start: np.ndarray,
    lr: float,
    rho: float,
    delta: float,
    alpha: float,
    steps: int,
) -> np.ndarray:
    """Return every iterate of RMSProp with Nesterov momentum; α = 0 is RMSProp alone."""
    return run(optimizers.RMSPropNesterov(lr, rho, alpha, delta=delta), gradient, start, steps)


exercise = Exercise("L1-30, L1-31", rmsprop)


@exercise.answer
def _(gradient, start, lr, rho, delta, alpha, steps):
    theta, path = start, [start]
    r, v = np.zeros_like(start), np.zeros_like(start)
    for _ in range(steps):
        g = gradient(theta + alpha * v)
        r = rho * r + (1 - rho) * g * g
        v = alpha * v - lr / np.sqrt(delta + r) * g
        theta = theta + v
        path.append(theta)
    return np.array(path)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    return random_paths(
        rng,
        lr=(0.1, 0.05, 0.02),
        rho=(0.8, 0.9, 0.7),
        delta=(0.3, 0.2, 0.1),
        alpha=(0.0, 0.9, 0.8),
    )


@exercise.fact("with δ = 0 the first step has the size η/√(1 − ρ) in each parameter")
def _(function: Function, rng: np.random.Generator) -> bool:
    g = rng.uniform(0.5, 5.0, size=3) * np.array([1, -1, 1])
    path = np.asarray(function(partial(constant, g), np.zeros(3), 0.1, 0.75, 0.0, 0.5, 3))
    return bool(np.allclose(path[1], -0.1 * np.sign(g) / 0.5, rtol=1e-9))


@exercise.fact("with δ = 0 the units of the loss do not matter")
def _(function: Function, rng: np.random.Generator) -> bool:
    gradient, _ = objective(rng, 2)
    start = random_start(rng, 2)
    settings = (start, 0.05, 0.8, 0.0, 0.7, 6)
    scaled = function(partial(times, 100, gradient), *settings)
    return bool(np.allclose(function(gradient, *settings), scaled, rtol=1e-9))


exercise.mistake(
    "your δ stands outside the root, as in torch; the lecture has it inside: √(δ + r)",
    ("np.sqrt(delta + r)", "(np.sqrt(r) + delta)"),
)

exercise.mistake(
    "you divide by δ + r; divide by its root, √(δ + r)", ("np.sqrt(delta + r)", "(delta + r)")
)

exercise.mistake(
    "you take the gradient at θ; with Nesterov momentum it is taken at θ + αv",
    ("gradient(theta + alpha * v)", "gradient(theta)"),
)

exercise.mistake(
    "your path is that of RMSProp without momentum; the velocity keeps αv",
    ("gradient(theta + alpha * v)", "gradient(theta)"),
    ("alpha * v - lr", "-lr"),
)

exercise.mistake(
    "you divide the old velocity by the root, too; only the gradient is divided",
    ("alpha * v - lr / np.sqrt(delta + r) * g", "(alpha * v - lr * g) / np.sqrt(delta + r)"),
)

exercise.mistake(
    "your new square lacks its weight; r ← ρr + (1 − ρ) g ⊙ g", ("(1 - rho) * g * g", "g * g")
)

exercise.mistake(
    "your r is the sum of all squares, as in AdaGrad; here it is ρr + (1 − ρ) g ⊙ g",
    ("rho * r + (1 - rho) * g * g", "r + g * g"),
)

exercise.mistake(
    "you divide r by 1 − ρᵗ, as Adam does; RMSProp does not correct the bias",
    ("for _ in range(steps)", "for t in range(1, steps + 1)"),
    ("delta + r", "delta + r / (1 - rho**t)"),
)
