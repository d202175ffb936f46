"""Containers that the student's code and the tests both hold: the two copies are kept alike.

In one process ``board[0] = "X"`` in a test changes the list that the student's functions use, and
what they do to it shows in the test. So a container that the student's code keeps, and does not
only return, goes to the tests with a number; one of the tests' that the student's code keeps when
its call is over gets a negative one. Before each message both ends look whether theirs has changed
since the other one last heard of it, and if so tell what it holds now. A container that nobody else
has is a plain copy: nothing needs to be told of it.
"""

import hashlib
import itertools
import operator
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from gradebox.codec.encoding import BadValue, Decoder, Encoder, Limits, Node
from gradebox.codec.tensors import module_items, shares_memory, tensor_state

MOST = 4096
"""So many containers may be held at once; what comes beyond is a plain copy.

All of them are looked at before each message.
"""

LARGEST = 2**26
"""Bytes of an array that has a twin; a larger one is a plain copy."""

_CHANGED = object()
"""The state of a container of which the other process does not know what it holds."""

_SHORT = 2**14
_NO_LIMITS = Limits(items=2**62, numbers=2**62)  # what is held was within the limits


class Twins:
    """The containers of which both processes have a copy.

    Parameters
    ----------
    of_student : bool
        Whether this is the student's end, which gives the numbers.
    """

    def __init__(self, of_student: bool) -> None:
        self.numbers: dict[int, int] = {}
        """Their numbers by ``id``; one of the tests' may have several copies at the other end."""
        self._held: dict[int, _Entry] = {}
        self._of_student, self._next = of_student, itertools.count(1)
        self._pending: list[tuple[_Entry, Any]] = []
        self._lost: list[int] = []
        self._new: list[_Entry] = []

    # the student's end

    def number(self, value: Any) -> int | None:
        """Return the number of a container of ours, a new one if it has none yet."""
        if (number := self.numbers.get(id(value))) is not None:
            return number
        if len(self._held) >= MOST or getattr(value, "nbytes", 0) > LARGEST:
            return None
        number = next(self._next)
        self._hold(number, value)
        return number

    def keep(self, value: Any) -> int | None:
        """Return the number of a container of the tests' that the student's code has kept."""
        if id(value) in self.numbers or len(self._held) >= MOST:
            return None
        if getattr(value, "nbytes", 0) > LARGEST:
            return None
        number = -next(self._next)
        self._hold(number, value)
        return number

    def has_changed(self, number: int, changed: bool) -> None:
        """Take note whether a container that is kept has changed since it came."""
        entry = self._held[number]
        if changed:
            entry.state = _CHANGED
        else:
            self._settle(entry, _state(entry.value))

    # the end of the tests

    def take(self, decoder: Decoder, node: list[Any], depth: int) -> Any:
        """Return our copy of a container that comes: the one that is there, or a new one."""
        if len(node) != 3 or type(node[1]) is not int or not 0 < node[1] < 2**63:
            raise BadValue("expected the number of a container and what it holds")
        position = len(decoder.numbered)
        fresh = decoder.decode(node[2], depth + 1)
        if len(decoder.numbered) <= position or decoder.numbered[position] is not fresh:
            raise BadValue("expected a container")
        entry = self._held.get(node[1])
        if entry is None:
            self._hold(node[1], fresh)
            return fresh
        try:
            decoder.fill(entry.value, fresh)()
        except BadValue:  # an array that has got another shape is another one
            self._forget(node[1])
            self._hold(node[1], fresh)
            return fresh
        self._look_again(entry)
        decoder.numbered[position] = entry.value
        return entry.value

    def lent(self, value: Any, number: Any) -> None:
        """Take note that the student's code has kept a container of ours."""
        if type(number) is not int or not -(2**63) < number < 0 or number in self._held:
            raise BadValue("expected a new number of a container that is kept")
        self._hold(number, value)

    # both ends

    def drop(self, numbers: Any) -> None:
        """Forget what the other process does not hold any more."""
        if type(numbers) is not list or not all(type(number) is int for number in numbers):
            raise BadValue("expected a list of what is not held any more")
        for number in numbers:
            if number in self._held:
                self._forget(number)

    def dropped(self) -> list[int]:
        """Forget what is the other process's and not held here any more; return the numbers."""
        numbers, self._lost = self._lost, []
        while given_up := [*self._give_up()]:  # what those held may be held by nobody now
            numbers += given_up
        return numbers

    def _give_up(self) -> Iterator[int]:
        """Forget what is the other process's and not held here any more; yield the numbers."""
        for number in [*reversed(self._held)]:
            if (number > 0) is self._of_student:
                continue
            entry = self._held[number]
            if shares_memory(entry.value):
                continue
            # the entry and the argument; while nothing has changed that the owner should know
            if sys.getrefcount(entry.value) <= 2 and not self._has_changed(entry):
                self._forget(number)
                entry.value = entry.items = None
                yield number

    def _hold(self, number: int, value: Any) -> None:
        if len(self._held) >= 2 * MOST:
            raise BadValue(f"expected at most {2 * MOST} containers at once")
        self._held[number] = entry = _Entry(value)
        self._new.append(entry)
        self.numbers.setdefault(id(value), number)

    def _forget(self, number: int) -> None:
        """Forget one number of a container, which may have another one."""
        value = self._held.pop(number).value
        if self.numbers[id(value)] == number:
            del self.numbers[id(value)]
            for other, entry in self._held.items():
                if entry.value is value:
                    self.numbers[id(value)] = other

    def find(self, number: Any) -> Any:
        """Return the container of a number."""
        entry = self._held.get(number) if type(number) is int else None
        if entry is None:
            raise BadValue("expected the number of a container that is held")
        return entry.value

    def news(self, encoder: Encoder) -> list[list[Node]]:
        """Return numbers and contents of those that have changed here; see :meth:`sent`."""
        self._pending = []
        changed = []
        for number, entry in [*self._held.items()]:
            if not self._has_changed(entry):
                continue
            now = _state(entry.value)
            if _is_another(entry.state, now):
                self._forget(number)
                self._lost.append(number)
            else:
                changed.append((number, entry.value))
                self._pending.append((entry, now))
        return [[number, encoder.content(value)] for number, value in changed]

    def sent(self) -> None:
        """Take what :meth:`news` has told as known to the other process."""
        for entry, now in self._pending:
            self._settle(entry, now)
        self._pending = []

    def hear(self, news: Any, decoder: Decoder) -> None:
        """Make ours hold what the other process says that they hold."""
        if type(news) is not list:
            raise BadValue("expected a list of what has changed")
        restorations = []
        for pair in news:
            if type(pair) is not list or len(pair) != 2:
                raise BadValue("expected the number of a container and what it holds")
            restorations.append((self.find(pair[0]), decoder.restore(self.find(pair[0]), pair[1])))
        for _, act in restorations:
            act()
        for value, _ in restorations:
            self._look_again(self._held[self.numbers[id(value)]])

    def _look_again(self, entry: "_Entry") -> None:
        entry.state = None
        self._new.append(entry)

    def settle(self) -> None:
        """Take what all hold now as known to the other process, where it is not known yet."""
        for entry in self._new:
            if entry.state is None:
                self._settle(entry, _state(entry.value))
        self._new.clear()

    def _settle(self, entry: "_Entry", state: Any) -> None:
        entry.state, items = state, _items(entry.value)
        # what cannot change, or is looked at by itself, need only be the same objects
        fixed = items is not None and all(_is_fixed(item, self.numbers) for item in items)
        entry.items = items if fixed else None

    def _has_changed(self, entry: "_Entry") -> bool:
        """Return whether a container holds something else than the other process knows."""
        if entry.state is None:
            return False
        if entry.items is not None:
            now = _items(entry.value)
            if now is not None and len(now) == len(entry.items):
                return not all(map(operator.is_, now, entry.items))
        return bool(entry.state != _state(entry.value))


class _Entry:
    """A container that both processes hold, and what it held when the other one heard of it."""

    __slots__ = ("items", "state", "value")

    def __init__(self, value: Any) -> None:
        self.value: Any = value
        self.state: Any = None
        self.items: tuple[Any, ...] | None = None


_FIXED = frozenset((type(None), bool, int, float, complex, str, bytes, FunctionType, MethodType))
"""Values that cannot change, and functions, which do not travel."""


def _items(value: Any) -> tuple[Any, ...] | None:
    """Return all that a list, a dict, a set, a deque or a module of torch's holds."""
    if type(value) is dict:
        return (*value, *value.values())
    if type(value) in (list, set, deque):
        return tuple(value)
    return module_items(value)


def _is_fixed(value: Any, held: Mapping[int, int]) -> bool:
    if type(value) is tuple:
        return all(_is_fixed(item, held) for item in value)
    # of what is the other process's only a number travels, which stays
    is_others = hasattr(type(value), "_gradebox")
    return type(value) in _FIXED or id(value) in held or is_others


def _state(value: Any) -> Any:
    """Return what a container holds, in a form to compare."""
    if type(value) is np.ndarray and not value.dtype.hasobject:
        large = value.nbytes > _SHORT and value.flags.c_contiguous
        data = value.reshape(-1).view(np.uint8).data if large else value.tobytes()
        return value.dtype, value.shape, value.flags.writeable, _short([data])
    if (tensor := tensor_state(value)) is not None:
        *kind, parts = tensor
        return [*kind, _short(parts)]
    encoder = Encoder(lambda other: ["object", id(other)], [value], _NO_LIMITS)
    content = repr(encoder.state(value)).encode("utf-8", "surrogatepass")
    return _short([content, *encoder.parts])


def _is_another(before: Any, now: Any) -> bool:
    """Return whether an array has got another shape: the other process has to make a new one."""
    return type(before) is tuple and before[:3] != now[:3]


def _short(parts: Iterable[Any]) -> Any:
    parts = list(parts)
    if sum(map(len, parts)) <= _SHORT:
        return parts
    digest = hashlib.blake2b()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()
