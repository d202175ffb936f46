"""The path of exact line searches along given directions on a quadratic."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.quadratic.shared import random_hessian
from optdl.quadratic import search_along


@answer_to("L1-16", search_along)
def exercise(hessian, start, directions):
    path = [start]
    for v in directions:
        g = hessian @ path[-1]
        lr = -(g @ v) / (v @ hessian @ v)
        path.append(path[-1] + lr * v)
    return np.array(path)


@exercise.cases
def _(rng):
    for low, high in (((2, 3), (3, 6)), ((4, 3), (7, 4)), ((3, 5), (5, 9))):
        n, steps = rng.integers(low, high).tolist()
        directions = rng.normal(size=(steps, n)) * rng.uniform(0.5, 2, size=(steps, 1))
        yield random_hessian(rng, n), rng.normal(size=n), directions.round(2)


@exercise.fact("each new gradient is orthogonal to the direction that was just searched")
def _(function, rng):
    H, directions = random_hessian(rng, 4), rng.normal(size=(6, 4))
    gradients = np.asarray(function(H, rng.normal(size=4), directions))[1:] @ H
    return np.abs((gradients * directions).sum(axis=1)).max() < 1e-9


exercise.help(r"""
1. Write $J(w+\eta v)$ as a polynomial in $\eta$. What are its linear and its quadratic coefficient?
2. It is $J(w)+\eta\,g^Tv+\tfrac12\eta^2\,v^THv$ with $g=Hw$; set its derivative to zero.
3. For each row, compute $g$ at the last point, $\eta$ as a quotient, and the point that you reach.
your step is gᵀg/vᵀHv, which is right only along v = −g; along v it is −gᵀv/vᵀHv
    -(g @ v) → (g @ g)
your curvature is gᵀHg, that along the gradient; the line runs along v, so it is vᵀHv
    (v @ hessian @ v) → (g @ hessian @ g)
you walk uphill: the derivative at η = 0 is gᵀv, so the minimum is at η = −gᵀv/vᵀHv
    -(g @ v) → (g @ v)
your step divides by vᵀv; that is the minimum only where the curvature along v is 1
    (v @ hessian @ v) → (v @ v)
you keep the gradient of the start; compute g again at each new point
    hessian @ path[-1] → hessian @ path[0]
your step is −gᵀg/vᵀHv; it is −gᵀv/vᵀHv
    (g @ v) → (g @ g)
""")
