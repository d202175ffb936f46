"""Compute the mean and the variance of a minibatch, which may hold one example."""

import numpy as np

from optdl.bnp import batch_statistics
from optdl.checks.bnp.shared import random_activations
from optdl.checks.exercise import answer_to


@answer_to("P-15", batch_statistics, parts=("mean", "variance"))
def exercise(H, running_mean=None):
    mean = H.mean(axis=0)
    if len(H) == 1 and running_mean is not None:
        return mean, (H[0] - running_mean) ** 2
    return mean, H.var(axis=0)


@exercise.cases
def _(rng):
    few, more = rng.integers((2, 5), (5, 8))
    for rows, features in ((1, few), (2, few + 1), (more, few)):
        running = rng.uniform(1, 3, size=features).round(2)
        yield {"H": random_activations(rng, rows, features), "running_mean": running}
    # two equal examples, whose variance is 0
    twice = random_activations(rng, 1, more)[[0, 0]]
    yield {"H": twice, "running_mean": rng.uniform(1, 3, size=more).round(2)}
    yield {"H": random_activations(rng, few, 2)}
    yield {"H": random_activations(rng, 1, few)}
    # the running mean at the start of BNP, which is given, too
    yield {"H": random_activations(rng, 1, more), "running_mean": np.zeros(more)}


@exercise.fact("with a running μ one example has variance (h − μ)², two have Σ (h − μ_H)²/2")
def _(function, rng):
    H, running = rng.normal(size=(2, 3)), rng.normal(size=3)
    own = np.mean(H**2, 0) - np.mean(H, 0) ** 2
    alone = np.allclose(function(H[:1], running)[1], (H[0] - running) ** 2)
    return alone and np.allclose(function(H, running)[1], own)


exercise.help(r"""
1. Under which two conditions is the running mean used, and which of the two results changes then?
2. But for the variance of a single example, the results are the usual ones: one `if` is enough.
3. Take the mean over axis 0. For one row with a running mean, return this mean and the squared
   difference between the row and the running mean; in all other cases, it and the variance.
your variance divides by N − 1; BNP divides by N
    H.var(axis=0) → H.var(axis=0, ddof=1)
your variance of one example is 0, taken from its own mean; measure it from the running mean
    (H[0] - running_mean) → (H[0] - mean)
you take a running mean of zeros for none; ask whether `running_mean` is None
    running_mean is not None → np.any(running_mean)
you use the running mean for minibatches of any size; only a minibatch of one needs it
    len(H) == 1 and running_mean → running_mean
    (H[0] - running_mean) ** 2 → np.mean((H - running_mean) ** 2, axis=0)
you measure one example from 0 where there is no running mean; its variance is then 0
    len(H) == 1 and running_mean is not None → len(H) == 1
    (H[0] - running_mean) → (H[0] - (0 if running_mean is None else running_mean))
""")
