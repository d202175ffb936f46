"""One setting of the weights that stands for all orders and scalings of ReLU units."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.conditioning import canonical_units

exercise = Exercise("L1-20", canonical_units, parts=("W", "b", "v"))


@exercise.answer
def _(W, b, v):
    norms = np.sqrt(np.sum(W**2, axis=1) + b**2)
    t = np.sqrt(np.abs(v) / norms)
    W, b, v = W * t[:, None], b * t, v / t
    order = np.argsort(v)
    return W[order], b[order], v[order]


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    yield {"W": np.array([[3.0]]), "b": np.array([4.0]), "v": np.array([-20.0])}
    yield {"W": np.array([[8.0], [1.0]]), "b": np.array([6.0, 0.5]), "v": np.array([1.0, 2.0])}
    for h, d in ((3, 1), (4, 2), (5, 3)):
        yield {
            "W": rng.normal(size=(h, d)).round(2),
            "b": rng.normal(size=h).round(2),
            # distinct: units with equal outgoing weights could stand in either order
            "v": rng.permutation(np.arange(h) - 1.4) * rng.uniform(0.9, 1.1),
        }


@exercise.fact("the ReLU network computes the same function")
def _(function: Function, rng: np.random.Generator) -> bool:
    W, b, v = rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=6)
    W2, b2, v2 = function(W, b, v)
    x = rng.normal(size=(20, 3))
    before = np.maximum(x @ W.T + b, 0) @ v
    return bool(np.allclose(before, np.maximum(x @ np.asarray(W2).T + b2, 0) @ v2))


@exercise.fact("every order and every scaling leads to the same setting")
def _(function: Function, rng: np.random.Generator) -> bool:
    W, b, v = rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=4)
    order, t = rng.permutation(4), rng.uniform(0.2, 5, size=4)
    moved = (W * t[:, None])[order], (b * t)[order], (v / t)[order]
    pairs = zip(function(W, b, v), function(*moved), strict=True)
    return all(np.allclose(left, right) for left, right in pairs)


@exercise.fact("no other factors give a smaller sum of squares")
def _(function: Function, rng: np.random.Generator) -> bool:
    W, b, v = rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=4)
    W2, b2, v2 = (np.asarray(part) for part in function(W, b, v))
    t = np.exp(rng.normal(size=4))
    incoming = (W2**2).sum(1) + b2**2
    return bool(np.all(incoming + v2**2 <= incoming * t**2 + (v2 / t) ** 2 + 1e-12))


exercise.hints(
    r"Multiply the incoming weights and the bias of a unit by $t>0$. What has to be done to its "
    r"outgoing weight so that the function stays the same?",
    r"Let $c$ be the norm of the incoming weights and the bias together. The outgoing weight is "
    r"divided by $t$, so the condition is $t\,c=|v|/t$. Solve it for $t$.",
    "Compute one factor for each unit from the norms along the rows, and give it a second axis "
    "where it scales `W`. Let one `argsort` of the new outgoing weights index all three arrays.",
)

exercise.mistakes(r"""
you leave the bias as it is; it is part of the unit's input, so scale it, too
    b * t → b
your norm of the incoming weights lacks the bias; a unit's incoming weights are its row of W and its
bias
    + b**2 →
you multiply the outgoing weight by the factor; divide it by the factor
    v / t → v * t
your factor is the ratio of the norms; the incoming weights are multiplied by it and the outgoing
weight is divided by it, so take its square root
    np.sqrt(np.abs(v) / norms) → np.abs(v) / norms
your ratio is upside down; where the outgoing weight is large, the factor is large
    np.abs(v) / norms → norms / np.abs(v)
you make the incoming weights as long as the outgoing weight and leave that unchanged; whatever
multiplies the incoming weights divides the outgoing weight
    np.sqrt(np.abs(v) / norms) → np.abs(v) / norms
    v / t → v
you balance the units and leave them in their order; sort them by their outgoing weights
    np.argsort(v) → np.arange(len(v))
you sort the outgoing weights and leave the units' other weights where they were; a unit moves with
all its weights
    W[order], b[order] → W, b
you sort by the outgoing weights before the scaling, which changes them; sort afterwards
    W, b, v = W * t[:, None], b * t, v / t\n    order = np.argsort(v)
    → order = np.argsort(v)\n    W, b, v = W * t[:, None], b * t, v / t
your outgoing weights descend; sort them in ascending order
    np.argsort(v) → np.argsort(-v)
your outgoing weights have lost their signs; the factor is positive, and v keeps its sign
    v / t → np.abs(v) / t
you sort by the absolute values of the outgoing weights; their signs count
    np.argsort(v) → np.argsort(np.abs(v))
""")
