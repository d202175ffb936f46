"""The standard error of a mean of values drawn with or without replacement."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.erm import standard_error

exercise = Exercise("L1-07", standard_error)


@exercise.answer
def _(sigma, n, population=None):
    error = sigma / np.sqrt(n)
    if population is None:
        return error
    return error * np.sqrt((population - n) / (population - 1))


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    yield {"sigma": 2.0, "n": 9, "population": None}
    yield {"sigma": round(float(rng.uniform(1, 3)), 1), "n": 10**6, "population": None}
    yield {"sigma": 1.0, "n": 4, "population": 10}
    yield {"sigma": round(float(rng.uniform(1, 3)), 1), "n": 10, "population": 10}
    for _ in range(2):
        n = int(rng.integers(5, 200))
        sigma = round(float(rng.uniform(0.5, 3)), 2)
        yield {"sigma": sigma, "n": n, "population": n + int(rng.integers(1, 300))}


@exercise.fact("four times as many values halve it")
def _(error: Function, rng: np.random.Generator) -> bool:
    sigma, n = float(rng.uniform(1, 2)), int(rng.integers(2, 50))
    return bool(np.isclose(error(sigma, 4 * n, None), error(sigma, n, None) / 2))


@exercise.fact("it is the standard deviation over all pairs out of six")
def _(error: Function, rng: np.random.Generator) -> bool:
    values = rng.normal(size=6)
    means = [(values[i] + values[j]) / 2 for i in range(6) for j in range(i)]
    return bool(np.isclose(error(float(values.std()), 2, 6), np.std(means)))


@exercise.fact("a single draw has the standard deviation σ")
def _(error: Function, rng: np.random.Generator) -> bool:
    return bool(np.isclose(error(2.5, 1, int(rng.integers(5, 50))), 2.5))


exercise.hints(
    "What varies in a minibatch of one, and what remains of it in the mean of $n$ values?",
    "For independent values, the variance of a mean of $n$ is the variance of one value, divided "
    "by $n$. In a finite population a further factor falls from 1 at $n=1$ to 0 at $n=N$.",
    "Divide `sigma` by one square root. For a population, multiply by another root, that of a "
    "quotient: the members that are not drawn, over all members but one.",
)

exercise.mistakes(r"""
your standard error divides by n; it is σ / √n
    np.sqrt(n) → n
you return the variance of the mean; take its square root
    sigma / np.sqrt(n) → sigma**2 / n
    np.sqrt((population - n) / (population - 1)) → (population - n) / (population - 1)
you divide by √(n − 1), which belongs to estimates of σ; the mean of n has σ / √n
    np.sqrt(n) → np.sqrt(n - 1)
your factor (N − n)/(N − 1) belongs to the variance; the standard error needs its square root
    np.sqrt((population - n) / (population - 1)) → (population - n) / (population - 1)
your factor is √((N − n)/N), which goes with s over N − 1; with σ over N it is √((N − n)/(N − 1))
    (population - 1) → population
you put a large number in place of the missing population; return σ / √n itself where `population`
is None
    return error\n    r → population = 10**9\n    r
""")
