"""How a check tells what went wrong: short, with the smallest failing case."""

from collections.abc import Mapping
from typing import Any

import numpy as np


class CheckFailed(AssertionError):
    """The answer to an exercise is not right yet; the message says why."""

    def _render_traceback_(self) -> list[str]:
        """Show the message alone in a notebook: the stack of the checker teaches nothing."""
        return str(self).splitlines()


def show(value: Any) -> str:
    """Return a value as a student wants to read it: short, with its shape when it has one.

    Examples
    --------
    >>> show(np.array([0.5, 1 / 3]))
    '[0.5    0.3333]  (shape (2,))'
    >>> show(0.1)
    '0.1'
    """
    if isinstance(value, np.ndarray) and value.ndim:
        text = np.array2string(value, precision=4, threshold=24, edgeitems=3, max_line_width=76)
        separator = "\n" if "\n" in text else "  "
        return f"{text}{separator}(shape {value.shape})"
    if isinstance(value, np.ndarray | np.generic):
        return show(value.item())
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, tuple):
        return "(" + ", ".join(show(item) for item in value) + ")"
    if isinstance(value, np.random.Generator):
        return "a random generator"
    if callable(value):
        return f"the function {getattr(value, '__name__', repr(value))}"
    text = repr(value)
    return text if len(text) <= 400 else text[:397] + "..."


def _indent(name: str, text: str) -> str:
    first, *rest = text.splitlines() or [""]
    pad = " " * (len(name) + 5)
    return "\n".join([f"  {name} = {first}", *(pad + line for line in rest)])


def failing_case(
    title: str, arguments: Mapping[str, Any], expected: Any, got: str, reason: str, cause: str
) -> str:
    """Return the message for one failing case; ``cause`` may be empty."""
    lines = [f"✗ {title}: not right yet.", "", "Smallest failing case"]
    lines += [_indent(name, show(value)) for name, value in arguments.items()]
    lines += [
        _indent("expected", show(expected)),
        _indent("got", got),
        "",
        f"Why: {_sentence(reason)}",
    ]
    if cause:
        lines += [f"Likely cause: {_sentence(cause)}"]
    return "\n".join(lines)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."
