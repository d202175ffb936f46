"""Compute the running mean and variance after each minibatch."""

import numpy as np

from optdl.bnp import running_statistics
from optdl.checks.bnp.shared import random_activations
from optdl.checks.exercise import answer_to


@answer_to("P-14:statistics", running_statistics, parts=("means", "variances"))
def exercise(minibatches, rho=0.99):
    mean, var = 0.0, 1.0
    means, variances = [], []
    for H in minibatches:
        mean = rho * mean + (1 - rho) * H.mean(axis=0)
        batch_var = (H[0] - mean) ** 2 if len(H) == 1 else H.var(axis=0)
        var = rho * var + (1 - rho) * batch_var
        means.append(mean)
        variances.append(var)
    return np.array(means), np.array(variances)


@exercise.cases
def _(rng):
    few, more = rng.integers((2, 5), (5, 8))
    for sizes, features, rho in (
        ((2, 1, more), 1, {"rho": 0.5}),
        ((1, more, *rng.permutation([1, 2, few + 1])), few, {"rho": float(rng.choice([0.6, 0.8]))}),
        ((few,) * more, more, {"rho": 0.9}),
        ((few, more, few), 2, {}),
    ):
        yield {"minibatches": [random_activations(rng, rows, features) for rows in sizes], **rho}


@exercise.fact("after t equal minibatches of several rows σ² is ρᵗ + (1 − ρᵗ) σ_H², μ (1 − ρᵗ) μ_H")
def _(function, rng):
    H = rng.normal(3, 2, size=(2, 4))
    kept = 0.9 ** np.arange(1, 8)[:, None]
    means, variances = function([H] * 7, 0.9)
    expected = (1 - kept) * H.mean(0), kept + (1 - kept) * H.var(0)
    return np.allclose((means, variances), expected)


exercise.help(r"""
1. Which quantities does a minibatch need from the one before, and what are they before the first?
2. Keep $\mu$, $\sigma^2$ and a list for each; a minibatch changes both and adds them to the lists.
3. In the loop, update the mean, compute the variance of the minibatch (for one row, from the
   updated mean), update the variance, and append both. Finally make each list an array.
your variance starts at 0; it starts at 1
    0.0, 1.0 → 0.0, 0.0
you start at the first minibatch; start at μ = 0 and σ² = 1
    H in minibatches → rho, H in zip([0] + [rho] * len(minibatches), minibatches)
you leave μ as it is for a minibatch of one; it takes part in the average like the others
    * H.mean(axis=0) → * H.mean(axis=0) if len(H) > 1 else mean + 0 * H[0]
you leave σ² as it is for a minibatch of one; its (h − μ)² takes part in the average
    * batch_var → * batch_var if len(H) > 1 else var + 0 * mean
you measure one example from the old μ; update μ first
    (H[0] - mean) → (H[0] - (mean - (1 - rho) * H[0]) / rho)
your variance of one example is 0, taken from its own mean; measure it from the running mean
    (H[0] - mean) ** 2 if len(H) == 1 else →
you measure every minibatch from the running mean; only a minibatch of one example needs it
    (H[0] - mean) ** 2 if len(H) == 1 else H.var(axis=0) → np.mean((H - mean) ** 2, axis=0)
ρ and 1 − ρ are exchanged; ρ is the weight of the old average
    mean, var = 0.0, 1.0 → rho, mean, var = 1 - rho, 0.0, 1.0
your variance of a minibatch divides by N − 1; divide by N
    H.var(axis=0) → H.var(axis=0, ddof=len(H) > 1)
""")
