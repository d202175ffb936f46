"""One submission of the suite: what it tries, how it is built, what must become of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hostile.course import NOTHING, POINTS, Work

Build = Callable[[Work], None]

WRONG = {
    "squares": "def sum_of_squares(x):\n    return 0.0",
    "means": "def means(rows):\n    return 0.0",
    "running": (
        "class Running:\n    count = 0\n    def add(self, x):\n        pass\n"
        "    def mean(self):\n        return 0.0"
    ),
    "digit": "def first_digit(n):\n    return 0",
    "nearest": "def nearest(numbers, distance):\n    return 0.0",
}
"""Answers that earn nothing."""


@dataclass(frozen=True)
class Case:
    """A submission.

    Parameters
    ----------
    name : str
        Its name, which is the student's.
    tries : str
        What it tries, for the table.
    build : callable
        Builds it, from the released notebook on.
    scores : mapping or None
        The points that it must get; None where it must fail as a whole.
    flags : tuple of str
        What the instructor must be told, and nothing else: each is a part of one flag.
    maybe : tuple of str
        What the instructor may be told besides, as chance has it.
    why : str
        A part of the reason why it fails.
    outputs : mapping
        By cell, a part of what its output must say.
    either : tuple of str
        The cells whose points are up to chance: none or all.
    late : bool
        Whether it is late, and loses all points.
    in_wasm : mapping
        What is otherwise in WebAssembly, by field: most of what such a case asks for is not there.
    unrun : str
        Why stock nbgrader is not run on it. Then ``stock`` says what its code does.
    stock : str
        What stock nbgrader does, as read from its code.
    """

    name: str
    tries: str
    build: Build
    scores: Mapping[str, float] | None = field(default_factory=lambda: NOTHING)
    flags: tuple[str, ...] = ()
    maybe: tuple[str, ...] = ()
    why: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)
    either: tuple[str, ...] = ()
    late: bool = False
    in_wasm: Mapping[str, Any] = field(default_factory=dict)
    unrun: str = ""
    stock: str = ""

    def of(self, sandbox: str) -> "Case":
        """Return the case as it is in a sandbox."""
        return replace(self, **self.in_wasm) if sandbox == "wasm" else self


FULL = POINTS

NO_VALUE = "only values cross; the test gave no points"
ENDED = "a cell ended Python"
ENDED_IN_TEST = "a call by the test ended Python"
SLOW = "a cell took too long"
SLOW_IN_TEST = "a call by the test took too long"


def points(**scores: float) -> dict[str, float]:
    """Return full marks but for the cells that are named, with _ for -."""
    return {**FULL, **{name.replace("_", "-"): score for name, score in scores.items()}}


def first(source: str) -> Build:
    """Build wrong answers after a cell that should make them count."""

    def build(work: Work) -> None:
        work.answer(**WRONG)
        work.first(source)

    return build


def last(source: str) -> Build:
    """Build right answers, with a cell of evil after all of them."""

    def build(work: Work) -> None:
        work.honest()
        work.last(source)

    return build


def extra_cell(source: str) -> Build:
    """Build right answers, with a cell of evil before all of them."""

    def build(work: Work) -> None:
        work.honest()
        work.first(source)

    return build


def answers(**texts: str) -> Build:
    """Build right answers but for these."""

    def build(work: Work) -> None:
        work.honest()
        work.answer(**texts)

    return build


def returning(value: str, *setup: str) -> Build:
    """Build answers that all return the same odd value."""

    def build(work: Work) -> None:
        work.answer(
            squares=f"def sum_of_squares(x):\n    return {value}",
            means=f"def means(rows):\n    return {value}",
            running=(
                "class Running:\n    def add(self, x):\n        pass\n"
                f"    def mean(self):\n        return {value}\n"
                f"    @property\n    def count(self):\n        return {value}"
            ),
            digit=f"def first_digit(n):\n    return {value}",
            nearest=f"def nearest(numbers, distance):\n    return {value}",
        )
        work.first("\n".join(setup))

    return build
