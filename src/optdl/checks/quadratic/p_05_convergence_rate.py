"""The factor by which gradient descent multiplies the error in the slowest direction."""

import numpy as np

from optdl.checks.exercise import Exercise
from optdl.checks.quadratic.shared import random_hessian, spectrum
from optdl.quadratic import convergence_rate

exercise = Exercise("P-05", convergence_rate)


@exercise.cases
def _(rng):
    for low, high in ((0.1, 0.45), (0.85, 0.99), (1.05, 1.5)):
        eigenvalues = spectrum(rng, int(rng.integers(2, 7)))
        lr = float(np.round(rng.uniform(low, high) * 2 / eigenvalues.max(), 3))
        yield {"lr": lr, "eigenvalues": eigenvalues}
    # eigenvalues so close that every direction overshoots
    close = rng.uniform(1.0, 1.2, size=rng.integers(1, 5)).round(3)
    yield {"lr": round(float(rng.uniform(1.2, 1.6)), 2), "eigenvalues": close}


@exercise.fact("the rate is the largest singular value of I − ηH")
def _(function, rng):
    H, lr = random_hessian(rng, 4), rng.uniform(0.1, 1.0)
    norm = np.linalg.norm(np.eye(4) - lr * H, ord=2)
    return np.isclose(function(lr, np.linalg.eigvalsh(H)), norm, rtol=1e-9)


exercise.help(r"""
1. If the start differs from the minimum along a single eigenvector, by what factor does one step
   multiply the distance? Which eigenvector is the worst one to start along?
2. Along $u_i$ it is $|1-\eta\lambda_i|$; a mixture is never worse than the worst direction.
3. Compute the factors of all eigenvalues as one array, and reduce it to that of the worst start.
you look only at λ_min; at a large learning rate λ_max is the slower direction
    np.abs(1.0 - lr * eigenvalues).max() → abs(1 - lr * np.min(eigenvalues))
you look only at λ_max; at a small learning rate λ_min is the slower direction
    np.abs(1.0 - lr * eigenvalues).max() → abs(1 - lr * np.max(eigenvalues))
your maximum ignores the sign; a factor of −0.9 is as slow as 0.9: use |1 − ηλ|
    np.abs(1.0 - lr * eigenvalues) → (1 - lr * eigenvalues)
you take the fastest direction; the slowest direction determines the rate
    eigenvalues).max() → eigenvalues).min()
you take the first and the last eigenvalue for λ_min and λ_max; they come in any order
    lr * eigenvalues → lr * eigenvalues[[0, -1]]
""")
