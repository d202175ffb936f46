"""The standard error of a mean of values drawn with or without replacement."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.erm import standard_error


@answer_to("L1-07", standard_error)
def exercise(sigma, n, population=None):
    error = sigma / np.sqrt(n)
    if population is None:
        return error
    return error * np.sqrt((population - n) / (population - 1))


@exercise.cases
def _(rng):
    few, many, rest = rng.integers([2, 5, 1], [9, 200, 300]).tolist()
    for n, population in (
        (few, None),
        (int(rng.integers(10**6, 10**7)), None),
        (1, 2),
        (1, few + 1),
        (few, few),
        (few, 2 * few),
        (many, many + rest),
        (many, 30 * many),
    ):
        yield {"sigma": round(float(rng.uniform(0.5, 3)), 2), "n": n, "population": population}


@exercise.fact("for n = 2 and N = 6 it is the standard deviation of the means of all 15 pairs")
def _(error, rng):
    values = rng.normal(size=6)
    means = [(values[i] + values[j]) / 2 for i in range(6) for j in range(i)]
    return np.isclose(error(float(values.std()), 2, 6), np.std(means))


exercise.help(r"""
1. What varies in a minibatch of one, and what remains of it in the mean of $n$ values?
2. For independent values, the variance of a mean of $n$ is the variance of one value, divided by
   $n$. In a finite population a further factor falls from 1 at $n=1$ to 0 at $n=N$.
3. Divide by a root. For a population, multiply by that of all not drawn over all members but one.
your standard error divides by n; it is σ / √n
    np.sqrt(n) → n
you divide by n and ignore the population; it is σ / √n, times a factor if there is a population
    np.sqrt(n) → n ; population is None → True
you divide by √(n − 1), which belongs to estimates of σ; the mean of n has σ / √n
    np.sqrt(n) → np.sqrt(n - 1)
your factor (N − n)/(N − 1) belongs to the variance; the standard error needs its square root
    np.sqrt((population - n) / (population - 1)) → (population - n) / (population - 1)
your factor √((N − n)/N) goes with a σ that divides by N − 1; this σ needs √((N − n)/(N − 1))
    (population - 1) → population
""")
