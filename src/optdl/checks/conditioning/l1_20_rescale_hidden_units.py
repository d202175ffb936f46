"""The weights of the same ReLU network with its hidden units rescaled."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.conditioning.shared import layer
from optdl.checks.exercise import Case, Exercise, Function
from optdl.conditioning import rescale_hidden_units

exercise = Exercise("L1-20:scale", rescale_hidden_units, parts=("W", "b", "v"))


@exercise.answer
def _(W, b, v, factors):
    return W * factors[:, None], b * factors, v / factors


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for h, d in ((2, 1), (3, 2), (4, 3)):
        yield {**layer(rng, h, d), "factors": rng.uniform(0.5, 3, size=h).round(1)}


@exercise.fact("the ReLU network computes the same function")
def _(function: Function, rng: np.random.Generator) -> bool:
    W, b, v = rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=6)
    W2, b2, v2 = function(W, b, v, rng.uniform(0.1, 9, size=6))
    x = rng.normal(size=(20, 3))
    before = np.maximum(x @ W.T + b, 0) @ v
    return bool(np.allclose(before, np.maximum(x @ np.asarray(W2).T + b2, 0) @ v2))


exercise.mistake(
    "you leave the bias as it is; it is part of the unit's input, so scale it, too",
    ("b * factors", "b"),
)

exercise.mistake(
    "you multiply the outgoing weight by the factor; divide it by the factor",
    ("v / factors", "v * factors"),
)

exercise.mistake(
    "you divide at the input and multiply at the output; do it the other way round",
    ("W * factors[:, None], b * factors", "W / factors[:, None], b / factors"),
    ("v / factors", "v * factors"),
)
