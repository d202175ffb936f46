"""Objects of the tests that a student's function is given, and what may be asked of them.

In one process a function can do anything with its arguments. Here the object stays with the tests,
and the student's process may ask for little: what a class that a test defines has in public, what
a file reads and writes, the next item of an iterator, a call. It may not ask for what leads from
there to the tests themselves, such as the frame of a generator or the globals of a function, nor
change what a test asks an object afterwards, such as how often a mock was called.
"""

import io
import types
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from unittest.mock import NonCallableMock

import numpy as np

from gradebox.codec.encoding import BadValue, Unsendable
from gradebox.line.operations import OPERATIONS

_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    np.ufunc,
    partial,
    type,
)

_OF_FILES = frozenset(
    (
        *("read", "readline", "readlines", "write", "writelines", "getvalue", "flush", "close"),
        *("seek", "tell", "truncate", "readable", "writable", "seekable", "isatty"),
        *("closed", "name", "mode", "encoding"),
    )
)
_OF_GENERATORS = frozenset(("send", "throw", "close"))
_OF_MOCKS = frozenset(dir(NonCallableMock)) | {"mock_calls", "method_calls"}

_ALWAYS = frozenset(("hash", "eq", "ne", "bool", "str", "repr", "format"))
_OPERATORS_OF_ITERATORS = frozenset(("iter",))
_OPERATORS_OF_FILES = frozenset(("iter", "enter"))


def may_lend(value: Any) -> bool:
    """Return whether a student's function may be given an object of the tests."""
    return (
        callable(value)
        or isinstance(value, NonCallableMock)
        or _is_of_tests(type(value))
        or _is_iterator(value)
        or _is_file(value)
    )


_MODULES: list[str] = []
"""The packages with the tests of the course, in the process that runs them."""


def count_as_tests(modules: Sequence[str]) -> None:
    """Take the classes of these packages, too, for classes of the tests."""
    _MODULES[:] = modules


def _is_of_tests(kind: type) -> bool:
    """Return whether a test cell has defined a class, or a module of the course's tests."""
    return kind.__module__ == "__main__" or any(
        f"{kind.__module__}.".startswith(f"{package}.") for package in _MODULES
    )


def _is_iterator(value: Any) -> bool:
    kind = type(value)
    return kind.__module__ in ("builtins", "itertools") and hasattr(kind, "__next__")


def _is_file(value: Any) -> bool:
    return isinstance(value, io.IOBase)


def _defined(kind: type, name: str) -> Any:
    """Return what the tests' own classes among the bases of a class have under a name."""
    for ancestor in kind.__mro__:
        if _is_of_tests(ancestor) and name in vars(ancestor):
            return vars(ancestor)[name]
    return None


def _may_read(value: Any, name: str) -> bool:
    if name.startswith("_") or (isinstance(value, _FUNCTIONS) and not isinstance(value, type)):
        return False
    if isinstance(value, NonCallableMock):
        return name not in _OF_MOCKS
    if isinstance(value, type):
        return _is_of_tests(value) and _defined(value, name) is not None
    if _is_of_tests(type(value)):
        held = name in getattr(value, "__dict__", ()) or _defined(type(value), name) is not None
        return held or _defined(type(value), "__getattr__") is not None
    if _is_file(value):
        return name in _OF_FILES
    return isinstance(value, types.GeneratorType) and name in _OF_GENERATORS


def _may_set(value: Any, name: str) -> bool:
    if name.startswith("_") or isinstance(value, type | NonCallableMock):
        return False
    # what a class defines as a function stays what it is: a test may call it
    return _is_of_tests(type(value)) and not callable(_defined(type(value), name))


def _refused(value: Any, action: str) -> Exception:
    return Unsendable(f"the test's {type(value).__name__} does not let an answer {action}")


def _read(value: Any, name: str) -> Any:
    if not _may_read(value, name):
        if not isinstance(value, _FUNCTIONS) and not hasattr(value, name):
            raise AttributeError(f"{type(value).__name__!r} object has no attribute {name!r}")
        raise _refused(value, f"read {name}")
    return getattr(value, name)


def _set(value: Any, name: str, new: Any) -> None:
    if not _may_set(value, name):
        raise _refused(value, f"set {name}")
    setattr(value, name, new)


def _delete(value: Any, name: str) -> None:
    if not _may_set(value, name):
        raise _refused(value, f"delete {name}")
    delattr(value, name)


def _operate(name: str, *values: Any) -> Any:
    owner = next(
        (
            operand
            for operand in values
            if not isinstance(operand, _FUNCTIONS) and may_lend(operand)
        ),
        None,
    )
    kind = type(owner)
    allowed = (
        isinstance(owner, NonCallableMock)
        or (_is_of_tests(kind) and _has_operator(kind, name))
        or (_is_file(owner) and name in _OPERATORS_OF_FILES)
        or (_is_iterator(owner) and name in _OPERATORS_OF_ITERATORS)
        or (name in _ALWAYS and owner is not None)
        or (name == "isinstance" and isinstance(values[-1], type))
    )
    if not allowed:
        raise TypeError(f"{name} is not supported by the test's {kind.__name__}")
    return OPERATIONS[name](*values)


def _has_operator(kind: type, name: str) -> bool:
    short = name.rstrip("_")
    return any(
        _defined(kind, f"__{variant}__") is not None
        for variant in (short, f"r{short}", f"i{short}")
    )


def _advance(iterator: Any) -> tuple[Any, ...]:
    if not (_is_iterator(iterator) or _is_file(iterator) or _is_of_tests(type(iterator))):
        raise _refused(iterator, "take its items")
    try:
        return (next(iterator),)
    except StopIteration:
        return ()


def _leave(manager: Any) -> None:
    if not (_is_file(manager) or _is_of_tests(type(manager))):
        raise _refused(manager, "leave it")
    type(manager).__exit__(manager, None, None, None)


def answer(question: str, value: tuple[Any, ...]) -> Any:
    """Answer what a student's process asks about objects of the tests.

    Raises
    ------
    BadValue
        If no honest process asks so.
    Unsendable
        If the object does not allow it.
    """
    kinds = _FORMS[question]
    fits = question == "operate" or len(value) == len(kinds)
    if not fits or not all(isinstance(*pair) for pair in zip(value, kinds, strict=False)):
        raise BadValue(f"expected what {question} is asked about")
    if question == "operate" and (len(value) < 2 or value[0] not in OPERATIONS):
        raise BadValue("expected an operation and what it is done with")
    return QUESTIONS[question](*value)


_FORMS: dict[str, tuple[Any, ...]] = {
    "getattr": (object, str),
    "setattr": (object, str, object),
    "delattr": (object, str),
    "operate": (str,),
    "next": (object,),
    "exit": (object,),
}

QUESTIONS: dict[str, Callable[..., Any]] = {
    "getattr": _read,
    "setattr": _set,
    "delattr": _delete,
    "operate": _operate,
    "next": _advance,
    "exit": _leave,
}
"""What a student's process may ask of an object of the tests, besides to call it."""
