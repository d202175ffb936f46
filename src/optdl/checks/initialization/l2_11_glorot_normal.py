"""Draw the weight of a layer from Glorot's normal distribution."""

import numpy as np

from optdl.checks.exercise import Exercise
from optdl.checks.initialization.shared import glorot_moments, weight_cases
from optdl.initialization import glorot_normal

exercise = Exercise("L2-11:glorot-normal", glorot_normal)


@exercise.answer
def _(fan_in, fan_out, rng):
    return rng.normal(0, np.sqrt(2 / (fan_in + fan_out)), size=(fan_out, fan_in))


exercise.cases(weight_cases)

exercise.fact("the weights have mean 0, variance 2 / (fan_in + fan_out) and one row for each unit")(
    glorot_moments
)


exercise.mistake(
    "2 / (fan_in + fan_out) is the variance; NumPy expects the standard deviation",
    ("np.sqrt(2 / (fan_in + fan_out))", "2 / (fan_in + fan_out)"),
)

exercise.mistake(
    "you use fan_in alone; Glorot uses the mean of fan_in and fan_out",
    ("2 / (fan_in + fan_out)", "1 / fan_in"),
)

exercise.mistake(
    "the 2 is missing; one over the mean of fan_in and fan_out is 2 over their sum",
    ("2 / (fan_in + fan_out)", "1 / (fan_in + fan_out)"),
)

exercise.mistake(
    "you draw (fan_in, fan_out) numbers and transpose them; draw (fan_out, fan_in)",
    ("size=(fan_out, fan_in))", "size=(fan_in, fan_out)).T"),
)
