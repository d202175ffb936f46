"""Compute the prediction of the whole layer, with its inputs multiplied by `keep`."""

import numpy as np

from optdl.checks.dropout.shared import layer_cases
from optdl.checks.exercise import answer_to
from optdl.dropout import weight_scaling


@answer_to("L2-17:scaling", weight_scaling)
def exercise(W, b, x, keep):
    scores = np.exp(W @ (keep * x) + b)
    return scores / scores.sum()


exercise.cases(layer_cases)


@exercise.fact("with inputs of zeros the answer is softmax(b)")
def _(function, rng):
    W, b = rng.normal(size=(4, 3)), rng.normal(size=4)
    return np.allclose(function(W, b, np.zeros(3), 0.3), np.exp(b) / np.exp(b).sum())


exercise.help(r"""
1. How does this prediction differ from that of the same layer without dropout?
2. Only the inputs differ: each is multiplied by `keep` before the weight is applied.
3. Multiply the scaled inputs by the weight, add the bias, and normalize the scores' exponentials.
you divide by `keep`, as inverted dropout does in training; multiply by it here
    keep * x → x / keep
you multiply by 1 − `keep`; `keep` is 1 − p already
    keep * x → (1 - keep) * x
you scale the bias, too; it is never dropped
    W @ (keep * x) + b → keep * (W @ x + b)
you divide the scores by their sum; the softmax takes their exponentials first
    np.exp(W @ (keep * x) + b) → W @ (keep * x) + b
""")
