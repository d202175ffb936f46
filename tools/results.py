"""Read what the students of a class achieved, and what happened, from the gradebook."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from tools import notebooks
from tools.backend import Backend, submissions
from tools.layout import Course
from tools.terminal import ToolError

COLORS = re.compile(r"\x1b\[[0-9;]*m")
CALL = re.compile(r"your function raised (StudentTimeout|StudentGone):")
CAUSE = re.compile(r"^Likely cause: (.*)$", re.M)


@dataclass(frozen=True)
class Row:
    """One student's result in one assignment.

    ``auto`` and ``written`` are the points for code and for answers read by a person;
    ``marked`` and ``pending`` tell how many answers have a mark by hand and how many wait to be
    read (after a new grading some do both); ``notes`` tells what went wrong while it ran.
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
    notes: str


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
            found += [_not_graded(name, assignment) for name in others]
    return sorted(found, key=lambda row: (row.student, topics.index(row.assignment)))


def _row(course: Course, topic: str, submission: Any) -> Row:
    grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
    notebook = course.autograded / submission.student.id / topic / f"{topic}.ipynb"
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
        notes="; ".join(notes(notebook)),
    )


def _not_graded(student: str, assignment: Any) -> Row:
    return Row(
        student=student,
        first_name="",
        last_name="",
        assignment=assignment.name,
        auto=0,
        max_auto=assignment.max_code_score,
        written=0,
        max_written=assignment.max_written_score + assignment.max_task_score,
        marked=0,
        pending=0,
        hours_late=0,
        notes="not graded",
    )


_TOO_LONG = {"CellTimeoutError", "StudentTimeout", "Late", "NotebookTimeoutError"}


def notes(notebook: Path) -> list[str]:
    """Return what an instructor should know about how a notebook ran."""
    if not notebook.is_file():
        return ["not graded"]
    found = []
    for cell in notebooks.read_graded(notebook).cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "a cell")
        for kind in _errors(cell):
            if kind in _TOO_LONG:
                found.append(f"timeout: {name}")
            elif kind in {"SyntaxError", "IndentationError", "TabError"}:
                found.append(f"syntax error: {name}")
            elif kind in {"DeadKernelError", "MemoryError", "StudentGone"}:
                found.append(f"kernel died: {name}")
        if "was missing from the submission" in cell.source:
            found.append(f"cell deleted: {name}")
    return found


def _errors(cell: Any) -> list[str]:
    """Return the names of the errors of a cell; a check reports what a call of it met."""
    errors = [one for one in cell.get("outputs", []) if one.output_type == "error"]
    return [
        named[1] if (named := CALL.search(str(error.get("evalue", "")))) else error.ename
        for error in errors
    ]


def causes(course: Course, topics: Iterable[str]) -> Counter[tuple[str, str]]:
    """Count, for each misconception that a check named, the students who hold it."""
    counted: Counter[tuple[str, str]] = Counter()
    for topic in topics:
        for path in sorted(course.autograded.glob(f"*/{topic}/{topic}.ipynb")):
            outputs = [
                COLORS.sub("", "\n".join(one.traceback))
                for cell in notebooks.read_graded(path).cells
                for one in cell.get("outputs", [])
                if one.output_type == "error"
            ]
            hints = {hint for text in outputs for hint in CAUSE.findall(text)}
            counted.update((topic, hint) for hint in hints)
    return counted


def to_csv(results: Sequence[Row]) -> str:
    """Return the results as comma-separated text, a line for each student and assignment."""
    stream = io.StringIO()
    names = [one.name for one in fields(Row)]
    writer = csv.DictWriter(stream, fieldnames=names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in results)
    return stream.getvalue()
