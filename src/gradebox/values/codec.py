"""Write values as bytes and read them again, by copy; nothing is unpickled.

A *value* is None, a bool, a number, a text, bytes, a list, tuple or dict of values, or one of the
:data:`KINDS`. An instance of a class that derives from one of these crosses as that one: its
contents are read by the built-in's own methods. What can only be gone through once crosses as an
iterator. A member of an Enum and a named tuple cross with the name of their class, and are of that
class where the reader knows it by itself: no class is made or changed by what arrives.

Functions cross as handles: where they arrive, a call goes back to the process that has them. From
the tests a function of a module crosses by its name instead; in the other direction that is closed,
since a student could name a function that holds an answer.
"""

import datetime
import sys
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from decimal import Decimal
from enum import Enum, EnumMeta
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from itertools import chain, islice
from math import prod
from operator import attrgetter
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
from numpy import random  # here, or each notebook would load it anew

from gradebox.values.channel import BYTES

DEPTH = 100  # of nested containers
ITEMS = 1_000_000  # of a message, in all its containers together
Tree = Any  # a value as JSON has it: text, number, bool or None, or a list with a tag and more


class NotAValue(Exception):
    """Something cannot cross; the text says what it is."""


class Damaged(Exception):
    """What arrived is no message of values."""


class Kind(NamedTuple):
    """A class of values, and the functions from one to simpler values and back."""

    of: Any
    plain: Callable[[Any], Any]
    make: Callable[[Any], Any]


def _starred(function: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda parts: function(*parts)


def _made_of(kind: Any, *attributes: str) -> Kind:
    return Kind(kind, attrgetter(*attributes), _starred(kind))


def _of_clock(kind: Any) -> Kind:
    return Kind(
        kind,
        lambda v: (v.replace(tzinfo=None).isoformat(), v.tzinfo, v.fold),
        lambda p: kind.fromisoformat(p[0]).replace(tzinfo=p[1], fold=p[2]),
    )


# --- Arrays, random generators and tensors ------------------------------------------------------

_BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_TENSORS = (
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)


@lru_cache(maxsize=256)
def _dtype(text: str) -> np.dtype[Any]:
    kind = np.dtype(str(text)) if len(text) < 40 else None
    if kind is None or kind.kind not in "biufcSUMm" or kind.names or kind.str != text:
        raise Damaged("no type of an array")
    return kind


def _of_dtype(kind: np.dtype[Any]) -> str:
    if kind.kind not in "biufcSUMm":  # no objects, which could be anything, and no records
        raise NotAValue(f"an array of {kind}")
    return kind.str


def _require_size(shape: Any, itemsize: int, content: Any) -> None:
    is_shape = type(shape) is tuple and len(shape) <= 32
    is_shape = is_shape and all(type(size) is int and 0 <= size <= BYTES for size in shape)
    count = prod(shape) if is_shape else -1
    if not 0 <= count <= BYTES or count * itemsize != len(content):  # items may have no bytes
        raise Damaged("another size")


def _of_array(value: Any) -> tuple[Any, ...]:
    if value.dtype.kind == "O":
        return "", value.shape, [*value.flat]
    dtype = _of_dtype(value.dtype)
    if value.nbytes > BYTES:
        raise NotAValue(f"an array of {value.nbytes >> 20} MiB")
    return dtype, value.shape, value.tobytes()


def _array(dtype: Any, shape: Any, content: Any) -> np.ndarray:
    if dtype == "":
        _require_size(shape, 1, content)
        return np.fromiter(content, object, len(content)).reshape(shape)
    kind = _dtype(dtype)
    _require_size(shape, kind.itemsize, content)
    # frombuffer refuses items of 0 bytes; and zeros would give each empty text a letter, though
    # whoever sends millions of them sends nothing
    if not kind.itemsize:
        return np.ndarray(shape, kind)
    # a copy: a test may change it, and bytes cannot be
    array = np.frombuffer(content, kind).reshape(shape).copy()
    # a number that is compared with it is rounded to its precision: infinite from 65520 on
    return array.astype(float) if kind.char == "e" and np.isinf(array).any() else array


def _scalar(plain: Any) -> Any:
    value = _array(plain[0], (), plain[1])[()]
    # so is one that is compared with these: there 2049 is 2048
    is_coarse = value.dtype.char == "e" or (value.dtype.kind == "f" and np.isinf(value))
    return np.float64(value) if is_coarse else value


def _of_random(value: Any) -> dict[str, Any]:
    is_old = type(value) is random.RandomState
    state = value.get_state(legacy=False) if is_old else value.bit_generator.state
    if type(state) is not dict or state.get("bit_generator") not in _BIT_GENERATORS:
        raise NotAValue("a random generator of a class of its own")
    return state


def _bits(state: Any) -> Any:
    if state["bit_generator"] not in _BIT_GENERATORS:
        raise Damaged("no bit generator")
    is_twister = state["bit_generator"] == "MT19937"
    place = state["state"]["pos"] if is_twister else state.get("buffer_pos", 0)
    if not 0 <= place <= (624 if is_twister else 4):
        raise Damaged("a generator that reads beyond its state")
    bits = getattr(random, state["bit_generator"])(0)
    bits.state = state
    return bits


def _set(generator: Any, method: str, state: Any) -> Any:
    getattr(generator, method)(state)
    return generator


def _of_tensor(value: Any) -> tuple[Any, ...]:
    torch, name = sys.modules["torch"], str(value.dtype).removeprefix("torch.")
    if value.layout is not torch.strided or value.device.type != "cpu" or name not in _TENSORS:
        raise NotAValue(f"a tensor ({value.layout}, {value.device}, {value.dtype})")
    plain = value.detach().resolve_conj().resolve_neg().contiguous()
    content = plain.reshape(-1).view(torch.uint8).numpy().tobytes()
    return name, tuple(plain.shape), value.requires_grad, content


def _tensor(name: Any, shape: Any, learns: Any, content: Any) -> Any:
    dtype = _torch_dtype(name)
    _require_size(shape, dtype.itemsize, content)
    tensor = _bytes(content).view(dtype).reshape(shape).clone()
    if name == "float16" and tensor.isinf().any():  # as in arrays
        tensor = tensor.double()
    return tensor.requires_grad_() if learns is True else tensor


def _parameter(*parts: Any) -> Any:
    tensor = _tensor(*parts).detach()
    return import_module("torch").nn.Parameter(tensor, requires_grad=parts[2] is True)


def _bytes(content: Any) -> Any:
    return import_module("torch").from_numpy(np.frombuffer(bytearray(content), np.uint8))


def _torch_dtype(name: Any) -> Any:
    if name not in _TENSORS:
        raise Damaged("no type of a tensor")
    return getattr(import_module("torch"), name)


def _namespace(attributes: Any) -> SimpleNamespace:
    # NumPy asks an object itself for `__array__` and `mean`, tests for `equal`, and both call them
    if own := [n for n, value in attributes.items() if n.startswith("__") or callable(value)]:
        raise NotAValue(f"a SimpleNamespace with {own[0]}")
    return SimpleNamespace(**attributes)


# --- The table ----------------------------------------------------------------------------------

_FACTORIES = {k.__name__: k for k in (int, float, complex, str, bool, list, tuple, dict, set)}
_NAMED: dict[Any, str] = {kind: name for name, kind in _FACTORIES.items()}
_PASSING: tuple[Any, ...] = (  # each can be gone through once
    *(iter([]), iter(()), iter({}), iter(set()), iter(""), iter(range(0)), reversed([])),
    *((number for number in range(0)), map(abs, ()), zip(), filter(None, ()), enumerate("")),
)
_ONCE = frozenset(map(type, _PASSING))

KINDS: dict[str, Kind] = {  # by the tag of a value that is made of simpler ones
    "int": Kind(None, hex, lambda plain: int(plain, 16)),
    "complex": _made_of(complex, "real", "imag"),
    "bytearray": Kind(bytearray, bytes, bytearray),
    "range": _made_of(range, "start", "stop", "step"),
    "slice": _made_of(slice, "start", "stop", "step"),
    "ellipsis": Kind(type(...), lambda v: None, lambda plain: ...),
    "set": Kind(set, lambda v: [*set.__iter__(v)], set),
    "frozenset": Kind(frozenset, lambda v: [*frozenset.__iter__(v)], frozenset),
    "keys": Kind(type({}.keys()), list, lambda plain: dict.fromkeys(plain).keys()),
    "values": Kind(type({}.values()), list, lambda plain: dict(enumerate(plain)).values()),
    "items": Kind(type({}.items()), dict, lambda plain: plain.items()),
    "iterator": Kind(None, iter, list.__iter__),  # of nothing else: a text has kinds of its own
    "Counter": Kind(Counter, dict, Counter),
    "OrderedDict": Kind(OrderedDict, dict, OrderedDict),
    "defaultdict": Kind(
        defaultdict,
        lambda v: (_NAMED.get(v.default_factory, v.default_factory), dict(v)),
        lambda plain: defaultdict(_FACTORIES.get(plain[0], plain[0]), plain[1]),
    ),
    "deque": Kind(deque, lambda v: ([*v], v.maxlen), _starred(deque)),
    "SimpleNamespace": Kind(SimpleNamespace, vars, _namespace),
    "Fraction": _made_of(Fraction, "numerator", "denominator"),
    "Decimal": Kind(Decimal, str, Decimal),
    "Path": Kind(type(Path()), str, Path),
    "date": Kind(datetime.date, str, datetime.date.fromisoformat),
    "datetime": _of_clock(datetime.datetime),
    "time": _of_clock(datetime.time),
    "timedelta": _made_of(datetime.timedelta, "days", "seconds", "microseconds"),
    "timezone": Kind(datetime.timezone, lambda v: v.__getinitargs__(), _starred(datetime.timezone)),
    "ZoneInfo": Kind(ZoneInfo, str, ZoneInfo),
    "dtype": Kind(np.dtype, _of_dtype, _dtype),
    "array": Kind(np.ndarray, _of_array, _starred(_array)),
    "scalar": Kind(
        np.generic,
        lambda v: (_of_dtype(np.generic.__dict__["dtype"].__get__(v)), np.generic.tobytes(v)),
        _scalar,
    ),
    "Random": Kind(Random, Random.getstate, lambda plain: _set(Random(), "setstate", plain)),
    "RandomState": Kind(  # its state has the second of two normal numbers, too
        random.RandomState,
        _of_random,
        lambda plain: _set(random.RandomState(_bits(plain)), "set_state", plain),
    ),
    "Generator": Kind(random.Generator, _of_random, lambda plain: random.Generator(_bits(plain))),
    # their classes are there when torch is
    "Tensor": Kind(None, _of_tensor, _starred(_tensor)),
    "Parameter": Kind(None, _of_tensor, _starred(_parameter)),
    "torch.dtype": Kind(None, lambda v: str(v).removeprefix("torch."), _torch_dtype),
    "torch.Generator": Kind(
        None,
        lambda v: v.get_state().numpy().tobytes(),
        lambda plain: _set(import_module("torch").Generator(), "set_state", _bytes(plain)),
    ),
}

_DERIVABLE: tuple[tuple[type, Callable[[Any], Any]], ...] = (  # what derived instances cross as
    (np.ndarray, lambda v: np.ndarray.view(v, np.ndarray)),
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (list, lambda v: [*list.__iter__(v)]),
    (tuple, lambda v: (*tuple.__iter__(v),)),
    (set, lambda v: {*set.__iter__(v)}),
    (frozenset, lambda v: frozenset(frozenset.__iter__(v))),
    (dict, lambda v: dict(dict.items(v))),
)

_TAGS: dict[Any, str] = {kind.of: tag for tag, kind in KINDS.items() if kind.of}


def _tag(kind: Any) -> str | None:
    if kind not in _TAGS and (torch := sys.modules.get("torch")) is not None:
        _TAGS.update({torch.Tensor: "Tensor", torch.nn.Parameter: "Parameter"})
        _TAGS.update({torch.dtype: "torch.dtype", torch.Generator: "torch.Generator"})
    if issubclass(kind, np.generic):
        return "scalar"
    return "dtype" if issubclass(kind, np.dtype) else _TAGS.get(kind)


# --- Writing and reading ------------------------------------------------------------------------


class Writer:
    """Writes the values of one message; ``functions`` returns the tree of a function, if given."""

    def __init__(self, functions: Callable[[Any, "Writer"], Tree] | None = None) -> None:
        self.parts: list[Any] = []
        self._functions, self._items, self._bytes = functions, 0, 0

    def write(self, value: Any, depth: int = 0) -> Tree:
        """Return the tree of a value, or raise :class:`NotAValue`; bytes go to :attr:`parts`."""
        kind = type(value)
        if value is None or kind in (bool, float):
            return value
        if kind is int and -(2**63) <= value < 2**63:
            return value
        if kind in (str, bytes, int):
            self._bytes += value.bit_length() // 8 if kind is int else len(value)
            if self._bytes > BYTES:
                raise NotAValue(f"more than {BYTES >> 20} MiB at once")
            if kind is int:  # JSON has decimal digits, of which Python refuses more than 4300
                return ["int", hex(value)]
            if kind is str:
                return value
            self.parts.append(value)
            return ["bytes", len(self.parts) - 1]
        if depth + (kind in _ONCE) >= DEPTH:  # an iterator crosses as one of a list
            raise NotAValue(f"containers nested more than {DEPTH} deep")
        if kind in (list, tuple):
            return self._sequence(kind.__name__, value, depth)
        if kind is dict:
            return self._sequence("dict", chain.from_iterable(value.items()), depth)
        if kind in _ONCE:
            return ["iterator", self._sequence("list", islice(value, ITEMS), depth + 1)]
        if (tag := _tag(kind)) is not None:
            return [tag, self.write(KINDS[tag].plain(value), depth + 1)]
        if self._functions is not None and callable(value) and not isinstance(value, Enum):
            return self._functions(value, self)
        plain = next((change for base, change in _DERIVABLE if issubclass(kind, base)), None)
        # with the name of its class it is one level more to the reader
        inner = depth + (isinstance(value, Enum) or hasattr(kind, "_fields"))
        tree = None if plain is None else self.write(plain(value), inner)
        names = [kind.__module__, kind.__qualname__]
        if isinstance(value, Enum) and kind.__members__.get(value.name) is value:
            return ["member", *names, value.name, tree]
        if plain is None:
            raise NotAValue(described(kind.__name__))
        return ["named", *names, tree] if hasattr(kind, "_fields") else tree

    def _sequence(self, tag: str, values: Any, depth: int) -> Tree:
        if type(values) in (list, tuple) and len(values) > 16 and set(map(type, values)) == {float}:
            # a list of a million numbers is one array here
            self._items += len(values)
            return [f"{tag} of d", self.write(array("d", values).tobytes())]
        written = [tag]
        for value in values:
            self._items += 1
            if self._items >= ITEMS:
                raise NotAValue(f"more than {ITEMS} items at once")
            written.append(self.write(value, depth + 1))
        return written


def described(name: str) -> str:
    """Return the name of a class with its article."""
    return f"{'an' if str(name)[:1].lower() in 'aeiou' else 'a'} {str(name)[:80]}"


class Reader:
    """Reads the values of one message: nothing but values within the limits, or :class:`Damaged`.

    ``functions`` returns a function for a tree that :class:`Writer` was given for one, and
    ``classes`` what the reader's process has by itself under the names of a module and in it.
    """

    def __init__(
        self,
        parts: list[Any],
        functions: Callable[[list[Any], "Reader"], Any] | None = None,
        classes: Callable[[str, str], Any] = lambda module, name: None,
    ) -> None:
        self._parts, self._functions, self._classes, self._items = parts, functions, classes, 0

    def read(self, tree: Tree, depth: int = 0) -> Any:
        """Return the value of a tree; one of a class that is not known is :class:`NotAValue`."""
        if type(tree) in (type(None), bool, int, float, str):
            return tree
        if type(tree) is not list or depth > DEPTH or not tree or type(tree[0]) is not str:
            raise Damaged("no tree of a value")
        self._count(len(tree) - 1)
        try:
            return self._read(tree[0], tree[1:], depth + 1)
        except (Damaged, NotAValue):
            raise
        except Exception as error:  # numpy, torch or Python refuse what a hostile writer wrote
            raise Damaged(f"no {tree[0][:40]}: {type(error).__name__}: {error}"[:300]) from error

    def _read(self, tag: str, rest: list[Any], depth: int) -> Any:
        if tag in ("list", "tuple", "dict"):
            items = [self.read(item, depth) for item in rest]
            if tag == "dict":
                return dict(zip(items[::2], items[1::2], strict=True))
            return items if tag == "list" else tuple(items)
        if tag in ("list of d", "tuple of d"):
            numbers = array("d", self.read(rest[0], depth)).tolist()
            self._count(len(numbers))
            return numbers if tag == "list of d" else tuple(numbers)
        if tag == "bytes":
            if type(rest[0]) is not int or rest[0] < 0:
                raise Damaged("no such part")
            return self._parts[rest[0]]
        if tag == "member":
            module, name, member, tree = rest
            kind, plain = self._classes(module, name), self.read(tree, depth)
            if isinstance(kind, EnumMeta):
                return kind.__members__[member]
            if plain is None:
                raise NotAValue(described(name))
            return plain
        if tag == "named":
            kind, items = self._classes(*rest[:2]), self.read(rest[2], depth)
            is_known = isinstance(kind, type) and issubclass(kind, tuple)
            is_known = is_known and not any(map(callable, items))
            if is_known and len(getattr(kind, "_fields", ())) == len(items):
                return tuple.__new__(kind, items)
            return items
        if tag in KINDS:
            (plain,) = rest
            return KINDS[tag].make(self.read(plain, depth))
        if self._functions is not None:
            return self._functions([tag, *rest], self)
        raise Damaged(f"no value: {tag[:40]}")

    def _count(self, items: int) -> None:
        self._items += items
        if self._items > ITEMS:
            raise Damaged("too many items")
