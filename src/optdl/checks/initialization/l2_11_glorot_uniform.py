"""Glorot's uniform distribution."""

import numpy as np

from optdl.checks.exercise import Exercise
from optdl.checks.initialization.shared import glorot_moments, weight_cases
from optdl.initialization import glorot_uniform

exercise = Exercise("L2-11:glorot-uniform", glorot_uniform)


exercise.cases(weight_cases)


exercise.fact("mean 0, variance 2 / (fan_in + fan_out), one row for each unit")(glorot_moments)


@exercise.mistake(
    "your bound is the standard deviation; the uniform distribution on [−a, a] "
    "has the variance a²/3"
)
def _(fan_in, fan_out, rng):
    bound = np.sqrt(2 / (fan_in + fan_out))
    return rng.uniform(-bound, bound, size=(fan_out, fan_in))


@exercise.mistake("your bound lacks the square root: a² = 6 / (fan_in + fan_out)")
def _(fan_in, fan_out, rng):
    bound = 6 / (fan_in + fan_out)
    return rng.uniform(-bound, bound, size=(fan_out, fan_in))


@exercise.mistake("a² is three times the variance 2 / (fan_in + fan_out): 6, not 3, over the sum")
def _(fan_in, fan_out, rng):
    bound = np.sqrt(3 / (fan_in + fan_out))
    return rng.uniform(-bound, bound, size=(fan_out, fan_in))


@exercise.mistake("you draw from [0, a]; draw from [−a, a], so that the mean is 0")
def _(fan_in, fan_out, rng):
    return rng.uniform(0, np.sqrt(6 / (fan_in + fan_out)), size=(fan_out, fan_in))
