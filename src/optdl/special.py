"""Special functions that do not overflow, as ``scipy.special`` has them.

They are short in NumPy, and SciPy's take longer to import than everything else that a notebook
needs at its start. Axis letter, fixed for the module: ``c`` classes.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

__all__ = ["expit", "log_softmax", "ndtr", "softmax"]

Values = Float[np.ndarray, "..."]
Scores = Float[np.ndarray, "*shape c"]


def expit(z: Values) -> Values:
    r"""Return the logistic function of each entry.

    .. math:: \sigma(z) = \frac1{1 + e^{-z}} = \frac{e^z}{1 + e^z}

    >>> expit(np.array([-1000.0, 0.0, 1000.0]))
    array([0. , 0.5, 1. ])
    """
    small = np.exp(-np.abs(z))  # at most 1, whatever the sign of z
    values: Values = np.where(z >= 0, 1.0, small) / (1.0 + small)
    return values


def log_softmax(z: Scores) -> Scores:
    r"""Return the logarithm of softmax along the last axis.

    .. math:: \ln \operatorname{softmax}(z)_i = z_i - \ln \sum_j e^{z_j}

    >>> log_softmax(np.array([0.0, 1000.0]))
    array([-1000.,     0.])
    """
    shifted = z - z.max(axis=-1, keepdims=True)
    result: Scores = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result


def softmax(z: Scores) -> Scores:
    r"""Return positive numbers that add up to 1 along the last axis.

    .. math:: \operatorname{softmax}(z)_i = \frac{e^{z_i}}{\sum_j e^{z_j}}

    >>> softmax(np.array([0.0, 0.0, 1000.0]))
    array([0., 0., 1.])
    """
    powers = np.exp(z - z.max(axis=-1, keepdims=True))
    result: Scores = powers / powers.sum(axis=-1, keepdims=True)
    return result


def ndtr(z: Values) -> Values:
    r"""Return the distribution function Φ of N(0, 1) at each entry.

    .. math:: \Phi(z) = \tfrac12 \operatorname{erfc}\bigl(-z/\sqrt2\bigr)

    >>> ndtr(np.array([-40.0, 0.0, 40.0])).round(12)
    array([0. , 0.5, 1. ])
    """
    entries = [math.erfc(-value / math.sqrt(2)) / 2 for value in np.ravel(z)]
    return np.array(entries).reshape(np.shape(z))
