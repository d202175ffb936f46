"""Read what the students of a class achieved from the gradebook, and what happened to their work.

The points are the gradebook's; what happened are the events in the report of the last run.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import gradebox.nbgrader.course
from gradebox.events import Event
from gradebox.run import report
from tools import class_state
from tools.backend import Backend, submissions
from tools.fingerprints import write_if_changed
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
    ``marked`` and ``pending`` tell how many answers have a mark by hand and how many wait to be
    read (after a new grading some do both); ``late_penalty`` is the number of points taken off for
    being late; ``why`` says why the work could not be graded, and ``events`` what happened to it.
    ``time`` says that nobody knows when the work came, where there is a deadline;
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
    marked: int = 0
    pending: int = 0
    hours_late: float = 0
    late_penalty: float = 0
    why: str = ""
    events: tuple[Event, ...] = ()
    time: str = ""
    is_listed: bool = True
    handed_in: datetime | None = None
    due: datetime | None = None

    @property
    def total(self) -> float:
        """Return all points less the late penalty, and no less than 0, as nbgrader exports them."""
        return max(0.0, self.auto + self.written - self.late_penalty)

    @property
    def max_total(self) -> float:
        """Return all points that there are."""
        return self.max_auto + self.max_written

    @property
    def notes(self) -> str:
        """Return all that there is to say of the submission."""
        listed = "" if self.is_listed else NOT_LISTED
        return "; ".join([*filter(None, [self.why, listed, self.time]), *map(str, self.events)])


def rows(course: Course, topics: Sequence[str], everybody: bool = False) -> list[Row]:
    """Return the results of all students in the assignments named, sorted.

    Who handed in something that could not be graded has no points. With ``everybody``, those, too,
    are among them who are on the class list, or in the gradebook, and handed in nothing.

    Raises
    ------
    ToolError
        If there is no gradebook.
    """
    if not course.has_gradebook:
        raise ToolError("there is no gradebook yet", "grade something first: make course")
    results, state = [], class_state.read(course)
    with Backend(course).gradebook() as book:
        names = {
            student.id: (student.first_name or "", student.last_name or "")
            for student in book.students
        }
        graded: dict[str, dict[str, Any]] = {}
        for submission in submissions(book, topics):
            graded.setdefault(submission.assignment.name, {})[submission.student.id] = submission
        for topic, of_students in graded.items():
            assignment, outcomes = book.find_assignment(topic), read_report(course, topic)
            handed_in = {*of_students, *course.submitters(topic)}
            for student in handed_in | (names.keys() if everybody else set()):
                outcome = outcomes.get(student, {})
                points = _points(of_students[student]) if student in of_students else {}
                if points and assignment.duedate and of_students[student].timestamp is None:
                    hand_in = state.hand_in(topic, student)
                    points["time"] = (
                        f"late, {TIME_UNKNOWN}" if hand_in and hand_in.late else TIME_UNKNOWN
                    )
                why = [] if points else [NOT_GRADED if student in handed_in else NOT_HANDED_IN]
                row = Row(
                    student,
                    *names.get(student, ("", "")),
                    topic,
                    assignment.max_code_score,
                    assignment.max_written_score + assignment.max_task_score,
                    why=": ".join([*why, *filter(None, [outcome.get("why")])]),
                    events=tuple(map(Event.of, outcome.get("events", ()))),
                    is_listed=not state.students or student in state.students,
                    **points,
                )
                results.append(row)
    return sorted(results, key=lambda row: (row.student, topics.index(row.assignment)))


def _points(submission: Any) -> dict[str, Any]:
    grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
    penalties = [notebook.late_submission_penalty or 0 for notebook in submission.notebooks]
    return {
        "graded": True,
        "auto": submission.code_score,
        "written": submission.written_score + submission.task_score,
        "marked": sum(grade.manual_score is not None for grade in grades),
        "pending": sum(bool(grade.needs_manual_grade) for grade in grades),
        "hours_late": round(submission.total_seconds_late / 3600, 1),
        "late_penalty": sum(penalties),
        "handed_in": submission.timestamp,
        "due": submission.duedate,
    }


def read_report(course: Course, topic: str) -> dict[str, Any]:
    """Return what the report of the last run says of each student in an assignment."""
    return report.read(gradebox.nbgrader.course.Course(course.root, topic, config=course.config))


def summary(results: Iterable[Row]) -> str:
    """Return in a short phrase what happened to a student's work, with the numbers of events."""
    labels: Counter[str] = Counter()
    all_rows = list(results)
    for row in all_rows:
        labels.update(LABELS[event.kind] for event in row.events if event.kind in LABELS)
        labels.update([NOT_GRADED] if row.why.startswith(NOT_GRADED) else [])
    counted = [f"{label}: {number}" for label, number in labels.most_common()]
    return ", ".join([*counted, *([] if all(row.is_listed for row in all_rows) else [NOT_LISTED])])


def unknown_time(results: Iterable[Row]) -> str:
    """Return that the time of a student's work is unknown, and whether it is late, or nothing."""
    return max((row.time for row in results), key=len, default="")


COLUMNS = (
    *("student", "first_name", "last_name", "assignment"),
    *("total", "max_total", "auto", "max_auto", "written", "max_written"),
    *("marked", "pending", "hours_late", "late_penalty", "notes"),
)
SCORES = {"total", "auto", "written", "marked", "pending", "hours_late", "late_penalty"}
"""The columns that are blank where there is nothing to give points for."""


def to_csv(results: Iterable[Row]) -> str:
    """Return the results as comma-separated text, a line for each student and assignment."""
    lines = [
        ["" if name in SCORES and not row.graded else getattr(row, name) for name in COLUMNS]
        for row in results
    ]
    return comma_separated(COLUMNS, lines)


def comma_separated(names: Sequence[str], lines: Iterable[Iterable[Any]]) -> str:
    """Return a table as comma-separated text."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([names, *(map(_cell, line) for line in lines)])
    return stream.getvalue()


def _cell(value: Any) -> Any:
    """Return what a cell holds; a text that a spreadsheet would compute is marked as text."""
    if isinstance(value, float):
        return f"{value:g}"
    is_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t"))
    return f"'{value}" if is_formula else value


def for_spreadsheets(text: str) -> bytes:
    """Return the bytes of a file that spreadsheets, too, open as UTF-8."""
    return text.encode("utf-8-sig")


def write_sheet(course: Course) -> Path | None:
    """Write all results beside the gradebook; return the file, or None where there are none."""
    sheet = course.build / "gradebook.csv"
    results = rows(course, course.topics(), everybody=True) if course.has_gradebook else []
    if not results:
        sheet.unlink(missing_ok=True)
        return None
    write_if_changed(sheet, for_spreadsheets(to_csv(results)))
    return sheet
