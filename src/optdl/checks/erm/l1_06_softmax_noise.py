"""The norm of the mean gradient of softmax regression, and the spread of the gradients."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.erm import softmax_noise

exercise = Exercise("L1-06", softmax_noise, parts=("norm", "spread"))


@exercise.answer
def _(weights, x, labels):
    scores = np.exp(x @ weights)
    p = scores / scores.sum(axis=1, keepdims=True)
    residual = np.eye(weights.shape[1])[labels] - p
    norm = np.linalg.norm(x.T @ residual / len(x))
    squares = np.sum(x**2, axis=1) * np.sum(residual**2, axis=1)
    return norm, np.sqrt(np.mean(squares) - norm**2)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    # with two classes, two opposite examples would have one gradient, and no spread
    for m, d, c in ((2, 1, 3), (4, 2, 3), (12, 3, 5)):
        yield {
            "weights": rng.normal(size=(d, c)).round(1),
            "x": rng.normal(size=(m, d)).round(1) + 0.05,
            "labels": rng.permutation(np.arange(m) % c),
        }


@exercise.fact("copies of the sample change neither number")
def _(noise: Function, rng: np.random.Generator) -> bool:
    W, x, labels = rng.normal(size=(3, 4)), rng.normal(size=(6, 3)), rng.integers(4, size=6)
    copies = noise(W, np.tile(x, (3, 1)), np.tile(labels, 3))
    return bool(np.allclose(copies, noise(W, x, labels)))


@exercise.fact("they are mean and spread of the gradients of single examples")
def _(noise: Function, rng: np.random.Generator) -> bool:
    W, x, labels = rng.normal(size=(2, 3)), rng.normal(size=(5, 2)), rng.integers(3, size=5)

    def likelihood(weights: np.ndarray) -> np.ndarray:
        scores = x @ weights
        return np.asarray(scores[np.arange(5), labels] - np.log(np.exp(scores).sum(axis=1)))

    directions = 1e-5 * np.eye(6).reshape(6, 2, 3)
    slopes = np.array([(likelihood(W + e) - likelihood(W - e)) / 2e-5 for e in directions])
    mean = slopes.mean(axis=1, keepdims=True)
    expected = np.linalg.norm(mean), np.sqrt(np.mean(np.sum((slopes - mean) ** 2, axis=0)))
    return bool(np.allclose(noise(W, x, labels), expected, rtol=1e-6))


@exercise.fact("twice the features and half the weights double both")
def _(noise: Function, rng: np.random.Generator) -> bool:
    W, x, labels = rng.normal(size=(3, 4)), rng.normal(size=(6, 3)), rng.integers(4, size=6)
    return bool(np.allclose(noise(W / 2, 2 * x, labels), 2 * np.array(noise(W, x, labels))))


exercise.hints(
    r"The gradient of one example is an outer product $x\,r^T$. What is $r$, what shape does "
    r"the array of all $r$ have, and which product of it with `x` adds up the $m$ gradients?",
    r"$\lVert x\,r^T\rVert=\lVert x\rVert\,\lVert r\rVert$ gives the norm of each gradient. For "
    r"vectors, as for numbers, the variance is the mean square minus the square of the mean.",
    "Subtract the softmax of each row of scores from the one-hot row of its label. The sums of "
    "squares along the rows of this array and of `x`, multiplied, are the squared norms.",
)

exercise.mistakes(r"""
your softmax sums to 1 over the examples; it must sum to 1 over the classes
    axis=1, keepdims → axis=0, keepdims
you subtract the scores Wᵀx themselves; subtract their softmax
    [labels] - p → [labels] - x @ weights
you change only the column of the right class; the residual of every other class is minus its
probability
    [labels] - p → [labels] * (1 - p)
your σ is the root mean square of the gradients; it is their distance from the mean gradient, so
subtract ‖g‖²
    - norm**2 →
you subtract the norm; subtract its square, ‖g‖²
    np.mean(squares) - norm**2 → abs(np.mean(squares) - norm)
you return σ²; take the square root
    np.sqrt(np.mean(squares) - norm**2) → np.mean(squares) - norm**2
you add up the gradients; g is their mean over the m examples
    x.T @ residual / len(x) → x.T @ residual
    - norm**2 → - (norm / len(x)) ** 2
you return the error of the mean of all m; σ is the spread of single gradients
    np.sqrt(np.mean(squares) - norm**2) → np.sqrt((np.mean(squares) - norm**2) / len(x))
you return the mean norm of the gradients; the first number is the norm of their mean
    return norm, → return np.mean(np.sqrt(squares)),
you leave the features out; the norm of an outer product is the product of both norms
    np.sum(x**2, axis=1) * →
your variance divides by m − 1; σ² is the mean square distance over all m
    np.sqrt(np.mean(squares) - norm**2)
    → np.sqrt((np.mean(squares) - norm**2) * len(x) / (len(x) - 1))
""")
