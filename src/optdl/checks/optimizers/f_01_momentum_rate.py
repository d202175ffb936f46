"""The rate of momentum on a quadratic."""

from collections.abc import Iterator

import numpy as np

from optdl import optimizers
from optdl.checks.exercise import Case, Exercise, Function

exercise = Exercise("F-01", optimizers.momentum_rate, rtol=1e-7)


@exercise.answer
def _(lr, alpha, eigenvalues):
    rates = []
    for e in eigenvalues:
        M = np.array([[1 - lr * e, alpha], [-lr * e, alpha]])
        rates.append(np.max(np.abs(np.linalg.eigvals(M))))
    return np.max(rates)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for lr, alpha, eigenvalues in (
        (0.1, 0.5, [1.0]),  # complex
        (0.05, 0.3, [1.0]),  # real
        (0.2, 0.6, [0.05, 3.0]),  # the smallest eigenvalue decides
        (0.9, 0.1, [0.9, 2.3]),  # the largest, with a negative z
        (1.1, 0.4, [1.0, 0.5, 3.0]),  # divergence
    ):
        noise = rng.uniform(0.98, 1.02, size=len(eigenvalues))
        drawn = (np.array(eigenvalues) * noise).round(4)
        yield {"lr": lr, "alpha": alpha, "eigenvalues": drawn}


@exercise.fact("with η* and α* it is (√κ − 1)/(√κ + 1)")
def _(function: Function, rng: np.random.Generator) -> bool:
    low, high = rng.uniform(0.5, 1.0), rng.uniform(20.0, 40.0)
    best = optimizers.optimal_momentum(low, high)
    rate = function(best.lr, best.alpha, np.linspace(low, high, 5))
    return bool(np.isclose(rate, best.rate, atol=1e-5))  # double roots lose half of the digits


@exercise.fact("with α = 0 it is the largest |1 − ηλ|")
def _(function: Function, rng: np.random.Generator) -> bool:
    eigenvalues = rng.uniform(0.1, 5.0, size=3)
    expected = np.max(np.abs(1 - 0.3 * eigenvalues))
    return bool(np.isclose(function(0.3, 0.0, eigenvalues), expected, rtol=1e-8))


@exercise.mistake("your result is always √α; that is the modulus of complex eigenvalues only")
def _(lr, alpha, eigenvalues):
    return np.sqrt(alpha)


@exercise.mistake(
    "your result is that of gradient descent, |1 − ηλ|; form the 2×2 matrix of c and v"
)
def _(lr, alpha, eigenvalues):
    return np.max(np.abs(1 - lr * np.array(eigenvalues)))


exercise.mistake(
    "you return the factor of the fastest direction; the slowest one decides: take the largest",
    ("np.max(rates", "np.min(rates"),
)

exercise.mistake(
    "you take the real part of z; a complex z shrinks by its modulus |z|",
    ("abs(np.linalg.eigvals(M))", "linalg.eigvals(M).real"),
)

exercise.mistake(
    "you take the norm of the matrix, which bounds one step; the long run is "
    "ruled by its eigenvalues",
    ("max(np.abs(np.linalg.eigvals(M)))", "linalg.norm(M, 2)"),
)

exercise.mistake(
    "your matrix moves c by the old velocity; c moves by the new one, so that "
    "its row is (1 − ηλ, α)",
    (" - lr * e, alpha", ", 1"),
)

exercise.mistake(
    "your gradient has the weight 1 − α; here it is 1: v ← αv − ηλc",
    (
        "M = np.array([[1 - lr * e, alpha], [-lr * e, alpha]])",
        "pull = (1 - alpha) * lr * e\n        M = np.array([[1 - pull, alpha], [-pull, alpha]])",
    ),
)
