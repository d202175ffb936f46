"""Classes of the student's as classes of the checker: ``type(x) is Rectangle`` as in one process.

A class of the student's has a class here that stands for it, and objects of the student's are
objects of that. It holds no code of the student's, only methods of :mod:`gradebox.line.proxy` that
ask the student's process, for those special methods that its process says it has.

What such a class claims about itself gains nothing. No object of the student's that is not plain
data may be an object of ``int``, ``list`` or another class of data here, since a test would then
read it without asking: :data:`PYTHONS_OWN` are all of Python's classes that one may belong to, and
none of them is data. A class that inherits from ``list`` is a class that inherits from ``list``
here too, but has no objects: those come as plain lists, or as objects of a class beside it.
"""

import abc
import builtins
import collections.abc
import dataclasses
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gradebox.codec.encoding import BadValue, DerivedType
from gradebox.line import inspection
from gradebox.line.special_methods import EVERY, NONE, names_of

MOST_BASES = 10
"""So many base classes a class may have, and so deep."""

MOST_FIELDS = 1000
"""So many fields a dataclass may have."""

PYTHONS_OWN: Mapping[str, type] = {
    "function": types.FunctionType,
    "builtin_function_or_method": types.BuiltinFunctionType,
    "method": types.MethodType,
    "generator": types.GeneratorType,
    "coroutine": types.CoroutineType,
    "async_generator": types.AsyncGeneratorType,
    **{
        kind.__name__: kind
        for kind in (property, staticmethod, classmethod, map, filter, zip, enumerate, reversed)
    },
}
"""Classes of Python's own whose objects are no data, by the names of their types."""

ABSTRACT: Mapping[str, type] = {
    "abc.ABC": abc.ABC,
    **{
        f"collections.abc.{name}": getattr(collections.abc, name)
        for name in collections.abc.__all__
    },
}
"""Abstract classes of the library that a class of the student's may inherit from, by name."""


NAMED: Mapping[str, type] = {**PYTHONS_OWN, **ABSTRACT}
"""All classes that travel by their name."""

# by identity: a metaclass of a student's may say of its classes that they equal any other
_NAMES = {id(kind): name for name, kind in NAMED.items()}


def name_of(kind: Any) -> str | None:
    """Return the name by which a class travels, if it is one of :data:`NAMED`."""
    return _NAMES.get(id(kind))


class Standing(type):
    """The kind of classes that stand for something of the student's."""

    def __instancecheck__(cls, value: Any) -> bool:
        if issubclass(type(value), cls):
            return True
        # a class of the student's is a stand-in as well, but cannot inherit from Proxy
        return isinstance(type(value), type) and cls._all_kinds and _is_class(type(value))

    _all_kinds = False


def _is_class(kind: type) -> bool:
    return StudentClass in type.__dict__["__mro__"].__get__(kind)


class StudentClass(Standing):
    """The kind of classes that stand for classes of the student's."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Refuse: the methods of such a class would be in two processes."""
        raise TypeError("a class of a test cannot inherit from a class of the student's")

    def _ask(cls, question: str, *values: Any) -> Any:
        return cls._gradebox.peer.ask(question, values)

    def __getattribute__(cls, name: str) -> Any:
        if name in _DESCRIBED:
            return _DESCRIBED[name](cls)
        if name in _REMOTE_NAMES:
            answer = cls._ask("special", cls, name)
            return answer[0] if type(answer) is tuple and answer else getattr(object, name)
        if name.startswith("__") or name in _OWN_NAMES:
            return type.__getattribute__(cls, name)
        return cls._ask("getattr", cls, name)

    def __setattr__(cls, name: str, value: Any) -> None:
        if name.startswith("_abc_") or name == "__abstractmethods__":
            raise AttributeError(name)
        cls._ask("setattr", cls, name, value)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Have the student's process make an object."""
        return cls._ask("call", cls, args, kwargs)

    def __instancecheck__(cls, value: Any) -> bool:
        if type.__subclasscheck__(cls, type(value)):
            return True
        return cls._says("isinstance", value)

    def __subclasscheck__(cls, value: Any) -> bool:
        if type.__subclasscheck__(cls, value):
            return True
        return cls._says("issubclass", value)

    def _says(cls, question: str, value: Any) -> bool:
        """Return what the student's process says, which it may of what is the student's alone."""
        kinds = Standing | DerivedType
        if not isinstance(type(value), kinds) and not isinstance(value, Standing):
            return False
        handle = getattr(value, "_gradebox", None)
        if handle is None or handle.peer is not cls._gradebox.peer:
            return False
        return cls._ask("operate", question, value, cls) is True

    def __dir__(cls) -> list[str]:
        return inspection.names_of(cls)

    def __repr__(cls) -> str:
        return f"<class '__main__.{cls.__name__}'>"


class _Iterable(StudentClass):
    """The kind of classes that can be iterated over, such as those of ``enum``."""

    def __iter__(cls) -> Iterator[Any]:
        iterator = cls._ask("operate", "iter", cls)
        while item := cls._ask("next", iterator):
            yield item[0]

    def __reversed__(cls) -> Any:
        return cls._ask("operate", "reversed", cls)

    def __len__(cls) -> int:
        return cls._ask("operate", "len", cls)

    def __getitem__(cls, key: Any) -> Any:
        return cls._ask("operate", "getitem", cls, key)

    def __contains__(cls, item: Any) -> bool:
        return cls._ask("operate", "contains", cls, item) is True


_DESCRIBED: Mapping[str, Callable[[Any], Any]] = {
    "_gradebox": lambda cls: type.__getattribute__(cls, "_gradebox_class"),
    "__bases__": lambda cls: type.__getattribute__(cls, "_gradebox_bases") or (object,),
    "__mro__": lambda cls: tuple(kind for kind in _mro(cls) if type(kind) is not Standing),
    "__module__": inspection.ATTRIBUTES["__module__"],
    "__qualname__": lambda cls: inspection.described(cls)["qualname"],
    "__doc__": inspection.documentation_of,
    "__annotations__": inspection.annotations_of,
    "__signature__": inspection.signature_of,
    "__dict__": inspection.attributes_of_class,
    "__abstractmethods__": inspection.abstract_of,
    "__flags__": inspection.flags_of,
}
"""What is told of a class instead of what the class that stands for it has."""

_OWN_NAMES = frozenset(("_ask", "_says", "_all_kinds", "mro"))

_REMOTE_NAMES = frozenset(
    (
        *("__init__", "__new__", "__post_init__", "__init_subclass__", "__class_getitem__"),
        *("__repr__", "__str__", "__format__", "__hash__", "__eq__", "__ne__"),
        *("__lt__", "__le__", "__gt__", "__ge__", "__del__", "__missing__"),
        *("__getattr__", "__getattribute__", "__setattr__", "__delattr__", "__set_name__"),
        *("__slots__", "__match_args__", "__members__"),
    )
)
"""What every class has, or what the class that stands for another one has by itself."""


def _mro(kind: type) -> tuple[type, ...]:
    return type.__dict__["__mro__"].__get__(kind)


def student_class(
    handle: Any,
    base: type,
    methods: Mapping[str, Callable[..., Any]],
    documentation: Any,
) -> Any:
    """Return a class that stands for a class of the student's.

    Parameters
    ----------
    handle : Handle
        The handle of the student's class, with what :func:`read_class` returned.
    base : type
        The class of all objects of the student's.
    methods : mapping
        The special methods that such objects may have.
    documentation : property
        The documentation of its objects.
    """
    bases, abilities, iterates, fields = handle.of
    able = frozenset(names_of(abilities))
    space: dict[str, Any] = {name: method for name, method in methods.items() if name in able}
    space |= {"__slots__": (), "__module__": "__main__", "__doc__": documentation}
    space |= {"_gradebox_class": handle, "_gradebox_bases": tuple(bases)}
    if fields is not None:
        space["__dataclass_fields__"] = fields
    if "__hash__" not in able:
        space["__hash__"] = None
    kinds = [kind for kind in bases if isinstance(kind, StudentClass)]
    data = [kind for kind in bases if vars(builtins).get(kind.__name__) is kind]
    data = [kind for kind in data if kind not in (object, type)]
    metaclass = _Iterable if iterates else StudentClass
    stand_in: Any = None
    candidates: tuple[tuple[Any, ...], ...] = (
        (*kinds, *data) or (base,),
        (*kinds,) or (base,),
        (base,),
    )
    for candidate in candidates:
        try:
            stand_in = type.__new__(metaclass, handle.name, candidate, dict(space))
            break
        except TypeError:  # no order of the bases, or their layouts do not fit
            continue
    for kind in bases:
        if kind in ABSTRACT.values():
            kind.register(stand_in)
    return stand_in


def fields_of(kind: Any) -> list[list[Any]] | None:
    """Return the fields of a dataclass, and whether they are given when it is made."""
    try:
        return [[field.name, bool(field.init)] for field in dataclasses.fields(kind)][:MOST_FIELDS]
    except Exception:  # it is none, or only says that it is one
        return None


def _fields(nodes: Any) -> Any:
    if type(nodes) is not list or len(nodes) > MOST_FIELDS:
        raise BadValue("expected the fields of a dataclass")
    for node in nodes:
        if type(node) is not list or [type(part) for part in node] != [str, bool]:
            raise BadValue("expected the name of a field")
    try:
        dataclass: Any = dataclasses.make_dataclass(
            "_", [(name, object, dataclasses.field(init=init)) for name, init in nodes]
        )
    except TypeError as error:
        raise BadValue(f"expected the names of fields: {error}") from None
    return dataclass.__dataclass_fields__


def read_class(node: Sequence[Any], read: Callable[[Any], Any]) -> tuple[Any, int, bool, Any]:
    """Return what a node says of a class: bases, abilities, whether it is iterated over, fields.

    Parameters
    ----------
    node : list
        The nodes of its bases and three fields more.
    read : callable
        Returns the class of a node.
    """
    nodes, abilities, iterates, fields = node
    if type(nodes) is not list or len(nodes) > MOST_BASES:
        raise BadValue("expected the base classes of a class")
    if type(abilities) is not int or not NONE <= abilities <= EVERY or type(iterates) is not bool:
        raise BadValue("expected what the objects of a class can do")
    bases = [read(base) for base in nodes]
    if not all(isinstance(base, type) for base in bases):
        raise BadValue("expected classes")
    return tuple(bases), abilities, iterates, None if fields is None else _fields(fields)
