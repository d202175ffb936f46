"""A gradient in several arrays, shortened to the norm c if it is longer."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.conditioning import clip_by_norm

exercise = Exercise("L1-22:norm", clip_by_norm)


@exercise.answer
def _(gradients, max_norm):
    norm = np.sqrt(sum(np.sum(g**2) for g in gradients))
    factor = min(1, max_norm / norm)
    return [g * factor for g in gradients]


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for shapes, max_norm in (([(1,), (2,)], 1.5), ([(2, 2), (2,), (1, 2)], 0.7), ([(4,)], 2.5)):
        parts = [(3 * rng.normal(size=shape)).round(1) + 0.05 for shape in shapes]
        parts[-1].flat[-1] = 4.1  # the gradient is longer than max_norm
        yield {"gradients": tuple(parts), "max_norm": max_norm}
    short = rng.uniform(-0.4, 0.4, size=(2, 2)).round(1) + 0.05
    yield {"gradients": (short[0], short[1]), "max_norm": 1.5}


@exercise.fact("a long gradient keeps its direction and gets the norm max_norm")
def _(function: Function, rng: np.random.Generator) -> bool:
    parts = [100 * rng.normal(size=3), rng.normal(size=(2, 2))]
    clipped = function(parts, 2.0)
    before, after = (np.concatenate([np.ravel(p) for p in g]) for g in (parts, clipped))
    cosine = before @ after / np.linalg.norm(before) / np.linalg.norm(after)
    return bool(np.isclose(cosine, 1) and np.isclose(np.linalg.norm(after), 2.0))


exercise.hints(
    "The arrays are the parts of one long vector. How do you compute its norm without building "
    "it, and what must happen to all of its entries if its direction is to stay the same?",
    "The squared norm is a sum over all entries of all arrays. Every entry is multiplied by the "
    "same factor, which depends on whether the norm is above $c$.",
    "Compute one norm from the sums of squares of the arrays, then one factor that is at most 1, "
    "and multiply each array of the sequence by it.",
)

exercise.mistakes(r"""
you clip each array by its own norm, which turns the gradient; take one norm of all arrays together
    g * factor → g * min(1, max_norm / np.linalg.norm(g))
you lengthen a short gradient; one that is short enough stays as it is
    min(1, max_norm / norm) → max_norm / norm
you add the norms of the arrays; add their squares and take the root
    np.sqrt(sum(np.sum(g**2) for g in gradients)) → sum(np.linalg.norm(g) for g in gradients)
you compare with ‖g‖²; take the root
    np.sqrt(sum(np.sum(g**2) for g in gradients)) → sum(np.sum(g**2) for g in gradients)
you scale a long gradient to the norm 1; scale it to max_norm
    min(1, max_norm / norm) → 1 / norm if norm > max_norm else 1
you return one long array; return a list of arrays with the shapes of those given
    [g * factor for g in gradients] → factor * np.concatenate([g.ravel() for g in gradients])
""")
