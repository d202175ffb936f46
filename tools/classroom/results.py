"""Read what the students of a class achieved from the gradebook, and what happened to their work.

The points are the gradebook's; what happened are the events in the report of the last run.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import gradebox.nbgrader.course
from gradebox.events import Event
from gradebox.run import report
from tools.classroom import class_state, release
from tools.classroom.backend import Backend, submissions
from tools.layout import Course
from tools.terminal import ToolError

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
    """One student's result in one assignment.

    ``auto`` and ``written`` are the points for code and for answers read by a person;
    ``pending`` tells how many answers wait to be read, and ``late_penalty`` how many points are
    taken off for being late; ``why`` says why the work could not be graded, ``events`` what
    happened to it, and ``lacks`` which exercises came after the release that it was made from.
    ``time`` says what is known where there is a deadline and no time of the work: the platform may
    call it late.
    ``handed_in`` and ``due`` are moments in UTC, and the second includes an extension.
    """

    student: str
    first_name: str
    last_name: str
    assignment: str
    max_auto: float
    max_written: float
    graded: bool = False
    auto: float = 0
    written: float = 0
    pending: int = 0
    hours_late: float = 0
    late_penalty: float = 0
    why: str = ""
    events: tuple[Event, ...] = ()
    lacks: tuple[str, ...] = ()
    time: str = ""
    is_listed: bool = True
    handed_in: datetime | None = None
    due: datetime | None = None

    @property
    def who(self) -> str:
        """Return the student's id and name."""
        name = f"{self.first_name} {self.last_name}".strip()
        return f"{self.student} ({name})" if name else self.student

    @property
    def total(self) -> float:
        """Return all points less the late penalty, and no less than 0, as nbgrader exports them."""
        return max(0.0, self.auto + self.written - self.late_penalty)

    @property
    def max_total(self) -> float:
        """Return all points that there are."""
        return self.max_auto + self.max_written

    @property
    def _circumstances(self) -> list[str]:
        older = f"older release, without {', '.join(self.lacks)}" if self.lacks else ""
        return [self.time, self.late, older, "" if self.is_listed else NOT_LISTED]

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
    if not course.has_gradebook:
        raise ToolError("there is no gradebook yet", "grade something first: make course")
    results, state = [], class_state.read(course)
    with Backend(course).gradebook() as book:
        names = {each.id: (each.first_name or "", each.last_name or "") for each in book.students}
        graded: dict[str, dict[str, Any]] = {}
        for submission in submissions(book, topics):
            graded.setdefault(submission.assignment.name, {})[submission.student.id] = submission
        for topic, of_students in graded.items():
            assignment, outcomes = book.find_assignment(topic), read_report(course, topic)
            handed_in = {*of_students, *course.submitters(topic)}
            for student in handed_in | (names.keys() if everybody else set()):
                outcome, submission = outcomes.get(student, {}), of_students.get(student)
                time = ""
                if submission and assignment.duedate and submission.timestamp is None:
                    came = state.hand_in(topic, student)
                    time = f"late, as {came.platform} says" if came and came.late else TIME_UNKNOWN
                missing = NOT_GRADED if student in handed_in else NOT_HANDED_IN
                why = ["" if submission else missing, outcome.get("why")]
                happened = [*map(Event.of, outcome.get("events", ()))]
                lacks, events = release.older(course, topic, happened)
                row = Row(
                    student,
                    *names.get(student, ("", "")),
                    topic,
                    assignment.max_code_score,
                    assignment.max_written_score + assignment.max_task_score,
                    why=": ".join(filter(None, why)),
                    # how late it came, and what that costs, is told in numbers
                    events=tuple(each for each in events if not each.kind.startswith("late")),
                    lacks=tuple(lacks),
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


def for_spreadsheets(text: str) -> bytes:
    """Return the bytes of a file that spreadsheets, too, open as UTF-8."""
    return text.encode("utf-8-sig")
