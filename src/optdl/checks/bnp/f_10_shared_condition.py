"""The condition number of two layers that share one learning rate, for three methods."""

import numpy as np

from optdl.checks.bnp.shared import random_activations
from optdl.checks.exercise import answer_to


@answer_to("F-10", "shared_condition", parts=("plain", "BN", "BNP"), rtol=1e-6)
def exercise(X, H):
    normal_X, normal_H = ((A - A.mean(axis=0)) / A.std(axis=0) for A in (X, H))
    kappas = []
    for layers in ((X, H), (X, normal_H), (normal_X, normal_H)):
        values = []
        for A in layers:
            extended = np.column_stack([np.ones(len(A)), A])
            values.extend(np.linalg.eigvalsh(extended.T @ extended / len(A)))
        kappas.append(max(values) / min(values))
    return tuple(kappas)


@exercise.cases
def _(rng):
    # of one normalized feature beside ones κ is 1, but not if its variance divides by N − 1
    for rows, inputs, hidden in ((6, 1, 1), (9, 2, 3), (12, 3, 2)):
        X, H = (random_activations(rng, rows, features) for features in (inputs, hidden))
        yield {"X": X, "H": H * 0.2}


@exercise.fact("with 50 + 10 X for X, plain κ and BN's grow over fivefold, and BNP's stays")
def _(function, rng):
    X, H = rng.normal(1, 1, size=(30, 3)), rng.normal(1, 1, size=(30, 4))
    first, moved = function(X, H), function(50 + 10 * X, H)
    return np.isclose(first[2], moved[2]) and moved[0] > 5 * first[0] and moved[1] > 5 * first[1]


exercise.help(r"""
1. Which eigenvalue, of either layer, limits the rate, and which decides how long a descent takes?
2. Divide the largest eigenvalue of both layers by the smallest; BN normalizes $H$, BNP both.
3. For each method collect `np.linalg.eigvalsh` of both matrices, and divide largest by smallest.
you take the larger of two condition numbers; with one rate the eigenvalues of both layers compete
    extend(np.linalg.eigvalsh( → append(np.linalg.cond( ; max(values) / min(values) → max(values)
your BN normalizes the inputs as well; it leaves what the first layer reads as it is
    (X, normal_H) → (normal_X, normal_H)
the column of ones is missing; each layer has a bias
    np.column_stack([np.ones(len(A)), A]) → A
your variances divide by N − 1; here they divide by N
    A.std(axis=0) for → A.std(axis=0, ddof=1) for
you center, but do not scale; divide by the standard deviations, too
    ((A - A.mean(axis=0)) / A.std(axis=0) for → (A - A.mean(axis=0) for
you take one matrix for both layers; collect the eigenvalues of two
    for A in layers: → for A in [np.column_stack(layers)]:
""")
