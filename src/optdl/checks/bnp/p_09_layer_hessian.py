"""Compute the Hessian of a mean loss with respect to the bias and the weights of one unit."""

from collections.abc import Iterator

import numpy as np

from optdl.bnp import layer_hessian
from optdl.checks.bnp.shared import random_activations
from optdl.checks.exercise import Case, Exercise, Function

exercise = Exercise("P-09", layer_hessian)


@exercise.answer
def _(H, curvatures):
    extended = np.column_stack([np.ones(len(H)), H])
    S = np.diag(curvatures / len(H))
    return extended.T @ S @ extended


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for rows, features in ((3, 1), (4, 3), (7, 2)):
        yield {
            "H": random_activations(rng, rows, features),
            "curvatures": rng.uniform(0.1, 2, size=rows).round(2),
        }


@exercise.fact("a quadratic loss has these second differences")
def _(function: Function, rng: np.random.Generator) -> bool:
    """Compare with second differences of a loss that is quadratic, where they are exact."""
    H, y, curvatures = rng.normal(size=(7, 3)), rng.normal(size=7), rng.uniform(0.1, 2, size=7)
    u, p = rng.normal(size=(2, 4))

    def loss(q: np.ndarray) -> float:
        return float(np.mean(curvatures * (q[0] + H @ q[1:] - y) ** 2) / 2)

    expected = loss(p + u) - 2 * loss(p) + loss(p - u)
    return bool(np.isclose(u @ np.asarray(function(H, curvatures)) @ u, expected))


exercise.hints(
    r"Which row vector, multiplied by $\hat w = [b; w]$, gives the output $a_j = b + w^Th_j$ of "
    r"one example?",
    "Each example contributes its curvature times the outer product of this row with itself. The "
    "Hessian is the mean of these matrices over the minibatch.",
    r"Stack the rows to get $\hat H$. Then multiply three matrices: the transpose of $\hat H$, the "
    r"diagonal matrix of the curvatures divided by the number of rows, and $\hat H$.",
)

exercise.mistakes(r"""
the bias is a parameter too: Ĥ begins with a column of ones
    np.column_stack([np.ones(len(H)), H]) → H
your bias comes last; in Ĥ = [e, H] it comes first
    np.ones(len(H)), H → H, np.ones(len(H))
you use S twice; in Ĥᵀ S Ĥ it stands once
    @ S @ → @ S @ S @
you divide by n, the number of features; S divides by N, the number of examples
    / len(H) → / H.shape[1]
""")
