"""Objects of a student's class that derives from a number, a text, a list or a dict.

They are both: data, which a test compares as such, and objects with methods of the student's. So
the test gets an instance of a class made here, which derives from the same type of Python's own and
holds the data; what the student's class adds or defines anew is asked of the student's process. Its
comparisons are not: those are of the data, and nobody but the test says what it equals.
"""

import enum
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from gradebox.codec.encoding import BadValue, Decoder, DerivedType
from gradebox.line.operations import BINARY

BASES: tuple[type, ...] = (int, float, str, bytes, tuple, frozenset, list, dict, set)
MUTABLE = (list, dict, set)

_SILENT = frozenset(
    (
        *("__module__", "__doc__", "__dict__", "__weakref__", "__slots__", "__qualname__"),
        *("__firstlineno__", "__static_attributes__", "__annotations__", "__orig_bases__"),
        *("__parameters__", "__match_args__"),
    )
)
"""What a class may define without being more than its base."""

_ALONE = ("neg", "pos", "abs", "invert", "str", "repr", "len", "reversed")
_MORE = ("getitem", "setitem", "delitem", "contains", "format", "round")

FORWARDED: dict[str, str] = {
    **{f"__{name.rstrip('_')}__": name for name in (*BINARY, *_ALONE, *_MORE)},
    "__iter__": "iter",
}
"""The special methods that are the student's if its class defines them, with the operations."""

REFLECTED = {f"__r{name.rstrip('_')}__": name for name in BINARY}

ARITHMETIC = frozenset((*REFLECTED, *(f"__{name.rstrip('_')}__" for name in BINARY)))

METHODS = ("__missing__", "__call__")
"""Further special methods that are called by their names."""


@lru_cache(maxsize=1000)
def plan(kind: Any) -> tuple[type, tuple[str, ...], bool] | None:
    """Return what a class derives from, what it defines itself, and whether it is an enumeration.

    None for Python's own types, those that are sent as themselves, and those that add nothing.
    """
    if kind in BASES or kind is bool or kind.__module__ in ("numpy", "torch", "collections"):
        return None
    base = next((candidate for candidate in BASES if issubclass(kind, candidate)), None)
    if base is None:
        return None
    own: dict[str, Any] = {}
    for ancestor in reversed(kind.__mro__[: kind.__mro__.index(base)]):
        if ancestor.__module__ not in ("numpy", "torch", "builtins"):
            own |= vars(ancestor)
    if base is tuple and _is_record(kind):
        own = {name: value for name, value in own.items() if not _is_of_record(kind, name)}
    names = tuple(sorted(name for name in own if name not in _SILENT))
    return (base, names, isinstance(kind, enum.EnumMeta)) if names else None


def _is_record(kind: type) -> bool:
    return hasattr(kind, "_fields") or hasattr(kind, "n_sequence_fields")


def _is_of_record(kind: Any, name: str) -> bool:
    """Return whether every named tuple has an attribute."""
    fields = getattr(kind, "_fields", ())
    return name in fields or name in _OF_RECORDS or hasattr(kind, "n_sequence_fields")


_OF_RECORDS = frozenset(
    (
        *("_fields", "_field_defaults", "_make", "_replace", "_asdict", "__new__", "__repr__"),
        *("__getnewargs__", "__replace__", "__annotations_cache__", "__annotate_func__"),
    )
)


def is_derived(value: Any) -> bool:
    """Return whether a value stands for an object of such a class."""
    return type(type(value)) is DerivedType


@lru_cache(maxsize=1000)
def _derived_class(base: type, name: str, defined: tuple[str, ...]) -> Any:
    body: dict[str, Any] = {
        "__getattr__": _attribute,
        "__setattr__": _set_attribute,
        "__del__": _release,
    }
    for attribute in defined:
        if attribute in FORWARDED:
            body[attribute] = _operator(FORWARDED[attribute])
        elif attribute in REFLECTED:
            body[attribute] = _operator(REFLECTED[attribute], reflected=True)
        if attribute in body and base in (int, float) and attribute in ARITHMETIC:
            body[attribute] = _of_students(body[attribute], getattr(base, attribute, None))
        elif attribute in METHODS or (not attribute.startswith("_") and hasattr(base, attribute)):
            body[attribute] = _method(attribute)
    return DerivedType(name, (base,), body)


def _ask(self: Any, question: str, *value: Any) -> Any:
    return self._gradebox.peer.ask(question, value)


def _attribute(self: Any, name: str) -> Any:
    if name.startswith("__") or name == "_gradebox":
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
    return _ask(self, "getattr", self, name)


def _set_attribute(self: Any, name: str, value: Any) -> None:
    _ask(self, "setattr", self, name, value)


def _release(self: Any) -> None:
    handle = vars(self).get("_gradebox")
    if handle is not None and handle.kind != "singleton":
        handle.peer.forget(handle)


def _operator(name: str, *, reflected: bool = False) -> Callable[..., Any]:
    def operate(self: Any, *others: Any) -> Any:
        values = (*others, self) if reflected else (self, *others)
        return _ask(self, "operate", name, *values)

    return operate


def _of_students(ask: Callable[..., Any], plain: Any) -> Callable[..., Any]:
    """Return an operation that the student's class does with its own objects only.

    With a number of the test's it is done with the data: ``abs(answer - expected) < 1e-9`` would
    ask the student's code for the difference.
    """

    def operate(self: Any, other: Any) -> Any:
        if is_derived(other):
            return ask(self, other)
        return NotImplemented if plain is None else plain(self, other)

    return operate


def _method(name: str) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _ask(self, "method", self, name, args, kwargs)

    call.__name__ = name
    return call


def read(decoder: Decoder, node: list[Any], depth: int, make: Callable[..., Any]) -> Any:
    """Return what stands for an object of a student's class that derives from data.

    Parameters
    ----------
    make : callable
        Returns the handle of a number with a name, and whether it is the only one.
    """
    if len(node) != 6:
        raise BadValue("expected the data, the number and the class of an object")
    _, inner, number, name, defined, single = node
    if type(name) is not str or not name.isidentifier() or len(name) > 200:
        raise BadValue("expected the name of a class")
    if type(defined) is not list or len(defined) > 1000:
        raise BadValue("expected the names that a class defines")
    if not all(
        type(attribute) is str and attribute.isidentifier() and len(attribute) <= 200
        for attribute in defined
    ):
        raise BadValue("expected the names that a class defines")
    if type(single) is not bool:
        raise BadValue("expected whether an object is the only one")
    if type(inner) is list and inner[:1] in (["twin"], ["held"]):
        raise BadValue("expected the data of an object")
    position = len(decoder.numbered)
    data = decoder.decode(inner, depth + 1)
    base: Any = type(data)
    if not (base in BASES or (issubclass(base, tuple) and hasattr(base, "_fields"))):
        raise BadValue(f"expected data of an object, got a {base.__name__}")
    handle = make(number, name, single)
    kind = _derived_class(base, name, tuple(defined))
    instance = (
        base._make.__func__(kind, data) if hasattr(base, "_make") else base.__new__(kind, data)
    )
    if base in MUTABLE:
        base.__init__(instance, data)
        if (
            decoder.numbered[position : position + 1] != [data]
            or decoder.numbered[position] is not data
        ):
            raise BadValue("expected the data of an object")
        decoder.numbered[position] = instance
    object.__setattr__(instance, "_gradebox", handle)
    return instance
