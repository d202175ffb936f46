"""Make a class of students from the assignments: ``python -m tools.classroom.sample_class``.

Each of the students does one thing, and the name says which. All hand in the first
assignment; a few hand in the others, and the first lab. The class shows what grading looks like.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from nbformat import NotebookNode
from rich.table import Table

from gradebox.nbgrader.cells import of
from optdl.checks import catalog
from tools import notebooks
from tools.classroom import answers, release
from tools.classroom.backend import Backend
from tools.fingerprints import write_if_changed
from tools.layout import HERE, LAB, RECORD, Course
from tools.terminal import argument, command, console

DUE = datetime(2026, 2, 6, 23, 59)  # all assignments, UTC
SOLVER = "ada-all-correct"
"""The student who hands in what stands in the instructor's notebooks: a lab asks for a name."""
MAIL = "sample.invalid"
WRITTEN = "I compared both cases on paper and on a small example. They agree with the claim."


@dataclass(frozen=True)
class Sheet:
    """A notebook of an assignment as it is released, with answers by the ids of their cells."""

    released: NotebookNode
    right: dict[str, str]  # of each cell that defines a function or a class, in order
    written: dict[str, str]  # to questions that a person marks
    misconceptions: dict[str, tuple[str, ...]]  # the known ones


Filling = Callable[[Sheet], Mapping[str, str | None]]
"""Chooses what a student writes: cell id to source, or to None where the cell is deleted."""


@dataclass(frozen=True)
class Student:
    """A student, and what the student does: in a word, in a line, in the cells, and how late."""

    name: str
    kind: str
    story: str
    filling: Filling
    late: timedelta = timedelta(hours=-6)
    is_broken: bool = False

    @property
    def id(self) -> str:
        """Return the identifier, such as ``ada-all-correct``."""
        return f"{self.name}-{self.kind}".lower().replace(" ", "-")


REGULAR = ("Ada", "Dmitri", "Quinn")  # who hands in more than the first assignment
IN_LABS = ("Ada", "Quinn")  # who hands in labs; only the record of ``SOLVER`` comes with them


def _all_right(sheet: Sheet) -> dict[str, str]:
    return sheet.right | sheet.written


def _misconception(number: int) -> Filling:
    """Make a usual mistake in every exercise that has any: this one, or the last of fewer."""

    def filling(sheet: Sheet) -> dict[str, str]:
        known = {cell: sources for cell, sources in sheet.misconceptions.items() if sources}
        wrong = {cell: sources[: number + 1][-1] for cell, sources in known.items()}
        return sheet.right | wrong | dict.fromkeys(sheet.written, WRITTEN)

    return filling


def _second(change: answers.Answer) -> Filling:
    """Change the answer to the second exercise, or to the only one; the rest is right."""

    def filling(sheet: Sheet) -> dict[str, str]:
        cell = list(sheet.right)[:2][-1]
        return _all_right(sheet) | {cell: change(sheet.right[cell])}

    return filling


def _forges(sheet: Sheet) -> dict[str, str]:
    """Leave the answers, put ``print`` in the place of ``check``, and edit the visible tests."""
    blank = {cell.id: cell.source for cell in sheet.released.cells}
    tests = [cell for cell in blank if cell.endswith("-visible")]
    forged = {cell: f"{blank[cell]}\n\ncheck = print" for cell in sheet.right}
    return forged | dict.fromkeys(tests, 'print("all is well")')


def _other_names(sheet: Sheet) -> dict[str, str]:
    right = {cell: answers.under_another_name(source) for cell, source in sheet.right.items()}
    return right | sheet.written


def _deletes_tests(sheet: Sheet) -> dict[str, str | None]:
    tests = [cell.id for cell in sheet.released.cells if cell.id.endswith(("-visible", "-hidden"))]
    return _all_right(sheet) | dict.fromkeys(tests)


RIGHT, SECOND = "answers everything right", "the second exercise"
STUDENTS = (
    Student("Ada", "all correct", f"{RIGHT}, and adds the lab's record", _all_right),
    Student("Ben", "blank", "hands in the notebook as it was released", lambda sheet: {}),
    Student(
        *("Dmitri", "first half", "answers the first half of the exercises"),
        lambda sheet: dict([*sheet.right.items()][: (len(sheet.right) + 1) // 2]),
    ),
    Student("Quinn", "misconception 1", "makes every first mistake; no record", _misconception(0)),
    Student("Rosa", "misconception 2", "makes every second usual mistake", _misconception(1)),
    Student("Sven", "misconception 3", "makes every third usual mistake", _misconception(2)),
    Student("Nadia", "endless loop", f"never returns from {SECOND}", _second(answers.never_ends)),
    Student("Omar", "forger", "sets check = print, and edits the visible tests", _forges),
    Student("Tala", "broken file", "hands in half of a file", _all_right, is_broken=True),
    Student("Lena", "late", f"{RIGHT}, five hours late", _all_right, timedelta(hours=5)),
    Student("Kofi", "other names", "names each function my_f, and writes f = my_f", _other_names),
    Student("Mateo", "syntax error", f"forgets a colon in {SECOND}", _second(answers.syntax_error)),
    Student("Priya", "deletes cells", f"{RIGHT}, and deletes the tests", _deletes_tests),
)


def table() -> Table:
    """Return who is in the class, and what each student does."""
    result = Table("student", "what the student does", box=None)
    for student in STUDENTS:
        result.add_row(student.id, student.story)
    return result


def sheet(course: Course, topic: str, name: str | None = None) -> Sheet:
    """Read a notebook of an assignment, its right answers and its misconceptions."""
    exercises = catalog.blocks(topic, lab=name == LAB).values()
    by_name = {exercise.name: exercise for exercise in exercises}
    right, written, wrong = {}, {}, {}
    cells = notebooks.read(course.source(topic, name)).cells
    for cell in (cell for cell in cells if of(cell).get("solution")):
        source = answers.right(cell.source)
        if cell.cell_type == "markdown":
            written[cell.id] = source or WRITTEN
        elif defined := answers.defined_name(source):
            right[cell.id] = source
            if defined in by_name:
                mistakes = by_name[defined].misconceptions
                wrong[cell.id] = tuple(item.text(defined) for item in mistakes)
    released = notebooks.read(course.released(topic, name))
    return Sheet(released, right, written, wrong)


def submission(sheet: Sheet, student: Student) -> bytes:
    """Return the notebook that a student hands in, with the student's own name in its answers."""
    filled = student.filling(sheet)
    cells = [
        {**cell, "source": source.replace(SOLVER, student.id)}
        for cell in sheet.released.cells
        if (source := filled.get(cell.id, cell.source)) is not None
    ]
    content = notebooks.to_bytes(notebooks.node({**sheet.released, "cells": cells}))
    return content[: len(content) // 2] if student.is_broken else content


def handed_in(
    course: Course, topic: str, sheets: Mapping[str, Sheet], student: Student
) -> dict[str, bytes]:
    """Return the files that a student hands in for an assignment, by name."""
    names = [name for name in sheets if name == topic or student.name in IN_LABS]
    contents = {f"{name}.ipynb": submission(sheets[name], student) for name in names}
    record = course.solutions / topic / RECORD
    if student.id == SOLVER and LAB in sheets and record.is_file():
        contents[RECORD] = record.read_bytes()
    return contents


def with_lab(course: Course) -> str | None:
    """Return the first topic that has a lab."""
    return next((topic for topic in course.topics() if LAB in course.notebooks(topic)), None)


def create(course: Course, topics: Sequence[str]) -> list[str]:
    """Write what the class hands in for released assignments; return who it is."""
    for topic in topics:
        names = [
            name for name in course.notebooks(topic) if name != LAB or topic == with_lab(course)
        ]
        sheets = {name: sheet(course, topic, name) for name in names}
        for student in STUDENTS:
            if topic == course.topics()[0] or student.name in REGULAR:
                work = handed_in(course, topic, sheets, student)
                moment = (DUE + student.late).strftime("%Y-%m-%d %H:%M:%S UTC\n")
                for name, content in (work | {"timestamp.txt": moment.encode()}).items():
                    write_if_changed(course.submitted / student.id / topic / name, content)
    with Backend(course).gradebook() as book:
        for student in STUDENTS:
            about = {"first_name": student.name, "last_name": f"({student.kind})"}
            book.update_or_create_student(student.id, email=f"{student.id}@{MAIL}", **about)
        has_date = {entry.name for entry in book.assignments if entry.duedate}
        for topic in {*topics} - has_date:
            book.update_or_create_assignment(topic, duedate=DUE)
    return [student.id for student in STUDENTS]


def dissolve(course: Course) -> int:
    """Remove the sample class, its work, scores and due dates; real students stay."""
    with Backend(course).gradebook() as book:
        # the addresses also tell who was a sample student of an earlier version
        ours = [one.id for one in book.students if str(one.email).endswith(f"@{MAIL}")]
        for student in ours:
            book.remove_student(student)
            for folder in (course.submitted, course.autograded, course.feedback):
                shutil.rmtree(folder / student, ignore_errors=True)
        for name in [one.name for one in book.assignments if one.duedate == DUE]:
            book.update_or_create_assignment(name, duedate=None)
    return len(ours)


@command(argument("--remove", action="store_true", help="remove the class and its scores"))
def main(remove: bool, course: Course = HERE) -> None:
    """Make the sample class, or remove it."""
    if remove:
        console.print(f"Removed {dissolve(course)} students of the sample class.")
        return
    topics = course.choose([])
    release.update(course, topics)
    create(course, topics)
    console.print(table())
    where = course.submitted.relative_to(course.root)
    console.print(f"{len(STUDENTS)} students handed in {', '.join(topics)}: see {where}/")
