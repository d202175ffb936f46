"""Turn uniform draws into a dropout mask that includes the scale."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.dropout import dropout_mask

exercise = Exercise("L2-16:mask", dropout_mask)


@exercise.answer
def _(u, p):
    return (u >= p) / (1 - p)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    # A draw equal to p is kept: p itself is one of the draws. No 1/(1 − p) is exact in float32.
    for p, shape in ((0.3, (1, 4)), (0.6, (3, 4)), (0.85, (5, 6))):
        u = rng.random(size=shape).round(2)
        u[0, :3] = p, p - 0.1, p + 0.1
        yield {"u": u, "p": p}


@exercise.fact("the mask has mean 1, whatever p is")
def _(function: Function, rng: np.random.Generator) -> bool:
    # Draws spaced evenly stand for all draws: a fraction of exactly p lies below p.
    u = rng.permutation((np.arange(1000) + 0.5) / 1000)
    means = [np.mean(function(u, p)) for p in (0.0, 0.1, 0.5, 0.8)]
    return bool(np.allclose(means, 1.0))


exercise.hints(
    "What does NumPy return if you compare the whole array `u` with the number `p`?",
    "The comparison returns an array of `True` and `False`, which count as 1 and 0 in arithmetic. "
    "Up to the scale, such an array is already the mask.",
    "Compare so that the entries to be kept are `True`, and divide the whole array by the "
    "probability that an entry is kept.",
)

exercise.mistakes(r"""
you divide by p, the probability of dropping; divide by 1 − p
    (1 - p) → p
you multiply by 1 − p; divide by it, since the kept entries are 1/(1 − p)
    / (1 - p) → * (1 - p)
you take p for the probability of keeping; here it is the probability of dropping
    (u >= p) / (1 - p) → (u < p) / p
you keep where u < p; keep where u ≥ p
    u >= p → u < p
you keep where u < 1 − p; that has the same probability, but here an entry is kept where u ≥ p
    u >= p → u < 1 - p
you drop an entry whose draw equals p; keep it: u ≥ p
    u >= p → u > p
""")
