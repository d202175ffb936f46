"""Compute the convergence rate of momentum on a quadratic."""

from collections.abc import Iterator

import numpy as np

from optdl import optimizers
from optdl.checks.exercise import Case, Exercise, Function

exercise = Exercise("F-01", optimizers.momentum_rate, rtol=1e-7)


@exercise.answer
def _(lr, alpha, eigenvalues):
    rates = []
    for e in eigenvalues:
        a = lr * e
        M = np.array([[1 - a, alpha], [-a, alpha]])
        rates.append(np.max(np.abs(np.linalg.eigvals(M))))
    return np.max(rates)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for lr, alpha, eigenvalues in (
        (0.9, 0.5, [1.0]),  # complex
        (0.05, 0.3, [1.0]),  # real
        (0.1, 0.1, [4.0, 0.5]),  # the smallest eigenvalue decides
        (0.9, 0.1, [0.9, 2.3]),  # the largest, with a negative z
        (1.1, 0.4, [1.0, 0.5, 3.0]),  # divergence
        (0.3, 0.0, [1.0, 2.5]),  # the first z that NumPy returns is not the largest
    ):
        noise = rng.uniform(0.98, 1.02, size=len(eigenvalues))
        drawn = (np.array(eigenvalues) * noise).round(4)
        yield {"lr": lr, "alpha": alpha, "eigenvalues": drawn}


@exercise.fact("with the best η and α it is (√κ − 1)/(√κ + 1)")
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


exercise.hints(
    "How can you write the new $c$ in terms of the old $c$ and the old $v$ alone?",
    "Substitute the new $v$ into the second line. The coefficients of the old $c$ and $v$ there "
    "are the first row of the matrix; the coefficients in the first line are the second row.",
    r"For each $\lambda$, compute the eigenvalues of its matrix with `np.linalg.eigvals`, and keep "
    r"the larger modulus. Return the largest of these moduli over all $\lambda$.",
)

exercise.mistakes(r"""
your result is always √α; that is the modulus of complex eigenvalues only
    np.max(np.abs(np.linalg.eigvals(M))) → np.sqrt(alpha)
your result is that of gradient descent, |1 − ηλ|; form the 2×2 matrix of c and v
    np.max(np.abs(np.linalg.eigvals(M))) → abs(1 - a)
you return the factor of the fastest direction; the slowest one decides, so take the largest
    return np.max(rates) → return np.min(rates)
you use the smallest λ alone; the direction of the largest λ may be the slowest one
    for e in eigenvalues → for e in [np.min(eigenvalues)]
you take the real part of z; a complex z shrinks by its modulus |z|
    np.abs(np.linalg.eigvals(M)) → np.linalg.eigvals(M).real
you take the norm of the matrix, which bounds one step; its eigenvalues rule the long run
    np.max(np.abs(np.linalg.eigvals(M))) → np.linalg.norm(M, 2)
your matrix moves c by the old velocity; c moves by the new one, so its row is (1 − ηλ, α)
    [1 - a, alpha] → [1, 1]
your gradient has the weight 1 − α; here its weight is 1: v ← αv − ηλc
    a = lr * e → a = (1 - alpha) * lr * e
""")
