"""Tell whether an answer agrees with the expected one, and in what it differs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def disagreement(expected: Any, got: Any, rtol: float, atol: float, names: Any = "") -> str | None:
    """Return in words how ``got`` differs from ``expected``, or None when they agree.

    Numbers and arrays agree within ``atol + rtol |expected|``; a list may stand for an
    array; tuples and dicts agree when all their items do. ``names`` are those of the parts
    of a tuple, nested as the parts are.

    Examples
    --------
    >>> disagreement(1.0, 1.0 + 1e-15, rtol=1e-9, atol=0.0) is None
    True
    >>> disagreement([1.0, 2.0], [1.0], rtol=1e-9, atol=0.0)
    'expected shape (2,), got shape (1,)'
    >>> disagreement(1.0, np.ones(2), rtol=1e-9, atol=0.0)
    'expected a single number, got shape (2,)'
    >>> disagreement((1.0, 2.0), (1.0, 3.0), rtol=1e-9, atol=0.0, names=("mean", "var"))
    '`var`: the values differ'
    """
    if expected is None or isinstance(expected, str):
        same_type = type(expected) is type(got)
        return None if same_type and expected == got else "the values differ"
    if got is None:
        return "expected a value, got None: does every path of your function `return` something?"
    if isinstance(expected, Mapping):
        return _mapping_disagreement(expected, got, rtol, atol)
    if isinstance(expected, tuple) or _holds_arrays(expected):
        return _tuple_disagreement(expected, got, rtol, atol, names)
    return _array_disagreement(expected, got, rtol, atol)


def _holds_arrays(value: Any) -> bool:
    """Return whether a value is a list of arrays, which need not have one shape."""
    return isinstance(value, list) and any(isinstance(item, np.ndarray) for item in value)


def _mapping_disagreement(
    expected: Mapping[Any, Any], got: Any, rtol: float, atol: float
) -> str | None:
    if not isinstance(got, Mapping):
        return f"expected a dict, got {type(got).__name__}"
    if set(expected) != set(got):
        return f"expected the keys {sorted(expected)}, got {sorted(got)}"
    for key, value in expected.items():
        if reason := disagreement(value, got[key], rtol, atol):
            return f"at key {key!r}: {reason}"
    return None


def _tuple_disagreement(
    expected: Sequence[Any], got: Any, rtol: float, atol: float, names: Any
) -> str | None:
    if not isinstance(got, Sequence | np.ndarray) or isinstance(got, str):
        return f"expected {len(expected)} values, got one {type(got).__name__}"
    if len(got) != len(expected):
        values = "one value" if len(expected) == 1 else f"{len(expected)} values"
        return f"expected {values}, got {len(got)}"
    inner = names if isinstance(names, tuple) else [""] * len(expected)
    for number, (left, right, name) in enumerate(zip(expected, got, inner, strict=True), start=1):
        if reason := disagreement(left, right, rtol, atol, name):
            alone = len(expected) == 1
            where = "the only value" if alone else f"value {number} of {len(expected)}"
            return _led(name, where, reason)
    return None


def _led(name: Any, position: str, reason: str) -> str:
    """Return a reason behind the name of its part, which a part with parts of its own has not."""
    if isinstance(name, tuple) and reason.startswith("`"):
        return reason
    return f"`{name}`: {reason}" if name and isinstance(name, str) else f"{position}: {reason}"


def _array_disagreement(expected: Any, got: Any, rtol: float, atol: float) -> str | None:
    right = np.asarray(expected)
    try:
        answer = np.asarray(got)
    except (ValueError, TypeError):
        return f"expected an array of shape {right.shape}, got a {type(got).__name__}"
    if not (np.issubdtype(answer.dtype, np.number) or answer.dtype == bool):
        return f"expected numbers, got {type(got).__name__} of type {answer.dtype}"
    if answer.shape != right.shape:
        return f"expected {_shape(right)}, got {_shape(answer)}"
    if np.iscomplexobj(answer) and not np.iscomplexobj(right):
        return "expected real numbers, got complex ones"
    with np.errstate(all="ignore"):
        agree = np.isclose(answer, right, rtol=rtol, atol=atol, equal_nan=True)
    if agree.all():
        return None
    if right.size == 1:
        return "the values differ"
    return f"{int((~agree).sum())} of {right.size} values differ"


def _shape(array: np.ndarray) -> str:
    return f"shape {array.shape}" if array.ndim else "a single number"
