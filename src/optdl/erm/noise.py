"""Gradients of single examples, their noise, and how many of them a method needs."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int, Shaped

from optdl.special import log_softmax

__all__ = [
    "batch_gradient",
    "error_amplification",
    "examples_needed",
    "gradient_spread",
    "log_likelihoods",
    "minibatch_errors",
    "newton_direction",
    "per_example_gradients",
    "required_batch_size",
    "softmax_noise",
    "squared_gradients",
    "standard_error",
    "unique_examples",
]

Features = Float[np.ndarray, "m d"]
Weights = Float[np.ndarray, " d"]
Labels = Float[np.ndarray, " m"] | Int[np.ndarray, " m"]
Classes = Int[np.ndarray, " m"]


def log_likelihoods(
    weights: Float[np.ndarray, "d c"], x: Features, labels: Classes
) -> Float[np.ndarray, " m"]:
    r"""Return log p(y | x) of softmax regression for each example, in nats. Source: L1-06.

    .. math:: \log p(y \mid x) = (x^T W)_y - \log \sum_k e^{(x^T W)_k}

    Their sum is the log-likelihood of the sample. Their mean, the expected value over the
    empirical distribution, has the same maximizer.

    Examples
    --------
    >>> log_likelihoods(np.zeros((1, 4)), np.ones((2, 1)), np.array([0, 3])).round(4)
    array([-1.3863, -1.3863])
    """
    return log_softmax(x @ weights)[np.arange(len(labels)), labels]


def _residuals(
    weights: Float[np.ndarray, "d c"], x: Features, labels: Classes
) -> Float[np.ndarray, "m c"]:
    """Return e_y − softmax(Wᵀx) of each example."""
    return np.eye(weights.shape[1])[labels] - np.exp(log_softmax(x @ weights))


def per_example_gradients(
    weights: Float[np.ndarray, "d c"], x: Features, labels: Classes
) -> Float[np.ndarray, "m d c"]:
    r"""Return the gradient of log p(y | x) with respect to W, for each example. Source: L1-06.

    .. math:: \nabla_W \log p(y \mid x) = x\,(e_y - \operatorname{softmax}(W^T x))^T

    Examples
    --------
    >>> per_example_gradients(np.zeros((1, 2)), np.array([[3.0]]), np.array([1]))
    array([[[-1.5,  1.5]]])
    """
    residual = _residuals(weights, x, labels)
    return x[:, :, None] * residual[:, None, :]


def batch_gradient(
    weights: Float[np.ndarray, "d c"], x: Features, labels: Classes
) -> Float[np.ndarray, "d c"]:
    """Return the gradient of the mean log-likelihood without storing per-example gradients.

    Source: L1-06

    Examples
    --------
    >>> batch_gradient(np.zeros((1, 2)), np.array([[3.0], [1.0]]), np.array([1, 1]))
    array([[-1.,  1.]])
    """
    residual = _residuals(weights, x, labels)
    return x.T @ residual / len(labels)


def standard_error(sigma: float, n: int, population: int | None = None) -> float:
    r"""Return the standard error of the mean of n values. Source: L1-07.

    .. math::
        \frac{\sigma}{\sqrt n} \ \text{(with replacement)}, \qquad
        \frac{\sigma}{\sqrt n}\sqrt{\frac{N-n}{N-1}} \ \text{(without, from } N \text{)}

    Parameters
    ----------
    sigma : float
        Standard deviation of the values. For a finite population it divides by N, as
        ``numpy.std`` does, and not by N − 1.
    n : int
        Size of the minibatch, at least 1.
    population : int, optional
        N, if n different values are drawn out of N. None if they are drawn independently.

    Raises
    ------
    ValueError
        If σ is negative, n is below 1, or n is above N.

    Notes
    -----
    With the convention s² over N − 1 the same number reads (s/√n) √(1 − n/N).

    Examples
    --------
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
    r"""Return the smallest n whose mean has at most this standard error. Source: L1-07.

    .. math::
        n \ge n_0 = \frac{\sigma^2}{\text{error}^2} \ \text{(with replacement)}, \qquad
        n \ge \frac{n_0 N}{N - 1 + n_0} \ \text{(without, from } N \text{)}

    Parameters
    ----------
    error : float
        The standard error that is allowed, above 0.
    sigma, population
        As in :func:`standard_error`, whose inverse this is.

    Raises
    ------
    ValueError
        If the error is not positive, or σ is negative.

    Examples
    --------
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
    r"""Return σ of per-example gradients, the root mean square distance from their mean.

    Source: L1-07

    .. math:: \sigma^2 = \frac1m \sum_i \lVert g_i - g \rVert^2

    With it :func:`standard_error` gives the root mean square error of a minibatch gradient.

    Examples
    --------
    >>> gradient_spread(np.array([[3.0, 4.0], [-3.0, -4.0]]))
    5.0
    """
    return float(np.sqrt(gradients.var(axis=0).sum()))


def softmax_noise(
    weights: Float[np.ndarray, "d c"], x: Features, labels: Classes
) -> tuple[float, float]:
    r"""Return ‖g‖ and σ of the gradients of softmax regression, without storing them.

    Source: L1-06, L1-07

    The gradient of an example is the outer product of x and r, so its norm is ‖x‖‖r‖, and

    .. math:: \sigma^2 = \frac1m\sum_i \lVert x_i\rVert^2\lVert r_i\rVert^2 - \lVert g\rVert^2.

    Returns
    -------
    norm : float
        ‖g‖, the norm of the mean gradient.
    spread : float
        σ, the root mean square distance of one example's gradient from g.

    Notes
    -----
    The largest array has as many entries as x. Those of :func:`per_example_gradients` are c times
    as many.

    Examples
    --------
    >>> norm, spread = softmax_noise(np.zeros((1, 2)), np.array([[2.0], [2.0]]), np.array([0, 1]))
    >>> norm, round(spread, 6)     # the two gradients are (1, −1) and (−1, 1)
    (0.0, 1.414214)
    """
    residual = _residuals(weights, x, labels)
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

    Source: L1-07

    Parameters
    ----------
    gradients : (m, p) array
        One gradient for each example; the batch gradient is their mean.
    sizes : sequence of int
        Minibatch sizes n.
    draws : int
        Number of minibatches of each size.
    rng : numpy.random.Generator
        Draws the minibatches.
    replace : bool
        Whether an example may occur twice in a minibatch.

    Examples
    --------
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


def unique_examples(
    x: Features, y: Shaped[np.ndarray, " m"]
) -> tuple[Float[np.ndarray, "k d"], Shaped[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Merge equal examples; return one copy of each and its share of the sample. Source: L1-08.

    The sum over the different examples, weighted by their shares, equals the mean over the whole
    sample, for losses as well as for gradients. If all examples are copied equally often, the
    shares are equal.

    Examples
    --------
    >>> unique_examples(np.array([[1.0], [2.0], [1.0], [1.0]]), np.array([1, 1, 1, 1]))
    (array([[1.], [2.]]), array([1, 1]), array([0.75, 0.25]))
    """
    table = np.column_stack([x, y])
    _, first, counts = np.unique(table, axis=0, return_index=True, return_counts=True)
    return x[first], y[first], counts / len(y)


def squared_gradients(w: Weights, x: Features, y: Labels) -> Float[np.ndarray, "m d"]:
    """Return the gradient (wᵀx − y) x of ½(wᵀx − y)², for each example. Source: L1-10, L1-11.

    Examples
    --------
    >>> squared_gradients(np.zeros(2), np.array([[1.0, 2.0]]), np.array([3.0]))
    array([[-3., -6.]])
    """
    return (x @ w - y)[:, None] * x


def newton_direction(
    hessian: Float[np.ndarray, "p p"], gradient: Float[np.ndarray, " p"]
) -> Float[np.ndarray, " p"]:
    """Return the Newton direction H⁻¹g by solving a linear system. Source: L1-10.

    Examples
    --------
    >>> newton_direction(np.diag([1.0, 4.0]), np.array([2.0, 2.0]))
    array([2. , 0.5])
    """
    return np.linalg.solve(hessian, gradient)


def error_amplification(
    hessian: Float[np.ndarray, "p p"],
    gradient: Float[np.ndarray, " p"],
    error: Float[np.ndarray, " p"],
    damping: float = 0.0,
) -> float:
    r"""Return the relative error of (H + μI)⁻¹g divided by that of g. Source: L1-10.

    .. math::
        \frac{\lVert H^{-1} e\rVert / \lVert H^{-1} g\rVert}{\lVert e\rVert / \lVert g\rVert}
        \le \kappa(H) \qquad (\mu = 0)

    Parameters
    ----------
    hessian : (p, p) array
        H, invertible.
    gradient : (p,) array
        g, the exact gradient.
    error : (p,) array
        e; the estimate of the gradient is g + e.
    damping : float, optional
        μ, added to the eigenvalues of H.

    Raises
    ------
    ValueError
        If g or e is zero.

    Notes
    -----
    The bound κ(H) is attained if g lies in the steepest direction and e in the flattest.

    Examples
    --------
    >>> error_amplification(np.diag([100.0, 1.0]), np.array([1.0, 0.0]), np.array([0.0, 0.1]))
    100.0
    """
    if not gradient.any() or not error.any():
        raise ValueError("a relative error needs a gradient and an error that are not zero")
    damped = hessian + damping * np.eye(len(gradient))
    after = newton_direction(damped, error), newton_direction(damped, gradient)
    ratio = np.linalg.norm(after[0]) / np.linalg.norm(after[1])
    return float(ratio * np.linalg.norm(gradient) / np.linalg.norm(error))


def required_batch_size(gradients: Float[np.ndarray, "m p"], tolerance: float) -> int:
    r"""Return the n for which the mean of n gradients has this relative error. Source: L1-10.

    .. math:: n = \left\lceil \frac{\sigma^2}{\text{tolerance}^2\,\lVert g\rVert^2} \right\rceil

    For the vectors H⁻¹gᵢ in place of gᵢ it is the minibatch size that a Newton step needs. For the
    tolerance 1 it is the gradient noise scale σ²/‖g‖².

    Parameters
    ----------
    gradients : (m, p) array
        One gradient for each example; g is their mean. Examples are drawn with replacement.
    tolerance : float
        Root mean square error over ‖g‖, above 0.

    Raises
    ------
    ValueError
        If the tolerance is not positive.

    Examples
    --------
    >>> required_batch_size(np.array([[0.0], [2.0]]), tolerance=0.1)
    100
    """
    if tolerance <= 0:
        raise ValueError(f"the tolerance is a relative error above 0; got {tolerance}")
    ratio = gradient_spread(gradients) / np.linalg.norm(gradients.mean(axis=0)) / tolerance
    # rounding in the square root must not turn a whole number into the next one
    return math.ceil(round(float(ratio**2), 9))
