"""Plain data between two processes that do not trust each other.

A value becomes a *node*, which JSON can carry, and binary parts. ``None``, truth values, numbers
and text stand for themselves; all else is a list that begins with its kind. What is no plain data,
such as a function, is left to the caller, who gives it a number.

What comes in is built from exact types of Python, NumPy and torch, and from nothing else: no class
of the sender is looked up, no code of its is run. Lists, dicts, sets, arrays and generators are
numbered in the order in which they are met, so that an answer can say "your second list", and that
a function may change its arguments as it does within one process.
"""

import keyword
import math
import re
import sys
from collections import deque, namedtuple
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from gradebox.codec import frames, generators, gradients, library, optimizers, tensors

Node = Any


class DerivedType(type):
    """The kind of classes that stand for a student's which derive from data."""


class BadValue(ValueError):
    """What came in is not what an honest process sends."""


class Unsendable(TypeError):
    """A value is no plain data, or too much of it."""


@dataclass(frozen=True)
class Limits:
    """What one message may hold.

    Parameters
    ----------
    depth : int
        Containers within containers.
    items : int
        Values in all, each item of a list counted.
    numbers : int
        Numbers in lists that hold nothing else.
    bits : int
        Of one integer.
    entries : int
        Of one array, with empty axes left out: an empty array of shape (0, n) makes n of its sum.
    """

    depth: int = 64
    items: int = 1_000_000
    numbers: int = 10_000_000
    bits: int = 2**20
    entries: int = 2**26


LIMITS = Limits()

_INLINE = 2**63
_SHORT = 100
"""A list of fewer numbers goes item by item; a longer one in one binary part."""

_NUMBERS = {float: "<f8", int: "<i8"}
_DTYPE = re.compile(r"[<>|](?:b1|[iu][1248]|f(?:2|4|8|12|16)|c(?:8|16|24|32)|[SU]\d{1,7})")
_TIME = re.compile(r"[<>][Mm]8(?:\[(?:\d{1,9})?(?:Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?")


# --- out --------------------------------------------------------------------------------------


class Passed:
    """The tensors with gradients in a message, each once, in the order in which they are met."""

    def __init__(self) -> None:
        self.tensors: list[Any] = []

    def add(self, value: Any) -> None:
        """Take note of a value, if it is such a tensor."""
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(value, torch.Tensor) or not value.requires_grad:
            return
        if not any(tensor is value for tensor in self.tensors):
            self.tensors.append(value)


class Encoder:
    """Turns values into nodes and binary parts.

    Parameters
    ----------
    export : callable
        Returns the node of what is no plain data, or raises :class:`Unsendable`.
    known : sequence
        Objects that have come in with the message that is answered.
    twins : Twins, optional
        The containers that both processes hold; see :mod:`gradebox.line.twins`.
    lends : bool
        Whether containers that somebody here keeps become such.
    own : callable, optional
        Returns the node of a value whose type derives from one of Python's own, or None if it is
        sent as its base; it is given the encoder, the value, and a function that encodes the value
        as its base.
    received : Passed, optional
        The tensors with gradients of the message that this one answers.
    """

    def __init__(
        self,
        export: Callable[[Any], Node],
        known: Sequence[Any] = (),
        limits: Limits = LIMITS,
        *,
        twins: Any = None,
        lends: bool = False,
        own: Callable[..., Node] | None = None,
        received: "Passed | None" = None,
    ) -> None:
        self.parts: list[bytes] = []
        self._own, self.received = own, received or Passed()
        self._twins, self.lends, self._within = twins, lends, False
        self.numbered, self.passed = list(known), Passed()
        self._numbers = {id(value): number for number, value in enumerate(self.numbered)}
        self._export, self._limits, self._items = export, limits, 0
        self.numbers = 0

    def encode(self, value: Any, depth: int = 0, holders: int = 1) -> Node:
        """Return the node of a value, to which so many places on the way to it refer."""
        self._items += 1
        if depth > self._limits.depth or self._items > self._limits.items:
            raise Unsendable(
                f"expected at most {self._limits.items} values in {self._limits.depth} levels, "
                "got more; send an array, or less"
            )
        if value is None or type(value) in (bool, float, str):
            return value
        if (number := self._numbers.get(id(value), -1)) >= 0:
            return ["ref", number]
        if self._twins is not None:
            if id(value) in self._twins.numbers:
                self.passed.add(value)
                return ["held", self._twins.numbers[id(value)]]
            if self.lends and (
                self._within
                or self._is_own(value)
                or _is_kept(value, sys.getrefcount(value) - holders)
            ):
                return self._lent(value, depth)
        return self._plain(value, depth)

    def _plain(self, value: Any, depth: int) -> Node:
        if type(value) in _EXACT:
            return _EXACT[type(value)](self, value, depth)
        if type(type(value)) is DerivedType:  # it goes back to where it came from
            return self._export(value)
        if self._own is not None:
            node = self._own(self, value, lambda: self._as_base(value, depth))
            if node is not None:
                return node
        return self._as_base(value, depth)

    def _as_base(self, value: Any, depth: int) -> Node:
        node = _scalar(self, value)
        return self.state(value, depth) if node is None else node

    def _is_own(self, value: Any) -> bool:
        """Return whether a value is a container of a class of its own."""
        kind = type(value)
        return self._own is not None and kind not in _EXACT and isinstance(value, list | dict | set)

    def _lent(self, value: Any, depth: int) -> Node:
        """Return the node of a value that somebody keeps: a container gets a twin."""
        within, self._within = self._within, True
        try:
            node = self._plain(value, depth)
        finally:
            self._within = within
        number = self._twins.number(value) if id(value) in self._numbers else None
        return node if number is None else ["twin", number, node]

    def has(self, value: Any) -> bool:
        """Return whether the other process has a container already, which is only told of."""
        held = self._twins is not None and id(value) in self._twins.numbers
        return held or id(value) in self._numbers

    def content(self, value: Any) -> Node:
        """Return the node of what a container holds that has a number elsewhere."""
        self._numbers.setdefault(id(value), -1)
        within, self._within = self._within, True
        try:
            return self.state(value)
        finally:
            self._within = within
            if self._numbers[id(value)] == -1:
                del self._numbers[id(value)]

    def state(self, value: Any, depth: int = 0) -> Node:
        """Return the node of what a container holds, even if the container is known."""
        if type(value) in _WRITERS_ELSEWHERE:
            return _WRITERS_ELSEWHERE[type(value)](self, value, depth)
        for kind, write in _WRITERS:
            if isinstance(value, kind):
                return write(self, value, depth)
        if frames.is_of_pandas(value):
            return frames.write(self, value, depth)
        sparse = sys.modules.get("scipy.sparse")
        if sparse is not None and sparse.issparse(value):
            return library.write_sparse(self, value, depth)
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Generator):
            return generators.write(self, value, depth)
        if torch is not None:
            return tensors.write(self, value, depth)
        return self._export(value)

    def export(self, value: Any) -> Node:
        """Return the node of what is no plain data."""
        return self._export(value)

    def unsendable(self, why: str) -> Exception:
        """Return the error for what cannot travel."""
        return Unsendable(why)

    def check_shape(self, shape: Sequence[int]) -> None:
        """Refuse an array that is too large."""
        _check_entries(shape, self._limits, Unsendable)

    def graph(self, value: Any) -> Node:
        """Return the node of the graph of a tensor that was computed from what came in."""
        gradients.keep_inputs(value, self.received.tensors)
        return self._export(value)

    def note(self, value: Any) -> None:
        """Give a container the next number."""
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self.numbered)
            self.numbered.append(value)

    def each(self, values: Any, depth: int, holders: int = 1) -> list[Node]:
        """Return the nodes of items, to each of which so many containers refer."""
        return [self.encode(value, depth + 1, holders + 1) for value in values]

    def attach(self, data: bytes) -> None:
        """Add a binary part."""
        self.parts.append(data)


_FRESH = 3
"""The references to a value that nobody keeps, when it is written."""


def _is_kept(value: Any, references: int) -> bool:
    """Return whether somebody else refers to a value, or to the memory of an array."""
    base = value.base if type(value) is np.ndarray else None
    return references > _FRESH or (base is not None and sys.getrefcount(base) > 3)


def _scalar(encoder: Encoder, value: Any) -> Node | None:
    """Return the node of a number or text; a subclass is sent as its base."""
    if isinstance(value, np.generic):
        return _write_scalar(encoder, value)
    if isinstance(value, int):
        plain = int.__int__(value)
        if abs(plain) < _INLINE:
            return plain
        if plain.bit_length() > encoder._limits.bits:
            raise Unsendable(f"expected at most {encoder._limits.bits} bits, got a longer integer")
        return ["int", hex(plain)]
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, complex):
        return ["complex", value.real, value.imag]
    if isinstance(value, str):
        return str.__str__(value)
    return None


def _write_scalar(encoder: Encoder, value: Any) -> Node:
    text = _dtype_text(value.dtype)
    encoder.attach(value.tobytes()[: value.dtype.itemsize])  # an empty text has bytes in NumPy
    return ["scalar", text]


@lru_cache(maxsize=100)
def _dtype_text(dtype: Any) -> str:
    text = str(dtype.str)
    if dtype.names or not (_DTYPE.fullmatch(text) or _TIME.fullmatch(text)):
        raise Unsendable(f"expected numbers, text or times, got an array of dtype {dtype}")
    return text


def _write_bytes(encoder: Encoder, value: Any, depth: int) -> Node:
    encoder.attach(bytes(value))
    return ["bytes"]


def _write_bytearray(encoder: Encoder, value: Any, depth: int) -> Node:
    encoder.note(value)
    encoder.attach(bytes(value))
    return ["bytearray"]


def _write_tuple(encoder: Encoder, value: Any, depth: int) -> Node:
    items = encoder.each(tuple.__iter__(value), depth)
    names = None if type(value) is tuple else _fields_of(type(value))
    if isinstance(names, tuple) and _are_names(names) and len(names) == len(items):
        return ["named", type(value).__name__, list(names), items]
    return ["tuple", items]


def _fields_of(kind: type) -> Any:
    """Return the names of the fields of a named tuple, or of a record of Python's or torch's."""
    records = "__match_args__" if hasattr(kind, "n_sequence_fields") else "_fields"
    return getattr(kind, records, None)


def _write_list(encoder: Encoder, value: Any, depth: int) -> Node:
    encoder.note(value)
    if list.__len__(value) >= _SHORT and (node := _write_numbers(encoder, value)) is not None:
        return node
    return ["list", encoder.each(list.__iter__(value), depth)]


def _write_numbers(encoder: Encoder, value: Any) -> Node | None:
    """Return the node of a list that holds floats only, or only integers of 64 bits."""
    kinds = set(map(type, list.__iter__(value)))
    kind = kinds.pop() if len(kinds) == 1 else None
    encoder.numbers += list.__len__(value)
    if kind not in _NUMBERS or encoder.numbers > encoder._limits.numbers:
        return None
    try:
        encoder.attach(np.array(list(list.__iter__(value)), _NUMBERS[kind]).tobytes())
    except OverflowError:
        return None
    return ["numbers", _NUMBERS[kind]]


def _write_set(encoder: Encoder, value: Any, depth: int) -> Node:
    encoder.note(value)
    return ["set", encoder.each(set.__iter__(value), depth)]


def _write_frozenset(encoder: Encoder, value: Any, depth: int) -> Node:
    return ["frozenset", encoder.each(frozenset.__iter__(value), depth)]


def _write_dict(encoder: Encoder, value: Any, depth: int) -> Node:
    encoder.note(value)
    return ["dict", [encoder.each(pair, depth, 2) for pair in dict.items(value)]]


def _write_bounds(encoder: Encoder, value: Any, depth: int) -> Node:
    kind = "slice" if isinstance(value, slice) else "range"
    return [kind, *encoder.each((value.start, value.stop, value.step), depth)]


def _write_array(encoder: Encoder, value: Any, depth: int) -> Node:
    if value.dtype.names:
        return library.write_structured(encoder, value, depth)
    if value.dtype.kind == "O":
        return library.write_objects(encoder, value, depth)
    text = _dtype_text(value.dtype)
    plain = np.asarray(value)
    _check_entries(plain.shape, encoder._limits, Unsendable)
    encoder.note(value)
    encoder.attach(plain.tobytes())
    return ["array", text, list(plain.shape), bool(value.flags.writeable)]


def _write_dtype(encoder: Encoder, value: Any, depth: int) -> Node:
    return ["dtype", _dtype_text(value)]


_WRITERS: tuple[tuple[Any, Callable[[Encoder, Any, int], Node]], ...] = (
    (np.ndarray, _write_array),
    (list, _write_list),
    (tuple, _write_tuple),
    (dict, _write_dict),
    (bytes, _write_bytes),
    (set, _write_set),
    (frozenset, _write_frozenset),
    ((slice, range), _write_bounds),
    (bytearray, _write_bytearray),
    (type(...), lambda encoder, value, depth: ["ellipsis"]),
    (np.dtype, _write_dtype),
)

_WRITERS_ELSEWHERE = {**library.WRITERS, **generators.WRITERS}

_EXACT = {kind: write for kind, write in _WRITERS if kind in (np.ndarray, list, tuple, dict)}
"""For what comes most often, so that nothing needs to be asked of it."""


# --- in ---------------------------------------------------------------------------------------


class Decoder:
    """Builds values from nodes that nobody vouches for.

    Parameters
    ----------
    parts : sequence of bytes
        The binary parts, each for one value, in the order of the nodes.
    resolve : callable
        Returns what the node of another kind stands for, or raises :class:`BadValue`.
    known : sequence
        Objects that have gone out with the message that this one answers.
    twins : Twins, optional
        The containers that both processes hold.
    derive : callable, optional
        Returns what stands for an object of a class that derives from data.
    sent : Passed, optional
        The tensors with gradients of the message that this one answers.
    """

    def __init__(
        self,
        parts: Sequence[bytes],
        resolve: Callable[[list[Any]], Any],
        known: Sequence[Any] = (),
        limits: Limits = LIMITS,
        *,
        twins: Any = None,
        derive: Callable[..., Any] | None = None,
        sent: Passed | None = None,
    ) -> None:
        self.numbered, self._twins, self._derive = list(known), twins, derive
        self._sent, self.passed = sent or Passed(), Passed()
        self.limits, self._unnumbered, self.numbers = limits, False, 0
        self._parts, self._next, self._resolve, self._items = list(parts), 0, resolve, 0

    def decode(self, node: Node, depth: int = 0) -> Any:
        """Return the value of a node."""
        self._items += 1
        if depth > self.limits.depth:
            raise BadValue(f"expected at most {self.limits.depth} levels, got more")
        if self._items > self.limits.items:
            raise BadValue(f"expected at most {self.limits.items} values, got more")
        if node is None or type(node) in (bool, float, str):
            return node
        if type(node) is int:
            return self.bounded(node)
        kind = self.kind(node)
        if kind == "ref":
            return self.numbered[
                _integer(_fields(node, 1)[0], 0, len(self.numbered) - 1, "a reference")
            ]
        if self._derive is not None and kind == "derived":
            return self._derive(self, node, depth)
        if self._twins is not None and kind == "held":
            held = self._twins.find(*_fields(node, 1))
            self.passed.add(held)
            return held
        if self._twins is not None and kind == "twin":
            return self._twins.take(self, node, depth)
        if kind in _READERS:
            return _READERS[kind](self, node, depth)
        if kind in _READERS_ELSEWHERE:
            return self._read_elsewhere(kind, node, depth)
        return self._resolve(node)

    def _read_elsewhere(self, kind: str, node: list[Any], depth: int) -> Any:
        try:
            return _READERS_ELSEWHERE[kind](self, node, depth)
        except BadValue:
            raise
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
            raise BadValue(f"expected the fields of a {kind}: {error}") from error

    def computed(self, value: Any, node: Node) -> Any:
        """Return a tensor that a test can go back from, to what was sent to compute it."""
        return gradients.attached(value, self.decode(node), self._sent.tensors)

    def finish(self) -> None:
        """Refuse parts that belong to no value."""
        if self._next != len(self._parts):
            raise BadValue(f"expected {self._next} binary parts, got {len(self._parts)}")

    def restore(self, target: Any, node: Node) -> Callable[[], None]:
        """Return an action that gives a container of ours the content that came back."""
        self.kind(node)
        self._unnumbered = True
        fresh = self.decode(node)
        self._unnumbered = False
        return self.fill(target, fresh)

    def fill(self, target: Any, fresh: Any) -> Callable[[], None]:
        """Return an action that gives a container the content of another one."""
        if isinstance(fresh, dict) and isinstance(target, dict):
            return lambda: (dict.clear(target), dict.update(target, fresh))[1]
        if isinstance(fresh, set) and isinstance(target, set):
            return lambda: (set.clear(target), set.update(target, fresh))[1]
        if isinstance(fresh, list) and isinstance(target, list):
            return lambda: list.__setitem__(target, slice(None), fresh)
        if type(fresh) is deque and isinstance(target, deque):
            return lambda: _refill(target, target.extend, fresh)
        if type(fresh) is SimpleNamespace and isinstance(target, SimpleNamespace):
            return lambda: _refill(vars(target), vars(target).update, vars(fresh))
        if type(fresh) is bytearray and isinstance(target, bytearray):
            return lambda: bytearray.__setitem__(target, slice(None), fresh)
        if type(fresh) is np.ndarray and isinstance(target, np.ndarray):
            return _restore_array(target, fresh)
        if frames.is_of_pandas(fresh) and hasattr(fresh, "_update_inplace"):
            return _checked(frames.restored, target, fresh)
        torch = sys.modules.get("torch")
        if torch is not None and all(isinstance(value, torch.Tensor) for value in (fresh, target)):
            return _checked(tensors.restored, target, fresh)
        if torch is not None and all(
            isinstance(value, torch.nn.Module) for value in (fresh, target)
        ):
            return _checked(tensors.module_restored, target, fresh)
        steps = (torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler) if torch else ()
        if steps and all(isinstance(value, steps) for value in (fresh, target)):
            return _checked(optimizers.restored, target, fresh)
        if type(fresh) in generators.TYPES and type(fresh) is type(target):
            return _checked(generators.restored, target, fresh)
        if torch is not None and all(
            isinstance(value, torch.Generator) for value in (fresh, target)
        ):
            return _checked(generators.restored, target, fresh)
        raise BadValue(f"expected what a {type(target).__name__} holds, got {_brief(fresh)}")

    def kind(self, node: Node) -> str:
        """Return the kind of a node that is a list."""
        if type(node) is not list or not node or type(node[0]) is not str:
            raise BadValue(f"expected a list that begins with its kind, got {_brief(node)}")
        return node[0]

    def bounded(self, value: int) -> int:
        """Return an integer that is not too long."""
        if value.bit_length() > self.limits.bits:
            raise BadValue(f"expected at most {self.limits.bits} bits, got {value.bit_length()}")
        return value

    def integer(self, text: Any) -> int:
        """Return the integer of a hexadecimal text."""
        if type(text) is not str or len(text) > self.limits.bits // 4 + 4:
            raise BadValue(f"expected the text of an integer, got {_brief(text)}")
        if not re.fullmatch(r"-?0x[0-9a-f]+", text):
            raise BadValue(f"expected the text of an integer, got {_brief(text)}")
        return self.bounded(int(text, 16))

    def each(self, nodes: Any, depth: int) -> list[Any]:
        """Return the values of a list of nodes."""
        if type(nodes) is not list:
            raise BadValue(f"expected a list of items, got {_brief(nodes)}")
        if len(nodes) > self.limits.items - self._items:
            raise BadValue(f"expected at most {self.limits.items} values, got {len(nodes)} more")
        return [self.decode(node, depth + 1) for node in nodes]

    def part(self, size: int | None = None) -> bytes:
        """Return the next binary part, which must have so many bytes."""
        if self._next == len(self._parts):
            raise BadValue(f"expected more than {self._next} binary parts")
        data = self._parts[self._next]
        self._next += 1
        if size is not None and len(data) != size:
            raise BadValue(f"expected {size} bytes, got {len(data)}")
        return data

    def note(self, value: Any) -> Any:
        """Give a container the next number, unless it only tells what another one holds."""
        if self._unnumbered:
            self._unnumbered = False
        else:
            self.numbered.append(value)
        return value

    def shape(self, node: Any) -> tuple[int, ...]:
        """Return the shape of an array."""
        if type(node) is not list or len(node) > 32:
            raise BadValue(f"expected a shape of at most 32 axes, got {_brief(node)}")
        shape = tuple(_integer(n, 0, 2**31 - 1, "the length of an axis") for n in node)
        _check_entries(shape, self.limits, BadValue)
        return shape


def _refill(target: Any, fill: Callable[[Any], None], fresh: Any) -> None:
    target.clear()
    fill(fresh)


def _checked(restored: Callable[..., Any], target: Any, fresh: Any) -> Callable[[], None]:
    try:
        act: Callable[[], None] = restored(target, fresh)
    except ValueError as error:
        raise BadValue(str(error)) from None
    return act


def _check_entries(shape: Sequence[int], limits: Limits, error: type[Exception]) -> None:
    if len(shape) == 1 and shape[0] <= limits.entries:
        return
    if math.prod(n for n in shape if n) > limits.entries:
        raise error(f"expected at most {limits.entries} entries, got the shape {tuple(shape)}")


def _fields(node: list[Any], count: int) -> list[Any]:
    if len(node) != count + 1:
        raise BadValue(f"expected {count} fields of {node[0]!r}, got {len(node) - 1}")
    return node[1:]


def _integer(value: Any, low: int, high: int, description: str) -> int:
    if type(value) is not int or not low <= value <= high:
        raise BadValue(f"expected {description} from {low} to {high}, got {_brief(value)}")
    return value


def _brief(node: Any) -> str:
    """Return a node in short; a deep one has no repr that is safe to make."""
    if type(node) in (list, dict):
        return f"a {type(node).__name__} of {len(node)}"
    return repr(node)[:80] if type(node) is not int else f"an integer of {node.bit_length()} bits"


def _read_complex(decoder: Decoder, node: list[Any], depth: int) -> complex:
    real, imag = _fields(node, 2)
    if type(real) is not float or type(imag) is not float:
        raise BadValue("expected two floats of a complex number")
    return complex(real, imag)


def _hashed(make: Callable[[Any], Any], items: Any) -> Any:
    try:
        return make(items)
    except TypeError:
        raise BadValue("expected keys that can be hashed") from None


def _read_list(decoder: Decoder, node: list[Any], depth: int) -> list[Any]:
    value: list[Any] = decoder.note([])
    value.extend(decoder.each(_fields(node, 1)[0], depth))
    return value


def _read_numbers_of_list(decoder: Decoder, node: list[Any], depth: int) -> list[Any]:
    [text] = _fields(node, 1)
    if text not in _NUMBERS.values():
        raise BadValue(f"expected the dtype of a list of numbers, got {_brief(text)}")
    data = decoder.part()
    decoder.numbers += len(data) // 8
    if len(data) % 8 or decoder.numbers > decoder.limits.numbers:
        raise BadValue(f"expected at most {decoder.limits.numbers} numbers of 8 bytes")
    value: list[Any] = decoder.note([])
    value.extend(np.frombuffer(data, text).tolist())
    return value


def _read_set(decoder: Decoder, node: list[Any], depth: int) -> set[Any]:
    value: set[Any] = decoder.note(set())
    _hashed(value.update, decoder.each(_fields(node, 1)[0], depth))
    return value


def _read_frozenset(decoder: Decoder, node: list[Any], depth: int) -> Any:
    return _hashed(frozenset, decoder.each(_fields(node, 1)[0], depth))


def _read_dict(decoder: Decoder, node: list[Any], depth: int) -> dict[Any, Any]:
    value: dict[Any, Any] = decoder.note({})
    [pairs] = _fields(node, 1)
    if type(pairs) is not list:
        raise BadValue(f"expected a list of pairs, got {_brief(pairs)}")
    for pair in pairs:
        if type(pair) is not list or len(pair) != 2:
            raise BadValue(f"expected a key and a value, got {_brief(pair)}")
        key, item = decoder.each(pair, depth)
        _hashed(lambda pair: value.update([pair]), (key, item))
    return value


def _are_names(names: Sequence[Any]) -> bool:
    return (
        len(names) <= 100
        and len(set(map(str, names))) == len(names)
        and all(
            type(n) is str and n.isidentifier() and not keyword.iskeyword(n) and n[0] != "_"
            for n in names
        )
        and sum(map(len, names)) <= 4000
    )


@lru_cache(maxsize=100)
def _named(name: str, fields: tuple[str, ...]) -> Any:
    return namedtuple(name, fields)


def _read_named(decoder: Decoder, node: list[Any], depth: int) -> Any:
    name, names, items = _fields(node, 3)
    if type(names) is not list or not _are_names(names):
        raise BadValue("expected the names of fields")
    if type(name) is not str or not _are_names([name.lstrip("_") or "x"]):
        raise BadValue("expected the name of a type")
    values = decoder.each(items, depth)
    if len(values) != len(names):
        raise BadValue(f"expected {len(names)} fields, got {len(values)}")
    return _named(name.lstrip("_") or "x", tuple(names))._make(values)


def _read_slice(decoder: Decoder, node: list[Any], depth: int) -> slice:
    return slice(*decoder.each(_fields(node, 3), depth))


def _read_range(decoder: Decoder, node: list[Any], depth: int) -> range:
    bounds = decoder.each(_fields(node, 3), depth)
    if not all(type(bound) is int for bound in bounds) or not bounds[2]:
        raise BadValue("expected three integers of a range, the step not 0")
    return range(*bounds)


def _read_dtype(text: Any) -> np.dtype[Any]:
    if type(text) is not str:
        raise BadValue(f"expected the dtype of numbers, text or times, got {_brief(text)}")
    return _dtype_of(text)


@lru_cache(maxsize=100)
def _dtype_of(text: str) -> np.dtype[Any]:
    if not (_DTYPE.fullmatch(text) or _TIME.fullmatch(text)):
        raise BadValue(f"expected the dtype of numbers, text or times, got {_brief(text)}")
    try:
        return np.dtype(text)
    except (TypeError, ValueError, OverflowError):
        raise BadValue(f"expected a dtype of this machine, got {text!r}") from None


def _read_numbers(decoder: Decoder, text: Any, shape: tuple[int, ...]) -> np.ndarray:
    dtype = _read_dtype(text)
    data = decoder.part(math.prod(shape) * dtype.itemsize)
    if not data:
        return np.zeros(shape, dtype)
    values = np.frombuffer(data, dtype).copy()
    if dtype.kind == "b" and values.view(np.uint8).max() > 1:
        raise BadValue("expected truth values of 0 and 1")
    if dtype.kind == "U" and values.view(dtype.byteorder + "u4").max() > sys.maxunicode:
        raise BadValue("expected code points of Unicode")
    return values.reshape(shape)


def _read_array(decoder: Decoder, node: list[Any], depth: int) -> np.ndarray:
    text, lengths, writeable = _fields(node, 3)
    value = _read_numbers(decoder, text, decoder.shape(lengths))
    if type(writeable) is not bool:
        raise BadValue("expected whether the array may be written")
    value.flags.writeable = writeable
    return decoder.note(value)


def _read_scalar(decoder: Decoder, node: list[Any], depth: int) -> Any:
    [text] = _fields(node, 1)
    return _read_numbers(decoder, text, ())[()]


_READERS: dict[str, Callable[[Decoder, list[Any], int], Any]] = {
    "int": lambda decoder, node, depth: decoder.integer(*_fields(node, 1)),
    "complex": _read_complex,
    "bytes": lambda decoder, node, depth: bytes(decoder.part()),
    "bytearray": lambda decoder, node, depth: decoder.note(bytearray(decoder.part())),
    "tuple": lambda decoder, node, depth: tuple(decoder.each(_fields(node, 1)[0], depth)),
    "named": _read_named,
    "list": _read_list,
    "numbers": _read_numbers_of_list,
    "set": _read_set,
    "frozenset": _read_frozenset,
    "dict": _read_dict,
    "slice": _read_slice,
    "range": _read_range,
    "ellipsis": lambda decoder, node, depth: ...,
    "array": _read_array,
    "scalar": _read_scalar,
    "dtype": lambda decoder, node, depth: _read_dtype(*_fields(node, 1)),
}

_READERS_ELSEWHERE = {
    **library.READERS,
    **generators.READERS,
    **tensors.READERS,
    **optimizers.READERS,
    **frames.READERS,
}


def _restore_array(target: Any, fresh: Any) -> Callable[[], None]:
    if target.shape != fresh.shape or target.dtype != fresh.dtype or not target.flags.writeable:
        raise BadValue("expected an array of the same shape and dtype that may be written")
    return lambda: np.copyto(target, fresh)
