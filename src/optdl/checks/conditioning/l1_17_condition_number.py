"""The condition number κ* of a matrix, which may be singular."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.conditioning import condition_number

exercise = Exercise("L1-17", condition_number)


@exercise.answer
def _(A):
    s = np.linalg.svd(A, compute_uv=False)
    s = s[s > 1e-12 * s[0]]
    return s[0] / s[-1]


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    yield {"A": np.diag([-6.0, 2.0, 1.5])}
    yield {"A": np.diag([0.0, 0.5, 4.0])}
    yield {"A": rng.normal(size=(4, 2)).round(1)}
    yield {"A": np.outer([1.0, 2.0, 3.0], [2.0, 1.0]) + np.outer([1.0, -1.0, 0.0], [0.5, 0.5])}
    flat = rng.normal(size=(3, 5))
    yield {"A": flat.T @ flat}
    # zero is what is small beside the largest: not these, but the rounding of large entries
    yield {"A": np.diag([3e-13, 1e-13])}
    yield {"A": np.diag([1.0, 1e-11])}
    yield {"A": 1e5 * np.outer(rng.normal(size=3), rng.normal(size=3))}


@exercise.fact("κ* does not depend on the scale of A, and that of the identity is 1")
def _(function: Function, rng: np.random.Generator) -> bool:
    A = rng.normal(size=(4, 4))
    return bool(np.isclose(function(1e-9 * A), function(A)) and function(np.eye(3)) == 1)


exercise.mistake(
    "you divide by a singular value that counts as zero; take the smallest nonzero one",
    ("    s = s[s > 1e-12 * s[0]]\n", ""),
)

exercise.mistake(
    "you keep singular values that are rounding errors; count all below 1e-12 times the largest "
    "as zero",
    ("s > 1e-12 * s[0]", "s > 0"),
)

exercise.mistake(
    "you return the ratio of the eigenvalues of AᵀA, which are the squares of the singular "
    "values; take their roots before you drop any",
    ("1e-12", "1e-6"),
    ("s[0] / s[-1]", "(s[0] / s[-1]) ** 2"),
)

exercise.mistake(
    "you drop every singular value below 1e-6 times the largest, as the limit 1e-12 for the "
    "eigenvalues of AᵀA does; use this limit for the singular values themselves",
    ("1e-12", "1e-6"),
)

exercise.mistake("you subtract; κ* is a ratio", ("s[0] / s[-1]", "s[0] - s[-1]"))

exercise.mistake(
    "you divide the largest entry of A by the smallest; κ* is a ratio of singular values",
    ("s[0] / s[-1]", "np.max(A) / np.min(A)"),
)
