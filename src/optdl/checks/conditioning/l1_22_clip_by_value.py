"""Clipping by value."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.conditioning import clip_by_value

exercise = Exercise("L1-22:value", clip_by_value)


@exercise.answer
def _(gradients, limit):
    return [np.clip(g, -limit, limit) for g in gradients]


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for shapes in ([(3,)], [(2, 2), (3,)]):
        parts = [(2 * rng.normal(size=shape)).round(1) for shape in shapes]
        parts[0].flat[:3] = -2.5, 1.7, 0.3
        yield {"gradients": tuple(parts), "limit": 0.8}


@exercise.fact("entries within the limit are unchanged, and none is beyond it")
def _(function: Function, rng: np.random.Generator) -> bool:
    g = rng.normal(size=50)
    (clipped,) = function([g], 1.0)
    inside = np.abs(g) <= 1
    return bool(np.array_equal(clipped[inside], g[inside]) and np.all(np.abs(clipped) <= 1))


exercise.mistake(
    "entries below −limit must be clipped too", ("clip(g, -limit, limit)", "minimum(g, limit)")
)

exercise.mistake("you lose the signs", ("clip(g, -limit, limit)", "minimum(np.abs(g), limit)"))

exercise.mistake(
    "an entry that is too large becomes ±limit, not zero",
    ("clip(g, -limit, limit)", "where(np.abs(g) > limit, 0.0, g)"),
)


@exercise.mistake("you scale all entries; only those beyond the limit change")
def _(gradients, limit):
    largest = max(np.max(np.abs(g)) for g in gradients)
    return [g * min(1, limit / largest) for g in gradients]
