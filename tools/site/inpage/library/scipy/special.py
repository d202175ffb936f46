"""Special functions."""

import math

import numpy as np

from scipy import missing


def __getattr__(name):
    return missing(__name__, name)


def expit(x):
    """Return the logistic function, without overflow."""
    x = np.asarray(x, dtype=float)
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))[()]


def log_softmax(x, axis=None):
    """Return the logarithm of softmax, without overflow."""
    shifted = np.asarray(x, dtype=float) - np.max(x, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def softmax(x, axis=None):
    """Return softmax, without overflow."""
    powers = np.exp(np.asarray(x, dtype=float) - np.max(x, axis=axis, keepdims=True))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def ndtr(x):
    """Return the standard normal distribution function."""
    return np.vectorize(lambda value: math.erfc(-value / math.sqrt(2)) / 2, otypes=[float])(x)[()]
