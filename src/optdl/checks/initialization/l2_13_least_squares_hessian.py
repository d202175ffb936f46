"""Compute the Hessian of least squares, with the bias as the first parameter."""

import numpy as np

from optdl.checks.exercise import Exercise
from optdl.initialization import least_squares_hessian

exercise = Exercise("L2-13:hessian", least_squares_hessian)


@exercise.cases
def _(rng):
    for m, d in ((3, 1), *rng.integers([[4, 2], [6, 3]], [[6, 4], [9, 6]]), (1, 2), (2, 4)):
        yield {"x": (rng.uniform(1, 3, size=d) + rng.normal(size=(m, d))).round(2)}


@exercise.fact("second differences of the loss agree with the Hessian")
def _(function, rng):
    x, y, u, p = (rng.normal(size=s) for s in ((6, 2), 6, 3, 3))

    def loss(q: np.ndarray) -> float:
        return float(np.mean((q[0] + x @ q[1:] - y) ** 2) / 2)

    return np.isclose(u @ function(x) @ u, loss(p + u) - 2 * loss(p) + loss(p - u))


exercise.help(r"""
1. Write $b+w^Tx$ as an inner product of $(b, w)$ with a vector. What are the vector's entries?
2. With $\hat x=(1, x)$ the Hessian of one example is $\hat x\hat x^T$, whatever $y$ is; average.
3. Stack all $\hat x$ as rows; one product of the array with itself adds up; divide by $m$.
the bias is a parameter, too; add a column of ones
    np.column_stack([np.ones(len(x)), x]) → x
your bias is the last parameter; put it first
    np.ones(len(x)), x → x, np.ones(len(x))
""")
