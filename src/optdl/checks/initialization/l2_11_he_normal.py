"""Draw the weight of a layer from He's normal distribution."""

import numpy as np

from optdl.checks.exercise import Exercise, Function
from optdl.checks.initialization.shared import variance_is, weight_cases
from optdl.initialization import he_normal

exercise = Exercise("L2-11:he-normal", he_normal)


@exercise.answer
def _(fan_in, fan_out, rng):
    return rng.normal(0, np.sqrt(2 / fan_in), size=(fan_out, fan_in))


exercise.cases(weight_cases)


@exercise.fact("the weights have mean 0, variance 2 / fan_in and one row for each unit")
def _(function: Function, rng: np.random.Generator) -> bool:
    return variance_is(2 / 300, function, rng)


exercise.mistake(
    "the 2 is missing; the ReLU sets half of the mean square to zero", ("2 / fan_in", "1 / fan_in")
)

exercise.mistake(
    "you divide by fan_out; to keep the signal forward, divide by fan_in",
    ("2 / fan_in", "2 / fan_out"),
)

exercise.mistake(
    "2 / fan_in is the variance; NumPy expects the standard deviation",
    ("np.sqrt(2 / fan_in)", "2 / fan_in"),
)

exercise.mistake(
    "your variance is Glorot's; He's depends on fan_in alone",
    ("2 / fan_in", "2 / (fan_in + fan_out)"),
)
