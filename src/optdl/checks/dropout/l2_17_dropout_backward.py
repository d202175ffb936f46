"""Compute the gradient at the input of dropout from the gradient at its output."""

import numpy as np

from optdl.checks.exercise import Exercise
from optdl.dropout import dropout_backward

exercise = Exercise("L2-17:backward", dropout_backward)


@exercise.cases
def _(rng):
    few, many = rng.integers((2, 5), (5, 8))
    for shape in ((few, many), (many, few), (many, 1)):
        p = rng.choice([0.2, 0.4, 0.6, 0.75])
        mask = (rng.random(size=shape) >= p) / (1 - p)
        mask[:2, 0] = rng.permutation([0.0, 1 / (1 - p)])
        signs = rng.choice([-1, 1], size=shape)
        yield {"grad": rng.uniform(1, 3, size=shape).round(2) * signs, "mask": mask}


@exercise.fact("Σ `grad` · y equals Σ your gradient · x, since y = mask · x is linear in x")
def _(function, rng):
    mask = (rng.random(size=(5, 7)) >= 0.4) / 0.6
    grad, x = rng.normal(size=(2, 5, 7))
    return np.isclose(np.sum(grad * (x * mask)), np.sum(function(grad, mask) * x))


exercise.help(r"""
1. By how much does $y_i$ change if $x_i$ grows by a little? Does any other entry of $y$ change?
2. The mask does not depend on $x$, so $\partial y_i/\partial x_i = M_i$: use the chain rule.
3. Treat `grad` as the forward pass treats `x`: entry by entry, with the same mask.
your gradient lacks the scale; multiply by the mask, whose kept entries are 1/(1 − p)
    * mask → * (mask > 0)
you divide by the mask where it is not 0; multiply by it
    grad * mask → np.divide(grad, mask, where=mask != 0, out=0 * grad)
""")
