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
from tools.classroom import release, students
from tools.classroom.backend import Backend, submissions
from tools.classroom.students import Person
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


@dataclass
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

    def __post_init__(self) -> None:
        """Compute what follows from the rest."""
        self.student = self.person.id
        self.max_total = self.max_auto + self.max_written
        # as nbgrader exports it
        self.total = max(0.0, self.auto + self.written - self.late_penalty)
        # a platform that does not tell when work came may say that it is late
        self.is_late = self.hours_late > 0 or self.time not in ("", TIME_UNKNOWN)
        days, hours = f"{self.hours_late / 24:.0f} d", f"{self.hours_late:g} h"
        late = f"{days if self.hours_late > 48 else hours} late" if self.hours_late else ""
        taken = f"{self.late_penalty:g} point{'s' * (self.late_penalty != 1)} taken off"
        # work that was replaced has no time until it is graded, and may still have a penalty
        self.late = ", ".join(filter(None, [late, taken if self.late_penalty else ""]))
        # the kinds of what a teacher must look at, and what happened to the work in a short phrase
        self.look_at = {event.kind for event in self.events if event.is_to_look_at}
        self.look_at |= {"older"} if self.lacks else set()
        self.summary = ", ".join(self.remarks(LABELS))

    def remarks(self, labels: Mapping[str, str] | None = None) -> list[str]:
        """Return all that there is to say of the submission, each event as a sentence or counted.

        ``labels`` has what kinds of events are called, and those that it lacks are left out.
        """
        told = [str(event) for event in self.events]
        if labels:
            counted = Counter(labels[event.kind] for event in self.events if event.kind in labels)
            told = [f"{label}: {number}" for label, number in counted.most_common()]
        older = f"older release, without {', '.join(self.lacks)}" if self.lacks else ""
        listed = "" if self.is_listed else NOT_LISTED
        return [*filter(None, [self.why, self.time, self.late, older, listed, *told])]


def rows(course: Course, topics: Sequence[str], everybody: bool = False) -> list[Row]:
    """Return the results of all students in the assignments named, sorted.

    Who handed in something that could not be graded has no points. With ``everybody``, those, too,
    are among them who are on the class list, or in the gradebook, and handed in nothing.
    """
    results, state, people = [], students.state(course), students.everybody(course)
    with Backend(course).gradebook() as book:
        graded = defaultdict[str, dict[str, Any]](dict)
        for submission in submissions(book, topics):
            graded[submission.assignment.name][submission.student.id] = submission
        for topic, of_students in graded.items():
            assignment, outcomes = book.find_assignment(topic), read_report(course, topic)
            handed_in = {*of_students, *course.submitters(topic)}
            for student in handed_in | (people.keys() if everybody else set()):
                outcome, submission = outcomes.get(student, {}), of_students.get(student)
                came, time = state.collected.get(topic, {}).get(student, {}), ""
                if submission and assignment.duedate and submission.timestamp is None:
                    is_late = came.get("late")
                    time = f"late, as {came['platform']} says" if is_late else TIME_UNKNOWN
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
class Exercise:
    """How an exercise went: its points and the causes, by the ids of students."""

    notebook: str
    title: str
    tests: list[str] = field(default_factory=list)
    max_points: float = 0
    points: dict[str, float] = field(default_factory=dict)  # of all whose notebook was graded
    why: dict[str, str] = field(default_factory=dict)  # the cause for each who has not solved it
    named: set[str] = field(default_factory=set)  # causes that are known misconceptions

    @property
    def causes(self) -> list[tuple[str, int]]:
        """Return how many have not solved it for each cause, known misconceptions before others."""
        count = Counter(self.why.values())
        return sorted(count.items(), key=lambda item: (-item[1], item[0] not in self.named))

    def add(self, student: str, grades: Mapping[str, Any], causes: Mapping[str, Any]) -> None:
        """Take in a student's grades, and why each test failed, with the causes that it names."""
        scores = [grades[test] for test in self.tests if test in grades]
        self.points[student] = sum(grade.score for grade in scores)
        self.max_points = sum(grade.max_score for grade in scores)
        if self.points[student] < self.max_points:
            of_tests = [causes[test] for test in self.tests if test in causes]
            telling = (text for text, _ in of_tests if text not in ("", UNNAMED))
            self.why[student] = next(telling, UNNAMED)
            self.named.update(text for _, named in of_tests for text in named)


def exercises(course: Course, topic: str, rows: Iterable[Row] = ()) -> list[Exercise]:
    """Return how each exercise of an assignment went, in the order of its notebooks.

    A student whose row in the results says that an exercise came later does not count in it.
    """
    found: dict[tuple[str, str], Exercise] = {}
    for name in course.notebooks(topic):
        source = notebooks.read(course.source(topic, name))
        titles = headings(source)
        for test in map(name_of, filter(is_test, source.cells)):
            exercise = Exercise(name, titles[test])
            found.setdefault((name, titles[test]), exercise).tests.append(test)
    outcomes, lacks = read_report(course, topic), {row.student: row.lacks for row in rows}
    with Backend(course).gradebook() as book:
        for submission in submissions(book, [topic]):
            student = submission.student.id
            events = outcomes.get(student, {}).get("events", ())
            for name, path in course.executed(student, topic).items():
                entries = [each for each in submission.notebooks if each.name == name]
                grades = {grade.name: grade for entry in entries for grade in entry.grades}
                nb = notebooks.read(path)
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
                for exercise in found.values():
                    later = f"exercise {exercise.title}" in lacks.get(student, ())
                    if exercise.notebook == name and not later:
                        exercise.add(student, grades, causes)
    return [exercise for exercise in found.values() if exercise.points]


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
