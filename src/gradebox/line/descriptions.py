"""What the student's process tells of its functions, classes and objects, as plain data.

Annotations go as classes or as their text, never as something that the checker would evaluate.
"""

import builtins
import contextlib
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any

from gradebox.codec.encoding import Encoder, Unsendable
from gradebox.line.peer import MOST_TEXT, short

MOST_NAMES = 10_000
"""So many names of attributes are told."""

MOST_PARAMETERS = 300
"""So many parameters of a function are told."""

FLAGS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

Names = Mapping[str, Any]


def _describe(namespace: Names, value: Any) -> dict[str, Any]:
    """Return what ``inspect`` tells of a function or class."""
    description: dict[str, Any] = {
        "doc": _long(getattr(value, "__doc__", None)),
        "qualname": short(getattr(value, "__qualname__", "")),
        "module": short(getattr(value, "__module__", "")),
        "abstract": sorted(map(short, getattr(value, "__abstractmethods__", ())))[:MOST_NAMES],
        "parameters": None,
        "returns": None,
    }
    with contextlib.suppress(TypeError, ValueError):
        signature = inspect.signature(value)
        parameters = [*signature.parameters.values()][:MOST_PARAMETERS]
        description["parameters"] = [
            [
                parameter.name,
                int(parameter.kind),
                *_default(parameter),
                _annotation(parameter.annotation),
            ]
            for parameter in parameters
        ]
        description["returns"] = _annotation(signature.return_annotation)
    return description


def _default(parameter: inspect.Parameter) -> tuple[bool, Any]:
    """Return whether a parameter has a default, and the default if it can travel."""
    if parameter.default is parameter.empty:
        return False, None
    return True, parameter.default if _travels(parameter.default) else ...


def _travels(value: Any) -> bool:
    try:
        Encoder(lambda other: None).encode(value)
    except (Unsendable, RecursionError):
        return False
    return True


def _annotation(value: Any) -> Any:
    """Return an annotation in a list: a class of the notebook or of Python's own, or its text."""
    if value is inspect.Parameter.empty:
        return []
    if value is None or value is type(None):
        return [None]
    if type(value) is str:
        return [value[:MOST_TEXT]]
    kind: Any = type(value)  # list[str] says that it is a class
    if kind is types.GenericAlias or not isinstance(value, type):
        return [repr(value)[:MOST_TEXT]]
    own = vars(builtins).get(value.__name__) is value or value.__module__ == "__main__"
    return [value if own else f"{value.__module__}.{value.__qualname__}"]


def _annotations(namespace: Names, value: Any) -> dict[str, Any]:
    """Return the annotations of a function or class."""
    annotations = inspect.get_annotations(value) if callable(value) else value.__annotations__
    return {
        short(name): _annotation(annotation)
        for name, annotation in [*annotations.items()][:MOST_PARAMETERS]
    }


def _long(value: Any) -> str | None:
    return str.__str__(value)[:MOST_TEXT] if isinstance(value, str) else None


def _code(namespace: Names, function: Any) -> dict[str, Any]:
    """Return what is to be seen of the code of a function."""
    code = function.__code__
    source = None
    with contextlib.suppress(OSError, TypeError):
        source = inspect.getsource(code)[:MOST_TEXT]
    counts = [code.co_posonlyargcount, code.co_argcount, code.co_kwonlyargcount]
    stars = [bool(code.co_flags & flag) for flag in (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS)]
    return {
        "name": short(code.co_name),
        "counts": counts,
        "stars": stars,
        "variables": [short(name) for name in code.co_varnames[:MOST_PARAMETERS]],
        "names": [short(name) for name in code.co_names[:MOST_NAMES]],
        "flags": code.co_flags & FLAGS,
        "source": source,
    }


def _vars(namespace: Names, value: Any) -> dict[str, Any]:
    """Return the attributes that an object or class has itself, without annotations."""
    return {
        name: attribute
        for name, attribute in [*vars(value).items()][:MOST_NAMES]
        if type(name) is str and name != "__annotations__" and _travels(attribute)
    }


def _dir(namespace: Names, value: Any) -> list[str]:
    return [short(name) for name in dir(value)][:MOST_NAMES]


def _special(namespace: Names, kind: Any, name: str) -> tuple[Any, ...]:
    """Return an attribute of a class that it does not have from ``object`` alone."""
    kinds = {*kind.__mro__, *type(kind).__mro__} - {object, type}
    if not any(name in vars(ancestor) for ancestor in kinds):
        return ()
    return (getattr(kind, name),)


QUESTIONS: dict[str, Callable[..., Any]] = {
    "describe": _describe,
    "annotations": _annotations,
    "code": _code,
    "vars": _vars,
    "dir": _dir,
    "special": _special,
}
"""The questions that :class:`gradebox.line.lender.Lender` answers by these functions."""
