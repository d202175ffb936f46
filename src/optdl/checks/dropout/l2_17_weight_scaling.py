"""Compute the prediction of the whole layer, with its inputs multiplied by `keep`."""

import numpy as np

from optdl.checks.dropout.shared import layer_cases
from optdl.checks.exercise import Exercise, Function
from optdl.dropout import weight_scaling

exercise = Exercise("L2-17:scaling", weight_scaling)


@exercise.answer
def _(W, b, x, keep):
    scores = np.exp(W @ (keep * x) + b)
    return scores / scores.sum()


exercise.cases(layer_cases)


@exercise.fact("the answer is the normalized geometric mean of all subnetworks")
def _(function: Function, rng: np.random.Generator) -> bool:
    W, b, x = rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=3)
    masks = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)])
    scores = np.exp((masks * x) @ W.T + b)
    chances = 0.3 ** masks.sum(axis=1) * 0.7 ** (3 - masks.sum(axis=1))
    means = np.prod((scores / scores.sum(axis=1, keepdims=True)) ** chances[:, None], axis=0)
    return bool(np.allclose(function(W, b, x, 0.3), means / means.sum()))


exercise.hints(
    "How does this prediction differ from that of the same layer without dropout?",
    "Only the inputs differ: each is multiplied by `keep` before the weight is applied. A softmax "
    "divides the exponential of each score by the sum of all exponentials.",
    "Multiply the scaled inputs by the weight, and add the bias. Take the exponentials of these "
    "scores, and divide them by their sum.",
)

exercise.mistakes(r"""
you divide by `keep`, as inverted dropout does in training; multiply by it here
    keep * x → x / keep
you scale the bias, too; it is never dropped
    W @ (keep * x) + b → keep * (W @ x + b)
you scale the probabilities; scale the inputs x
    keep * x → x
    return scores → return keep * scores
you return the scores; the softmax of the scores is asked for
    np.exp(W @ (keep * x) + b) → W @ (keep * x) + b
    scores / scores.sum() → scores
you divide the scores by their sum; the softmax takes their exponentials first
    np.exp(W @ (keep * x) + b) → W @ (keep * x) + b
""")
