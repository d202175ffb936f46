"""Compute q² of a dense layer."""

from collections.abc import Iterator

import numpy as np

from optdl.bnp import scale_dense
from optdl.checks.exercise import Case, Exercise, Function

exercise = Exercise("P-14:scale", scale_dense)


@exercise.answer
def _(features, rows):
    return max(features / rows, 1.0)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    sizes = (3072, 60), (64, 256), (10, 10), (120, 60), (500, int(rng.integers(11, 90)))
    for features, rows in sizes:
        yield {"features": features, "rows": rows}


@exercise.fact("q² N is the larger of n and N")
def _(function: Function, rng: np.random.Generator) -> bool:
    features, rows = (int(size) for size in rng.integers(1, 500, size=2))
    return all(np.isclose(function(n, N) * N, max(n, N)) for n, N in ((features, rows), (7, 500)))


exercise.hints(
    "Which of the two numbers in the braces is larger when the layer has more inputs than the "
    "minibatch has examples, and which otherwise?",
    "You need no `if` for the two cases, because Python's `max` returns the larger of two numbers.",
    "Divide the number of features by the number of rows, and return the larger of this quotient "
    "and 1.",
)

exercise.mistakes(r"""
you take the smaller of n/N and 1; take the larger
    max → min
your q² is below 1 where N is larger than n; the maximum is missing
    max(features / rows, 1.0) → features / rows
you add 1; take the larger of n/N and 1
    max(features / rows, 1.0) → features / rows + 1
""")
