"""Compute q² of a dense layer."""

import numpy as np

from optdl.bnp import scale_dense
from optdl.checks.exercise import Exercise

exercise = Exercise("P-14:scale", scale_dense)


@exercise.cases
def _(rng):
    N, rest = (int(size) for size in rng.integers((5, 1), (99, 5)))
    # quotients above 1, whole and not, just above it and at it, below it
    for features, rows in ((3 * N, N), (40 * N + rest, N), (N + 1, N), (N, N), (rest, N)):
        yield {"features": features, "rows": rows}


@exercise.fact("q² N is the larger of n and N")
def _(function, rng):
    features, rows = (int(size) for size in rng.integers(1, 500, size=2))
    return all(np.isclose(function(n, N) * N, max(n, N)) for n, N in ((features, rows), (7, 500)))


exercise.help(r"""
1. Which number in the braces is larger with more inputs than examples, and which otherwise?
2. You need no `if` for the two cases, because Python's `max` returns the larger of two numbers.
3. Divide the number of features by that of rows, and return the larger of this quotient and 1.
you take the smaller of n/N and 1; take the larger
    max(features → min(features
you add 1; take the larger of n/N and 1
    max(features / rows, 1.0) → features / rows + 1
""")
