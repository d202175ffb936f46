"""Compute the Hessian of a mean loss with respect to the bias and the weights of one unit."""

import numpy as np

from optdl.bnp import layer_hessian
from optdl.checks.bnp.shared import random_activations
from optdl.checks.exercise import answer_to


@answer_to("P-09", layer_hessian)
def exercise(H, curvatures):
    extended = np.column_stack([np.ones(len(H)), H])
    S = np.diag(curvatures / len(H))
    return extended.T @ S @ extended


@exercise.cases
def _(rng):
    few, more = rng.integers((2, 5), (5, 8))
    for rows, features in ((few, 1), (few, more), (more, few), (1, few)):
        # of a loss that is not convex, too
        curvatures = rng.uniform(0.1, 2, size=rows).round(2) * np.resize([1, -1], rows)
        yield random_activations(rng, rows, features), curvatures


@exercise.fact("with one feature the rows are the means of L″ and L″ h, and of L″ h and L″ h²")
def _(function, rng):
    h, curvatures = rng.normal(size=7), rng.uniform(0.1, 2, size=7)
    means = [np.mean(curvatures * h**power) for power in range(3)]
    return np.allclose(function(h[:, None], curvatures), [means[:2], means[1:]])


exercise.help(r"""
1. Which row vector, multiplied by $\hat w = [b; w]$, gives one example's output $a_j=b+w^Th_j$?
2. An example contributes its curvature times the outer product of this row; take the mean of them.
3. Multiply $\hat H^T$, the diagonal matrix of the curvatures over $N$, and $\hat H$.
the bias is a parameter too: Ĥ begins with a column of ones
    np.column_stack([np.ones(len(H)), H]) → H
your bias comes last; in Ĥ = [e, H] it comes first
    np.ones(len(H)), H → H, np.ones(len(H))
you divide by n, the number of features; S divides by N, the number of examples
    / len(H) → / H.shape[1]
you divide by the sum of the curvatures; S divides by N, the number of examples
    / len(H) → / np.sum(curvatures)
you multiply both factors by S; it stands between them once
    extended.T @ S @ extended → extended.T @ S @ S @ extended
""")
