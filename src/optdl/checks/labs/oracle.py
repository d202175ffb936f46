"""Compare what a driver gives for an answer and for something that PyTorch has."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from optdl.checks.compare import disagreement
from optdl.checks.exercise import Function
from optdl.observation import observe


def agrees(
    driver: Function,
    answer: Any,
    oracle: Any,
    case: Iterable[Any],
    parts: slice = slice(None),
    rtol: float = 1e-9,
    atol: float = 1e-12,
) -> bool:
    """Return whether an answer does the same as an oracle, for which nothing is closed."""
    case = [*case]
    expected = partial(driver, closed=())(oracle, *case)[parts]
    return disagreement(expected, observe(driver, answer, *case)[parts], rtol, atol) is None
