"""What each eigendirection adds to the loss, where the gradient is known and the minimum not."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.quadratic.shared import random_hessian
from optdl.quadratic import contributions_from_gradient


@answer_to("L1-14", contributions_from_gradient)
def exercise(hessian, gradient):
    eigenvalues, U = np.linalg.eigh(hessian)
    slopes = U.T @ gradient
    return 0.5 * slopes**2 / eigenvalues


@exercise.cases
def _(rng):
    for low, high in ((1, 2), (2, 4), (4, 8)):
        n = int(rng.integers(low, high))
        yield {"hessian": random_hessian(rng, n), "gradient": rng.normal(size=n)}


@exercise.fact("at w the terms add up to J(w) − J(w*)")
def _(function, rng):
    H, displacement = random_hessian(rng, 6), rng.normal(size=6)
    above = 0.5 * displacement @ H @ displacement
    return np.isclose(np.sum(function(H, H @ displacement)), above, rtol=1e-9)


exercise.help(r"""
1. What does $u_i^Tg$ become with $w-w^*=\sum_j\alpha_ju_j$ and $Hu_j=\lambda_ju_j$?
2. It is $\lambda_i\alpha_i$. Insert $\alpha_i$ into $\tfrac12\lambda_i\alpha_i^2$, and simplify.
3. `np.linalg.eigh` and one matrix product give all $u_i^Tg$; then a square and a quotient.
you treat the gradient as α; it is λα, so divide by λ where the formula of the lesson multiplies
    / eigenvalues → * eigenvalues
you read the eigenvectors as rows; eigh puts them in columns, so the slopes are Uᵀg
    U.T @ gradient → U @ gradient
you pair the eigenvalues with the coordinates of the gradient; pair them with the slopes Uᵀg
    U.T @ gradient → gradient
""")
