"""Signatures as people read them: ``Float["m d"]`` for an array of floats with these axes."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable
from typing import Any

import jaxtyping

LONG = 40
"""Letters of a default that is shown."""


def parts(value: Any, bound: bool) -> tuple[str, str | None] | None:
    """Return parameters and result of a callable; None when it tells neither.

    Parameters
    ----------
    value : callable
        What is called.
    bound : bool
        Whether the first parameter is left out, which Python fills in.
    """
    signature = _signature(value)
    if signature is None:
        return None
    listed = list(signature.parameters.values())[bound:]
    plain = signature.replace(
        parameters=[
            parameter.replace(
                annotation=_Shown.of(parameter.annotation), default=_default(parameter.default)
            )
            for parameter in listed
        ],
        return_annotation=inspect.Signature.empty,
    )
    result = signature.return_annotation
    return str(plain), None if result is inspect.Signature.empty else short(result)


def _signature(value: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(value, eval_str=True)
    except (NameError, TypeError):
        pass  # an annotation names what is imported for type checkers only
    except ValueError:
        return None
    try:
        return inspect.signature(value)
    except (TypeError, ValueError):
        return None


class _Shown:
    """A text that a signature shows without quotes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    @classmethod
    def of(cls, annotation: Any) -> Any:
        return annotation if annotation is inspect.Parameter.empty else cls(short(annotation))


def _default(value: Any) -> Any:
    if value is inspect.Parameter.empty:
        return value
    if inspect.isclass(value) or inspect.isroutine(value):
        return _Shown(value.__name__)
    text = repr(value)
    return _Shown("..." if "<" in text or len(text) > LONG else text)


def short(annotation: Any) -> str:
    """Return an annotation in few words; a class of this course by its whole name, for a link.

    >>> short(jaxtyping.Float[__import__("numpy").ndarray, "m d"] | None)
    'Float["m d"] | None'
    >>> short(dict[str, Callable[[int], Any]])
    'dict[str, Callable[[int], Any]]'
    """
    for pattern, form in FORMS:
        if pattern(annotation):
            return form(annotation)
    return re.sub(r"\b(?:typing|collections\.abc|np|numpy|torch|jaxtyping)\.", "", str(annotation))


def _array(annotation: Any) -> str:
    kind, shape = annotation.dtype.__name__, annotation.dim_str.strip()
    holder = annotation.array_type.__name__
    return f'{kind}["{shape}"]' if holder == "ndarray" else f'{kind}[{holder}, "{shape}"]'


def _class(annotation: Any) -> str:
    is_ours = annotation.__module__.split(".")[0] in ("optdl", "gradebox")
    return f"~{annotation.__module__}.{annotation.__qualname__}" if is_ours else annotation.__name__


def _generic(annotation: Any) -> str:
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    name = getattr(origin, "__name__", str(origin))
    return f"{name}[{', '.join(map(_argument, inner))}]"


def _argument(annotation: Any) -> str:
    if isinstance(annotation, list):
        return f"[{', '.join(map(short, annotation))}]"
    return "..." if annotation is Ellipsis else short(annotation)


def _union(annotation: Any) -> str:
    return " | ".join(map(short, typing.get_args(annotation)))


def _is_array(annotation: Any) -> bool:
    return inspect.isclass(annotation) and issubclass(annotation, jaxtyping.AbstractArray)


FORMS: tuple[tuple[Callable[[Any], bool], Callable[[Any], str]], ...] = (
    (lambda a: a is None or a is type(None), lambda a: "None"),
    (lambda a: isinstance(a, str), str),
    (lambda a: isinstance(a, typing.ForwardRef), lambda a: a.__forward_arg__),
    (lambda a: isinstance(a, typing.TypeVar), lambda a: a.__name__),
    (lambda a: typing.get_origin(a) in (typing.Union, types.UnionType), _union),
    (lambda a: typing.get_origin(a) is typing.Literal, lambda a: str(a).removeprefix("typing.")),
    (lambda a: typing.get_origin(a) is not None, _generic),
    (_is_array, _array),
    (inspect.isclass, _class),
)
"""Which annotations are written how: the first that fits."""
