"""Draw the weight of a layer whose units are leaky ReLUs. Source: L2-11."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.initialization.shared import weight_cases


@answer_to("L2-11:leaky", "leaky_normal")
def exercise(fan_in, fan_out, slope, rng):
    std = np.sqrt(2 / ((1 + slope**2) * fan_in))
    return rng.normal(0, std, size=(fan_out, fan_in))


@exercise.cases
def _(rng):
    slopes = 0.0, *rng.uniform([0.2, 0.5], [0.5, 0.8]).round(2).tolist(), 1.0
    slopes = rng.permutation(slopes).tolist()
    for case, slope in zip(weight_cases(rng), slopes, strict=True):
        generator = case.pop("rng")
        yield {**case, "slope": slope, "rng": generator}


@exercise.fact("a layer of leaky ReLUs keeps the mean square of normal inputs")
def _(function, rng):
    x = rng.normal(size=(300, 300))
    z = np.asarray(function(300, 400, 0.6, rng)) @ x
    return np.isclose(np.mean(np.maximum(z, 0.6 * z) ** 2), np.mean(x**2), rtol=0.05)


exercise.help(r"""
1. What does the leaky ReLU leave of the mean square of the positive half, and of the negative one?
2. A layer multiplies it by $n_{in}\,\mathrm{Var}(W)$ and by what is left; the product must be 1.
3. Solve for the variance. `rng.normal` takes mean, deviation and shape, with a row per output.
the 2 is missing; each half of the signal holds half of the mean square
    2 / ( → 1 / (
you multiply by the factor that the layer keeps; the variance has to undo it: divide
    2 / ((1 + slope**2) * fan_in) → (1 + slope**2) / 2 / fan_in
you divide by fan_out; to keep the signal forward, divide by fan_in
    * fan_in)) → * fan_out))
you pass the variance; `rng.normal` expects the standard deviation, its root
    np.sqrt(2 / ((1 + slope**2) * fan_in)) → 2 / ((1 + slope**2) * fan_in)
you average the slopes; the mean square keeps (1 + a²)/2 of itself
    slope**2 → slope
""")
