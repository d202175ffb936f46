"""What runs inside an instance: the student's side, or that of the tests, one request a turn.

Each function here without a parameter is called by the host for one turn. What lasts from one to
the next is in :data:`_state`; the memory of an instance in which modules have been imported is
where others begin.
"""

import os
from asyncio.selector_events import BaseSelectorEventLoop
from types import SimpleNamespace
from typing import Any, cast

import _host

from gradebox.values.channel import Channel, Gone, packed, unpacked
from gradebox.workers import protocol
from gradebox.workers.imported import Imported
from gradebox.workers.student import Student
from gradebox.workers.tester import Tester
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
        self._waiting, self.unread = b"", b""

    def send(self, header: Any, parts: Any = ()) -> None:
        """Keep a message until an answer is wanted, or the turn ends."""
        self._waiting = packed(header, parts)

    def receive(self, seconds: float | None = None) -> tuple[Any, list[bytes]]:
        """Send what was kept, and return the next message."""
        content, self.unread = self.unread, b""
        content = content or _host.call(b"x" + self.kept())
        if not content:
            raise Gone("ended")
        return unpacked(content)

    def kept(self) -> bytes:
        """Return what was kept, and keep nothing."""
        message, self._waiting = self._waiting, b""
        return message


# what wakes an event loop from another thread: there is none, and no pair of sockets for it
for _name in ("_make_self_pipe", "_close_self_pipe", "_write_to_self"):
    setattr(BaseSelectorEventLoop, _name, lambda self: None)

_state: Any = SimpleNamespace()
"""The modules that were ``imported``, and the ``student`` or the ``tester``."""
_grader, _other = cast(Channel, Line()), OtherSide()


def prepare() -> None:
    """Import what the notebooks of an assignment import, before any cell runs."""
    settings, _ = _grader.receive()
    _state.imported = Imported(settings["imports"], settings["banned"], settings["stubbed"])
    if settings["tests"]:
        _state.imported.admit_all(settings["prepare"])
    _state.imported.freeze()


def lack() -> None:
    """Say which compiled module some imports cannot do without, if there is one."""
    names, _ = _grader.receive()
    _grader.send(next(filter(None, map(_lacking, names)), ""))


def _lacking(name: str) -> str:
    module, _, attribute = name.partition(":")
    try:
        exec(f"from {module} import {attribute or '__name__'}", {})  # a part may be a module, too
    except ImportError as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, Compiled):
                return str(cause.name)
            cause = cause.__context__
    return ""


def begin() -> None:
    """Be the student's side, or that of the tests, of one notebook."""
    message = protocol.receive(_grader, None, protocol.Begin)
    imported = _state.imported
    os.environ.update(message.environment)
    os.chdir(WORK)
    imported.shell.outputs.longest = message.limits["output"]
    imported.begin()
    line = cast(Channel, _other)
    if message.of_tests:
        _state.tester = Tester(line, message.barred, imported.shell)
    else:
        _state.student = Student(line, imported, message.given)
    protocol.send(_grader, protocol.Began())


def obey() -> None:
    """Do what the grader asks of the student's side."""
    kinds: Any = protocol.RunCell, protocol.Remember, protocol.RunTest
    with _state.student.busy():
        if (answer := _state.student.obey(protocol.receive(_grader, None, *kinds))) is not None:
            protocol.send(_grader, answer)


def answer() -> None:
    """Answer a question of the tests."""
    _other.kept()
    _other.unread = _host.call(b"g")
    _state.student.answer()
    _host.call(b"G" + _other.kept())


def test() -> None:
    """Run a test."""
    message = protocol.receive(_grader, None, protocol.RunTest)
    protocol.send(_grader, _state.tester.run(message))
