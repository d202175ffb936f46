"""Enter a class list into the gradebook: ``python -m tools.roster CLASS.csv``.

It reads what Moodle, Canvas and spreadsheets save as CSV, shows which column it takes for what, and
asks before it enters anybody. A student who is there already is changed, and nobody is removed.

The id is the name under which a student hands in. It is the first of these columns in which every
student has an entry of their own: id, username or login, the institution's number, e-mail. A number
that a platform gives by itself is never an id. ``--id COLUMN`` takes another.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tools import backend, class_state, tables
from tools.backend import Backend
from tools.layout import ROOT, Course
from tools.tables import Sheet, plain
from tools.terminal import ToolError, console, run

OWN_ID = ("id", "student", "student id")
IDS = (
    (
        *("username", "user name", "login", "login id", "sis login id", "netid", "anmeldename"),
        *("benutzername", "nutzername", "nom d utilisateur", "identifiant", "nombre de usuario"),
        *("nome utente", "gebruikersnaam"),
    ),
    (
        *("id number", "sis user id", "sis id", "student sis id", "user id", "student number"),
        *("matriculation number", "registration number", "id nummer", "matrikelnummer"),
        *("numéro d identification", "numéro d étudiant", "número de id", "numero id", "matricola"),
        *("codice identificativo", "studentnummer"),
    ),
)
"""Headers of ids, the first choice first: names to log in with, and an institution's numbers."""
COLUMNS = {
    "first_name": (
        *("first name", "firstname", "first", "given name", "forename", "vorname", "prénom"),
        *("nombre", "nome", "voornaam"),
    ),
    "last_name": (
        *("last name", "lastname", "last", "surname", "family name", "nachname", "familienname"),
        *("nom", "nom de famille", "apellido s", "apellidos", "cognome", "achternaam"),
    ),
    "name": (
        *("name", "full name", "student name", "sortable name", "student", "vollständiger name"),
        *("nom complet", "nombre completo", "nome completo"),
    ),
    "email": (
        *("email", "e mail", "mail", "email address", "e mail address", "e mail adresse"),
        *("adresse de courriel", "courriel", "dirección de correo", "dirección email"),
        *("correo electrónico", "indirizzo email", "e mailadres"),
    ),
    "lms_user_id": ("lms user id", "lms id", "canvas user id"),
}
"""The gradebook's names of the other columns, with the headers that stand for them."""
KEPT = ("section", "integration id", "root account")
"""Headers that Canvas wants to see again in a file of grades."""
UNUSABLE = re.compile(r"[+/\\*?\[\]\s]|^\.|^-|^$")
"""nbgrader puts ids into names of files and folders, and takes + apart."""
FEW = 6

Student = dict[str, str]


@dataclass
class ClassList:
    """What a file says of a class.

    Parameters
    ----------
    sheet : Sheet
        The file.
    platform : str
        "Canvas", or an empty string where that makes no difference.
    columns : dict
        The gradebook's names of the columns, with the numbers of the columns.
    students : list
        The students, each with an id.
    refused : dict
        Columns that could have been the id, with the reason why they are not.
    left_out : list of str
        The rows that are no students.
    """

    sheet: Sheet
    platform: str
    columns: dict[str, int]
    students: list[Student] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    cells: dict[str, list[str]] = field(default_factory=dict)

    @property
    def identity(self) -> list[int]:
        """Return the numbers of the columns that tell who a student is."""
        kept_columns = [
            index for index, name in enumerate(map(plain, self.sheet.header)) if name in KEPT
        ]
        candidates = _candidates(self.sheet, self.platform)
        return sorted({*self.columns.values(), *candidates, *kept_columns})


def read(file: Path, column: str = "", known_ids: Iterable[str] = ()) -> ClassList:
    """Read a class list.

    Parameters
    ----------
    file : Path
        The list.
    column : str
        The header of the column of ids; the rule decides when not given.
    known_ids : iterable of str
        The ids that the gradebook has: a column with more of them comes first.

    Raises
    ------
    ToolError
        When the file cannot be read as a class list; nothing has been entered then.
    """
    sheet = tables.read(file)
    names = [plain(header) for header in sheet.header]
    is_canvas = "id" in names and bool({"sis login id", "sis user id", "section"} & {*names})
    class_list = ClassList(sheet, "Canvas" if is_canvas else "", {})
    rows = [row for row in sheet.rows if not _is_no_student(row, class_list)]
    for name, headers in COLUMNS.items():
        matches = [index for index, header in enumerate(names) if header in headers]
        if name == "lms_user_id" and is_canvas:
            matches.append(names.index("id"))
        if matches:
            class_list.columns[name] = matches[0]
    id_column = _id_column(class_list, rows, column, set(known_ids))
    # "student" may stand for an id or for a name, but not for both
    class_list.columns = {
        name: index
        for name, index in class_list.columns.items()
        if index != id_column or name == "email"
    }
    class_list.columns["id"] = id_column
    for number, cells in rows:
        student = {name: cells[index] for name, index in class_list.columns.items()}
        if "name" in student:
            student = names_of(student.pop("name")) | student
        if (email := student.get("email")) and "@" not in email:
            raise ToolError(
                f"line {number} of {file}: {email!r} is no e-mail address",
                "are the titles of two columns swapped?",
            )
        class_list.students.append(student)
        class_list.cells[student["id"]] = [cells[number] for number in class_list.identity]
    if not class_list.students:
        raise ToolError(f"{file} has no students", "a line below the header is a student")
    return class_list


def _is_no_student(row: tuple[int, list[str]], class_list: ClassList) -> bool:
    """Return whether a row is one of those that Canvas puts among its students."""
    number, cells = row
    text = " ".join(filter(None, cells))
    special = (
        cells[0].startswith("Points Possible")
        or re.fullmatch(r"(Muted|Manual Posting( \(.*?\))?| )+", text)
        or cells[0] in ("Student, Test", "Test Student")
    )
    if class_list.platform == "Canvas" and special:
        class_list.left_out.append(f"line {number}: {cells[0] or text}")
        return True
    return False


def _candidates(sheet: Sheet, platform: str) -> list[int]:
    """Return the numbers of the columns that may be the id, the first choice first."""
    names = [plain(header) for header in sheet.header]
    own_headers: Sequence[str] = OWN_ID[:1] if "id" in names else OWN_ID
    if platform == "Canvas" or "student sis id" in names:  # a number that Canvas gives itself
        own_headers = ()
    groups = (own_headers, *IDS, COLUMNS["email"])
    return [index for group in groups for index, name in enumerate(names) if name in group]


def _id_column(
    class_list: ClassList,
    rows: Sequence[tuple[int, list[str]]],
    requested: str,
    known_ids: set[str],
) -> int:
    """Return the number of the column of ids."""
    sheet = class_list.sheet
    columns = ", ".join(sheet.header) or "none"
    candidates = _candidates(sheet, class_list.platform)
    if requested:
        candidates = [
            index for index, name in enumerate(sheet.header) if plain(name) == plain(requested)
        ]
        if not candidates:
            raise ToolError(
                f"{sheet.file} has no column {requested!r}; its columns are {columns}",
                "name one of them",
            )
        if _is_internal(class_list, candidates[0]):
            raise ToolError(
                f"{requested} in {sheet.file} is a number that the platform gives by itself",
                f"name another column of {columns}",
            )
    if not candidates:
        internal = " (ID is Canvas's internal number)" if class_list.platform else ""
        raise ToolError(
            f"{sheet.file} has no column of ids; its columns are {columns}{internal}",
            "export a list with a username, a number of your institution or an e-mail address, "
            "or name the column with --id",
        )
    faults = {index: _fault(sheet.file, rows, index) for index in candidates}
    first = plain(sheet.header[candidates[0]])
    usable = [index for index in candidates if not faults[index]]
    if not usable or (faults[candidates[0]] and first in ("id", "student id")):
        raise ToolError(*(faults[candidates[0]] or ()))
    class_list.refused = {sheet.header[index]: fault[0] for index, fault in faults.items() if fault}
    return max(usable, key=lambda index: len(known_ids & {cells[index] for _, cells in rows}))


def _is_internal(class_list: ClassList, index: int) -> bool:
    """Return whether a column holds numbers that a platform gives by itself."""
    name = plain(class_list.sheet.header[index])
    return index == class_list.columns.get("lms_user_id") or name == "identifier"


def _fault(file: Path, rows: Sequence[tuple[int, list[str]]], index: int) -> tuple[str, str] | None:
    """Return why a column cannot be the id, and how to fix it."""
    seen: dict[str, int] = {}
    for number, cells in rows:
        who = cells[index]
        where = f"line {number} of {file}: {who!r}"
        if UNUSABLE.search(who):
            usable = "use letters, digits, dots, hyphens, underscores"
            return f"{where} cannot be an id", f"an id is a part of file names: {usable}"
        if who.casefold() in seen:
            return (
                f"{where} is there twice, first in line {seen[who.casefold()]}",
                "remove one of them",
            )
        seen[who.casefold()] = number
    return None


def names_of(text: str) -> Student:
    """Return the first and the last name in a whole one."""
    last, comma, first = text.partition(",")
    if not comma:
        first, _, last = text.rpartition(" ")
    return {"first_name": first.strip(), "last_name": last.strip()}


def compare(book: Any, students: Sequence[Student]) -> dict[str, list[str]]:
    """Return which of the students are new to the gradebook, changed, as before, and not listed.

    Parameters
    ----------
    book : Gradebook
        nbgrader's gradebook; it is only read.
    students : sequence of dict
        The students of the class list, each with an ``id``.

    Returns
    -------
    dict
        Lists of ids by what entering the list would do.

    Raises
    ------
    ToolError
        When a new student is in the gradebook under another id.
    """
    existing = {entry.id: entry for entry in book.students}
    listed = {student["id"] for student in students}
    emails = {
        (entry.email or "").casefold(): entry.id
        for entry in existing.values()
        if entry.id not in listed
    }
    done: dict[str, list[str]] = {"new": [], "changed": [], "as before": []}
    unlisted_names = {
        _whole_name(vars(entry)) for who, entry in existing.items() if who not in listed
    } - {" "}
    for student in students:
        who, email = student["id"], student.get("email", "").casefold()
        if who not in existing and email and email in emails:
            raise ToolError(
                f"{who!r} has the e-mail address of {emails[email]!r}, who is in the gradebook",
                "take the ids from the same column as before (--id COLUMN), or take the first "
                "list back: make class UNDO=yes",
            )
        before = {name: getattr(existing.get(who), name, None) for name in _fields(student)}
        outcome = (
            "new"
            if who not in existing
            else "as before"
            if before == _fields(student)
            else "changed"
        )
        done[outcome].append(who)
    done["not in the list"] = sorted(existing.keys() - listed)
    same = [student["id"] for student in students if _whole_name(student) in unlisted_names]
    return done | ({"named as one not in the list": same} if same else {})


def _whole_name(student: Mapping[str, Any]) -> str:
    return f"{student.get('first_name') or ''} {student.get('last_name') or ''}".casefold()


def _fields(student: Student) -> Student:
    return {name: value for name, value in student.items() if name != "id" and value}


def enter(course: Course, class_list: ClassList) -> None:
    """Enter students into the gradebook, all or none, and onto the class list."""
    with class_state.changed(course) as state, Backend(course).gradebook() as book:
        existing = {entry.id: entry for entry in book.students}
        before: dict[str, Any] = {}
        for student in class_list.students:
            who, fields = student["id"], _fields(student)
            entry = existing.get(who)
            before[who] = {name: getattr(entry, name) for name in fields} if entry else None
            if entry is None:
                entry = backend.Student(id=who)
                book.db.add(entry)
            for name, value in fields.items():
                setattr(entry, name, value)
        header = [class_list.sheet.header[number] for number in class_list.identity]
        state.undo = {"before": before, "columns": state.columns, "students": dict(state.students)}
        if state.columns != header:  # cells under other columns would mean something else
            state.students = {who: [] for who in state.students}
        state.columns, state.students = header, state.students | class_list.cells
        book.db.commit()


def undo(course: Course) -> tuple[list[str], list[str]]:
    """Take the last class list back; return who was removed, and who stays with handed-in work."""
    with class_state.changed(course) as state, Backend(course).gradebook() as book:
        if not state.undo:
            raise ToolError("there is no class list to take back", "only the last one can be")
        before = state.undo["before"]
        new = [who for who, fields in before.items() if fields is None]
        existing = {entry.id: entry for entry in book.students}
        for who, fields in before.items():
            for name, value in (fields or {}).items():
                if who in existing:
                    setattr(existing[who], name, value)
        result = _drop(course, book, new)
        state.columns, state.students = state.undo["columns"], state.undo["students"]
        state.undo = {}
        book.db.commit()
    return result


def remove(course: Course, students: Sequence[str]) -> tuple[list[str], list[str]]:
    """Take students off the class list; return who was removed, and who stays with their work."""
    with class_state.changed(course) as state, Backend(course).gradebook() as book:
        existing = {entry.id for entry in book.students}
        for who in students:
            if who not in existing:
                raise ToolError(
                    f"there is no student {who!r}", f"the ids are {', '.join(sorted(existing))}"
                )
            state.students.pop(who, None)
        result = _drop(course, book, students)
        state.undo = {}
        book.db.commit()
    return result


def _drop(course: Course, book: Any, students: Sequence[str]) -> tuple[list[str], list[str]]:
    """Remove those from the gradebook who handed in nothing; return who was, and who was not."""
    removed: list[str] = []
    stay: list[str] = []
    for entry in [entry for entry in book.students if entry.id in students]:
        has_work = entry.submissions or any(course.submitted.glob(f"{entry.id}/*"))
        (stay if has_work else removed).append(entry.id)
        if not has_work:
            book.db.delete(entry)
    return removed, stay


def show(class_list: ClassList, done: dict[str, list[str]]) -> None:
    """Print what a class list is taken for, and what entering it would change."""
    sheet = class_list.sheet
    origin = " from Canvas" if class_list.platform else ""
    sign = {",": "commas", ";": "semicolons", "\t": "tabs"}[sheet.separator]
    size = f"{len(class_list.students)} students"
    console.print(f"{escape(str(sheet.file))}: {size}{origin}, {sign}, {sheet.encoding}")
    table = Table("", "column", "for example", box=None)
    for name in ("id", "first_name", "last_name", "email", "lms_user_id"):
        index = class_list.columns.get(
            name, class_list.columns.get("name") if "_name" in name else None
        )
        examples = _few([s[name] for s in class_list.students if s.get(name)][:3])
        table.add_row(name, Text("–" if index is None else sheet.header[index]), Text(examples))
    console.print(table)
    ignored = [
        header
        for index, header in enumerate(sheet.header)
        if index not in class_list.columns.values()
    ]
    for title, items in (
        ("Left alone", ignored),
        ("No students", class_list.left_out),
        ("Not the id", [f"{name} ({why})" for name, why in class_list.refused.items()]),
    ):
        if items:
            console.print(Text(f"{title}: {', '.join(items)}"))
    table = Table("", "students", "", box=None)
    for outcome, who in done.items():
        table.add_row(outcome, str(len(who)), Text(_few(who)))
    console.print(table)


def _few(items: Iterable[str]) -> str:
    shown = list(items)
    return ", ".join(shown[:FEW]) + (", …" if len(shown) > FEW else "")


def command(arguments: argparse.Namespace, course: Course | None = None) -> int:
    """Show a class list, and enter it; or take one back."""
    course = course or Course(ROOT)
    if arguments.undo or arguments.remove:
        removed, stay = undo(course) if arguments.undo else remove(course, arguments.remove)
        console.print(Text(f"Removed: {', '.join(removed) or 'nobody'}"))
        if stay:
            console.print(Text(f"Off the list, with work and marks kept: {', '.join(stay)}"))
        return 0
    if not arguments.file:
        raise ToolError("which class list?", "make class LIST=class.csv")
    with Backend(course).gradebook() as book:
        class_list = read(Path(arguments.file), arguments.id, [entry.id for entry in book.students])
        done = compare(book, class_list.students)
    show(class_list, done)
    if not (arguments.yes or _agreed(f"Enter these {len(class_list.students)} students? [y/N] ")):
        console.print("Nothing was entered.")
        return 1
    enter(course, class_list)
    console.print("Entered. `make class UNDO=yes` takes it back.")
    return 0


def _agreed(question: str) -> bool:
    """Ask on a terminal; elsewhere nobody can answer."""
    if not sys.stdin.isatty():
        console.print("Add --yes to enter it.")
        return False
    return console.input(escape(question)).strip().lower() in ("y", "yes")


def parser() -> argparse.ArgumentParser:
    """Return the command line of this tool."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.roster",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help="the class list, as CSV")
    parser.add_argument("--id", metavar="COLUMN", default="", help="the column of the ids")
    parser.add_argument("--yes", action="store_true", help="enter it without asking")
    parser.add_argument("--undo", action="store_true", help="take the last class list back")
    parser.add_argument("--remove", nargs="+", metavar="ID", help="take students off the list")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
