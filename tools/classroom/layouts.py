"""Read a table that a spreadsheet or a platform saved as CSV, and recognize what it is."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tools.classroom.student_matching import Person, is_test_student
from tools.terminal import ToolError

SAVE_AS = "save it as CSV in UTF-8 (in Excel: Save As, CSV UTF-8)"
WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""How the files of spreadsheet programs begin."""
ENCODINGS = {
    b"\xef\xbb\xbf": ("utf-8-sig", "UTF-8"),
    b"\xff\xfe": ("utf-16", "UTF-16"),
    b"\xfe\xff": ("utf-16", "UTF-16"),
}
"""The encodings that a mark at the beginning of a file tells, with their names."""
OWN_ID = ("id", "student", "student id")
LOGIN = (
    *("username", "user name", "login", "login id", "sis login id", "netid", "anmeldename"),
    *("benutzername", "nutzername", "nom d utilisateur", "identifiant", "nombre de usuario"),
    *("nome utente", "gebruikersnaam"),
)
INSTITUTION = (
    *("id number", "sis user id", "sis id", "student sis id", "user id", "student number"),
    *("matriculation number", "registration number", "id nummer", "matrikelnummer"),
    *("numéro d identification", "numéro d étudiant", "número de id", "numero id", "matricola"),
    *("codice identificativo", "studentnummer"),
)
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
"""The gradebook's names of the columns, with the headers that stand for them."""
GRADE = ("grade", "bewertung", "note", "calificación", "valutazione", "cijfer")
"""Headers of the column of grades in Moodle's grading worksheet, in some languages."""
CANVAS = {"sis login id", "sis user id", "section"}
"""Headers that tell that a column ID is Canvas's number."""
PARTICIPANT = re.compile(r"(\D*[^\W\d_]\D*?)\s*(\d+)")
"""How Moodle's grading worksheet begins a line: *Participant 501*, in the teacher's language."""
KEPT = ("section", "integration id", "root account")
"""Headers that Canvas wants to see again in a file of grades."""


@dataclass(frozen=True)
class Sheet:
    """A table with a line of headers."""

    file: Path
    header: list[str]
    rows: list[tuple[int, list[str]]]
    """The other rows, each with the number of its last line in the file, but for empty ones."""
    raw: list[list[str]]
    """The header and the same rows as they were, with the spaces around their cells."""
    separator: str
    encoding: str
    has_mark: bool
    """Whether a mark at the beginning tells the encoding."""


def plain(text: str) -> str:
    """Return a header in lowercase letters and digits, with single spaces."""
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))


@dataclass(frozen=True)
class Layout:
    """What a table is: Canvas's gradebook, Moodle's grading worksheet, or any other list."""

    sheet: Sheet
    platform: str

    @cached_property
    def names(self) -> list[str]:
        """Return the headers in plain letters."""
        return [plain(header) for header in self.sheet.header]

    def find(self, headers: Sequence[str]) -> list[int]:
        """Return the numbers of the columns with one of some headers."""
        return [index for index, name in enumerate(self.names) if name in headers]

    @cached_property
    def columns(self) -> dict[str, int]:
        """Return the numbers of the columns that say more of a student than the id."""
        found = {name: self.find(headers) for name, headers in COLUMNS.items()}
        if self.platform == "Canvas":
            found["lms_user_id"] += self.find(("id",))
        return {name: indices[0] for name, indices in found.items() if indices}

    @cached_property
    def ids(self) -> list[int]:
        """Return the numbers of the columns that may be the id, the first choice first."""
        own: Sequence[str] = OWN_ID[:1] if "id" in self.names else OWN_ID
        if self.platform or "student sis id" in self.names:  # a number that a platform gives itself
            own = ()
        groups = (own, LOGIN, INSTITUTION, COLUMNS["email"])
        return [index for headers in groups for index in self.find(headers)]

    @property
    def internal(self) -> list[int]:
        """Return the numbers of the columns with numbers that a platform gives by itself."""
        participant = [0] if self.platform == "Moodle" else self.find(("identifier",))
        return [self.columns.get("lms_user_id", -1), *participant]

    @property
    def submitted(self) -> int | None:
        """Return the column of the time of a submission, in Moodle's grading worksheet.

        The grade's has the same name up to a bracket, in every language: Last modified
        (submission), Last modified (grade).
        """
        begins = [name.partition("(")[0] if "(" in name else "" for name in self.sheet.header]
        pairs = (index for index, name in enumerate(begins) if name and begins.count(name) > 1)
        return next(pairs, None)

    def maximum(self, cells: Sequence[str], grade: int) -> str:
        """Return the cell after a grade in Moodle's worksheet: the maximum, or a scale's words."""
        return "".join(cells[grade + 1 : grade + 2])

    def fields(self, cells: Sequence[str], columns: Mapping[str, int]) -> dict[str, str]:
        """Return what some columns of a row say of a student, by the gradebook's names."""
        fields = {name: cells[index] for name, index in columns.items()}
        if "name" in fields:
            last, comma, first = fields.pop("name").partition(",")
            if not comma:
                first, _, last = last.rpartition(" ")
            fields = {"first_name": first.strip(), "last_name": last.strip()} | fields
        return fields

    def person(self, cells: Sequence[str]) -> Person:
        """Return of whom a row speaks."""
        ids = {cells[index].casefold() for index in self.ids} - {""}
        return Person.of(self.fields(cells, self.columns), ids)

    @cached_property
    def students(self) -> list[tuple[int, list[str]]]:
        """Return the rows of students, each with the number of its line."""
        return [row for row in self.sheet.rows if self.is_student(row[1])]

    @property
    def left_out(self) -> list[str]:
        """Return the rows that are no students."""
        rows = (row for row in self.sheet.rows if not self.is_student(row[1]))
        return [f"line {number}: {' '.join(filter(None, cells))}" for number, cells in rows]

    def is_student(self, cells: Sequence[str]) -> bool:
        """Return whether a row is a student, and none of those that Canvas puts among them."""
        text = " ".join(filter(None, cells))
        return self.platform != "Canvas" or not (
            cells[0].startswith("Points Possible")
            or re.fullmatch(r"(Muted|Manual Posting( \(.*?\))?| )+", text)
            or is_test_student(self.person(cells).name)
        )


def read_sheet(file: Path) -> Sheet:
    """Read a table; raise with the line where the file is none."""

    def fail(reason: str) -> ToolError:
        return ToolError(f"{file} cannot be read: {reason}", SAVE_AS)

    try:
        content = file.read_bytes()
    except OSError as error:
        raise ToolError(
            f"{file} cannot be read: {error.strerror}", "give the name of a file"
        ) from None
    if content.startswith(WORKBOOKS):
        raise fail("it is a workbook or a zip, not CSV")
    mark = next((mark for mark in ENCODINGS if content.startswith(mark)), b"")
    encoding, encoding_name = ENCODINGS.get(mark, ("utf-8", "UTF-8"))
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise fail(f"line {line} is not {encoding_name}") from None
    if "\0" in text:
        raise fail("it holds no text")
    # Excel's own first line; kept empty, so that the numbers of lines stay
    text = re.sub(r"\Asep=.(?=\r?\n)", "", text)
    first = next(filter(None, map(str.strip, text.splitlines())), "")
    separator = max(",;\t", key=lambda sign: len(next(csv.reader([first], delimiter=sign), [])))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows, raw = [], []
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if any(stripped):
                rows.append((reader.line_num, stripped))
                raw.append(cells)
    except csv.Error as error:
        raise ToolError(
            f"line {reader.line_num} of {file} cannot be read: {error}", "repair the line"
        ) from None
    header = rows[0][1] if rows else []
    for number, cells in rows[1:]:
        if any(cells[len(header) :]):
            raise ToolError(
                f"line {number} of {file} has {len(cells)} cells for {len(header)} columns",
                f"put a cell that holds {separator!r} between double quotes",
            )
    for cells in [*raw, *(cells for _, cells in rows[1:])]:
        cells += [""] * (len(header) - len(cells))
    return Sheet(file, header, rows[1:], raw, separator, encoding_name, bool(mark))


def read(file: Path) -> Layout:
    """Read a table, and recognize it."""
    sheet = read_sheet(file)
    names = [plain(header) for header in sheet.header]
    if "id" in names and CANVAS & {*names}:
        return Layout(sheet, "Canvas")
    layout = Layout(sheet, "Moodle")
    first = [PARTICIPANT.fullmatch(cells[0]) for _, cells in sheet.rows]
    is_numbered = all(first) and len({match and match[1] for match in first}) == 1
    maxima = (
        {layout.maximum(cells, index) for _, cells in sheet.rows} for index in layout.find(GRADE)
    )
    # a list of one's own, too, may begin with s1, s2, … and have grades, but not in these forms
    has_grades = layout.submitted is not None or any(len(cells | {""}) == 2 for cells in maxima)
    is_foreign = len(names) > 5 and names[0] not in (*OWN_ID, *LOGIN, *INSTITUTION)
    return layout if is_numbered and (has_grades or is_foreign) else Layout(sheet, "")


def write(rows: Iterable[Sequence[str]], like: Sheet) -> bytes:
    """Return a table in UTF-8 that is written like another.

    Cells are written as they are, so that a platform recognizes its own.
    """
    stream = io.StringIO()
    csv.writer(stream, delimiter=like.separator, lineterminator="\r\n").writerows(rows)
    return stream.getvalue().encode("utf-8-sig" if like.has_mark else "utf-8")
