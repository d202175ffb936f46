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
        kept = [place for place, name in enumerate(map(plain, self.sheet.header)) if name in KEPT]
        others = _candidates(self.sheet, self.platform)
        return sorted({*self.columns.values(), *others, *kept})


def read(file: Path, column: str = "", known: Iterable[str] = ()) -> ClassList:
    """Read a class list.

    Parameters
    ----------
    file : Path
        The list.
    column : str
        The header of the column of ids; the rule decides when not given.
    known : iterable of str
        The ids that the gradebook has: a column with more of them comes first.

    Raises
    ------
    ToolError
        When the file cannot be read as a class list; nothing has been entered then.
    """
    sheet = tables.read(file)
    names = [plain(header) for header in sheet.header]
    is_canvas = "id" in names and bool({"sis login id", "sis user id", "section"} & {*names})
    found = ClassList(sheet, "Canvas" if is_canvas else "", {})
    rows = [row for row in sheet.rows if not _is_no_student(row, found)]
    for name, headers in COLUMNS.items():
        wanted = [place for place, header in enumerate(names) if header in headers]
        if name == "lms_user_id" and is_canvas:
            wanted.append(names.index("id"))
        if wanted:
            found.columns[name] = wanted[0]
    place = _id_column(found, rows, column, set(known))
    # "student" may stand for an id or for a name, but not for both
    found.columns = {
        name: other for name, other in found.columns.items() if other != place or name == "email"
    }
    found.columns["id"] = place
    for number, cells in rows:
        student = {name: cells[at] for name, at in found.columns.items()}
        if "name" in student:
            student = names_of(student.pop("name")) | student
        if (email := student.get("email")) and "@" not in email:
            raise ToolError(
                f"line {number} of {file}: {email!r} is no e-mail address",
                "are the titles of two columns swapped?",
            )
        found.students.append(student)
        found.cells[student["id"]] = [cells[number] for number in found.identity]
    if not found.students:
        raise ToolError(f"{file} has no students", "a line below the header is a student")
    return found


def _is_no_student(row: tuple[int, list[str]], found: ClassList) -> bool:
    """Return whether a row is one of those that Canvas puts among its students."""
    number, cells = row
    text = " ".join(filter(None, cells))
    special = (
        cells[0].startswith("Points Possible")
        or re.fullmatch(r"(Muted|Manual Posting( \(.*?\))?| )+", text)
        or cells[0] in ("Student, Test", "Test Student")
    )
    if found.platform == "Canvas" and special:
        found.left_out.append(f"line {number}: {cells[0] or text}")
        return True
    return False


def _candidates(sheet: Sheet, platform: str) -> list[int]:
    """Return the numbers of the columns that may be the id, the first choice first."""
    names = [plain(header) for header in sheet.header]
    own: Sequence[str] = OWN_ID[:1] if "id" in names else OWN_ID
    if platform == "Canvas" or "student sis id" in names:  # a number that Canvas gives itself
        own = ()
    groups = (own, *IDS, COLUMNS["email"])
    return [place for group in groups for place, name in enumerate(names) if name in group]


def _id_column(
    found: ClassList, rows: Sequence[tuple[int, list[str]]], wanted: str, known: set[str]
) -> int:
    """Return the number of the column of ids."""
    sheet = found.sheet
    columns = ", ".join(sheet.header) or "none"
    candidates = _candidates(sheet, found.platform)
    if wanted:
        candidates = [
            place for place, name in enumerate(sheet.header) if plain(name) == plain(wanted)
        ]
        if not candidates:
            raise ToolError(
                f"{sheet.file} has no column {wanted!r}; its columns are {columns}",
                "name one of them",
            )
        if _is_internal(found, candidates[0]):
            raise ToolError(
                f"{wanted} in {sheet.file} is a number that the platform gives by itself",
                f"name another column of {columns}",
            )
    if not candidates:
        internal = " (ID is Canvas's internal number)" if found.platform else ""
        raise ToolError(
            f"{sheet.file} has no column of ids; its columns are {columns}{internal}",
            "export a list with a username, a number of your institution or an e-mail address, "
            "or name the column with --id",
        )
    faults = {place: _fault(sheet.file, rows, place) for place in candidates}
    first = plain(sheet.header[candidates[0]])
    usable = [place for place in candidates if not faults[place]]
    if not usable or (faults[candidates[0]] and first in ("id", "student id")):
        raise ToolError(*(faults[candidates[0]] or ()))
    found.refused = {sheet.header[place]: fault[0] for place, fault in faults.items() if fault}
    return max(usable, key=lambda place: len(known & {cells[place] for _, cells in rows}))


def _is_internal(found: ClassList, place: int) -> bool:
    """Return whether a column holds numbers that a platform gives by itself."""
    name = plain(found.sheet.header[place])
    return place == found.columns.get("lms_user_id") or name == "identifier"


def _fault(file: Path, rows: Sequence[tuple[int, list[str]]], place: int) -> tuple[str, str] | None:
    """Return why a column cannot be the id, and how to fix it."""
    seen: dict[str, int] = {}
    for number, cells in rows:
        who = cells[place]
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

    Raises
    ------
    ToolError
        When a new student is in the gradebook under another id.
    """
    there = {entry.id: entry for entry in book.students}
    listed = {student["id"] for student in students}
    emails = {
        (entry.email or "").casefold(): entry.id
        for entry in there.values()
        if entry.id not in listed
    }
    done: dict[str, list[str]] = {"new": [], "changed": [], "as before": []}
    others = {_whole_name(vars(entry)) for who, entry in there.items() if who not in listed} - {" "}
    for student in students:
        who, email = student["id"], student.get("email", "").casefold()
        if who not in there and email and email in emails:
            raise ToolError(
                f"{who!r} has the e-mail address of {emails[email]!r}, who is in the gradebook",
                "take the ids from the same column as before (--id COLUMN), or take the first "
                "list back: make class UNDO=yes",
            )
        before = {name: getattr(there.get(who), name, None) for name in _about(student)}
        kind = (
            "new" if who not in there else "as before" if before == _about(student) else "changed"
        )
        done[kind].append(who)
    done["not in the list"] = sorted(there.keys() - listed)
    same = [student["id"] for student in students if _whole_name(student) in others]
    return done | ({"named as one not in the list": same} if same else {})


def _whole_name(student: Mapping[str, Any]) -> str:
    return f"{student.get('first_name') or ''} {student.get('last_name') or ''}".casefold()


def _about(student: Student) -> Student:
    return {name: value for name, value in student.items() if name != "id" and value}


def enter(course: Course, found: ClassList) -> None:
    """Enter students into the gradebook, all or none, and onto the class list."""
    with class_state.changed(course) as known, Backend(course).gradebook() as book:
        there = {entry.id: entry for entry in book.students}
        before: dict[str, Any] = {}
        for student in found.students:
            who, about = student["id"], _about(student)
            entry = there.get(who)
            before[who] = {name: getattr(entry, name) for name in about} if entry else None
            if entry is None:
                entry = backend.Student(id=who)
                book.db.add(entry)
            for name, value in about.items():
                setattr(entry, name, value)
        header = [found.sheet.header[number] for number in found.identity]
        known.undo = {"before": before, "columns": known.columns, "students": dict(known.students)}
        if known.columns != header:  # cells under other columns would mean something else
            known.students = {who: [] for who in known.students}
        known.columns, known.students = header, known.students | found.cells
        book.db.commit()


def undo(course: Course) -> tuple[list[str], list[str]]:
    """Take the last class list back; return who was removed, and who stays with handed-in work."""
    with class_state.changed(course) as known, Backend(course).gradebook() as book:
        if not known.undo:
            raise ToolError("there is no class list to take back", "only the last one can be")
        before = known.undo["before"]
        new = [who for who, fields in before.items() if fields is None]
        there = {entry.id: entry for entry in book.students}
        for who, fields in before.items():
            for name, value in (fields or {}).items():
                if who in there:
                    setattr(there[who], name, value)
        result = _drop(course, book, new)
        known.columns, known.students = known.undo["columns"], known.undo["students"]
        known.undo = {}
        book.db.commit()
    return result


def remove(course: Course, students: Sequence[str]) -> tuple[list[str], list[str]]:
    """Take students off the class list; return who was removed, and who stays with their work."""
    with class_state.changed(course) as known, Backend(course).gradebook() as book:
        there = {entry.id for entry in book.students}
        for who in students:
            if who not in there:
                raise ToolError(
                    f"there is no student {who!r}", f"the ids are {', '.join(sorted(there))}"
                )
            known.students.pop(who, None)
        result = _drop(course, book, students)
        known.undo = {}
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


def show(found: ClassList, done: dict[str, list[str]]) -> None:
    """Print what a class list is taken for, and what entering it would change."""
    sheet = found.sheet
    of = " from Canvas" if found.platform else ""
    sign = {",": "commas", ";": "semicolons", "\t": "tabs"}[sheet.separator]
    console.print(
        f"{escape(str(sheet.file))}: {len(found.students)} students{of}, {sign}, {sheet.encoding}"
    )
    table = Table("", "column", "for example", box=None)
    for name in ("id", "first_name", "last_name", "email", "lms_user_id"):
        place = found.columns.get(name, found.columns.get("name") if "_name" in name else None)
        examples = _few([s[name] for s in found.students if s.get(name)][:3])
        table.add_row(name, Text("–" if place is None else sheet.header[place]), Text(examples))
    console.print(table)
    ignored = [
        header for place, header in enumerate(sheet.header) if place not in found.columns.values()
    ]
    for title, items in (
        ("Left alone", ignored),
        ("No students", found.left_out),
        ("Not the id", [f"{name} ({why})" for name, why in found.refused.items()]),
    ):
        if items:
            console.print(Text(f"{title}: {', '.join(items)}"))
    table = Table("", "students", "", box=None)
    for kind, who in done.items():
        table.add_row(kind, str(len(who)), Text(_few(who)))
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
        found = read(Path(arguments.file), arguments.id, [entry.id for entry in book.students])
        done = compare(book, found.students)
    show(found, done)
    if not (arguments.yes or _agreed(f"Enter these {len(found.students)} students? [y/N] ")):
        console.print("Nothing was entered.")
        return 1
    enter(course, found)
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
    made = argparse.ArgumentParser(
        prog="python -m tools.roster",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("file", nargs="?", metavar="FILE", help="the class list, as CSV")
    made.add_argument("--id", metavar="COLUMN", default="", help="the column of the ids")
    made.add_argument("--yes", action="store_true", help="enter it without asking")
    made.add_argument("--undo", action="store_true", help="take the last class list back")
    made.add_argument("--remove", nargs="+", metavar="ID", help="take students off the list")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
