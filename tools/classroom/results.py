"""Read what the students of a class achieved, and why they did not solve each exercise.

The points are the gradebook's; what happened are the events in the report of the last run.
"""

import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import gradebox.nbgrader.course
from gradebox.events import Event
from gradebox.nbgrader.cells import error_text, errors, headings, is_test, name_of
from gradebox.nbgrader.names import absent
from gradebox.run import report
from optdl.checks.report import LIKELY_CAUSE, WHY
from tools import notebooks
from tools.classroom import class_state, release, student_matching
from tools.classroom.backend import Backend, submissions
from tools.classroom.student_matching import Person
from tools.layout import Course

NOT_GRADED = "not graded"
NOT_HANDED_IN = "not handed in"
NOT_LISTED = "not on the class list"
TIME_UNKNOWN = "time unknown"
LABELS = {
    "tampering": "tampering",
    "not-a-value": "answers that are no values",
    "fails-in-process": "failures in-process",
    "not-sealed": "not sealed",
    "message": "messages",
    "slow": "endless or slow",
    "memory": "too much memory",
    "ended": "ended Python",
    "syntax": "syntax errors",
    "renamed": "renamed functions",
    "missing": "deleted cells",
    "changed": "changed cells",
    "twice": "duplicate cells",
    "unknown-notebook": "unknown notebooks",
    "missing-notebook": "missing notebooks",
}
"""What a summary calls the kinds of events; it leaves out the others, such as late work."""


@dataclass(frozen=True)
class Row:
    """One student's result in one assignment; moments are in UTC."""

    person: Person
    assignment: str
    max_auto: float
    max_written: float
    graded: bool = False
    auto: float = 0  # points for code
    written: float = 0  # points for answers that a person reads
    pending: int = 0  # answers that wait to be read
    hours_late: float = 0
    late_penalty: float = 0  # points that are taken off
    why: str = ""  # why the work could not be graded
    events: Sequence[Event] = ()  # what happened to the work
    lacks: Sequence[str] = ()  # exercises that came after the release that it was made from
    time: str = ""  # what is known where there is a deadline and no time: a platform may say late
    is_listed: bool = True
    handed_in: datetime | None = None
    due: datetime | None = None  # with an extension

    @property
    def student(self) -> str:
        """Return the student's id."""
        return self.person.id

    @property
    def total(self) -> float:
        """Return all points less the late penalty, and no less than 0, as nbgrader exports them."""
        return max(0.0, self.auto + self.written - self.late_penalty)

    @property
    def max_total(self) -> float:
        """Return all points that there are."""
        return self.max_auto + self.max_written

    @property
    def is_late(self) -> bool:
        """Return whether the work came late, or a platform that does not tell when says so."""
        return self.hours_late > 0 or self.time not in ("", TIME_UNKNOWN)

    @property
    def late(self) -> str:
        """Return how late the work came, in hours or, past two days, in days, and what it costs."""
        days, hours = f"{self.hours_late / 24:.0f} d", f"{self.hours_late:g} h"
        came = f"{days if self.hours_late > 48 else hours} late" if self.hours_late else ""
        return f"{came}, {self.late_penalty:g} points taken off" if self.late_penalty else came

    @property
    def _circumstances(self) -> list[str]:
        older = f"older release, without {', '.join(self.lacks)}" if self.lacks else ""
        return [self.time, self.late, older, "" if self.is_listed else NOT_LISTED]

    @property
    def remarks(self) -> list[str]:
        """Return all that there is to say of the submission, a sentence each."""
        return [*filter(None, [self.why, *self._circumstances, *map(str, self.events)])]

    @property
    def summary(self) -> str:
        """Return in a short phrase what happened to the work, with the numbers of events."""
        labels = Counter(LABELS[event.kind] for event in self.events if event.kind in LABELS)
        counted = [f"{label}: {number}" for label, number in labels.most_common()]
        failed = self.why if self.why.startswith(NOT_GRADED) else ""
        return ", ".join(filter(None, [failed, *counted, *self._circumstances]))

    @property
    def look_at(self) -> set[str]:
        """Return the kinds of what a teacher must look at."""
        kinds = {event.kind for event in self.events if event.is_to_look_at}
        return kinds | ({"older"} if self.lacks else set())


def rows(course: Course, topics: Sequence[str], everybody: bool = False) -> list[Row]:
    """Return the results of all students in the assignments named, sorted.

    Who handed in something that could not be graded has no points. With ``everybody``, those, too,
    are among them who are on the class list, or in the gradebook, and handed in nothing.
    """
    results, state = [], class_state.read(course)
    people = student_matching.everybody(course)
    with Backend(course).gradebook() as book:
        graded = defaultdict[str, dict[str, Any]](dict)
        for submission in submissions(book, topics):
            graded[submission.assignment.name][submission.student.id] = submission
        for topic, of_students in graded.items():
            assignment, outcomes = book.find_assignment(topic), read_report(course, topic)
            handed_in = {*of_students, *course.submitters(topic)}
            for student in handed_in | (people.keys() if everybody else set()):
                outcome, submission = outcomes.get(student, {}), of_students.get(student)
                came, time = state.hand_in(topic, student), ""
                if submission and assignment.duedate and submission.timestamp is None:
                    time = f"late, as {came.platform} says" if came and came.late else TIME_UNKNOWN
                missing = NOT_GRADED if student in handed_in else NOT_HANDED_IN
                why = ["" if submission else missing, outcome.get("why")]
                happened = [*map(Event.of, outcome.get("events", ()))]
                lacks, events = release.older(course, topic, happened)
                row = Row(
                    people.get(student, Person(student)),
                    topic,
                    assignment.max_code_score,
                    assignment.max_written_score + assignment.max_task_score,
                    why=": ".join(filter(None, why)),
                    # how late it came, and what that costs, is told in numbers
                    events=[each for each in events if not each.kind.startswith("late")],
                    lacks=lacks,
                    time=time,
                    is_listed=not state.students or student in state.students,
                    **(_points(submission) if submission else {}),
                )
                results.append(row)
    return sorted(results, key=lambda row: (row.student, topics.index(row.assignment)))


def _points(submission: Any) -> dict[str, Any]:
    grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
    penalties = [notebook.late_submission_penalty or 0 for notebook in submission.notebooks]
    late = submission.total_seconds_late
    return {
        "graded": True,
        "auto": submission.code_score,
        "written": submission.written_score + submission.task_score,
        "pending": sum(bool(grade.needs_manual_grade) for grade in grades),
        # a few seconds are late, too, and may cost points
        "hours_late": max(round(late / 3600, 1), 0.1) if late else 0,
        "late_penalty": sum(penalties),
        "handed_in": submission.timestamp,
        "due": submission.duedate,
    }


def read_report(course: Course, topic: str) -> dict[str, Any]:
    """Return what the report of the last run says of each student in an assignment."""
    return report.read(gradebox.nbgrader.course.Course(course.root, topic, config=course.config))


NOT_WRITTEN = "not written"
NOT_FOUND = "the function was not found: renamed or deleted"
NOT_RUN = "the cell of the function ends with an error"
TOO_LONG = "too slow, or without an end"
UNNAMED = "a wrong result of no known cause"
KINDS = {"slow": TOO_LONG, "ended": "ends Python"}  # what the kinds of events say of a test
WHYS = {
    r"values? differ": UNNAMED,
    r"expected (?:shape|a single number)": "a wrong shape",
    r"prints its answer": "prints, and returns nothing",
    r"got None": "returns nothing",
}
"""What some of the reasons that a check gives have in common."""


@dataclass
class Report:
    """How an exercise went: its points and the causes, by the ids of students."""

    notebook: str
    title: str
    cells: list[str]  # its tests
    max_points: float = 0
    points: dict[str, float] = field(default_factory=dict)  # of all whose notebook was graded
    why: dict[str, str] = field(default_factory=dict)  # the cause for each who has not solved it
    named: set[str] = field(default_factory=set)  # causes that are known misconceptions

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
    outcomes, lacks = read_report(course, topic), {row.student: row.lacks for row in rows}
    with Backend(course).gradebook() as book:
        for submission in submissions(book, [topic]):
            student = submission.student.id
            events = outcomes.get(student, {}).get("events", ())
            for name, path in course.executed(student, topic).items():
                entries = [each for each in submission.notebooks if each.name == name]
                grades = {grade.name: grade for entry in entries for grade in entry.grades}
                nb = notebooks.read_graded(path)
                missing = absent(nb)
                happened = {
                    event["cell"]: KINDS[event["kind"]]
                    for event in events
                    if event["kind"] in KINDS and "cell" in event and event["notebook"] == name
                }
                causes = {
                    test: (cause(cell, missing, happened), _lines(cell, LIKELY_CAUSE))
                    for test, cell in notebooks.named(nb).items()
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
    titles = headings(nb)
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
    name, text = name_of(cell), error_text(cell)
    if name in missing:
        return NOT_RUN if missing[name].failed else NOT_FOUND
    if name in happened:
        return happened[name]
    if hints := _lines(cell, LIKELY_CAUSE):
        return hints[0]
    if "not written yet" in text or raised[0].ename == "NotImplementedError":
        return NOT_WRITTEN
    if error := re.search(r"your function raised (\w+)", text):
        return f"raises {error[1]}"
    for why in _lines(cell, WHY)[:1]:
        return next((told for pattern, told in WHYS.items() if re.search(pattern, why)), why)
    return UNNAMED if raised[0].ename == "CheckFailed" else f"fails with {raised[0].ename}"


def comma_separated(names: Sequence[str], lines: Iterable[Iterable[Any]]) -> str:
    """Return a table as comma-separated text."""

    def cell(value: Any) -> Any:
        if isinstance(value, float):
            return f"{value:g}"
        # a spreadsheet would compute it
        is_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t"))
        return f"'{value}" if is_formula else value

    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([names, *(map(cell, row) for row in lines)])
    return stream.getvalue()
