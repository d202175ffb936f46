"""Inputs."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.initialization import normalize_inputs

exercise = Exercise("L2-13:inputs", normalize_inputs, parts=("train", "other"))


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for m, k, d in ((3, 2, 1), (4, 3, 2), (6, 4, 3)):
        scale, shift = np.array([1.0, 0.2, 5.0])[:d], np.array([2.0, -1.0, 30.0])[:d]
        yield {
            "train": (shift + scale * rng.normal(size=(m, d))).round(2),
            "other": (shift + scale * rng.normal(size=(k, d))).round(2),
            "eps": 0.05,
        }


@exercise.fact(
    "each feature of the training set has mean 0 and variance 1, whatever the other examples are"
)
def _(function: Function, rng: np.random.Generator) -> bool:
    train, other = 5 + 3 * rng.normal(size=(50, 4)), rng.normal(size=(3, 4))
    one, _ = function(train, other, 0.0)
    again, _ = function(train, other + 100, 0.0)
    centered = np.allclose(np.mean(one, 0), 0, atol=1e-12) and np.allclose(np.std(one, 0), 1)
    return bool(centered and np.array_equal(one, again))


@exercise.mistake(
    "you normalize the other examples by their own statistics; use the training set's"
)
def _(train, other, eps):
    return tuple((x - x.mean(0)) / np.sqrt(x.var(0) + eps) for x in (train, other))


@exercise.mistake("your statistics include the other examples; use the training set alone")
def _(train, other, eps):
    both = np.concatenate([train, other])
    return tuple((x - both.mean(0)) / np.sqrt(both.var(0) + eps) for x in (train, other))


@exercise.mistake("you add ε to σ; add it to σ², under the root")
def _(train, other, eps):
    return tuple((x - train.mean(0)) / (train.std(0) + eps) for x in (train, other))


@exercise.mistake("you divide by the variance; divide by its square root")
def _(train, other, eps):
    return tuple((x - train.mean(0)) / (train.var(0) + eps) for x in (train, other))


@exercise.mistake("your variance divides by m − 1; here it divides by m")
def _(train, other, eps):
    return tuple((x - train.mean(0)) / np.sqrt(train.var(0, ddof=1) + eps) for x in (train, other))


@exercise.mistake("you take one mean over all features; each feature has its own")
def _(train, other, eps):
    return tuple((x - train.mean()) / np.sqrt(train.var() + eps) for x in (train, other))


@exercise.mistake("you divide by the deviation but do not subtract the mean first")
def _(train, other, eps):
    return tuple(x / np.sqrt(train.var(0) + eps) for x in (train, other))
