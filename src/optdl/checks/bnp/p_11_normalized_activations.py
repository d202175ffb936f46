"""Compute the centered and scaled features beside a column of ones."""

import numpy as np

from optdl.bnp import normalized_activations
from optdl.checks.bnp.shared import random_activations
from optdl.checks.exercise import answer_to


@answer_to("P-11:activations", normalized_activations)
def exercise(H):
    normalized = (H - H.mean(axis=0)) / H.std(axis=0)
    return np.column_stack([np.ones(len(H)), normalized])


@exercise.cases
def _(rng):
    few, more = rng.integers((2, 5), (5, 8))
    for rows, features in ((more, few), (few + 1, more), (2, few - 1)):
        yield {"H": random_activations(rng, rows, features)}


@exercise.fact("each column has the squared norm N, and 100 + 7 H gives the same columns as H")
def _(function, rng):
    H = rng.normal(size=(9, 3))
    one = np.asarray(function(H))
    other = np.asarray(function(100 + 7 * H))
    return np.allclose(np.sum(one**2, 0), 9) and np.allclose(one, other, atol=1e-9)


exercise.help(r"""
1. Which axis of `H` runs over the examples, and how many means does a layer with $n$ features need?
2. The mean and the standard deviation over the examples are vectors; NumPy broadcasts them.
3. Subtract the mean over axis 0, divide by the deviation, and put a column of ones in front.
your variance divides by N − 1; here it divides by N
    H.std(axis=0) → H.std(axis=0, ddof=1)
you divide by the variance; divide by its square root, σ
    H.std(axis=0) → H.var(axis=0)
you center the features, but do not scale them; divide by σ, too
    / H.std(axis=0) →
you scale the features, but do not center them; subtract the mean first
    (H - H.mean(axis=0)) → H
you take one mean and one standard deviation for all features; each feature has its own
    (H - H.mean(axis=0)) / H.std(axis=0) → (H - H.mean()) / H.std()
you normalize each example over its features; normalize each feature over the examples
    H.mean(axis=0)) / H.std(axis=0) → H.mean(axis=1)[:, None]) / H.std(axis=1)[:, None]
your column of ones comes last; in Ĝ = [e, G] it comes first
    np.ones(len(H)), normalized → normalized, np.ones(len(H))
you subtract the mean from features that are scaled already; center first, then scale
    (H - H.mean(axis=0)) / H.std(axis=0) → H / H.std(axis=0) - H.mean(axis=0)
""")
