"""Make a class of students from the assignments: ``python -m tools.sample_class``.

Each student does one thing wrong in every assignment, or nothing, and the name says which.
The class shows what grading looks like, and tries the checks on every known misconception.
Most hand in no lab; those who do so with a wrong record of its run hand in nothing else.
"""

import argparse
import hashlib
import json
import math
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from rich.table import Table

from optdl.checks import catalog
from tools import answers, notebooks, results
from tools.backend import Backend, MissingEntry
from tools.layout import LAB, RECORD, ROOT, Course
from tools.stamps import Stamps, digest, files, write_atomically
from tools.terminal import console, need_disk, run

DUE = datetime(2026, 2, 6, 23, 59)
"""When the first assignment is due, UTC; the others follow week by week."""

SOLVER = "ada-all-correct"
"""The student who hands in what stands in the instructor's notebooks: a lab asks for a name."""

MAIL = "sample.invalid"
WRITTEN = "I compared both cases on paper and on a small example. They agree with the claim."
FIRST_NAMES = (
    *("Quinn", "Rosa", "Sven", "Tala", "Uma", "Victor", "Wen", "Ximena", "Yusuf", "Zoe"),
    *("Aiko", "Bruno", "Carla", "Deniz", "Elif", "Farid"),
)


@dataclass(frozen=True)
class Sheet:
    """A notebook of an assignment as a student sees it, with the right answers beside it.

    Parameters
    ----------
    released : NotebookNode
        The students' notebook.
    right : dict
        The right source of each answer cell that defines a function or a class, in order, by
        cell id.
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

Record = dict[str, Any]
"""What the run of a lab left, as its file has it."""

Recording = Callable[[Record, str], Record]
"""Makes the record that a student of some name hands in from the right one."""


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
    own, lab : bool
        Whether the student hands in an assignment's own notebook, and its lab.
    record : callable, optional
        The record that the student hands in beside a lab; none if not given.
    """

    name: str
    kind: str
    filling: Filling
    late: timedelta = timedelta(hours=-6)
    own: bool = True
    lab: bool = False
    record: Recording | None = None

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


def _as_it_is(record: Record, student: str) -> Record:
    return record


def _signed(change: Callable[[Record], Record]) -> Recording:
    """Put a student's own name into a record that is wrong in another way."""
    return lambda record, student: change(record) | {"user": student}


def _sealed(recording: Recording) -> Recording:
    """Compute the checksum anew: it keeps nobody from forging, and another reason must refuse."""

    def sealed(record: Record, student: str) -> Record:
        made = recording(record, student)
        content = {name: made[name] for name in made if name not in ("format", "checksum")}
        text = json.dumps(content, sort_keys=True)
        return made | {"checksum": hashlib.sha256(text.encode()).hexdigest()[:16]}

    return sealed


def _times(first: float, others: float = 1.0) -> Callable[[Record], Record]:
    """Multiply the first loss of the first run by a factor, and all others by another one."""

    def changed(record: Record) -> Record:
        factors, runs = chain([first], repeat(others)), []
        for made in record["runs"]:
            losses = [loss * next(factors) for loss in made["curves"]["loss"]]
            runs.append(made | {"curves": made["curves"] | {"loss": losses}})
        return record | {"runs": runs}

    return changed


def _enlarged(record: Record) -> Record:
    return record | {"more": "0" * (3 * 2**20)}


STUDENTS = (
    Student("Ada", "all correct", _all_right, lab=True, record=_as_it_is),
    Student("Ben", "blank", _blank, lab=True),
    Student("Chloe", "first only", _part(lambda cells: cells[:1])),
    Student("Dmitri", "first half", _part(lambda cells: cells[: (len(cells) + 1) // 2]), lab=True),
    Student("Emeka", "every second", _part(lambda cells: cells[1::2])),
    Student("Fatima", "nothing written", lambda sheet: dict(sheet.right)),
    Student("Goro", "raises", _every(answers.raises), lab=True),
    Student("Hana", "returns none", _every(answers.forgets_return)),
    Student("Ivan", "prints", _every(answers.prints)),
    Student("Jasmin", "wrong shape", _every(answers.wrong_shape)),
    Student("Kofi", "other names", _every(answers.other_name), lab=True),
    Student("Lena", "late", _all_right, timedelta(hours=5), lab=True),
    Student("Mateo", "syntax error", _one(answers.syntax_error), lab=True),
    Student("Nadia", "endless loop", _one(answers.never_ends), lab=True),
    Student("Omar", "edits tests", _edits_tests, lab=True),
    Student("Priya", "deletes cells", _all_right, lab=True),
)

RECORDS: Mapping[tuple[str, str], Recording | None] = {
    ("Aisha", "forged record"): _sealed(_signed(_times(0.5, 0.5))),
    ("Boris", "edited record"): _signed(_times(0.5)),
    ("Celia", "record of another"): _as_it_is,
    ("Dario", "missing record"): None,
    ("Edith", "huge record"): _sealed(_signed(_enlarged)),
    ("Felix", "nan record"): _sealed(_signed(_times(math.nan))),
}
"""Students who solve the labs, and what they hand in as the record of a run."""


def students(sheets: Sequence[Sheet], labs: Sequence[Sheet] = ()) -> list[Student]:
    """Return the class: the usual students, and one for each rank of misconceptions.

    Parameters
    ----------
    sheets : sequence of Sheet
        The assignments' own notebooks.
    labs : sequence of Sheet
        Their labs. Students hold a misconception of them up to the highest rank there.
    """
    in_labs = _ranks(labs)
    mistaken = [
        Student(
            FIRST_NAMES[rank % len(FIRST_NAMES)],
            f"misconception {rank + 1}",
            _misconception(rank),
            lab=rank < in_labs,
        )
        for rank in range(max(_ranks(sheets), in_labs))
    ]
    return [*STUDENTS, *mistaken]


def _ranks(sheets: Sequence[Sheet]) -> int:
    """Return the most misconceptions that any exercise has."""
    found = (len(wrong) for sheet in sheets for wrong in sheet.misconceptions.values())
    return max(found, default=0)


def forgers() -> list[Student]:
    """Return the students who hand in nothing but labs, with a wrong record or with none."""
    return [
        Student(name, kind, _all_right, own=False, lab=True, record=record)
        for (name, kind), record in RECORDS.items()
    ]


def exercises(topic: str, name: str | None = None) -> Sequence[Any]:
    """Return the exercises of a notebook, as :mod:`optdl.checks` lists them."""
    return tuple(catalog.blocks(topic, lab=name == LAB).values())


def sheet(course: Course, topic: str, name: str | None = None) -> Sheet:
    """Read a notebook of an assignment, its right answers and its misconceptions."""
    known = {exercise.name: exercise for exercise in exercises(topic, name)}
    right, written, wrong = {}, {}, {}
    for cell in notebooks.read(course.source(topic, name)).cells:
        if not cell.metadata.get("nbgrader", {}).get("solution"):
            continue
        source = answers.right(cell.source)
        if cell.cell_type == "markdown":
            written[cell.id] = source or WRITTEN
            continue
        defined = answers.defined_name(source)
        if defined is None:
            continue
        right[cell.id] = source
        if defined in known:
            mistakes = known[defined].misconceptions
            wrong[cell.id] = tuple(item.text(defined) for item in mistakes)
    released = notebooks.read(course.released(topic, name))
    return Sheet(released, right, written, wrong)


def submission(sheet: Sheet, student: Student) -> bytes:
    """Return the notebook that a student hands in, with the student's own name in its answers."""
    filled = student.filling(sheet)
    sources = {cell: source.replace(SOLVER, student.id) for cell, source in filled.items()}
    cells = []
    for cell in sheet.released.cells:
        cells.append({**cell, "source": sources.get(cell.id, cell.source)})
    if student.kind == "deletes cells":
        cells = [cell for cell in cells if not cell["id"].endswith(("-visible", "-hidden"))]
    notebook = notebooks.node({**sheet.released, "cells": cells})
    return notebooks.to_bytes(notebook)


def handed_in(
    course: Course, topic: str, sheets: Mapping[str, Sheet], student: Student
) -> dict[str, bytes]:
    """Return the files that a student hands in for an assignment, by name; none if it is nothing.

    Parameters
    ----------
    course : Course
        The course.
    topic : str
        The assignment.
    sheets : dict
        Its notebooks by name.
    student : Student
        The student.
    """
    names = [name for name in sheets if (student.own if name == topic else student.lab)]
    made = {f"{name}.ipynb": submission(sheets[name], student) for name in names}
    record = course.record(topic)
    if not record.is_file():
        return made if student.own else {}
    if student.lab and student.record:
        right = json.loads(record.read_text(encoding="utf-8"))
        made[RECORD] = (json.dumps(student.record(right, student.id), indent=1) + "\n").encode()
    return made


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
    assignments = [course.record(topic) for topic in topics]
    for topic in topics:
        for name in course.notebooks(topic):
            assignments += [course.source(topic, name), course.released(topic, name)]
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
    sheets = {
        topic: {name: sheet(course, topic, name) for name in course.notebooks(topic)}
        for topic in topics
    }
    members = _members(course, sheets)
    dates = due_dates(course, topics)
    for topic, due in dates.items():
        for student in members:
            work = handed_in(course, topic, sheets[topic], student)
            if not work:
                continue
            moment = (due + student.late).strftime("%Y-%m-%d %H:%M:%S UTC\n")
            for name, content in (work | {"timestamp.txt": moment.encode()}).items():
                write_atomically(course.submitted / student.id / topic / name, content)
    _enroll(course, members, dates)
    return members


def _members(course: Course, sheets: Mapping[str, Mapping[str, Sheet]]) -> list[Student]:
    """Return the class of these assignments, with forgers where a lab has a record."""
    own = [named[topic] for topic, named in sheets.items()]
    labs = [named[LAB] for named in sheets.values() if LAB in named]
    are_recorded = any(course.record(topic).is_file() for topic in sheets)
    return [*students(own, labs), *(forgers() if are_recorded else [])]


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
