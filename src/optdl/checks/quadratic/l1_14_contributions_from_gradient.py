"""What each eigendirection adds to the loss, where the gradient is known and the minimum not."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.checks.quadratic.shared import random_hessian
from optdl.quadratic import contributions_from_gradient

exercise = Exercise("L1-14", contributions_from_gradient)


@exercise.answer
def _(hessian, gradient):
    eigenvalues, U = np.linalg.eigh(hessian)
    slopes = U.T @ gradient
    return 0.5 * slopes**2 / eigenvalues


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for n in (2, 3, 5):
        yield {"hessian": random_hessian(rng, n), "gradient": rng.normal(size=n)}


@exercise.fact("at w the terms add up to J(w) − J(w*)")
def _(function: Function, rng: np.random.Generator) -> bool:
    H, displacement = random_hessian(rng, 6), rng.normal(size=6)
    above = 0.5 * displacement @ H @ displacement
    return bool(np.isclose(np.sum(function(H, H @ displacement)), above, rtol=1e-9))


@exercise.fact("a gradient along one eigenvector fills one term")
def _(function: Function, rng: np.random.Generator) -> bool:
    H = random_hessian(rng, 4)
    eigenvalues, eigenvectors = np.linalg.eigh(H)
    terms = function(H, 3.0 * eigenvectors[:, 2])
    return bool(np.allclose(terms, 4.5 / eigenvalues * (np.arange(4) == 2), atol=1e-9))


exercise.hints(
    r"The gradient of a quadratic is $g=H(w-w^*)$. What does $u_i^Tg$ become if you insert "
    r"$w-w^*=\sum_j\alpha_ju_j$ and use $Hu_j=\lambda_ju_j$?",
    r"It becomes $\lambda_i\alpha_i$. Solve for $\alpha_i$, insert it into "
    r"$\tfrac12\lambda_i\alpha_i^2$, and simplify.",
    "Compute eigenvalues and eigenvectors with `np.linalg.eigh`. One matrix product gives all "
    "numbers $u_i^Tg$; the rest is a square and a quotient, entry by entry.",
)

exercise.mistakes(r"""
you treat the entries of the gradient as α; they are λα, so divide by λ where the formula of the
lesson multiplies
    / eigenvalues → * eigenvalues
your α is right and its square too, but the term is ½λα²: one factor λ is missing
    / eigenvalues → / eigenvalues**2
you read the eigenvectors as rows; eigh puts them in columns, so the slopes are Uᵀg
    U.T @ gradient → U @ gradient
you pair the eigenvalues with the coordinates of the gradient; pair them with the slopes Uᵀg along
the eigenvectors
    U.T @ gradient → gradient
your terms lack the factor ½ of ½λα²
    0.5 * →
""")
