"""Risk, empirical risk, and the two of least squares."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Shaped

from optdl.erm.arrays import Features, Labels, Weights

__all__ = [
    "LinearPopulation",
    "Population",
    "double_descent_risk",
    "empirical_risk",
    "empirical_risks",
    "expected_least_squares_risks",
    "generalization_gap",
    "least_squares",
    "least_squares_risks",
    "risk_estimate",
]


def empirical_risk(
    loss: Callable[[np.ndarray, np.ndarray], np.ndarray],
    model: Callable[[np.ndarray, np.ndarray], np.ndarray],
    theta: Float[np.ndarray, "..."],
    x: Shaped[np.ndarray, "m ..."],
    y: Shaped[np.ndarray, "m ..."],
) -> float:
    r"""Return the empirical risk, the mean loss over a sample (Source: L1-01).

    .. math:: J(\theta) = \frac1m \sum_{i=1}^m L\bigl(f(x^{(i)}, \theta), y^{(i)}\bigr)

    ``loss(predictions, labels)`` gives m losses, ``model(x, theta)`` m predictions. Raises
    ValueError where there is no example, or not one label and one loss for each.

    >>> empirical_risk(lambda f, y: (f - y) ** 2, lambda x, w: w * x, np.array(2.0),
    ...                x=np.array([1.0, 2.0]), y=np.array([2.0, 3.0]))
    0.5
    """
    if len(x) != len(y) or len(y) == 0:
        raise ValueError(
            f"the empirical risk needs one label for each of at least one example; "
            f"got {len(x)} examples and {len(y)} labels"
        )
    losses = np.asarray(loss(model(x, theta), y))
    if losses.size != len(y):
        raise ValueError(
            f"expected {len(y)} losses, one for each example; got an array of shape "
            f"{losses.shape}: predictions and labels need one shape, and the loss is not a mean"
        )
    return float(losses.mean())


def risk_estimate(
    loss: Callable[[np.ndarray, np.ndarray], np.ndarray],
    model: Callable[[np.ndarray, np.ndarray], np.ndarray],
    theta: Float[np.ndarray, "..."],
    x: Shaped[np.ndarray, "m ..."],
    y: Shaped[np.ndarray, "m ..."],
) -> tuple[float, float]:
    """Estimate the risk of a fixed model, and the standard deviation of this estimate.

    The parameters are those of :func:`empirical_risk`. The estimate is the empirical risk, unbiased
    for a model that was fixed before the sample; the deviation is s/√m, with s that of the m
    losses. For the 0–1 loss it is √(J(1 − J)/m). Source: L1-01.

    >>> risk_estimate(lambda f, y: abs(f - y), lambda x, w: w * x, np.array(1.0),
    ...               x=np.zeros(4), y=np.array([1.0, 0.0, 1.0, 0.0]))
    (0.5, 0.25)
    """
    risk = empirical_risk(loss, model, theta, x, y)
    return risk, float(np.std(loss(model(x, theta), y))) / math.sqrt(len(y))


@runtime_checkable
class Population(Protocol):
    """A data distribution, of which ``sample(m, rng)`` gives ``(x, y)`` (Source: L1-01)."""

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
    """Return the empirical risk of one fixed model on many samples of each size (Source: L1-01).

    Its mean is the risk J*, at every m; its standard deviation is σ/√m with σ that of one loss.
    ``losses(x, y)`` gives the loss of the model on each example. The result has a row for each
    size, with ``repeats`` numbers.

    >>> coin = LinearPopulation(np.array([1.0]), np.eye(1), noise=0.0)
    >>> empirical_risks(coin, lambda x, y: np.ones(len(y)), [2, 5], 3, np.random.default_rng(0))
    array([[1., 1., 1.],
           [1., 1., 1.]])
    """
    return np.array(
        [[losses(*population.sample(m, rng)).mean() for _ in range(repeats)] for m in sizes]
    )


def generalization_gap(risk: float, sample_risk: float) -> float:
    """Return the generalization gap J* − J (Source: L1-01).

    It is positive if the model does worse on new data than on its sample.

    >>> generalization_gap(risk=0.5, sample_risk=0.25)
    0.25
    """
    return risk - sample_risk


@dataclass(frozen=True, eq=False)
class LinearPopulation:
    r"""Linear regression: x ~ N(0, Σ), and y given x ~ N(w*ᵀx, noise²) (Source: L1-01, L1-11).

    For the loss ½(wᵀx − y)² the risk has a closed form:

    .. math:: J^*(w) = \tfrac12 (w - w^*)^T \Sigma (w - w^*) + \tfrac12\,\text{noise}^2

    Here w* is ``weights`` and Σ is ``covariance``, symmetric positive definite, which is also the
    Hessian of the risk; ``noise`` is a standard deviation. Raises ValueError where the noise is
    negative.

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
        if not self.noise >= 0:
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
    """Return the shortest weights that minimize the empirical risk of ½(wᵀx − y)² (Source: L1-01).

    >>> least_squares(np.array([[1.0], [2.0]]), np.array([2.0, 4.0])).round(6)
    array([2.])
    """
    return np.linalg.lstsq(x, y, rcond=None)[0]


def least_squares_risks(
    population: LinearPopulation, sizes: Sequence[int], repeats: int, rng: np.random.Generator
) -> tuple[Float[np.ndarray, "s r"], Float[np.ndarray, "s r"]]:
    """Fit by least squares on many samples; return J and J* of each fit (Source: L1-01).

    Each has a row for each size, with ``repeats`` numbers.

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
    r"""Return E[J(ŵ)] and E[J*(ŵ)] of least squares on a :class:`LinearPopulation` (Source: L1-01).

    .. math::
        \mathbb E J(\hat w) = \frac{\sigma_y^2}2\Bigl(1 - \frac dm\Bigr), \qquad
        \mathbb E J^*(\hat w) = \frac{\sigma_y^2}2\Bigl(1 + \frac d{m-d-1}\Bigr)

    Both are exact for all Σ and w*; σ_y is the noise. Raises ValueError where m ≤ d + 1: the
    second does not hold there.

    >>> expected_least_squares_risks(d=5, m=11, noise=1.0)
    (0.2727272727272727, 1.0)
    """
    if m <= d + 1:
        raise ValueError(f"the expected risk is finite only for m > d + 1 = {d + 1}; got m = {m}")
    return 0.5 * noise**2 * (1 - d / m), 0.5 * noise**2 * (1 + d / (m - d - 1))


def double_descent_risk(k: int, m: int, weights: Weights, noise: float) -> float:
    r"""Return E[J*(ŵ)] of least squares on the first k of d independent features (Source: L1-02).

    .. math::
        \mathbb E J^* = \begin{cases}
        \frac{s^2}2\bigl(1 + \frac k{m-k-1}\bigr) & k \le m-2\\
        \frac12\lVert w_{used}\rVert^2\bigl(1 - \frac mk\bigr)
        + \frac{s^2}2\bigl(1 + \frac m{k-m-1}\bigr) & k \ge m+2\end{cases}

    with s² = ‖w_rest‖² + noise². For k > m the fit interpolates the sample, and is the shortest of
    all weight vectors that do.

    For m − 2 < k < m + 2 it is infinite. The formula is from Belkin, Hsu and Xu (2020). ``weights``
    is w* of a :class:`LinearPopulation` with Σ = I, ``noise`` a standard deviation. Raises
    ValueError where k is not in 1 … d, or m is less than 1.

    >>> [double_descent_risk(k, 5, np.ones(10), noise=1.0) for k in (3, 5, 10)]
    [16.0, inf, 3.625]
    """
    if not 1 <= k <= len(weights) or m < 1:
        raise ValueError(f"expected 1 to {len(weights)} of the features; got k = {k}, and m = {m}")
    used, rest = float(np.sum(weights[:k] ** 2)), float(np.sum(weights[k:] ** 2)) + noise**2
    if k <= m - 2:
        return 0.5 * rest * (1 + k / (m - k - 1))
    if k < m + 2:
        return math.inf
    return 0.5 * used * (1 - m / k) + 0.5 * rest * (1 + m / (k - m - 1))
