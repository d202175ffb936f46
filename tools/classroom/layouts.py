"""Read a table that a spreadsheet or a platform saved as CSV, and recognize what it is."""

import csv
import io
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

import yaml  # type: ignore[import-untyped]
from babel.dates import get_month_names

from tools.classroom.students import Person, is_test_student
from tools.terminal import ToolError

WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # how the files of spreadsheet programs begin
HEADERS = yaml.safe_load(Path(__file__).with_name("headers.yml").read_text("utf-8"))
"""Those that stand for a column, in some languages, by the name of a person's field if it has one.
"""
OWN_ID, LOGIN, INSTITUTION = (HEADERS[kind] for kind in ("own id", "login", "institution"))
GRADE = HEADERS["grade"]
COLUMNS = ("first_name", "last_name", "name", "email", "number")
CANVAS = {"sis login id", "sis user id", "section"}
"""Headers that tell that a column ID is Canvas's number."""
OF_CANVAS = re.compile(r"Points Possible.*|(Muted|Manual Posting( \(.*?\))?| )+", re.DOTALL)
PARTICIPANT = re.compile(r"(\D*[^\W\d_]\D*?)\s*(\d+)")
"""How Moodle's grading worksheet begins a line: *Participant 501*, in the teacher's language."""
LANGUAGES = (
    *("en", "de", "fr", "es", "it", "nl", "pt", "ca", "fi", "sv", "da", "nb", "et", "lv", "lt"),
    *("pl", "cs", "sk", "sl", "hr", "hu", "ro", "tr", "el", "ru", "uk"),
)
"""Those whose names of months are known."""
DATES = (
    r"(?P<day>\d{1,2})\.? (de )?(?P<month>[^\W\d_]+)\.? (de )?(?P<year>\d{4})",
    r"(?P<month>[^\W\d_]+)\.? (?P<day>\d{1,2}), (?P<year>\d{4})",
    r"(?P<year>\d{4})-(?P<number>\d\d)-(?P<day>\d\d)",
)
WEEKDAY, TIME = r"([^\d,]+,? )?", r",? (?P<hour>\d{1,2})[:.](?P<minute>\d\d)( ?(?P<half>[ap]m))?"


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


@dataclass
class Layout:
    """A table with a line of headers, which knows its own; it has no empty rows.

    ``has_mark`` tells whether a mark at the beginning of the file tells the encoding.
    """

    file: Path
    header: list[str]
    rows: list[Line]
    raw_header: list[str]
    separator: str
    encoding: str
    has_mark: bool

    def __post_init__(self) -> None:
        """Recognize the platform, and the columns by their numbers."""
        self.names = [plain(header) for header in self.header]
        # the time of a submission in Moodle's worksheet: the grade's has the same name up to a
        # bracket, in every language: Last modified (submission), Last modified (grade)
        begins = [name.partition("(")[0] if "(" in name else "" for name in self.header]
        pairs = (index for index, name in enumerate(begins) if name and begins.count(name) > 1)
        self.submitted = next(pairs, None)
        # "Canvas" for its gradebook, "Moodle" for its worksheet, or nothing
        self.platform = "Moodle" if self._is_worksheet() else ""
        if "id" in self.names and CANVAS & {*self.names}:
            self.platform = "Canvas"
        # what says more of a student than the id
        found = {name: self.find(HEADERS[name]) for name in COLUMNS}
        found["number"] += self.find(("id",)) if self.platform == "Canvas" else []
        self.columns = {name: indices[0] for name, indices in found.items() if indices}
        # what may be the id, the first choice first, but for a number that a platform gives itself
        own = OWN_ID[:1] if "id" in self.names else OWN_ID
        has_number = self.platform or "student sis id" in self.names
        groups = ([] if has_number else own, LOGIN, INSTITUTION, HEADERS["email"])
        self.ids = [index for headers in groups for index in self.find(headers)]
        self.students = [row for row in self.rows if not self._is_canvas_own(row.cells)]

    def _is_worksheet(self) -> bool:
        first = [PARTICIPANT.fullmatch(row.cells[0]) for row in self.rows]
        is_numbered = all(first) and len({match and match[1] for match in first}) == 1
        maxima = (
            {self.maximum(row.cells, index) for row in self.rows} for index in self.find(GRADE)
        )
        # a list of one's own, too, may begin with s1, s2, … and have grades, but not in these forms
        has_grades = self.submitted is not None or any(len(cells | {""}) == 2 for cells in maxima)
        is_foreign = len(self.names) > 5 and self.names[0] not in (*OWN_ID, *LOGIN, *INSTITUTION)
        return is_numbered and (has_grades or is_foreign)

    def _is_canvas_own(self, cells: list[str]) -> bool:
        """Return whether a row is one that Canvas puts among those of students."""
        # that one has no number of the institution; a real student of this name may have one
        has_number = any(cells[index] for index in self.find(("sis user id",)))
        is_test = is_test_student(self.person(cells).name) and not has_number
        return self.platform == "Canvas" and (is_test or bool(OF_CANVAS.fullmatch(" ".join(cells))))

    def find(self, headers: Sequence[str]) -> list[int]:
        """Return the numbers of the columns with one of some headers."""
        return [index for index, name in enumerate(self.names) if name in headers]

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
        writer.writerows([self.raw_header, *(row.raw for row in self.rows)])
        return stream.getvalue().encode("utf-8-sig" if self.has_mark else "utf-8")


def read(file: Path) -> Layout:
    """Read a table; raise with the line where the file is none."""
    save_as, reason = "save it as CSV in UTF-8 (in Excel: Save As, CSV UTF-8)", ""
    try:
        content = file.expanduser().read_bytes()
        is_utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        has_mark = is_utf16 or content.startswith(b"\xef\xbb\xbf")
        encoding = "UTF-16" if is_utf16 else "UTF-8"
        text = content.decode("utf-16" if is_utf16 else "utf-8-sig")
    except OSError as error:
        raise ToolError(f"{file} cannot be read: {error.strerror}", "give a file's name") from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        text, reason = "", f"line {line} is not {encoding}"
    if content.startswith(WORKBOOKS):
        reason = "it is a workbook or a zip, not CSV"
    elif "\0" in text:
        reason = "it holds no text"
    if reason:
        raise ToolError(f"{file} cannot be read: {reason}", save_as)
    # Excel's own first line; kept empty, so that the numbers of lines stay
    text = re.sub(r"\Asep=.(?=\r?\n)", "", text)
    first = next(filter(None, map(str.strip, text.splitlines())), "")
    separator = max(",;\t", key=lambda sign: len(next(csv.reader([first], delimiter=sign), [])))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    rows, columns = list[Line](), 0
    try:
        for raw in reader:
            if any(cells := [cell.strip() for cell in raw]):
                columns = columns or len(cells)
                lacking = [""] * (columns - len(cells))
                rows.append(Line(reader.line_num, cells + lacking, raw + lacking))
    except csv.Error as error:
        where = f"{file} cannot be read: line {reader.line_num}: {error}"
        raise ToolError(where, "repair the line") from None
    for row in rows:
        if any(row.cells[columns:]):
            has = f"line {row.number} of {file} has {len(row.cells)} cells for {columns} columns"
            raise ToolError(has, f"put a cell that holds {separator!r} between double quotes")
    header = rows.pop(0) if rows else Line(0, [], [])
    return Layout(file, header.cells, rows, header.raw, separator, encoding, has_mark)


def moment(text: str) -> datetime | None:
    """Return the moment, in UTC, that Moodle writes in this machine's time zone, strictly, or None.

    What is unclear is unknown.
    """
    text = " ".join(text.split())
    matches = (re.fullmatch(WEEKDAY + date + TIME, text, re.IGNORECASE) for date in DATES)
    if not (match := next(filter(None, matches), None)):
        return None
    fields = match.groupdict()
    hour, half = int(fields["hour"]), (fields["half"] or "").lower()
    months = _months()[fields["month"].lower()] if "month" in fields else {int(fields["number"])}
    if len(months) != 1 or (half and not 1 <= hour <= 12):
        return None
    if half:
        hour = hour % 12 + 12 * (half == "pm")
    year, day, minute = (int(fields[name]) for name in ("year", "day", "minute"))
    try:
        local = datetime(year, min(months), day, hour, minute)
    except ValueError:
        return None
    return local.astimezone(UTC).replace(tzinfo=None)


@cache
def _months() -> defaultdict[str, set[int]]:
    """Return which months a name may mean: *listopad* is October in Croatian, November in Czech."""
    months = defaultdict(set)
    forms: Any = product(("wide", "abbreviated"), ("format", "stand-alone"), LANGUAGES)
    for number, name in chain(*(get_month_names(*form).items() for form in forms)):
        months[name.lower().rstrip(".")].add(number)
    return months
