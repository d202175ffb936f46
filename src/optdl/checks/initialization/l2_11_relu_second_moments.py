"""Second moments in a ReLU network."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.initialization import relu_second_moments

exercise = Exercise("L2-11:second-moments", relu_second_moments)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for layers in (1, 3, 6):
        fans = [int(fan) for fan in rng.integers(2, 9, size=layers)]
        yield {
            "first": round(float(rng.uniform(0.5, 2)), 2),
            "fans": fans,
            "variances": rng.uniform(0.1, 1, size=layers).round(2).tolist(),
        }


@exercise.fact("He's weights keep the mean square, layer by layer")
def _(function: Function, rng: np.random.Generator) -> bool:
    fans = [int(fan) for fan in rng.integers(5, 500, size=50)]
    return bool(np.allclose(function(3.0, fans, [2 / fan for fan in fans]), 3.0))


@exercise.mistake("you treat the ReLU as linear; it keeps half of the mean square")
def _(first, fans, variances):
    return first * np.cumprod([1.0] + [n * v for n, v in zip(fans, variances, strict=True)])


@exercise.mistake("the number of inputs is missing: a unit adds up that many terms")
def _(first, fans, variances):
    return first * np.cumprod([1.0] + [0.5 * v for v in variances])


@exercise.mistake("you add the factors of the layers; multiply them")
def _(first, fans, variances):
    return first + np.cumsum([0.0] + [0.5 * n * v for n, v in zip(fans, variances, strict=True)])


@exercise.mistake("q₀ is missing: return one value more than there are layers")
def _(first, fans, variances):
    return first * np.cumprod([0.5 * n * v for n, v in zip(fans, variances, strict=True)])


@exercise.mistake("you square the variances; use them as they are")
def _(first, fans, variances):
    return first * np.cumprod(
        [1.0] + [0.5 * n * v**2 for n, v in zip(fans, variances, strict=True)]
    )
