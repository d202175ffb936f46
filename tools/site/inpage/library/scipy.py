"""The few functions of SciPy that the exercises use, in NumPy: the page does not load SciPy.

To import another function of the modules below is no error; to call it is.
"""

import math
import sys
from types import ModuleType, SimpleNamespace

import numpy as np

__version__, __path__ = "0", []


def __getattr__(name):
    """Import a part, as SciPy does; of one that is not below, the error says where it is."""
    if name.startswith("_"):
        raise AttributeError(name)
    return __import__(f"scipy.{name}")


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
    return np.exp(log_softmax(x, axis))


def ndtr(x):
    """Return the standard normal distribution function."""
    return np.vectorize(lambda value: math.erfc(-value / math.sqrt(2)) / 2, otypes=[float])(x)[()]


def eigh(a, *, eigvals_only=False):
    """Return the eigenvalues of a symmetric matrix, and its eigenvectors."""
    return np.linalg.eigvalsh(a) if eigvals_only else tuple(np.linalg.eigh(a))


def brentq(f, a, b, *, xtol=2e-12):
    """Return a root between two points of opposite signs, by bisection."""
    low, high = f(a), f(b)
    if low * high > 0:
        raise ValueError("f(a) and f(b) must have different signs")
    while abs(b - a) > xtol:
        middle = (a + b) / 2
        if middle in (a, b):
            break
        value = f(middle)
        a, b, low = (middle, b, value) if low * value > 0 else (a, middle, low)
    return (a + b) / 2


def minimize_scalar(fun, *, args=(), bounds, method="bounded", options=None):
    """Return where a function is least between two bounds, by golden sections."""
    low, high = bounds
    golden = (math.sqrt(5) - 1) / 2
    while high - low > 1e-10 * (1 + abs(high)):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if fun(left, *args) < fun(right, *args) else (left, high)
    x = (low + high) / 2
    return SimpleNamespace(x=x, fun=fun(x, *args))


class Part(ModuleType):
    """A module of SciPy with a few of its functions."""

    def __getattr__(self, name):
        """Return a function that says where it is to be had."""
        if name.startswith("_"):
            raise AttributeError(name)

        def missing(*args, **kwargs):
            raise NotImplementedError(
                f"{self.__name__}.{name} is not part of this page's Python, which has only a few "
                "functions of SciPy. Use it in JupyterLab."
            )

        return missing


for _name, *_functions in (
    ("special", expit, log_softmax, softmax, ndtr),
    ("linalg", eigh),
    ("optimize", brentq, minimize_scalar),
    ("sparse",),
    ("sparse.linalg",),
):
    _part = sys.modules[f"scipy.{_name}"] = Part(f"scipy.{_name}")
    vars(_part).update((_function.__name__, _function) for _function in _functions)
    _parent, _, _own = f"scipy.{_name}".rpartition(".")
    setattr(sys.modules[_parent], _own, _part)
