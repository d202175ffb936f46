"""Make a class of students from the assignments: ``python -m tools.sample_class``.

Each student does one thing wrong in every assignment, or nothing, and the name says which.
The class shows what grading looks like, and tries the checks on every known misconception.
"""

import argparse
import importlib
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from rich.table import Table

from tools import answers, notebooks, results
from tools.backend import Backend, MissingEntry
from tools.layout import ROOT, Course
from tools.stamps import Stamps, digest, files, write_atomically
from tools.terminal import console, need_disk, run

DUE = datetime(2026, 2, 6, 23, 59)
"""When the first assignment is due, UTC; the others follow week by week."""

MAIL = "sample.invalid"
WRITTEN = "I compared both cases on paper and on a small example. They agree with the claim."
FIRST_NAMES = (
    *("Quinn", "Rosa", "Sven", "Tala", "Uma", "Victor", "Wen", "Ximena", "Yusuf", "Zoe"),
    *("Aiko", "Bruno", "Carla", "Deniz", "Elif", "Farid"),
)


@dataclass(frozen=True)
class Sheet:
    """One assignment as a student sees it, with the right answers beside it.

    Parameters
    ----------
    released : NotebookNode
        The students' notebook.
    right : dict
        The right source of each answer cell that defines a function, in order, by cell id.
    written : dict
        A good answer to each question that is graded by hand, by cell id.
    misconceptions : dict
        The known misconceptions of each exercise as sources, by cell id.
    """

    released: NotebookNode
    right: dict[str, str]
    written: dict[str, str]
    misconceptions: dict[str, tuple[str, ...]]


Filling = Callable[[Sheet], dict[str, str]]
"""Chooses what a student writes: cell id to source."""


@dataclass(frozen=True)
class Student:
    """A student of the sample class.

    Parameters
    ----------
    name : str
        The first name.
    kind : str
        What the student does, in a few words.
    filling : callable
        What the student writes.
    late : timedelta
        How long after the due date the work comes in; negative when in time.
    """

    name: str
    kind: str
    filling: Filling
    late: timedelta = timedelta(hours=-6)

    @property
    def id(self) -> str:
        """Return the identifier, such as ``ada-all-correct``."""
        return f"{self.name}-{self.kind}".lower().replace(" ", "-")


def _all_right(sheet: Sheet) -> dict[str, str]:
    return sheet.right | sheet.written


def _blank(sheet: Sheet) -> dict[str, str]:
    return {}


def _every(change: answers.Answer) -> Filling:
    """Answer every exercise in the same wrong way."""
    return lambda sheet: (
        {cell: change(source) for cell, source in sheet.right.items()} | _told(sheet)
    )


def _told(sheet: Sheet) -> dict[str, str]:
    return dict.fromkeys(sheet.written, WRITTEN)


def _one(change: answers.Answer) -> Filling:
    """Answer one exercise, the second where there is one, in a wrong way; the rest well."""

    def filling(sheet: Sheet) -> dict[str, str]:
        cell = list(sheet.right)[min(1, len(sheet.right) - 1)]
        return _all_right(sheet) | {cell: change(sheet.right[cell])}

    return filling


def _part(choose: Callable[[list[str]], list[str]]) -> Filling:
    """Answer some of the exercises, and leave the rest."""
    return lambda sheet: {cell: sheet.right[cell] for cell in choose(list(sheet.right))}


def _edits_tests(sheet: Sheet) -> dict[str, str]:
    """Leave the answers, and make the visible tests pass."""
    tests = [cell.id for cell in sheet.released.cells if cell.id.endswith("-visible")]
    return dict.fromkeys(tests, 'print("all is well")')


def _misconception(number: int) -> Filling:
    """Hold the same misconception of every exercise that has so many; the rest is right."""

    def filling(sheet: Sheet) -> dict[str, str]:
        wrong = {
            cell: sources[number]
            for cell, sources in sheet.misconceptions.items()
            if number < len(sources)
        }
        return sheet.right | wrong | _told(sheet)

    return filling


STUDENTS = (
    Student("Ada", "all correct", _all_right),
    Student("Ben", "blank", _blank),
    Student("Chloe", "first only", _part(lambda cells: cells[:1])),
    Student("Dmitri", "first half", _part(lambda cells: cells[: (len(cells) + 1) // 2])),
    Student("Emeka", "every second", _part(lambda cells: cells[1::2])),
    Student("Fatima", "nothing written", lambda sheet: dict(sheet.right)),
    Student("Goro", "raises", _every(answers.raises)),
    Student("Hana", "returns none", _every(answers.forgets_return)),
    Student("Ivan", "prints", _every(answers.prints)),
    Student("Jasmin", "wrong shape", _every(answers.wrong_shape)),
    Student("Kofi", "other names", _every(answers.other_name)),
    Student("Lena", "late", _all_right, timedelta(hours=5)),
    Student("Mateo", "syntax error", _one(answers.syntax_error)),
    Student("Nadia", "endless loop", _one(answers.never_ends)),
    Student("Omar", "edits tests", _edits_tests),
    Student("Priya", "deletes cells", _all_right),
)


def students(sheets: Sequence[Sheet]) -> list[Student]:
    """Return the class: the usual students, and one for each rank of misconceptions."""
    ranks = max(
        (len(found) for sheet in sheets for found in sheet.misconceptions.values()), default=0
    )
    mistaken = [
        Student(
            FIRST_NAMES[rank % len(FIRST_NAMES)], f"misconception {rank + 1}", _misconception(rank)
        )
        for rank in range(ranks)
    ]
    return [*STUDENTS, *mistaken]


def exercises(topic: str) -> Sequence[Any]:
    """Return the exercises of a topic, as :mod:`optdl.checks` lists them."""
    try:
        return tuple(importlib.import_module(f"optdl.checks.{topic}").EXERCISES)
    except ModuleNotFoundError:
        return ()


def sheet(course: Course, topic: str) -> Sheet:
    """Read an assignment, its right answers and its misconceptions."""
    known = {exercise.name: exercise for exercise in exercises(topic)}
    right, written, wrong = {}, {}, {}
    for cell in notebooks.read(course.source(topic)).cells:
        if not cell.metadata.get("nbgrader", {}).get("solution"):
            continue
        source = answers.right(cell.source)
        if cell.cell_type == "markdown":
            written[cell.id] = source or WRITTEN
            continue
        name = answers.function_name(source)
        if name is None:
            continue
        right[cell.id] = source
        if name in known:
            mistakes = known[name].misconceptions
            wrong[cell.id] = tuple(answers.as_source(item.function, name) for item in mistakes)
    released = notebooks.read(course.released(topic))
    return Sheet(released, right, written, wrong)


def submission(sheet: Sheet, student: Student) -> bytes:
    """Return the notebook that a student hands in."""
    sources = student.filling(sheet)
    cells = []
    for cell in sheet.released.cells:
        cells.append({**cell, "source": sources.get(cell.id, cell.source)})
    if student.kind == "deletes cells":
        cells = [cell for cell in cells if not cell["id"].endswith(("-visible", "-hidden"))]
    notebook = notebooks.node({**sheet.released, "cells": cells})
    return notebooks.to_bytes(notebook)


def due_dates(course: Course, topics: Sequence[str]) -> dict[str, datetime]:
    """Return when each of the assignments is due for the sample class: one a week."""
    order = course.topics()
    return {topic: DUE + timedelta(weeks=order.index(topic)) for topic in topics}


def ensure(course: Course, topics: Sequence[str]) -> list[str]:
    """Make the class unless it is there, from the same sources; return who it is."""
    stamps = Stamps(course.build / "stamps.json")
    known = _enrolled(course)
    if known and stamps.fresh("class", _made_from(course, topics, known)):
        return known
    members = [student.id for student in make(course, topics)]
    # read again: making the class may have made other stamps
    Stamps(stamps.path).record("class", _made_from(course, topics, members))
    return members


def _made_from(course: Course, topics: Sequence[str], members: Sequence[str]) -> str:
    """Return the checksum of what the class is made from, and of what it handed in."""
    assignments = [path(topic) for topic in topics for path in (course.source, course.released)]
    work = [course.submitted / member / topic for member in sorted(members) for topic in topics]
    own = [ROOT / "src" / "optdl", *Path(__file__).parent.glob("*.py")]
    return digest([*files(*own), *assignments, *files(*work), *sorted(members), *topics])


def make(course: Course, topics: Sequence[str]) -> list[Student]:
    """Write every submission of the class; unchanged ones are left alone.

    Parameters
    ----------
    course : Course
        The course.
    topics : sequence of str
        The assignments in which the class hands in; they are released.

    Returns
    -------
    list of Student
        The class.
    """
    sheets = {topic: sheet(course, topic) for topic in topics}
    members = students(list(sheets.values()))
    dates = due_dates(course, topics)
    for topic, due in dates.items():
        for student in members:
            folder = course.submitted / student.id / topic
            handed_in = (due + student.late).strftime("%Y-%m-%d %H:%M:%S UTC\n")
            write_atomically(folder / "timestamp.txt", handed_in.encode())
            write_atomically(folder / f"{topic}.ipynb", submission(sheets[topic], student))
    _enroll(course, members, dates)
    return members


def _enroll(course: Course, members: Sequence[Student], dates: Mapping[str, datetime]) -> None:
    """Enter the class into the gradebook, and the due dates where there are none."""
    gone = set(_enrolled(course)) - {student.id for student in members}
    _drop(course, sorted(gone))
    with Backend(course).gradebook() as book:
        for student in members:
            book.update_or_create_student(
                student.id,
                first_name=student.name,
                last_name=f"({student.kind})",
                email=f"{student.id}@{MAIL}",
            )
        for topic, due in dates.items():
            try:
                assignment = book.find_assignment(topic)
            except MissingEntry:
                assignment = None
            if assignment is None or assignment.duedate is None:
                book.update_or_create_assignment(topic, duedate=due)


def _enrolled(course: Course) -> list[str]:
    """Return the identifiers of the sample students in the gradebook."""
    if not course.has_gradebook:
        return []
    with Backend(course).gradebook() as book:
        return [one.id for one in book.students if str(one.email or "").endswith(f"@{MAIL}")]


def _drop(course: Course, identifiers: Sequence[str]) -> None:
    if not identifiers:
        return
    stamps = Stamps(course.build / "stamps.json")
    with Backend(course).gradebook() as book:
        for identifier in identifiers:
            book.remove_student(identifier)
    for identifier in identifiers:
        stamps.forget(f"grade/{identifier}/")
        stamps.forget(f"feedback/{identifier}/")
        for folder in (course.submitted, course.autograded, course.feedback):
            shutil.rmtree(folder / identifier, ignore_errors=True)


def remove(course: Course) -> int:
    """Remove the sample class, its work, scores and due dates; real students stay."""
    found = _enrolled(course)
    _drop(course, found)
    with Backend(course).gradebook() as book:
        for topic, due in due_dates(course, course.topics()).items():
            if any(one.name == topic and one.duedate == due for one in book.assignments):
                book.update_or_create_assignment(topic, duedate=None)
    results.write_sheet(course)
    return len(found)


def command(arguments: argparse.Namespace, course: Course | None = None) -> None:
    """Make the sample class, or remove it."""
    course = course or Course(ROOT)
    if arguments.remove:
        console.print(f"Removed {remove(course)} students of the sample class.")
        return
    topics = course.choose([])
    need_disk(course.root)
    from tools import release

    for topic in topics:
        release.write(course, topic)
        release.record(course, topic)
    members = make(course, topics)
    table = Table("student", "what the student does", box=None)
    for student in members:
        table.add_row(student.id, student.kind)
    console.print(table)
    where = Path(course.submitted).relative_to(course.root)
    console.print(f"{len(members)} students handed in {', '.join(topics)}: see {where}/")


def parser() -> argparse.ArgumentParser:
    """Return the command line of this tool."""
    made = argparse.ArgumentParser(prog="python -m tools.sample_class", description=__doc__)
    made.add_argument("--remove", action="store_true", help="remove the class and its scores")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
