"""What the grader and the processes of a notebook say to each other: JSON, as dataclasses.

A process in which a student's code has run may send anything; what is not expected ends the line.
"""

import math
from dataclasses import dataclass, field
from enum import Enum
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from gradebox.values.channel import Channel, Gone


class Fork(bytes, Enum):
    """What a process that forks is asked for; ends of socket pairs come with it."""

    PLAIN = b"f"  # a child, with the end of a line to the grader, and one of student and tests
    NAMESPACES = b"n"  # the same, with namespaces of its own
    SERVER = b"z"  # a child that serves as this server does, and has the barred modules too


class Message:
    """What one side says."""


M = TypeVar("M", bound=Message)


@dataclass(frozen=True)
class Given:
    """What students were given of a cell, and what that cell asks them for."""

    before: str  # the name of the next cell of the instructor's that is locked or a test
    source: str  # what the tests run of it in their own process: none of its solutions
    answers: tuple[str, ...] = ()  # what its solutions bind: from here on a test may look it up
    tags: tuple[str, ...] = ()  # of the cell


@dataclass(frozen=True)
class Begin(Message):
    """The grader's first message: how to seal, and what to be."""

    folder: str  # what was handed in; for tests, the folder of the instructor's version
    environment: dict[str, str]  # variables for the cells
    level: str  # a gradebox.sandbox.seal.Level
    limits: dict[str, Any]  # the fields of gradebox.sandbox.seal.Limits
    # folders that it may read besides Python and the system's programs
    readable: list[str] = field(default_factory=list)
    scratch: str | None = None  # the folder that it may write to, where it has no files of its own
    of_tests: bool = False  # whether it forks the processes of a notebook's tests
    barred: list[str] = field(default_factory=list)  # what the student's process cannot import
    # files of the instructor's folder that tests do not get: each student hands in another
    excluded: list[str] = field(default_factory=list)
    given: list[str] = field(default_factory=list)  # those that students have from there


@dataclass(frozen=True)
class Began(Message):
    """The answer to :class:`Begin`: the process is sealed, or why it could not be."""

    refused: str = ""
    is_of_student: bool = False  # whether for what the student handed in, and not for the machine


@dataclass(frozen=True)
class RunCell(Message):
    """Run a cell in the student's process; the answer is :class:`Shown`."""

    source: str
    # names that only this cell of the instructor's defines, for tests in this process
    helpers: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Shown(Message):
    """What a cell showed, as a notebook keeps it."""

    outputs: list[dict[str, Any]]
    execution_count: int | None


@dataclass(frozen=True)
class Remember(Message):
    """Remember the names as they are now, for a test that stands here; there is no answer."""

    test: str  # its name
    fork: bool = False  # whether a fork waits for the test, with the objects as they are now, too


@dataclass(frozen=True)
class RunTest(Message):
    """Run a test cell, or one of the instructor's worth nothing; the answer is :class:`Tested`.

    A student's process runs it among its objects, as they were named where the test stands.
    """

    test: str  # its name
    source: str
    points: float
    # of Python's own names: isolated those that are the student's in the test, and in-process
    # those that mean what they mean in Python, whatever the student calls so
    pythons: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)  # isolated: the student's from here on
    # in-process: import statements of the instructor's whose names mean that in the test
    imports: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Tested(Message):
    """What a test cell came to."""

    score: float  # from 0 to its points
    outputs: list[dict[str, Any]]  # what it showed, as a notebook keeps it
    error: str = ""  # why the score is 0; empty if the cell ran to its end
    refused: list[str] = field(default_factory=list)  # what could not cross between the processes
    late: bool = False  # whether the student's code was interrupted
    gone: str = ""  # why there is no student's process any more; empty while there is
    lost: str = ""  # what became of the process of the tests, as an event: ``slow`` or ``ended``
    # what it uses that a failed cell may have left half made
    doubts: list[str] = field(default_factory=list)
    # what the test uses and was changed, where it ran in the student's process
    changed: list[str] = field(default_factory=list)
    reaches: list[str] = field(default_factory=list)  # by which names answers can deceive it there


def error_of(ename: str, evalue: str, traceback: Any = ()) -> dict[str, Any]:
    """Return an error as a notebook keeps it."""
    lines = [*traceback] or [f"\x1b[0;31m{ename}\x1b[0m: {evalue}"]
    return {"output_type": "error", "ename": ename, "evalue": evalue, "traceback": lines}


def failed(why: str, lost: str = "") -> Tested:
    """Return what a test comes to whose process cannot run it."""
    return Tested(0.0, [error_of("RuntimeError", why)], why, lost=lost)


def send(channel: Channel, message: Message) -> None:
    """Send a message."""
    channel.send(plain(message))


def plain(message: Message) -> dict[str, Any]:
    """Return a message as JSON has it."""
    return {"message": type(message).__name__} | vars(message)


def receive(channel: Channel, seconds: float | None, *expected: type[M]) -> M:
    """Wait for one of the messages that are expected; anything else is as if the end was closed."""
    return understood(channel.receive(seconds)[0], *expected)


def understood(content: Any, *expected: type[M]) -> M:
    """Return the message that some JSON is; what is none of those expected raises Gone."""
    name = content.pop("message", None) if type(content) is dict else None
    for kind, hints in ((kind, _HINTS[kind]) for kind in expected if kind.__name__ == name):
        if content.keys() == hints.keys() and all(_fits(content[n], hints[n]) for n in hints):
            return kind(**content)
    names = " or ".join(kind.__name__ for kind in expected)
    raise Gone(f"expected {names}, got {str(name)[:100]!r} with {str(content)[:100]}")


_HINTS = {kind: get_type_hints(kind) for kind in Message.__subclasses__()}


def _fits(value: Any, hint: Any) -> bool:
    if isinstance(hint, UnionType):
        return any(_fits(value, kind) for kind in get_args(hint))
    # isinstance would let true and false pass as numbers
    kinds = (int, float) if hint is float else (get_origin(hint) or hint,)
    if hint is not Any and type(value) not in kinds:
        return False
    return hint is Any or type(value) is not list or all(_fits(v, get_args(hint)[0]) for v in value)


def bounded(value: float, points: float) -> float:
    """Return a score from 0 to the points of a cell; what is no number gives 0."""
    # Python's JSON has NaN, and min and max would return it: no comparison with it is true
    return 0.0 if math.isnan(value) else min(max(value, 0.0), points)
