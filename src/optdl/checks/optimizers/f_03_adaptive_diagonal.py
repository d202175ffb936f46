"""Compute the root of the expected squared gradient of a minibatch."""

import numpy as np

from optdl import optimizers
from optdl.checks.exercise import answer_to


@answer_to("F-03", optimizers.adaptive_diagonal)
def exercise(gradients, batch):
    m, mean = len(gradients), np.mean(gradients, axis=0)
    variance = np.var(gradients, axis=0) / batch * (m - batch) / (m - 1)
    return np.sqrt(mean**2 + variance)


@exercise.cases
def _(rng):
    few, many = rng.integers([3, 7], [6, 10]).tolist()
    for m, n, batch in (
        (2, 1, 1),
        (few, 2, 1),
        (few, rng.integers(1, 5), few),  # all examples: no variance
        (few + 1, 2, rng.integers(2, few + 1)),
        (many, rng.integers(3, 6), rng.integers(3, many)),
    ):
        gradients = rng.uniform(-1, 2, size=(m, n)).round(1) + 0.25
        yield {"gradients": gradients, "batch": int(batch)}


@exercise.fact("with b = 2 it is the root of the mean of g_B² over all pairs of examples")
def _(function, rng):
    gradients = rng.normal(size=(5, 3))
    pairs = [(gradients[i] + gradients[j]) / 2 for i in range(5) for j in range(i)]
    expected = np.sqrt(np.mean(np.square(pairs), axis=0))
    return np.allclose(function(gradients, 2), expected, rtol=1e-9)


exercise.help(r"""
1. Each row of `gradients` is that of an example. What is the expected $g_B$ in terms of the rows?
2. $\mathbb E\,g_B$ is the mean of all rows. Take mean and variance along axis 0.
3. `np.var` along axis 0 divides by $m$, as the task asks. Divide its result by $b$, multiply it by
   $(m - b)/(m - 1)$, add the square of the mean along axis 0, and take the root.
you leave out the square of the mean gradient; E[g²] = (E g)² + variance
    mean**2 + variance → variance
your variance is that of draws with repetition; without repetition it has the factor (m − b)/(m − 1)
    * (m - batch) / (m - 1) →
your σ² divides by m − 1; here it divides by m
    np.var(gradients, axis=0) → np.var(gradients, axis=0, ddof=1)
you divide the standard deviation by b; divide the variance by it
    np.var → np.std
you add the variance to the mean of the squares; add it to the square of the mean
    mean**2 + variance → np.mean(gradients**2, axis=0) + variance
""")
