"""Compute the path of Adam."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from optdl import optimizers
from optdl.checks.exercise import Case, Exercise, Function
from optdl.checks.optimizers.shared import Gradient, objective, random_paths, random_start
from optdl.objectives import constant
from optdl.optimizers import run


def adam(
    gradient: Gradient,
    start: np.ndarray,
    lr: float,
    beta1: float,
    beta2: float,
    delta: float,
    steps: int,
) -> np.ndarray:
    """Return every iterate of Adam."""
    return run(optimizers.Adam(lr, beta1, beta2, delta=delta), gradient, start, steps)


exercise = Exercise("L2-06", adam)


@exercise.answer
def _(gradient, start, lr, beta1, beta2, delta, steps):
    theta, path = start, [start]
    m, r = np.zeros_like(start), np.zeros_like(start)
    for t in range(1, steps + 1):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        m_hat = m / (1 - beta1**t)
        r_hat = r / (1 - beta2**t)
        theta = theta - lr * m_hat / (np.sqrt(r_hat) + delta)
        path.append(theta)
    return np.array(path)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    return random_paths(
        rng,
        lr=(0.2, 0.1, 0.3),
        beta1=(0.5, 0.9, 0.8),
        beta2=(0.75, 0.99, 0.9),
        delta=(0.1, 0.3, 0.2),
    )


@exercise.fact(
    "with δ = 0 and a constant gradient every step has the size η, from the first one on"
)
def _(function: Function, rng: np.random.Generator) -> bool:
    g = rng.uniform(0.1, 10, size=3) * np.array([1, -1, 1])
    path = np.asarray(function(partial(constant, g), np.zeros(3), 0.1, 0.9, 0.999, 0.0, 6))
    return bool(np.allclose(np.diff(path, axis=0), -0.1 * np.sign(g), rtol=1e-7))


@exercise.fact("with δ = β₁ = β₂ = 0 each step is −η times the sign of the gradient")
def _(function: Function, rng: np.random.Generator) -> bool:
    gradient, _ = objective(rng, 2)
    path = np.asarray(function(gradient, random_start(rng, 2), 0.1, 0.0, 0.0, 0.0, 4))
    signs = np.sign([gradient(theta) for theta in path[:-1]])
    return bool(np.allclose(np.diff(path, axis=0), -0.1 * signs, rtol=1e-7))


exercise.mistake(
    "you correct the bias of neither average; divide m by 1 − β₁ᵗ and r by 1 − β₂ᵗ",
    (" / (1 - beta1**t)", ""),
    (" / (1 - beta2**t)", ""),
)

exercise.mistake(
    "you do not correct the bias of r; divide it by 1 − β₂ᵗ", (" / (1 - beta2**t)", "")
)

exercise.mistake(
    "you do not correct the bias of m; divide it by 1 − β₁ᵗ", (" / (1 - beta1**t)", "")
)

exercise.mistake(
    "your t counts from 0, so the first step divides by 1 − β⁰ = 0; it counts from 1",
    ("range(1, steps + 1)", "range(steps)"),
)

exercise.mistake(
    "your t is one too large; it is 1 in the first step",
    ("range(1, steps + 1)", "range(2, steps + 2)"),
)

exercise.mistake(
    "you keep m̂ and r̂ for the next step; keep m and r, which are not corrected",
    ("m_hat = m /", "m = m_hat = m /"),
    ("r_hat = r /", "r = r_hat = r /"),
)

exercise.mistake(
    "your δ stands inside the root; in Adam it stands outside: √r̂ + δ",
    ("(np.sqrt(r_hat) + delta)", "np.sqrt(r_hat + delta)"),
)

exercise.mistake(
    "your β is the weight of the new gradient, as in the second lecture; here it is that of the "
    "old average",
    ("beta1 * m + (1 - beta1) * g", "(1 - beta1) * m + beta1 * g"),
    ("beta2 * r + (1 - beta2) * g * g", "(1 - beta2) * r + beta2 * g * g"),
)
