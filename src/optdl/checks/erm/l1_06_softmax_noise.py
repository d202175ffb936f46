"""The norm of the mean gradient of softmax regression, and the spread of the gradients."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.erm import softmax_noise
from optdl.observation import effort, observe


@answer_to("L1-06", softmax_noise, parts=("norm", "spread"))
def exercise(weights, x, labels):
    scores = np.exp(x @ weights)
    p = scores / scores.sum(axis=1, keepdims=True)
    residual = np.eye(weights.shape[1])[labels] - p
    norm = np.linalg.norm(x.T @ residual / len(x))
    squares = np.sum(x**2, axis=1) * np.sum(residual**2, axis=1)
    return norm, np.sqrt(np.mean(squares) - norm**2)


@exercise.cases
def _(rng):
    for low, high in (((2, 1, 3), (4, 3, 5)), ((2, 4, 3), (4, 6, 6)), ((9, 3, 5), (15, 5, 9))):
        m, d, c = rng.integers(low, high).tolist()
        x = rng.normal(size=(m, d)).round(1) + 0.05
        yield rng.normal(size=(d, c)).round(1), x, rng.integers(c, size=m)


@exercise.fact("one example alone has no spread, and the norm is that of its gradient")
def _(noise, rng):
    x = rng.normal(size=(1, 4))
    residual = np.array([0.5, -0.5])  # without weights each of two classes has the probability ½
    norm, spread = np.nan_to_num(noise(np.zeros((4, 2)), x, np.array([0])))  # the root of −1e-17
    return np.allclose([norm, spread], [np.linalg.norm(x.T * residual), 0], atol=1e-7)


@exercise.fact("for m = 1000 it needs less memory than 15 times that of x", is_visible=True)
def _(noise, rng):
    m, d, c = 1000, 40, 30
    W, x = rng.normal(size=(d, c)) / d, rng.normal(size=(m, d))
    # some fifteen of them at a time; the gradients of all examples need thirty
    _, peak = observe(effort, noise, W, x, rng.integers(c, size=m))
    return peak is None or peak < 15 * x.nbytes


exercise.help(r"""
1. The gradient of one example is an outer product $x\,r^T$. What is $r$, what shape does the array
   of all $r$ have, and which product of it with `x` adds up the $m$ gradients?
2. $\lVert x\,r^T\rVert=\lVert x\rVert\,\lVert r\rVert$ gives the norm of each gradient. For
   vectors, as for numbers, the variance is the mean square minus the square of the mean.
3. Subtract the softmax of each row of scores from the one-hot row of its label. The sums of squares
   along the rows of this array and of `x`, multiplied, are the squared norms.
your softmax sums to 1 over the examples; it must sum to 1 over the classes
    axis=1, keepdims → axis=0, keepdims
you subtract the scores Wᵀx themselves; subtract their softmax
    [labels] - p → [labels] - x @ weights
you leave out the label; the residual is the one-hot row of the label minus the probabilities
    np.eye(weights.shape[1])[labels] - p → -p
you change only the right class; the residual of every other class is minus its probability
    [labels] - p → [labels] * (1 - p)
your σ is the root mean square of the gradients; it is that of their distance from g: subtract ‖g‖²
    - norm**2 →
you subtract the norm; subtract its square, ‖g‖²
    np.mean(squares) - norm**2 → abs(np.mean(squares) - norm)
you return the mean norm of the gradients; the first number is the norm of their mean
    return norm, → return np.mean(np.sqrt(squares)),
you leave the features out; the norm of an outer product is the product of both norms
    np.sum(x**2, axis=1) * →
your variance divides by m − 1; σ² is the mean square distance over all m
    np.sqrt(np.mean(squares) - norm**2)
    → np.sqrt((np.mean(squares) - norm**2) * len(x) / (len(x) - 1))
you multiply the means of x and of the residuals; take the mean of their products
    x.T @ residual / len(x) → np.outer(x.mean(axis=0), residual.mean(axis=0))
you take the deviation of the gradients' lengths; take their distances from the mean gradient
    np.mean(squares) - norm**2 → np.var(np.sqrt(squares))
you multiply the means of ‖x‖² and of the residuals' squares; take the mean of their products
    np.mean(squares) → np.mean(np.sum(x**2, axis=1)) * np.mean(np.sum(residual**2, axis=1))
""")
