"""Compute the path of AdaDelta."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from optdl import optimizers
from optdl.checks.exercise import Case, Exercise, Function
from optdl.checks.optimizers.shared import Gradient, random_paths
from optdl.objectives import constant
from optdl.optimizers import run


def adadelta(
    gradient: Gradient, start: np.ndarray, lr: float, rho: float, delta: float, steps: int
) -> np.ndarray:
    """Return every iterate of AdaDelta."""
    return run(optimizers.AdaDelta(lr, rho, delta=delta), gradient, start, steps)


exercise = Exercise("L2-05", adadelta)


@exercise.answer
def _(gradient, start, lr, rho, delta, steps):
    theta, path = start, [start]
    r, d = np.zeros_like(start), np.zeros_like(start)
    for _ in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g * g
        change = -np.sqrt(delta + d) / np.sqrt(delta + r) * g
        d = rho * d + (1 - rho) * change * change
        theta = theta + lr * change
        path.append(theta)
    return np.array(path)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    return random_paths(rng, lr=(0.6, 0.5, 0.8), rho=(0.8, 0.9, 0.7), delta=(0.1, 0.2, 0.05))


@exercise.fact("with η = δ = 1, ρ = ½ and g = √2 its first two steps are −1 and −√1.2")
def _(function: Function, rng: np.random.Generator) -> bool:
    # r = 1, 1½ and Δ² = (1 + 0)/2 · 2 = 1, then (1 + ½)/2½ · 2 = 6/5
    path = function(partial(constant, np.array([2**0.5])), np.zeros(1), 1.0, 0.5, 1.0, 2)
    return bool(np.allclose(np.ravel(path), [0, -1, -1 - 1.2**0.5], rtol=1e-9))


@exercise.fact("without δ the units of the loss do not matter")
def _(function: Function, rng: np.random.Generator) -> bool:
    g = rng.uniform(1, 3, size=2)
    small = function(partial(constant, g), np.zeros(2), 1.0, 0.9, 1e-18, 6)
    large = function(partial(constant, 1000 * g), np.zeros(2), 1.0, 0.9, 1e-18, 6)
    return bool(np.allclose(small, large, rtol=1e-6, atol=0))


exercise.mistake(
    "you divide by the r of the step before; update r first, then compute Δ",
    (
        "r = rho * r + (1 - rho) * g * g\n"
        "        change = -np.sqrt(delta + d) / np.sqrt(delta + r) * g",
        "change = -np.sqrt(delta + d) / np.sqrt(delta + r) * g\n"
        "        r = rho * r + (1 - rho) * g * g",
    ),
)

exercise.mistake(
    "you update d before you step; the step Δ is made with the old d",
    ("theta + lr * change", "theta - lr * np.sqrt(delta + d) / np.sqrt(delta + r) * g"),
)

exercise.mistake(
    "your d is never updated; it averages the squares of the steps",
    ("\n        d = rho * d + (1 - rho) * change * change", ""),
)

exercise.mistake(
    "your d averages the squares of ηΔ; it averages those of Δ, before the multiplication by η",
    ("change = -np.sqrt", "change = -lr * np.sqrt"),
    ("theta + lr * change", "theta + change"),
)

exercise.mistake(
    "your quotient is inverted; √(δ + d) is its numerator, √(δ + r) its denominator",
    ("np.sqrt(delta + d) / np.sqrt(delta + r)", "np.sqrt(delta + r) / np.sqrt(delta + d)"),
)

exercise.mistake(
    "your quotient lacks the roots; it is √(δ + d) over √(δ + r)",
    ("np.sqrt(delta + d) / np.sqrt(delta + r)", "(delta + d) / (delta + r)"),
)

exercise.mistake(
    "your δ stands outside the roots; here it stands inside both",
    ("np.sqrt(delta + d) / np.sqrt(delta + r)", "(np.sqrt(d) + delta) / (np.sqrt(r) + delta)"),
)
