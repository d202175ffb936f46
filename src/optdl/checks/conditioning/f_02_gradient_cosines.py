"""The cosines of the angles between consecutive gradients of a descent."""

from functools import partial

import numpy as np

from optdl.checks.exercise import Exercise
from optdl.checks.quadratic.shared import random_hessian
from optdl.conditioning import gradient_cosines
from optdl.objectives import gradient_of_quadratic, gradient_of_quartic, linear

exercise = Exercise("F-02", gradient_cosines)


@exercise.cases
def _(rng):
    for low, high in ((0.1, 0.4), (0.85, 1.1)):
        n, steps = rng.integers([2, 3], [4, 6]).tolist()
        H = random_hessian(rng, n).round(2)
        lr = round(float(rng.uniform(low, high) * 2 / np.linalg.eigvalsh(H)[-1]), 3)
        yield gradient_of_quadratic(H), rng.normal(size=n).round(1) + 0.05, lr, steps
    n, steps = rng.integers([1, 3], [5, 6]).tolist()
    w, lr = rng.uniform(0.2, 0.4, size=n).round(2), round(float(rng.uniform(0.01, 0.03)), 3)
    yield gradient_of_quartic(rng, n), w, lr, steps


@exercise.fact("on a quadratic, along one eigenvector, each cosine is the sign of 1 − ηλ")
def _(function, rng):
    values, U = np.linalg.eigh(random_hessian(rng, 3))
    H = partial(linear, U * values @ U.T)
    signs = [np.asarray(function(H, U[:, 1], c / values[1], 3)) for c in (0.5, 1.5)]
    return np.allclose(signs, [[1, 1, 1], [-1, -1, -1]])


exercise.help(r"""
1. Which two gradients does each cosine compare, and how many gradients do `steps` cosines need?
2. The cosine of the angle between $g$ and $g'$ is $g^Tg'/(\lVert g\rVert\,\lVert g'\rVert)$. The
   gradient after one step is the gradient before the next, so compute it only once.
3. In each round take the step, keep the old gradient, compute the new one, append the cosine.
you return inner products; divide each by the norms of both gradients
    / (np.linalg.norm(last) * np.linalg.norm(g)) →
you divide by the square of one norm; the gradients before and after a step have different norms
    np.linalg.norm(last) * np.linalg.norm(g) → last @ last
you compare each gradient with the first one; compare it with the gradient before the step
    last, g = g, gradient(w) → last, g = (g, gradient(w)) if not cosines else (last, gradient(w))
each of your steps uses the gradient of the start; use that of the present point
    - lr * g → - lr * (start := g if not cosines else start)
""")
