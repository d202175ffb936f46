"""The number of steps after which gradient descent has left a saddle."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.conditioning import escape_steps


@answer_to("F-04", escape_steps)
def exercise(distance, radius, lr, curvature):
    steps = np.log(radius / distance) / np.log(1 + lr * curvature)
    return max(0, int(np.ceil(steps - 1e-12)))


@exercise.cases
def _(rng):
    start, factor, k = rng.integers([1, 2, 2], [6, 8, 6]).tolist()
    d = 2.0**-start
    yield d, d * 2.0**k, 0.5, 2.0  # exactly k steps
    yield d, d * factor**k * (1 + 1e-8), factor - 1.0, 1.0
    # whole quotients that come out slightly larger, and slightly smaller
    powers = [(base, k) for base in range(3, 20) for k in range(2, 9)]
    quotient = {(base, k): np.log(float(base**k)) / np.log(base) for base, k in powers}
    for rounded in (np.greater, np.less):
        some = [power for power in powers if rounded(quotient[power], power[1])]
        base, k = rng.choice(some).tolist()
        yield d, d * base**k, (base - 1) / 2, 2.0
    # products one after the other stay below R, by a rounding error
    yield 0.1, 0.1 * 1.1**3, 0.1, 1.0
    # a start at the distance R, or beyond it
    for times in (1.0, round(float(rng.uniform(2, 4)), 1)):
        yield d * times, d, 0.1 * factor, 0.5
    # the nearest whole number is too small
    yield d, round(d * factor ** (k + 0.3), 3), factor - 1.0, 1.0
    for unit in (1e-3, 1e-9):
        lr, curvature = rng.uniform([0.05, 0.5], [0.4, 2]).round(2).tolist()
        yield unit * float(rng.integers(1, 10)), round(rng.uniform(12, 40), 1), lr, curvature


@exercise.fact("iterating the factor 1 + ηλ gives the same number")
def _(function, rng):
    distance, lr = 10.0 ** -rng.uniform(2, 8), rng.uniform(0.05, 0.5)
    steps = function(distance, 1.0, lr, 1.5)
    after = distance * (1 + 1.5 * lr) ** np.array([steps - 1, steps])
    return after[0] < 1 <= after[1] * (1 + 1e-9)


exercise.help(r"""
1. By what factor does a step multiply the distance along an eigenvector with eigenvalue $-\lambda$?
2. After $k$ steps it is $d\,(1+\eta\lambda)^k$. Set this equal to $R$, and take logarithms.
3. Divide one logarithm by the other, round as the task says, and think of a start beyond $R$.
you add a constant amount in each step; a step multiplies the distance by 1 + ηλ
    np.log(radius / distance) → (radius - distance)
    np.log(1 + lr * curvature) → (lr * curvature * distance)
you divide by ηλ, as in continuous time; for steps divide by ln(1 + ηλ)
    np.log(1 + lr * curvature) → (lr * curvature)
you round up the quotient as it is; a rounding error can make it too large, so subtract 1e-12 first
    steps - 1e-12 → steps
you round down; after so many steps the distance may still be below R, so round up
    np.ceil(steps - 1e-12) → steps
you count until the distance is above R; a distance that equals R has reached it
    np.ceil(steps - 1e-12) → np.floor(steps + 1e-12) + 1
you round down and add 1; where the quotient is whole, this is one step too many, so round up
    np.ceil(steps - 1e-12) → np.floor(steps) + 1
""")
