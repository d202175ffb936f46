"""Normalize training and other examples by the statistics of the training examples."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.initialization import normalize_inputs


@answer_to("L2-13:inputs", normalize_inputs, parts=("train", "other"))
def exercise(train, other, eps):
    mean, std = train.mean(axis=0), np.sqrt(train.var(axis=0) + eps)
    return (train - mean) / std, (other - mean) / std


@exercise.cases
def _(rng):
    few, many = rng.integers([3, 6], [6, 9]).tolist()
    for m, k, d in ((3, 2, 1), (few, many, 2), (many, few, 3), (few, 1, 4)):
        scale, shift = np.array([1.0, 0.2, 5.0, 2.0])[:d], np.array([2.0, -1.0, 30.0, -9.0])[:d]
        train, other = (shift + scale * rng.normal(size=(rows, d)) for rows in (m, k))
        yield train.round(2), other.round(2), round(rng.uniform(0.03, 0.3), 2)


@exercise.fact("with ε = 0 training features have mean 0 and variance 1, whatever the others are")
def _(function, rng):
    train, other = 5 + 3 * rng.normal(size=(50, 4)), rng.normal(size=(3, 4))
    one, _ = function(train, other, 0.0)
    again, _ = function(train, other + 100, 0.0)
    centered = np.allclose(np.mean(one, 0), 0, atol=1e-12) and np.allclose(np.std(one, 0), 1)
    return centered and np.array_equal(one, again)


exercise.help(r"""
1. How many means and variances are there for $d$ features, and which examples do they describe?
2. They are arrays with $d$ entries, taken along the axis of the examples, and broadcast.
3. Along axis 0 of `train` take mean and root of variance plus `eps`; use both for both arrays.
you normalize the other examples by their own statistics; use the training set's
    (other - mean) / std → (other - other.mean(axis=0)) / np.sqrt(other.var(axis=0) + eps)
your statistics include the other examples; use the training set alone
    train.mean( → np.concatenate([train, other]).mean(
    train.var( → np.concatenate([train, other]).var(
you add ε to σ; add it to σ², under the root
    np.sqrt(train.var(axis=0) + eps) → train.std(axis=0) + eps
you divide by the variance; divide by its square root
    np.sqrt(train.var(axis=0) + eps) → train.var(axis=0) + eps
your variance divides by m − 1; here it divides by m
    var(axis=0) → var(axis=0, ddof=1)
you take one mean and one variance of all features; each feature has its own
    mean(axis=0) → mean() ; var(axis=0) → var()
you do not subtract the mean from the other examples; subtract that of the training set
    (other - mean) → other
you normalize `other` by statistics of the normalized `train`; take those of `train` as it came
    return (train - mean) / std, (other → train = (train - mean) / std\n
        mean, std = train.mean(axis=0), np.sqrt(train.var(axis=0) + eps)\n    return train, (other
""")
