"""A gradient in several arrays, shortened to the norm c if it is longer."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.conditioning import clip_by_norm


@answer_to("L1-22:norm", clip_by_norm)
def exercise(gradients, max_norm):
    norm = np.sqrt(sum(np.sum(g**2) for g in gradients))
    factor = min(1, max_norm / norm)
    return [g * factor for g in gradients]


@exercise.cases
def _(rng):
    for count, times, limit in ((2, 0.3, 0.7), (3, 0.6, 2.5), (2, 1.4, 0.7), (1, 2.0, 2.5)):
        shapes = [rng.integers(1, 4, size=rng.integers(1, 3)) for _ in range(count)]
        parts = [rng.normal(size=shape) for shape in shapes]
        norm = np.sqrt(sum(np.sum(part**2) for part in parts))
        max_norm = round(limit * float(rng.uniform(0.8, 1.2)), 2)
        yield tuple((part * max_norm / times / norm).round(3) for part in parts), max_norm
    yield (np.zeros(2), np.zeros((1, 2))), 1.5


@exercise.fact("a long gradient becomes max_norm times its unit vector")
def _(function, rng):
    parts = [100 * rng.normal(size=3), rng.normal(size=(2, 2))]
    clipped = function(parts, 2.0)
    before, after = (np.concatenate([np.ravel(p) for p in g]) for g in (parts, clipped))
    cosine = before @ after / np.linalg.norm(before) / np.linalg.norm(after)
    return np.isclose(cosine, 1) and np.isclose(np.linalg.norm(after), 2.0)


exercise.help(r"""
1. The arrays are the parts of one long vector. How do you compute its norm without building it, and
   what must happen to all of its entries if its direction is to stay the same?
2. The squared norm is a sum over all arrays; every entry is multiplied by one and the same factor.
3. Compute one norm from all arrays, then one factor of at most 1, and multiply each array by it.
you clip each array by its own norm, which turns the gradient; take one norm of all arrays together
    g * factor → g * min(1, max_norm / np.linalg.norm(g))
you lengthen a short gradient; one that is short enough stays as it is
    min(1, max_norm / norm) → max_norm / norm
you add the norms of the arrays; add their squares and take the root
    np.sqrt(sum(np.sum(g**2) for g in gradients)) → sum(np.linalg.norm(g) for g in gradients)
you take ‖g‖² for the norm; take its root
    np.sqrt(sum(np.sum(g**2) for g in gradients)) → sum(np.sum(g**2) for g in gradients)
you return one long array; return a list of arrays with the shapes of those given
    [g * factor for g in gradients] → factor * np.concatenate([g.ravel() for g in gradients])
""")
