"""Compute the path of θ = Pz while z takes the steps of gradient descent."""

import numpy as np

from optdl import optimizers
from optdl.checks.exercise import answer_to
from optdl.checks.optimizers.shared import objective, random_start
from optdl.optimizers import preconditioned_descent, run


@answer_to("P-07", preconditioned_descent)
def exercise(gradient, preconditioner, start, lr, steps):
    P = preconditioner
    theta, path = start, [start]
    for _ in range(steps):
        theta = theta - lr * P @ P.T @ gradient(theta)
        path.append(theta)
    return np.array(path)


@exercise.cases
def _(rng):
    for n, steps in ((2, 3), *rng.integers([[2, 4], [3, 5]], [[3, 7], [5, 9]]).tolist()):
        # far from symmetric, so that P, Pᵀ, PPᵀ and PᵀP differ, and no entry is 0
        drawn = rng.uniform(0.2, 0.6, size=(n, n))
        P = (rng.uniform(1, 2.5) * np.eye(n) + np.triu(drawn) - np.tril(drawn, -1) / 2).round(2)
        lr = round(rng.uniform(0.01, 0.02), 3)
        yield objective(rng, n), P, random_start(rng, n), lr, steps


@exercise.fact("P⁻¹ times the rows is gradient descent in z from P⁻¹ times the start of θ")
def _(function, rng):
    *_, case = exercise.draw(rng)
    gradient, P, start, lr, steps = case.values()
    z = run(optimizers.SGD(lr), lambda z: P.T @ gradient(P @ z), np.linalg.solve(P, start), steps)
    return np.allclose(function(*case.values()), z @ P.T, rtol=1e-8)


exercise.help(r"""
1. With $\theta = Pz$, what does the chain rule give for the gradient with respect to $z$?
2. In $\partial L / \partial z_j = \sum_i P_{ij}\, \partial L / \partial \theta_i$ the sum runs over
   the first index of $P$. Which matrix must therefore multiply $\nabla L(\theta)$?
3. Multiply the step of $z$ by $P$ from the left, and replace $Pz$ by $\theta$. Two matrices then
   multiply the gradient at $\theta$: first the matrix of the chain rule, then $P$.
you multiply by P alone; by the chain rule it is PPᵀ∇L
    P @ P.T @ → P @
your step is that of z, Pᵀ∇L; for θ = Pz it is PPᵀ∇L
    P @ P.T @ → P.T @
you multiply by P twice; the second factor is its transpose, PPᵀ
    P @ P.T @ → P @ P @
your step is (PPᵀ)⁻¹∇L; it is PPᵀ∇L
    P @ P.T @ gradient(theta) → np.linalg.solve(P @ P.T, gradient(theta))
you return z; return θ = Pz
    np.array(path) → np.array(path) @ np.linalg.inv(P).T
your step is PᵀPg; it is PPᵀg, and P need not be symmetric
    P @ P.T → P.T @ P
you take `start` for z; it is the first θ, so z begins at P⁻¹θ
    theta, path = start, [start] → theta, path = P @ start, [P @ start]
""")
