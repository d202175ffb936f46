"""Enter a class list into the gradebook: ``python -m tools.classroom.roster CLASS.csv``.

It reads what Moodle, Canvas and spreadsheets save as CSV, shows which column it takes for what, and
asks before it enters anybody. A student who is there already is changed, and nobody is removed.

The id is the name under which a student hands in. It is the first of these columns in which every
student has an entry of their own: id, username or login, the institution's number, e-mail. A number
that a platform gives by itself is never an id. ``--id COLUMN`` takes another.
"""

import re
import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields, replace
from pathlib import Path

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tools.classroom import backend, layouts, students
from tools.classroom.backend import Backend
from tools.classroom.layouts import Layout, plain
from tools.classroom.students import FIELDS, Person, everybody, find
from tools.layout import HERE, Course
from tools.terminal import ToolError, argument, command, console, tell

UNUSABLE = re.compile(r"[+/\\*?\[\]\s]|^\.|^-")
"""nbgrader puts ids into names of files and folders, and takes + apart."""
MAX_NAMED = 6
SAME = "same name or address as one not in the list"


@dataclass(frozen=True)
class ClassList:
    """A class list: the columns that are known, the students, and why a column is not the id."""

    layout: Layout
    columns: dict[str, int]
    students: list[Person]
    refused: dict[str, str]


def read(file: Path, column: str = "", known_ids: Collection[str] = ()) -> ClassList:
    """Read a class list; without a header of the column of ids, a rule decides which it is.

    A column with more ids of the people in the gradebook comes first.
    """
    layout = layouts.read(file)
    candidates = layout.find([plain(column)]) if column else layout.ids
    headers, rows = ", ".join(layout.header) or "none", layout.students
    if column and not candidates:
        problem = f"{file} has no column {column!r}; its columns are {headers}"
        raise ToolError(problem, "name one of them")
    participant = [0] if layout.platform == "Moodle" else layout.find(("identifier",))
    if column and candidates[0] in (layout.columns.get("number"), *participant):
        problem = f"{column} in {file} is a number that the platform gives by itself"
        raise ToolError(problem, f"name another column of {headers}")
    if not candidates:
        internal = f" (ID is {layout.platform}'s internal number)" if layout.platform else ""
        remedy = "export a list with a username, a number of your institution or an e-mail "
        remedy += "address, or name the column: make class LIST=class.csv ID=COLUMN"
        problem = f"{file} has no column of ids; its columns are {headers}{internal}"
        raise ToolError(problem, remedy)
    faults = {index: fault for index in candidates if (fault := _fault(layout, index))}
    usable = [index for index in candidates if index not in faults]
    is_own = layout.names[candidates[0]] in ("id", "student id")
    if not usable or (candidates[0] in faults and is_own):
        raise ToolError(*faults[candidates[0]])
    best = max(usable, key=lambda index: len({*known_ids} & {row.cells[index] for row in rows}))
    # "student" may stand for an id or for a name, but not for both; an e-mail address may
    columns = {name: i for name, i in layout.columns.items() if i != best or name == "email"}
    columns["id"] = best
    students = [layout.person(row.cells, columns) for row in rows]
    for row, person in zip(rows, students, strict=True):
        if person.email and "@" not in person.email:
            where = f"line {row.number} of {file}, {person}: {person.email!r}"
            raise ToolError(f"{where} is no e-mail address", "are the titles of columns swapped?")
    if not students:
        raise ToolError(f"{file} has no students", "a line below the header is a student")
    refused = {layout.header[index]: problem for index, (problem, _) in faults.items()}
    return ClassList(layout, columns, students, refused)


def _fault(layout: Layout, index: int) -> tuple[str, str] | None:
    """Return why a column cannot be the id, and how to fix it."""
    seen: dict[str, int] = {}
    column = layout.header[index]
    for number, cells, _ in layout.students:
        who, name = cells[index], layout.person(cells).name
        where = f"line {number} of {layout.file}"
        if not who:
            others = ", ".join(filter(None, cells)) or "the student"
            return f"{where}: {name or others} has no {column}", "give one, or take another column"
        where += f", {name}" if name and name != who else ""
        if UNUSABLE.search(who):
            usable = "use letters, digits, dots, hyphens, underscores"
            return f"{where}: {who!r} cannot be an id", f"an id is a part of file names: {usable}"
        if first := seen.get(who.casefold()):
            return f"{where}: {who!r} is there twice, first in line {first}", "remove one of them"
        seen[who.casefold()] = number
    return None


def compare(people: Mapping[str, Person], listed: Sequence[Person]) -> dict[str, list[str]]:
    """Return which of the students are new to the gradebook, changed, as before, and not listed.

    Some who are new may be there under another id: they have the same name or e-mail address.
    """
    rest = [person for who, person in people.items() if who not in {one.id for one in listed}]
    known = {key.casefold(): person for person in rest for key in (person.name, person.email)}
    done: dict[str, list[str]] = {"new": [], "changed": [], "as before": []}
    same = list[str]()
    for now in listed:
        before = people.get(now.id)
        keys = filter(None, (now.email.casefold(), now.name.casefold()))
        others = [known[key] for key in keys if key in known]
        same += [f"{now} as {other.id}" for other in others[:1] if before is None]
        # what the list does not say stays
        after = before and replace(before, **{n: v for n, v in asdict(now).items() if v})
        outcome = "new" if before is None else "as before" if before == after else "changed"
        done[outcome].append(str(now if now.name or not before else before))
    return done | {"not in the list": sorted(map(str, rest))} | ({SAME: same} if same else {})


def enter(course: Course, listed: Sequence[Person]) -> None:
    """Enter students into the gradebook, all or none, and onto the class list."""
    with students.changed(course) as state, Backend(course).gradebook() as book:
        existing = {entry.id: entry for entry in book.students}
        for person in listed:
            book.db.add(entry := existing.get(person.id) or backend.Student(id=person.id))
            for name, value in zip(FIELDS, astuple(person), strict=False):
                if value:
                    setattr(entry, name, value)
        state.students = sorted({*state.students, *(person.id for person in listed)})
        book.db.commit()


def counted(people: Sequence[Person]) -> str:
    """Return how many students there are, in words."""
    return f"{len(people)} student{'s' * (len(people) != 1)}"


def show(class_list: ClassList, done: dict[str, list[str]]) -> None:
    """Print what a class list is taken for, and what entering it would change."""
    layout, columns = class_list.layout, class_list.columns

    def few(items: Sequence[str]) -> Text:
        return Text(", ".join(items[:MAX_NAMED]) + (", …" if len(items) > MAX_NAMED else ""))

    origin = f" from {layout.platform}" if layout.platform else ""
    sign = {",": "commas", ";": "semicolons", "\t": "tabs"}[layout.separator]
    size = counted(class_list.students)
    console.print(f"{escape(str(layout.file))}: {size}{origin}, {sign}, {layout.encoding}")
    table = Table("", "column", "for example", box=None)
    for name, field in zip(FIELDS, fields(Person), strict=False):
        index = columns.get(field.name, columns.get("name") if "_name" in name else None)
        values = filter(None, (getattr(one, field.name) for one in class_list.students))
        table.add_row(
            name, Text("–" if index is None else layout.header[index]), few([*values][:3])
        )
    console.print(table)
    rest = [name for index, name in enumerate(layout.header) if index not in columns.values()]
    others = [row for row in layout.rows if row not in layout.students]
    lines = [f"line {row.number}: {' '.join(filter(None, row.cells))}" for row in others]
    tell("Left alone", rest)
    tell("No students", lines)
    tell("Not the id", [f"{name} ({why})" for name, why in class_list.refused.items()])
    table = Table("", "students", "", box=None)
    for outcome, who in done.items():
        table.add_row(outcome, str(len(who)), few(who))
    console.print(table)


@command(
    argument("file", nargs="?", metavar="FILE", help="the class list, as CSV"),
    argument("--id", dest="column", metavar="COLUMN", default="", help="the column of the ids"),
    argument("--yes", action="store_true", help="enter it without asking"),
    argument("--namesakes", action="store_true", help="people named as others are other people"),
    argument("--remove", nargs="+", metavar="STUDENT", help="take off, by id, number or name"),
)
def main(
    file: str, column: str, yes: bool, namesakes: bool, remove: list[str], course: Course = HERE
) -> int:
    """Show a class list, and enter it; or take students off."""
    people = everybody(course)
    if remove:
        removed, stay = list[Person](), list[Person]()
        with students.changed(course) as state, Backend(course).gradebook() as book:
            for person in dict.fromkeys(find(text, people) for text in remove):
                state.students = [who for who in state.students if who != person.id]
                entry = book.find_student(person.id)
                has_work = entry.submissions or any(course.submitted.glob(f"{person.id}/*"))
                (stay if has_work else removed).append(person)
                if not has_work:
                    book.db.delete(entry)
            book.db.commit()
        tell("Removed", removed)
        tell("Off the list, with work and marks kept", stay)
        return 0
    if not file:
        raise ToolError("which class list?", "make class LIST=class.csv")
    class_list = read(Path(file), column, people)
    show(class_list, done := compare(people, class_list.students))
    again = ["python", "-m", "tools.classroom.roster", file, *(["--id", column] if column else [])]
    if SAME in done and not namesakes:
        raise ToolError(
            "the list has people of the gradebook under other ids",
            f'take the ids from the same column as before: make class LIST="{file}" ID=COLUMN; or, '
            f"if they are others of the same names: {shlex.join([*again, '--namesakes'])}",
        )
    if not yes and not sys.stdin.isatty():
        again += [*["--namesakes"] * namesakes, "--yes"]
        console.print(f"To enter it: {escape(shlex.join(again))}")
    elif not yes:
        answer = console.input(f"Enter {counted(class_list.students)}? \\[y/N] ")
        yes = answer.strip().lower() in ("y", "yes")
    if yes:
        enter(course, class_list.students)
    console.print("Entered." if yes else "Nothing was entered.")
    return 0 if yes else 1
