"""Operations in which an object of a student's class meets a value of a test's.

``abs(answer - expected) < 1e-9`` is decided by ``answer`` if that is an object whose class says
what a difference is, and so is ``answer.equals(expected)``. Where a test is about such a class, the
instructor's own answers do the same: the trial of the tests notes which operators and methods they
need. An object that is asked for others stands where the test expects plain data. It is refused.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from gradebox.line.operations import BINARY, IN_PLACE

_OPERATORS = {name: f"__{name.rstrip('_')}__" for name in BINARY}
_OPERATORS |= {f"i{name.rstrip('_')}": dunder for name, dunder in _OPERATORS.items()}
_OPERATORS["contains"] = "__contains__"

assert set(IN_PLACE) < set(_OPERATORS)


class UnexpectedObject(Exception):
    """An object of a student's class stands where the instructor's answers are plain data."""


class Mixed:
    """Notes such operations, and refuses those that the instructor's answers do not need.

    Parameters
    ----------
    handle_of : callable
        Returns the handle of what stands for an object of the student's, None for a value of a
        test's.
    """

    def __init__(self, handle_of: Callable[[Any], Any]) -> None:
        self._handle_of = handle_of
        self.operations: set[str] = set()
        """What was done since the test began: operators as ``__sub__``, methods as ``equals``."""
        self.allowed: Collection[str] | None = None
        """What the instructor's answers need; None where nobody has tried."""
        self.refused = ""
        """Why something was refused since the test began."""

    def begin(self, allowed: Collection[str] | None) -> None:
        """Take note that a test begins."""
        self.allowed, self.refused = allowed, ""
        self.operations.clear()

    def note(self, question: str, value: Any) -> None:
        """Take note of a question to the student's process.

        Raises
        ------
        UnexpectedObject
            If the instructor's answers are not asked for it.
        """
        name, others = self._operation(question, value)
        if not name or all(self._handle_of(other) is not None for other in others):
            return
        self.operations.add(name)
        if self.allowed is not None and name not in self.allowed:
            self.refused = (
                f"expected plain data, got an object of a class of the student's, whose {name!r} "
                "would decide about a value of the test; the instructor's answers do not use it"
            )
            raise UnexpectedObject(self.refused)

    def _operation(self, question: str, value: Any) -> tuple[str, Iterable[Any]]:
        """Return the name of an operator or a method, and what it is given."""
        if question == "operate":
            return _OPERATORS.get(value[0], ""), value[1:]
        if question == "method":
            return value[1], (*value[2], *value[3].values())
        if question == "call" and (handle := self._handle_of(value[0])) is not None:
            return handle.method, (*value[1], *value[2].values())
        return "", ()

    def name(self, question: str, value: Any, result: Any) -> None:
        """Keep the name by which a test has asked an object for one of its methods."""
        handle = self._handle_of(result) if question == "getattr" else None
        if handle is not None and self._handle_of(value[0]).kind in ("object", "singleton"):
            handle.method = value[1]
