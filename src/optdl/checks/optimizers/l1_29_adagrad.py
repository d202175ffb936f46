"""Compute the path of AdaGrad."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from optdl import optimizers
from optdl.checks.exercise import Case, Exercise, Function
from optdl.checks.optimizers.shared import Gradient, random_paths
from optdl.objectives import constant
from optdl.optimizers import run


def adagrad(
    gradient: Gradient, start: np.ndarray, lr: float, delta: float, steps: int
) -> np.ndarray:
    """Return every iterate of AdaGrad."""
    return run(optimizers.AdaGrad(lr, delta=delta), gradient, start, steps)


exercise = Exercise("L1-29", adagrad)


@exercise.answer
def _(gradient, start, lr, delta, steps):
    theta, r, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        r = r + g * g
        theta = theta - lr / (delta + np.sqrt(r)) * g
        path.append(theta)
    return np.array(path)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    return random_paths(rng, lr=(0.2, 0.1, 0.3), delta=(0.1, 0.3, 0.2))


@exercise.fact("under a constant gradient g step t is −ηg/(δ + |g|√t)")
def _(function: Function, rng: np.random.Generator) -> bool:
    g = rng.uniform(0.5, 3.0, size=3) * np.array([1, -1, 1])
    path = np.asarray(function(partial(constant, g), np.zeros(3), 0.2, 0.1, 10))
    t = np.arange(1, 11)[:, None]
    expected = -0.2 * g / (0.1 + np.abs(g) * np.sqrt(t))
    return bool(np.allclose(np.diff(path, axis=0), expected, rtol=1e-9))


@exercise.fact("no entry depends on another")
def _(function: Function, rng: np.random.Generator) -> bool:
    g = rng.normal(size=3)
    together = np.asarray(function(partial(constant, g), np.zeros(3), 0.2, 0.1, 5))
    alone = np.asarray(function(partial(constant, g[:1]), np.zeros(1), 0.2, 0.1, 5))
    return bool(np.allclose(together[:, :1], alone, rtol=1e-9))


exercise.mistake(
    "your δ stands inside the root; in AdaGrad it stands outside: δ + √r",
    ("(delta + np.sqrt(r))", "np.sqrt(delta + r)"),
)

exercise.mistake("you divide by δ + r; divide by δ + √r, with the root of r", ("np.sqrt(r)", "r"))

exercise.mistake(
    "you divide by the sum of the earlier steps; add the newest g ⊙ g first",
    (
        "r = r + g * g\n        theta = theta - lr / (delta + np.sqrt(r)) * g",
        "theta = theta - lr / (delta + np.sqrt(r)) * g\n        r = r + g * g",
    ),
)

exercise.mistake(
    "your r is the newest square alone; add to the r of the last step",
    ("r = r + g * g", "r = g * g"),
)

exercise.mistake(
    "your r is the mean of the squares; in AdaGrad it is their sum",
    ("for _ in range(steps)", "for t in range(1, steps + 1)"),
    ("np.sqrt(r)", "np.sqrt(r / t)"),
)

exercise.mistake(
    "your r is the sum of |g|; it is the sum of the squares, g ⊙ g", ("g * g", "np.abs(g)")
)

exercise.mistake(
    "all your parameters share one learning rate; each entry has a sum of its own, of g ⊙ g",
    ("g * g", "g @ g"),
)
