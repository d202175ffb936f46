"""The gradient of the log-likelihood of softmax regression, for each example."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.erm import per_example_gradients

exercise = Exercise("L1-06", per_example_gradients)


@exercise.answer
def _(weights, x, labels):
    scores = np.exp(x @ weights)
    p = scores / scores.sum(axis=1, keepdims=True)
    residual = np.eye(weights.shape[1])[labels] - p
    return x[:, :, None] * residual[:, None, :]


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for m, d, c in ((3, 2, 4), (1, 4, 5), (5, 3, 2)):
        yield {
            "weights": rng.normal(size=(d, c)).round(1),
            "x": rng.normal(size=(m, d)).round(1) + 0.05,
            "labels": rng.integers(c, size=m),
        }


@exercise.fact("the sum is the slope of the log-likelihood")
def _(gradients: Function, rng: np.random.Generator) -> bool:
    W, x, labels = rng.normal(size=(3, 4)), rng.normal(size=(6, 3)), rng.integers(4, size=6)
    direction, h = rng.normal(size=W.shape), 1e-5

    def likelihood(weights: np.ndarray) -> float:
        scores = x @ weights
        return float((scores[np.arange(6), labels] - np.log(np.exp(scores).sum(axis=1))).sum())

    slope = (likelihood(W + h * direction) - likelihood(W - h * direction)) / (2 * h)
    return bool(np.isclose(np.sum(gradients(W, x, labels) * direction), slope, rtol=1e-6))


@exercise.fact("each gradient sums to 0 over the classes")
def _(gradients: Function, rng: np.random.Generator) -> bool:
    W, x, labels = rng.normal(size=(3, 4)), rng.normal(size=(6, 3)), rng.integers(4, size=6)
    return bool(np.allclose(np.sum(gradients(W, x, labels), axis=2), 0))


@exercise.fact("an example's gradient ignores the others")
def _(gradients: Function, rng: np.random.Generator) -> bool:
    W, x, labels = rng.normal(size=(3, 4)), rng.normal(size=(6, 3)), rng.integers(4, size=6)
    return bool(np.allclose(gradients(W, x[2:3], labels[2:3])[0], gradients(W, x, labels)[2]))


exercise.mistake(
    "your softmax sums to 1 over the examples; it must sum to 1 over the classes",
    ("axis=1", "axis=0"),
)

exercise.mistake(
    "you subtract the scores Wᵀx themselves; subtract their softmax",
    ("- p", "- x @ weights"),
)

exercise.mistake(
    "you change only the column of the right class; the residual of every other "
    "class is minus its probability",
    ("[labels] - p", "[labels] * (1 - p)"),
)

exercise.mistake(
    "your gradients are transposed; each has the shape of W, features by classes",
    ("x[:, :, None] * residual[:, None, :]", "residual[:, :, None] * x[:, None, :]"),
)
