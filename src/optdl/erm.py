r"""Empirical risk minimization: losses, overfitting, early stopping, minibatches and their noise.

Axis letters, fixed for the module: ``m`` examples, ``n`` the size of a minibatch, ``d`` features,
``c`` classes, ``p`` parameters, ``t`` steps or epochs, ``s`` sizes, ``r`` repetitions.
Labels of two classes are −1 and +1; labels of c classes are 0 … c−1.
"""

import copy
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int, Shaped
from numpy.polynomial import legendre

from optdl.special import expit, log_softmax

__all__ = [
    "SURROGATES",
    "EarlyStopping",
    "GradientNormHook",
    "LinearPopulation",
    "MarginHook",
    "MarginLoss",
    "NoisyCurve",
    "Population",
    "batch_gradient",
    "capacity_sweep",
    "classification_margins",
    "count_dichotomies",
    "double_descent_risk",
    "early_stopping",
    "empirical_risk",
    "empirical_risks",
    "error_amplification",
    "examples_needed",
    "expected_least_squares_risks",
    "exponential_loss",
    "fit_polynomial",
    "generalization_gap",
    "gradient_spread",
    "hinge_loss",
    "hinge_risk_gradient",
    "least_squares",
    "least_squares_risks",
    "log_likelihoods",
    "logistic_loss",
    "margins",
    "minibatch_errors",
    "minibatches",
    "newton_direction",
    "per_example_gradients",
    "required_batch_size",
    "risk_estimate",
    "sgd",
    "sine_risk",
    "softmax_noise",
    "squared_gradients",
    "squared_loss",
    "standard_error",
    "stored_activations",
    "stream",
    "stream_sgd",
    "unique_examples",
    "update_cost",
    "zero_one_loss",
    "zero_one_risk",
]

Values = Float[np.ndarray, "..."]
Features = Float[np.ndarray, "m d"]
Weights = Float[np.ndarray, " d"]
Labels = Float[np.ndarray, " m"] | Int[np.ndarray, " m"]
Classes = Int[np.ndarray, " m"]
Batch = tuple[Float[np.ndarray, "n d"], Shaped[np.ndarray, " n"]]


# --- Risk and empirical risk ------------------------------------------------------------------


def empirical_risk(
    loss: Callable[[np.ndarray, np.ndarray], np.ndarray],
    model: Callable[[np.ndarray, np.ndarray], np.ndarray],
    theta: Float[np.ndarray, "..."],
    x: Shaped[np.ndarray, "m ..."],
    y: Shaped[np.ndarray, "m ..."],
) -> float:
    r"""Return the empirical risk, the mean loss over a sample. Source: L1-01.

    .. math:: J(\theta) = \frac1m \sum_{i=1}^m L\bigl(f(x^{(i)}, \theta), y^{(i)}\bigr)

    Parameters
    ----------
    loss : callable
        ``loss(predictions, labels)`` gives the m losses, in that order of arguments.
    model : callable
        ``model(x, theta)`` gives the m predictions f(x, θ).

    Raises
    ------
    ValueError
        If the sample is empty or x and y differ in length.

    Examples
    --------
    >>> empirical_risk(lambda f, y: (f - y) ** 2, lambda x, w: w * x, np.array(2.0),
    ...                x=np.array([1.0, 2.0]), y=np.array([2.0, 3.0]))
    0.5
    """
    if len(x) != len(y) or len(y) == 0:
        raise ValueError(
            f"the empirical risk needs one label for each of at least one example; "
            f"got {len(x)} examples and {len(y)} labels"
        )
    return float(np.mean(loss(model(x, theta), y)))


def risk_estimate(
    loss: Callable[[np.ndarray, np.ndarray], np.ndarray],
    model: Callable[[np.ndarray, np.ndarray], np.ndarray],
    theta: Float[np.ndarray, "..."],
    x: Shaped[np.ndarray, "m ..."],
    y: Shaped[np.ndarray, "m ..."],
) -> tuple[float, float]:
    r"""Estimate the risk of a fixed model, and the standard deviation of this estimate.

    Source: L1-01

    The parameters are those of :func:`empirical_risk`.

    Returns
    -------
    estimate : float
        The empirical risk, which is unbiased for a model that was fixed before the sample.
    deviation : float
        s/√m, with s² the mean square deviation of the m losses from their mean. For the 0–1 loss
        it is √(J(1 − J)/m).

    Examples
    --------
    >>> risk_estimate(lambda f, y: abs(f - y), lambda x, w: w * x, np.array(1.0),
    ...               x=np.zeros(4), y=np.array([1.0, 0.0, 1.0, 0.0]))
    (0.5, 0.25)
    """
    losses = loss(model(x, theta), y)
    deviation = float(np.std(losses)) / math.sqrt(len(y))
    return empirical_risk(loss, model, theta, x, y), deviation


@runtime_checkable
class Population(Protocol):
    """A data distribution p_data that can be sampled: ``sample(m, rng)`` gives ``(x, y)``."""

    def sample(self, m: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw m independent examples."""
        ...


def empirical_risks(
    population: Population,
    losses: Callable[[np.ndarray, np.ndarray], np.ndarray],
    sizes: Sequence[int],
    repeats: int,
    rng: np.random.Generator,
) -> Float[np.ndarray, "s r"]:
    """Return the empirical risk of one fixed model on many samples of each size. Source: L1-01.

    Parameters
    ----------
    population : Population
        Where the samples come from.
    losses : callable
        ``losses(x, y)`` gives the loss of the model on each example.
    sizes : sequence of int
        Sample sizes m.

    Notes
    -----
    Its mean is the risk J*, at every m; its standard deviation is σ/√m with σ that of one loss.

    Examples
    --------
    >>> coin = LinearPopulation(np.array([1.0]), np.eye(1), noise=0.0)
    >>> empirical_risks(coin, lambda x, y: np.ones(len(y)), [2, 5], 3, np.random.default_rng(0))
    array([[1., 1., 1.],
           [1., 1., 1.]])
    """
    return np.array(
        [[losses(*population.sample(m, rng)).mean() for _ in range(repeats)] for m in sizes]
    )


def generalization_gap(risk: float, sample_risk: float) -> float:
    """Return the generalization gap J* − J. Source: L1-01.

    It is positive if the model does worse on new data than on its sample.

    Examples
    --------
    >>> generalization_gap(risk=0.5, sample_risk=0.25)
    0.25
    """
    return risk - sample_risk


@dataclass(frozen=True, eq=False)
class LinearPopulation:
    r"""Linear regression: x ~ N(0, Σ), and y given x ~ N(w*ᵀx, noise²). Source: L1-01, L1-11.

    For the loss ½(wᵀx − y)² the risk has a closed form:

    .. math:: J^*(w) = \tfrac12 (w - w^*)^T \Sigma (w - w^*) + \tfrac12\,\text{noise}^2

    Parameters
    ----------
    weights : (d,) array
        w*, the parameters that minimize the risk.
    covariance : (d, d) array
        Σ, symmetric positive definite. It is also the Hessian of the risk.
    noise : float
        Standard deviation of the noise in the labels.

    Raises
    ------
    ValueError
        If the shapes disagree, or the noise is negative.

    Examples
    --------
    >>> population = LinearPopulation(np.array([1.0, 0.0]), np.eye(2), noise=1.0)
    >>> population.risk(np.zeros(2)), population.gradient(np.zeros(2))
    (1.0, array([-1.,  0.]))
    """

    weights: Float[np.ndarray, " d"]
    covariance: Float[np.ndarray, "d d"]
    noise: float

    def __post_init__(self) -> None:
        d = len(self.weights)
        if self.covariance.shape != (d, d):
            raise ValueError(
                f"the covariance must have shape ({d}, {d}), a row for each weight; "
                f"got {self.covariance.shape}"
            )
        if self.noise < 0:
            raise ValueError(f"the noise is a standard deviation, at least 0; got {self.noise}")

    def sample(
        self, m: int, rng: np.random.Generator
    ) -> tuple[Float[np.ndarray, "m d"], Float[np.ndarray, " m"]]:
        """Draw m independent examples."""
        d = len(self.weights)
        x = rng.normal(size=(m, d)) @ np.linalg.cholesky(self.covariance).T
        return x, x @ self.weights + self.noise * rng.normal(size=m)

    def risk(self, w: Weights) -> float:
        """Return J*(w)."""
        error = w - self.weights
        return float(0.5 * error @ self.covariance @ error + 0.5 * self.noise**2)

    def gradient(self, w: Weights) -> Weights:
        """Return ∇J*(w) = Σ(w − w*)."""
        return self.covariance @ (w - self.weights)


def least_squares(x: Features, y: Labels) -> Weights:
    """Return the shortest weights that minimize the empirical risk of ½(wᵀx − y)². Source: L1-01.

    Examples
    --------
    >>> least_squares(np.array([[1.0], [2.0]]), np.array([2.0, 4.0])).round(6)
    array([2.])
    """
    return np.linalg.lstsq(x, y, rcond=None)[0]


def least_squares_risks(
    population: LinearPopulation, sizes: Sequence[int], repeats: int, rng: np.random.Generator
) -> tuple[Float[np.ndarray, "s r"], Float[np.ndarray, "s r"]]:
    """Fit by least squares on many samples; return empirical risk J and risk J* of each fit.

    Source: L1-01

    Examples
    --------
    >>> population = LinearPopulation(np.array([1.0]), np.eye(1), noise=0.0)
    >>> J, risk = least_squares_risks(population, [5], 2, np.random.default_rng(0))
    >>> J.shape, bool(J.max() < 1e-20)
    ((1, 2), True)
    """
    pairs = np.empty((2, len(sizes), repeats))
    for (row, m), column in itertools.product(enumerate(sizes), range(repeats)):
        x, y = population.sample(m, rng)
        w = least_squares(x, y)
        pairs[:, row, column] = 0.5 * np.mean((x @ w - y) ** 2), population.risk(w)
    return pairs[0], pairs[1]


def expected_least_squares_risks(d: int, m: int, noise: float) -> tuple[float, float]:
    r"""Return E[J(ŵ)] and E[J*(ŵ)] of least squares on a :class:`LinearPopulation`. Source: L1-01.

    .. math::
        \mathbb E J(\hat w) = \frac{\sigma_y^2}2\Bigl(1 - \frac dm\Bigr), \qquad
        \mathbb E J^*(\hat w) = \frac{\sigma_y^2}2\Bigl(1 + \frac d{m-d-1}\Bigr)

    Both are exact for all Σ and w*; σ_y is the noise.

    Raises
    ------
    ValueError
        If m ≤ d + 1: the second expectation is then infinite.

    Examples
    --------
    >>> expected_least_squares_risks(d=5, m=11, noise=1.0)
    (0.2727272727272727, 1.0)
    """
    if m <= d + 1:
        raise ValueError(f"the expected risk is finite only for m > d + 1 = {d + 1}; got m = {m}")
    return 0.5 * noise**2 * (1 - d / m), 0.5 * noise**2 * (1 + d / (m - d - 1))


def double_descent_risk(k: int, m: int, weights: Weights, noise: float) -> float:
    r"""Return E[J*(ŵ)] of least squares that uses the first k of d independent features.

    Source: L1-02

    .. math::
        \mathbb E J^* = \begin{cases}
        \frac{s^2}2\bigl(1 + \frac k{m-k-1}\bigr) & k \le m-2\\
        \frac12\lVert w_{used}\rVert^2\bigl(1 - \frac mk\bigr)
        + \frac{s^2}2\bigl(1 + \frac m{k-m-1}\bigr) & k \ge m+2\end{cases}

    with s² = ‖w_rest‖² + noise². For k > m the fit interpolates the sample, and is the shortest
    of all weight vectors that do.

    Parameters
    ----------
    weights : (d,) array
        w* of a :class:`LinearPopulation` whose covariance is the identity.
    noise : float
        Standard deviation of the noise in the labels.

    Returns
    -------
    float
        Infinity for m − 2 < k < m + 2.

    Raises
    ------
    ValueError
        If k is not in 1 … d.

    Notes
    -----
    The formula is from Belkin, Hsu and Xu (2020).

    Examples
    --------
    >>> [double_descent_risk(k, 5, np.ones(10), noise=1.0) for k in (3, 5, 10)]
    [16.0, inf, 3.625]
    """
    if not 1 <= k <= len(weights):
        raise ValueError(f"expected 1 to {len(weights)} of the features; got k = {k}")
    used, rest = float(np.sum(weights[:k] ** 2)), float(np.sum(weights[k:] ** 2)) + noise**2
    if k <= m - 2:
        return 0.5 * rest * (1 + k / (m - k - 1))
    if k < m + 2:
        return math.inf
    return 0.5 * used * (1 - m / k) + 0.5 * rest * (1 + m / (k - m - 1))


# --- Overfitting ------------------------------------------------------------------------------


@dataclass(frozen=True)
class NoisyCurve:
    r"""Noisy values of a curve: x uniform on [−1, 1], and y given x ~ N(h(x), noise²).

    Source: L1-02

    The risk of the squared loss (f(x) − y)² is an integral:

    .. math:: J^*(f) = \tfrac12\int_{-1}^1 \bigl(f(x) - h(x)\bigr)^2 dx + \text{noise}^2

    Parameters
    ----------
    curve : callable
        h, smooth on [−1, 1].
    noise : float
        Standard deviation of the noise in the labels.

    Notes
    -----
    The integral is a Gauss–Legendre sum with 200 nodes, exact to rounding for smooth curves.

    Examples
    --------
    >>> population = NoisyCurve(lambda x: x, noise=0.5)
    >>> round(population.risk(lambda x: 0 * x), 12)     # 1/3 + 1/4
    0.583333333333
    """

    curve: Callable[[np.ndarray], np.ndarray]
    noise: float

    def sample(
        self, m: int, rng: np.random.Generator
    ) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """Draw m independent examples."""
        x = rng.uniform(-1, 1, size=m)
        return x, self.curve(x) + self.noise * rng.normal(size=m)

    def risk(self, predict: Callable[[np.ndarray], np.ndarray]) -> float:
        """Return J* of the function ``predict``."""
        nodes, weights = _quadrature(200)
        return float(weights @ (predict(nodes) - self.curve(nodes)) ** 2 / 2 + self.noise**2)


@functools.cache
def _quadrature(count: int) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, " q"]]:
    """Return nodes and weights of the Gauss–Legendre rule on [−1, 1]."""
    return legendre.leggauss(count)


def fit_polynomial(
    x: Float[np.ndarray, " m"], y: Float[np.ndarray, " m"], degree: int
) -> legendre.Legendre:
    """Return the polynomial of a given degree with the smallest empirical risk. Source: L1-02.

    Parameters
    ----------
    x, y : (m,) arrays
        The sample, with x in [−1, 1].
    degree : int
        The capacity, at most m − 1.

    Raises
    ------
    ValueError
        If the degree is not in 0 … m − 1; above m − 1 the fit is not unique.

    Notes
    -----
    The basis of Legendre polynomials keeps the least squares problem well conditioned.

    Examples
    --------
    >>> line = fit_polynomial(np.array([-1.0, 0.0, 1.0]), np.array([0.0, 1.0, 2.0]), degree=1)
    >>> round(float(line(0.5)), 12)
    1.5
    """
    if not 0 <= degree < len(x):
        raise ValueError(
            f"the degree of a unique fit to {len(x)} points is 0 to {len(x) - 1}; got {degree}"
        )
    design = legendre.legvander(x, degree)
    return legendre.Legendre(np.linalg.lstsq(design, y, rcond=None)[0])


def capacity_sweep(
    population: NoisyCurve,
    x: Float[np.ndarray, " m"],
    y: Float[np.ndarray, " m"],
    degrees: Sequence[int],
) -> tuple[Float[np.ndarray, " s"], Float[np.ndarray, " s"]]:
    """Fit polynomials of each degree to one sample; return their empirical risks and risks.

    Source: L1-02

    Notes
    -----
    The empirical risk never rises with the degree and is 0 at degree m − 1.

    Examples
    --------
    >>> population = NoisyCurve(np.sin, noise=0.1)
    >>> sample = population.sample(4, np.random.default_rng(0))
    >>> J, risk = capacity_sweep(population, *sample, degrees=[1, 3])
    >>> bool(J[1] < 1e-20), bool(risk[1] > 0.01)
    (True, True)
    """
    fits = [fit_polynomial(x, y, degree) for degree in degrees]
    J = np.array([np.mean((fit(x) - y) ** 2) for fit in fits])
    return J, np.array([population.risk(fit) for fit in fits])


def sine_risk(
    frequencies: Float[np.ndarray, " s"], x: Float[np.ndarray, " m"], y: Float[np.ndarray, " m"]
) -> tuple[Float[np.ndarray, " s"], Float[np.ndarray, " s"]]:
    r"""Return the empirical risk of sin(πθx) at each frequency θ, and its derivative.

    Source: L1-38

    .. math:: J(\theta) = \frac1m \sum_{i=1}^m \bigl(\sin(\pi\theta x^{(i)}) - y^{(i)}\bigr)^2

    It has many minima in its one parameter. On data with two frequencies the two best minima are
    nearly as low as each other.

    Examples
    --------
    >>> J, slope = sine_risk(np.array([0.0, 1.0]), np.array([0.5, 0.5]), np.array([1.0, 1.0]))
    >>> J.round(6)
    array([1., 0.])
    """
    phase = np.pi * np.outer(frequencies, x)
    residual = np.sin(phase) - y
    slopes = 2 * np.pi * residual * np.cos(phase) * x
    return np.mean(residual**2, axis=1), np.mean(slopes, axis=1)


# --- Losses of the margin ---------------------------------------------------------------------


def margins(w: Weights, b: float, x: Features, y: Labels) -> Float[np.ndarray, " m"]:
    """Return the margins y (wᵀx + b) of a linear classifier; a positive margin is a right answer.

    Source: L1-03

    Examples
    --------
    >>> margins(np.array([1.0]), 0.0, np.array([[2.0], [3.0]]), np.array([1, -1]))
    array([ 2., -3.])
    """
    return y * (x @ w + b)


def zero_one_loss(margin: Values) -> Values:
    """Return the 0–1 loss: 1 where the margin is at most 0, else 0. Source: L1-03.

    A score of exactly 0 counts as an error. The derivative is 0 at every margin except 0, where
    it does not exist.

    Examples
    --------
    >>> zero_one_loss(np.array([-2.0, 0.0, 0.1]))
    array([1., 1., 0.])
    """
    return (np.asarray(margin) <= 0).astype(float)


def logistic_loss(margin: Values) -> tuple[Values, Values]:
    r"""Return log₂(1 + e^{−margin}) and its derivative with respect to the margin yf.

    Source: L1-03

    .. math:: \frac{d}{d(yf)}\log_2(1 + e^{-yf}) = -\frac{1}{\ln 2}\,\frac{1}{1 + e^{yf}}

    Notes
    -----
    This is the negative log-likelihood −log p(y | x) of logistic regression, **in bits**. In bits
    it is 1 at margin 0 and bounds the 0–1 loss from above. In nats it is 0.69 at margin 0 and
    does not.

    Examples
    --------
    >>> value, derivative = logistic_loss(np.array([0.0, -1000.0]))
    >>> value.round().tolist(), derivative.round(2).tolist()
    ([1.0, 1443.0], [-0.72, -1.44])
    """
    # logaddexp and expit do not overflow for very negative margins
    return np.logaddexp(0, -margin) / np.log(2), -expit(-margin) / np.log(2)


def hinge_loss(margin: Values) -> tuple[Values, Values]:
    """Return max(0, 1 − margin) and its derivative, −1 for margins below 1 and else 0.

    Source: L1-03

    Notes
    -----
    At margin 1 every number from −1 to 0 is a subgradient; 0 is returned. Bounds the 0–1 loss.

    Examples
    --------
    >>> hinge_loss(np.array([-1.0, 0.5, 2.0]))
    (array([2. , 0.5, 0. ]), array([-1., -1.,  0.]))
    """
    return np.maximum(0.0, 1 - margin), np.where(margin < 1, -1.0, 0.0)


def exponential_loss(margin: Values) -> tuple[Values, Values]:
    """Return e^{−margin} and its derivative −e^{−margin}. Bounds the 0–1 loss. Source: L1-03.

    Examples
    --------
    >>> exponential_loss(np.array([0.0]))
    (array([1.]), array([-1.]))
    """
    return np.exp(-margin), -np.exp(-margin)


def squared_loss(margin: Values) -> tuple[Values, Values]:
    """Return (1 − margin)² and its derivative −2(1 − margin). Bounds the 0–1 loss. Source: L1-03.

    With labels ±1 it equals (f − y)². It rises again for margins above 1.

    Examples
    --------
    >>> squared_loss(np.array([0.0, 3.0]))
    (array([1., 4.]), array([-2.,  4.]))
    """
    return (1 - margin) ** 2, -2 * (1 - margin)


MarginLoss = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""A surrogate loss: it maps margins to values and derivatives."""

SURROGATES: dict[str, MarginLoss] = {
    "logistic (bits)": logistic_loss,
    "hinge": hinge_loss,
    "exponential": exponential_loss,
    "squared": squared_loss,
}
"""The surrogates by name. Each is at least the 0–1 loss, at every margin."""


def zero_one_risk(w: Weights, b: float, x: Features, y: Labels) -> float:
    """Return the share of a sample that a linear classifier labels wrongly. Source: L1-03.

    Examples
    --------
    >>> zero_one_risk(np.array([1.0]), 0.0, np.array([[2.0], [-3.0]]), np.array([1, 1]))
    0.5
    """
    return float(zero_one_loss(margins(w, b, x, y)).mean())


def hinge_risk_gradient(w: Weights, x: Features, y: Labels) -> Weights:
    r"""Return the gradient of the empirical hinge risk of the classifier wᵀx. Source: L1-03.

    .. math:: \nabla J(w) = -\frac1m \sum_{i:\ y_i w^T x_i < 1} y_i x_i

    Examples
    --------
    >>> hinge_risk_gradient(np.zeros(1), np.array([[2.0], [4.0]]), np.array([1, 1]))
    array([-3.])
    """
    _, slope = hinge_loss(margins(w, 0.0, x, y))
    return x.T @ (slope * y) / len(y)


def count_dichotomies(m: int, d: int) -> int:
    r"""Return the number of labelings of m points in d dimensions by classifiers wᵀx.

    Source: L1-03

    .. math:: C(m, d) = 2 \sum_{k=0}^{d-1} \binom{m-1}{k}

    Cover's count, for points in general position and planes through the origin. A classifier with
    a bias, wᵀx + b, has C(m, d + 1) labelings. The count grows like m^{d−1}, and equals 2^m for
    d ≥ m.

    Raises
    ------
    ValueError
        If m or d is below 1.

    Examples
    --------
    >>> count_dichotomies(10, 2), count_dichotomies(10, 3)     # in the plane: without, with a bias
    (20, 92)
    """
    if m < 1 or d < 1:
        raise ValueError(f"expected at least one point and one dimension; got m = {m}, d = {d}")
    return 2 * sum(math.comb(m - 1, k) for k in range(d))


# --- Margins of a network, and early stopping -------------------------------------------------


def classification_margins(
    scores: Float[np.ndarray, "m c"], labels: Classes
) -> Float[np.ndarray, " m"]:
    """Return the score of the right class minus the largest other score. Source: L1-04.

    The 0–1 loss is 1 where this margin is at most 0.

    Examples
    --------
    >>> classification_margins(np.array([[3.0, 1.0, 2.0], [0.0, 1.0, 5.0]]), np.array([0, 1]))
    array([ 1., -4.])
    """
    rows = np.arange(len(labels))
    others = scores.copy()
    others[rows, labels] = -np.inf
    return scores[rows, labels] - others.max(axis=1)


class MarginHook:
    r"""Record the training margins of a network after each epoch. Source: L1-04.

    A hook for ``optdl.training.train``. It adds three curves to the record:

    - ``median_margin`` and ``smallest_margin``, of :func:`classification_margins`;
    - ``normalized_margin``, the smallest one over the product of the Frobenius norms
      ‖W₁‖ ⋯ ‖W_L‖ of the weight matrices.

    In a ReLU network without biases, multiplying the weights of a layer by a > 0 multiplies every
    margin by a. The normalized margin does not change.

    Parameters
    ----------
    inputs : (m, d) torch tensor
        The training images.
    labels : (m,) int array
        Their classes.

    Examples
    --------
    >>> import torch
    >>> hook = MarginHook(torch.ones(1, 2), np.array([0]))
    """

    def __init__(self, inputs: Any, labels: Classes) -> None:
        self.inputs = inputs
        self.labels = labels

    def after_epoch(self, state: Any) -> None:
        """Record the margins of ``state.model``."""
        scores = state.model(self.inputs).detach().double().cpu().numpy()
        values = classification_margins(scores, self.labels)
        smallest = float(values.min())
        norms = (float(p.detach().norm()) for p in state.model.parameters() if p.ndim == 2)
        state.curves.setdefault("median_margin", []).append(float(np.median(values)))
        state.curves.setdefault("smallest_margin", []).append(smallest)
        state.curves.setdefault("normalized_margin", []).append(smallest / math.prod(norms))


class GradientNormHook:
    """Record the norm of the batch gradient, over all training examples, after each epoch.

    Source: L1-05

    A hook for ``optdl.training.train``. It adds the curve ``batch_gradient_norm``, which has none
    of the noise of minibatch gradients.

    Parameters
    ----------
    inputs, labels : torch tensors
        The training examples.
    loss : callable
        The surrogate: maps scores and labels to their mean loss, a torch scalar.

    Examples
    --------
    >>> import torch
    >>> squared = torch.nn.functional.mse_loss
    >>> hook = GradientNormHook(torch.ones(1, 1), torch.ones(1, 1), squared)
    """

    def __init__(self, inputs: Any, labels: Any, loss: Callable[[Any, Any], Any]) -> None:
        self.inputs = inputs
        self.labels = labels
        self.loss = loss

    def after_epoch(self, state: Any) -> None:
        """Record ‖∇J‖ at the current parameters, then reset the gradients."""
        state.optimizer.zero_grad()
        self.loss(state.model(self.inputs), self.labels).backward()
        squares = sum(float(p.grad.square().sum()) for p in state.model.parameters())
        state.curves.setdefault("batch_gradient_norm", []).append(math.sqrt(squares))
        state.optimizer.zero_grad()


def early_stopping(validation_errors: Sequence[float], patience: int) -> tuple[int, int]:
    """Return the epoch to keep and the epoch at which training halts, both counted from 0.

    Source: L1-05

    The best epoch so far is the first one with the lowest error; a tie is no improvement. Training
    halts once ``patience`` epochs in a row have not improved on it.

    Parameters
    ----------
    validation_errors : sequence of float
        The error of each epoch, in order. Errors after the halt are not read.
    patience : int
        Number of epochs without improvement before the halt, at least 1.

    Returns
    -------
    best, halt : int
        ``halt`` is the last epoch if patience never runs out.

    Raises
    ------
    ValueError
        If there are no errors, or patience is below 1.

    Examples
    --------
    >>> early_stopping([0.5, 0.3, 0.4, 0.3, 0.1], patience=2)
    (1, 3)
    """
    if patience < 1 or len(validation_errors) == 0:
        raise ValueError(
            f"expected at least one epoch and patience of at least 1; "
            f"got {len(validation_errors)} epochs and patience {patience}"
        )
    best = 0
    for epoch, error in enumerate(validation_errors):
        if error < validation_errors[best]:
            best = epoch
        if epoch - best == patience:
            return best, epoch
    return best, len(validation_errors) - 1


class EarlyStopping:
    """Halt the training loop by the rule of :func:`early_stopping` and keep the best weights.

    Source: L1-05

    A hook for ``optdl.training.train``. It reads the curve ``validation_error`` after each epoch,
    and sets ``state.stop`` when patience runs out.

    Parameters
    ----------
    patience : int
        Number of epochs without improvement before the halt, at least 1.

    Attributes
    ----------
    best : int
        The epoch to keep, counted from 0.
    best_weights : dict or None
        The model's ``state_dict`` after that epoch, copied.

    Examples
    --------
    >>> EarlyStopping(patience=3).best_weights is None
    True
    """

    def __init__(self, patience: int) -> None:
        if patience < 1:
            raise ValueError(f"expected patience of at least 1 epoch; got {patience}")
        self.patience = patience
        self.best = -1
        self.best_weights: dict[str, Any] | None = None

    def after_epoch(self, state: Any) -> None:
        """Keep the weights if the epoch is the best so far; halt if patience has run out."""
        errors = state.curves["validation_error"]
        best, halt = early_stopping(errors, self.patience)
        if best == len(errors) - 1:
            self.best = best
            self.best_weights = copy.deepcopy(state.model.state_dict())
        if halt - best == self.patience:
            state.stop = f"no better validation error for {self.patience} epochs"


# --- Log-likelihood ---------------------------------------------------------------------------


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


# --- The noise of a minibatch -----------------------------------------------------------------


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


# --- Batch, minibatch, online -----------------------------------------------------------------


def minibatches(m: int, n: int, rng: np.random.Generator) -> tuple[Int[np.ndarray, " _"], ...]:
    """Return the indices of the minibatches of one epoch. Source: L1-09.

    Parameters
    ----------
    n : int
        Examples in a minibatch: n = m is the *batch* method, n = 1 the *online* method.
    rng : numpy.random.Generator
        Shuffles the examples, by one call of ``rng.permutation(m)``.

    Returns
    -------
    tuple of int arrays
        Every example occurs exactly once; the last minibatch holds the remainder.

    Raises
    ------
    ValueError
        If n is not in 1 … m.

    Examples
    --------
    >>> [len(indices) for indices in minibatches(10, 4, np.random.default_rng(0))]
    [4, 4, 2]
    """
    _require_batch_size(m, n)
    order = rng.permutation(m)
    return tuple(order[start : start + n] for start in range(0, m, n))


def _require_batch_size(m: int, n: int) -> None:
    if not 1 <= n <= m:
        raise ValueError(f"a minibatch of {m} examples holds 1 to {m} of them; got n = {n}")


@dataclass(frozen=True)
class UpdateCost:
    """Name and cost of training with minibatches of one size.

    Parameters
    ----------
    name : str
        ``batch``, ``minibatch`` or ``online``.
    gradients_per_update : int
        Per-example gradients computed for one update.
    updates_per_epoch : int
        Updates for one pass through the data.
    """

    name: str
    gradients_per_update: int
    updates_per_epoch: int


def update_cost(m: int, n: int) -> UpdateCost:
    """Return name and cost of training on m examples with minibatches of n. Source: L1-09.

    An epoch costs m gradients for every n; the number of updates is ⌈m/n⌉.

    Raises
    ------
    ValueError
        If n is not in 1 … m.

    Examples
    --------
    >>> update_cost(50_000, 100)
    UpdateCost(name='minibatch', gradients_per_update=100, updates_per_epoch=500)
    """
    _require_batch_size(m, n)
    name = {m: "batch", 1: "online"}.get(n, "minibatch")
    return UpdateCost(name, n, -(-m // n))


def stored_activations(n: int, widths: Sequence[int]) -> int:
    """Return how many numbers a dense network stores for the backward pass. Source: L1-09.

    Every layer stores its input, one row for each example: n (w₀ + w₁ + … + w_{L−1}) numbers for
    the widths w₀ (input) … w_L (output). The memory is proportional to n.

    Notes
    -----
    The weights are not counted: they do not depend on n.

    Examples
    --------
    >>> stored_activations(1, [784, 100, 10]), stored_activations(64, [784, 100, 10])
    (884, 56576)
    """
    return n * sum(widths[:-1])


def sgd(
    gradient: Callable[[np.ndarray, np.ndarray], np.ndarray],
    theta: Float[np.ndarray, " p"],
    batches: Sequence[np.ndarray],
    lr: float,
) -> Float[np.ndarray, "t p"]:
    """Take one gradient step for each minibatch and return all iterates, the start first.

    Source: L1-09

    Parameters
    ----------
    gradient : callable
        ``gradient(theta, indices)`` gives the mean gradient over these examples.
    batches : sequence of index arrays
        The minibatches, for instance those of :func:`minibatches`.

    Examples
    --------
    >>> sgd(lambda theta, indices: theta, np.array([8.0]), [np.array([0])] * 3, lr=0.5)[:, 0]
    array([8., 4., 2., 1.])
    """
    path = [theta]
    for indices in batches:
        path.append(path[-1] - lr * gradient(path[-1], indices))
    return np.array(path)


# --- Batch sizes that a method tolerates ------------------------------------------------------


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


# --- A stream of fresh data -------------------------------------------------------------------


def stream(population: Population, n: int, rng: np.random.Generator) -> Iterator[Batch]:
    """Yield minibatches of n new examples without end; no example comes twice. Source: L1-11.

    Notes
    -----
    Parameters θ that depend only on earlier minibatches are independent of the next one. Its
    gradient at θ is therefore an unbiased estimate of ∇J*(θ), the gradient of the risk.

    Examples
    --------
    >>> population = LinearPopulation(np.array([1.0]), np.eye(1), noise=1.0)
    >>> x, y = next(stream(population, 4, np.random.default_rng(0)))
    >>> x.shape, y.shape
    ((4, 1), (4,))
    """
    while True:
        yield population.sample(n, rng)


def stream_sgd(
    w: Weights, x: Features, y: Float[np.ndarray, " m"], lr: float, n: int
) -> Float[np.ndarray, "t d"]:
    """Pass once through a stream with SGD on ½(wᵀx − y)² and return all iterates. Source: L1-11.

    Parameters
    ----------
    x, y : (m, d) and (m,) arrays
        The stream, in the order in which it arrives. Each example is used once.
    n : int
        Minibatch size; m is a multiple of it.

    Returns
    -------
    (m/n + 1, d) array
        The iterates, the start first.

    Raises
    ------
    ValueError
        If m is not a multiple of n.

    Examples
    --------
    >>> x, y = np.ones((2, 1)), np.array([1.0, 1.0])
    >>> stream_sgd(np.zeros(1), x, y, lr=0.5, n=1)[:, 0]
    array([0.  , 0.5 , 0.75])
    """
    if n < 1 or len(y) % n:
        raise ValueError(f"the stream of {len(y)} examples must divide into minibatches of {n}")
    batches = list(np.arange(len(y)).reshape(-1, n))
    return sgd(lambda w, i: squared_gradients(w, x[i], y[i]).mean(axis=0), w, batches, lr)
