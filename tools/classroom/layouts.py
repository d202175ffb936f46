"""Read a table that a spreadsheet or a platform saved as CSV, and recognize what it is."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import yaml  # type: ignore[import-untyped]

from tools.classroom.student_matching import Person, is_test_student
from tools.terminal import ToolError

SAVE_AS = "save it as CSV in UTF-8 (in Excel: Save As, CSV UTF-8)"
WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # how the files of spreadsheet programs begin
ENCODINGS = {
    b"\xef\xbb\xbf": ("utf-8-sig", "UTF-8"),
    b"\xff\xfe": ("utf-16", "UTF-16"),
    b"\xfe\xff": ("utf-16", "UTF-16"),
    b"": ("utf-8", "UTF-8"),
}
"""The encodings that a mark at the beginning of a file tells, with their names."""
HEADERS = yaml.safe_load(Path(__file__).with_name("headers.yml").read_text("utf-8"))
"""Those that stand for a column, in some languages, by the name of a person's field if it has one.
"""
OWN_ID, LOGIN, INSTITUTION = (HEADERS[kind] for kind in ("own id", "login", "institution"))
GRADE = HEADERS["grade"]
COLUMNS = ("first_name", "last_name", "name", "email", "number")
CANVAS = {"sis login id", "sis user id", "section"}
"""Headers that tell that a column ID is Canvas's number."""
PARTICIPANT = re.compile(r"(\D*[^\W\d_]\D*?)\s*(\d+)")
"""How Moodle's grading worksheet begins a line: *Participant 501*, in the teacher's language."""


def plain(text: str) -> str:
    """Return a header in lowercase letters and digits, with single spaces."""
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))


def split_name(name: str) -> tuple[str, str]:
    """Return the first and the last name; particles in small letters belong to the last.

    >>> [split_name(name) for name in ("da Silva, Ana", "Ana da Silva", "Ana Silva Reis", "Ana")]
    [('Ana', 'da Silva'), ('Ana', 'da Silva'), ('Ana Silva', 'Reis'), ('', 'Ana')]
    """
    last, comma, first = name.partition(",")
    if not comma:
        words = name.split()
        small = [place for place, word in enumerate(words) if word[0].islower() and place]
        start = small[0] if small and words[-1][0].isupper() else max(len(words) - 1, 0)
        first, last = " ".join(words[:start]), " ".join(words[start:])
    return first.strip(), last.strip()


class Line(NamedTuple):
    """A row with the number of its last line in the file, and as it was, with all spaces."""

    number: int
    cells: list[str]
    raw: list[str]


@dataclass(frozen=True)
class Layout:
    """A table with a line of headers, which knows its own; it has no empty rows.

    ``has_mark`` tells whether a mark at the beginning of the file tells the encoding.
    """

    file: Path
    table: list[Line]
    separator: str
    encoding: str
    has_mark: bool

    @property
    def header(self) -> list[str]:
        """Return the titles of the columns."""
        return self.table[0].cells if self.table else []

    @property
    def rows(self) -> list[Line]:
        """Return the rows below the header."""
        return self.table[1:]

    @cached_property
    def platform(self) -> str:
        """Return "Canvas" for its gradebook, "Moodle" for its worksheet, or an empty string."""
        if "id" in self.names and CANVAS & {*self.names}:
            return "Canvas"
        first = [PARTICIPANT.fullmatch(row.cells[0]) for row in self.rows]
        is_numbered = all(first) and len({match and match[1] for match in first}) == 1
        maxima = (
            {self.maximum(row.cells, index) for row in self.rows} for index in self.find(GRADE)
        )
        # a list of one's own, too, may begin with s1, s2, … and have grades, but not in these forms
        has_grades = self.submitted is not None or any(len(cells | {""}) == 2 for cells in maxima)
        is_foreign = len(self.names) > 5 and self.names[0] not in (*OWN_ID, *LOGIN, *INSTITUTION)
        return "Moodle" if is_numbered and (has_grades or is_foreign) else ""

    @cached_property
    def names(self) -> list[str]:
        """Return the headers in plain letters."""
        return [plain(header) for header in self.header]

    def find(self, headers: Sequence[str]) -> list[int]:
        """Return the numbers of the columns with one of some headers."""
        return [index for index, name in enumerate(self.names) if name in headers]

    @cached_property
    def columns(self) -> dict[str, int]:
        """Return the numbers of the columns that say more of a student than the id."""
        found = {name: self.find(HEADERS[name]) for name in COLUMNS}
        if self.platform == "Canvas":
            found["number"] += self.find(("id",))
        return {name: indices[0] for name, indices in found.items() if indices}

    @cached_property
    def ids(self) -> list[int]:
        """Return the numbers of the columns that may be the id, the first choice first."""
        own: Sequence[str] = OWN_ID[:1] if "id" in self.names else OWN_ID
        if self.platform or "student sis id" in self.names:  # a number that a platform gives itself
            own = ()
        groups = (own, LOGIN, INSTITUTION, HEADERS["email"])
        return [index for headers in groups for index in self.find(headers)]

    @property
    def submitted(self) -> int | None:
        """Return the column of the time of a submission, in Moodle's grading worksheet.

        The grade's has the same name up to a bracket, in every language: Last modified
        (submission), Last modified (grade).
        """
        begins = [name.partition("(")[0] if "(" in name else "" for name in self.header]
        pairs = (index for index, name in enumerate(begins) if name and begins.count(name) > 1)
        return next(pairs, None)

    def maximum(self, cells: Sequence[str], grade: int) -> str:
        """Return the cell after a grade in Moodle's worksheet: the maximum, or a scale's words."""
        return "".join(cells[grade + 1 : grade + 2])

    def person(self, cells: Sequence[str], columns: Mapping[str, int] | None = None) -> Person:
        """Return of whom a row speaks, with all that may be an id, or as some columns say."""
        fields = {name: cells[index] for name, index in (columns or self.columns).items()}
        if "name" in fields:
            first, last = split_name(fields.pop("name"))
            fields = {"first_name": first, "last_name": last} | fields
        ids = {cells[index].casefold() for index in self.ids if not columns} - {""}
        return Person(**fields, ids=frozenset(ids))

    def write(self) -> bytes:
        """Return the table in UTF-8, else as it was, so that a platform knows it again."""
        stream = io.StringIO()
        writer = csv.writer(stream, delimiter=self.separator, lineterminator="\r\n")
        writer.writerows(row.raw for row in self.table)
        return stream.getvalue().encode("utf-8-sig" if self.has_mark else "utf-8")

    @cached_property
    def students(self) -> list[Line]:
        """Return the rows of students, without those that Canvas puts among them."""
        return [
            row
            for row in self.rows
            if self.platform != "Canvas"
            or not (
                row.cells[0].startswith("Points Possible")
                or re.fullmatch(r"(Muted|Manual Posting( \(.*?\))?| )+", " ".join(row.cells))
                or is_test_student(self.person(row.cells).name)
            )
        ]


def read(file: Path) -> Layout:
    """Read a table; raise with the line where the file is none."""

    def fail(reason: str, remedy: str = SAVE_AS) -> ToolError:
        return ToolError(f"{file} cannot be read: {reason}", remedy)

    try:
        content = file.expanduser().read_bytes()
    except OSError as error:
        raise fail(str(error.strerror), "give the name of a file") from None
    if content.startswith(WORKBOOKS):
        raise fail("it is a workbook or a zip, not CSV")
    mark = next(mark for mark in ENCODINGS if content.startswith(mark))
    encoding, encoding_name = ENCODINGS[mark]
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
    table, columns = list[Line](), 0
    try:
        for raw in reader:
            if any(cells := [cell.strip() for cell in raw]):
                columns = columns or len(cells)
                lacking = [""] * (columns - len(cells))
                table.append(Line(reader.line_num, cells + lacking, raw + lacking))
    except csv.Error as error:
        raise fail(f"line {reader.line_num}: {error}", "repair the line") from None
    for row in table:
        if any(row.cells[columns:]):
            has = f"line {row.number} of {file} has {len(row.cells)} cells for {columns} columns"
            raise ToolError(has, f"put a cell that holds {separator!r} between double quotes")
    return Layout(file, table, separator, encoding_name, bool(mark))
