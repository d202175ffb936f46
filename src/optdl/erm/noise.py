"""The noise of a minibatch."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from optdl.erm.arrays import Classes, Features
from optdl.erm.likelihood import residuals

__all__ = [
    "examples_needed",
    "gradient_spread",
    "minibatch_errors",
    "softmax_noise",
    "standard_error",
]


def standard_error(sigma: float, n: int, population: int | None = None) -> float:
    r"""Return the standard error of the mean of n values (Source: L1-07).

    .. math::
        \frac{\sigma}{\sqrt n} \ \text{(with replacement)}, \qquad
        \frac{\sigma}{\sqrt n}\sqrt{\frac{N-n}{N-1}} \ \text{(without, from } N \text{)}

    N is the ``population`` out of which different values are drawn (None for independent ones), and
    σ divides by N, as ``numpy.std`` does. With the convention s² over N − 1 the same number reads
    (s/√n) √(1 − n/N). Raises ValueError where σ is negative, n is less than 1, or n is above N.

    >>> standard_error(1.0, 100), standard_error(1.0, 10_000)     # 100 times as many
    (0.1, 0.01)
    >>> standard_error(1.0, 100, population=100)     # all of them
    0.0
    """
    if sigma < 0 or n < 1:
        raise ValueError(f"expected sigma ≥ 0 and n ≥ 1; got sigma = {sigma} and n = {n}")
    independent = sigma / math.sqrt(n)
    if population is None:
        return independent
    if n > population:
        raise ValueError(
            f"cannot draw {n} different values out of {population}; "
            f"draw with replacement (population=None) or take a smaller n"
        )
    return independent * math.sqrt((population - n) / max(population - 1, 1))


def examples_needed(error: float, sigma: float, population: int | None = None) -> int:
    r"""Return the smallest n whose mean has at most this standard error (Source: L1-07).

    .. math::
        n \ge n_0 = \frac{\sigma^2}{\text{error}^2} \ \text{(with replacement)}, \qquad
        n \ge \frac{n_0 N}{N - 1 + n_0} \ \text{(without, from } N \text{)}

    σ and N are those of :func:`standard_error`, whose inverse this is. Raises ValueError where
    ``error`` is not positive or σ is negative.

    >>> examples_needed(0.1, sigma=2.0), examples_needed(0.1, sigma=2.0, population=1000)
    (400, 286)
    """
    if error <= 0 or sigma < 0:
        raise ValueError(f"expected error > 0 and sigma ≥ 0; got {error} and {sigma}")
    n = (sigma / error) ** 2
    if population is not None:
        n *= population / (population - 1 + n)
    # rounding must not turn a whole number into the next one
    return max(1, math.ceil(round(n, 9)))


def gradient_spread(gradients: Float[np.ndarray, "m p"]) -> float:
    r"""Return σ of per-example gradients: their root mean square distance from the mean.

    .. math:: \sigma^2 = \frac1m \sum_i \lVert g_i - g \rVert^2

    With it :func:`standard_error` gives the root mean square error of a minibatch gradient.
    Source: L1-07.

    >>> gradient_spread(np.array([[3.0, 4.0], [-3.0, -4.0]]))
    5.0
    """
    return float(np.sqrt(gradients.var(axis=0).sum()))


def softmax_noise(
    weights: Float[np.ndarray, "d c"], x: Features, labels: Classes
) -> tuple[float, float]:
    r"""Return ‖g‖ and σ of the gradients of softmax regression without storing them.

    The gradient of an example is the outer product of x and r, so its norm is ‖x‖‖r‖, and

    .. math:: \sigma^2 = \frac1m\sum_i \lVert x_i\rVert^2\lVert r_i\rVert^2 - \lVert g\rVert^2.

    No array has more entries than x or the scores. Those of :func:`per_example_gradients` have c
    times as many as x. Here r = e_y − softmax(Wᵀx). Source: L1-06, L1-07.

    >>> norm, spread = softmax_noise(np.zeros((1, 2)), np.array([[2.0], [2.0]]), np.array([0, 1]))
    >>> norm, round(spread, 6)     # the two gradients are (1, −1) and (−1, 1)
    (0.0, 1.414214)
    """
    residual = residuals(weights, x, labels)
    norm = float(np.linalg.norm(x.T @ residual)) / len(x)
    squares = np.sum(x**2, axis=1) * np.sum(residual**2, axis=1)
    return norm, math.sqrt(max(0.0, float(np.mean(squares)) - norm**2))


def minibatch_errors(
    gradients: Float[np.ndarray, "m p"],
    sizes: Sequence[int],
    draws: int,
    rng: np.random.Generator,
    replace: bool,
) -> Float[np.ndarray, " s"]:
    """Measure the root mean square error of minibatch gradients by drawing minibatches.

    It draws ``draws`` minibatches of each size, with or without replacement. ``gradients`` has one
    for each example; the error is the distance of the mean of a minibatch from the mean of all.
    Source: L1-07.

    >>> gradients = np.array([[1.0], [-1.0]])
    >>> minibatch_errors(gradients, [1, 2], 50, np.random.default_rng(0), replace=False)
    array([1., 0.])
    """
    mean, m = gradients.mean(axis=0), len(gradients)
    errors = np.empty((len(sizes), draws))
    for (row, n), draw in itertools.product(enumerate(sizes), range(draws)):
        chosen = rng.choice(m, size=n, replace=replace, shuffle=False)
        errors[row, draw] = np.sum((gradients[chosen].mean(axis=0) - mean) ** 2)
    return np.sqrt(errors.mean(axis=1))
