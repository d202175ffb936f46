"""What runs inside an instance: the student's side, or that of the tests, one request a turn.

Each function here is called by the host for one turn. What lasts from one to the next is in
:data:`_state`; the memory of an instance in which modules have been imported is where others begin.
"""

import importlib
import os
from asyncio.selector_events import BaseSelectorEventLoop
from dataclasses import dataclass
from typing import Any, cast

import _host

from gradebox.values.channel import Channel, Gone, packed, unpacked
from gradebox.workers.imported import Imported
from gradebox.workers.protocol import (
    Began,
    Begin,
    Message,
    Remember,
    RunCell,
    RunInProcess,
    RunTest,
    TestSettings,
    receive,
    send,
)
from gradebox.workers.student import Student
from gradebox.workers.tester import Tester, bar_pickles
from gradebox_wasm.fetching import Compiled

WORK = "/work"


class Line:
    """The line to the grader: the request of this turn, and the answer to it."""

    def receive(self, seconds: float | None = None) -> tuple[Any, list[bytes]]:
        """Return the request."""
        return unpacked(_host.call(b"g"))

    def send(self, header: Any, parts: tuple[bytes, ...] = ()) -> None:
        """Send the answer."""
        _host.call(b"G" + packed(header, parts))


class OtherSide:
    """The line between the tests and the student's side: what is sent goes when one waits.

    The first message of a student's turn is the question that begins it, and the last one the
    answer that ends it.
    """

    def __init__(self) -> None:
        self._waiting, self._unread = b"", b""

    def send(self, header: Any, parts: Any = ()) -> None:
        """Keep a message until an answer is wanted, or the turn ends."""
        self._waiting = packed(header, parts)

    def receive(self, seconds: float | None = None) -> tuple[Any, list[bytes]]:
        """Send what was kept, and return the next message."""
        if self._unread:
            content, self._unread = self._unread, b""
            return unpacked(content)
        message, self._waiting = self._waiting, b""
        content = _host.call(b"x" + message)
        if not content:
            raise Gone("ended")
        return unpacked(content)

    def begin(self) -> None:
        """Begin a turn with the question that it is for."""
        self._waiting, self._unread = b"", _host.call(b"g")

    def end(self) -> None:
        """End it with what was kept."""
        message, self._waiting = self._waiting, b""
        _host.call(b"G" + message)


@dataclass
class _State:
    imported: Imported | None = None
    student: Student | None = None
    tester: Tester | None = None


# what wakes an event loop from another thread: there is none, and no pair of sockets for it
for _name in ("_make_self_pipe", "_close_self_pipe", "_write_to_self"):
    setattr(BaseSelectorEventLoop, _name, lambda self: None)

_state = _State()
_grader, _other = cast(Channel, Line()), OtherSide()


def prepare() -> None:
    """Import what the notebooks of an assignment import, before any cell runs."""
    settings, _ = _grader.receive()
    imported = Imported(settings["imports"], settings["banned"], settings["stubbed"])
    if settings["tests"]:
        imported.admit_all(settings["prepare"])
    imported.freeze()
    _state.imported = imported


def lack() -> None:
    """Say which compiled module some imports cannot do without, if there is one."""
    names, _ = _grader.receive()
    _grader.send(next(filter(None, map(_lacking, names)), ""))


def _lacking(name: str) -> str:
    module, _, attribute = name.partition(":")
    try:
        getattr(importlib.import_module(module), attribute, None)
    except ImportError as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, Compiled):
                return str(cause.name)
            cause = cause.__context__
    return ""


def begin() -> None:
    """Be the student's side, or that of the tests, of one notebook."""
    message = receive(_grader, None, Begin)
    imported = _state.imported
    assert imported is not None
    os.environ.update(message.environment)
    os.chdir(WORK)
    imported.shell.outputs.longest = message.limits["output"]
    imported.begin()
    line = cast(Channel, _other)
    if message.tests is None:
        _state.student = Student(line, imported.shell, imported.barrier, message.watched)
    else:
        bar_pickles()  # before any test: an audit hook cannot be taken away
        settings = TestSettings(**message.tests)
        _state.tester = Tester(line, settings, imported.shell.outputs.longest)
    send(_grader, Began(message.level, [], WORK))


def obey() -> None:
    """Do what the grader asks of the student's side."""
    assert _state.student is not None
    message: Message = receive(_grader, None, RunCell, Remember, RunInProcess)
    with _state.student.busy():
        if (answer := _state.student.obey(message)) is not None:
            send(_grader, answer)


def answer() -> None:
    """Answer a question of the tests."""
    assert _state.student is not None
    _other.begin()
    _state.student.answer()
    _other.end()


def test() -> None:
    """Run a test."""
    assert _state.tester is not None
    message = receive(_grader, None, RunTest)
    send(_grader, _state.tester.run(message.source, message.points))
