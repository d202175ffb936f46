"""Losses of the margin of two classes."""

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from optdl.erm.arrays import Features, Labels, Values, Weights, require_labels
from optdl.special import expit

__all__ = [
    "SURROGATES",
    "MarginLoss",
    "count_dichotomies",
    "exponential_loss",
    "hinge_loss",
    "hinge_risk_gradient",
    "log_odds",
    "logistic_loss",
    "margins",
    "squared_loss",
    "zero_one_loss",
    "zero_one_risk",
]


def margins(w: Weights, b: float, x: Features, y: Labels) -> Float[np.ndarray, " m"]:
    """Return the margins y (wᵀx + b) of a linear classifier; positive is right (Source: L1-03).

    The labels y are ±1; others raise ValueError.

    >>> margins(np.array([1.0]), 0.0, np.array([[2.0], [3.0]]), np.array([1, -1]))
    array([ 2., -3.])
    """
    require_labels(y, x, "a label −1 or +1", np.abs(y) == 1)
    return y * (x @ w + b)


def zero_one_loss(margin: Values) -> Values:
    """Return the 0–1 loss: 1 where the margin is at most 0, else 0 (Source: L1-03).

    A score of exactly 0, or NaN, counts as an error. The derivative is 0 at every margin except 0,
    where it does not exist.

    >>> zero_one_loss(np.array([-2.0, 0.0, np.nan, 0.1]))
    array([1., 1., 1., 0.])
    """
    return 1.0 - (np.asarray(margin) > 0)


def logistic_loss(margin: Values) -> tuple[Values, Values]:
    r"""Return log₂(1 + e^{−margin}) and its derivative with respect to the margin yf.

    .. math:: \frac{d}{d(yf)}\log_2(1 + e^{-yf}) = -\frac{1}{\ln 2}\,\frac{1}{1 + e^{yf}}

    This is the negative log-likelihood −log p(y | x) of logistic regression, **in bits**. In bits
    it is 1 at margin 0 and bounds the 0–1 loss from above. In nats it is 0.69 at margin 0 and does
    not. Source: L1-03.

    >>> value, derivative = logistic_loss(np.array([0.0, -1000.0]))
    >>> value.round().tolist(), derivative.round(2).tolist()
    ([1.0, 1443.0], [-0.72, -1.44])
    """
    # logaddexp and expit do not overflow for very negative margins
    return np.logaddexp(0, -margin) / np.log(2), -expit(-margin) / np.log(2)


def hinge_loss(margin: Values) -> tuple[Values, Values]:
    """Return max(0, 1 − margin) and its derivative, −1 below margin 1 and else 0 (Source: L1-03).

    At margin 1 every number from −1 to 0 is a subgradient; 0 is returned. Bounds the 0–1 loss.

    >>> hinge_loss(np.array([-1.0, 0.5, 2.0]))
    (array([2. , 0.5, 0. ]), array([-1., -1.,  0.]))
    """
    return np.maximum(0.0, 1 - margin), np.where(margin < 1, -1.0, 0.0)


def exponential_loss(margin: Values) -> tuple[Values, Values]:
    """Return e^{−margin} and its derivative −e^{−margin}. Bounds the 0–1 loss (Source: L1-03).

    >>> exponential_loss(np.array([0.0]))
    (array([1.]), array([-1.]))
    """
    return np.exp(-margin), -np.exp(-margin)


def squared_loss(margin: Values) -> tuple[Values, Values]:
    """Return (1 − margin)² and its derivative −2(1 − margin). Bounds the 0–1 loss (Source: L1-03).

    With labels ±1 it equals (f − y)². It rises again for margins above 1.

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
    """Return the share of a sample that a linear classifier labels wrongly (Source: L1-03).

    The labels y are ±1.

    >>> zero_one_risk(np.array([1.0]), 0.0, np.array([[2.0], [-3.0]]), np.array([1, 1]))
    0.5
    """
    return float(zero_one_loss(margins(w, b, x, y)).mean())


def hinge_risk_gradient(w: Weights, x: Features, y: Labels) -> Weights:
    r"""Return the gradient of the empirical hinge risk of the classifier wᵀx (Source: L1-03).

    .. math:: \nabla J(w) = -\frac1m \sum_{i:\ y_i w^T x_i < 1} y_i x_i

    The labels y are ±1.

    >>> hinge_risk_gradient(np.zeros(1), np.array([[2.0], [4.0]]), np.array([1, 1]))
    array([-3.])
    """
    _, slope = hinge_loss(margins(w, 0.0, x, y))
    return x.T @ (slope * y) / len(y)


def log_odds(p: float) -> float:
    r"""Return the score that minimizes the expected negative log-likelihood (Source: L1-40).

    .. math:: \arg\min_f\ -p\ln\frac1{1+e^{-f}} - (1-p)\ln\frac1{1+e^f} = \ln\frac p{1-p}

    Here p is the probability of the label +1. Raises ValueError unless it lies strictly between 0
    and 1: otherwise there is no minimizer.

    >>> round(log_odds(0.8), 3)
    1.386
    """
    if not 0 < p < 1:
        raise ValueError(f"p must lie strictly between 0 and 1; got {p}")
    return math.log(p / (1 - p))


def count_dichotomies(m: int, d: int) -> int:
    r"""Return the number of labelings of m points in d dimensions by classifiers wᵀx.

    .. math:: C(m, d) = 2 \sum_{k=0}^{d-1} \binom{m-1}{k}

    Cover's count, for points in general position and planes through the origin. A classifier with a
    bias, wᵀx + b, has C(m, d + 1) labelings. The count grows like m^{d−1}, and equals 2^m for d ≥
    m. Raises ValueError where m or d is less than 1. Source: L1-03.

    >>> count_dichotomies(10, 2), count_dichotomies(10, 3)     # in the plane: without, with a bias
    (20, 92)
    """
    if m < 1 or d < 1:
        raise ValueError(f"expected at least one point and one dimension; got m = {m}, d = {d}")
    return 2 * sum(math.comb(m - 1, k) for k in range(d))
