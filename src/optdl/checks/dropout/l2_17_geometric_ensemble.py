"""The ensemble."""

import numpy as np

from optdl.checks.dropout.shared import layer_cases
from optdl.checks.exercise import Exercise, Function
from optdl.dropout import geometric_ensemble

exercise = Exercise("L2-17:geometric", geometric_ensemble)


@exercise.answer
def _(W, b, x, keep):
    masks = np.arange(2 ** len(x))[:, None] >> np.arange(len(x)) & 1
    chances = np.prod(np.where(masks, keep, 1 - keep), axis=1)
    means = np.exp(chances @ (masks * x @ W.T + b))
    return means / means.sum()


@exercise.fact("with one input the answer is the normalized geometric mean of two subnetworks")
def _(function: Function, rng: np.random.Generator) -> bool:
    # One input: it is there with probability r, or it is not.
    W, b, x = rng.normal(size=(3, 1)), rng.normal(size=3), rng.normal(size=1)
    there, gone = np.exp(W[:, 0] * x[0] + b), np.exp(b)
    product = (there / there.sum()) ** 0.3 * (gone / gone.sum()) ** 0.7
    return bool(np.allclose(function(W, b, x, 0.3), product / product.sum()))


exercise.cases(layer_cases)


exercise.mistake(
    "you average the probabilities; average their logarithms",
    (
        "means = np.exp(chances @ (masks * x @ W.T + b))\n    return means / means.sum()",
        "scores = np.exp(masks * x @ W.T + b)\n"
        "    return chances @ (scores / scores.sum(axis=1, keepdims=True))",
    ),
)

exercise.mistake(
    "your geometric means do not add up to 1; divide them by their sum",
    (
        "means = np.exp(chances @ (masks * x @ W.T + b))\n    return means / means.sum()",
        "scores = np.exp(masks * x @ W.T + b)\n"
        "    return np.exp(chances @ np.log(scores / scores.sum(axis=1, "
        "keepdims=True)))",
    ),
)


@exercise.mistake("you give all masks the same weight; the weight of a mask is its probability")
def _(W, b, x, keep):
    masks = np.arange(2 ** len(x))[:, None] >> np.arange(len(x)) & 1
    scores = np.exp((masks * x) @ W.T + b)
    means = np.exp(np.log(scores / scores.sum(axis=1, keepdims=True)).mean(axis=0))
    return means / means.sum()


exercise.mistake(
    "you divide the kept inputs by `keep`; here the entries of a mask are 0 and 1",
    ("x @", "x / keep @"),
)

exercise.mistake(
    "the subnetwork without any input is missing; it predicts softmax(b)",
    ("(2", "(1, 2"),
    ("chances @", "chances / chances.sum() @"),
)

exercise.mistake(
    "you take `keep` for the probability of dropping an input", ("keep, 1 -", "1 - keep,")
)

exercise.mistake(
    "your weight of a mask lacks the factor 1 − `keep` for each input that is dropped",
    (" - keep", ".0"),
)

exercise.mistake("your bias is missing; it is never dropped", (" + b", ""))
