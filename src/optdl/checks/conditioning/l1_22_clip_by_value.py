"""A gradient in several arrays, each entry limited to the interval [−c, c]."""

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
    for shapes, limit in (([(5,)], 0.8), ([(2, 3), (4,)], 1.1)):
        parts = [np.resize([-2.5, 1.7, 0.3, -0.6, 0.7], shape) for shape in shapes]
        moved = (part + rng.uniform(-0.1, 0.1, size=part.shape).round(2) for part in parts)
        yield {"gradients": tuple(moved), "limit": limit}


@exercise.fact("entries within the limit are unchanged, and none is beyond it")
def _(function: Function, rng: np.random.Generator) -> bool:
    g = rng.normal(size=50)
    (clipped,) = function([g], 1.0)
    inside = np.abs(g) <= 1
    return bool(np.array_equal(clipped[inside], g[inside]) and np.all(np.abs(clipped) <= 1))


exercise.mistake(
    "you clip large entries alone; entries below −limit become −limit",
    ("np.clip(g, -limit, limit)", "np.minimum(g, limit)"),
)

exercise.mistake(
    "you set large entries to zero; an entry beyond the limit becomes ±limit",
    ("np.clip(g, -limit, limit)", "np.where(np.abs(g) > limit, 0.0, g)"),
)

exercise.mistake(
    "you set every entry to ±limit; those within the limit stay as they are",
    ("np.clip(g, -limit, limit)", "np.sign(g) * limit"),
)

exercise.mistake(
    "you scale all entries; only those beyond the limit change",
    ("np.clip(g, -limit, limit)", "g * min(1, limit / np.max(np.abs(g)))"),
)
