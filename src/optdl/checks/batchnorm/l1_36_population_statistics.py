"""Estimate the mean and the variance of the training set from those of its minibatches."""

import numpy as np

from optdl.batchnorm import population_statistics
from optdl.checks.batchnorm.shared import random_features
from optdl.checks.exercise import Exercise

exercise = Exercise("L1-36:population", population_statistics, parts=("mean", "variance"))


@exercise.cases
def _(rng):
    sizes = rng.integers([[3, 1, 6], [5, 2, 3], [3, 4, 9]], [[5, 4, 17], [8, 4, 5], [7, 6, 30]])
    for b, d, m in (*sizes.tolist(), [1, 2, 2]):
        means = rng.uniform(-3, 3, size=(b, d)).round(2)
        variances = rng.uniform(1, 5, size=(b, d)).round(2)
        yield {"means": means, "variances": variances, "m": m}


@exercise.fact("all pairs, each example with itself too, give the examples' mean and variance")
def _(function, rng):
    x = random_features(rng, 6, 2)
    pairs = np.array([[one, other] for one in x for other in x])
    mean, var = function(pairs.mean(axis=1), pairs.var(axis=1), 2)
    return np.allclose(mean, x.mean(axis=0)) and np.allclose(var, x.var(axis=0))


exercise.help(r"""
1. Which axis of `means` and `variances` counts the minibatches, and which axis counts the features?
2. The deviations are measured from the mean of the minibatch itself, so $\sigma_B^2$ is too small
   on average: $E_B[\sigma_B^2] = \frac{m-1}{m}\,V[x]$. Solve this for $V[x]$.
3. Average both arrays along axis 0. Then multiply the second average by $m$, and divide by $m-1$.
your factor is inverted; multiply the variance by m/(m − 1)
    m / (m - 1) → (m - 1) / m
you correct with the number of minibatches; m is the number of examples in a minibatch
    m / (m - 1) → len(means) / (len(means) - 1)
you average the standard deviations; average the variances
    variances.mean(axis=0) → np.sqrt(variances).mean(axis=0) ** 2
you add the variance of the means; the factor m/(m − 1) alone makes the estimate right
    variances.mean(axis=0) → variances.mean(axis=0) + means.var(axis=0)
you add the variance of the means; the formula has the factor m/(m − 1) in place of it
    m / (m - 1) * variances.mean(axis=0) → variances.mean(axis=0) + means.var(axis=0)
""")
