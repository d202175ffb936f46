"""Drop entries of x at random in training, and return the mask that did it, too."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.dropout import dropout_forward
from optdl.observation import generators


@answer_to("L2-16:forward", dropout_forward, parts=("y", "mask"))
def exercise(x, p, rng, training):
    mask = (rng.random(x.shape) >= p) / (1 - p) if training else np.ones(x.shape)
    return x * mask, mask


@exercise.cases
def _(rng):
    few, many = rng.integers((2, 5), (5, 8))
    # `rng.binomial` gives the same mask where p is ½ or more
    for shape, p, training in (
        ((few, many), (0.3, 0.4), True),
        ((many + 1, few), (0.2, 0.4), True),
        ((1, many), (0.6, 0.7), True),
        ((many, few), (0.2, 0.7), False),
    ):
        x = rng.uniform(1, 3, size=shape).round(2) * rng.choice([-1, 1], size=shape)
        yield x, float(rng.choice(p)), np.random.default_rng(rng.integers(1000)), training


@exercise.fact("training draws one number for each entry, inference none", is_visible=True)
def _(function, rng):
    for p, training in ((0.6, False), (0.0, True)):
        case = {"x": rng.normal(size=(4, 3)), "p": p, "rng": rng, "training": training}
        left = [*exercise.outcomes(function, [case])[0].states]
        rng.random((4 * training, 3))
        if left != generators(case.values()):
            return False
    return True


exercise.help(r"""
1. What is different at inference: how the mask is made, how the output follows from it, or both?
2. Only the mask differs: random in training, ones at inference. The output is `x` times the mask.
3. In training, draw one number for each entry of `x`; set the entries with a draw below `p` to 0
   and the others to the scale. At inference, use `np.ones`. Return the product, then the mask.
you take p for the probability of keeping; here it is the probability of dropping
    (rng.random(x.shape) >= p) / (1 - p) → (rng.random(x.shape) < p) / p
you draw with `rng.binomial`, which gives another mask; keep where `rng.random(x.shape)` ≥ p
    (rng.random(x.shape) >= p) → rng.binomial(1, 1 - p, x.shape)
your draws fill the columns of the mask; `rng.random(x.shape)` fills its rows
    rng.random(x.shape) → rng.random(x.shape[::-1]).T
all examples of yours share one mask; draw a number for each entry of each example
    rng.random(x.shape) → np.broadcast_to(rng.random(x.shape[1:]), x.shape)
""")
