"""The kind of a point, from the gradient and the Hessian."""

from collections.abc import Sequence

import numpy as np

from optdl.checks.exercise import Case, Exercise
from optdl.checks.quadratic.shared import random_hessian
from optdl.conditioning import critical_point_kind

exercise = Exercise("L1-21", critical_point_kind)


@exercise.cases
def _(rng):
    def case(
        values: np.ndarray | list[float], gradient: Sequence[float] = (), tolerance: float = 1e-6
    ) -> Case:
        g = np.zeros(len(values))
        g[: len(gradient)] = gradient
        return {"gradient": rng.permutation(g), "hessian": np.diag(values), "tolerance": tolerance}

    n, p = rng.integers([2, 2], [5, 5]).tolist()
    positive, e = rng.uniform(1, 4, size=n).round(1), round(float(rng.uniform(0.1, 0.5)), 2)
    tolerance, tiny = 2.0**-p, rng.choice([-1e-9, 0.0, 1e-9])
    # the norm of the gradient, not its square, its largest entry or the sum of its entries, and
    # what equals the tolerance counts as zero
    yield case(positive, [1 + e, -e])
    yield case(positive, [e], (e + e**2) / 2)
    yield case(positive, [e, -e], 1.2 * e)
    yield case(positive, [e, e], 1.7 * e)
    yield case(positive, [-tolerance], tolerance)
    yield case([tolerance, *positive], [], tolerance)
    yield case([*-positive, -tolerance], [], tolerance)
    # above the tolerance, but not above the share of the largest eigenvalue
    yield case([1.5 * tolerance, *positive, 5.0], [], tolerance)
    # a saddle whose eigenvalues have a product of less than the tolerance
    yield case([-1.5 * tolerance, 1.5 * tolerance], [], tolerance)
    # an eigenvalue that is a rounding error, on each side of zero
    for sign in (-1, 1):
        yield case([*positive, sign * 1e-9])
        yield case([*-positive, sign * 1e-9])
    # a saddle with a positive diagonal
    a, b = positive[:2]
    off = round(float(rng.uniform(1.1, 2) * max(a, b)), 1)
    yield case(positive[:2]) | {"hessian": np.array([[a, off], [off, b]])}
    for signs in ((-1, 1), (-1, -1, 1), (-1, 0, 1), (-1, -1, -1), (1, 1, 1), (0, 0), (0, 1)):
        k = len(signs)
        values = np.where(signs, signs * rng.uniform(1, 2, size=k), tiny)
        rotation, _ = np.linalg.qr(rng.normal(size=(k, k)))
        H = (rotation * values) @ rotation.T
        yield case(np.zeros(k)) | {"hessian": (H + H.T) / 2}


@exercise.fact("where g = 0, a definite Hessian makes a minimum or a maximum, by its sign")
def _(function, rng):
    H, zero = random_hessian(rng, 4), np.zeros(4)
    return (function(zero, H, 1e-9), function(zero, -H, 1e-9)) == ("minimum", "maximum")


exercise.help(r"""
1. Which of the five answers needs no Hessian, and which two eigenvalues decide on the others?
2. The smallest and the largest eigenvalue are enough: is each positive, negative or nearly zero?
3. Test the gradient first, then the first and the last eigenvalue; what remains is degenerate.
you look at the diagonal entries; at a saddle all may be positive, so compute the eigenvalues
    np.linalg.eigvalsh(hessian) → np.sort(np.diag(hessian))
you look for a negative determinant; compare the smallest and the largest eigenvalue with ±tolerance
    smallest < -tolerance and largest > tolerance → np.linalg.det(hessian) < 0
you compare the entries of the gradient with the tolerance; compare its norm
    np.linalg.norm(gradient) → np.max(np.abs(gradient))
you call a point not critical where the gradient's norm equals the tolerance; it must be above it
    (gradient) > tolerance → (gradient) >= tolerance
you call a point with a zero eigenvalue a minimum; second derivatives leave it open: degenerate
    if smallest > tolerance → if smallest >= -tolerance
you compare eigenvalues with 0; rounding errors count as zero, so compare with the tolerance
    eigenvalues = np → tolerance, eigenvalues = 0, np
you call every point with a negative eigenvalue a saddle; a strict saddle has a positive one, too
    smallest < -tolerance and largest > tolerance → smallest < -tolerance
you call a point with a zero eigenvalue degenerate; with both signs beside it, it is a strict saddle
    largest > tolerance → largest > tolerance < min(abs(eigenvalues))
you decide by the determinant; compare the smallest and the largest eigenvalue with ±tolerance
    np.linalg.eigvalsh(hessian) → [np.linalg.det(hessian)]
    smallest < -tolerance and largest > tolerance → smallest < -tolerance
    smallest > tolerance → smallest > tolerance and hessian[0, 0] > 0
    largest < -tolerance → largest > tolerance
""")
