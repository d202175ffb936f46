"""Minibatches."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.erm import minibatches
from optdl.observation import observe, repeated

exercise = Exercise("L1-09", minibatches)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for m, n in ((5, 2), (12, 4), (20, 7), (6, 1), (9, 9), (10, 4)):
        yield {"m": m, "n": n, "rng": np.random.default_rng(int(rng.integers(10**6)))}


@exercise.fact("each example occurs exactly once")
def _(cut: Function, rng: np.random.Generator) -> bool:
    indices = np.concatenate([np.asarray(part) for part in cut(23, 5, rng)])
    return sorted(indices.tolist()) == list(range(23))


@exercise.fact("two epochs have different orders")
def _(cut: Function, rng: np.random.Generator) -> bool:
    # the generator goes on from one epoch to the next, where the answer is
    first, second = map(np.concatenate, observe(repeated, cut, 2, 50, 8, rng))
    return not np.array_equal(first, second)


@exercise.fact("the last minibatch holds the remainder")
def _(cut: Function, rng: np.random.Generator) -> bool:
    return [len(part) for part in cut(23, 5, rng)] == [5, 5, 5, 5, 3]


@exercise.mistake("you drop the remaining examples; they form a last, smaller minibatch")
def _(m, n, rng):
    order = rng.permutation(m)
    return tuple(order[k * n : (k + 1) * n] for k in range(m // n))


@exercise.mistake("you keep the order of the data; shuffle first, or neighbors stay together")
def _(m, n, rng):
    return tuple(np.arange(start, min(start + n, m)) for start in range(0, m, n))


@exercise.mistake(
    "you shuffle anew for each minibatch, so some examples occur twice and "
    "others never; shuffle once per epoch"
)
def _(m, n, rng):
    return tuple(rng.permutation(m)[start : start + n] for start in range(0, m, n))


@exercise.mistake("you draw with replacement; in an epoch each example occurs exactly once")
def _(m, n, rng):
    return tuple(rng.integers(m, size=min(n, m - start)) for start in range(0, m, n))


@exercise.mistake("you make n minibatches; n is the size of each, and there are ⌈m/n⌉")
def _(m, n, rng):
    return tuple(np.array_split(rng.permutation(m), n))


@exercise.mistake(
    "you shuffle only within each minibatch, so its members are always the same; "
    "shuffle all examples"
)
def _(m, n, rng):
    return tuple(rng.permutation(np.arange(start, min(start + n, m))) for start in range(0, m, n))
