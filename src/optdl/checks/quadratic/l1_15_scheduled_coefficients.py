"""The coefficients of gradient descent in the eigenbasis when the learning rate changes."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.checks.quadratic.shared import random_hessian, random_spectrum
from optdl.quadratic import scheduled_coefficients

exercise = Exercise("L1-15", scheduled_coefficients)


@exercise.answer
def _(alpha0, eigenvalues, lrs):
    rows = [alpha0]
    for lr in lrs:
        rows.append((1 - lr * eigenvalues) * rows[-1])
    return np.array(rows)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for n, steps in ((2, 3), (3, 5), (5, 8)):
        eigenvalues = random_spectrum(rng, n)
        lrs = (rng.uniform(0.3, 1.2, size=steps) * 2 / eigenvalues.max()).round(3)
        yield {"alpha0": rng.normal(size=n).round(2), "eigenvalues": eigenvalues, "lrs": lrs}


@exercise.fact("the rows are gradient descent on ½wᵀHw")
def _(function: Function, rng: np.random.Generator) -> bool:
    H, w = random_hessian(rng, 4), rng.normal(size=4)
    eigenvalues, U = np.linalg.eigh(H)
    lrs = rng.uniform(0.05, 0.2, size=6)
    rows = np.asarray(function(U.T @ w, eigenvalues, lrs))
    for row, lr in zip(rows, [*lrs, 0.0], strict=True):
        if not np.allclose(U @ row, w, atol=1e-10):
            return False
        w = w - lr * H @ w
    return True


@exercise.fact("the learning rates 1/λ, in any order, reach the minimum in n steps")
def _(function: Function, rng: np.random.Generator) -> bool:
    eigenvalues = random_spectrum(rng, 4)
    rows = np.asarray(function(rng.normal(size=4), eigenvalues, 1 / rng.permutation(eigenvalues)))
    return bool(np.allclose(rows[-1], 0, atol=1e-9))


exercise.hints(
    r"By what factor does one step with learning rate $\eta_t$ multiply the coefficient "
    r"$\alpha_i$, and what does the next step start from?",
    r"One step is $\alpha_i\leftarrow(1-\eta_t\lambda_i)\,\alpha_i$, for all $i$ at once and with "
    r"one learning rate.",
    "Begin a list with `alpha0`. In a loop over the learning rates, multiply the last row of the "
    "list, entry by entry, by the factors of this step, and append the result.",
)

exercise.mistakes(r"""
you use one learning rate for all steps; each step has the factor 1 − ηλ with its own η
    1 - lr * → 1 - lrs[0] *
each of your steps starts at alpha0; a step multiplies what the step before has left
    rows[-1] → alpha0
your steps subtract ηλα⁽⁰⁾; each step is proportional to the coefficient it finds, so the factors 1
− ηλ multiply
    (1 - lr * eigenvalues) * rows[-1] → rows[-1] - lr * eigenvalues * alpha0
your factor is |1 − ηλ|; without the absolute value steep directions change sign
    (1 - lr * eigenvalues) → np.abs(1 - lr * eigenvalues)
your factor is exp(−ηλ), the limit for small η; a finite step multiplies by 1 − ηλ
    (1 - lr * eigenvalues) → np.exp(-lr * eigenvalues)
you raise the factor of the newest learning rate to the power of the step; each step has a factor of
its own, and they multiply
    (1 - lr * eigenvalues) * rows[-1] → (1 - lr * eigenvalues) ** len(rows) * alpha0
""")
