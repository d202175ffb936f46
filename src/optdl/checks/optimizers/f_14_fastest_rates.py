"""The largest rate for a given noise floor by minibatch size, and the critical batch size."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.optimizers import noise_floor


@answer_to("F-14", "fastest_rates", parts=("rates", "critical"))
def exercise(sizes, floor, curvature, sigma):
    critical = sigma**2 / (curvature**2 * floor)
    return 2 / curvature * sizes / (sizes + critical), critical


@exercise.cases
def _(rng):
    for count in (1, 3, 6):
        curvature, sigma = rng.uniform(1.2, 3, size=2).round(2).tolist()
        sizes = np.sort(rng.choice(np.arange(1, 60), size=count, replace=False))
        yield sizes, round(float(rng.uniform(0.05, 0.4)), 3), curvature, sigma


@exercise.fact("with these rates each size has the floor that was asked for")
def _(function, rng):
    curvature, sigma = rng.uniform(0.3, 3, size=2)
    sizes = np.array([1, 8, 64, 512])
    rates, _ = function(sizes, 0.05, curvature, sigma)
    floors = [noise_floor(rates[k], curvature, sigma / sizes[k] ** 0.5) for k in range(4)]
    return np.allclose(floors, 0.05)


exercise.help(r"""
1. What is left of the equation once you multiply it by $n\lambda(2-\eta\lambda)$?
2. $\eta\sigma^2=n\lambda V(2-\eta\lambda)$ is linear in $\eta$: collect the terms with $\eta$.
3. $\eta$ is $2/\lambda$ times $n/(n+c)$; this is half of $2/\lambda$ at $n=c$, the critical size.
your rates follow linear scaling at every size; it ends as η comes near 2/λ
    (sizes + critical) → critical
your rates follow linear scaling up to 2/λ; the exact rate approaches 2/λ little by little
    sizes / (sizes + critical) → np.minimum(sizes / critical, 1)
your rates take the root of n/(n + c); they are 2/λ times the fraction itself
    sizes / (sizes + critical) → np.sqrt(sizes / (sizes + critical))
your critical size is where the straight line of small n is at half the limit; there n is c
    (sizes + critical), critical → (sizes + critical), critical / 2
""")
