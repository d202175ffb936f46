"""Tell whether an answer agrees with the expected one, and in what it differs."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from optdl.observation import in_words, with_article


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
    alike = partial(close, rtol=rtol, atol=atol)
    return _disagreement(expected, got, alike, names, "")


def agrees(expected: Any, got: Any, rtol: float, atol: float) -> bool:
    """Return whether two values agree, as :func:`disagreement` says; at once for most values."""
    kind = type(expected) if type(expected) is type(got) else None
    if kind is tuple and len(expected) == len(got):
        return all(map(partial(agrees, rtol=rtol, atol=atol), expected, got))
    floats = (float, np.float64)  # and nothing else: another class may be the student's own
    are_floats = type(expected) in floats and type(got) in floats
    if are_floats or (kind is np.ndarray and expected.dtype == got.dtype == np.float64):
        return np.shape(expected) == np.shape(got) and bool(close(got, expected, rtol, atol).all())
    is_same = kind in (bool, int, str, type(None)) and expected == got
    return is_same or disagreement(expected, got, rtol, atol) is None


def close(got: Any, expected: Any, rtol: float, atol: float) -> Any:
    """Return what ``numpy.isclose`` does where NaN is NaN, in a fourth of its time."""
    expected = np.asarray(expected, np.result_type(expected, 1.0))  # no integer overflows
    with np.errstate(all="ignore"):
        near = (np.abs(got - expected) <= atol + rtol * np.abs(expected)) & np.isfinite(expected)
        return near | (got == expected) | ((got != got) & (expected != expected))


def _disagreement(expected: Any, got: Any, alike: Any, names: Any, where: str) -> str | None:
    """Return in words how one part differs; ``where`` says which part it is."""
    reason: str | None = None
    if expected is None or isinstance(expected, str):
        if type(got) not in (type(expected), np.str_) or expected != got:
            texts = f"expected {expected!r}, got {got!r}"
            is_short = isinstance(got, str | None) and len(texts) <= 80
            reason = texts if is_short else "the values differ"
    elif got is None:
        reason = "expected a value, got None: does every path of your function `return` something?"
    elif isinstance(expected, Mapping):
        return _mapping_disagreement(expected, got, alike, where)
    elif isinstance(expected, tuple) or holds_arrays(expected):
        return _items_disagreement(expected, got, alike, names, where)
    else:
        reason = _array_disagreement(expected, got, alike)
    return reason and _led(where, reason)


def _led(where: str, reason: str) -> str:
    return f"{where}: {reason}" if where else reason


def holds_arrays(value: Any) -> bool:
    """Return whether a tuple or list has arrays in it, at any depth: they may differ in shape."""
    return isinstance(value, tuple | list) and any(
        isinstance(item, np.ndarray) or holds_arrays(item) for item in value
    )


def _mapping_disagreement(
    expected: Mapping[Any, Any], got: Any, alike: Any, where: str
) -> str | None:
    if not isinstance(got, Mapping):
        return _led(where, f"expected a dict, got {with_article(type(got).__name__)}")
    if set(expected) != set(got):
        turned = (expected, got), (got, expected)
        missing, more = (sorted({*some} - {*others}, key=str) or "none" for some, others in turned)
        return _led(where, f"keys that are missing: {missing}; that are not expected: {more}")
    lead = f"{where}, " if where else ""
    reasons = (
        _disagreement(value, got[key], alike, "", f"{lead}at key {key!r}")
        for key, value in expected.items()
    )
    found = filter(None, reasons)
    return next(found, None) if where else "; ".join(found) or None


def _items_disagreement(
    expected: Sequence[Any], got: Any, alike: Any, names: Any, where: str
) -> str | None:
    values = "one value" if len(expected) == 1 else f"{len(expected)} values"
    if not isinstance(got, Sequence | np.ndarray) or isinstance(got, str):
        return _led(where, f"expected {values}, got {with_article(type(got).__name__)}")
    if len(got) != len(expected) and isinstance(got, np.ndarray) and isinstance(expected, list):
        arrays = "one array" if len(expected) == 1 else f"{len(expected)} arrays"
        return _led(where, f"expected a list of {arrays}, got one array of shape {got.shape}")
    if len(got) != len(expected):
        return _led(where, f"expected {values}, got {len(got)}")
    inner = names if isinstance(names, tuple) else [""] * len(expected)
    for number, (left, right, name) in enumerate(zip(expected, got, inner, strict=True)):
        within = _place(number, len(expected), name, where)
        if reason := _disagreement(left, right, alike, name, within):
            return reason
    return None


def _place(number: int, count: int, name: Any, where: str) -> str:
    """Return what a part is called: its name, or in words its position."""
    if isinstance(name, str) and name:
        return f"`{name}`"
    if isinstance(name, tuple) or count == 1:
        return where
    ordinal = ORDINALS[number] if number < len(ORDINALS) else f"{number + 1}th"
    part = f"the {ordinal} of {count} parts"
    return f"{part} {where if where.startswith('at key') else f'in {where}'}" if where else part


ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


def plain(value: Any) -> Any:
    """Return a tensor without its graph, as NumPy can read it, and all else as it is."""
    return value.detach() if hasattr(value, "detach") else value


def _array_disagreement(expected: Any, got: Any, alike: Any) -> str | None:
    right = np.asarray(plain(expected))
    try:
        answer = np.asarray(plain(got))
    except (ValueError, TypeError, RuntimeError):
        kind = with_article(type(got).__name__)
        return f"expected {_shape(right, 'an array of ')}, got {kind}"
    if not (np.issubdtype(answer.dtype, np.number) or answer.dtype == bool):
        kind = with_article(type(got).__name__)
        items = f" of dtype {answer.dtype}" if isinstance(got, np.ndarray) else ""
        return f"expected {'numbers' if right.ndim else 'a number'}, got {kind}{items}"
    if answer.shape != right.shape:
        empty = "" if answer.size else ", which is empty"
        return f"expected {_shape(right)}, got {_shape(answer)}{empty}"
    if np.iscomplexobj(answer) and not np.iscomplexobj(right):
        return "expected real numbers, got complex ones"
    agree = alike(answer, right)
    if agree.all():
        return None
    if right.size == 1:
        texts = f"expected {right.item()}, got {answer.item()}"
        return texts if {right.dtype.kind, answer.dtype.kind} <= {*"bi"} else "the values differ"
    return f"{int((~agree).sum())} of {right.size} values differ"


def _shape(array: np.ndarray, before: str = "") -> str:
    return f"{before}shape {array.shape}" if array.ndim else "a single number"


def structure(names: Any, got: Any, expected: Any = None) -> str:
    """Return what was returned and what is to be, or an empty string when it is built right.

    Examples
    --------
    >>> structure(("y", ("mean", "var")), (1.0, 2.0, 3.0))
    'your function returned a tuple of 3 numbers; return y, (mean, var)'
    >>> structure(("mean", "var"), [(1.0, 2.0), (3.0, 4.0)], ([1.0, 3.0], [2.0, 4.0]))
    'your function returned the parts together, row by row; return mean, var'
    """
    is_turned = isinstance(names, tuple) and _is_turned(expected, got)
    if not is_turned and (isinstance(names, str) or _is_built(names, got)):
        return ""
    what = "the parts together, row by row" if is_turned else in_words(got)
    return f"your function returned {what}; return {_in_code(names)}"


def _is_turned(expected: Any, got: Any) -> bool:
    """Return whether each row holds one entry of every part: the right ones, if turned round."""
    try:
        return disagreement(expected, tuple(zip(*got, strict=True)), 1e-9, 1e-12) is None
    except (TypeError, ValueError):
        return False


def _is_built(names: Any, got: Any) -> bool:
    if isinstance(names, str):
        return not isinstance(got, dict | set)
    if not isinstance(got, tuple | list) or len(got) != len(names):
        return False
    return all(_is_built(name, item) for name, item in zip(names, got, strict=True))


def _in_code(names: Any) -> str:
    return ", ".join(name if isinstance(name, str) else f"({_in_code(name)})" for name in names)
