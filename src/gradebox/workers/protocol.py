"""What the grader and the processes of a notebook say to each other, as dataclasses.

A message is one JSON object: its name and its fields. A process in which a student's code has run
may send anything; what is none of the messages that are expected ends the connection.
"""

import math
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from gradebox.values.channel import Channel, Gone


class Fork(bytes, Enum):
    """What a server is asked for on its control socket; ends of socket pairs come with it."""

    PLAIN = b"f"
    """A child, with the end of a line to the grader, and of one between student and tests."""
    NAMESPACES = b"n"
    """The same, with namespaces of its own."""
    SERVER = b"z"
    """A child that serves as this server does, and has the barred modules too."""


class Message:
    """What one side says."""


M = TypeVar("M", bound=Message)


@dataclass(frozen=True)
class TestSettings:
    """What the processes of a notebook's tests are told at their start.

    Parameters
    ----------
    barred : list of str
        Modules that the student's process cannot import.
    excluded : list of str
        Files of the instructor's folder that tests do not get: each student hands in another.
    """

    barred: list[str] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Given:
    """What students were given of a cell, and what that cell asks them for.

    Parameters
    ----------
    before : str
        The name of the next cell of the instructor's that is locked or a test.
    source : str
        What the tests run of the cell in their own process: none of its solutions.
    answers : tuple of str
        Names that its solutions bind: from here on a test may look them up.
    tags : tuple of str
        The tags of the cell.
    """

    before: str
    source: str
    answers: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Begin(Message):
    """The grader's first message: how to seal, and what to be.

    Parameters
    ----------
    folder : str
        What was handed in; for tests, the folder of the instructor's version.
    environment : dict
        Variables for the cells.
    level : str
        How the process is sealed: a :class:`~gradebox.sandbox.seal.Level`.
    limits : dict
        The fields of :class:`~gradebox.sandbox.seal.Limits`.
    readable : list of str
        Folders that it may read besides Python and the system's programs.
    scratch : str or None
        The folder that it may write to, where it has no files of its own.
    tests : dict or None
        The fields of :class:`TestSettings`, for a process that forks those of the tests.
    """

    folder: str
    environment: dict[str, str]
    level: str
    limits: dict[str, Any]
    readable: list[str]
    scratch: str | None = None
    tests: dict[str, Any] | None = None

    def with_tests(self, settings: TestSettings) -> "Begin":
        """Return the message for a process that forks those of tests."""
        return replace(self, tests=asdict(settings))


@dataclass(frozen=True)
class Began(Message):
    """The answer to :class:`Begin`: the fields of :class:`~gradebox.sandbox.seal.Sealed`."""

    level: str
    lacks: list[str]
    folder: str


@dataclass(frozen=True)
class Refused(Message):
    """The other answer to :class:`Begin`: why the process could not be sealed.

    Parameters
    ----------
    why : str
        What was the matter.
    is_of_student : bool
        Whether it was what the student handed in, and not the machine.
    """

    why: str
    is_of_student: bool = False


@dataclass(frozen=True)
class RunCell(Message):
    """Run a cell in the student's process; the answer is :class:`Shown`.

    Parameters
    ----------
    source : str
        Its text.
    helpers : list of str
        Names that only this cell of the instructor's defines, for tests in this process.
    """

    source: str
    helpers: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Shown(Message):
    """What a cell showed, as a notebook keeps it, and whether it ran to its end."""

    outputs: list[dict[str, Any]]
    execution_count: int | None
    ok: bool


@dataclass(frozen=True)
class Remember(Message):
    """Remember the names as they are now, for a test that stands here; there is no answer.

    Parameters
    ----------
    test : str
        The name of the test.
    fork : bool
        Whether a fork of the process waits for the test, with the objects as they are now, too.
    """

    test: str
    fork: bool = False


@dataclass(frozen=True)
class RunInProcess(Message):
    """Run a test among the student's objects, as they were named where it stands.

    The answer is :class:`Tested`.

    Parameters
    ----------
    test, source, points : str, str and float
        The name of the test, its text, and what it is worth.
    pythons : list of str
        Names of Python's own that mean that in the test, whatever the student calls so.
    imports : list of str
        Import statements of the instructor's whose names mean that in the test.
    """

    test: str
    source: str
    points: float
    pythons: list[str] = field(default_factory=list)
    imports: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Prepare(Message):
    """Give the process of the tests variables for one submission; there is no answer."""

    environment: dict[str, str]


@dataclass(frozen=True)
class RunTest(Message):
    """Run a test cell, or one of the instructor's worth nothing; the answer is :class:`Tested`.

    Parameters
    ----------
    source : str
        Its text.
    points : float
        What it is worth.
    answers : list of str
        Names that are the student's after it.
    pythons : list of str
        Names of Python's own that are the student's in it.
    """

    source: str
    points: float
    answers: list[str] = field(default_factory=list)
    pythons: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Tested(Message):
    """What a test cell came to.

    Parameters
    ----------
    score : float
        From 0 to its points.
    outputs : list of dict
        What it showed, as a notebook keeps it.
    error : str
        Why the score is 0; empty if the cell ran to its end.
    refused : list of str
        What could not cross between the processes.
    late : bool
        Whether the student's code was interrupted.
    gone : str
        Why there is no student's process any more; empty while there is.
    lost : str
        What became of the process of the tests, as the kind of an event: ``slow`` or ``ended``.
    changed : list of str
        What the test uses and was changed, where it ran in the student's process.
    """

    score: float
    outputs: list[dict[str, Any]]
    error: str = ""
    refused: list[str] = field(default_factory=list)
    late: bool = False
    gone: str = ""
    lost: str = ""
    changed: list[str] = field(default_factory=list)


def send(channel: Channel, message: Message) -> None:
    """Send a message.

    Raises
    ------
    Gone
        If nobody reads it.
    """
    channel.send(plain(message))


def plain(message: Message) -> dict[str, Any]:
    """Return a message as JSON has it."""
    return {"message": type(message).__name__} | vars(message)


def receive(channel: Channel, seconds: float | None, *expected: type[M]) -> M:
    """Wait for one of the messages that are expected.

    Raises
    ------
    TimeoutError
        If none has come whole within so many seconds; None waits for ever.
    Gone
        If the other side ended, or sent something else.
    """
    content, _ = channel.receive(seconds)
    return understood(content, *expected)


def understood(content: Any, *expected: type[M]) -> M:
    """Return the message that some JSON is, if it is one of those that are expected.

    Raises
    ------
    Gone
        If it is not.
    """
    name = content.pop("message", None) if type(content) is dict else None
    kind = next((kind for kind in expected if kind.__name__ == name), None)
    if kind is None or not _has_fields(content, kind):
        names = " or ".join(kind.__name__ for kind in expected)
        raise Gone(f"expected {names}, got {str(name)[:100]!r} with {str(content)[:100]}")
    return kind(**content)


_HINTS = {kind: get_type_hints(kind) for kind in Message.__subclasses__()}


def _has_fields(content: dict[str, Any], kind: type[Message]) -> bool:
    hints = _HINTS[kind]
    if content.keys() != hints.keys():
        return False
    return all(_fits(content[name], hint) for name, hint in hints.items())


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value of JSON has a type, and the values of a list those of the list."""
    if hint is Any:
        return True
    if isinstance(hint, UnionType):
        return any(_fits(value, kind) for kind in get_args(hint))
    # isinstance would let true and false pass as numbers
    if hint is float:
        return type(value) in (int, float)
    if type(value) is not (get_origin(hint) or hint):
        return False
    return type(value) is not list or all(_fits(item, get_args(hint)[0]) for item in value)


def bounded(value: float, points: float) -> float:
    """Return a score from 0 to the points of a cell; what is no number gives 0."""
    # Python's JSON has NaN, and min and max would return it: no comparison with it is true
    return 0.0 if math.isnan(value) else min(max(value, 0.0), points)
