"""Write values as bytes and read them again, by copy; nothing is unpickled.

A *value* is ``None``, a bool, a number, a text, bytes, a range, a list, tuple, dict or set of
values, a NumPy array or scalar, a tensor of torch without its graph, or a random generator as its
state. An instance of a class that derives from one of these crosses as that one: its contents are
read by the built-in's own methods, so that no method of a student's class is called.
What can only be gone through once, such as a generator, is gone through and crosses as an iterator.

Functions cross as handles: where they arrive, a call goes back to the process that has them. From
the tests a function of a module crosses by its name instead; see :class:`Writer`. That way is
closed in the other direction, since a student could name a function that holds an answer.

Whatever the reader is given, it makes nothing but values within the limits below, or raises
:class:`Damaged`.
"""

import re
import sys
from array import array
from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
from numpy import random  # here, or each notebook would load it anew

from gradebox.values.channel import BYTES

DEPTH = 100
"""Containers are nested no deeper."""
ITEMS = 1_000_000
"""No message has more items in all its containers together."""

_KINDS = "biufcSUMm"  # no objects, which could be anything, and no records
_DTYPE = re.compile(r"[<>|=][biufcSUMm]\d{1,6}(?:\[\d{0,4}(?:Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?")
_BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_TENSORS = frozenset(
    (
        *("bool", "uint8", "int8", "int16", "int32", "int64"),
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    )
)
_PASSING: tuple[Any, ...] = (
    *(iter([]), iter(()), iter({}), iter(set()), iter(""), iter(range(0)), reversed([])),
    *((number for number in range(0)), map(abs, ()), zip(), filter(None, ()), enumerate("")),
)
_ONCE = frozenset(map(type, _PASSING))
"""What is gone through once."""
_SCALAR_DTYPE: Any = vars(np.generic)["dtype"]
_CLASS_NAME: Any = vars(type)["__name__"]
"""The built-ins' own, whatever a derived class calls so."""
_VIEWS = {type({}.keys()): "keys", type({}.values()): "values", type({}.items()): "items"}

Tree = Any
"""A value as JSON has it: a plain text, number, bool or None, or a list with a tag and more."""


class NotAValue(Exception):
    """Something cannot cross; the text says what it is."""


class Damaged(Exception):
    """What arrived is no message of values."""


class Writer:
    """Writes the values of one message.

    Parameters
    ----------
    functions : callable, optional
        Returns the tree of a function: a handle, or a name that the reader may resolve. Without it
        functions do not cross.
    """

    def __init__(self, functions: Callable[[Any, "Writer"], Tree] | None = None) -> None:
        self.parts: list[Any] = []
        self._functions, self._items, self._bytes = functions, 0, 0

    def write(self, value: Any, depth: int = 0) -> Tree:
        """Return the tree of a value; the bytes of arrays are added to :attr:`parts`.

        Raises
        ------
        NotAValue
            If it is none, or there is too much of it.
        """
        kind = type(value)
        if value is None or kind is bool or kind is float:
            return value
        if kind is str:
            return self._text(value)
        # JSON has decimal digits, of which Python refuses more than 4300; hexadecimal has no limit
        if kind is int:
            return value if -(2**63) <= value < 2**63 else ["int", hex(self._counted(value))]
        if kind is list or kind is tuple or kind is set or kind is frozenset:
            return self._sequence(kind.__name__, value, depth)
        if kind is dict:
            return self._dict(value, depth)
        if issubclass(kind, np.ndarray):
            return self._array(np.ndarray.view(value, np.ndarray), depth)
        if issubclass(kind, np.generic):
            dtype: Any = _SCALAR_DTYPE.__get__(value)
            return ["scalar", dtype.str, self._part(np.generic.tobytes(value))]
        return self._other(value, kind, depth)

    def _other(self, value: Any, kind: type, depth: int) -> Tree:
        if kind is complex:
            return ["complex", value.real, value.imag]
        if kind is bytes or kind is bytearray:
            return [kind.__name__, self._part(bytes(value))]
        if kind is range:
            return ["range", *map(self.write, (value.start, value.stop, value.step))]
        if value is Ellipsis:
            return ["ellipsis"]
        if kind is slice:
            parts = (value.start, value.stop, value.step)
            return ["slice", *(self.write(part, depth + 1) for part in parts)]
        if kind is random.Generator:
            return self._generator(value)
        if (torch := sys.modules.get("torch")) is not None:
            if kind is torch.Tensor or kind is torch.nn.Parameter:
                return self._tensor(value)
            if kind is torch.Generator:
                return ["torch.Generator", self._part(value.get_state().numpy().tobytes())]
            if kind is torch.dtype:
                return ["torch.dtype", str(value).removeprefix("torch.")]
        if issubclass(kind, np.dtype) and value.kind in _KINDS:
            return ["dtype", value.str]
        if kind in _VIEWS:
            return self._sequence(_VIEWS[kind], value, depth)
        if kind in _ONCE:
            return self._sequence("iterator", islice(value, ITEMS), depth)
        if self._functions is not None and callable(value):
            return self._functions(value, self)
        return self._derived(value, kind, depth)

    def _derived(self, value: Any, kind: type, depth: int) -> Tree:
        """Return the tree of an instance of a class that derives from a built-in one."""
        if issubclass(kind, str):
            return self._text(str.__str__(value))
        if issubclass(kind, int):
            return self.write(int.__int__(value))
        if issubclass(kind, float):
            return float.__float__(value)
        for base in (list, tuple, set, frozenset):
            if issubclass(kind, base):
                return self._sequence(base.__name__, base.__iter__(value), depth)
        if issubclass(kind, dict):
            return self._dict(dict(dict.items(value)), depth)
        raise NotAValue(_described(value))

    def _text(self, text: str) -> str:
        self._bytes += len(text)
        if self._bytes > BYTES:
            raise NotAValue(f"more than {BYTES >> 20} MiB at once")
        return text

    def _counted(self, number: int) -> int:
        self._bytes += number.bit_length() // 8
        if self._bytes > BYTES:
            raise NotAValue(f"more than {BYTES >> 20} MiB at once")
        return number

    def _sequence(self, tag: str, values: Any, depth: int) -> Tree:
        if depth >= DEPTH:
            raise NotAValue(f"containers nested more than {DEPTH} deep")
        if type(values) in (list, tuple) and len(values) > 16:
            kinds = set(map(type, values))
            if kinds == {float}:  # a list of a million numbers is one array here
                self._items += len(values)
                return [f"{tag} of d", self._part(array("d", values).tobytes())]
        if tag == "items":
            values = map(list, values)
        written = [tag]
        for value in values:
            self._items += 1
            if self._items >= ITEMS:
                raise NotAValue(f"more than {ITEMS} items at once")
            written.append(self.write(value, depth + 1))
        return written

    def _dict(self, value: dict[Any, Any], depth: int) -> Tree:
        pairs = (item for pair in value.items() for item in pair)
        return self._sequence("dict", pairs, depth)

    def _array(self, value: Any, depth: int) -> Tree:
        if value.dtype.kind == "O":
            return ["objects", list(value.shape), self._sequence("list", value.flat, depth)]
        if value.dtype.kind not in _KINDS:
            raise NotAValue(f"an array of {value.dtype}")
        if value.nbytes > BYTES:
            raise NotAValue(f"an array of {value.nbytes >> 20} MiB")
        return ["array", value.dtype.str, list(value.shape), self._part(value.tobytes())]

    def _generator(self, value: random.Generator) -> Tree:
        state = value.bit_generator.state
        if type(state) is not dict or state.get("bit_generator") not in _BIT_GENERATORS:
            raise NotAValue("a random generator of a class of its own")
        return ["Generator", self.write(state)]

    def _tensor(self, value: Any) -> Tree:
        torch = sys.modules["torch"]
        name = str(value.dtype).removeprefix("torch.")
        if value.layout is not torch.strided or value.device.type != "cpu" or name not in _TENSORS:
            raise NotAValue(f"a tensor ({value.layout}, {value.device}, {value.dtype})")
        plain = value.detach().contiguous()
        content = plain.reshape(-1).view(torch.uint8).numpy().tobytes()
        kind = "Parameter" if type(value) is torch.nn.Parameter else "Tensor"
        return [kind, name, list(plain.shape), value.requires_grad, self._part(content)]

    def _part(self, content: bytes) -> int:
        self._bytes += len(content)
        if self._bytes > BYTES:
            raise NotAValue(f"more than {BYTES >> 20} MiB at once")
        self.parts.append(content)
        return len(self.parts) - 1


def _described(value: Any) -> str:
    """Return what something is, in words; the name of a class is text, whoever chose it."""
    name = _CLASS_NAME.__get__(type(value))
    return f"{'an' if str(name)[:1].lower() in 'aeiou' else 'a'} {str(name)[:80]}"


class Reader:
    """Reads the values of one message.

    Parameters
    ----------
    parts : list of bytes
        What came beside the tree.
    functions : callable, optional
        Returns a function for a tree that :class:`Writer` was given for one.
    """

    def __init__(
        self, parts: list[Any], functions: Callable[[list[Any], "Reader"], Any] | None = None
    ) -> None:
        self._parts, self._functions, self._items = parts, functions, 0

    def read(self, tree: Tree, depth: int = 0) -> Any:
        """Return the value of a tree.

        Raises
        ------
        Damaged
            If it is the tree of no value.
        """
        if type(tree) is not list:
            if type(tree) in (type(None), bool, int, float, str):
                return tree
            raise Damaged("no tree of a value")
        if depth > DEPTH or not tree or type(tree[0]) is not str:
            raise Damaged("no tree of a value")
        tag, *rest = tree
        self._items += len(rest)
        if self._items > ITEMS:
            raise Damaged("too many items")
        if tag in _SEQUENCES:
            return _SEQUENCES[tag]([self.read(item, depth + 1) for item in rest])
        try:
            return self._read(tag, rest, depth)
        except Damaged:
            raise
        except Exception as error:  # numpy, torch or Python refuse what a hostile writer wrote
            raise Damaged(f"no {tag[:40]}: {type(error).__name__}: {error}"[:300]) from error

    def _read(self, tag: str, rest: list[Any], depth: int) -> Any:
        if tag == "int":
            return int(str(rest[0]), 16)
        if tag == "complex":
            return complex(float(rest[0]), float(rest[1]))
        if tag in ("bytes", "bytearray"):
            return (bytes if tag == "bytes" else bytearray)(self._part(rest[0]))
        if tag == "range":
            return range(*map(self.read, rest))
        if tag == "slice":
            return slice(*(self.read(item, depth + 1) for item in rest))
        if tag == "ellipsis":
            return ...
        if tag == "dtype":
            return _dtype(rest[0])
        if tag == "scalar":
            dtype = _dtype(rest[0])
            return (
                np.frombuffer(self._part(rest[1]), dtype, 1)[0] if dtype.itemsize else dtype.type()
            )
        if tag == "array":
            return self._array(*rest)
        if tag == "objects":
            return self._objects(rest[0], self.read(rest[1], depth + 1))
        if tag.endswith(" of d"):
            numbers = array("d", self._part(rest[0])).tolist()
            self._items += len(numbers)
            return _SEQUENCES[tag.removesuffix(" of d")](numbers)
        if tag == "Generator":
            return self._generator(self.read(rest[0], depth + 1))
        if tag in ("Tensor", "Parameter"):
            return self._tensor(tag, *rest)
        if tag.startswith("torch."):
            return self._of_torch(tag, rest[0])
        if self._functions is not None:
            return self._functions([tag, *rest], self)
        raise Damaged(f"no value: {tag[:40]}")

    def _part(self, number: Any) -> Any:
        if type(number) is not int or not 0 <= number < len(self._parts):
            raise Damaged("no such part")
        return self._parts[number]

    def _array(self, dtype: Any, shape: Any, part: Any) -> np.ndarray:
        content = self._part(part)
        kind, count = _dtype(dtype), _count(shape)
        if count * kind.itemsize != len(content):
            raise Damaged("an array of another size")
        # frombuffer refuses items of 0 bytes; and zeros would give each empty text a letter, though
        # whoever sends millions of them sends nothing
        if not kind.itemsize:
            return np.ndarray(shape, kind)
        # a copy: a test may change it, and bytes cannot be
        return np.frombuffer(content, kind, count).reshape(shape).copy()

    def _objects(self, shape: Any, items: Any) -> np.ndarray:
        if type(items) is not list or _count(shape) != len(items):
            raise Damaged("an array of another size")
        objects = np.empty(len(items), dtype=object)
        for position, item in enumerate(items):
            objects[position] = item
        return objects.reshape(shape)

    def _generator(self, state: Any) -> random.Generator:
        name = state["bit_generator"]
        if name not in _BIT_GENERATORS:
            raise Damaged("no bit generator")
        bits = getattr(random, name)(0)
        bits.state = state
        return random.Generator(bits)

    def _tensor(self, kind: str, name: Any, shape: Any, learns: Any, part: Any) -> Any:
        import torch

        content = self._part(part)
        if name not in _TENSORS:
            raise Damaged("no type of a tensor")
        dtype = getattr(torch, name)
        if _count(shape) * dtype.itemsize != len(content):
            raise Damaged("a tensor of another size")
        tensor = torch.empty(shape, dtype=dtype)
        if content:
            whole = torch.frombuffer(bytearray(content), dtype=torch.uint8)
            tensor.reshape(-1).view(torch.uint8).copy_(whole)
        if kind == "Parameter":
            return torch.nn.Parameter(tensor, requires_grad=learns is True)
        return tensor.requires_grad_() if learns is True else tensor

    def _of_torch(self, tag: str, content: Any) -> Any:
        import torch

        if tag == "torch.dtype" and content in _TENSORS:
            return getattr(torch, content)
        if tag == "torch.Generator":
            state = torch.frombuffer(bytearray(self._part(content)), dtype=torch.uint8)
            generator = torch.Generator()
            generator.set_state(state)
            return generator
        raise Damaged("nothing of torch's")


def _dtype(text: Any) -> np.dtype[Any]:
    if type(text) is not str:
        raise Damaged("no type of an array")
    return _named_dtype(text)


@lru_cache(maxsize=256)
def _named_dtype(text: str) -> np.dtype[Any]:
    if not _DTYPE.fullmatch(text):
        raise Damaged("no type of an array")
    return np.dtype(text)


def _count(shape: Any) -> int:
    if type(shape) is not list or len(shape) > 32:
        raise Damaged("no shape")
    count = 1
    for size in shape:
        if type(size) is not int or not 0 <= size <= BYTES:
            raise Damaged("no shape")
        count *= size
    return count


def _dict(items: list[Any]) -> dict[Any, Any]:
    try:
        return dict(zip(items[::2], items[1::2], strict=True))
    except (TypeError, ValueError) as error:
        raise Damaged("no dict") from error


def _hashed(make: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    def made(items: list[Any]) -> Any:
        try:
            return make(items)
        except (TypeError, ValueError) as error:  # a list in a set
            raise Damaged("what cannot be hashed") from error

    return made


_SEQUENCES: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": _hashed(set),
    "frozenset": _hashed(frozenset),
    "dict": _dict,
    "iterator": iter,
    "keys": _hashed(lambda items: dict.fromkeys(items).keys()),
    "values": lambda items: dict(enumerate(items)).values(),
    "items": _hashed(lambda items: dict(items).items()),
}
