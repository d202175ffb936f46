"""Compute the mean and the variance that dropout gives to each entry of x."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.dropout import dropout_moments


@answer_to("L2-16:moments", dropout_moments, parts=("mean", "var"))
def exercise(x, p):
    return 1.0 * x, p / (1 - p) * x**2


@exercise.cases
def _(rng):
    for n, (low, high) in ((2, (0, 0)), (1, (0.1, 0.4)), (rng.integers(3, 6), (0.6, 0.9))):
        x = rng.uniform(1.5, 4, size=n).round(2) * rng.choice([-1, 1], size=n)
        yield {"x": x, "p": round(rng.uniform(low, high), 2)}


@exercise.fact("the squared mean plus the variance is the mean of y², (1 − p) (x / (1 − p))²")
def _(function, rng):
    x, p = rng.normal(size=5), rng.uniform(0, 0.9)
    mean, var = map(np.asarray, function(x, p))
    return np.allclose(var + mean**2, (1 - p) * (x / (1 - p)) ** 2)


exercise.help(r"""
1. Which two values can $y_i$ take, and what is the probability of each?
2. The mean weighs each value by its probability; the variance is $E[y_i^2] - (E\,y_i)^2$.
3. $E[y_i^2]$ is $x_i^2/(1 - p)$; subtract the square of the mean, over one denominator.
your variance is the mean of y²; subtract the square of the mean of y
    p / (1 - p) → 1 / (1 - p)
""")
