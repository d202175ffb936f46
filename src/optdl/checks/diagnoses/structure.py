"""Say in words what a function returned and what it should, when these are built differently."""

from collections.abc import Sequence
from typing import Any

import numpy as np

COUNTS = ("no", "one", "two", "three", "four", "five")


def structure(names: Any, got: Any) -> str:
    """Return what was returned and what is to be, or an empty string when it is built right.

    Examples
    --------
    >>> structure(("y", ("mean", "var")), np.ones((2, 2)))
    'your function returned one array of shape (2, 2); return y, (mean, var)'
    >>> structure(("y", ("mean", "var")), (1.0, 2.0, 3.0))
    'your function returned three values; return y, (mean, var), which is two'
    """
    if isinstance(names, str) or _fits(names, got):
        return ""
    text = f"your function returned {_described(got)}; return {_written(names)}"
    flat = isinstance(got, tuple | list) and len(got) != len(names)
    return f"{text}, which is {_count(len(names))}" if flat else text


def _fits(names: Any, got: Any) -> bool:
    if isinstance(names, str):
        return not isinstance(got, dict | set)
    if not isinstance(got, tuple | list) or len(got) != len(names):
        return False
    return all(_fits(name, item) for name, item in zip(names, got, strict=True))


def _described(got: Any) -> str:
    if isinstance(got, np.ndarray | np.generic):
        shape = np.shape(got)
        return f"one array of shape {shape}" if shape else "one number"
    if not isinstance(got, tuple | list):
        return "one number" if isinstance(got, int | float) else f"one {type(got).__name__}"
    inner = [item for item in got if isinstance(item, tuple | list)]
    values = f"{_count(len(got))} value{'s' if len(got) != 1 else ''}"
    return f"{values}, nested otherwise" if inner else values


def _written(names: Any) -> str:
    return ", ".join(
        name if isinstance(name, str) else f"({_written(name)})" for name in _sequence(names)
    )


def _sequence(names: Any) -> Sequence[Any]:
    return (names,) if isinstance(names, str) else tuple(names)


def _count(number: int) -> str:
    return COUNTS[number] if number < len(COUNTS) else str(number)
