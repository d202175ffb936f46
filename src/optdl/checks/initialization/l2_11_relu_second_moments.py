"""Predict the mean square of a ReLU network's activations, layer by layer."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.initialization import relu_second_moments

exercise = Exercise("L2-11:second-moments", relu_second_moments)


@exercise.answer
def _(first, fans, variances):
    moments = [first]
    for fan, variance in zip(fans, variances, strict=True):
        moments.append(0.5 * fan * variance * moments[-1])
    return np.array(moments)


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


exercise.mistake(
    "you treat the ReLU as linear; it keeps half of the mean square", ("0.5 * fan", "fan")
)

exercise.mistake(
    "the number of inputs is missing; a unit adds up that many terms", ("0.5 * fan", "0.5")
)

exercise.mistake("you square the variances; use them as they are", ("* variance", "* variance**2"))

exercise.mistake(
    "you add the factors of the layers; multiply them", ("* moments[-1]", "+ moments[-1]")
)

exercise.mistake(
    "you multiply q₀ by the factor of one layer; multiply the mean square of the layer before",
    ("moments[-1]", "first"),
)
