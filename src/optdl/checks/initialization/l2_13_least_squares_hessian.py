"""The Hessian of least squares."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.initialization import least_squares_hessian

exercise = Exercise("L2-13:hessian", least_squares_hessian)


@exercise.answer
def _(x):
    extended = np.column_stack([np.ones(len(x)), x])
    return extended.T @ extended / len(x)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for m, d in ((2, 1), (4, 2), (7, 3)):
        yield {"x": (rng.uniform(1, 3, size=d) + rng.normal(size=(m, d))).round(2)}


@exercise.fact("second differences of the loss agree with the Hessian")
def _(function: Function, rng: np.random.Generator) -> bool:
    """Compare with the second difference of the loss, which is exact for a quadratic."""
    x, y, u, p = (rng.normal(size=s) for s in ((6, 2), 6, 3, 3))

    def loss(q: np.ndarray) -> float:
        return float(np.mean((q[0] + x @ q[1:] - y) ** 2) / 2)

    return bool(np.isclose(u @ function(x) @ u, loss(p + u) - 2 * loss(p) + loss(p - u)))


@exercise.mistake("the bias is a parameter too: add a column of ones")
def _(x):
    return x.T @ x / len(x)


exercise.mistake("you add up the examples; the loss is a mean over them", (" / len(x)", ""))

exercise.mistake(
    "your bias is the last parameter; put it first", ("np.ones(len(x)), x", "x, np.ones(len(x))")
)

exercise.mistake(
    "you center the inputs; use the inputs as they are given", ("x]", "x - x.mean(0)]")
)

exercise.mistake(
    "your Hessian is twice too large: the ½ of the loss cancels the 2 of the square",
    ("return extended", "return 2 * extended"),
)
