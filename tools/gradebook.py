"""Print the gradebook as a table: ``python -m tools.gradebook [TOPIC …] [--csv FILE]``."""

import argparse
import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from tools import notebooks
from tools.backend import Backend, MissingEntry
from tools.layout import ROOT, Course
from tools.stamps import write_atomically
from tools.terminal import ToolError, console, run

COLORS = re.compile(r"\x1b\[[0-9;]*m")
CAUSE = re.compile(r"^Likely cause: (.*)$", re.M)


@dataclass(frozen=True)
class Row:
    """One student's result in one assignment.

    ``auto`` and ``written`` are the points for code and for answers read by a person;
    ``pending`` tells how many of the latter wait to be read; ``notes`` tells what went
    wrong while the notebook ran.
    """

    student: str
    first_name: str
    last_name: str
    assignment: str
    auto: float
    max_auto: float
    written: float
    max_written: float
    pending: int
    hours_late: float
    notes: str


def rows(course: Course, topics: Sequence[str]) -> list[Row]:
    """Return the results of all students in the assignments named, sorted.

    Who handed in something that could not be graded has no points, and a note that says so.
    """
    if not course.has_gradebook:
        raise ToolError("there is no gradebook yet", "grade something first: make course")
    found = []
    with Backend(course).gradebook() as book:
        for topic in topics:
            try:
                assignment = book.find_assignment(topic)
            except MissingEntry:
                continue
            graded = [one for one in book.assignment_submissions(topic) if one.notebooks]
            found += [_row(course, topic, one) for one in graded]
            if graded:
                known = {one.student.id for one in graded}
                others = [name for name in course.submitters(topic) if name not in known]
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
    for cell in notebooks.read(notebook).cells:
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
    return [one.ename for one in cell.get("outputs", []) if one.output_type == "error"]


def causes(course: Course, topics: Iterable[str]) -> Counter[tuple[str, str]]:
    """Count, for each misconception that a check named, the students who hold it."""
    counted: Counter[tuple[str, str]] = Counter()
    for topic in topics:
        for path in sorted(course.autograded.glob(f"*/{topic}/{topic}.ipynb")):
            outputs = [
                COLORS.sub("", "\n".join(one.traceback))
                for cell in notebooks.read(path).cells
                for one in cell.get("outputs", [])
                if one.output_type == "error"
            ]
            hints = {hint for text in outputs for hint in CAUSE.findall(text)}
            counted.update((topic, hint) for hint in hints)
    return counted


def _points(value: float) -> str:
    return f"{value:g}"


def _late(hours: float) -> str:
    """Return how late work came in, in hours or, past two days, in days."""
    if hours > 48:
        return f"{hours / 24:.0f} d"
    return f"{hours:g} h" if hours else ""


def _notes(texts: Iterable[str]) -> str:
    """Return the notes of one student, each said once and long lists cut short."""
    counted = Counter(note.split(": ")[0] for text in texts for note in text.split("; ") if note)
    return ", ".join(f"{note} ({n}×)" if n > 1 else note for note, n in counted.items())


NOTES = 24
"""The least room for the notes, in characters."""


def table(results: Sequence[Row], width: int | None = None) -> Group:
    """Return the gradebook: a row for each student, a column for each assignment.

    Assignments that do not fit side by side into ``width`` follow in a further table, with the
    same students; the notes stand in the last one.
    """
    by_student: dict[str, dict[str, Row]] = {}
    for row in results:
        by_student.setdefault(row.student, {})[row.assignment] = row
    columns = {
        topic: [_cell(own.get(topic)) for own in by_student.values()]
        for topic in dict.fromkeys(row.assignment for row in results)
    }
    names = max(map(len, by_student), default=0)
    parts = _side_by_side(columns, (width or console.width) - names - 2)
    tables = [_part(by_student, columns, part, last=part is parts[-1]) for part in parts]
    tables[0].title, tables[0].title_style = "Gradebook", "bold"
    last = "points for code · + points for written answers · ✎ written answers to read"
    tables[-1].caption = last
    return Group(*tables)


def _side_by_side(columns: Mapping[str, Sequence[Text]], room: int) -> list[list[str]]:
    """Return the assignments in parts, each of which fits; the notes fit beside the last."""
    widths = {
        topic: 3 + max(len(topic), *(one.cell_len for one in cells))
        for topic, cells in columns.items()
    }
    parts: list[list[str]] = [[]]
    for topic in columns:
        if parts[-1] and sum(widths[one] for one in (*parts[-1], topic)) > room:
            parts.append([])
        parts[-1].append(topic)
    if len(parts[-1]) > 1 and sum(widths[one] for one in parts[-1]) + NOTES > room:
        parts.append([parts[-1].pop()])
    return parts


def _part(
    by_student: Mapping[str, Mapping[str, Row]],
    columns: Mapping[str, Sequence[Text]],
    topics: Sequence[str],
    last: bool,
) -> Table:
    """Return the columns of some assignments, with lateness and notes if they are the last."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    made.add_column("student", no_wrap=True)
    for topic in topics:
        made.add_column(topic, no_wrap=True)
    if last:
        made.add_column("late", justify="right", no_wrap=True)
        made.add_column("notes")
    for number, (student, own) in enumerate(by_student.items()):
        cells: list[str | Text] = [student, *(columns[topic][number] for topic in topics)]
        if last:
            late = max(row.hours_late for row in own.values())
            cells += [_late(late), _notes(row.notes for row in own.values())]
        made.add_row(*cells)
    return made


def _cell(row: Row | None) -> Text:
    """Return the points for code, and for written answers or that they wait to be read."""
    if row is None:
        return Text("–")
    full, none = row.auto == row.max_auto, row.auto == 0
    style = "green" if full else "red" if none else "yellow"
    made = Text(f"{_points(row.auto)}/{_points(row.max_auto)}", style=style)
    if row.pending:
        made.append(" ✎", style="cyan")
    elif row.max_written:
        made.append(f" +{_points(row.written)}", style="default")
    return made


def causes_table(counted: Counter[tuple[str, str]], most: int = 5) -> Table:
    """Return the misconceptions that most students of an assignment hold."""
    made = Table(
        "assignment",
        "students",
        "named misconception",
        box=box.SIMPLE_HEAD,
        title="What to talk about in class",
        title_style="bold",
        pad_edge=False,
    )
    for topic in dict.fromkeys(topic for topic, _ in counted):
        own = [(number, hint) for (which, hint), number in counted.items() if which == topic]
        for number, hint in sorted(own, key=lambda item: (-item[0], item[1]))[:most]:
            made.add_row(topic, str(number), hint)
    return made


def to_csv(results: Sequence[Row]) -> str:
    """Return the results as comma-separated text, a line for each student and assignment."""
    stream = io.StringIO()
    names = [one.name for one in fields(Row)]
    writer = csv.DictWriter(stream, fieldnames=names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in results)
    return stream.getvalue()


def command(arguments: argparse.Namespace, course: Course | None = None) -> None:
    """Print the gradebook, or write it to a file."""
    course = course or Course(ROOT)
    topics = course.choose(arguments.topics)
    results = rows(course, topics)
    if not results:
        raise ToolError("nothing has been graded yet", f"make grade A={topics[0]}")
    if arguments.csv == "-":
        print(to_csv(results), end="")
        return
    if arguments.csv:
        write_atomically(Path(arguments.csv), to_csv(results).encode())
        console.print(f"Wrote {len(results)} lines to {arguments.csv}")
        return
    console.print(table(results))
    if found := causes(course, topics):
        console.print(causes_table(found))


def parser() -> argparse.ArgumentParser:
    """Return the command line of this tool."""
    made = argparse.ArgumentParser(prog="python -m tools.gradebook", description=__doc__)
    made.add_argument("topics", nargs="*", metavar="TOPIC", help="an assignment; all when none")
    made.add_argument("--csv", metavar="FILE", help="write to a file in place; - prints it")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
