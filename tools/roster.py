"""Enter a class list into the gradebook: ``python -m tools.roster CLASS.csv``.

The first line names the columns. ``id`` is the name under which a student hands in; ``first_name``,
``last_name``, ``email`` and ``lms_user_id`` are optional. Other columns are left alone. A student
who is there already is changed, and nobody is removed.
"""

import argparse
import csv
import io
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from tools.backend import Backend, MissingEntry
from tools.layout import ROOT, Course
from tools.terminal import ToolError, console, run

COLUMNS = {
    "id": ("id", "student", "student_id", "username", "login"),
    "first_name": ("first_name", "first", "given_name", "forename"),
    "last_name": ("last_name", "last", "surname", "family_name"),
    "email": ("email", "e_mail", "mail", "email_address"),
    "lms_user_id": ("lms_user_id", "lms_id"),
}
"""The gradebook's names of the columns, with the headers that stand for them."""
UNUSABLE = re.compile(r"[+/\\*?\[\]]|^\.|^-|^$")
"""nbgrader puts ids into names of files and folders, and takes + apart."""

Student = dict[str, str]


def read(file: Path) -> list[Student]:
    """Return the students of a class list.

    Raises
    ------
    ToolError
        When the file cannot be read as one; nothing has been entered then.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ToolError(f"{file} cannot be read: {error}", "save it as CSV in UTF-8") from None
    header = text.splitlines()[0] if text.strip() else ""
    separator = max(",;\t", key=header.count)
    rows = list(csv.reader(io.StringIO(text), delimiter=separator))
    names = [_column(cell) for cell in rows[0]] if rows else []
    if "id" not in names:
        columns = ", ".join(rows[0]) if rows else "none"
        raise ToolError(
            f"{file} has no column of ids; its columns are {columns}",
            f"name one of them {', '.join(COLUMNS['id'])}",
        )
    students: dict[str, Student] = {}
    for number, row in enumerate(rows[1:], start=2):
        if not any(cell.strip() for cell in row):
            continue
        student = {name: cell.strip() for name, cell in zip(names, row, strict=False) if name}
        who = student.get("id", "")
        if UNUSABLE.search(who):
            raise ToolError(
                f"line {number} of {file}: {who!r} cannot be an id",
                "an id is a part of file names: use letters, digits, dots, hyphens, underscores",
            )
        if who in students:
            raise ToolError(
                f"line {number} of {file}: {who!r} is there twice", "remove one of them"
            )
        students[who] = student
    return list(students.values())


def _column(header: str) -> str:
    """Return the gradebook's name of a column, or an empty string for a column to leave alone."""
    plain = re.sub(r"[^a-z]+", "_", header.strip().lower()).strip("_")
    return next((name for name, known in COLUMNS.items() if plain in known), "")


def enter(course: Course, students: Sequence[Student]) -> dict[str, list[str]]:
    """Enter students into the gradebook; return who is new, changed, as before, and not listed."""
    done: dict[str, list[str]] = {"new": [], "changed": [], "as before": [], "not in the list": []}
    with Backend(course).gradebook() as book:
        for student in students:
            who = student["id"]
            about = {name: value for name, value in student.items() if name != "id" and value}
            try:
                found = book.find_student(who)
                before = {name: getattr(found, name) for name in about}
                kind = "as before" if before == about else "changed"
            except MissingEntry:
                kind = "new"
            if kind != "as before":
                book.update_or_create_student(who, **about)
            done[kind].append(who)
        listed = {student["id"] for student in students}
        done["not in the list"] = sorted({one.id for one in book.students} - listed)
    return done


def command(arguments: argparse.Namespace, course: Course | None = None) -> None:
    """Enter a class list, and say what changed."""
    course = course or Course(ROOT)
    done = enter(course, read(Path(arguments.file)))
    table = Table("", "students", "", box=None)
    for kind, who in done.items():
        names = ", ".join(who[:6]) + (", …" if len(who) > 6 else "")
        table.add_row(kind, str(len(who)), names)
    console.print(table)


def parser() -> argparse.ArgumentParser:
    """Return the command line of this tool."""
    made = argparse.ArgumentParser(
        prog="python -m tools.roster",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("file", metavar="FILE", help="the class list, as CSV")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
