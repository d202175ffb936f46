"""Ordinary tests of a teacher's, each with a right and a wrong answer: a measure for graders.

Each kind has a module that lists its cases, which make one notebook. A grader must give the right
answer of every case its point, and the wrong one none. What stock nbgrader gives is this:
``test_ordinary`` runs the cells of all notebooks as its kernel does.

No case depends on another. The names that a student's cells define are therefore different in all
cases of a notebook.
"""

import re
from dataclasses import dataclass, replace
from importlib import import_module
from textwrap import dedent
from typing import Any

from courses import answer, test
from nbformat.v4 import new_notebook

KINDS = (
    "seeds",
    "results",
    "operators",
    "arguments",
    "inspection",
    "streams",
    "calls",
    "effects",
    "learning",
    "notebook",
)
"""The modules of cases."""

FILES = {"rainfall.txt": "48.0\n91.5\n12.0\n"}
"""The texts of the files beside the notebooks."""


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
        The source of a wrong answer, which gets no point.
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

    @property
    def id(self) -> str:
        """Return the name of the test cell."""
        return re.sub(r"\W+", "-", self.name)[:50].strip("-")  # an id has 64 at most


def assignment_of(kind: str, *, wrong: bool = False) -> Any:
    """Return the instructor's notebook of a kind, or one with the wrong answers."""
    cells = []
    for case in import_module(f"{__name__}.{kind}").CASES:
        cells.append(answer(f"answer-{case.id}", case.wrong if wrong else case.answer))
        cells += [test(f"earlier-{case.id}", 1, case.earlier)] if case.earlier else []
        cells.append(test(case.id, 1, case.test))
    return new_notebook(cells=cells)


def cases() -> tuple[Case, ...]:
    """Return all cases, each with its kind."""
    return tuple(
        replace(case, kind=kind)
        for kind in KINDS
        for case in import_module(f"{__name__}.{kind}").CASES
    )
