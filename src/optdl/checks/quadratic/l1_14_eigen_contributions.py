"""What each eigendirection of the Hessian adds to the loss above its minimum."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.checks.quadratic.shared import random_hessian
from optdl.quadratic import eigen_contributions

exercise = Exercise("L1-14", eigen_contributions)


@exercise.answer
def _(hessian, displacement):
    eigenvalues, U = np.linalg.eigh(hessian)
    alpha = U.T @ displacement
    return 0.5 * eigenvalues * alpha**2


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for n in (2, 3, 5):
        yield {"hessian": random_hessian(rng, n), "displacement": rng.normal(size=n)}


@exercise.fact("the terms add up to ½ dᵀHd")
def _(function: Function, rng: np.random.Generator) -> bool:
    H, d = random_hessian(rng, 6), rng.normal(size=6)
    return bool(np.isclose(np.sum(function(H, d)), 0.5 * d @ H @ d, rtol=1e-9))


@exercise.fact("a displacement along one eigenvector fills one term")
def _(function: Function, rng: np.random.Generator) -> bool:
    H = random_hessian(rng, 4)
    eigenvalues, eigenvectors = np.linalg.eigh(H)
    terms = function(H, 3.0 * eigenvectors[:, 2])
    return bool(np.allclose(terms, 4.5 * eigenvalues * (np.arange(4) == 2), atol=1e-9))


exercise.mistake(
    "you read the eigenvectors as rows; eigh puts them in columns, so α = Uᵀ(w−w*)",
    ("U.T @ displacement", "U @ displacement"),
)

exercise.mistake(
    "you pair the eigenvalues with the coordinates of w−w*; pair them with its "
    "coefficients α = Uᵀ(w−w*) in the eigenbasis",
    ("U.T @ displacement", "displacement"),
)

exercise.mistake(
    "your terms grow like |α|; the loss is quadratic, ½λα²", ("alpha**2", "np.abs(alpha)")
)
