"""Normalize each example over groups of its features."""

import numpy as np

from optdl.batchnorm import groupnorm_forward
from optdl.checks.batchnorm.shared import away_from_one, random_features
from optdl.checks.exercise import answer_to


@answer_to("P-04", groupnorm_forward)
def exercise(x, gamma, beta, groups=1, eps=1e-5):
    grouped = x.reshape(len(x), groups, -1)
    centered = grouped - grouped.mean(axis=2, keepdims=True)
    normalized = centered / np.sqrt(grouped.var(axis=2, keepdims=True) + eps)
    return gamma * normalized.reshape(x.shape) + beta


@exercise.cases
def _(rng):
    few, many = rng.integers([2, 4], [4, 6]).tolist()
    # the numbers of groups and of the features in each; with one group it is layer normalization
    sizes = (1, 2, 3), (few, few, many), (many, many, few), (few, 1, many), (many, 3, 1)
    for m, groups, size in sizes:
        d = groups * size
        x, gamma, beta = random_features(rng, m, d), away_from_one(rng, d), away_from_one(rng, d)
        options = {"groups": groups, "eps": round(rng.uniform(0.03, 0.3), 2)}
        yield {"x": x, "gamma": gamma, "beta": beta, **options}
    yield {"x": x, "gamma": gamma, "beta": beta}


@exercise.fact("with γ = 1, β = 0 and ε = 0 each group of each example has mean 0 and variance 1")
def _(function, rng):
    y = function(rng.normal(3, 2, size=(4, 6)), np.ones(6), np.zeros(6), 2, 0.0)
    groups = np.reshape(y, (4, 2, 3))
    return np.allclose(groups.mean(axis=2), 0) and np.allclose(groups.var(axis=2), 1)


exercise.help(r"""
1. Which entries of `x` share one mean? How many means are there for $m$ examples and $G$ groups?
2. Reshape `x` to three axes: the example, the group, and the feature within its group.
3. Normalize along the last axis, restore the shape of `x`, and then apply $\gamma$ and $\beta$.
your statistics of a group are over all examples; each example has its own
    mean(axis=2 → mean(axis=(0, 2) ; var(axis=2 → var(axis=(0, 2)
you average across the groups; average within each group
    mean(axis=2 → mean(axis=1 ; var(axis=2 → var(axis=1
you take `groups` for the number of features in a group; it is the number of groups
    groups, -1 → -1, groups
your groups are every G-th feature; a group is a block of neighboring features
    groups, -1 → -1, groups ; mean(axis=2 → mean(axis=1 ; var(axis=2 → var(axis=1
your variance divides by d/G − 1; divide by d/G
    var(axis=2, keepdims=True) → var(axis=2, keepdims=True, ddof=1)
your ε is outside the root; divide by √(σ² + ε)
    np.sqrt(grouped.var(axis=2, keepdims=True) + eps) → (grouped.std(axis=2, keepdims=True) + eps)
your output is that of batch norm; take the statistics of each example and group
    normalized.reshape(x.shape) → (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + eps)
you normalize over all features, as layer norm does; each of the groups has its own statistics
    groups, -1 → 1, -1
""")
