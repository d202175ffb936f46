"""The coefficients of gradient descent in the eigenbasis after each step."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.checks.quadratic.shared import random_hessian, random_spectrum
from optdl.quadratic import gd_coefficients

exercise = Exercise("L1-15", gd_coefficients)


@exercise.answer
def _(alpha0, eigenvalues, lr, steps):
    tau = np.arange(steps + 1)[:, None]
    return (1 - lr * eigenvalues) ** tau * alpha0


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for n, steps in ((2, 3), (3, 5), (5, 10)):
        eigenvalues = random_spectrum(rng, n)
        lr = float(np.round(rng.uniform(0.6, 0.9) * 2 / eigenvalues.max(), 3))
        alpha0 = rng.normal(size=n).round(2)
        yield {"alpha0": alpha0, "eigenvalues": eigenvalues, "lr": lr, "steps": steps}


@exercise.fact("the rows are gradient descent on ½wᵀHw")
def _(function: Function, rng: np.random.Generator) -> bool:
    H, w = random_hessian(rng, 4), rng.normal(size=4)
    eigenvalues, U = np.linalg.eigh(H)
    rows = np.asarray(function(U.T @ w, eigenvalues, 0.1, 8))
    for row in rows:
        if not np.allclose(U @ row, w, atol=1e-10):
            return False
        w = w - 0.1 * H @ w
    return len(rows) == 9


@exercise.fact("at η = 2/λ the coefficient changes sign at each step and keeps its size")
def _(function: Function, rng: np.random.Generator) -> bool:
    eigenvalue = rng.uniform(1, 3)
    rows = np.asarray(function(np.array([1.0]), np.array([eigenvalue]), 2 / eigenvalue, 5))
    return bool(np.allclose(rows.ravel(), [1, -1, 1, -1, 1, -1]))


exercise.mistake(
    "your steps subtract the same amount each time; each step multiplies the "
    "coefficient, which gives (1 − ηλ)^τ",
    ("(1 - lr * eigenvalues) ** tau", "(1 - tau * lr * eigenvalues)"),
)

exercise.mistake(
    "your decay is exp(−ηλτ), the limit for η → 0; finite steps give (1 − ηλ)^τ",
    ("(1 - lr * eigenvalues) ** tau", "np.exp(-lr * eigenvalues * tau)"),
)

exercise.mistake(
    "your factor is |1 − ηλ|; without the absolute value steep directions change sign",
    ("(1 - lr * eigenvalues)", "np.abs(1 - lr * eigenvalues)"),
)
