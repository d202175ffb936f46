"""Compute the moving average after each of several values."""

from collections.abc import Iterator

import numpy as np

from optdl.batchnorm import moving_average
from optdl.checks.exercise import Case, Exercise, Function

exercise = Exercise("L2-14", moving_average)


@exercise.answer
def _(values, rho, start):
    average = values[0] if start is None else start
    averages = []
    for value in values:
        average = rho * average + (1 - rho) * value
        averages.append(average)
    return np.array(averages)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    sizes = (3, 1, 0.75, False), (3, 1, 0.9, True), (6, 3, 0.6, False), (4, 2, 0.8, True)
    for t, d, rho, given in sizes:
        values = rng.uniform(2, 6, size=(t, d)).round(2)
        start = rng.uniform(-3, -1, size=d).round(2) if given else None
        yield {"values": values, "rho": rho, "start": start}


@exercise.fact("with ρ = 0 the averages are the values")
def _(function: Function, rng: np.random.Generator) -> bool:
    values = rng.normal(size=(5, 2))
    given = np.asarray(function(values, 0.0, np.ones(2)))
    return bool(np.allclose(given, values) and np.allclose(function(values, 0.0, None), values))


@exercise.fact("the weight of a value is multiplied by ρ with each later value")
def _(function: Function, rng: np.random.Generator) -> bool:
    values = np.zeros((9, 1))
    values[2] = 1.0
    weights = np.asarray(function(values, 0.8, np.zeros(1))).ravel()
    expected = [0, 0, *(0.2 * 0.8**age for age in range(7))]
    return bool(np.allclose(weights, expected))


exercise.hints(
    "Which array does each update take from the update before, and which array takes its place in "
    "the first update?",
    r"The first value enters by the same formula as all others. If the start is that value "
    r"itself, the first average equals it, since $\rho + (1 - \rho) = 1$.",
    r"Go through the rows in a loop. Multiply the average by $\rho$, add $1 - \rho$ times the row, "
    r"and append the new average to a list. Turn the list into an array at the end.",
)

exercise.mistakes(r"""
you start from 0; if no start is given, start from the first value
    values[0] if → np.zeros(values.shape[1]) if
you use `start` as a truth value, and an array of several numbers has none; test `start is None`
    values[0] if start is None else start → start if start else values[0]
you divide by 1 − ρᵗ, as the bias correction of Adam does; do not divide
    values[0] if → np.zeros(values.shape[1]) if
    append(average) → append(average / (1 - rho ** (len(averages) + 1)))
you mix each value with the value before it; mix it with the average
    average = rho * average → mixed = rho * average
    averages.append(average) → averages.append(mixed)\n        average = value
you do not multiply the new value by 1 − ρ; the average is ρμ + (1 − ρ)μ_B
    (1 - rho) * value → value
your first row is the start; it is the average after the first value
    averages = [] → averages = [average]
    in values: → in values[1:]:
""")


@exercise.mistake(
    "you return the plain mean of all values so far; the weight of a value falls with its age"
)
def _(values, rho, start):
    return np.cumsum(values, axis=0) / np.arange(1, len(values) + 1)[:, None]
