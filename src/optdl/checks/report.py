"""How a check tells what went wrong: short, with the smallest failing case."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from optdl.checks.compare import holds_arrays, plain

WHY = "Why: "
LIKELY_CAUSE = "Likely cause: "
"""How the lines of a message begin that say what is wrong, and which known mistake explains it."""


class Plain:
    """Is shown in a notebook as its message alone: the stack of the checker teaches nothing."""

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


class CheckFailed(Plain, AssertionError):
    """The answer to an exercise is not right yet; the message says why."""


class Stopped(Plain, KeyboardInterrupt):
    """A check was interrupted; the message says where the student's function was."""


def show(value: Any, names: Any = "", digits: int = 4) -> str:
    """Return a value as a student wants to read it: short, with its shape when it has one.

    ``names`` are those of the parts of a tuple, nested as the parts are; ``digits`` are those of
    an array behind the point.

    Examples
    --------
    >>> show(np.array([0.5, 1 / 3]))
    '[0.5    0.3333]  (shape (2,))'
    >>> show(np.array([1.0, -1e-17]))  # what rounding leaves of a zero
    '[1. 0.]  (shape (2,))'
    >>> show(0.1)
    '0.1'
    >>> print(show((np.array([1.0]), (np.array([2.0]), np.array([3.0])))))
    value 1: [1.]  (shape (1,))
    value 2: value 1: [2.]  (shape (1,))
             value 2: [3.]  (shape (1,))
    >>> print(show((1.0, np.array([2.0])), ("mean", "var")))
    mean: 1
    var: [2.]  (shape (1,))
    """
    if isinstance(value, np.ndarray) and value.ndim:
        return _show_array(value, digits)
    if isinstance(value, float | np.longdouble | np.clongdouble):
        return f"{value:.{max(10, digits)}g}"
    if isinstance(value, np.ndarray | np.generic):
        return show(value.item(), "", digits)
    if holds_arrays(value) or (isinstance(value, tuple) and _named(value, names)):
        return _show_items(value, names, digits)
    if isinstance(value, tuple):
        return "(" + ", ".join(show(item, "", digits) for item in value) + ")"
    if isinstance(value, np.random.Generator):
        return "a random generator"
    if callable(value):
        return f"the function {getattr(value, '__name__', repr(value))}"
    text = repr(value)
    return text if len(text) <= 400 else text[:397] + "..."


def _named(value: Any, names: Any) -> bool:
    return isinstance(names, tuple) and len(names) == len(value)


def _show_items(value: Any, names: Any, digits: int) -> str:
    """Return the items below each other, each behind its name or its number."""
    known = names if _named(value, names) else [f"value {i + 1}" for i in range(len(value))]
    return "\n".join(
        show(item, name, digits)
        if isinstance(name, tuple)
        else _hang(f"{name}: ", show(item, "", digits))
        for item, name in zip(value, known, strict=True)
    )


def _show_array(array: np.ndarray, digits: int) -> str:
    # 0.0083 beside 11.14 needs no exponent; where four digits would hide something, it does.
    if array.dtype == float and digits == 4:  # what rounding leaves of a zero, or its sign
        size = np.abs(array)
        limit = 1e-15 * size.max(initial=0, where=np.isfinite(array))
        array = np.where(size < limit, 0, array) + 0.0
    with np.errstate(over="ignore"):  # of a float16
        short = array.dtype.kind == "f" and np.array_equal(array, array.round(4))
    text = np.array2string(
        array, precision=digits, threshold=64, edgeitems=3, max_line_width=76, suppress_small=short
    )
    # The brackets tell where a block begins; NumPy's empty lines between blocks only take room.
    text = "\n".join(line for line in text.splitlines() if line)
    separator = "\n" if "\n" in text else "  "
    return f"{text}{separator}(shape {array.shape})"


def show_both(expected: Any, got: Any, names: Any = "") -> tuple[str, str]:
    """Return two values that differ, with as many digits as tell them apart.

    Examples
    --------
    >>> show_both(np.array([1.5, 2.0]), np.array([1.5, 2.0000001]))
    ('[1.5 2. ]  (shape (2,))', '[1.5       2.0000001]  (shape (2,))')
    """
    digits = next((n for n in (4, 8, 12, 17) if _told_apart(expected, got, n)), 4)
    return show(expected, names, digits), show(got, names, digits)


def _told_apart(expected: Any, got: Any, digits: int) -> bool:
    """Return whether so many digits show a difference wherever there is one beyond rounding."""
    if isinstance(expected, tuple | list) and isinstance(got, tuple | list):
        pairs = list(zip(expected, got, strict=False))
        return len(expected) != len(got) or all(_told_apart(*pair, digits) for pair in pairs)
    if show(expected, "", digits) != show(got, "", digits):
        return True
    try:
        return bool(np.allclose(plain(expected), plain(got), 1e-9, 1e-12, equal_nan=True))
    except (ValueError, TypeError, RuntimeError):
        return True


def _hang(lead: str, text: str) -> str:
    """Return a text behind its lead, with the later lines below the first."""
    first, *rest = text.splitlines() or [""]
    return "\n".join([lead + first, *(" " * len(lead) + line for line in rest)])


def failing_case(
    title: str,
    arguments: Mapping[str, Any],
    values: Sequence[str],
    reasons: Sequence[str],
    cause: str,
) -> str:
    """Return the message for one failing case: what is wrong, then the case, in few lines.

    ``values`` are the expected value and the one got, as text, or nothing; ``cause`` may be empty.
    """
    lines = [f"✗ {title}: not right yet.", f"{WHY}{_sentences(*reasons)}"]
    if cause:
        lines += [f"{LIKELY_CAUSE}{_sentences(cause)}"]
    lines += ["", "Smallest failing case"]
    two = zip(*map(str.splitlines, values), strict=False)
    first = next((n for n, (a, b) in enumerate(two) if a.split() != b.split()), 0)
    texts = {name: (show(value), 0) for name, value in arguments.items()}
    texts |= {name: (v, first) for name, v in zip(("expected", "got"), values, strict=False)}
    names = [*arguments]
    for most in range(MAX_LINES, 2, -1):
        told = {name: _hang(f"  {name} = ", _cut(*of, most)) for name, of in texts.items()}
        if _height(lines, told.values()) <= MAX_LINES:
            break
    else:
        while names and _height(lines, told.values()) >= MAX_LINES:
            del told[names.pop()]
    left = [f"  … and {', '.join([*arguments][len(names) :])}"] * (len(names) < len(arguments))
    given, shown = [*told.values()][: len(names)], [*told.values()][len(names) :]
    return "\n".join([*lines, *given, *left, *shown])


MAX_LINES = 20
"""The most lines that a message has: what is longer nobody reads."""


def _height(*texts: Iterable[str]) -> int:
    return sum(text.count("\n") + 1 for some in texts for text in some)


def _cut(text: str, first: int, most: int) -> str:
    """Return at most so many lines of a text, with the ``first`` one that matters among them.

    Examples
    --------
    >>> print(_cut(show(np.arange(6.0)[:, None]), first=4, most=3))
    … 4 lines above, 0 below  (shape (6, 1))
     [4.]
     [5.]]
    """
    lines = text.splitlines()
    if len(lines) <= most:
        return text
    alone = text.count("(shape") == 1 and lines[-1].strip().startswith("(shape")
    shape = f"  {lines.pop().strip()}" if alone else ""
    start = 0 if first < most - 1 else min(first, len(lines) - most + 1)
    kept, below = lines[start : start + most - 1], len(lines) - start - most + 1
    if start:
        return "\n".join([f"… {start} lines above, {below} below{shape}", *kept])
    return "\n".join([*kept, f"… {below} more{shape}"])


def _sentences(*texts: str) -> str:
    """Return sentences in a row; the one behind the colon begins with a small letter."""
    first, *rest = (text if text.endswith((".", "?", "!")) else f"{text}." for text in texts)
    return " ".join([first, *(text[:1].upper() + text[1:] for text in rest)])


MAX_CHARACTERS = 2000
"""The most characters that are shown of what a student's code printed."""


def with_printed(text: str, printed: str, case: str) -> str:
    """Return what a check says, and below it what the code printed, if anything.

    ``case`` says in which case.
    """
    if not printed.strip():
        return text
    shown, rest = printed[:MAX_CHARACTERS].rstrip("\n"), len(printed) - MAX_CHARACTERS
    end = f"\n… {rest:,} more characters are not shown." if rest > 0 else ""
    return f"{text}\n\nYour function printed, in {case}:\n{shown}{end}"
