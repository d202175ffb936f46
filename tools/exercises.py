"""Tell for each exercise how many students solved it, and why the others did not."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradebox.feedback.messages import titles
from gradebox.nbgrader.absent import absent
from gradebox.nbgrader.cells import error_text, errors, is_test
from optdl.checks.report import LIKELY_CAUSE, WHY
from tools import notebooks
from tools.backend import Backend, submissions
from tools.layout import Course
from tools.results import comma_separated, read_report

NOT_WRITTEN = "not written"
NOT_FOUND = "the function was not found: renamed or deleted"
NOT_RUN = "the cell of the function ends with an error"
TOO_LONG = "too slow, or without an end"
ENDED = "ends Python"
UNNAMED = "a wrong result of no known cause"
KINDS = {"slow": TOO_LONG, "ended": ENDED}
"""What the kinds of events say of a test."""

_RAISED = re.compile(r"your function raised (\w+)")
WHYS = (
    (re.compile(r"values? differ"), UNNAMED),
    (re.compile(r"expected (?:shape|a single number)"), "a wrong shape"),
    (re.compile(r"prints its answer"), "prints, and returns nothing"),
    (re.compile(r"got None"), "returns nothing"),
)
"""What some of the reasons that a check gives have in common."""


@dataclass
class Report:
    """How an exercise went.

    Parameters
    ----------
    assignment, notebook, title : str
        The assignment, the notebook of it, and what the exercise is called.
    cells : list of str
        The names of its tests.
    students : int
        How many have handed in the notebook and been graded.
    solved : int
        How many of them have all of its points.
    causes : Counter
        Why the others do not.
    named : set of str
        The causes that are misconceptions which the checks know.
    max_points : float
        How many points it has.
    points : dict
        How many of them each student has, by id.
    why : dict
        The cause for each student who has not solved it, by id.
    """

    assignment: str
    notebook: str
    title: str
    cells: list[str]
    students: int = 0
    solved: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    named: set[str] = field(default_factory=set)
    max_points: float = 0
    points: dict[str, float] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)

    @property
    def most_frequent(self) -> list[tuple[str, int]]:
        """Return the causes, the most frequent first, and named misconceptions before others."""
        return sorted(self.causes.items(), key=lambda item: (-item[1], item[0] not in self.named))

    @property
    def rate(self) -> float:
        """Return how many of a hundred students solved it."""
        return 100 * self.solved / self.students if self.students else 0.0


def reports(course: Course, topic: str) -> list[Report]:
    """Return how each exercise of an assignment went, in the order of its notebooks."""
    exercises = {name: _exercises(course, topic, name) for name in course.notebooks(topic)}
    if not any(exercises.values()) or not course.has_gradebook:
        return []
    outcomes = read_report(course, topic)
    with Backend(course).gradebook() as book:
        for submission in submissions(book, [topic]):
            student = submission.student.id
            happened: dict[str, dict[str, str]] = {}
            for event in outcomes.get(student, {}).get("events", ()):
                if event["kind"] in KINDS and "cell" in event:
                    of_notebook = happened.setdefault(event["notebook"], {})
                    of_notebook[event["cell"]] = KINDS[event["kind"]]
            grades = {
                entry.name: {grade.name: grade for grade in entry.grades}
                for entry in submission.notebooks
            }
            for name, path in course.executed(student, topic).items():
                nb = notebooks.read_graded(path)
                details = grades.get(name, {}), nb, happened.get(name, {})
                _count(exercises[name], student, *details)
    return [report for reports in exercises.values() for report in reports if report.students]


def _exercises(course: Course, topic: str, name: str) -> list[Report]:
    """Return the exercises of a notebook: tests that follow each other under a title."""
    nb = notebooks.read(course.source(topic, name))
    pattern = str(course.config.FeedbackPage.get("title", ""))
    exercises: list[Report] = []
    for test, title in titles(nb, pattern).items():
        if not any(is_test(cell) and cell.metadata.nbgrader.grade_id == test for cell in nb.cells):
            continue
        if not exercises or exercises[-1].title != title:
            exercises.append(Report(topic, name, title, []))
        exercises[-1].cells.append(test)
    return exercises


def _count(
    exercises: Sequence[Report],
    student: str,
    grades: dict[str, Any],
    nb: Any,
    happened: dict[str, str],
) -> None:
    cells = {
        cell.metadata.nbgrader.grade_id: cell for cell in nb.cells if "nbgrader" in cell.metadata
    }
    missing = absent(nb)
    for exercise in exercises:
        scores = [grades[name] for name in exercise.cells if name in grades]
        exercise.students += 1
        exercise.points[student] = sum(grade.score for grade in scores)
        exercise.max_points = sum(grade.max_score for grade in scores)
        if exercise.points[student] >= exercise.max_points:
            exercise.solved += 1
            continue
        tests = [cells[name] for name in exercise.cells if name in cells]
        causes = [cause(cell, missing, happened) for cell in tests]
        telling = [text for text in causes if text and text != UNNAMED]
        exercise.why[student] = next(iter(telling), UNNAMED)
        exercise.causes[exercise.why[student]] += 1
        exercise.named |= {text for cell in tests for text in _lines(cell, LIKELY_CAUSE)}


def _lines(cell: Any, prefix: str) -> list[str]:
    """Return the lines of a cell's errors that begin so, without how they begin."""
    lines = error_text(cell).split("\n")
    return [line.removeprefix(prefix).strip() for line in lines if line.startswith(prefix)]


def misconceptions(course: Course, topics: Iterable[str]) -> Counter[tuple[str, str]]:
    """Count, for each misconception that a check named, the students who hold it."""
    count: Counter[tuple[str, str]] = Counter()
    for topic in topics:
        for folder in sorted(course.autograded.glob(f"*/{topic}")):
            hints = {
                hint
                for path in course.executed(folder.parent.name, topic).values()
                for cell in notebooks.read_graded(path).cells
                for hint in _lines(cell, LIKELY_CAUSE)
            }
            count.update((topic, hint) for hint in hints)
    return count


def cause(
    cell: Any, missing: Mapping[str, Any] | None = None, happened: Mapping[str, str] | None = None
) -> str:
    """Return in a few words why a test failed; nothing if it did not.

    Parameters
    ----------
    cell : NotebookNode
        The test, executed.
    missing : mapping
        What tests did not find, by their names.
    happened : mapping
        What else happened to tests, by their names.
    """
    if not (raised := errors(cell)):
        return ""
    name = cell.metadata.nbgrader.grade_id
    if missing and name in missing:
        return NOT_RUN if missing[name].failed else NOT_FOUND
    if happened and name in happened:
        return happened[name]
    if hints := _lines(cell, LIKELY_CAUSE):
        return hints[0]
    text = error_text(cell)
    if "not written yet" in text or raised[0].ename == "NotImplementedError":
        return NOT_WRITTEN
    if error := _RAISED.search(text):
        return f"raises {error[1]}"
    for why in _lines(cell, WHY)[:1]:
        return next((category for pattern, category in WHYS if pattern.search(why)), why)
    return UNNAMED if raised[0].ename == "CheckFailed" else f"fails with {raised[0].ename}"


def to_csv(exercises: Sequence[Report]) -> str:
    """Return the reports as comma-separated text, a line for each exercise."""
    names = ("assignment", "notebook", "exercise", "students", "solved", "percent", "causes")
    lines = [
        (
            *(exercise.assignment, exercise.notebook, exercise.title),
            *(exercise.students, exercise.solved, round(exercise.rate)),
            "; ".join(f"{number} × {text}" for text, number in exercise.most_frequent),
        )
        for exercise in exercises
    ]
    return comma_separated(names, lines)
