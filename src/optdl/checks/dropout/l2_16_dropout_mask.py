"""Turn uniform draws into a dropout mask that includes the scale."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.dropout import dropout_mask


@answer_to("L2-16:mask", dropout_mask)
def exercise(u, p):
    return (u >= p) / (1 - p)


@exercise.cases
def _(rng):
    for dimensions, (low, high) in ((1, (11, 45)), (2, (55, 74)), (3, (11, 45))):
        p = float(rng.integers(low, high)) / 100
        u = rng.random(size=rng.integers(2, 5, size=dimensions) + [2, 0, 0][:dimensions]).round(2)
        u[(0,) * (dimensions - 1)][:2] = p, p - 0.1
        yield {"u": rng.permuted(u, axis=-1), "p": p}


@exercise.fact("1000 draws spread evenly over [0, 1) give a mask of mean 1")
def _(function, rng):
    u = rng.permutation((np.arange(1000) + 0.5) / 1000)
    means = [np.mean(function(u, p)) for p in (0.0, 0.1, 0.5, 0.8)]
    return np.allclose(means, 1.0)


exercise.help(r"""
1. What does NumPy return if you compare the whole array `u` with the number `p`?
2. A comparison returns `True` and `False`, which count as 1 and 0: up to the scale, the mask.
3. Compare so that entries to be kept are `True`, and divide by the probability that one is kept.
you drop a fraction p of these draws; compare each draw with p, whatever the others are
    u >= p → u >= np.quantile(u, p)
you take p for the probability of keeping; here it is the probability of dropping
    (u >= p) / (1 - p) → (u < p) / p
you divide by the share of the entries that are kept; divide by 1 − p, the probability
    (1 - p) → max(np.mean(u >= p), 1e-9)
you keep where u < p; keep where u ≥ p
    u >= p → u < p
you keep where u < 1 − p; that has the same probability, but here an entry is kept where u ≥ p
    u >= p → u < 1 - p
you drop an entry whose draw equals p; keep it: u ≥ p
    u >= p → u > p
""")
