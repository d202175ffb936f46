"""The factor by which gradient descent multiplies the error in the slowest direction."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.checks.quadratic.shared import random_hessian, random_spectrum
from optdl.quadratic import convergence_rate

exercise = Exercise("P-05", convergence_rate)


@exercise.answer
def _(lr, eigenvalues):
    return np.max(np.abs(1 - lr * eigenvalues))


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    # short of the best step, past it, and past the limit: each branch rules somewhere
    for n, share in ((2, 0.5), (2, 0.9), (4, 0.3), (4, 0.95), (5, 1.2)):
        eigenvalues = random_spectrum(rng, n)
        lr = float(np.round(share * 2 / eigenvalues.max(), 3))
        yield {"lr": lr, "eigenvalues": eigenvalues}
    # eigenvalues so close that every direction overshoots
    close = rng.uniform(1.0, 1.2, size=3).round(3)
    yield {"lr": 1.5, "eigenvalues": close}


@exercise.fact("the rate is the largest singular value of I − ηH")
def _(function: Function, rng: np.random.Generator) -> bool:
    H, lr = random_hessian(rng, 4), rng.uniform(0.1, 1.0)
    norm = np.linalg.norm(np.eye(4) - lr * H, ord=2)
    return bool(np.isclose(function(lr, np.linalg.eigvalsh(H)), norm, rtol=1e-9))


@exercise.fact("the learning rate 0 has the rate 1")
def _(function: Function, rng: np.random.Generator) -> bool:
    return bool(np.isclose(function(0.0, random_spectrum(rng, 3)), 1.0))


exercise.hints(
    "If the start differs from the minimum along a single eigenvector, by what factor does one "
    "step multiply the distance? Which eigenvector is the worst one to start along?",
    r"Along $u_i$ the distance is multiplied by $|1-\eta\lambda_i|$. A start that mixes directions "
    r"is never worse than the worst single direction.",
    "Compute the factors of all eigenvalues as one array, and reduce this array to the number that "
    "belongs to the worst start.",
)

exercise.mistakes(r"""
you look only at λ_min; at a large learning rate λ_max is the slower direction
    np.max(np.abs(1 - lr * eigenvalues)) → abs(1 - lr * np.min(eigenvalues))
you look only at λ_max; at a small learning rate λ_min is the slower direction
    np.max(np.abs(1 - lr * eigenvalues)) → abs(1 - lr * np.max(eigenvalues))
your maximum ignores the sign; a factor of −0.9 is as slow as 0.9: use |1 − ηλ|
    np.abs(1 - lr * eigenvalues) → 1 - lr * eigenvalues
you take the fastest direction; the slowest direction determines the rate
    np.max → np.min
you average the directions; after many steps only the slowest is left
    np.max → np.mean
""")
