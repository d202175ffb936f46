"""Build the matrix U, which centers, and the matrix D, which scales."""

import numpy as np

from optdl.bnp import preconditioner
from optdl.checks.batchnorm.shared import away_from_one
from optdl.checks.exercise import answer_to


@answer_to("P-11:preconditioner", preconditioner, parts=("U", "D"))
def exercise(mean, std):
    U = np.eye(len(mean) + 1)
    U[0, 1:] = -mean
    return U, np.diag(np.concatenate([[1.0], 1 / std]))


@exercise.cases
def _(rng):
    for features in (1, *rng.integers((2, 4), (4, 8))):
        yield away_from_one(rng, features), rng.uniform(0.2, 9, size=features).round(2)


@exercise.fact("[1, hᵀ] U D is 1 beside (h − μ)/σ")
def _(function, rng):
    h, mean, std = rng.normal(size=5), rng.normal(size=5), rng.uniform(0.5, 2, size=5)
    U, D = function(mean, std)
    row = np.concatenate([[1.0], h]) @ np.asarray(U) @ np.asarray(D)
    return np.allclose(row, np.concatenate([[1.0], (h - mean) / std]), rtol=1e-10)


exercise.help(r"""
1. In column $k$ of $[1, h^T]\,U$, which entry of $U$ turns $h_k$ into $h_k - \mu_k$?
2. $U$ differs from the identity in its first row, $D$ on its diagonal; both have 1 at the top left.
3. Overwrite the first row of `np.eye` after its 1; `np.diag` makes $D$ of 1 and the `1 / std`.
your matrices lack the row and the column of the bias; each has n + 1 of them
    return U → return U[1:, 1:] ; np.concatenate([[1.0], 1 / std]) → 1 / std
your U is UD already; U only centers, so its diagonal is 1
    return U, → return U / np.concatenate([[1.0], std]),
your D is UD already; D only scales, and is diagonal
    return U, np.diag( → return U, U @ np.diag(
""")
