"""Read a table that a spreadsheet or a learning platform saved as CSV, and write one like it."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True)
class Sheet:
    """A table with a line of headers.

    Parameters
    ----------
    file : Path
        Where it was read.
    header : list of str
        The names of the columns.
    rows : list
        The other rows, each with the number of its last line in the file. Empty rows are left out.
    raw : list
        The same rows and the header as they were, with the spaces around their cells.
    separator : str
        What separates the cells of a row.
    encoding : str
        The name of the encoding.
    has_mark : bool
        Whether a mark at the beginning tells the encoding.
    """

    file: Path
    header: list[str]
    rows: list[tuple[int, list[str]]]
    raw: list[list[str]]
    separator: str
    encoding: str
    has_mark: bool


def plain(text: str) -> str:
    """Return a header in lowercase letters and digits, with single spaces."""
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))


def read(file: Path) -> Sheet:
    """Read a table.

    Raises
    ------
    ToolError
        When the file is no such table, with the line where it is not.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ToolError(
            f"{file} cannot be read: {error.strerror}", "give the name of a file"
        ) from None
    if content.startswith(WORKBOOKS):
        raise ToolError(f"{file} cannot be read: it is a workbook or a zip, not CSV", SAVE_AS)
    mark = next((mark for mark in ENCODINGS if content.startswith(mark)), b"")
    encoding, encoding_name = ENCODINGS.get(mark, ("utf-8", "UTF-8"))
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ToolError(
            f"{file} cannot be read: line {line} is not {encoding_name}", SAVE_AS
        ) from None
    if "\0" in text:
        raise ToolError(f"{file} cannot be read: it holds no text", SAVE_AS)
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
    for cells in raw:
        cells += [""] * (len(header) - len(cells))
    for number, cells in rows[1:]:
        if any(cells[len(header) :]):
            raise ToolError(
                f"line {number} of {file} has {len(cells)} cells for {len(header)} columns",
                f"put a cell that holds {separator!r} between double quotes",
            )
        cells += [""] * (len(header) - len(cells))
    return Sheet(file, header, rows[1:], raw, separator, encoding_name, bool(mark))


def write(rows: Iterable[Sequence[str]], like: Sheet) -> bytes:
    """Return a table in UTF-8 that is written like another.

    Cells are written as they are, so that a platform recognizes its own.
    """
    stream = io.StringIO()
    csv.writer(stream, delimiter=like.separator, lineterminator="\r\n").writerows(rows)
    return stream.getvalue().encode("utf-8-sig" if like.has_mark else "utf-8")
