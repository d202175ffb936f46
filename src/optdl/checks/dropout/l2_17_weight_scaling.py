"""Weight scaling."""

import numpy as np

from optdl.checks.dropout.shared import layer_cases
from optdl.checks.exercise import Exercise, Function
from optdl.dropout import weight_scaling

exercise = Exercise("L2-17:scaling", weight_scaling)


@exercise.answer
def _(W, b, x, keep):
    scores = np.exp(W @ (keep * x) + b)
    return scores / scores.sum()


@exercise.fact("the answer is the normalized geometric mean of all subnetworks")
def _(function: Function, rng: np.random.Generator) -> bool:
    W, b, x = rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=3)
    masks = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)])
    scores = np.exp((masks * x) @ W.T + b)
    chances = 0.3 ** masks.sum(axis=1) * 0.7 ** (3 - masks.sum(axis=1))
    means = np.prod((scores / scores.sum(axis=1, keepdims=True)) ** chances[:, None], axis=0)
    return bool(np.allclose(function(W, b, x, 0.3), means / means.sum()))


exercise.cases(layer_cases)


exercise.mistake("you do not scale the inputs; multiply them by `keep`", ("(keep * x)", "x"))

exercise.mistake(
    "you divide by `keep`, as inverted dropout does in training; multiply by it here",
    ("(keep * x)", "x / keep"),
)

exercise.mistake(
    "you scale the bias, too; it is never dropped", ("W @ (keep * x) + b", "keep * (W @ x + b)")
)


@exercise.mistake("you scale the probabilities; scale the inputs x")
def _(W, b, x, keep):
    scores = np.exp(W @ x + b)
    return keep * scores / scores.sum()


exercise.mistake(
    "you multiply by 1 − `keep`, the probability of dropping; multiply by `keep`",
    ("W @ (keep * x)", "(1 - keep) * (W @ x)"),
)


@exercise.mistake("you return the scores; the softmax is missing")
def _(W, b, x, keep):
    return W @ (keep * x) + b


exercise.mistake(
    "you divide the scores by their sum; the softmax takes their exponentials first",
    ("np.exp(W @ (keep * x) + b)", "W @ (keep * x) + b"),
)
