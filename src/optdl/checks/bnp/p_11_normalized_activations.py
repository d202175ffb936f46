"""Normalized activations."""

from collections.abc import Iterator

import numpy as np

from optdl.bnp import normalized_activations
from optdl.checks.bnp.shared import random_activations
from optdl.checks.exercise import Case, Exercise, Function

exercise = Exercise("P-11:activations", normalized_activations)


@exercise.answer
def _(H):
    normalized = (H - H.mean(axis=0)) / H.std(axis=0)
    return np.column_stack([np.ones(len(H)), normalized])


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for rows, features in ((3, 2), (5, 3), (8, 4)):
        yield {"H": random_activations(rng, rows, features)}


@exercise.fact("each column has the squared norm N, in whatever units a feature is measured")
def _(function: Function, rng: np.random.Generator) -> bool:
    H = rng.normal(size=(9, 3))
    one = np.asarray(function(H))
    other = np.asarray(function(100 + 7 * H))
    return bool(np.allclose(np.sum(one**2, 0), 9) and np.allclose(one, other, atol=1e-9))


@exercise.mistake("the column of ones is missing: Ĝ = [e, G]")
def _(H):
    return (H - H.mean(0)) / H.std(0)


@exercise.mistake("your variance divides by N − 1; here it divides by N")
def _(H):
    return np.column_stack([np.ones(len(H)), (H - H.mean(0)) / H.std(0, ddof=1)])


@exercise.mistake("you divide by the variance; divide by its square root, σ")
def _(H):
    return np.column_stack([np.ones(len(H)), (H - H.mean(0)) / H.var(0)])


@exercise.mistake("you subtract the mean after scaling; center first, then scale")
def _(H):
    return np.column_stack([np.ones(len(H)), H / H.std(0) - H.mean(0)])


@exercise.mistake("you center, but do not scale")
def _(H):
    return np.column_stack([np.ones(len(H)), H - H.mean(0)])


@exercise.mistake("you scale, but do not center")
def _(H):
    return np.column_stack([np.ones(len(H)), H / H.std(0)])


@exercise.mistake("your column of ones comes last; in Ĝ = [e, G] it comes first")
def _(H):
    return np.column_stack([(H - H.mean(0)) / H.std(0), np.ones(len(H))])


@exercise.mistake(
    "you take one mean and one standard deviation for all features; each feature has its own"
)
def _(H):
    return np.column_stack([np.ones(len(H)), (H - H.mean()) / H.std()])


exercise.mistake(
    "you normalize each example over its features; normalize each feature over the examples",
    (
        "(H - H.mean(axis=0)) / H.std(axis=0)",
        "(H - H.mean(1, keepdims=True)) / H.std(1, keepdims=True)",
    ),
)
