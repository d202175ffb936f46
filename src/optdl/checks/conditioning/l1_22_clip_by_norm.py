"""Clipping by norm."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.conditioning import clip_by_norm

exercise = Exercise("L1-22:norm", clip_by_norm)


@exercise.answer
def _(gradients, max_norm):
    norm = np.sqrt(sum(np.sum(g**2) for g in gradients))
    return [g * min(1, max_norm / norm) for g in gradients]


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for shapes in ([(2,)], [(2,), (1,)], [(2, 2), (2,), (1, 2)]):
        yield {
            "gradients": tuple((3 * rng.normal(size=shape)).round(1) + 0.05 for shape in shapes),
            "max_norm": 1.5,
        }
    yield {"gradients": (np.array([0.3]), np.array([-0.4])), "max_norm": 1.5}


@exercise.fact("a long gradient keeps its direction and gets the norm max_norm")
def _(function: Function, rng: np.random.Generator) -> bool:
    parts = [100 * rng.normal(size=3), rng.normal(size=(2, 2))]
    clipped = function(parts, 2.0)
    before, after = (np.concatenate([np.ravel(p) for p in g]) for g in (parts, clipped))
    cosine = before @ after / np.linalg.norm(before) / np.linalg.norm(after)
    return bool(np.isclose(cosine, 1) and np.isclose(np.linalg.norm(after), 2.0))


@exercise.mistake(
    "you clip each array by its own norm, which turns the gradient; take one "
    "norm of all arrays together"
)
def _(gradients, max_norm):
    return [g * min(1, max_norm / np.linalg.norm(g)) for g in gradients]


exercise.mistake(
    "a gradient that is short enough stays as it is", ("min(1, max_norm / norm)", "max_norm / norm")
)

exercise.mistake(
    "norms do not add; add their squares and take the root",
    ("np.sqrt(sum(np.sum(g**2) for g in gradients))", "sum(np.linalg.norm(g) for g in gradients)"),
)


@exercise.mistake("you compare with ‖g‖²; take the root")
def _(gradients, max_norm):
    square = sum(np.sum(g**2) for g in gradients)
    return [g * min(1, max_norm / square) for g in gradients]


exercise.mistake(
    "scale to max_norm, not to 1", ("* min(1, max_norm / norm)", "/ norm if norm > max_norm else g")
)
