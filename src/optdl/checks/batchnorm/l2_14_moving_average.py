"""Moving averages."""

from collections.abc import Iterator

import numpy as np

from optdl.batchnorm import moving_average
from optdl.checks.exercise import Case, Exercise, Function

exercise = Exercise("L2-14", moving_average)


@exercise.answer
def _(values, rho, start):
    average, averages = (values[0] if start is None else start, [])
    for value in values:
        average = rho * average + (1 - rho) * value
        averages.append(average)
    return np.array(averages)


SHAPES_OF_AVERAGES = (
    (3, 1, 0.75, False),
    (3, 1, 0.9, True),
    (6, 3, 0.6, False),
    (4, 2, 0.8, True),
)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for t, d, rho, given in SHAPES_OF_AVERAGES:
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
    shares = np.asarray(function(values, 0.8, np.zeros(1))).ravel()
    expected = [0, 0, *(0.2 * 0.8**age for age in range(7))]
    return bool(np.allclose(shares, expected))


exercise.mistake(
    "your ρ weights the new value; here it is the share of the old average",
    ("rho * average + (1 - rho)", "(1 - rho) * average + rho"),
)

exercise.mistake(
    "you start from 0; if no start is given, start from the first value",
    ("values[0]", "np.zeros(values.shape[1])"),
)

exercise.mistake(
    "you do not use `start`; if it is given, it is the average before the first value",
    (" if start is None else start", ""),
)

exercise.mistake(
    "you use `start` as a truth value, and an array of several numbers has none; "
    "test `start is None`",
    ("values[0] if start is None else start", "start if start else values[0]"),
)


@exercise.mistake("you divide by 1 − ρᵗ, as the bias correction of Adam does; leave this out")
def _(values, rho, start):
    average, averages = np.zeros(values.shape[1]) if start is None else start, []
    for t, value in enumerate(values, start=1):
        average = rho * average + (1 - rho) * value
        averages.append(average / (1 - rho**t))
    return np.array(averages)


@exercise.mistake(
    "you return the plain mean of all values so far; the weight of a value falls with its age"
)
def _(values, rho, start):
    return np.cumsum(values, axis=0) / np.arange(1, len(values) + 1)[:, None]


@exercise.mistake("you mix each value with the value before it; mix it with the average")
def _(values, rho, start):
    first = values[0] if start is None else start
    before = np.concatenate([first[None], values[:-1]])
    return rho * before + (1 - rho) * values


exercise.mistake("your new value is not multiplied by its share, 1 − ρ", ("(1 - rho) * ", ""))


@exercise.mistake("your first row is the start; it is the average after the first value")
def _(values, rho, start):
    averages = [values[0] if start is None else start]
    for value in values[1:]:
        averages.append(rho * averages[-1] + (1 - rho) * value)
    return np.array(averages)


@exercise.mistake("you return only the last average; return the average after each value")
def _(values, rho, start):
    average = values[0] if start is None else start
    for value in values:
        average = rho * average + (1 - rho) * value
    return average


exercise.mistake(
    "your first row is the average before any value; return one row for each value",
    (
        "average, averages = (values[0] if start is None else start, [])",
        "average = values[0] if start is None else start\n    averages = [average]",
    ),
)
