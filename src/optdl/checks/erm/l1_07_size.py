"""The smallest minibatch whose mean has a given standard error."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.erm import examples_needed


@answer_to("L1-07:size", examples_needed)
def exercise(error, sigma, population=None):
    n = (sigma / error) ** 2
    if population is not None:
        n = n * population / (population - 1 + n)
    return int(np.ceil(n))


@exercise.cases
def _(rng):
    def draw(*populations: int) -> tuple[float, float, int]:
        sigma = round(float(rng.uniform(1, 3)), 1)
        return int(rng.choice([113, 167, 211, 271])) / 1000, sigma, int(rng.choice(populations))

    # exactly whole, computed in any way
    error = 2.0 ** -int(rng.integers(1, 5))
    yield {"error": error, "sigma": error * int(rng.integers(2, 7)), "population": None}
    error, sigma, population = draw(5, 7)
    yield {"error": error / 4, "sigma": sigma, "population": None}
    yield {"error": error / 4, "sigma": sigma, "population": population}
    # where it matters to round up, to do so once, and to divide by N − 1 + n and not by N + n
    for number in range(3):
        while True:
            error, sigma, population = draw(11, 13, 37, 101)
            n = (sigma / error) ** 2
            size = _size(n, population)
            mistaken = size - 0.5, _size(np.ceil(n), population), _size(n, population, 0)
            if np.ceil(size) != np.ceil(mistaken[number]):
                break
        yield {"error": error, "sigma": sigma, "population": population}
    yield {"error": 2 * sigma, "sigma": sigma, "population": None}  # one example is enough


def _size(n: float, population: int, less: int = 1) -> float:
    return n * population / (population - less + n)


@exercise.fact("for a population, it is the least size with a standard error of at most `error`")
def _(needed, rng):
    def error(n: int, population: int) -> float:
        return float(2 / np.sqrt(n) * np.sqrt((population - n) / (population - 1)))

    for population in rng.integers(30, 300, size=5).tolist():
        allowed = float(rng.uniform(0.2, 0.5))
        n = needed(allowed, 2.0, population)
        # up to rounding, as an n that is not rounded has just the allowed error
        if not error(n, population) <= allowed * (1 + 1e-12) < error(n - 1, population):
            return False
    return True


exercise.help(r"""
1. For which $n$, whole or not, is the standard error exactly `error`, first without a population?
2. With $n_0$ for it, the condition is $n_0\,(N-n)\le n\,(N-1)$. Collect the terms with $n$.
3. For a population multiply $n_0$ by $N$, and divide by what multiplies $n$. Round up at the end.
you round down, so the error is too large; round up
    np.ceil(n) → n
where the size is a whole number, yours is one too many: "at most" includes equality
    int(np.ceil(n)) → int(n) + 1
your size is that of a factor √((N − n)/N); with N − 1 below, n is n₀N/(N − 1 + n₀)
    (population - 1 + n) → (population + n)
you round up twice; solve the inequality for n first, and round up at the end
    (sigma / error) ** 2 → np.ceil((sigma / error) ** 2)
your n grows like σ/error; the error falls like 1/√n, so n grows like the square
    (sigma / error) ** 2 → sigma / error
your factor uses the size with replacement; n is on both sides: solve the inequality for n
    n * population / (population - 1 + n) → n * max(population - n, 0) / (population - 1)
""")
