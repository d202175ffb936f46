"""Compare what an answer of a lab does with what an oracle does, such as PyTorch's own."""

from collections.abc import Iterable
from typing import Any

from optdl.checks.compare import disagreement
from optdl.checks.exercise import Function
from optdl.observation import observe


def agrees(
    use: Function,
    answer: Any,
    oracle: Any,
    case: Iterable[Any],
    parts: slice = slice(None),
    rtol: float = 1e-9,
    atol: float = 1e-12,
) -> bool:
    """Return whether an answer does the same as an oracle, for which nothing is closed."""
    case = [*case]
    expected = use(oracle, *case, is_open=True)[parts]
    return disagreement(expected, observe(use, answer, *case)[parts], rtol, atol) is None
