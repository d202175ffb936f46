"""Ordinary tests of a teacher's, each with a right and a wrong answer: a measure for graders.

Each kind has a module that lists its cases. A grader must give the right answer of every case its
point, and the wrong one none. What stock nbgrader gives is this: ``test_ordinary`` runs the cells
of all cases as its kernel does.

No case depends on another, and all may stand in one notebook, in order. The names that a student's
cells define are therefore different in all cases.
"""

from dataclasses import dataclass, replace
from importlib import import_module
from textwrap import dedent

KINDS = (
    "seeds",
    "results",
    "operators",
    "arguments",
    "inspection",
    "streams",
    "calls",
    "large",
    "learning",
    "notebook",
)
"""The modules of cases."""


@dataclass(frozen=True)
class Case:
    """One exercise: the cell of a student's and the test cell of a teacher's.

    Parameters
    ----------
    name : str
        What the test does.
    answer : str
        The source of the student's cell, a right answer.
    test : str
        The source of the test cell, worth 1 point.
    wrong : str
        The source of a wrong answer, which gets no point; empty where none makes sense.
    earlier : str
        The source of a test cell between the two; empty where there is none, as in most cases.
    kind : str
        The module that lists the case; ``cases`` fills it in.
    """

    name: str
    answer: str
    test: str
    wrong: str
    earlier: str = ""
    kind: str = ""

    def __post_init__(self) -> None:
        """Remove the indentation that the sources have in their module."""
        for part in ("answer", "test", "wrong", "earlier"):
            object.__setattr__(self, part, dedent(getattr(self, part)).strip())

    def cells(self, answer: str) -> list[str]:
        """Return the cells of a notebook in which a student gives this answer."""
        return [cell for cell in (answer, self.earlier, self.test) if cell]


def cases() -> tuple[Case, ...]:
    """Return all cases, each with its kind."""
    return tuple(
        replace(case, kind=kind)
        for kind in KINDS
        for case in import_module(f"{__name__}.{kind}").CASES
    )
