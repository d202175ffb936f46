"""Read what the students of a class achieved, and what happened, from the gradebook."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from gradebox.bridge.cells import CAUSE, error_text, errors, named
from gradebox.troubles import Trouble
from tools import notebooks
from tools.backend import Backend, submissions
from tools.layout import Course
from tools.stamps import write_atomically
from tools.terminal import ToolError

CALL = re.compile(r"your function raised (StudentTimeout|StudentGone):")
NOT_GRADED = "not graded"
NOT_HANDED_IN = "not handed in"


@dataclass(frozen=True)
class Row:
    """One student's result in one assignment.

    ``auto`` and ``written`` are the points for code and for answers read by a person;
    ``marked`` and ``pending`` tell how many answers have a mark by hand and how many wait to be
    read (after a new grading some do both); ``late_penalty`` is the number of points taken off for
    being late; ``notes`` tells what went wrong while it ran.
    """

    student: str
    first_name: str
    last_name: str
    assignment: str
    auto: float
    max_auto: float
    written: float
    max_written: float
    marked: int
    pending: int
    hours_late: float
    late_penalty: float
    notes: str

    @property
    def graded(self) -> bool:
        """Return whether there are points at all."""
        return self.notes not in (NOT_GRADED, NOT_HANDED_IN)

    @property
    def total(self) -> float:
        """Return all points less the late penalty, and no less than 0, as nbgrader exports them."""
        return max(0.0, self.auto + self.written - self.late_penalty)

    @property
    def max_total(self) -> float:
        """Return all points that there are."""
        return self.max_auto + self.max_written


def rows(course: Course, topics: Sequence[str]) -> list[Row]:
    """Return the results of all students in the assignments named, sorted.

    Who handed in something that could not be graded has no points, and a note that says so.
    """
    if not course.has_gradebook:
        raise ToolError("there is no gradebook yet", "grade something first: make course")
    with Backend(course).gradebook() as book:
        graded = submissions(book, topics)
        found = [_row(course, one.assignment.name, one) for one in graded]
        for assignment in {one.assignment.name: one.assignment for one in graded}.values():
            known = {row.student for row in found if row.assignment == assignment.name}
            others = [one for one in course.submitters(assignment.name) if one not in known]
            found += [_without_points(book, name, assignment, NOT_GRADED) for name in others]
    return sorted(found, key=lambda row: (row.student, topics.index(row.assignment)))


def _row(course: Course, topic: str, submission: Any) -> Row:
    grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
    return Row(
        student=submission.student.id,
        first_name=submission.student.first_name or "",
        last_name=submission.student.last_name or "",
        assignment=topic,
        auto=submission.code_score,
        max_auto=submission.max_code_score,
        written=submission.written_score + submission.task_score,
        max_written=submission.max_written_score + submission.max_task_score,
        marked=sum(grade.manual_score is not None for grade in grades),
        pending=sum(bool(grade.needs_manual_grade) for grade in grades),
        hours_late=round(submission.total_seconds_late / 3600, 1),
        late_penalty=sum(entry.late_submission_penalty or 0 for entry in submission.notebooks),
        notes="; ".join(notes(course, submission.student.id, topic)),
    )


def everybody(course: Course, results: Sequence[Row]) -> list[Row]:
    """Return the results with those, too, who are on the class list and handed in nothing."""
    topics = list(dict.fromkeys(row.assignment for row in results))
    there = {(row.student, row.assignment) for row in results}
    with Backend(course).gradebook() as book:
        missing = [
            _without_points(book, student.id, book.find_assignment(topic), NOT_HANDED_IN)
            for student in book.students
            for topic in topics
            if (student.id, topic) not in there
        ]
    order = course.topics()
    return sorted([*results, *missing], key=lambda row: (row.student, order.index(row.assignment)))


def _without_points(book: Any, student: str, assignment: Any, why: str) -> Row:
    known = next((one for one in book.students if one.id == student), None)
    return Row(
        student=student,
        first_name=(known and known.first_name) or "",
        last_name=(known and known.last_name) or "",
        assignment=assignment.name,
        auto=0,
        max_auto=assignment.max_code_score,
        written=0,
        max_written=assignment.max_written_score + assignment.max_task_score,
        marked=0,
        pending=0,
        hours_late=0,
        late_penalty=0,
        notes=why,
    )


def notes(course: Course, student: str, topic: str) -> list[str]:
    """Return what an instructor should know about how the notebooks of a submission ran."""
    executed = course.executed(student, topic)
    if not executed:
        return [NOT_GRADED]
    missing = [name for name in course.notebooks(topic) if name not in executed]
    ran = [note for path in executed.values() for note in _notes(path)]
    return [*ran, *(f"notebook missing: {name}" for name in missing)]


def _notes(notebook: Path) -> list[str]:
    """Return what happened in an executed notebook."""
    found = []
    for cell in notebooks.read_graded(notebook).cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "a cell")
        for kind in _errors(cell):
            trouble = Trouble.of(kind)
            if trouble and trouble.is_slow:
                found.append(f"timeout: {name}")
            elif trouble or kind == "MemoryError":
                found.append(f"kernel died: {name}")
            elif kind in {"SyntaxError", "IndentationError", "TabError"}:
                found.append(f"syntax error: {name}")
        if "was missing from the submission" in cell.source:
            found.append(f"cell deleted: {name}")
    return found


def _errors(cell: Any) -> list[str]:
    """Return the names of the errors of a cell; a check reports what a call of it met."""
    return [
        call[1] if (call := CALL.search(str(error.get("evalue", "")))) else error.ename
        for error in errors(cell)
    ]


def causes(course: Course, topics: Iterable[str]) -> Counter[tuple[str, str]]:
    """Count, for each misconception that a check named, the students who hold it."""
    counted: Counter[tuple[str, str]] = Counter()
    for topic in topics:
        for folder in sorted(course.autograded.glob(f"*/{topic}")):
            hints = {
                hint
                for path in course.executed(folder.parent.name, topic).values()
                for cell in notebooks.read_graded(path).cells
                for hint in named(error_text(cell), CAUSE)
            }
            counted.update((topic, hint) for hint in hints)
    return counted


SCORES = ("total", "auto", "written", "marked", "pending", "hours_late", "late_penalty")
"""The columns that are blank where there is nothing to give points for."""


def to_csv(results: Sequence[Row]) -> str:
    """Return the results as comma-separated text, a line for each student and assignment."""
    names = [one.name for one in fields(Row)]
    names[names.index("auto") : names.index("auto")] = ["total", "max_total"]
    lines = [{name: _cell(getattr(row, name)) for name in names} for row in results]
    for row, line in zip(results, lines, strict=True):
        if not row.graded:
            line |= dict.fromkeys(SCORES, "")
    return comma_separated(names, lines)


def comma_separated(names: Sequence[str], lines: Iterable[dict[str, Any]]) -> str:
    """Return a table as comma-separated text."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, fieldnames=names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return stream.getvalue()


def _cell(value: Any) -> Any:
    """Return what a cell holds; a text that a spreadsheet would compute is marked as text."""
    if isinstance(value, float):
        return f"{value:g}"
    begins = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t"))
    return f"'{value}" if begins else value


def for_spreadsheets(text: str) -> bytes:
    """Return the bytes of a file that spreadsheets, too, open as UTF-8."""
    return text.encode("utf-8-sig")


def write_sheet(course: Course) -> Path | None:
    """Write all results beside the gradebook; return the file, or None where there are none."""
    sheet = course.build / "gradebook.csv"
    found = rows(course, course.topics()) if course.has_gradebook else []
    if not found:
        sheet.unlink(missing_ok=True)
        return None
    write_atomically(sheet, for_spreadsheets(to_csv(everybody(course, found))))
    return sheet
