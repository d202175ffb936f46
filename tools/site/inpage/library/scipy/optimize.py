"""Roots and minima."""

from scipy import missing


def __getattr__(name):
    return missing(__name__, name)


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
