"""The kind of a point, from the gradient and the Hessian."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.conditioning.shared import random_positive
from optdl.checks.exercise import Case, Exercise, Function
from optdl.conditioning import critical_point_kind

exercise = Exercise("L1-21", critical_point_kind)


@exercise.answer
def _(gradient, hessian, tolerance):
    if np.linalg.norm(gradient) > tolerance:
        return "not critical"
    values = np.linalg.eigvalsh(hessian)
    low, high = values[0], values[-1]
    if low < -tolerance and high > tolerance:
        return "strict saddle"
    if low > tolerance:
        return "minimum"
    return "maximum" if high < -tolerance else "degenerate"


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    zero = np.zeros(2)
    yield {"gradient": zero, "hessian": np.array([[2.0, 4.0], [4.0, 2.0]]), "tolerance": 1e-6}
    yield {"gradient": zero, "hessian": np.array([[2.0, 1.0], [1.0, 2.0]]), "tolerance": 1e-6}
    yield {"gradient": zero, "hessian": np.diag([-1.0, -3.0]), "tolerance": 1e-6}
    yield {"gradient": np.array([0.0, 0.5]), "hessian": np.diag([1.0, 3.0]), "tolerance": 1e-6}
    yield {"gradient": np.array([0.08, 0.08]), "hessian": np.diag([1.0, 3.0]), "tolerance": 0.1}
    yield {"gradient": zero, "hessian": np.diag([0.0, 1.0]), "tolerance": 1e-6}
    yield {"gradient": zero, "hessian": np.diag([-2.0, 0.0]), "tolerance": 1e-6}
    # the smallest eigenvalue is a rounding error, once on each side of zero
    yield {"gradient": zero, "hessian": np.diag([2.0, -1e-9]), "tolerance": 1e-6}
    yield {"gradient": np.array([1e-9, 0.0]), "hessian": np.diag([2.0, 1e-9]), "tolerance": 1e-6}
    # what equals the tolerance counts as zero
    yield {"gradient": np.array([0.0, 0.125]), "hessian": np.diag([1.0, 3.0]), "tolerance": 0.125}
    yield {"gradient": zero, "hessian": np.diag([0.125, 3.0]), "tolerance": 0.125}
    for signs in ((-1, -1, 1), (-1, 0, 1), (1, 1, 1), (-1, -1, -1)):
        rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        H = (rotation * (np.array(signs) * rng.uniform(1, 2, size=3))) @ rotation.T
        yield {"gradient": np.zeros(3), "hessian": (H + H.T).round(2) / 2, "tolerance": 0.1}


@exercise.fact("turning the coordinates does not change the kind")
def _(function: Function, rng: np.random.Generator) -> bool:
    for values in ([1.0, 2.0, 3.0], [-1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [0.0, 1.0, 2.0]):
        rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        H = (rotation * np.array(values)) @ rotation.T
        kinds = [function(np.zeros(3), M, 1e-9) for M in (np.diag(values), (H + H.T) / 2)]
        if kinds[0] != kinds[1]:
            return False
    return True


@exercise.fact("a positive definite Hessian makes a minimum, and its negative a maximum")
def _(function: Function, rng: np.random.Generator) -> bool:
    H, zero = random_positive(rng, 4), np.zeros(4)
    return (function(zero, H, 1e-9), function(zero, -H, 1e-9)) == ("minimum", "maximum")


exercise.hints(
    "Which of the five answers does not depend on the Hessian? For the others, which two "
    "eigenvalues do you need?",
    "The smallest and the largest eigenvalue are enough, because all others lie between them. Ask "
    "for each of the two whether it is positive, negative or zero within the tolerance.",
    "Test the norm of the gradient first. Then compare the first and the last eigenvalue with plus "
    "or minus the tolerance, in three tests for three kinds; what remains is degenerate.",
)

exercise.mistakes(r"""
you look at the diagonal entries; all of them can be positive at a saddle, so compute the
eigenvalues
    np.linalg.eigvalsh(hessian) → np.sort(np.diag(hessian))
you do not look at the gradient; where it is not zero, the point is not critical
    np.linalg.norm(gradient) > tolerance → False
you compare the entries of the gradient with the tolerance; compare its norm
    np.linalg.norm(gradient) → np.max(np.abs(gradient))
you take a gradient whose norm equals the tolerance for one that is above it
    (gradient) > tolerance → (gradient) >= tolerance
you call a point with a zero eigenvalue a minimum; there second derivatives do not decide, so it is
degenerate
    if low > tolerance → if low >= -tolerance
you compare eigenvalues with 0; one that is a rounding error counts as zero, so compare with the
tolerance
    low < -tolerance and high > tolerance → low < 0 < high
    if low > tolerance → if low > 0
    high < -tolerance → high < 0
you call every point with a negative eigenvalue a saddle; at a strict saddle there is a positive
one, too
    low < -tolerance and high > tolerance → low < -tolerance
you call a point with a zero eigenvalue degenerate before you look for both signs; a negative and a
positive eigenvalue make a strict saddle, whatever the others are
    if low < -tolerance and high > tolerance:
    → if np.any(np.abs(values) <= tolerance):\n
            return "degenerate"\n
        if low < -tolerance and high > tolerance:
""")


@exercise.mistake(
    "you decide by the sign of the determinant; in three dimensions two negative eigenvalues and a "
    "positive one give a positive determinant, so look at the eigenvalues"
)
def _(gradient, hessian, tolerance):
    if np.linalg.norm(gradient) > tolerance:
        return "not critical"
    determinant = np.linalg.det(hessian)
    if abs(determinant) <= tolerance:
        return "degenerate"
    if determinant < 0:
        return "strict saddle"
    return "minimum" if hessian[0, 0] > 0 else "maximum"
