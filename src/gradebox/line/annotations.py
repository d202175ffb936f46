"""Annotations from their text, without evaluating it.

What :func:`typing.get_type_hints` finds as text it evaluates; no text of a student's is therefore
ever an annotation in the checker, nor within one. A text that is more than names, attributes,
subscripts and ``|`` of classes known here becomes an :class:`Unknown`.
"""

import ast
import builtins
import collections
import collections.abc
import datetime
import decimal
import fractions
import functools
import operator
import pathlib
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from types import EllipsisType
from typing import Any

MOST_TEXT = 1000
"""So long may the text of an annotation be."""

_FORMS = (
    *("Any", "Optional", "Union", "List", "Dict", "Set", "FrozenSet", "Tuple", "Type", "Callable"),
    *("Iterable", "Iterator", "Generator", "Collection", "Container", "Hashable", "Sized"),
    *("Reversible", "Sequence", "MutableSequence", "Mapping", "MutableMapping", "AbstractSet"),
    *("MutableSet", "Awaitable", "Coroutine", "AsyncIterator", "AsyncIterable", "AsyncGenerator"),
    *("DefaultDict", "OrderedDict", "Counter", "Deque", "ChainMap", "Text", "NoReturn", "Never"),
    *("ClassVar", "Final", "Self", "SupportsInt", "SupportsFloat", "SupportsIndex", "SupportsAbs"),
)
"""The names of ``typing`` that are understood: none of them takes text or values but classes."""

_OTHERS = (
    *(collections.deque, collections.Counter, collections.OrderedDict, collections.defaultdict),
    *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta),
    *(decimal.Decimal, fractions.Fraction, pathlib.Path),
)

_PACKAGES = {
    "numpy": (),
    "torch": ("Tensor", "device", "dtype", "Generator", "nn.Module", "optim.Optimizer"),
    "pandas": ("DataFrame", "Series", "Index"),
    "matplotlib": ("figure.Figure", "axes.Axes"),
}
_SHORT = {"np": "numpy", "pd": "pandas", "nn": "torch.nn", "t": "typing"}


class Unknown:
    """An annotation that is not understood here; it equals nothing but itself."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __call__(self) -> None:
        """Do nothing: ``typing`` takes only what can be called."""
        raise TypeError(f"the annotation {self._text} is not known here")

    def __repr__(self) -> str:
        return self._text


def rebuilt(text: str, find: Callable[[str], type | None]) -> Any:
    """Return the annotation of a text.

    Parameters
    ----------
    text : str
        What stands in the student's code, or its ``repr``.
    find : callable
        Returns the class that the student's notebook calls so, or None.

    Examples
    --------
    >>> rebuilt("dict[str, Optional[int]]", lambda name: None)
    dict[str, typing.Optional[int]]
    >>> rebuilt("print('hello')", lambda name: None)
    print('hello')
    """
    unknown = Unknown(text[:MOST_TEXT])
    if len(text) > MOST_TEXT:
        return unknown
    try:
        annotation = _built(ast.parse(text.strip(), mode="eval").body, find)
    except Exception:  # of the parser, or of a class that takes no such parameters
        return unknown
    # a text, or what holds one, would be evaluated by typing.get_type_hints
    return unknown if isinstance(annotation, tuple | list | EllipsisType) else annotation


def _built(node: ast.expr, find: Callable[[str], type | None]) -> Any:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            return _built(ast.parse(node.value.strip(), mode="eval").body, find)
        if node.value is not None and node.value is not ...:
            raise ValueError("expected a class")
        return node.value
    if isinstance(node, ast.Name | ast.Attribute):
        return _named(ast.unparse(node), find)
    if isinstance(node, ast.Tuple):
        return tuple(_built(element, find) for element in node.elts)
    if isinstance(node, ast.List):
        return [_built(element, find) for element in node.elts]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        left, right = _built(node.left, find), _built(node.right, find)
        try:
            return operator.or_(left, right)
        except TypeError:
            return typing.Union[left, right]  # noqa: UP007
    if isinstance(node, ast.Subscript):
        return _built(node.value, find)[_built(node.slice, find)]
    raise ValueError("expected a class")


def _named(name: str, find: Callable[[str], type | None]) -> Any:
    own = find(name.removeprefix("__main__."))
    if own is not None:
        return own
    package, dot, path = name.partition(".")
    return _classes_by_name(len(sys.modules))[_SHORT.get(package, package) + dot + path]


@functools.lru_cache(maxsize=4)
def _classes_by_name(modules: int) -> Mapping[str, Any]:
    """Return the classes by their names, those of the packages that are imported so far."""
    classes: dict[str, Any] = {
        name: value for name, value in vars(builtins).items() if _is_class(value)
    }
    classes["NoneType"] = type(None)
    for name in _FORMS:
        classes[name] = classes[f"typing.{name}"] = getattr(typing, name)
    for name in collections.abc.__all__:
        classes[f"collections.abc.{name}"] = getattr(collections.abc, name)
    for kind in (*_OTHERS, *_of_packages()):
        classes.setdefault(kind.__name__, kind) if kind in _OTHERS else None
        classes[f"{kind.__module__}.{kind.__qualname__}"] = kind
    for path, kind in _paths():
        classes[path] = kind
    return classes


def _paths() -> Iterator[tuple[str, Any]]:
    """Yield the classes of packages by the names under which they are used."""
    for package, names in _PACKAGES.items():
        module = sys.modules.get(package)
        if module is None:
            continue
        for name in names or [name for name, value in vars(module).items() if _is_class(value)]:
            try:
                yield f"{package}.{name}", operator.attrgetter(name)(module)
            except AttributeError:  # such as a module of it that is not imported
                continue


def _of_packages() -> list[Any]:
    return [kind for _, kind in _paths()]


def _is_class(value: Any) -> bool:
    return isinstance(value, type) and not issubclass(value, BaseException)
