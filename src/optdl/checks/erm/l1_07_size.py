"""The smallest minibatch whose mean has a given standard error."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.erm import examples_needed

exercise = Exercise("L1-07:size", examples_needed)


@exercise.answer
def _(error, sigma, population=None):
    n = (sigma / error) ** 2
    if population is not None:
        n = n * population / (population - 1 + n)
    return int(np.ceil(n))


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    yield {"error": 0.3, "sigma": 1.0, "population": None}
    for population in (6, 17):
        yield {"error": 0.3, "sigma": 1.0, "population": population}
    yield {"error": 0.03, "sigma": 2.0, "population": None}
    yield {"error": 0.25, "sigma": 1.0, "population": None}  # exactly 16
    for _ in range(3):
        # three decimals and a prime: the size before rounding is no whole number
        error, sigma = round(float(rng.uniform(0.1, 0.3)), 3), round(float(rng.uniform(1, 3)), 1)
        yield {"error": error, "sigma": sigma, "population": int(rng.choice([13, 37, 101, 211]))}


@exercise.fact("the size is enough, and one example less is not")
def _(needed: Function, rng: np.random.Generator) -> bool:
    def error(n: int, population: int) -> float:
        return float(2 / np.sqrt(n) * np.sqrt((population - n) / (population - 1)))

    for population in rng.integers(30, 300, size=5).tolist():
        allowed = float(rng.uniform(0.2, 0.5))
        n = needed(allowed, 2.0, population)
        if not error(n, population) <= allowed < error(n - 1, population):
            return False
    return True


@exercise.fact("half the error takes four times as many, with replacement")
def _(needed: Function, rng: np.random.Generator) -> bool:
    sigma = float(rng.uniform(100, 200))
    return bool(abs(needed(0.5, sigma) - 4 * needed(1.0, sigma)) <= 4)


@exercise.fact("a population never needs more than all of it")
def _(needed: Function, rng: np.random.Generator) -> bool:
    population = int(rng.integers(5, 50))
    return bool(needed(1e-6, 1.0, population) == population)


exercise.hints(
    "Suppose that $n$ need not be a whole number. For which $n$ is the standard error exactly "
    "`error`, first without a population?",
    r"Let $n_0$ be this number. With $N$ members and without replacement the condition is "
    r"$n_0\,(N-n)\le n\,(N-1)$. Collect the terms with $n$ on one side.",
    "Compute $n_0$. For a population, multiply it by $N$, and divide by what multiplies $n$ once "
    "the terms are collected. Make the result a whole number at the very end.",
)

exercise.mistakes(r"""
you round down, so the error is a little too large; round up
    np.ceil(n) → n
you round down and add 1; where the size is a whole number this is one too many, so round up
    int(np.ceil(n)) → int(n) + 1
you round up twice; solve the inequality for n first, and round up at the end
    (sigma / error) ** 2 → np.ceil((sigma / error) ** 2)
you round to the nearest number; it must be enough, so round up
    np.ceil(n) → round(n)
your n grows like σ/error; the error falls like 1/√n, so n grows like the square
    (sigma / error) ** 2 → sigma / error
you ignore the population; without replacement fewer examples are enough
    n = n * population / (population - 1 + n) → pass
your factor belongs to the size with replacement; n stands on both sides of the inequality: solve it
for n
    n * population / (population - 1 + n) → n * max(population - n, 0) / (population - 1)
you never return more than the population, but otherwise ignore it; the error without replacement is
smaller for every n above 1
    n * population / (population - 1 + n) → min(n, population)
your factor is (N − n)/N, which goes with s over N − 1; with σ over N it is (N − n)/(N − 1)
    (population - 1 + n) → (population + n)
""")
