"""Call what a student wrote, where it lives, and return what came of it as plain values.

A check may run in another process than the answer, so that an answer cannot reach what judges it.
Then it holds a stub of the answer, and :func:`observe` sends a *driver* to the answer: a plain
function of a module that students have, too. A driver holds no reference and judges nothing.
"""

import ast
import contextlib
import copy
import importlib
import inspect
import io
import sys
import textwrap
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, update_wrapper
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "Observation",
    "calls",
    "effort",
    "generators",
    "observe",
    "outcomes",
    "products",
    "received",
    "returned",
    "source_of",
    "without_inverse",
]


class Observation(NamedTuple):
    """What one call gave, as values.

    Parameters
    ----------
    kind : str
        ``value``; ``raised``; ``unusable`` where the driver raised, because it could not use what
        the answer is or returned; or ``other`` for what has something else than values in it.
    value : object
        The value; of an exception the name of its class and its message, and where it is the
        driver's what :func:`returned` says; of something else what :func:`described` returns.
    printed : str
        What the call printed.
    changed : str
        The argument that it changed in place, if any.
    line : str
        The number and the text of the answer's line that raised, where they are known.
    states : sequence of str
        The states of the generators among the arguments, after the call.
    """

    kind: str
    value: Any
    printed: str = ""
    changed: str = ""
    line: str = ""
    states: Sequence[str] = ()

    @property
    def is_error(self) -> bool:
        """Return whether there is no value, as something was raised."""
        return self.kind in ("raised", "unusable")


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
    printed = io.StringIO()
    with silence(printed):
        return [*map(partial(outcome, answer, use, printed), cases)]


def outcome(
    answer: Any, use: Callable[..., Any] | None, printed: io.StringIO, case: Mapping[str, Any]
) -> Observation:
    """Return what came of one case, as :func:`outcomes` does of all."""
    printed.seek(0)
    printed.truncate()
    arguments = _arguments(case)
    try:
        given = arguments
        if use is None and any(map(callable, arguments)):
            given = [
                _limited(name, value) if callable(value) else value
                for name, value in zip(case, arguments, strict=True)
            ]
        value = use(answer, *given) if use else answer(*given)
        if type(value) is list and len(value) > 1000:
            value = _compact(value)
        found = ["value", value] if is_plain(value) else described(value)
    except (Exception, SystemExit) as error:
        raised = type(error).__name__, str(error)
        if use is None or _is_of_student(error, answer):
            return Observation("raised", raised, printed.getvalue(), "", line_of(error, answer))
        content = [*raised, returned(answer, use, case)]
        return Observation("unusable", content, printed.getvalue())
    text, changed = printed.getvalue(), ""
    for (name, before), after in zip(case.items(), arguments, strict=True):
        if before is after or changed:
            continue
        is_same = type(before) is np.ndarray and before.tobytes() == after.tobytes()
        if not is_same and _differ(before, after):
            changed = name
    kind, content = ("value", found[1]) if found[0] == "value" else ("other", found)
    return Observation(kind, content, text, changed, "", generators(arguments))


def returned(
    answer: Any, use: Callable[..., Any], case: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """Return the name of each function of an answer that returned to a driver, and what; a driver.

    The parameters are those of :func:`outcomes`, for one case.
    """
    files, given = {*_files(answer)}, []

    def follow(frame: Any, event: str, value: Any) -> None:
        code, caller = frame.f_code, frame.f_back.f_code
        inner = caller.co_filename in files or code.co_name.startswith("<")
        if event == "return" and code.co_filename in files and not inner:
            yields = code.co_flags & inspect.CO_GENERATOR
            given.append((code.co_name, "a generator" if yields else in_words(value)))

    before = sys.getprofile()
    try:
        with silence(io.StringIO()), contextlib.suppress(Exception, SystemExit):
            arguments = _arguments(case)
            sys.setprofile(follow)
            use(answer, *arguments)
    finally:
        sys.setprofile(before)
    return given


def in_words(value: Any, depth: int = 1) -> str:
    """Return what kind of value something is, with its shape or its length.

    Examples
    --------
    >>> in_words((np.ones(3), None)), in_words([1.5, 2.0]), in_words({"a": 1})
    ('a tuple of an array of shape (3,) and None', 'a list of 2 numbers', "a dict with the key 'a'")
    """
    if value is None or isinstance(value, bool):
        return "None" if value is None else "True or False"
    if isinstance(value, int | float | np.number):
        return "a number"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        kind = "an array" if isinstance(value, np.ndarray) else "a tensor"
        return f"{kind} of shape {tuple(value.shape)}" if value.shape else f"{kind} of one number"
    if isinstance(value, dict) and value:
        keys = ", ".join(map(repr, value))
        return f"a dict with the key{'s' if len(value) > 1 else ''} {keys}"[:100]
    kind = with_article(type(value).__name__)
    if isinstance(value, list | tuple) and depth and value:
        items = [in_words(item, depth - 1) for item in value]
        if len(items) > 4 or (len({*items}) == 1 and len(items) > 1):
            every = f" items, each {items[0]}" if len({*items}) == 1 else " items"
            return f"{kind} of {len(items)}{' numbers' if {*items} == {'a number'} else every}"
        return f"{kind} of {' and '.join(filter(None, (', '.join(items[:-1]), items[-1])))}"
    return kind


def with_article(name: str) -> str:
    """Return the name of a type with its article: ``an int``."""
    name = {"ndarray": "array"}.get(name, name)
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _is_of_student(error: BaseException, answer: Any) -> bool:
    """Return whether an error came out of an answer's own code, or of another cell's."""
    files = {*_files(answer)}
    return any(
        frame.f_code.co_filename in files or frame.f_globals.get("__name__") == "__main__"
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def calls(answer: Any, *arguments: Sequence[Any]) -> list[Any]:
    """Return what an answer gives for each sequence of arguments; a driver."""
    return [answer(*given) for given in arguments]


class _Counted(np.ndarray):
    """An array that counts the products of matrices that it and its results take part in."""

    count = 0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        _Counted.count += ufunc is np.matmul
        plain = [np.asarray(x) if isinstance(x, _Counted) else x for x in inputs]
        options.pop("out", None)
        value = getattr(ufunc, method)(*plain, **options)
        return value.view(_Counted) if isinstance(value, np.ndarray) else value


def products(answer: Any, matrix: np.ndarray, *arguments: Any) -> int:
    """Return how many products of matrices an answer makes from a matrix; a driver."""
    _Counted.count = 0
    answer(matrix.view(_Counted), *arguments)
    return _Counted.count


def without_inverse(answer: Any, *arguments: Any) -> Any:
    """Call an answer while NumPy computes no inverse, nor solves for the identity."""
    kept = {name: getattr(np.linalg, name) for name in ("inv", "pinv", "matrix_power", "solve")}

    def refuse(*given: Any, **named: Any) -> None:
        raise RuntimeError("compute no inverse of a matrix; solve the linear system")

    def solve(a: Any, b: Any) -> Any:
        return refuse() if np.array_equal(b, np.eye(len(a))) else kept["solve"](a, b)

    vars(np.linalg).update(dict.fromkeys(kept, refuse) | {"solve": solve})
    try:
        return answer(*arguments)
    finally:
        vars(np.linalg).update(kept)


def effort(answer: Any, *arguments: Any) -> tuple[int, int | None]:
    """Return how many lines of Python a call runs, and how many bytes it holds at most; a driver.

    The bytes are None where Python cannot count them.
    """
    lines, peak = 0, None

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    traced = sys.gettrace()
    with contextlib.ExitStack() as after:
        memory: Any = None
        with contextlib.suppress(ImportError):  # as in some builds for WebAssembly
            memory = importlib.import_module("tracemalloc")
            memory.start()
            after.callback(memory.stop)
        after.callback(sys.settrace, traced)
        sys.settrace(count)
        answer(*arguments)
        if memory:
            peak = memory.get_traced_memory()[1]
    return lines, peak


def generators(arguments: Iterable[Any]) -> list[str]:
    """Return the states of the generators among arguments."""
    found = []
    for value in arguments:
        if isinstance(value, np.random.Generator):
            found.append(str(value.bit_generator.state))
    return found


def _compact(value: list[Any]) -> Any:
    """Return a long list of numbers as an array, which is compared a thousand times faster."""
    with contextlib.suppress(ValueError, TypeError):
        array = np.asarray(value)
        return array if array.dtype.kind in "biuf" else value
    return value


MAX_CALLS = 1000
"""No answer needs so many calls of a function that it is given, such as a gradient."""


def _limited(name: str, function: Any) -> Any:
    """Return a function that ends a loop which would call it for ever."""
    number = 0

    def limited(*arguments: Any, **named: Any) -> Any:
        nonlocal number
        number += 1
        if number > MAX_CALLS:
            raise RuntimeError(f"a loop does not end: it has called `{name}` {MAX_CALLS} times")
        return function(*arguments, **named)

    return update_wrapper(limited, function)


_IMMUTABLE = {type(None), bool, int, float, str, FunctionType}


def _arguments(case: Mapping[str, Any]) -> list[Any]:
    """Return copies of the arguments of a call; a check makes hundreds of calls."""
    arguments = []
    for value in case.values():
        if type(value) is np.ndarray:  # a copy of its own is ten times faster than the library's
            value = value.copy()
        elif type(value) not in _IMMUTABLE:
            value = copy.deepcopy(value)
        arguments.append(value)
    return arguments


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
    if isinstance(value, list | tuple | set | frozenset | dict):
        if not depth:
            raise RecursionError("what is returned holds itself, or is nested too deeply")
        items = [*value, *value.values()] if isinstance(value, dict) else value
        for item in items:
            if type(item) is not float and not is_plain(item, depth - 1):
                return False
        return True
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
    """Return whether an array or a number, or one within a tuple or list, is not as it was."""
    if isinstance(before, tuple | list):
        pairs = [two for two in zip(before, after, strict=False) if two[0] is not two[1]]
        return len(before) != len(after) or any(_differ(*two) for two in pairs)
    if isinstance(before, np.ndarray):
        return not np.array_equal(before, after, equal_nan=before.dtype.kind == "f")
    return isinstance(before, int | float | str) and bool(before != after)


def line_of(error: BaseException, answer: Any) -> str:
    """Return the number and the text of the line of an answer that raised, where it is known."""
    files = set(_files(answer))
    frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename in files]
    return f"{frames[-1].lineno}: `{frames[-1].line}`" if frames and frames[-1].line else ""


def source_of(answer: Any) -> str:
    """Return the code of an answer and of what it calls in the notebook, uncommented; a driver.

    It is written as ``ast.unparse`` does, and empty where it cannot be read.
    """
    known: dict[CodeType, str] = {}
    try:
        for function in _functions(answer):
            _read(function, known)
    except (OSError, TypeError, SyntaxError):
        return ""
    return "\n".join(known.values())


def _read(function: Any, known: dict[CodeType, str]) -> None:
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType) or code in known:
        return
    known[code] = _without_comments(inspect.getsource(function))
    for name in code.co_names:
        called = function.__globals__.get(name)
        if getattr(called, "__module__", "") == function.__module__:
            for each in _functions(called):
                _read(each, known)


def _without_comments(source: str) -> str:
    tree = ast.parse(textwrap.dedent(source))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def _files(answer: Any) -> Iterator[str]:
    """Yield where a function, or the methods of a class, were written."""
    for function in _functions(answer):
        if isinstance(code := getattr(function, "__code__", None), CodeType):
            yield code.co_filename


def _functions(answer: Any) -> Iterator[Any]:
    """Yield a function, or the methods of a class, as they were written."""
    for code in [answer, *vars(answer).values()] if isinstance(answer, type) else [answer]:
        yield inspect.unwrap(code) if inspect.isroutine(code) else code
