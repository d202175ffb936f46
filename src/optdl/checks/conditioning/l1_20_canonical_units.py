"""One setting of the weights that stands for all orders and scalings of ReLU units."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.conditioning import canonical_units


@answer_to("L1-20", canonical_units, parts=("W", "b", "v"))
def exercise(W, b, v):
    norms = np.sqrt(np.sum(W**2, axis=1) + b**2)
    t = np.sqrt(np.abs(v) / norms)
    W, b, v = W * t[:, None], b * t, v / t
    order = np.argsort(v)
    return W[order], b[order], v[order]


@exercise.cases
def _(rng):
    for low, high, turned in ((1, 2, True), (2, 4, False), (4, 6, True)):
        h, d = rng.integers((low, 1), (high, 4)).tolist()
        rows = rng.normal(size=(h, d + 1))
        rows *= rng.uniform(0.8, 1.25, size=(h, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
        v = (np.arange(h) - 1.4) * rng.uniform(0.9, 1.1)
        v = np.roll(v, turned)
        rows[0] /= 1 if turned else 100  # then the scaling changes the order
        yield {"W": rows[:, :-1].round(4), "b": rows[:, -1].round(4), "v": v}


@exercise.fact("a network with reordered and rescaled units leads to the same setting")
def _(function, rng):
    W, b, v = rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=4)
    order, t = rng.permutation(4), rng.uniform(0.2, 5, size=4)
    moved = (W * t[:, None])[order], (b * t)[order], (v / t)[order]
    pairs = zip(function(W, b, v), function(*moved), strict=True)
    return all(np.allclose(left, right) for left, right in pairs)


exercise.help(r"""
1. Multiply a unit's incoming weights and bias by $t>0$. What keeps the function the same?
2. With $c$, the norm of the incoming weights and the bias, solve $t\,c=|v|/t$ for $t$.
3. Compute one factor for each unit from the norms along the rows, and give it a second axis where
   it scales `W`. Let one `argsort` of the new outgoing weights index all three arrays.
your norm lacks the bias; a unit's incoming weights are its row of W and its bias
    + b**2 →
you multiply the outgoing weight by the factor; divide it by the factor
    v / t → v * t
you leave W or b in the old order; a unit moves with all its weights
    W[order], b[order] → W, b
you sort by the outgoing weights before the scaling, which changes them; sort afterwards
    np.argsort(v) → np.argsort(v * t)
you sort by the absolute values of the outgoing weights; their signs count
    np.argsort(v) → np.argsort(np.abs(v))
""")
