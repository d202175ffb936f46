"""Small courses that are modelled on public ones: a measure for graders.

Each module has a course of one notebook, in words and with tasks of its own; its docstring names
the course that it is modelled on and says what is typical of the tests there. A grader must give
every cell of every submission the points that stock nbgrader gives.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from importlib import import_module
from textwrap import dedent
from typing import Any

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.preprocessors import ClearSolutions

NAMES = ("documentation", "arrays", "academy", "framework", "randomized", "introduction")
"""The modules with a course."""

STUDENTS = ("solution", "another", "wrong", "careless", "raises", "blank")
"""Who hands in.

``solution`` has the answers of the source, ``another`` has right answers of another kind, ``wrong``
and ``careless`` make usual mistakes, a cell of ``raises`` raises an exception, and ``blank`` hands
in what was released.
"""

MIXED = ("another", "wrong", "careless", "solution")
"""Whose answers a submission takes in turn that has some of each."""


@dataclass(frozen=True)
class Course:
    """A course.

    Parameters
    ----------
    cells : sequence of notebook cells
        The instructor's notebook.
    changes : mapping of str to mapping
        For each student other than ``solution`` and ``blank`` the sources of answers by the name of
        their cell; other cells are as in the instructor's notebook.
    files : mapping of str to str
        The texts of the files beside the notebook.
    """

    cells: Sequence[Any]
    changes: Mapping[str, Mapping[str, str]]
    files: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Remove the indentation that the sources have in their module."""
        changes = {
            student: {name: _text(source) for name, source in changed.items()}
            for student, changed in self.changes.items()
        }
        object.__setattr__(self, "changes", changes)
        files = {name: f"{_text(text)}\n" for name, text in self.files.items()}
        object.__setattr__(self, "files", files)

    def source(self) -> Any:
        """Return the instructor's notebook."""
        return new_notebook(cells=deepcopy(list(self.cells)))

    def answers(self, student: str) -> dict[str, str]:
        """Return the sources of a student's answers by the name of their cell."""
        if student == "blank":
            return {}
        given = {cell.metadata.nbgrader.grade_id: cell.source for cell in self._solutions()}
        if student == "mixed":
            others = {one: self.answers(one) for one in MIXED}
            return {
                name: others[MIXED[number % len(MIXED)]][name] for number, name in enumerate(given)
            }
        return given | self.changes.get(student, {})

    def submission(self, student: str) -> Any:
        """Return a student's notebook with the tests of the instructor's, the hidden ones too."""
        nb, clear = self.source(), ClearSolutions()
        for number, cell in enumerate(nb.cells):
            if is_answer(cell):
                clear.preprocess_cell(cell, {"language": "python"}, number)
        return hand_in(nb, self.answers(student))

    def points(self) -> dict[str, float]:
        """Return what each test is worth."""
        return {
            cell.metadata.nbgrader.grade_id: cell.metadata.nbgrader.points
            for cell in self.cells
            if is_test(cell)
        }

    def _solutions(self) -> list[Any]:
        return [cell for cell in self.cells if is_answer(cell)]


def courses() -> dict[str, Course]:
    """Return all courses by name."""
    return {name: import_module(f"{__name__}.{name}").COURSE for name in NAMES}


def hand_in(nb: Any, answers: Mapping[str, str]) -> Any:
    """Return a notebook with the answers filled in; cells without an answer stay as they are."""
    made = deepcopy(nb)
    for cell in made.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = answers.get(name, cell.source)
    return made


def code(nb: Any) -> tuple[list[str], list[str], list[float | None]]:
    """Return names, sources and points of the code cells; points are None for what is no test."""
    cells = [cell for cell in nb.cells if cell.cell_type == "code"]
    worth = [cell.metadata.nbgrader.points if is_test(cell) else None for cell in cells]
    return [cell.id for cell in cells], [cell.source for cell in cells], worth


def is_answer(cell: Any) -> bool:
    """Return whether a cell is one in which students program."""
    return cell.cell_type == "code" and bool(cell.metadata.get("nbgrader", {}).get("solution"))


def is_test(cell: Any) -> bool:
    """Return whether a cell is a test."""
    about = cell.metadata.get("nbgrader", {})
    return cell.cell_type == "code" and bool(about.get("grade")) and not about.get("solution")


def plain(source: str) -> Any:
    """Return a code cell that nbgrader knows nothing of."""
    return new_code_cell(_text(source))


def unnamed(source: str) -> Any:
    """Return a code cell as early versions of nbgrader left it: with metadata, without a name."""
    cell = plain(source)
    kinds = dict.fromkeys(("grade", "locked", "solution", "task"), False)
    cell.metadata["nbgrader"] = {"schema_version": 3, **kinds}
    return cell


def locked(name: str, source: str) -> Any:
    """Return a code cell that students cannot change."""
    return _marked(new_code_cell(_text(source)), name, locked=True)


def answer(name: str, source: str) -> Any:
    """Return a cell in which students program."""
    return _marked(new_code_cell(_text(source)), name, solution=True)


def test(name: str, points: float, source: str) -> Any:
    """Return a cell of tests."""
    return _marked(new_code_cell(_text(source)), name, grade=True, locked=True, points=points)


def program(name: str, points: float, source: str) -> Any:
    """Return a cell in which students program, and which is graded by hand."""
    return _marked(new_code_cell(_text(source)), name, grade=True, solution=True, points=points)


def words(name: str, points: float, source: str) -> Any:
    """Return a cell in which students write, which is graded by hand."""
    return _marked(new_markdown_cell(_text(source)), name, grade=True, solution=True, points=points)


def task(name: str, points: float, source: str) -> Any:
    """Return a task that students solve in cells of their own."""
    return _marked(new_markdown_cell(_text(source)), name, task=True, locked=True, points=points)


def _marked(cell: Any, name: str, **about: Any) -> Any:
    kinds = dict.fromkeys(("grade", "solution", "locked", "task"), False)
    known = {"grade_id": name, "schema_version": 3, "cell_type": cell.cell_type}
    cell.id = name
    cell.metadata["nbgrader"] = kinds | known | about
    return cell


def _text(source: str) -> str:
    return dedent(source).strip()
