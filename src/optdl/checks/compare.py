"""Tell whether an answer agrees with the expected one, and in what it differs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

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
    return _disagreement(expected, got, _Tolerance(rtol, atol), names, "")


class _Tolerance(NamedTuple):
    rtol: float
    atol: float


def _disagreement(
    expected: Any, got: Any, tolerance: _Tolerance, names: Any, where: str
) -> str | None:
    """Return in words how one part differs; ``where`` says which part it is."""
    reason: str | None
    if expected is None or isinstance(expected, str):
        agrees = type(got) in (type(expected), np.str_) and expected == got
        reason = None if agrees else _text_disagreement(expected, got)
    elif got is None:
        reason = "expected a value, got None: does every path of your function `return` something?"
    elif isinstance(expected, Mapping):
        return _mapping_disagreement(expected, got, tolerance, where)
    elif isinstance(expected, tuple) or _holds_arrays(expected):
        return _items_disagreement(expected, got, tolerance, names, where)
    else:
        reason = _array_disagreement(expected, got, tolerance)
    return reason and _led(where, reason)


def _text_disagreement(expected: Any, got: Any) -> str:
    if isinstance(expected, str) and isinstance(got, str) and len(expected) + len(got) <= 60:
        return f"expected '{expected}', got '{got}'"
    return "the values differ"


def _led(where: str, reason: str) -> str:
    return f"{where}: {reason}" if where else reason


def _holds_arrays(value: Any) -> bool:
    """Return whether a value is a list of arrays, which need not have one shape."""
    return isinstance(value, list) and any(isinstance(item, np.ndarray) for item in value)


def _mapping_disagreement(
    expected: Mapping[Any, Any], got: Any, tolerance: _Tolerance, where: str
) -> str | None:
    if not isinstance(got, Mapping):
        return _led(where, f"expected a dict, got {with_article(type(got).__name__)}")
    if set(expected) != set(got):
        return _led(where, f"expected the keys {_listed(expected)}, got {_listed(got)}")
    lead = f"{where}, " if where else ""
    reasons = (
        _disagreement(value, got[key], tolerance, "", f"{lead}at key {key!r}")
        for key, value in expected.items()
    )
    found = filter(None, reasons)
    return next(found, None) if where else "; ".join(found) or None


def _listed(keys: Iterable[Any]) -> str:
    return str(sorted(keys, key=str))


def _items_disagreement(
    expected: Sequence[Any], got: Any, tolerance: _Tolerance, names: Any, where: str
) -> str | None:
    if not isinstance(got, Sequence | np.ndarray) or isinstance(got, str):
        return _led(
            where, f"expected {_values(len(expected))}, got {with_article(type(got).__name__)}"
        )
    if isinstance(got, np.ndarray) and isinstance(expected, list) and len(got) != len(expected):
        arrays = "one array" if len(expected) == 1 else f"{len(expected)} arrays"
        return _led(where, f"expected a list of {arrays}, got one array of shape {got.shape}")
    if len(got) != len(expected):
        return _led(where, f"expected {_values(len(expected))}, got {len(got)}")
    inner = names if isinstance(names, tuple) else [""] * len(expected)
    for number, (left, right, name) in enumerate(zip(expected, got, inner, strict=True)):
        within = _place(number, len(expected), name, where)
        if reason := _disagreement(left, right, tolerance, name, within):
            return reason
    return None


def _values(number: int) -> str:
    return "one value" if number == 1 else f"{number} values"


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


def with_article(name: str) -> str:
    """Return the name of a type with its article: ``an int``."""
    name = {"ndarray": "array"}.get(name, name)
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def plain(value: Any) -> Any:
    """Return a tensor without its graph, as NumPy can read it, and all else as it is."""
    return value.detach() if hasattr(value, "detach") else value


def _array_disagreement(expected: Any, got: Any, tolerance: _Tolerance) -> str | None:
    right = np.asarray(plain(expected))
    kind = with_article(type(got).__name__)
    try:
        answer = np.asarray(plain(got))
    except (ValueError, TypeError, RuntimeError):
        return f"expected {_shape(right, 'an array of ')}, got {kind}"
    if not (np.issubdtype(answer.dtype, np.number) or answer.dtype == bool):
        items = f" of dtype {answer.dtype}" if isinstance(got, np.ndarray) else ""
        return f"expected {'numbers' if right.ndim else 'a number'}, got {kind}{items}"
    if answer.shape != right.shape:
        return f"expected {_shape(right)}, got {_shape(answer)}"
    if np.iscomplexobj(answer) and not np.iscomplexobj(right):
        return "expected real numbers, got complex ones"
    with np.errstate(all="ignore"):
        agree = np.isclose(answer, right, *tolerance, equal_nan=True)
    if agree.all():
        return None
    if right.size == 1:
        texts = f"expected {right.item()}, got {answer.item()}"
        return texts if right.dtype == bool else "the values differ"
    return f"{int((~agree).sum())} of {right.size} values differ"


def _shape(array: np.ndarray, before: str = "") -> str:
    return f"{before}shape {array.shape}" if array.ndim else "a single number"
