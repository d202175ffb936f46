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

__all__ = [
    "Observation",
    "calls",
    "generators",
    "generators_after",
    "observe",
    "outcomes",
    "received",
    "repeated",
    "without_inverse",
]


class Observation(NamedTuple):
    """What one call gave, as values.

    Parameters
    ----------
    kind : str
        ``value``, ``raised``, or ``other`` for what has something else than values in it.
    value : object
        The value; of an exception the name of its class and its message; of something else
        what :func:`described` returns.
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
    arguments = {name: _copied(value) for name, value in case.items()}
    printed = io.StringIO()
    try:
        with silence(printed):
            given = arguments.values()
            value = answer(*given) if use is None else use(answer, *given)
    except Exception as error:
        raised = type(error).__name__, str(error)
        return Observation("raised", raised, printed.getvalue(), "", line_of(error, answer))
    changed = next((name for name in case if _differ(case[name], arguments[name])), "")
    kind, *content = ("value", value) if is_plain(value) else described(value)
    if kind == "value":
        return Observation(kind, content[0], printed.getvalue(), changed)
    return Observation("other", [kind, *content], printed.getvalue(), changed)


def calls(answer: Any, *arguments: Sequence[Any]) -> list[Any]:
    """Return what an answer gives for each sequence of arguments; a driver."""
    return [answer(*given) for given in arguments]


def repeated(answer: Any, count: int, *arguments: Any) -> list[Any]:
    """Return what each of several calls gives with the same objects; a driver.

    A generator among the arguments goes on from call to call.
    """
    return [answer(*arguments) for _ in range(count)]


def without_inverse(answer: Any, *arguments: Any) -> Any:
    """Call an answer while ``np.linalg.inv`` and ``pinv`` raise an error."""

    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("compute no inverse of a matrix; solve the linear system")

    kept = {name: getattr(np.linalg, name) for name in ("inv", "pinv")}
    vars(np.linalg).update(dict.fromkeys(kept, refuse))
    try:
        return answer(*arguments)
    finally:
        vars(np.linalg).update(kept)


def generators_after(
    answer: Any, use: Callable[..., Any] | None, cases: Sequence[Mapping[str, Any]]
) -> list[list[str] | None]:
    """Return the states of each case's generators after a call, or None after an error; a driver.

    The parameters are those of :func:`outcomes`.
    """
    return [_generators_after(answer, use, case) for case in cases]


def _generators_after(
    answer: Any, use: Callable[..., Any] | None, case: Mapping[str, Any]
) -> list[str] | None:
    arguments = {name: _copied(value) for name, value in case.items()}
    try:
        with silence(io.StringIO()):
            given = arguments.values()
            _ = answer(*given) if use is None else use(answer, *given)
    except Exception:
        return None
    return generators(arguments)


def generators(case: Mapping[str, Any]) -> list[str]:
    """Return the states of the generators among arguments."""
    random = (value for value in case.values() if isinstance(value, np.random.Generator))
    return [str(generator.bit_generator.state) for generator in random]


def _copied(value: Any) -> Any:
    # an array has a copy of its own, ten times faster than that of the library
    return value.copy() if type(value) is np.ndarray else copy.deepcopy(value)


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
    """Return whether something is a number, a text, an array, or a container of such.

    Examples
    --------
    >>> is_plain([1.0, (None, "a")]), is_plain(map(abs, [1]))
    (True, False)
    """
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | range):
        return True
    if type(value) is np.ndarray or isinstance(value, np.generic):
        return value.dtype.kind in "biufcSUMm"
    if isinstance(value, list | tuple | set | frozenset):
        return depth > 0 and all(is_plain(item, depth - 1) for item in value)
    if isinstance(value, dict):
        return depth > 0 and all(
            is_plain(item, depth - 1) for pair in value.items() for item in pair
        )
    torch = sys.modules.get("torch")
    if torch is not None and type(value) in (torch.Tensor, torch.nn.Parameter):
        return bool(value.device.type == "cpu" and value.layout is torch.strided)
    return type(value) in (np.random.Generator, getattr(torch, "Generator", None))


def described(value: Any, depth: int = 20) -> list[Any]:
    """Return the containers and values in something, and the class and text of what is neither.

    Examples
    --------
    >>> described((1.0, abs))
    ['tuple', ['value', 1.0], ['object', 'builtin_function_or_method', '<built-in ...>', 'abs']]
    """
    if is_plain(value):
        return ["value", value]
    if isinstance(value, list | tuple) and depth:
        kind = "list" if isinstance(value, list) else "tuple"
        return [kind, *(described(item, depth - 1) for item in value)]
    if type(value) is dict and depth:
        return ["dict", *([described(key, 0), described(value[key], depth - 1)] for key in value)]
    if isinstance(value, np.ndarray) and value.dtype.hasobject and depth:
        return ["array", value.shape, *(described(item, depth - 1) for item in value.flat)]
    with contextlib.suppress(TypeError, ValueError, RuntimeError):
        if hasattr(value, "__array__") and is_plain(array := np.asarray(value)):
            return ["value", array]
    text = repr(value)[:500]
    name = [str(getattr(value, "__name__", text))] if callable(value) else []
    return ["object", type(value).__name__, text, *name]


def received(given: Sequence[Any]) -> Observation:
    """Return what a call gave, from what :func:`outcomes` returned, as it can be compared."""
    observation = Observation(*given)
    if observation.kind != "other":
        return observation
    return observation._replace(value=_rebuilt(*observation.value))


def _rebuilt(kind: str, *content: Any) -> Any:
    """Return what was described, with stand-ins that have the names of the classes."""
    if kind == "value":
        return content[0]
    if kind == "object":
        name, text, *function = content
        members = {"__repr__": lambda self: text}
        called = {"__call__": None, "__name__": function[0]} if function else {}
        return type(name, (), members | called)()
    if kind == "dict":
        return {_rebuilt(*key): _rebuilt(*value) for key, value in content}
    if kind == "array":
        shape, *items = content
        array = np.empty(len(items), dtype=object)
        for number, item in enumerate(items):  # at once, arrays would become one of more dimensions
            array[number] = _rebuilt(*item)
        return array.reshape(shape)
    return (list if kind == "list" else tuple)(_rebuilt(*item) for item in content)


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
