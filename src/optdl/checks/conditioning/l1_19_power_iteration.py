"""The eigenvalue of a Hessian with the largest absolute value, from gradients alone."""

from functools import partial

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.quadratic.shared import random_hessian
from optdl.conditioning import power_iteration
from optdl.objectives import gradient_of_quadratic, gradient_of_quartic, linear


@answer_to("L1-19", power_iteration)
def exercise(gradient, w, v, step, steps):
    estimates = []
    for _ in range(steps):
        v = v / np.linalg.norm(v)
        Hv = (gradient(w + step * v) - gradient(w - step * v)) / (2 * step)
        estimates.append(v @ Hv)
        v = Hv
    return np.array(estimates)


@exercise.cases
def _(rng):
    n, k = rng.integers([2, 2], [4, 4]).tolist()
    # the eigenvalue with the largest absolute value is negative
    H = random_hessian(rng, n).round(2) - round(float(rng.uniform(5, 7)), 1) * np.eye(n)
    for gradient, size in ((gradient_of_quadratic(H), n), (gradient_of_quartic(rng, k), k)):
        w, v = rng.uniform(0.5, 1, size=size).round(1), rng.normal(size=size).round(1) + 0.05
        yield gradient, w, v, round(float(rng.uniform(0.1, 0.3)), 2), int(rng.integers(3, 6))


@exercise.fact("after many products the estimate is the eigenvalue with the largest absolute value")
def _(function, rng):
    H, w, v = random_hessian(rng, 4), rng.normal(size=4), rng.normal(size=4)
    dominant = np.linalg.eigvalsh(H)[-1]
    estimates = np.asarray(function(partial(linear, -H), w, v, 0.1, 400))
    return np.isclose(estimates[-1], -dominant, rtol=1e-4)


exercise.help(r"""
1. Which component of $v$ along the eigenvectors dominates after many products with $H$, and why?
2. Take two gradients: $Hv\approx\bigl(\nabla J(w+sv)-\nabla J(w-sv)\bigr)/(2s)$.
3. Scale v, compute Hv, append the inner product of both; Hv is the next v.
you do not scale v; make it a unit vector before each product
    / np.linalg.norm(v) →
your estimate is ‖Hv‖, which is never negative; vᵀHv keeps the sign of the eigenvalue
    v @ Hv → np.linalg.norm(Hv)
your estimate is ‖Hv‖² and not vᵀHv; compute vᵀHv before Hv takes the place of v
    v @ Hv → Hv @ Hv
each of your rounds begins with the same v; go on with Hv
    v = Hv →
you take a one-sided difference, whose error is of order s; use w + sv and w − sv
    gradient(w - step * v)) / (2 * step) → gradient(w)) / step
you take differences along the axes, which are not those along v; take the gradients at w ± s v
    Hv = → Hv = sum(v[i] * (gradient(w + step * e) - gradient(w - step * e)) / (2 * step)\n
            for i, e in enumerate(np.eye(len(v)))) + 0 *
""")
