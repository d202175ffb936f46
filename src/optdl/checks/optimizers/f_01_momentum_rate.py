"""Compute the convergence rate of momentum on a quadratic."""

import numpy as np

from optdl import optimizers
from optdl.checks.exercise import answer_to


@answer_to("F-01", optimizers.momentum_rate, rtol=1e-7)
def exercise(lr, alpha, eigenvalues):
    rates = []
    for e in eigenvalues:
        a = lr * e
        M = np.array([[1 - a, alpha], [-a, alpha]])
        rates.append(np.max(np.abs(np.linalg.eigvals(M))))
    return np.max(rates)


@exercise.cases
def _(rng):
    for kind in ("complex", "real", "smallest", "largest", "divergent", "alone"):
        lr, alpha = rng.uniform([0.1, 0.05], [1.2, 0.6]).round(2).tolist()
        alpha *= kind != "alone"
        # between these two values of ηλ both z are complex, of modulus √α
        low, high = (1 - alpha**0.5) ** 2, (1 + alpha**0.5) ** 2
        middle = rng.uniform(low + 0.1 * (high - low), high, size=rng.integers(1, 4))
        products = {
            "complex": middle[:1],
            "real": rng.uniform(0.2, 0.8, size=1) * low,
            "smallest": [*middle, rng.uniform(0.1, 0.6) * low],
            "largest": [*middle, rng.uniform(1.05, 1.2) * high],
            "divergent": rng.uniform(2.2, 4.0, size=1) * (1 + alpha),
            # with α = 0 one z is 0, and NumPy returns it last or first
            "alone": rng.permutation([rng.uniform(0.3, 0.7), rng.uniform(1.5, 2.5)]),
        }[kind]
        eigenvalues = rng.permutation(np.array(products) / lr).round(4)
        yield {"lr": lr, "alpha": alpha, "eigenvalues": eigenvalues}


@exercise.fact("with the best η and α it is (√κ − 1)/(√κ + 1)")
def _(function, rng):
    low, high = rng.uniform(0.5, 1.0), rng.uniform(20.0, 40.0)
    best = optimizers.optimal_momentum(low, high)
    rate = function(best.lr, best.alpha, np.linspace(low, high, 5))
    return bool(np.isclose(rate, best.rate, atol=1e-5))  # double roots lose half of the digits


exercise.help(r"""
1. How can you write the new $c$ in terms of the old $c$ and the old $v$ alone?
2. Substitute the new $v$ into the second line. The coefficients of the old $c$ and $v$ there are
   the first row of the matrix; the coefficients in the first line are the second row.
3. Take `np.linalg.eigvals` of each matrix, and return the largest modulus over all $\lambda$.
your result is always √α; that is the modulus of complex eigenvalues only
    np.max(np.abs(np.linalg.eigvals(M))) → np.sqrt(alpha)
you return the factor of the fastest direction; the slowest one decides, so take the largest
    return np.max(rates) → return np.min(rates)
you use the smallest λ alone; the direction of the largest λ may be the slowest one
    for e in eigenvalues → for e in [np.min(eigenvalues)]
you take the real part of z; a complex z shrinks by its modulus |z|
    np.abs(np.linalg.eigvals(M)) → np.linalg.eigvals(M).real
you take the modulus of the largest z; take the largest modulus, as a negative z may have it
    np.max(np.abs(np.linalg.eigvals(M))) → np.abs(np.max(np.linalg.eigvals(M)))
you take the norm of the matrix, which bounds one step; its eigenvalues rule the long run
    np.max(np.abs(np.linalg.eigvals(M))) → np.linalg.norm(M, 2)
your matrix moves c by the old velocity; c moves by the new one, so its row is (1 − ηλ, α)
    [1 - a, alpha] → [1, 1]
your gradient has the weight 1 − α; here its weight is 1: v ← αv − ηλc
    a = lr * e → a = (1 - alpha) * lr * e
""")
