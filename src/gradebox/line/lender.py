"""The end of the line in the process that has run a student's cells: it lends their names.

Nothing of the checker is here but what it has sent: copies of plain values, and numbers of
functions that it lets the student's functions call.
"""

import contextlib
import pickle
import signal
import threading
import traceback
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradebox.codec import gradients
from gradebox.codec.encoding import Decoder
from gradebox.effects.attachments import OfStudent
from gradebox.line import coroutines, descriptions, doctests
from gradebox.line.borrowed import Loan, loan
from gradebox.line.operations import OPERATIONS
from gradebox.line.peer import (
    MOST_PRINTED,
    MOST_TEXT,
    Handle,
    Peer,
    described,
    rebuilt,
)
from gradebox.line.shared_names import Bound
from gradebox.line.wire import Gone, Line, TooLong


class _Printed:
    """A stream whose text goes with the next message."""

    encoding = "utf-8"

    def __init__(self, name: str, texts: list[list[str]]) -> None:
        self.name, self._texts, self._remaining = name, texts, MOST_PRINTED

    def write(self, text: str) -> int:
        """Keep text."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        accepted = text[: self._remaining]
        self._remaining -= len(accepted)
        if self._texts and self._texts[-1][0] == self.name:
            self._texts[-1][1] += accepted
        elif accepted:
            self._texts.append([self.name, accepted])
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

    lends = True
    caught = BaseException  # also SystemExit, and the interruption of a call that takes too long

    def __init__(self, line: Line, namespace: Mapping[str, Any]) -> None:
        super().__init__(line)
        self.tells_classes = True
        self._namespace, self.inside, self.bound = namespace, 0, Bound()
        self.along = OfStudent(self._import, self._export)
        self.printed: list[list[str]] = []

    def make(self, handle: Handle, callable_: bool) -> Any:
        """Return what stands for an object of the other process."""
        return loan(handle, callable_)

    def handle_of(self, value: Any) -> Handle | None:
        """Return the handle of what stands for an object of the other process."""
        return value._gradebox if isinstance(value, Loan) else None

    def may_export(self, value: Any) -> bool:
        """Return whether the other process may have a handle of it."""
        return True

    def failed(self, error: dict[str, Any]) -> Exception:
        """Return the exception for what the other process says has failed."""
        return rebuilt(error, "", self.error_class_of(error))

    def outdated(self, message: dict[str, Any], number: int) -> bool:
        """Return whether a message answers an earlier question, which nobody waits for."""
        return type(message.get("id")) is int and message["id"] < number

    def description_of(self, error: BaseException) -> dict[str, Any]:
        """Return what the checker learns of an exception."""
        try:
            lines = traceback.format_exception(error, limit=-20)
        except Exception:
            lines = []
        description = {**described(error), "trace": "".join(lines)[-MOST_TEXT:]}
        cause = error.__cause__
        if isinstance(cause, Exception) and cause is not error:
            description["cause"] = described(cause) | self._class_of(cause)
        return description

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

    def take(self, message: dict[str, Any], decoder: Decoder) -> None:
        """Take in what a message tells before its value."""
        super().take(message, decoder)
        self.bound.unbind(message.get("taken away", []), self._namespace)
        self.bound.hear(message.get("names", {}), decoder, self._namespace)

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
        if question == "cell":
            return self.along.begin()
        self.inside += 1
        try:
            if question == "rebound":
                return self.bound.rebound(self._namespace)
            if question == "class":
                return self.tell_class_again(*value)
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


def _advance(namespace: Mapping[str, Any], iterator: Any) -> tuple[Any, ...]:
    try:  # a loop would begin anew what begins anew in __iter__
        return (next(iterator),)
    except StopIteration:
        return ()


def _leave(namespace: Mapping[str, Any], manager: Any, description: Any) -> bool:
    """End a context; ``description`` is that of the exception that ends it, if one does."""
    error = rebuilt(description, "") if description else None
    return bool(type(manager).__exit__(manager, type(error) if error else None, error, None))


def _copied(namespace: Mapping[str, Any], value: Any, deep: bool) -> Any:
    import copy

    return copy.deepcopy(value) if deep else copy.copy(value)


def _calling(namespace: Mapping[str, Any], function: Any, args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)


_call: Any = types.FunctionType(_calling.__code__, {"__name__": "__main__"})
"""Calls a function as a cell would: a warning about who calls it is about ``__main__``."""

_QUESTIONS: dict[str, Callable[..., Any]] = {
    **descriptions.QUESTIONS,
    **coroutines.QUESTIONS,
    **gradients.QUESTIONS,
    **doctests.QUESTIONS,
    "names": _names,
    "get": lambda namespace, name: namespace[name],
    "call": _call,
    "method": lambda namespace, value, name, args, kwargs: getattr(value, name)(*args, **kwargs),
    "getattr": lambda namespace, value, name: getattr(value, name),
    "delattr": lambda namespace, value, name: delattr(value, name),
    "pickle": lambda namespace, value, protocol: pickle.dumps(value, protocol),
    "unpickle": lambda namespace, pickled: pickle.loads(pickled),
    "setattr": lambda namespace, value, name, new: setattr(value, name, new),
    "operate": lambda namespace, name, *values: OPERATIONS[name](*values),
    "next": _advance,
    "exit": _leave,
    "copy": _copied,
}
