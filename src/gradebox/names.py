"""The end of the line in the process that has run a student's cells: it lends their names.

Nothing of the checker is here but what it has sent: copies of plain values, and numbers of
functions that it lets the student's functions call.
"""

import builtins
import contextlib
import inspect
import operator
import signal
import threading
import traceback
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradebox.along import OfStudent
from gradebox.peer import (
    BINARY,
    MOST_PRINTED,
    MOST_TEXT,
    ORDER,
    Handle,
    Peer,
    described,
    rebuilt,
    short,
)
from gradebox.wire import Gone, Line, TooLong


class Callback:
    """A function of the checker, which it calls with copies of the arguments."""

    def __init__(self, handle: Handle) -> None:
        self.__name__ = self.__qualname__ = handle.name or handle.type_name
        self._handle = handle

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""
        server = self._handle.peer
        if not getattr(server, "inside", True):
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


class Lender(Peer):
    """The end of the line that lends the names; it may serve again after more cells have run.

    Parameters
    ----------
    line : Line
        The line to the checker.
    namespace : mapping
        The names, such as ``shell.user_ns``.
    """

    caught = BaseException  # also SystemExit, and the interruption of a call that takes too long

    def __init__(self, line: Line, namespace: Mapping[str, Any]) -> None:
        super().__init__(line)
        self._namespace, self.inside = namespace, 0
        self.along = OfStudent(self._import, self._export)
        self.printed: list[list[str]] = []

    def make(self, handle: Handle, callable_: bool) -> Any:
        """Return what stands for an object of the other process."""
        return Callback(handle)

    def handle_of(self, value: Any) -> Handle | None:
        """Return the handle of what stands for an object of the other process."""
        return value._handle if type(value) is Callback else None

    def may_export(self, value: Any) -> bool:
        """Return whether the other process may have a handle of it."""
        return True

    def failed(self, error: dict[str, Any]) -> Exception:
        """Return the exception for what the other process says has failed."""
        return rebuilt(error, "", self.class_told(error))

    def outdated(self, message: dict[str, Any], number: int) -> bool:
        """Return whether a message answers an earlier question, which nobody waits for."""
        return type(message.get("id")) is int and message["id"] < number

    def told(self, error: BaseException) -> dict[str, Any]:
        """Return what the checker learns of an exception."""
        try:
            lines = traceback.format_exception(error, limit=-20)
        except Exception:
            lines = []
        return {**described(error), "trace": "".join(lines)[-MOST_TEXT:]}

    def send(self, message: dict[str, Any], parts: Sequence[bytes]) -> None:
        """Send a message, with what goes with it."""
        if self.printed:
            message["printed"] = list(self.printed)
            self.printed.clear()
        if drawn := self.draws.drawn():
            message["drawn"] = drawn
        self.along.tell(message)
        try:
            super().send(message, parts)
        except TooLong:
            self.along.take_back(message)
            raise

    def hear(self, message: dict[str, Any]) -> None:
        """Take in what a message tells by the way."""
        super().hear(message)
        if "draws" in message:
            self.draws.follow(message["draws"])
        self.along.take(message)

    def ask(self, question: str, value: Any = None, **more: Any) -> Any:
        """Ask the checker; the line uses modules as they are without what tests replace."""
        with self.along.aside():
            return super().ask(question, value, **more)

    def do(self, question: str, message: dict[str, Any], value: Any) -> Any:
        """Answer a question."""
        if question == "begin":
            return self.along.begin()
        self.inside += 1
        try:
            with self.along.during():
                return _QUESTIONS[question](self._namespace, *value)
        finally:
            self.inside -= 1

    def serve(self) -> None:
        """Answer until the checker ends, or says that this is all for now.

        An interruption (SIGINT) ends the call that is under way, and nothing else.
        """
        main = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGINT, self._interrupted) if main else None
        out, err = (_Printed(name, self.printed) for name in ("stdout", "stderr"))
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                while self._serve_one():
                    pass
        except Gone:
            return
        finally:
            if main:
                signal.signal(signal.SIGINT, before)

    def _serve_one(self) -> bool:
        message, parts = self.receive()
        self.hear(message)
        if message.get("ask") == "end":
            return False
        if "ask" in message:
            self.answer(message, parts)
        return True

    def _interrupted(self, number: int, frame: Any) -> None:
        if self.inside:
            raise KeyboardInterrupt


def serve_names(line: Line, namespace: Mapping[str, Any]) -> None:
    """Let a checker use the names of a notebook, until it ends or has enough.

    Parameters
    ----------
    line : Line
        The line to the checker.
    namespace : mapping
        The names, such as ``shell.user_ns``.
    """
    Lender(line, namespace).serve()


def _names(namespace: Mapping[str, Any]) -> list[str]:
    return [name for name in namespace if isinstance(name, str) and not name.startswith("_")]


def _describe(namespace: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """Return what ``inspect`` tells of a function, as text."""
    found: dict[str, Any] = {
        "doc": _long(getattr(value, "__doc__", None)),
        "qualname": short(getattr(value, "__qualname__", "")),
        "parameters": None,
    }
    with contextlib.suppress(TypeError, ValueError):
        found["parameters"] = [
            [one.name, int(one.kind), one.default is not one.empty]
            for one in inspect.signature(value).parameters.values()
        ]
    return found


def _long(value: Any) -> str | None:
    return str.__str__(value)[:MOST_TEXT] if isinstance(value, str) else None


def _source(namespace: Mapping[str, Any], value: Any) -> str:
    return inspect.getsource(value)[:MOST_TEXT]


def _advance(namespace: Mapping[str, Any], iterator: Any) -> tuple[Any, ...]:
    try:  # a loop would begin anew what begins anew in __iter__
        return (next(iterator),)
    except StopIteration:
        return ()


def _leave(namespace: Mapping[str, Any], manager: Any, told: Any) -> bool:
    """End a context; ``told`` describes the exception that ends it, if one does."""
    error = rebuilt(told, "") if told else None
    return bool(type(manager).__exit__(manager, type(error) if error else None, error, None))


def _bases(namespace: Mapping[str, Any], value: Any) -> list[str]:
    """Return the names of Python's own classes from which a class inherits."""
    own: Any = vars(builtins)
    return [one.__name__ for one in value.__mro__ if own.get(one.__name__) is one]


def _copied(namespace: Mapping[str, Any], value: Any, deep: bool) -> Any:
    import copy

    return copy.deepcopy(value) if deep else copy.copy(value)


def _calling(namespace: Mapping[str, Any], function: Any, args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)


_call: Any = types.FunctionType(_calling.__code__, {"__name__": "__main__"})
"""Calls a function as a cell would: a warning about who calls it is about ``__main__``."""

_OPERATORS = (*BINARY, *ORDER, "neg", "pos", "abs", "invert", "index")
_ITEMS = ("contains", "getitem", "setitem", "delitem")
_FUNCTIONS: tuple[Any, ...] = (
    *(len, iter, reversed, bool, int, float, complex, round),
    *(str, repr, format, hash, isinstance, issubclass),
)
_OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(operator, name) for name in (*_OPERATORS, *_ITEMS)},
    **{one.__name__: one for one in _FUNCTIONS},
    "enter": lambda value: type(value).__enter__(value),
}

_QUESTIONS: dict[str, Callable[..., Any]] = {
    "names": _names,
    "get": lambda namespace, name: namespace[name],
    "call": _call,
    "getattr": lambda namespace, value, name: getattr(value, name),
    "setattr": lambda namespace, value, name, new: setattr(value, name, new),
    "operate": lambda namespace, name, *values: _OPERATIONS[name](*values),
    "next": _advance,
    "exit": _leave,
    "bases": _bases,
    "copy": _copied,
    "describe": _describe,
    "source": _source,
}
