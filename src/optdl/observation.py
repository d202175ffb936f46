"""Call what a student wrote, where it lives, and return what came of it as plain values.

A check may run in another process than the answer, so that an answer cannot reach what judges it.
Then it holds a stub of the answer, and :func:`observe` sends a *driver* to the answer: a plain
function of a module that students have, too. A driver holds no reference and judges nothing.
"""

import contextlib
import copy
import inspect
import io
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Observation", "observe", "outcomes"]


class Observation(NamedTuple):
    """What one call gave, as values.

    Parameters
    ----------
    kind : str
        ``value``, ``raised``, or ``other`` for what is neither a number, a text nor a container.
    value : object
        The value; of an exception the name of its class and its message; else its description.
    printed : str
        What the call printed.
    changed : str
        The argument that it changed in place, if any.
    line : str
        The number and the text of the answer's line that raised, where they are known.
    """

    kind: str
    value: Any
    printed: str = ""
    changed: str = ""
    line: str = ""


def observe(driver: Callable[..., Any], answer: Any, *values: Any) -> Any:
    """Return ``driver(answer, *values)``, computed where the answer lives, with copies of values.

    Parameters
    ----------
    driver : callable
        A function of a module that students may import.
    answer : object
        What the student wrote: a function or a class, or a stub of one with ``__observe__``.
    *values : object
        Plain values, and functions of modules.
    """
    remote = getattr(answer, "__observe__", None)
    if remote is not None:
        return remote(driver, *values)
    return driver(answer, *copy.deepcopy(values))


def outcomes(
    answer: Any, use: Callable[..., Any] | None, cases: Sequence[Mapping[str, Any]]
) -> list[Observation]:
    """Call an answer once for each case, silently; a driver.

    Parameters
    ----------
    answer : callable
        The function or class.
    use : callable, optional
        ``use(answer, *arguments)`` is called in place of ``answer(*arguments)``.
    cases : sequence of dict
        The arguments by name, in the order of the signature.
    """
    return [_outcome(answer, use, case) for case in cases]


def _outcome(answer: Any, use: Callable[..., Any] | None, case: Mapping[str, Any]) -> Observation:
    arguments = copy.deepcopy(dict(case))
    printed = io.StringIO()
    try:
        with silence(printed):
            given = arguments.values()
            value = answer(*given) if use is None else use(answer, *given)
    except Exception as error:
        raised = type(error).__name__, str(error)
        return Observation("raised", raised, printed.getvalue(), "", line_of(error, answer))
    changed = next((name for name in case if _differ(case[name], arguments[name])), "")
    if not is_plain(value):
        return Observation("other", _described(value), printed.getvalue(), changed)
    return Observation("value", value, printed.getvalue(), changed)


@contextlib.contextmanager
def silence(printed: io.StringIO) -> Iterator[None]:
    """Keep what is printed, and drop warnings: nbgrader gives no mark to a cell with stderr."""
    with (
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


def is_plain(value: Any, depth: int = 20) -> bool:
    """Return whether a value is a number, a text, an array, or a container of such.

    Examples
    --------
    >>> is_plain([1.0, (None, "a")]), is_plain(map(abs, [1]))
    (True, False)
    """
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return True
    if type(value) is np.ndarray:
        return not value.dtype.hasobject
    if isinstance(value, list | tuple | set | frozenset):
        return depth > 0 and all(is_plain(item, depth - 1) for item in value)
    if isinstance(value, dict):
        return depth > 0 and all(
            is_plain(item, depth - 1) for pair in value.items() for item in pair
        )
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor | torch.Generator)


def _described(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__}: {text[:200]}"


def _differ(before: Any, after: Any) -> bool:
    """Return whether an array, or one within a tuple or list, is not as it was."""
    if isinstance(before, tuple | list):
        return len(before) != len(after) or any(map(_differ, before, after))
    if not isinstance(before, np.ndarray):
        return False
    return not np.array_equal(before, after, equal_nan=before.dtype.kind == "f")


def line_of(error: BaseException, answer: Any) -> str:
    """Return the number and the text of the line of an answer that raised, where it is known."""
    files = set(_files(answer))
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files
    ]
    return f"{frames[-1].lineno}: `{frames[-1].line}`" if frames and frames[-1].line else ""


def _files(answer: Any) -> Iterator[str]:
    """Yield where a function, or the methods of a class, were written."""
    for code in [answer, *vars(answer).values()] if isinstance(answer, type) else [answer]:
        function = inspect.unwrap(code) if inspect.isroutine(code) else code
        if isinstance(code := getattr(function, "__code__", None), CodeType):
            yield code.co_filename
