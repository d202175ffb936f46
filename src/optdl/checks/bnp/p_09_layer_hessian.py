"""The Hessian of a layer."""

from collections.abc import Iterator

import numpy as np

from optdl.bnp import layer_hessian
from optdl.checks.bnp.shared import random_activations
from optdl.checks.exercise import Case, Exercise, Function

exercise = Exercise("P-09", layer_hessian)


@exercise.answer
def _(H, curvatures):
    extended = np.column_stack([np.ones(len(H)), H])
    return extended.T * (curvatures / len(H)) @ extended


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for rows, features in ((2, 1), (4, 2), (6, 3)):
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


@exercise.mistake("the bias is a parameter too: Ĥ begins with a column of ones")
def _(H, curvatures):
    return (H.T * (curvatures / len(H))) @ H


exercise.mistake(
    "your bias comes last; in Ĥ = [e, H] it comes first",
    ("np.ones(len(H)), H", "H, np.ones(len(H))"),
)

exercise.mistake(
    "your S lacks its 1/N: the loss is a mean over the minibatch",
    ("(curvatures / len(H))", "curvatures"),
)

exercise.mistake(
    "you leave out the second derivatives; S holds L″ on its diagonal",
    ("* (curvatures / len(H)) @ extended", "@ extended / len(H)"),
)

exercise.mistake(
    "you use S twice; in Ĥᵀ S Ĥ it stands once", (")) @ extended", ")) ** 2 @ extended")
)


@exercise.mistake("you divide by n, the number of features; S divides by N, the number of examples")
def _(H, curvatures):
    extended = np.column_stack([np.ones(len(H)), H])
    return (extended.T * (curvatures / H.shape[1])) @ extended
