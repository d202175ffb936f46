"""Compute the path of AdamW."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from optdl import optimizers
from optdl.checks.exercise import Case, Exercise, Function
from optdl.checks.optimizers.shared import Gradient, objective, random_paths, random_start
from optdl.objectives import constant
from optdl.optimizers import run


def adamw(
    gradient: Gradient,
    start: np.ndarray,
    lr: float,
    beta1: float,
    beta2: float,
    decay: float,
    delta: float,
    steps: int,
) -> np.ndarray:
    """Return every iterate of AdamW."""
    opt = optimizers.AdamW(lr, beta1, beta2, decay=decay, delta=delta)
    return run(opt, gradient, start, steps)


exercise = Exercise("F-05:adamw", adamw)


@exercise.answer
def _(gradient, start, lr, beta1, beta2, decay, delta, steps):
    theta, path = start, [start]
    m, r = np.zeros_like(start), np.zeros_like(start)
    for t in range(1, steps + 1):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        m_hat = m / (1 - beta1**t)
        r_hat = r / (1 - beta2**t)
        theta = (1 - lr * decay) * theta - lr * m_hat / (np.sqrt(r_hat) + delta)
        path.append(theta)
    return np.array(path)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    return random_paths(
        rng,
        lr=(0.2, 0.1, 0.3),
        beta1=(0.5, 0.9, 0.8),
        beta2=(0.75, 0.99, 0.9),
        decay=(0.5, 0.8, 0.3),
        delta=(0.1, 0.3, 0.2),
    )


@exercise.fact("where the gradient is zero, each step multiplies θ by 1 − ηω")
def _(function: Function, rng: np.random.Generator) -> bool:
    start = random_start(rng, 3)
    path = function(partial(constant, np.zeros(3)), start, 0.1, 0.9, 0.99, 0.4, 0.1, 6)
    return bool(np.allclose(path, [0.96**t * start for t in range(7)], rtol=1e-9))


@exercise.fact("with ω = 0 it is Adam")
def _(function: Function, rng: np.random.Generator) -> bool:
    gradient, _ = objective(rng, 2)
    start = random_start(rng, 2)
    expected = run(optimizers.Adam(0.1, 0.8, 0.9, delta=0.1), gradient, start, 6)
    path = function(gradient, start, 0.1, 0.8, 0.9, 0.0, 0.1, 6)
    return bool(np.allclose(path, expected, rtol=1e-9))


exercise.mistake(
    "you add ωθ to the gradient, which is an L2 penalty; here θ shrinks outside the averages",
    ("g = gradient(theta)", "g = gradient(theta) + decay * theta"),
    ("(1 - lr * decay) * theta", "theta"),
)

exercise.mistake(
    "you multiply θ by 1 − ω; the decay is multiplied by η: 1 − ηω",
    ("1 - lr * decay", "1 - decay"),
)

exercise.mistake("your θ grows; it shrinks by 1 − ηω", ("1 - lr * decay", "1 + lr * decay"))

exercise.mistake(
    "you shrink θ after the step of Adam; only the old θ shrinks: (1 − ηω)θ − η m̂/(√r̂ + δ)",
    (
        "theta - lr * m_hat / (np.sqrt(r_hat) + delta)",
        "(theta - lr * m_hat / (np.sqrt(r_hat) + delta))",
    ),
)

exercise.mistake(
    "you divide the decay by √r̂ + δ; it stands outside the quotient",
    ("(1 - lr * decay) * theta - lr * m_hat", "theta - lr * (m_hat + decay * theta)"),
)

exercise.mistake(
    "you take the gradient at the θ that has shrunk; take it at the old θ",
    ("(1 - lr * decay) * theta", "theta"),
    ("g = gradient(theta)", "theta = (1 - lr * decay) * theta\n        g = gradient(theta)"),
)
