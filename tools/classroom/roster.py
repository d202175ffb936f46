"""Enter a class list into the gradebook: ``python -m tools.classroom.roster CLASS.csv``.

It reads what Moodle, Canvas and spreadsheets save as CSV, shows which column it takes for what, and
asks before it enters anybody. A student who is there already is changed, and nobody is removed.

The id is the name under which a student hands in. It is the first of these columns in which every
student has an entry of their own: id, username or login, the institution's number, e-mail. A number
that a platform gives by itself is never an id. ``--id COLUMN`` takes another.
"""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tools.classroom import backend, class_state, layouts
from tools.classroom.backend import Backend
from tools.classroom.layouts import Layout, plain
from tools.classroom.student_matching import Person, described, everybody, find
from tools.layout import HERE, Course
from tools.terminal import ToolError, argument, command, console, tell

UNUSABLE = re.compile(r"[+/\\*?\[\]\s]|^\.|^-")
"""nbgrader puts ids into names of files and folders, and takes + apart."""
FEW = 6
SAME = "named as one not in the list"

Student = dict[str, str]
"""The gradebook's fields of a student."""


@dataclass(frozen=True)
class ClassList:
    """A file whose columns are known, the column of ids, and why others are not that."""

    layout: Layout
    id_column: int
    refused: dict[str, str]

    @property
    def columns(self) -> dict[str, int]:
        """Return the gradebook's names of the columns, with their numbers."""
        # "student" may stand for an id or for a name, but not for both; an e-mail address may
        columns = self.layout.columns.items()
        rest = {name: i for name, i in columns if i != self.id_column or name == "email"}
        return rest | {"id": self.id_column}

    @property
    def students(self) -> list[Student]:
        """Return the students, each with an id."""
        columns = self.columns
        rows = (self.layout.fields(cells, columns) for _, cells in self.layout.students)
        return [{name: value for name, value in fields.items() if value} for fields in rows]

    @property
    def identity(self) -> list[int]:
        """Return the columns that tell who a student is."""
        layout = self.layout
        return sorted({*self.columns.values(), *layout.ids, *layout.find(layouts.KEPT)})


def read(file: Path, column: str = "", known_ids: Iterable[str] = ()) -> ClassList:
    """Read a class list; without a header of the column of ids, a rule decides which it is.

    A column with more of the ids that the gradebook has comes first.
    """
    layout = layouts.read(file)
    class_list = ClassList(layout, *_id_column(layout, column, set(known_ids)))
    for (number, _), student in zip(layout.students, class_list.students, strict=True):
        if (email := student.get("email")) and "@" not in email:
            raise ToolError(
                f"line {number} of {file}, {Person.of(student)}: {email!r} is no e-mail address",
                "are the titles of two columns swapped?",
            )
    if not layout.students:
        raise ToolError(f"{file} has no students", "a line below the header is a student")
    return class_list


def _id_column(layout: Layout, requested: str, known_ids: set[str]) -> tuple[int, dict[str, str]]:
    """Return the column of ids, and why others that come before it are not."""
    sheet, candidates = layout.sheet, layout.ids
    columns = ", ".join(sheet.header) or "none"
    if requested:
        candidates = layout.find([plain(requested)])
        if not candidates:
            raise ToolError(
                f"{sheet.file} has no column {requested!r}; its columns are {columns}",
                "name one of them",
            )
        if candidates[0] in layout.internal:
            raise ToolError(
                f"{requested} in {sheet.file} is a number that the platform gives by itself",
                f"name another column of {columns}",
            )
    if not candidates:
        internal = f" (ID is {layout.platform}'s internal number)" if layout.platform else ""
        raise ToolError(
            f"{sheet.file} has no column of ids; its columns are {columns}{internal}",
            "export a list with a username, a number of your institution or an e-mail address, "
            "or name the column with --id",
        )
    faults = {index: fault for index in candidates if (fault := _fault(layout, index))}
    usable = [index for index in candidates if index not in faults]
    if not usable or (
        candidates[0] in faults and layout.names[candidates[0]] in ("id", "student id")
    ):
        raise ToolError(*faults[candidates[0]])
    best = max(
        usable, key=lambda index: len(known_ids & {cells[index] for _, cells in layout.students})
    )
    return best, {sheet.header[index]: problem for index, (problem, _) in faults.items()}


def _fault(layout: Layout, index: int) -> tuple[str, str] | None:
    """Return why a column cannot be the id, and how to fix it."""
    seen: dict[str, int] = {}
    column = layout.sheet.header[index]
    for number, cells in layout.students:
        who, name = cells[index], layout.person(cells).name
        where = f"line {number} of {layout.sheet.file}"
        if not who:
            others = ", ".join(filter(None, cells)) or "the student"
            return f"{where}: {name or others} has no {column}", "give one, or take another column"
        where += f", {name}" if name and name != who else ""
        if UNUSABLE.search(who):
            usable = "use letters, digits, dots, hyphens, underscores"
            return f"{where}: {who!r} cannot be an id", f"an id is a part of file names: {usable}"
        if who.casefold() in seen:
            first = seen[who.casefold()]
            return f"{where}: {who!r} is there twice, first in line {first}", "remove one of them"
        seen[who.casefold()] = number
    return None


def compare(people: Mapping[str, Person], students: Sequence[Student]) -> dict[str, list[str]]:
    """Return which of the students are new to the gradebook, changed, as before, and not listed.

    A new student who is in the gradebook under another id is refused.
    """
    listed = {student["id"] for student in students}
    unlisted = [person for who, person in people.items() if who not in listed]
    by_email = {person.email.casefold(): person for person in unlisted if person.email}
    by_name = {person.name.casefold(): person for person in unlisted if person.name}
    done: dict[str, list[str]] = {"new": [], "changed": [], "as before": [], "not in the list": []}
    same = []
    for student in students:
        now = Person.of(student)
        before = people.get(now.id)
        if before is None and (other := by_email.get(now.email.casefold())):
            raise ToolError(
                f"{now} has the e-mail address of {other}, who is in the gradebook",
                "take the ids from the same column as before (--id COLUMN), or take the first "
                "list back: make class UNDO=yes",
            )
        if before is None and (other := by_name.get(now.name.casefold())):
            same.append(f"{now} as {other.id}")
        known = {name: value for name, value in vars(now).items() if value}
        is_same = before and vars(before) == vars(before) | known
        outcome = "new" if before is None else "as before" if is_same else "changed"
        done[outcome].append(str(now if now.name or not before else before))
    done["not in the list"] = sorted(map(str, unlisted))
    return done | ({SAME: same} if same else {})


def enter(course: Course, class_list: ClassList) -> None:
    """Enter students into the gradebook, all or none, and onto the class list."""
    layout, identity = class_list.layout, class_list.identity
    with class_state.changed(course) as state, Backend(course).gradebook() as book:
        existing = {entry.id: entry for entry in book.students}
        before: dict[str, Any] = {}
        state.undo = {"before": before, "columns": state.columns, "students": dict(state.students)}
        header = [layout.sheet.header[index] for index in identity]
        if state.columns != header:  # cells under other columns would mean something else
            state.columns, state.students = header, {who: [] for who in state.students}
        for fields, (_, cells) in zip(class_list.students, layout.students, strict=True):
            who = fields.pop("id")
            entry = existing.get(who)
            before[who] = {name: getattr(entry, name) for name in fields} if entry else None
            if entry is None:
                entry = backend.Student(id=who)
                book.db.add(entry)
            for name, value in fields.items():
                setattr(entry, name, value)
            state.students[who] = [cells[index] for index in identity]
        book.db.commit()


def take_off(course: Course, students: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """Take students off the class list, or without any the last list back.

    Returns those who are removed, and those who stay with their work and marks, off the list.
    """
    people = everybody(course)
    gone = {find(text, people).id for text in students}
    with class_state.changed(course) as state, Backend(course).gradebook() as book:
        existing = {entry.id: entry for entry in book.students}
        if not students:
            if not state.undo:
                raise ToolError("there is no class list to take back", "only the last one can be")
            for who, fields in state.undo["before"].items():
                gone |= {who} if fields is None else set()
                for name, value in (fields or {}).items():
                    if who in existing:
                        setattr(existing[who], name, value)
            state.columns, state.students = state.undo["columns"], state.undo["students"]
        for who in gone:
            state.students.pop(who, None)
        state.undo = {}
        found = [who for who in existing if who in gone]
        stay = [
            who
            for who in found
            if existing[who].submissions or any(course.submitted.glob(f"{who}/*"))
        ]
        removed = [who for who in found if who not in stay]
        for who in removed:
            book.db.delete(existing[who])
        book.db.commit()
    return removed, stay


def show(class_list: ClassList, done: dict[str, list[str]]) -> None:
    """Print what a class list is taken for, and what entering it would change."""
    sheet, columns = class_list.layout.sheet, class_list.columns
    origin = f" from {class_list.layout.platform}" if class_list.layout.platform else ""
    sign = {",": "commas", ";": "semicolons", "\t": "tabs"}[sheet.separator]
    students = class_list.students
    size = f"{len(students)} students"
    console.print(f"{escape(str(sheet.file))}: {size}{origin}, {sign}, {sheet.encoding}")
    table = Table("", "column", "for example", box=None)
    for name in ("id", "first_name", "last_name", "email", "lms_user_id"):
        index = columns.get(name, columns.get("name") if "_name" in name else None)
        examples = _few([student[name] for student in students if name in student][:3])
        table.add_row(name, Text("–" if index is None else sheet.header[index]), Text(examples))
    console.print(table)
    rest = [name for index, name in enumerate(sheet.header) if index not in columns.values()]
    refused = [f"{name} ({why})" for name, why in class_list.refused.items()]
    lists = {"Left alone": rest, "No students": class_list.layout.left_out, "Not the id": refused}
    tell({title: ", ".join(items) for title, items in lists.items()})
    table = Table("", "students", "", box=None)
    for outcome, who in done.items():
        table.add_row(outcome, str(len(who)), Text(_few(who)))
    console.print(table)


def _few(items: Sequence[str]) -> str:
    return ", ".join(items[:FEW]) + (", …" if len(items) > FEW else "")


@command(
    argument("file", nargs="?", metavar="FILE", help="the class list, as CSV"),
    argument("--id", dest="column", metavar="COLUMN", default="", help="the column of the ids"),
    argument("--yes", action="store_true", help="enter it without asking"),
    argument("--namesakes", action="store_true", help="people named as others are other people"),
    argument("--undo", action="store_true", help="take the last class list back"),
    argument(
        "--remove", nargs="+", metavar="STUDENT", help="take students off, by id, number or name"
    ),
)
def main(
    file: str | None,
    column: str,
    yes: bool,
    namesakes: bool,
    undo: bool,
    remove: list[str] | None,
    course: Course = HERE,
) -> int:
    """Show a class list, and enter it; or take one back."""
    people = everybody(course)
    if undo or remove:
        removed, stay = take_off(course, remove or ())
        kept = "Off the list, with work and marks kept"
        tell({"Removed": described(removed, people) or "nobody", kept: described(stay, people)})
        return 0
    if not file:
        raise ToolError("which class list?", "make class LIST=class.csv")
    class_list = read(Path(file), column, people)
    done = compare(people, class_list.students)
    show(class_list, done)
    if SAME in done and not (
        namesakes
        or _agreed("Are these other people of the same names? [y/N] ", "--namesakes if they are")
    ):
        raise ToolError(
            "the list has people of the gradebook under other ids",
            "take the ids from the same column as before: --id COLUMN",
        )
    question = f"Enter these {len(class_list.students)} students? [y/N] "
    if not (yes or _agreed(question, "--yes to enter it")):
        console.print("Nothing was entered.")
        return 1
    enter(course, class_list)
    console.print("Entered. `make class UNDO=yes` takes it back.")
    return 0


def _agreed(question: str, option: str) -> bool:
    """Ask on a terminal; elsewhere nobody can answer."""
    if not sys.stdin.isatty():
        console.print(f"Add {option}.")
        return False
    return console.input(escape(question)).strip().lower() in ("y", "yes")


if __name__ == "__main__":
    sys.exit(main.run())
