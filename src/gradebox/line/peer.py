"""What the student's process and the checker have in common: questions and answers on a line.

Either side may ask while it is asked. What is no plain data goes by number, and the number is good
only for what was given out.
"""

import builtins
import gc
import itertools
import sys
import threading
import types
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from gradebox.codec.draws import Draws
from gradebox.codec.encoding import BadValue, Decoder, Encoder, Limits, Node, Passed, Unsendable
from gradebox.codec.tensors import shares_memory
from gradebox.line.classes import (
    MOST_BASES,
    NAMED,
    fields_of,
    name_of,
    read_class,
)
from gradebox.line.derived import is_derived, plan
from gradebox.line.derived import read as read_derived
from gradebox.line.special_methods import abilities_of
from gradebox.line.twins import Twins
from gradebox.line.wire import Gone, Line

DEEPEST = 250
"""So many calls may wait for one another on the line."""

_PASSED = 2
"""The holders of an argument that nobody has kept when its call is over.

They are the arguments of the call, and the list of what the answer may refer to.
"""

_ANSWERED = 0
"""The holders of a container of an answer that nobody has kept."""

_RUNNING = -1
"""Fewer holders than any argument has while the function that was given it runs."""

LARGEST_MEANWHILE = 2**14
"""Bytes of arguments that are kept alike while a call is under way; larger ones are afterwards.

They are looked at before each message, of which there may be thousands. Parameters of a network
are kept alike whatever their size: an optimizer is given them one by one, and changes them.
"""

_SHALLOW = 8
_FRAMES = 60

MOST_PRINTED = 4 * 2**20
"""So many characters that a student's functions print are passed on; the rest is dropped."""

MOST_EXPORTS = 100_000
"""So many functions and objects of one side the other one may hold at once."""

MOST_TEXT = 100_000
"""So many characters of a message, a traceback, a source are passed on."""


class StudentError(Exception):
    """An exception in the student's process.

    An exception of a type of Python's own is raised as that type, with this one as its cause.
    """

    def __init__(self, name: str, message: str = "", trace: str = "") -> None:
        super().__init__(f"{name}: {message}" if message else name)
        self.name, self.message, self.trace = name, message, trace


class StudentTimeout(StudentError, TimeoutError):
    """The student's process took longer than it may."""


class StudentGone(StudentError):
    """The student's process ended, or what it sends makes no sense any more."""


class ErrorClass(type):
    """The kind of classes that stand for an exception class of the other process."""

    _gradebox: "Handle"


def error_class(handle: "Handle", bases: Sequence[type[Exception]]) -> Any:
    """Return a class that stands for an exception class of the other process.

    It is a class, not a proxy: ``except`` and ``pytest.raises`` take nothing else.
    """
    more = () if any(issubclass(base, StudentError) for base in bases) else (StudentError,)
    error_type = ErrorClass(
        handle.name or "Error",
        (*more, *bases),
        {"__init__": _begin, "__str__": _say, "__module__": "__main__"},
    )
    type.__setattr__(error_type, "_gradebox", handle)
    return error_type


def _begin(self: Any, *args: Any, **kwargs: Any) -> None:
    """Begin an exception that a test makes, or one that :func:`rebuilt` fills in."""
    Exception.__init__(self, *args)
    self.name, self.message, self.trace = type(self).__name__, None, ""


def _say(self: Any) -> str:
    return Exception.__str__(self) if self.message is None else str(self.message)


class Exports:
    """Objects of this process that the other one may name by number."""

    def __init__(self) -> None:
        self._entries: dict[int, list[Any]] = {}
        self._numbers: dict[int, int] = {}
        self._next = itertools.count(1)

    def number(self, value: Any) -> int:
        """Return the number of an object, one more time."""
        number = self._numbers.get(id(value))
        if number is None:
            if len(self._entries) >= MOST_EXPORTS:
                raise Unsendable(f"expected at most {MOST_EXPORTS} functions and objects, got more")
            number = self._numbers[id(value)] = next(self._next)
            self._entries[number] = [value, 0]
        self._entries[number][1] += 1
        return number

    def find(self, number: Any) -> Any:
        """Return the object of a number that was given out."""
        if type(number) is not int or number not in self._entries:
            raise BadValue("expected the number of a function or object, got one never given out")
        return self._entries[number][0]

    def release(self, pairs: Any) -> None:
        """Forget objects as often as they were given out."""
        if type(pairs) is not list:
            raise BadValue("expected a list of what is not needed any more")
        for pair in pairs:
            if type(pair) is not list or len(pair) != 2 or not all(type(n) is int for n in pair):
                raise BadValue("expected a number and a count")
            entry = self._entries.get(pair[0])
            if entry is not None:
                entry[1] -= max(pair[1], 0)
                if entry[1] <= 0:
                    del self._entries[pair[0]]
                    del self._numbers[id(entry[0])]


class Handle:
    """The number of an object of the other process, and how often it has come."""

    def __init__(self, peer: "Peer", number: int, kind: str, type_name: str, name: str) -> None:
        self.peer, self.number, self.count = peer, number, 0
        self.kind, self.type_name, self.name = kind, type_name, name
        self.of: Any = None
        """The class of an object, or what is told of a class, in the checker."""
        self.method = ""
        """The name by which a test has asked an object for this method of its, in the checker."""


class _Crossed:
    """The containers of the last message that went from the tests to the student's process.

    Parameters
    ----------
    containers : list
        The containers, in the order of their places.
    states : list, optional
        What they held when they came, at the student's end.
    passed : int
        The holders of each of them if nobody has it; less than any if a function runs with them.
    """

    def __init__(
        self, containers: Sequence[Any] = (), states: Sequence[Any] = (), passed: int = _RUNNING
    ) -> None:
        self.containers, self.states, self.passed = containers, states, passed


class Peer:
    """One end: asks, and answers while it waits for an answer."""

    lends = False
    """Whether this is the end of the student's, whose containers have twins at the other one."""

    def __init__(self, line: Line) -> None:
        self.line, self.exports, self.twins = line, Exports(), Twins(self.lends)
        self.writes_back, self.tells_classes = True, False
        self._lock, self._depth = threading.RLock(), 0
        self._questions = itertools.count(1)
        self._unneeded: deque[Handle] = deque()
        self._singles: dict[int, Any] = {}
        self._imported: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.draws = Draws()
        self._depth_of_bases = 0
        self._classes_sent: set[int] = set()
        self._unsent: dict[str, list[Any]] = {}
        self._crossed = _Crossed()
        self._asks_again = False

    # what differs between the two ends

    def make(self, handle: Handle, callable_: bool) -> Any:
        """Return what stands for an object of the other process."""
        raise NotImplementedError

    def handle_of(self, value: Any) -> Handle | None:
        """Return the handle of what stands for an object of the other process."""
        raise NotImplementedError

    def do(self, question: str, message: dict[str, Any], value: Any) -> Any:
        """Answer a question."""
        raise NotImplementedError

    def may_export(self, value: Any) -> bool:
        """Return whether the other process may have a handle of it."""
        raise NotImplementedError

    def failed(self, error: dict[str, Any]) -> Exception:
        """Return the exception for what the other process says has failed."""
        raise NotImplementedError

    def send(self, message: dict[str, Any], parts: Sequence[bytes]) -> None:
        """Send a message."""
        self.line.send_parts(message, parts)

    def receive(self) -> tuple[dict[str, Any], list[bytes]]:
        """Wait for a message."""
        return self.line.receive_parts()

    def hear(self, message: dict[str, Any]) -> None:
        """Take in what a message tells by the way."""
        if "unneeded" in message:
            self.exports.release(message["unneeded"])
        if "dropped" in message:
            self.twins.drop(message["dropped"])

    # what is the same

    def ask(self, question: str, value: Any = None, **more: Any) -> Any:
        """Ask the other process, and answer its questions until it answers."""
        with self._lock:
            if self._depth >= DEEPEST:
                raise RecursionError(f"more than {DEEPEST} calls between the two processes")
            encoder = self._encoder(lends=self.lends)
            header = self._header(encoder)
            encoder.passed.tensors.clear()
            node = encoder.encode(value)
            number = next(self._questions)
            self._depth += 1
            before = sys.getrecursionlimit()
            if self._depth > _SHALLOW:  # each call takes frames of ours, too
                sys.setrecursionlimit(before + _FRAMES)
            try:
                message = {"ask": question, "id": number, "value": node, **header, **more}
                self._send(message, encoder)
                while (reply := self._next_answer(number)) is None:
                    pass
                return self._read(number, *reply, encoder)
            finally:
                sys.setrecursionlimit(before)
                self._depth -= 1

    def _next_answer(self, number: int) -> tuple[dict[str, Any], list[bytes]] | None:
        """Return the next message, or None if it was a question, which is answered then."""
        try:
            message, parts = self.receive()
            self.hear(message)
            if "ask" in message:
                self.answer(message, parts)
                return None
        except BaseException as error:
            self.spoil(error)
            raise
        return None if self.outdated(message, number) else (message, parts)

    def _encoder(
        self, containers: Sequence[Any] = (), *, lends: bool = False, received: Passed | None = None
    ) -> Encoder:
        own = self.own if self.lends else None
        return Encoder(
            self._export, containers, twins=self.twins, lends=lends, own=own, received=received
        )

    def _decoder(self, parts: list[bytes], encoder: Encoder | None = None) -> Decoder:
        derive = None if self.lends else self.derive
        containers, sent = (encoder.numbered, encoder.passed) if encoder else ((), None)
        return Decoder(parts, self._import, containers, twins=self.twins, derive=derive, sent=sent)

    def own(self, encoder: Encoder, value: Any, as_base: Callable[[], Node]) -> Node:
        """Return the node of a value whose class derives from data, or None for any other."""
        kind: Any = type(value)
        planned = plan(kind)
        if planned is None or not self.may_export(value):
            return None
        _, names, single = planned
        number, name = self.exports.number(value), short(type(value).__name__)
        return ["derived", as_base(), number, name, list(names), single]

    def derive(self, decoder: Decoder, node: list[Any], depth: int) -> Any:
        """Return what stands for an object of a class that derives from data."""
        number: Any = node[2] if len(node) > 2 else None
        if type(number) is int and number in self._singles:
            position = len(decoder.numbered)
            decoder.decode(node[1], depth + 1)  # its parts are to be passed by
            del decoder.numbered[position:]
            return self._singles[number]
        instance = read_derived(decoder, node, depth, self._derived_handle)
        if node[5]:
            self._singles[number] = instance
        return instance

    def _derived_handle(self, number: Any, name: str, single: bool) -> Handle:
        if type(number) is not int or not 0 < number < 2**63 or len(self._singles) > MOST_EXPORTS:
            raise BadValue("expected the number of an object")
        handle = Handle(self, number, "singleton" if single else "object", name, "")
        handle.count = 1
        return handle

    def forget(self, handle: Handle) -> None:
        """Take note that an object of the other process is not needed any more."""
        self._unneeded.append(handle)

    def before(self, encoder: Encoder) -> dict[str, Any]:
        """Return what a message tells before its value."""
        header: dict[str, Any] = {}
        if news := self.twins.news(encoder):
            header["news"] = news
        # not later: what the value refers to may be gone when it is sent
        unsent = self._unsent
        if dropped := self.twins.dropped():
            unsent["dropped"] = [*unsent.get("dropped", ()), *dropped]
        if self._unneeded:
            unneeded = unsent.setdefault("unneeded", [])
            while self._unneeded:
                handle = self._unneeded.popleft()
                unneeded.append([handle.number, handle.count])
        return header | unsent

    def take(self, message: dict[str, Any], decoder: Decoder) -> None:
        """Take in what a message tells before its value."""
        crossed, self._crossed = self._crossed, _Crossed()
        self._lend_retained(message.get("meanwhile", ()), crossed.containers)
        if "news" in message:
            self.twins.hear(message["news"], decoder)

    def _lend_retained(self, pairs: Any, sent: Sequence[Any]) -> None:
        """Take in which containers that were sent the student's code has kept."""
        for pair in pairs:
            if type(pair) is not list or len(pair) != 2 or type(pair[0]) is not int:
                raise BadValue("expected the number of a container that is kept")
            if not 0 <= pair[0] < len(sent):
                raise BadValue("expected the number of a container that was sent")
            self.twins.lent(sent[pair[0]], pair[1])

    def spoil(self, error: BaseException) -> None:
        """Take note that a question stays without an answer."""

    def outdated(self, message: dict[str, Any], number: int) -> bool:
        """Return whether a message answers an earlier question, which nobody waits for."""
        return False

    def answer(self, message: dict[str, Any], parts: list[bytes]) -> None:
        """Answer one question of the other process."""
        number = message.get("id")
        reply: dict[str, Any]
        try:
            decoder = self._decoder(parts)
            self.take(message, decoder)
            decoder.passed.tensors.clear()
            value = decoder.decode(message.get("value"))
            decoder.finish()
            self.twins.settle()
        except self.caught as error:
            self._refuse(number, error)
            return
        before = _states(decoder.numbered)
        if self.lends:
            self._crossed = _Crossed(decoder.numbered, before)
        failed: dict[str, Any] = {}
        try:
            result = self.do(str(message["ask"]), message, value)
        except self.caught as error:
            if self.lost(error):
                raise
            failed, result = {"error": self.description_of(error) | self._class_of(error)}, None
        try:
            if self._crossed.containers is decoder.numbered:  # nothing has been asked meanwhile
                self._crossed = _Crossed()
            encoder = self._encoder(decoder.numbered, lends=self.lends, received=decoder.passed)
            header = self._header(encoder)
            node = encoder.encode(result)
            after = _states(decoder.numbered) if before else []
            changed = [
                [i, encoder.state(decoder.numbered[i])]
                for i, (old, new) in enumerate(zip(before, after, strict=True))
                if old != new and id(decoder.numbered[i]) not in self.twins.numbers
            ]
            del result
            decoder.passed.tensors.clear()  # they would be holders of parameters
            if self.lends and (retained := self._retained(decoder.numbered, _PASSED)):
                header["kept"] = retained
            if failed and not changed and not header:
                self._send({"id": number, **failed})
                return
            reply = {"id": number, "value": node, "changed": changed, **header, **failed}
            self._send(reply, encoder)
        except self.caught as error:
            self._refuse(number, error)

    def _refuse(self, number: Any, error: BaseException) -> None:
        """Answer with nothing but what has failed."""
        if self.lost(error):
            raise error
        self._send({"id": number, "error": self.description_of(error) | self._class_of(error)})

    def _retained(
        self,
        containers: Sequence[Any],
        passed: int,
        changed: Sequence[bool] = (),
        *,
        every: bool = True,
    ) -> list[list[int]]:
        """Return which containers somebody here still has, with the numbers that they get.

        Only parameters of networks count, unless ``every`` container does.
        """
        held = [  # by index: a loop over the containers would be one more holder
            _holders(containers, index) > passed
            or shares_memory(containers[index])
            or bool(changed and changed[index])
            for index in range(len(containers))
        ]
        _hold_parts(held, containers)
        pairs = []
        for index, is_held in enumerate(held):
            if is_held and (every or _is_parameter(containers[index])):
                number = self.twins.keep(containers[index])
                if number is not None:
                    pairs.append([index, number])
        return pairs

    def _header(self, encoder: Encoder) -> dict[str, Any]:
        """Return what a message tells before its value, and which containers are kept meanwhile."""
        retained = self._retained_meanwhile() if self.lends else []
        header = self.before(encoder)
        if retained:
            dropped = header.get("dropped", ())
            header["meanwhile"] = [pair for pair in retained if pair[1] not in dropped]
        return header

    def _retained_meanwhile(self) -> list[list[int]]:
        """Return which containers of the last message somebody has, while more is to come.

        So a function that is called back meets the very lists that it has given.
        """
        crossed, self._crossed = self._crossed, _Crossed()
        if not crossed.containers:
            return []
        small = sum(map(_size, crossed.states)) <= LARGEST_MEANWHILE
        if not small and not any(map(_is_parameter, crossed.containers)):
            return []
        now = _states([*crossed.containers])
        changed = [old != new for old, new in zip(crossed.states, now, strict=True)]
        retained = self._retained(crossed.containers, crossed.passed, changed, every=small)
        for index, number in retained:
            self.twins.has_changed(number, changed[index])
        return retained

    def _class_of(self, error: BaseException) -> dict[str, Any]:
        """Return what the other process needs to know of the class of an exception."""
        kind = type(error)
        if not _is_error(kind) or vars(builtins).get(kind.__name__) is kind or _own(kind.__name__):
            return {}
        try:
            return {"class": self._export(kind)}
        except (Unsendable, RecursionError):
            return {}

    def error_class_of(self, description: Any) -> Any:
        """Return the class of an exception of the other process, if it has one of its own."""
        node = description.get("class") if type(description) is dict else None
        if node is None:
            return None
        if type(node) is not list or not node or node[0] not in ("error", "yours"):
            raise BadValue("expected an exception class")
        kind = self._import(node)
        if not _is_error(kind):
            raise BadValue("expected an exception class")
        return kind

    caught: type[BaseException] = Exception

    def lost(self, error: BaseException) -> bool:
        """Return whether an error means that the line is of no use any more."""
        return isinstance(error, Gone)

    def description_of(self, error: BaseException) -> dict[str, Any]:
        """Return what the other process learns of an exception."""
        return described(error)

    def _send(self, message: dict[str, Any], encoder: Encoder | None = None) -> None:
        self._crossed = _Crossed([] if encoder is None or self.lends else encoder.numbered)
        self.send(message, encoder.parts if encoder else [])
        if encoder is not None:
            self._unsent = {}
            self.twins.sent()
            self.twins.settle()

    def _read(
        self, number: int, message: dict[str, Any], parts: list[bytes], encoder: Encoder
    ) -> Any:
        if type(message.get("id")) is not int or message["id"] != number:
            raise Gone("an answer to another question")
        if "error" in message and "changed" not in message:
            raise self.failed(message["error"])
        sent, decoder = encoder.numbered, self._decoder(parts, encoder)
        self.take(message, decoder)
        value = decoder.decode(message.get("value"))
        changed, actions = message.get("changed"), []
        if type(changed) is not list or len(changed) > len(sent):
            raise BadValue("expected a list of changed arguments")
        for pair in changed:
            if type(pair) is not list or len(pair) != 2 or type(pair[0]) is not int:
                raise BadValue("expected the number of an argument and what it holds")
            if not 0 <= pair[0] < len(sent):
                raise BadValue("expected the number of an argument")
            actions.append(decoder.restore(sent[pair[0]], pair[1]))
        decoder.finish()
        self._lend_retained(message.get("kept", ()), sent)
        for act in actions if self.writes_back else []:
            act()
        self.twins.settle()
        if self.lends:
            self._crossed = _Crossed(decoder.numbered, _states(decoder.numbered), _ANSWERED)
        if "error" in message:
            raise self.failed(message["error"])
        return value

    def _export(self, value: Any) -> Node:
        handle = self._handle(value)
        if handle is not None:
            if handle.peer is not self:
                raise Unsendable("expected a function or object of this student, got another's")
            return ["yours", handle.number]
        if not self.may_export(value):
            raise Unsendable(
                f"expected plain data or a function, got a {type(value).__name__}; "
                "it cannot cross to the other process"
            )
        name = short(getattr(value, "__name__", ""))
        if isinstance(value, type) and vars(builtins).get(name) is value:
            return ["builtin", name]
        number = self.exports.number(value)
        if _is_error(value):
            bases = [self._export(base) for base in value.__bases__ if _is_error(base)]
            return ["error", number, name, bases[:MOST_BASES]]
        if self.tells_classes and isinstance(value, type):
            if number in self._classes_sent:
                return ["class", number]
            self._classes_sent.add(number)
            return ["class", number, name, *self._class_node(value)]
        kind, type_name = _kind(value), short(type(value).__name__)
        more = [self._type_node(value)] if self.tells_classes and kind == "object" else []
        return ["handle", number, kind, type_name, name, callable(value), *more]

    def _class_node(self, kind: Any) -> list[Any]:
        """Return what the other process needs to know of a class."""
        bases: list[Node] = []
        self._depth_of_bases += 1
        try:
            if self._depth_of_bases < MOST_BASES and not issubclass(kind, BaseException):
                own = type.__dict__["__bases__"].__get__(kind)  # past what a metaclass says
                bases = [self._type_node_of(base) for base in own[:MOST_BASES]]
        finally:
            self._depth_of_bases -= 1
        return [bases, abilities_of(kind), hasattr(type(kind), "__iter__"), fields_of(kind)]

    def _type_node(self, value: Any) -> Node:
        return self._type_node_of(type(value))

    def _type_node_of(self, kind: Any) -> Node:
        name = name_of(kind)
        return self._export(kind) if name is None else ["python", name]

    def _import(self, node: list[Any]) -> Any:
        if node[0] == "yours" and len(node) == 2:
            return self.exports.find(node[1])
        if node[0] == "builtin" and len(node) == 2:
            return _builtin(node[1])
        if node[0] == "error" and len(node) == 4:
            return self._import_error(*node[1:])
        if node[0] in ("class", "python"):
            return self._import_class(node)
        if node[0] != "handle" or len(node) not in (6, 7):
            raise BadValue(f"expected a known kind of value, got {str(node[0])[:40]!r}")
        _, number, kind, type_name, name, callable_ = node[:6]
        texts = all(type(text) is str and len(text) <= 200 for text in (kind, type_name, name))
        if type(number) is not int or not 0 < number < 2**63 or type(callable_) is not bool:
            raise BadValue("expected the number of a function or object")
        if not texts or kind not in ("function", "class", "module", "object"):
            raise BadValue("expected the kind and the names of a function or object")
        handle = Handle(self, number, kind, type_name, name)
        handle.of = self._import_class(node[6]) if node[6:] else object
        if not isinstance(handle.of, type):
            raise BadValue("expected the class of an object")
        return self._import_once(number, lambda: self.make(handle, callable_))

    def _import_class(self, node: Any) -> Any:
        """Return a class of Python's own, or what stands for one of the other process."""
        if type(node) is not list or not node:
            raise BadValue("expected a class")
        if node[0] == "python":
            kind = NAMED.get(node[1]) if len(node) == 2 and type(node[1]) is str else None
            if kind is None:
                raise BadValue("expected the name of one of Python's own classes")
            return kind
        if node[0] != "class":
            return self._import(node)
        if len(node) not in (2, 7) or type(node[1]) is not int or not 0 < node[1] < 2**63:
            raise BadValue("expected the number of a class, and what it is")
        if len(node) == 2:
            kind = self._imported.get(node[1])
            if kind is None:
                kind = self._class_again(node[1])
            if not isinstance(kind, type):
                raise BadValue("expected the number of a class")
            self._handle(kind).count += 1
            return kind
        if type(node[2]) is not str or len(node[2]) > 200:
            raise BadValue("expected the name of a class")
        self._depth_of_bases += 1
        try:
            if self._depth_of_bases > MOST_BASES:
                raise BadValue(f"expected at most {MOST_BASES} base classes in a row")
            description = read_class(node[3:], self._import_class)
        finally:
            self._depth_of_bases -= 1
        name = node[2] if node[2].isidentifier() else "object"
        handle = Handle(self, node[1], "class", "type", name)
        handle.of = description
        return self._import_once(node[1], lambda: self.make(handle, True))

    def _class_again(self, number: int) -> Any:
        """Ask for a class that has been told before, and forgotten here meanwhile."""
        if self._asks_again:
            raise BadValue("expected a class, got a number never given out")
        self._asks_again = True
        try:
            kind = self.ask("class", (number,))
        finally:
            self._asks_again = False
        handle = self._handle(kind) if isinstance(kind, type) else None
        if handle is None or handle.number != number:
            raise BadValue("expected the class of this number")
        return kind

    def tell_class_again(self, number: Any) -> Any:
        """Return a class to be told in full, with its bases."""
        kind = self.exports.find(number)
        self._classes_sent.clear()
        return kind

    def _import_error(self, number: Any, name: Any, nodes: Any) -> Any:
        """Return what stands for an exception class of the other process."""
        if type(number) is not int or not 0 < number < 2**63:
            raise BadValue("expected the number of an exception class")
        if type(name) is not str or len(name) > 200 or not name.isidentifier():
            raise BadValue("expected the name of an exception class")
        if type(nodes) is not list or len(nodes) > MOST_BASES:
            raise BadValue("expected the base classes of an exception class")
        self._depth_of_bases += 1
        try:
            if self._depth_of_bases > MOST_BASES:
                raise BadValue(f"expected at most {MOST_BASES} base classes in a row")
            bases = [self._import(node) for node in nodes if type(node) is list and node]
        finally:
            self._depth_of_bases -= 1
        if not all(_is_error(base) for base in bases):
            raise BadValue("expected base classes that are exceptions")
        handle = Handle(self, number, "class", "type", name)
        try:
            return self._import_once(number, lambda: error_class(handle, bases or [Exception]))
        except TypeError as error:  # no order of the bases, or their layouts do not fit
            raise BadValue(f"expected base classes that go together: {error}") from None

    def _import_once(self, number: int, make: Callable[[], Any]) -> Any:
        """Return what stands for an object, the same as before while somebody has it."""
        stand_in = self._imported.get(number)
        if stand_in is None:
            stand_in = self._imported[number] = make()
            handle = self._handle(stand_in)
            weakref.finalize(stand_in, self._unneeded.append, handle).atexit = False
        self._handle(stand_in).count += 1
        return stand_in

    def _handle(self, value: Any) -> Any:
        if isinstance(value, ErrorClass) or is_derived(value):
            return value._gradebox
        return self.handle_of(value)


def _is_error(value: Any) -> bool:
    """Return whether a value is an exception class that a test may raise and catch."""
    return (
        isinstance(value, type) and issubclass(value, Exception) and not issubclass(value, _NEVER)
    )


def _builtin(name: Any) -> Any:
    """Return one of Python's own classes."""
    kind = vars(builtins).get(name) if type(name) is str else None
    if not isinstance(kind, type) or (issubclass(kind, BaseException) and not _is_error(kind)):
        raise BadValue("expected the name of one of Python's own classes")
    return kind


_NO_LIMITS = Limits(items=2**62)  # what has come in was within the limits


def _size(state: Any) -> int:
    """Return about how many bytes one of :func:`_states` has."""
    parts = (state[-1],) if isinstance(state[-1], bytes) else (state[0], *state[-1])
    return sum(map(len, parts))


def _is_parameter(value: Any) -> bool:
    """Return whether a value is a parameter of a network."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Parameter)


def _holders(containers: Sequence[Any], index: int) -> int:
    """Return how many references there are to a container besides that of the list."""
    return sys.getrefcount(containers[index]) - _OWN


_OWN = 0
_OWN = _holders([[]], 0)
"""What the count itself takes, and the list, which depends on the version of Python."""


def _hold_parts(held: list[bool], containers: Sequence[Any]) -> None:
    """Count as held what is part of a container that is held, such as a network's parameters."""
    indices = {id(value): index for index, value in enumerate(containers)}
    waiting: list[Any] = [value for value, is_held in zip(containers, held, strict=True) if is_held]
    seen = set(map(id, waiting))
    while waiting:
        for part in gc.get_referents(waiting.pop()):
            index = indices.get(id(part))
            # a tuple has no number, nor has a dict of attributes, but what they hold may have one
            if id(part) in seen or (index is None and type(part) not in (tuple, dict, list)):
                continue
            seen.add(id(part))
            waiting.append(part)
            if index is not None:
                held[index] = True


def _states(containers: list[Any]) -> list[Any]:
    """Return what containers hold, in a form to compare."""
    if all(type(value) is np.ndarray for value in containers):
        return [
            (array.dtype, array.shape, array.flags.writeable, array.tobytes())
            for array in containers
        ]
    encoder = Encoder(lambda other: ["object", id(other)], containers, _NO_LIMITS)
    states = []
    for value in containers:
        encoder.parts = []
        states.append((repr(encoder.state(value)), encoder.parts))
    return states


def _kind(value: Any) -> str:
    if isinstance(value, type):
        return "class"
    if isinstance(value, types.ModuleType):
        return "module"
    functions = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc, partial)
    return "function" if isinstance(value, functions) else "object"


def short(value: Any) -> str:
    """Return a name, or an empty text for what is none."""
    return str.__str__(value)[:200] if isinstance(value, str) else ""


def source_of_error(error: BaseException | None) -> StudentError | None:
    """Return the student's own error behind an exception, if there is one."""
    for _ in range(5):
        if error is None or isinstance(error, StudentError):
            return error
        error = error.__cause__
    return None


def message_of(error: BaseException) -> str:
    """Return the text of an exception, even of one that cannot give it."""
    try:
        return str(str(error))[:MOST_TEXT]
    except BaseException:
        return ""


def described(error: BaseException) -> dict[str, Any]:
    """Return what can be told of an exception."""
    plain = all(type(value) in (str, int, float, bool, type(None)) for value in error.args)
    small = plain and len(repr(error.args)) < MOST_TEXT and len(error.args) <= 5
    return {
        "types": [short(kind.__name__) for kind in type(error).__mro__[:20]],
        "message": message_of(error),
        "args": list(error.args) if small else None,
        "attributes": _attributes(error),
    }


def _attributes(error: BaseException) -> dict[str, Any]:
    """Return what an exception holds, if it is little and plain."""
    attributes = {short(name): value for name, value in vars(error).items()}
    return (
        attributes
        if _are_plain([*attributes.values()]) and len(repr(attributes)) < MOST_TEXT
        else {}
    )


_NEVER = (StopIteration, StopAsyncIteration, BaseExceptionGroup)


@lru_cache(maxsize=100)
def _mixed(name: str) -> type[Exception]:
    return type("StudentError", (StudentError, _own(name) or Exception), {})


def caused(error: Exception, cause: Exception) -> Exception:
    """Return an exception with its cause in the other process, and its own source behind that."""
    source = error.__cause__
    if isinstance(source, StudentError) and isinstance(cause, StudentError):
        cause.trace = source.trace
    elif source is not None:
        cause.__cause__ = source
    error.__cause__ = cause
    return error


def rebuilt(description: Any, trace: Any, kind: Any = None) -> Exception:
    """Return an exception of Python's own, or of ours, for one of the other process.

    Parameters
    ----------
    description : dict
        What :func:`described` returned there.
    trace : str
        Its traceback.
    kind : type, optional
        The class that stands for its class, where that is none of Python's own.
    """
    names = description.get("types") if type(description) is dict else None
    if type(names) is not list or not 0 < len(names) <= 20:
        raise BadValue("expected the types of an exception")
    if not all(type(name) is str and len(name) <= 200 for name in names):
        raise BadValue("expected the names of the types of an exception")
    message, args = description.get("message"), description.get("args")
    if type(message) is not str or type(trace) is not str:
        raise BadValue("expected the text of an exception")
    source = StudentError(names[0], message[:MOST_TEXT], trace[:MOST_TEXT])
    if kind is not None:
        return _of_kind(kind, description, source)
    base = next(filter(None, map(_own, names)), None)
    if base is None:
        return source
    plain = (str, int, float, bool, type(None))
    fits = (
        type(args) is list and len(args) <= 5 and all(type(argument) in plain for argument in args)
    )
    try:
        if names[0] != base.__name__:
            return (
                source
                if base is Exception
                else _mixed(base.__name__)(names[0], source.message, source.trace)
            )
        error = base(*args) if fits else base(message)
    except Exception:
        return source
    error.__cause__ = source
    return error


def _of_kind(kind: Any, description: dict[str, Any], source: StudentError) -> Exception:
    """Return an exception of a class of a test's or a student's, with the plain attributes."""
    error: Any = kind.__new__(kind)
    args, attributes = description.get("args"), description.get("attributes")
    error.args = tuple(args) if type(args) is list and _are_plain(args) else (source.message,)
    if type(attributes) is dict and _are_plain([*attributes.values()]):
        vars(error).update(attributes)
    if isinstance(kind, ErrorClass):
        error.name, error.message, error.trace = source.name, source.message, source.trace
    error.__cause__ = None if isinstance(kind, ErrorClass) else source
    return error


def _are_plain(values: Sequence[Any]) -> bool:
    return len(values) <= 20 and all(
        type(value) in (str, int, float, bool, type(None)) for value in values
    )


def _own(name: str) -> type[Exception] | None:
    kind = np.linalg.LinAlgError if name == "LinAlgError" else getattr(builtins, name, None)
    if not isinstance(kind, type) or not issubclass(kind, Exception) or kind is Exception:
        return Exception if kind is Exception else None
    return None if issubclass(kind, _NEVER) else kind
