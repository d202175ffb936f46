"""Gradient descent in other coordinates, θ = Pz."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from optdl.optimizers.loop import run
from optdl.optimizers.sgd import SGD
from optdl.problems import Problem

__all__ = ["change_of_variable", "preconditioned_descent"]

Vector = Float[np.ndarray, " n"]
Matrix = Float[np.ndarray, "n n"]


def preconditioned_descent(
    gradient: Callable[[Vector], Vector],
    preconditioner: Matrix,
    start: Vector,
    lr: float,
    steps: int,
) -> Float[np.ndarray, "t n"]:
    r"""Return the path of θ = Pz while z takes the steps of gradient descent (Source: P-07).

    .. math:: \theta_{k+1} = \theta_k - \eta\, P P^T\, \nabla L(\theta_k)

    ``gradient`` maps an (n,) array to ∇L there, θ₀ is ``start``, P is ``preconditioner``, and the
    paper writes α for η. Raises ValueError where P is singular.

    >>> P = np.diag([1.0, 0.5])  # makes the curvatures 1 and 4 equal
    >>> preconditioned_descent(lambda w: np.array([1.0, 4.0]) * w, P, np.ones(2), 1.0, steps=1)
    array([[1., 1.],
           [0., 0.]])
    """
    P = _require_preconditioner(preconditioner, len(start))
    return run(SGD(lr), lambda theta: P @ (P.T @ gradient(theta)), start, steps)


def change_of_variable(problem: Problem, preconditioner: Matrix) -> Problem:
    r"""Return the problem in the variable z, where θ = Pz (Source: P-07).

    .. math:: z \mapsto L(Pz), \qquad P^T\, \nabla L(Pz), \qquad P^T\, \nabla^2 L(Pz)\, P

    The condition number of the last matrix determines how fast gradient descent in z converges. A
    singular P raises ValueError.

    >>> from optdl.problems import quadratic
    >>> bowl = change_of_variable(quadratic(np.diag([1.0, 4.0])), np.diag([1.0, 0.5]))
    >>> bowl.hessian(np.zeros(2))
    array([[1., 0.],
           [0., 1.]])
    """
    P = _require_preconditioner(preconditioner, len(problem.start))
    minimum = problem.minimum
    return Problem(
        f"{problem.name}, preconditioned",
        lambda z: problem.value(P @ z),
        lambda z: P.T @ problem.gradient(P @ z),
        lambda z: P.T @ problem.hessian(P @ z) @ P,
        None if minimum is None else np.linalg.solve(P, minimum),
        np.linalg.solve(P, problem.start),
    )


def _require_preconditioner(P: Float[np.ndarray, ...], n: int) -> Matrix:
    if P.shape != (n, n):
        raise ValueError(f"P must have shape ({n}, {n}) for {n} parameters; got {P.shape}")
    if np.linalg.matrix_rank(P) < n:
        raise ValueError(
            "P must be invertible; this one is singular, so θ = Pz does not reach every θ"
        )
    return P
