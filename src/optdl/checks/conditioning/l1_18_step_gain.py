"""The change of the loss that the quadratic model predicts for a step along any direction."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.quadratic.shared import random_hessian
from optdl.conditioning import step_gain


@answer_to("L1-18:gain", step_gain)
def exercise(gradient, hessian, lr, direction):
    return -lr * gradient @ direction + 0.5 * lr**2 * direction @ hessian @ direction


@exercise.cases
def _(rng):
    for low, high, least, most in ((1, 2, 0.1, 0.9), (2, 4, 1.1, 3.0), (3, 7, 0.1, 0.9)):
        n = int(rng.integers(low, high))
        gradient, direction = rng.normal(size=n).round(1) + 0.05, rng.normal(size=n).round(1) + 0.15
        gradient += 9 * direction * (low == 3)  # the last step goes downhill
        lr = round(float(rng.uniform(least, most)), 2)
        hessian = (random_hessian(rng, n).round(1) + np.eye(n)) * (-1 if low == 2 else 1)
        yield gradient, hessian, lr, direction


@exercise.fact("the prediction is exact on a quadratic")
def _(function, rng):
    H, w, d = random_hessian(rng, 3), rng.normal(size=3), rng.normal(size=3)
    after = w - 0.3 * d
    return np.isclose(function(H @ w, H, 0.3, d), after @ H @ after / 2 - w @ H @ w / 2)


exercise.help(r"""
1. What is the displacement from the old point to the new one, and where does the model contain it?
2. The model changes by $g^Tv+\tfrac12\,v^THv$ with $v=-\eta d$: where does the minus sign remain?
3. Add a term with $\eta$ and an inner product, and one with $\eta^2$ and vector, matrix, vector.
your curvature term lacks its factor ½; it is ½η² dᵀHd
    0.5 * →
your curvature term has η; it has η²
    lr**2 → lr
you scale d to the length 1; the step is −ηd, with d as it is
    return → direction = direction / np.linalg.norm(direction)\n    return
your curvature term is gᵀHd; the step is along d, so it is dᵀHd
    direction @ hessian @ direction → gradient @ hessian @ direction
""")
