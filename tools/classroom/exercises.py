"""Tell for each exercise how many students solved it, and why the others did not."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradebox.nbgrader.cells import error_text, errors, is_test, name_of
from gradebox.nbgrader.names import absent
from optdl.checks.report import LIKELY_CAUSE, WHY
from tools import notebooks
from tools.classroom.backend import Backend, submissions
from tools.classroom.results import Row, read_report
from tools.layout import Course

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
    """How an exercise went: its points and the causes, by the ids of students.

    ``cells`` are its tests, ``points`` those of every student whose notebook has been graded,
    ``why`` the cause for each who has not solved it, ``named`` the causes that are misconceptions
    which the checks know.
    """

    notebook: str
    title: str
    cells: list[str]
    max_points: float = 0
    points: dict[str, float] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)

    @property
    def causes(self) -> Counter[str]:
        """Return how many students have not solved it for each cause."""
        return Counter(self.why.values())

    @property
    def most_frequent(self) -> list[tuple[str, int]]:
        """Return the causes, the most frequent first, and named misconceptions before others."""
        return sorted(self.causes.items(), key=lambda item: (-item[1], item[0] not in self.named))

    @property
    def rate(self) -> float:
        """Return how many of a hundred students solved it."""
        return 100 - 100 * len(self.why) / len(self.points)

    def add(self, student: str, scores: Sequence[Any], causes: Mapping[str, Any]) -> None:
        """Take in a student's scores, and why each test failed, with the causes that it names."""
        self.points[student] = sum(grade.score for grade in scores)
        self.max_points = sum(grade.max_score for grade in scores)
        if self.points[student] < self.max_points:
            of_tests = [causes[test] for test in self.cells if test in causes]
            telling = (text for text, _ in of_tests if text not in ("", UNNAMED))
            self.why[student] = next(telling, UNNAMED)
            self.named |= {text for _, named in of_tests for text in named}


def reports(course: Course, topic: str, rows: Iterable[Row] = ()) -> list[Report]:
    """Return how each exercise of an assignment went, in the order of its notebooks.

    A student whose row in the results says that an exercise came later does not count in it.
    """
    exercises = {name: _exercises(course, topic, name) for name in course.notebooks(topic)}
    if not any(exercises.values()) or not course.has_gradebook:
        return []
    outcomes, lacks = read_report(course, topic), {row.student: row.lacks for row in rows}
    with Backend(course).gradebook() as book:
        for submission in submissions(book, [topic]):
            student = submission.student.id
            events = outcomes.get(student, {}).get("events", ())
            for name, path in course.executed(student, topic).items():
                entries = [each for each in submission.notebooks if each.name == name]
                grades = {grade.name: grade for entry in entries for grade in entry.grades}
                nb = notebooks.read_graded(path)
                cells, missing = notebooks.named(nb).items(), absent(nb)
                happened = {
                    event["cell"]: KINDS[event["kind"]]
                    for event in events
                    if event["kind"] in KINDS and "cell" in event and event["notebook"] == name
                }
                causes = {
                    test: (cause(cell, missing, happened), _lines(cell, LIKELY_CAUSE))
                    for test, cell in cells
                    if is_test(cell)
                }
                for exercise in exercises[name]:
                    if f"exercise {exercise.title}" not in lacks.get(student, ()):
                        scores = [grades[test] for test in exercise.cells if test in grades]
                        exercise.add(student, scores, causes)
    return [report for reports in exercises.values() for report in reports if report.points]


def _exercises(course: Course, topic: str, name: str) -> list[Report]:
    """Return the exercises of a notebook: the tests below a heading."""
    nb = notebooks.read(course.source(topic, name))
    titles = notebooks.headings(nb)
    tests: dict[str, list[str]] = {}
    for cell in filter(is_test, nb.cells):
        tests.setdefault(titles[name_of(cell)], []).append(name_of(cell))
    return [Report(name, title, cells) for title, cells in tests.items()]


def _lines(cell: Any, prefix: str) -> list[str]:
    """Return the lines of a cell's errors that begin so, without how they begin."""
    lines = error_text(cell).split("\n")
    return [line.removeprefix(prefix).strip() for line in lines if line.startswith(prefix)]


def cause(cell: Any, missing: Mapping[str, Any], happened: Mapping[str, str]) -> str:
    """Return in a few words why an executed test failed; nothing if it did not.

    By the names of tests, ``missing`` is what they did not find, and ``happened`` what else
    happened to them.
    """
    if not (raised := errors(cell)):
        return ""
    name = name_of(cell)
    if name in missing:
        return NOT_RUN if missing[name].failed else NOT_FOUND
    if name in happened:
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
