"""Draw the weight of a layer from the uniform distribution with Glorot's variance."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.initialization.shared import weight_cases
from optdl.initialization import glorot_uniform


@answer_to("L2-11:glorot-uniform", glorot_uniform)
def exercise(fan_in, fan_out, rng):
    a = np.sqrt(6 / (fan_in + fan_out))
    return rng.uniform(-a, a, size=(fan_out, fan_in))


exercise.cases(weight_cases)


@exercise.fact("the weights have mean 0 and variance 2 / (fan_in + fan_out)")
def _(function, rng):
    W = np.asarray(function(300, 200, rng)) / np.sqrt(2 / 500)
    error = 6 / np.sqrt(W.size)  # six standard errors
    return abs(W.mean()) < error and abs(W.var() - 1) < error * np.sqrt(2)


exercise.help(r"""
1. What is the variance of the uniform distribution on $[-a, a]$, the mean of $z^2$ over it?
2. The variance is $\frac1{2a}\int_{-a}^a z^2\,dz$. Set it equal to Glorot's, and solve for $a$.
3. The variance is $a^2/3$. The array has one row for each output and one column for each input.
your bound is the standard deviation; the uniform distribution on [−a, a] has the variance a²/3
    6 / (fan_in + fan_out) → 2 / (fan_in + fan_out)
your bound lacks the square root; a² = 6 / (fan_in + fan_out)
    np.sqrt(6 / (fan_in + fan_out)) → 6 / (fan_in + fan_out)
you draw from [0, a]; draw from [−a, a], so that the mean is 0
    uniform(-a, a → uniform(0, a
you draw from a normal distribution; the uniform one on [−a, a] is asked for
    rng.uniform(-a, a, → rng.normal(0, a / np.sqrt(3),
your bound is that of He, with the fan-in alone; Glorot's has the sum of fan-in and fan-out
    (fan_in + fan_out) → fan_in
""")
