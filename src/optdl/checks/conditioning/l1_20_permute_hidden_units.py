"""The weights of the same network with its hidden units in another order."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.conditioning.shared import layer
from optdl.checks.exercise import Case, Exercise, Function
from optdl.conditioning import permute_hidden_units

exercise = Exercise("L1-20:order", permute_hidden_units, parts=("W", "b", "v"))


@exercise.answer
def _(W, b, v, order):
    return W[order], b[order], v[order]


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for h, d, order in ((3, 1, [1, 2, 0]), (4, 2, [2, 0, 3, 1]), (5, 3, [4, 2, 0, 1, 3])):
        yield {**layer(rng, h, d), "order": order}


@exercise.fact("the network computes the same function")
def _(function: Function, rng: np.random.Generator) -> bool:
    W, b, v = rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=6)
    W2, b2, v2 = function(W, b, v, [5, 0, 3, 1, 2, 4])
    x = rng.normal(size=(20, 3))
    before, after = np.tanh(x @ W.T + b) @ v, np.tanh(x @ np.asarray(W2).T + b2) @ v2
    return bool(np.allclose(before, after) and not np.allclose(W, W2))


exercise.mistake(
    "you leave the outgoing weights in the old order; they belong to the units, too",
    ("v[order]", "v"),
)

exercise.mistake(
    "you leave the biases in the old order; they belong to the units, too", ("b[order]", "b")
)

exercise.mistake(
    "you permute the other way; the new unit i is the old unit order[i]",
    ("    return", "    order = np.argsort(order)\n    return"),
)
