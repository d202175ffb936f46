"""The names of a student's notebook, in a process that the student's code cannot reach.

Two processes share a line. One, the *student*, has run the cells of a notebook and calls
:func:`serve_names`. The other, the *checker*, holds the tests: it makes a :class:`Student`, in which
plain values arrive as copies and functions and objects as a :class:`Proxy`, and :func:`run_tests`
runs the test cells there. A function that a test passes as an argument is called back through the
same line, to any moderate depth. What a function does to lists, dicts, sets, arrays, tensors and
random generators that it is given is done to the checker's own too, as in one process.

The checker believes nothing that comes in: :mod:`gradebox.values` builds exact types of Python,
NumPy and torch, and no method of a proxy that NumPy, torch or ``copy`` look for on their own goes to
the student's process. ``==`` between a proxy and anything else is identity.
"""

import ast
import builtins
import contextlib
import inspect
import itertools
import linecache
import math
import operator
import signal
import sys
import threading
import time
import traceback
import types
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np

from gradebox.values import BadValue, Decoder, Encoder, Node, Unsendable
from gradebox.wire import Gone, Line, TooLong

DEEPEST = 32
"""So many calls may wait for one another on the line."""

GRACE = 3.0
"""Seconds that a call has to end when it is interrupted."""

MOST_PRINTED = 4 * 2**20
"""So many characters that a student's functions print are passed on; the rest is dropped."""

MOST_EXPORTS = 100_000

_TEXT = 100_000


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


# --- both ends --------------------------------------------------------------------------------


class _Exports:
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


class _Handle:
    """The number of an object of the other process, and how often it has come."""

    def __init__(self, peer: "_Peer", number: int, kind: str, type_name: str, name: str) -> None:
        self.peer, self.number, self.count = peer, number, 0
        self.kind, self.type_name, self.name = kind, type_name, name


class _Peer:
    """One end: asks, and answers while it waits for an answer."""

    def __init__(self, line: Line) -> None:
        self.line, self.exports = line, _Exports()
        self.writes_back = True
        self._lock, self._depth = threading.RLock(), 0
        self._questions = itertools.count(1)
        self._unneeded: deque[_Handle] = deque()
        self._met: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

    # what differs between the two ends

    def make(self, handle: _Handle, callable_: bool) -> Any:
        """Return what stands for an object of the other process."""
        raise NotImplementedError

    def handle_of(self, value: Any) -> _Handle | None:
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
        self.exports.release(message.get("unneeded", []))

    # what is the same

    def ask(self, question: str, value: Any = None, **more: Any) -> Any:
        """Ask the other process, and answer its questions until it answers."""
        with self._lock:
            if self._depth >= DEEPEST:
                raise RecursionError(f"more than {DEEPEST} calls between the two processes")
            encoder = Encoder(self._export)
            node = encoder.encode(value)
            number = next(self._questions)
            self._depth += 1
            try:
                self._send({"ask": question, "id": number, "value": node, **more}, encoder.parts)
                while (came := self._next_answer(number)) is None:
                    pass
                return self._read(number, *came, encoder.known)
            finally:
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

    def spoil(self, error: BaseException) -> None:
        """Take note that a question stays without an answer."""

    def outdated(self, message: dict[str, Any], number: int) -> bool:
        """Return whether a message answers an earlier question, which nobody waits for."""
        return False

    def answer(self, message: dict[str, Any], parts: list[bytes]) -> None:
        """Answer one question of the other process."""
        number = message.get("id")
        reply: dict[str, Any]
        encoder = Encoder(self._export)
        try:
            decoder = Decoder(parts, self._import)
            value = decoder.decode(message.get("value"))
            decoder.finish()
            before = _states(decoder.known)
            result = self.do(str(message["ask"]), message, value)
            encoder = Encoder(self._export, decoder.known)
            node = encoder.encode(result)
            after = _states(decoder.known) if before else []
            changed = [
                [i, encoder.state(decoder.known[i])]
                for i, (old, new) in enumerate(zip(before, after, strict=True))
                if old != new
            ]
            reply = {"id": number, "value": node, "changed": changed}
            self._send(reply, encoder.parts)
        except self.caught as error:
            if self.lost(error):
                raise
            self._send({"id": number, "error": self.told(error)}, [])

    caught: type[BaseException] = Exception

    def lost(self, error: BaseException) -> bool:
        """Return whether an error means that the line is of no use any more."""
        return isinstance(error, Gone)

    def told(self, error: BaseException) -> dict[str, Any]:
        """Return what the other process learns of an exception."""
        return _error(error)

    def _send(self, message: dict[str, Any], parts: Sequence[bytes]) -> None:
        unneeded = []
        while self._unneeded:
            handle = self._unneeded.popleft()
            unneeded.append([handle.number, handle.count])
        self.send({**message, "unneeded": unneeded}, parts)

    def _read(
        self, number: int, message: dict[str, Any], parts: list[bytes], sent: list[Any]
    ) -> Any:
        if type(message.get("id")) is not int or message["id"] != number:
            raise Gone("an answer to another question")
        if "error" in message:
            raise self.failed(message["error"])
        decoder = Decoder(parts, self._import, sent)
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
        for act in actions if self.writes_back else []:
            act()
        return value

    def _export(self, value: Any) -> Node:
        handle = self.handle_of(value)
        if handle is not None:
            if handle.peer is not self:
                raise Unsendable("expected a function or object of this student, got another's")
            return ["yours", handle.number]
        if not self.may_export(value):
            raise Unsendable(
                f"expected plain data or a function, got a {type(value).__name__}; "
                "it cannot cross to the other process"
            )
        name = _short(getattr(value, "__name__", ""))
        type_name = _short(type(value).__name__)
        number = self.exports.number(value)
        return ["handle", number, _kind(value), type_name, name, callable(value)]

    def _import(self, node: list[Any]) -> Any:
        if node[0] == "yours" and len(node) == 2:
            return self.exports.find(node[1])
        if node[0] != "handle" or len(node) != 6:
            raise BadValue(f"expected a known kind of value, got {str(node[0])[:40]!r}")
        _, number, kind, type_name, name, callable_ = node
        texts = all(type(text) is str and len(text) <= 200 for text in (kind, type_name, name))
        if type(number) is not int or not 0 < number < 2**63 or type(callable_) is not bool:
            raise BadValue("expected the number of a function or object")
        if not texts or kind not in ("function", "class", "module", "object"):
            raise BadValue("expected the kind and the names of a function or object")
        found = self._met.get(number)
        if found is None:
            handle = _Handle(self, number, kind, type_name, name)
            found = self._met[number] = self.make(handle, callable_)
            weakref.finalize(found, self._unneeded.append, handle).atexit = False
        found_handle = self.handle_of(found)
        assert found_handle is not None
        found_handle.count += 1
        return found


def _states(known: list[Any]) -> list[Any]:
    """Return what containers hold, in a form to compare."""
    found = []
    for value in known:
        encoder = Encoder(lambda other: ["object", id(other)], known)
        found.append((repr(encoder.state(value)), encoder.parts))
    return found


def _kind(value: Any) -> str:
    if isinstance(value, type):
        return "class"
    if isinstance(value, types.ModuleType):
        return "module"
    functions = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, np.ufunc, partial)
    return "function" if isinstance(value, functions) else "object"


def _short(value: Any) -> str:
    return str.__str__(value)[:200] if isinstance(value, str) else ""


def _said(error: BaseException) -> str:
    try:
        return str(str(error))[:_TEXT]
    except BaseException:
        return ""


def _error(error: BaseException) -> dict[str, Any]:
    """Return what can be told of an exception."""
    plain = all(type(one) in (str, int, float, bool, type(None)) for one in error.args)
    small = plain and len(repr(error.args)) < _TEXT and len(error.args) <= 5
    return {
        "types": [_short(one.__name__) for one in type(error).__mro__[:20]],
        "message": _said(error),
        "args": list(error.args) if small else None,
    }


_NEVER = (StopIteration, StopAsyncIteration, BaseExceptionGroup)


@lru_cache(maxsize=100)
def _mixed(base: type[Exception]) -> type[Exception]:
    return type("StudentError", (StudentError, base), {})


def _rebuilt(told: Any, trace: Any) -> Exception:
    """Return an exception of Python's own, or of ours, for one of the other process."""
    names = told.get("types") if type(told) is dict else None
    if type(names) is not list or not 0 < len(names) <= 20:
        raise BadValue("expected the types of an exception")
    if not all(type(name) is str and len(name) <= 200 for name in names):
        raise BadValue("expected the names of the types of an exception")
    message, args = told.get("message"), told.get("args")
    if type(message) is not str or type(trace) is not str:
        raise BadValue("expected the text of an exception")
    source = StudentError(names[0], message[:_TEXT], trace[:_TEXT])
    base = next(filter(None, map(_own, names)), None)
    if base is None:
        return source
    plain = (str, int, float, bool, type(None))
    fits = type(args) is list and len(args) <= 5 and all(type(one) in plain for one in args)
    try:
        if names[0] != base.__name__:
            return (
                source
                if base is Exception
                else _mixed(base)(names[0], source.message, source.trace)
            )
        made = base(*args) if fits else base(message)
    except Exception:
        return source
    made.__cause__ = source
    return made


def _own(name: str) -> type[Exception] | None:
    found = np.linalg.LinAlgError if name == "LinAlgError" else getattr(builtins, name, None)
    if not isinstance(found, type) or not issubclass(found, Exception) or found is Exception:
        return Exception if found is Exception else None
    return None if issubclass(found, _NEVER) else found


# --- the student's process --------------------------------------------------------------------


class Callback:
    """A function of the checker, which it calls with copies of the arguments."""

    def __init__(self, handle: _Handle) -> None:
        self.__name__ = self.__qualname__ = handle.name or handle.type_name
        self._handle = handle

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""
        server = self._handle.peer
        if not server._depth and not getattr(server, "serving", True):
            raise RuntimeError(f"{self.__name__} can be called only while it is being tested")
        return server.ask("call", (self, args, kwargs))

    def __deepcopy__(self, memo: Any) -> "Callback":
        return self

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"


class _Printed:
    """A stream whose text goes with the next message."""

    encoding = "utf-8"

    def __init__(self, name: str, texts: list[list[str]]) -> None:
        self.name, self._texts, self._left = name, texts, MOST_PRINTED

    def write(self, text: str) -> int:
        """Keep text."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        kept = text[: self._left]
        self._left -= len(kept)
        if self._texts and self._texts[-1][0] == self.name:
            self._texts[-1][1] += kept
        elif kept:
            self._texts.append([self.name, kept])
        return len(text)

    def flush(self) -> None:
        """Do nothing."""

    def isatty(self) -> bool:
        """Return False."""
        return False


class _Server(_Peer):
    caught = BaseException  # also SystemExit, and the interruption of a call that takes too long

    def __init__(self, line: Line, namespace: Mapping[str, Any]) -> None:
        super().__init__(line)
        self._namespace, self.serving, self.inside = namespace, False, 0
        self.printed: list[list[str]] = []

    def make(self, handle: _Handle, callable_: bool) -> Any:
        return Callback(handle)

    def handle_of(self, value: Any) -> _Handle | None:
        return value._handle if type(value) is Callback else None

    def may_export(self, value: Any) -> bool:
        return True

    def failed(self, error: dict[str, Any]) -> Exception:
        return _rebuilt(error, "")

    def outdated(self, message: dict[str, Any], number: int) -> bool:
        return type(message.get("id")) is int and message["id"] < number

    def told(self, error: BaseException) -> dict[str, Any]:
        try:
            lines = traceback.format_exception(error, limit=-20)
        except Exception:
            lines = []
        return {**_error(error), "trace": "".join(lines)[-_TEXT:]}

    def send(self, message: dict[str, Any], parts: Sequence[bytes]) -> None:
        printed, self.printed[:] = list(self.printed), []
        super().send({**message, "printed": printed}, parts)

    def do(self, question: str, message: dict[str, Any], value: Any) -> Any:
        self.inside += 1
        try:
            return _QUESTIONS[question](self._namespace, *value)
        finally:
            self.inside -= 1

    def serve(self) -> None:
        """Answer until the checker ends, or says that this is all for now."""
        self.serving = True
        out, err = (_Printed(name, self.printed) for name in ("stdout", "stderr"))
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):  # type: ignore[type-var]
                while True:
                    message, parts = self.receive()
                    self.hear(message)
                    if message.get("ask") == "end":
                        return
                    if "ask" in message:
                        self.answer(message, parts)
        except Gone:
            return
        finally:
            self.serving = False


def serve_names(line: Line, namespace: Mapping[str, Any]) -> None:
    """Let a checker use the names of a notebook, until it ends or has enough for now.

    An interruption (SIGINT) ends the call that is under way, and nothing else.

    Parameters
    ----------
    line : Line
        The line to the checker.
    namespace : mapping
        The names, such as ``shell.user_ns``.
    """
    server = _Server(line, namespace)
    main = threading.current_thread() is threading.main_thread()

    def interrupted(number: int, frame: Any) -> None:
        if server.inside:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupted) if main else None
    try:
        server.serve()
    finally:
        if main:
            signal.signal(signal.SIGINT, before)


def _names(namespace: Mapping[str, Any]) -> list[str]:
    return [name for name in namespace if isinstance(name, str) and not name.startswith("_")]


def _describe(namespace: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """Return what ``inspect`` tells of a function, as text."""
    found: dict[str, Any] = {
        "doc": _long(getattr(value, "__doc__", None)),
        "qualname": _short(getattr(value, "__qualname__", "")),
        "parameters": None,
    }
    with contextlib.suppress(TypeError, ValueError):
        found["parameters"] = [
            [one.name, int(one.kind), one.default is not one.empty]
            for one in inspect.signature(value).parameters.values()
        ]
    return found


def _long(value: Any) -> str | None:
    return str.__str__(value)[:_TEXT] if isinstance(value, str) else None


def _source(namespace: Mapping[str, Any], value: Any) -> str:
    return inspect.getsource(value)[:_TEXT]


def _advance(namespace: Mapping[str, Any], iterator: Any) -> tuple[Any, ...]:
    for item in iterator:
        return (item,)
    return ()


def _copied(namespace: Mapping[str, Any], value: Any, deep: bool) -> Any:
    import copy

    return copy.deepcopy(value) if deep else copy.copy(value)


_BINARY = (
    *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow"),
    *("and_", "or_", "xor", "lshift", "rshift"),
)
_OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(operator, name) for name in _BINARY},
    **{n: getattr(operator, n) for n in ("neg", "pos", "abs", "invert", "contains")},
    **{n: getattr(operator, n) for n in ("getitem", "setitem", "delitem")},
    **{one.__name__: one for one in (len, iter, bool, str, repr, int, float, isinstance)},
}

_QUESTIONS: dict[str, Callable[..., Any]] = {
    "names": _names,
    "get": lambda namespace, name: namespace[name],
    "call": lambda namespace, function, args, kwargs: function(*args, **kwargs),
    "getattr": lambda namespace, value, name: getattr(value, name),
    "setattr": lambda namespace, value, name, new: setattr(value, name, new),
    "operate": lambda namespace, name, *values: _OPERATIONS[name](*values),
    "next": _advance,
    "copy": _copied,
    "describe": _describe,
    "source": _source,
}


# --- the checker ------------------------------------------------------------------------------

_PLAIN_NAMES = frozenset(("__name__", "__qualname__"))


class Proxy:
    """A function, class or object of the student's process."""

    __slots__ = ("__weakref__", "_gradebox")
    __array_ufunc__ = None  # NumPy leaves the operator to the proxy
    _gradebox: _Handle

    def __getattr__(self, name: str) -> Any:
        handle = self._gradebox
        if name in _PLAIN_NAMES and (handle.name or name == "__qualname__"):
            return handle.name if name == "__name__" else _described(self)["qualname"]
        if name.startswith("__"):  # what NumPy, torch, copy … look for without being asked
            raise AttributeError(f"{self!r} has no attribute {name!r} that the checker may see")
        return handle.peer.ask("getattr", (self, name))

    def __setattr__(self, name: str, value: Any) -> None:
        self._gradebox.peer.ask("setattr", (self, name, value))

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return hash((id(self._gradebox.peer), self._gradebox.number))

    def __repr__(self) -> str:
        handle = self._gradebox
        return f"<the student's {handle.kind} {handle.name or handle.type_name}>"

    def __copy__(self) -> Any:
        return self._copied(False)

    def __deepcopy__(self, memo: Any) -> Any:
        return self._copied(True)

    def _copied(self, deep: bool) -> Any:
        if self._gradebox.kind != "object":
            return self
        return self._gradebox.peer.ask("copy", (self, deep))

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"{self!r} cannot be pickled")


class _Callable(Proxy):
    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._gradebox.peer.ask("call", (self, args, kwargs))

    @property
    def __signature__(self) -> inspect.Signature:
        told = _described(self)["parameters"]
        if told is None:
            raise AttributeError("__signature__")
        return inspect.Signature(
            [
                inspect.Parameter(name, kind, default=... if default else inspect.Parameter.empty)
                for name, kind, default in told
            ]
        )

    def __instancecheck__(self, value: Any) -> bool:
        if not isinstance(value, Proxy):
            return False
        return self._gradebox.peer.ask("operate", ("isinstance", value, self)) is True


class _Object(Proxy):
    __slots__ = ()

    def _operate(self, name: str, *values: Any) -> Any:
        return self._gradebox.peer.ask("operate", (name, *values))

    def __len__(self) -> int:
        return self._operate("len", self)

    def __iter__(self) -> Iterator[Any]:
        iterator = self._operate("iter", self)
        while item := self._gradebox.peer.ask("next", (iterator,)):
            yield _one(item)

    def __next__(self) -> Any:
        item = self._gradebox.peer.ask("next", (self,))
        if not item:
            raise StopIteration
        return _one(item)

    def __getitem__(self, key: Any) -> Any:
        return self._operate("getitem", self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._operate("setitem", self, key, value)

    def __delitem__(self, key: Any) -> None:
        self._operate("delitem", self, key)

    def __contains__(self, item: Any) -> bool:
        return self._operate("contains", self, item) is True

    def __bool__(self) -> bool:
        return self._operate("bool", self) is True

    def __int__(self) -> int:
        return self._operate("int", self)

    def __float__(self) -> float:
        return self._operate("float", self)

    def __str__(self) -> str:
        return self._operate("str", self)

    def __neg__(self) -> Any:
        return self._operate("neg", self)

    def __pos__(self) -> Any:
        return self._operate("pos", self)

    def __abs__(self) -> Any:
        return self._operate("abs", self)

    def __invert__(self) -> Any:
        return self._operate("invert", self)


class _CallableObject(_Callable, _Object):
    __slots__ = ()


def _binary(name: str) -> None:
    def forward(self: Any, other: Any) -> Any:
        return self._operate(name, self, other)

    def backward(self: Any, other: Any) -> Any:
        return self._operate(name, other, self)

    short = name.rstrip("_")
    setattr(_Object, f"__{short}__", forward)
    setattr(_Object, f"__r{short}__", backward)


for _name in _BINARY:
    _binary(_name)


def _one(item: Any) -> Any:
    if type(item) is not tuple or len(item) != 1:
        raise BadValue("expected one item of an iterator")
    return item[0]


def _described(proxy: Proxy) -> dict[str, Any]:
    """Return name, documentation and parameters of a student's function, as plain text."""
    told = proxy._gradebox.peer.ask("describe", (proxy,))
    if type(told) is not dict or type(told.get("qualname")) is not str:
        raise BadValue("expected the description of a function")
    if type(told.get("doc")) not in (str, type(None)):
        raise BadValue("expected the documentation of a function")
    parameters = told.get("parameters")
    if parameters is not None:
        if type(parameters) is not list or not all(_is_parameter(one) for one in parameters):
            raise BadValue("expected the parameters of a function")
        told["parameters"] = [
            (name, inspect._ParameterKind(kind), default) for name, kind, default in parameters
        ]
    return told


def _is_parameter(one: Any) -> bool:
    return (
        type(one) is list
        and [type(field) for field in one] == [str, int, bool]
        and one[0].isidentifier()
        and 0 <= one[1] <= 4
    )


def source_of(proxy: Proxy) -> str:
    """Return the source of a student's function or class, as its process tells it."""
    source = proxy._gradebox.peer.ask("source", (proxy,))
    if type(source) is not str:
        raise BadValue("expected a source")
    return source


def documentation_of(proxy: Proxy) -> str | None:
    """Return the documentation of a student's function or class."""
    return _described(proxy)["doc"]


for _class in (Proxy, _Callable, _Object, _CallableObject):
    type.__setattr__(_class, "__doc__", property(documentation_of))


class Student(_Peer):
    """The names of a student's notebook, in the checker.

    Parameters
    ----------
    line : Line
        The line to a process that runs :func:`serve_names`.
    seconds : float
        The limit of one call, with all that it calls back.
    interrupt : callable, optional
        Interrupts the student's process, say by SIGINT, when a call takes too long. Without it, or
        when the call still does not end, nothing more is asked of that process.
    writes_back : bool
        Whether a function may change lists, arrays … that it is given, as in one process.

    Raises
    ------
    StudentError
        And what is derived from it, in every method and every proxy.
    """

    def __init__(
        self,
        line: Line,
        *,
        seconds: float = 30.0,
        interrupt: Callable[[], None] | None = None,
        writes_back: bool = True,
    ) -> None:
        super().__init__(line)
        self.seconds, self.writes_back, self._interrupt = seconds, writes_back, interrupt
        self.until = math.inf
        """No call lasts beyond this time of ``time.monotonic``."""
        self.troubles: list[str] = []
        """What no honest function does, in the order in which it happened."""
        self.gone = ""
        """Why nothing can be asked any more; empty while something can."""
        self._call_until, self._late, self._printed_left = math.inf, False, MOST_PRINTED

    def names(self) -> list[str]:
        """Return the names that the student's cells have defined."""
        found = self.ask("names", ())
        if type(found) is not list or not all(type(name) is str for name in found):
            raise BadValue("expected a list of names")
        return found

    def __getitem__(self, name: str) -> Any:
        """Return a copy of a plain value, or the proxy of a function or object."""
        return self.ask("get", (name,))

    def end(self) -> None:
        """Let the student's process go on with its cells."""
        if not self.gone:
            self.send({"ask": "end", "id": 0}, [])

    def ask(self, question: str, value: Any = None, **more: Any) -> Any:
        """Ask, within the limits of time."""
        if self.gone:
            raise StudentGone("StudentGone", self.gone)
        if not self._depth:
            self._call_until, self._late = min(time.monotonic() + self.seconds, self.until), False
        if self._late or time.monotonic() >= self._call_until:
            raise self._timeout()
        try:
            return super().ask(question, value, **more)
        except BadValue as error:
            self.troubles.append(f"the student's process sent what is no value: {error}")
            raise

    def make(self, handle: _Handle, callable_: bool) -> Any:
        is_object = handle.kind == "object"
        kinds = (Proxy, _Callable, _Object, _CallableObject)
        proxy = object.__new__(kinds[callable_ + 2 * is_object])
        object.__setattr__(proxy, "_gradebox", handle)
        return proxy

    def handle_of(self, value: Any) -> _Handle | None:
        return value._gradebox if isinstance(value, Proxy) else None

    def may_export(self, value: Any) -> bool:
        return callable(value)

    def failed(self, error: dict[str, Any]) -> Exception:
        if self._late:
            return self._timeout()
        return _rebuilt(error, error.get("trace", "") if type(error) is dict else "")

    def lost(self, error: BaseException) -> bool:
        return bool(self.gone)

    def spoil(self, error: BaseException) -> None:
        if not self.gone:
            late = isinstance(error, StudentTimeout | _Late)
            self.gone = "it took too long" if late else "it ended, or makes no sense any more"
            self.troubles.append(f"nothing more can be asked of the student's process: {self.gone}")

    def send(self, message: dict[str, Any], parts: Sequence[bytes]) -> None:
        left = max(self._call_until - time.monotonic(), GRACE if self._late else 0.01)
        try:
            self.line.send_parts(message, parts, left if math.isfinite(left) else self.seconds)
        except TimeoutError:
            error = self._timeout()
            self.spoil(error)
            raise error from None
        except Gone as error:
            self.spoil(error)
            raise StudentGone("StudentGone", self.gone) from None

    def receive(self) -> tuple[dict[str, Any], list[bytes]]:
        try:
            try:
                return self.line.receive_parts(max(self._call_until - time.monotonic(), 0.0))
            except TimeoutError:
                if self._interrupt is None or self._late:
                    raise self._timeout() from None
                self._late, self._call_until = True, time.monotonic() + GRACE
                self._interrupt()
                return self.line.receive_parts(GRACE)
        except StudentTimeout:
            raise
        except TimeoutError:
            raise self._timeout() from None
        except Gone as error:
            self.spoil(error)
            raise StudentGone("StudentGone", self.gone) from None

    def hear(self, message: dict[str, Any]) -> None:
        super().hear(message)
        printed = message.get("printed", [])
        if type(printed) is not list or not all(_is_printed(one) for one in printed):
            raise BadValue("expected what was printed")
        for name, text in printed:
            text = text[: self._printed_left]
            self._printed_left -= len(text)
            getattr(sys, name).write(text)

    def do(self, question: str, message: dict[str, Any], value: Any) -> Any:
        if self._late:
            raise self._timeout()
        if question != "call" or type(value) is not tuple or len(value) != 3:
            raise BadValue("expected a call")
        function, args, kwargs = value
        if not callable(function) or type(args) is not tuple or type(kwargs) is not dict:
            raise BadValue("expected a function and its arguments")
        if not all(type(name) is str for name in kwargs):
            raise BadValue("expected the names of arguments")
        return function(*args, **kwargs)

    def _read(
        self, number: int, message: dict[str, Any], parts: list[bytes], sent: list[Any]
    ) -> Any:
        if self._late:
            raise self._timeout()
        try:
            return super()._read(number, message, parts, sent)
        except Gone as error:
            self.spoil(error)
            raise StudentGone("StudentGone", self.gone) from None

    def _timeout(self) -> StudentTimeout:
        self.troubles.append("a call took too long")
        return StudentTimeout("StudentTimeout", f"longer than {self.seconds:g} s, or than is left")


def _is_printed(one: Any) -> bool:
    if type(one) is not list or len(one) != 2 or one[0] not in ("stdout", "stderr"):
        return False
    return type(one[1]) is str


# --- the verdict ------------------------------------------------------------------------------

MODULES: Mapping[str, str] = {
    "np": "numpy",
    "pd": "pandas",
    "sp": "scipy",
    "plt": "matplotlib.pyplot",
    "sns": "seaborn",
    "nn": "torch.nn",
    "F": "torch.nn.functional",
}
"""What a module's usual other name means in a test cell that does not import it itself."""


@dataclass
class Verdict:
    """What one test cell came to: the checker's own result.

    Parameters
    ----------
    score, points : float
        A number from 0 to points.
    outputs : list of dict
        What the cell showed, as a notebook keeps it.
    error : str
        Why the score is 0; empty if the cell ran to its end.
    """

    score: float
    points: float
    outputs: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""


class _Late(BaseException):
    """A test cell has used up its time; no ``except Exception`` of a test holds it."""


class _Names(dict[str, Any]):
    """The names of the test cells, then Python's own, then the student's."""

    def __init__(self, student: Student, answers: Collection[str]) -> None:
        super().__init__(__name__="__main__", __builtins__=builtins)
        self._student, self._answers = student, frozenset(answers)

    def __missing__(self, name: str) -> Any:
        if name.startswith("__") or (hasattr(builtins, name) and name not in self._answers):
            raise KeyError(name)
        found = self._student[name]
        if isinstance(found, Proxy) and found._gradebox.kind == "module":
            return _module(name)
        return found


def _module(name: str) -> Any:
    """Return a module of the checker for a name that is a module in the student's process."""
    found = sys.modules.get(MODULES.get(name, name))
    if found is None:
        raise KeyError(name)
    return found


class Checker:
    """Runs test cells in one namespace, in which a student's names are looked up as they are used.

    Parameters
    ----------
    student : Student
        The student's names.
    answers : collection of str
        Names that the student is to define although Python has them, such as ``sum``. Every other
        name that Python has is Python's own in a test cell, whatever the student calls so.
    seconds : float
        The limit of one cell. It needs the main thread and a system with alarms; elsewhere it
        limits what the cell asks of the student's process, but not the cell's own loops.
    """

    def __init__(
        self, student: Student, *, answers: Collection[str] = (), seconds: float = 60.0
    ) -> None:
        self.student, self.seconds = student, seconds
        self.names: dict[str, Any] = _Names(student, answers)
        self._count = 0

    def run(self, source: str, points: float = 0.0) -> Verdict:
        """Run one cell."""
        from gradebox.shell import Outputs, Stream

        outputs = Outputs()
        self._count += 1
        verdict = Verdict(0.0, float(points), outputs.items)
        if self.student.gone:
            verdict.error = f"not executed: the student's process is gone; {self.student.gone}"
            outputs.add("error", **_told(StudentGone("StudentGone", verdict.error)))
            return verdict
        self.student.troubles.clear()
        out, err = Stream("stdout", outputs), Stream("stderr", outputs)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                with self._limited():
                    value = self._execute(source)
                if value is not None:
                    print(_shown(value))
            verdict.score = _score(value, verdict.points)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and not _of_student(error):
                raise
            outputs.add("error", **_told(error))
            verdict.error = f"{type(error).__name__}: {_said(error)}"
        if self.student.troubles:  # even if the test expected an error, it did not expect this one
            verdict.score, why = 0.0, self.student.troubles[0]
            if not verdict.error:
                verdict.error = why
                outputs.add("error", **_told(StudentError("StudentError", why)))
        return verdict

    def _execute(self, source: str) -> Any:
        """Run the statements and return the value of the last one, if it is an expression."""
        file = f"<test cell {self._count}>"
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        tree = ast.parse(source, file)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, file, "exec"), self.names)
        if last is None:
            return None
        value = eval(compile(ast.Expression(last.value), file, "eval"), self.names)
        return None if source.rstrip().endswith(";") else value

    @contextlib.contextmanager
    def _limited(self) -> Iterator[None]:
        self.student.until = time.monotonic() + self.seconds
        alarms = hasattr(signal, "setitimer")
        if not alarms or threading.current_thread() is not threading.main_thread():
            yield
            return

        def ring(number: int, frame: Any) -> None:
            self.student.troubles.append("the test cell took too long")
            raise _Late(f"longer than {self.seconds:g} s")

        before = signal.signal(signal.SIGALRM, ring)
        # later than what the student's process is given, and again if an except held it
        signal.setitimer(signal.ITIMER_REAL, self.seconds + GRACE + 1, 1.0)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def run_tests(
    cells: Sequence[str],
    student: Student,
    points: Sequence[float],
    *,
    answers: Collection[str] = (),
    seconds: float = 60.0,
) -> list[Verdict]:
    """Run test cells one after another.

    A cell that raises nothing is worth its points; if its last line is a number, it is worth that
    number, not less than 0 nor more than its points. One that raises is worth 0. If the student's
    process ends, or sends what is no value, or takes too long, the cell is worth 0 whatever it made
    of it. Nothing that is printed counts.

    Parameters
    ----------
    cells : sequence of str
        The sources of the instructor's cells, those that import or define something included.
    student : Student
        The student's names.
    points : sequence of float
        What each cell is worth at most.
    answers, seconds
        As for :class:`Checker`.

    Returns
    -------
    list of Verdict
        One for each cell.
    """
    checker = Checker(student, answers=answers, seconds=seconds)
    return [checker.run(cell, worth) for cell, worth in zip(cells, points, strict=True)]


def _score(value: Any, points: float) -> float:
    """Return the points of a cell that raised nothing and ended with a value."""
    number = isinstance(value, int | float | np.integer | np.floating)
    if not number or isinstance(value, bool):
        return points
    try:
        score = float(value)
    except OverflowError:
        score = points if value > 0 else 0.0
    return 0.0 if math.isnan(score) else min(max(score, 0.0), points)


def _shown(value: Any) -> str:
    try:
        return repr(value)[:_TEXT]
    except Exception as error:
        return f"<{type(value).__name__}: {type(error).__name__}>"


def _of_student(error: BaseException) -> bool:
    return isinstance(error, StudentError) or isinstance(error.__cause__, StudentError)


def _told(error: BaseException) -> dict[str, Any]:
    """Return an exception as a notebook keeps it, with the student's own traceback if it has one."""
    own = getattr(error, "_render_traceback_", None)
    try:
        lines = list(own()) if own else traceback.format_exception(error, limit=-20, chain=False)
    except Exception:
        lines = []
    source = error if isinstance(error, StudentError) else error.__cause__
    if isinstance(source, StudentError) and source.trace:
        lines.append(f"\nIn the student's code:\n{source.trace}")
    text = "".join(str(line) if str(line).endswith("\n") else f"{line}\n" for line in lines)
    return {
        "ename": type(error).__name__,
        "evalue": _said(error),
        "traceback": text[-_TEXT:].splitlines(),
    }
