"""What the grader and the processes of a notebook say to each other, as dataclasses.

On the line a message is one JSON object: its name and its fields. A process in which a student's
code has run may send anything; what is none of the messages that are expected ends the connection.
"""

from dataclasses import dataclass, field
from enum import Enum
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from gradebox.line.wire import Gone, Line


class Fork(bytes, Enum):
    """What the server is asked for on its control socket; ends of socket pairs come with it."""

    PLAIN = b"f"
    """A child, with an end of a line to the grader and of one to the notebook's other process."""
    NAMESPACES = b"n"
    """The same, with namespaces of its own."""
    SERVER = b"z"
    """A child that serves as this server does, and has the barred modules too."""


class Message:
    """What one side says."""


M = TypeVar("M", bound=Message)


@dataclass(frozen=True)
class CheckerSettings:
    """What the process of the test cells is told at its start.

    Parameters
    ----------
    seconds : float
        The limit of a cell.
    answers : list of str
        Names that the student is to define although Python has them.
    shared : list of str
        Names of the student's that a test may give another value.
    statements : list of str
        Executed before the first test.
    modules : list of str
        Statements that import the modules of the instructor's solutions.
    """

    seconds: float
    answers: list[str] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Begin(Message):
    """The grader's first message: how to seal, and what to be.

    Parameters
    ----------
    folder : str
        What was handed in.
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
        The fields of :class:`CheckerSettings`, for the process of the test cells.
    """

    folder: str
    environment: dict[str, str]
    level: str
    limits: dict[str, Any]
    readable: list[str]
    scratch: str | None = None
    tests: dict[str, Any] | None = None


@dataclass(frozen=True)
class Began(Message):
    """The answer to :class:`Begin`: the fields of :class:`~gradebox.sandbox.seal.Sealed`."""

    level: str
    lacks: list[str]
    folder: str


@dataclass(frozen=True)
class Refused(Message):
    """The other answer to :class:`Begin`: why the process could not be sealed."""

    why: str


@dataclass(frozen=True)
class RunCell(Message):
    """Run a cell of the student's; the answer is :class:`Shown`."""

    source: str


@dataclass(frozen=True)
class Shown(Message):
    """What a cell showed, as a notebook keeps it, and whether it ran to its end."""

    outputs: list[dict[str, Any]]
    execution_count: int | None
    ok: bool


@dataclass(frozen=True)
class LendNames(Message):
    """Answer the process of the test cells until it has enough; then answer :class:`Lent`."""


@dataclass(frozen=True)
class Lent(Message):
    """The process of the test cells had enough, or the student's was interrupted."""


@dataclass(frozen=True)
class RunTest(Message):
    """Run a test cell; the answer is :class:`Checked`.

    Parameters
    ----------
    source, points, mixed
        As for :meth:`gradebox.process.verdict.Checker.run`.
    """

    source: str
    points: float
    mixed: list[str] | None


@dataclass(frozen=True)
class Checked(Message):
    """What a test cell came to.

    Parameters
    ----------
    score, outputs, error, doubt, mixed
        As for :class:`~gradebox.process.verdict.Verdict`.
    gone : str
        Why the student's process is of no use any more; empty if it is.
    """

    score: float
    outputs: list[dict[str, Any]]
    error: str
    doubt: str
    mixed: list[str]
    gone: str


@dataclass(frozen=True)
class AskTime(Message):
    """A test cell asks how much own time it has used; the answer is :class:`TimeUsed`."""


@dataclass(frozen=True)
class TimeUsed(Message):
    """The own time that a test cell has used, in seconds."""

    seconds: float


@dataclass(frozen=True)
class Interrupt(Message):
    """A test cell asks the grader to interrupt the student's process, which it cannot reach."""


def send(line: Line, message: Message) -> None:
    """Send a message.

    Raises
    ------
    Gone
        If nobody listens any more.
    """
    line.send({"message": type(message).__name__} | vars(message))


def receive(line: Line, seconds: float | None, *expected: type[M]) -> M:
    """Wait for one of the messages that are expected.

    Parameters
    ----------
    line : Line
        Where it comes.
    seconds : float or None
        For how long to wait; None waits for ever.
    *expected : type
        The messages.

    Raises
    ------
    TimeoutError
        If none has come whole within so many seconds.
    Gone
        If the other side ended, or sent something else.
    """
    content = line.receive(seconds)
    name = content.pop("message", None)
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
    if hint is float:
        return type(value) in (int, float)
    if type(value) is not (get_origin(hint) or hint):
        return False
    return type(value) is not list or all(_fits(item, get_args(hint)[0]) for item in value)
