"""He's normal distribution."""

import numpy as np

from optdl.checks.exercise import Exercise, Function
from optdl.checks.initialization.shared import variance_is, weight_cases
from optdl.initialization import he_normal

exercise = Exercise("L2-11:he-normal", he_normal)


@exercise.answer
def _(fan_in, fan_out, rng):
    return rng.normal(0, np.sqrt(2 / fan_in), size=(fan_out, fan_in))


@exercise.fact("mean 0, variance 2 / fan_in, one row for each unit")
def _(function: Function, rng: np.random.Generator) -> bool:
    return variance_is(2 / 300, function, rng)


exercise.cases(weight_cases)


exercise.mistake("the 2 is missing: the ReLU sets half of the mean square to zero", ("2", "1"))

exercise.mistake(
    "you divide by fan_out; to keep the signal forward, divide by fan_in",
    ("/ fan_in)", "/ fan_out)"),
)

exercise.mistake(
    "2 / fan_in is the variance; NumPy expects the standard deviation",
    ("np.sqrt(2 / fan_in)", "2 / fan_in"),
)

exercise.mistake(
    "this is Glorot's variance; He's depends on fan_in alone",
    ("/ fan_in)", "/ (fan_in + fan_out))"),
)
