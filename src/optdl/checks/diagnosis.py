"""Find what explains all the answers: beyond the known misconceptions, slips of any kind."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from optdl.checks.compare import disagreement

Slip = Callable[[Any], Any]


def _negated(expected: Any) -> Any:
    return -np.asarray(expected)


def _transposed(expected: Any) -> Any:
    return np.asarray(expected).T


def _scaled(factor: float) -> Slip:
    return lambda expected: factor * np.asarray(expected)


SLIPS: tuple[tuple[str, Slip], ...] = (
    ("your answer has the opposite sign", _negated),
    ("your answer is transposed", _transposed),
    ("your answer is twice the expected one", _scaled(2.0)),
    ("your answer is half the expected one", _scaled(0.5)),
)


def slip(expected: Sequence[Any], got: Sequence[Any], rtol: float, atol: float) -> str:
    """Return the slip that turns every expected value into the one got, or an empty string.

    Examples
    --------
    >>> slip([1.0, 2.0], [-1.0, -2.0], rtol=1e-9, atol=0.0)
    'your answer has the opposite sign'
    """
    numbers = all(_is_numeric(value) for value in expected)
    if not numbers or not any(np.any(np.asarray(value)) for value in expected):
        return ""
    for text, change in SLIPS:
        pairs = zip(expected, got, strict=True)
        if all(disagreement(change(right), answer, rtol, atol) is None for right, answer in pairs):
            return text
    near = zip(expected, got, strict=True)
    if all(disagreement(right, answer, 1e-4, atol) is None for right, answer in near):
        return "your answer is close but not exact: is something rounded, or in float32?"
    return ""


def _is_numeric(value: Any) -> bool:
    return isinstance(value, int | float | np.ndarray | np.generic)
