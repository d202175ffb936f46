"""Compute the learning rate of iteration k: a linear warm-up, then a cosine decay."""

import numpy as np

from optdl import optimizers
from optdl.checks.exercise import answer_to


def warmup_cosine(k: int, first: float, warmup: int, tau: int) -> float:
    """Return the rate of iteration k: a linear warm-up, then a cosine decay to 0."""
    return optimizers.Warmup(optimizers.CosineDecay(first, tau), warmup)(k)


@answer_to("F-05:schedule", warmup_cosine)
def exercise(k, first, warmup, tau):
    if k < warmup:
        return first * (k + 1) / warmup
    s = min((k - warmup) / tau, 1)
    return first * (1 + np.cos(np.pi * s)) / 2


@exercise.cases
def _(rng):
    for w, tau in ((1, 1), rng.integers([2, 5], [6, 11]), rng.integers(10, 40, 2)):
        before, after = rng.integers([0, w + tau + 1], [w, w + 2 * tau + 1])
        for k in (0, before, w, w + rng.integers(tau), rng.integers(tau, w + tau), w + tau, after):
            first = round(rng.uniform(0.2, 0.9), 2)
            yield {"k": int(k), "first": first, "warmup": int(w), "tau": int(tau)}


@exercise.fact("the learning rates of iterations w + j and w + τ − j add up to η₀")
def _(function, rng):
    rates = [function(k, 0.8, 5, 20) for k in (5, 10, 15, 20, 25)]
    return np.allclose(np.add(rates, rates[::-1]), 0.8, rtol=1e-9)


exercise.help(r"""
1. The schedule has three parts: the warm-up, the cosine and a constant. For which $k$ does each
   part apply, and what is $s$ at the beginning and at the end of the cosine?
2. At $s = 1$ the formula gives 0. Where $s$ never exceeds 1, it covers the part afterwards, too.
3. In the warm-up, return the fraction $(k + 1)/w$ of $\eta_0$. Otherwise let $s$ be the smaller of
   1 and $(k - w)/\tau$, and return half of $\eta_0$ times one plus the cosine of $\pi s$.
your first learning rate is 0; in iteration k of the warm-up it is (k + 1)/w · η₀
    (k + 1) → k
your warm-up is one iteration too long; iteration w is the first of the cosine, with η₀
    k < warmup → k <= warmup
your cosine counts from iteration 0; it begins after the warm-up, with k − w
    (k - warmup) → k
you count the warm-up as a part of the τ iterations; the decay alone has τ, after the warm-up
    / tau → / (tau - warmup)
your cosine takes a whole period, 2π; half a period, π, leads from η₀ to 0
    np.pi * s → 2 * np.pi * s
you count the warm-up as a part of the τ iterations; the decay alone has τ, after the warm-up
    / tau, 1) → / (tau - warmup), 1) if k < tau else 1
your decay reaches 0 one iteration too early; s is (k − w)/τ
    / tau, 1) → / max(tau - 1, 1), 1)
""")
