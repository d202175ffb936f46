"""Normalize each feature of a minibatch, and return what the backward pass needs, too."""

import numpy as np

from optdl.batchnorm import batchnorm_forward
from optdl.checks.batchnorm.shared import away_from_one, random_features, shapes
from optdl.checks.exercise import answer_to


@answer_to("L1-34, P-01", batchnorm_forward, parts=("y", ("normalized", "factor")))
def exercise(x, gamma, beta, eps=1e-5):
    centered = x - x.mean(axis=0)
    root = np.sqrt((centered**2).mean(axis=0) + eps)
    normalized = centered / root
    return gamma * normalized + beta, (normalized, gamma / root)


@exercise.cases
def _(rng):
    for m, d, eps in (*shapes(rng), (1, 3, None)):
        x, gamma, beta = random_features(rng, m, d), away_from_one(rng, d), away_from_one(rng, d)
        yield {"x": x, "gamma": gamma, "beta": beta, **({"eps": eps} if eps else {})}


@exercise.fact("with ε = 0 each feature of y has mean β and standard deviation |γ|")
def _(function, rng):
    x, gamma, beta = random_features(rng, 20, 4), away_from_one(rng, 4), rng.normal(size=4)
    y = np.asarray(function(x, gamma, beta, 0.0)[0])
    return np.allclose(y.mean(axis=0), beta) and np.allclose(y.std(axis=0), np.abs(gamma))


exercise.help(r"""
1. Which entries of `x` belong to one feature, and along which axis do you therefore take the mean?
2. The mean and the variance have the shape `(d,)`; NumPy combines them with every row of `x`.
3. Subtract the mean along axis 0, average the squared differences along axis 0, add $\epsilon$ and
   take the root. The differences over this root are $\hat x$; $\gamma$ over it is the factor.
your variance divides by m − 1; batch norm divides by m
    (centered**2).mean(axis=0) → (centered**2).sum(axis=0) / (len(x) - 1)
your variance is the sum of the squares; divide it by m
    (centered**2).mean → (centered**2).sum
you normalize each example, as layer norm does; normalize each feature over the examples
    x.mean(axis=0) → x.mean(axis=1, keepdims=True)
    (centered**2).mean(axis=0) → (centered**2).mean(axis=1, keepdims=True)
you take one mean and one variance over all features; each feature has its own
    x.mean(axis=0) → x.mean() ; (centered**2).mean(axis=0) → (centered**2).mean()
your ε is outside the root; divide by √(σ² + ε)
    np.sqrt((centered**2).mean(axis=0) + eps) → np.sqrt((centered**2).mean(axis=0)) + eps
you divide by the variance; divide by its root, √(σ² + ε)
    np.sqrt((centered**2).mean(axis=0) + eps) → (centered**2).mean(axis=0) + eps
your ε is always 1e-5; take `eps`
    + eps) → + 1e-5)
you take ε for the least variance; it is added to each variance
    (centered**2).mean(axis=0) + eps → np.maximum((centered**2).mean(axis=0), eps)
your pair begins with y; it begins with x̂, before γ and β
    (normalized, gamma → (gamma * normalized + beta, gamma
""")
