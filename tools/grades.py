"""Write a file of grades for a learning platform: ``python -m tools.grades [TOPIC …]``.

Without more it has the columns of the class list, as the platform named them, and a column of
points for each assignment. ``--into FILE`` fills a file that the platform made: Moodle's grading
worksheet, or Canvas's gradebook as it was exported. Such a file goes back as it is.

Everyone on the class list is in it, with a blank where there is no grade.
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from tools import class_state, results, roster, tables
from tools.backend import Backend
from tools.fingerprints import write_atomically
from tools.layout import ROOT, Course
from tools.results import Row
from tools.student_matching import Member, name_keys, on_the_list, same
from tools.tables import Sheet, plain
from tools.terminal import ToolError, console, run

GRADE = ("grade", "bewertung", "note", "calificación", "valutazione", "cijfer")
"""Headers of Moodle's grading worksheet, in some languages."""
SHOWN = 40
"""How many students the screen shows."""

Grades = Mapping[str, Mapping[str, Row]]
"""Results by student and assignment."""


def grades(course: Course, topics: Sequence[str]) -> dict[str, dict[str, Row]]:
    """Return the results of everyone on the class list, or, without one, in the gradebook."""
    found: dict[str, dict[str, Row]] = {who: {} for who in class_state.read(course).students}
    for row in results.rows(course, topics, everybody=True):
        if row.is_listed:
            found.setdefault(row.student, {})[row.assignment] = row
    return found


def points(row: Row | None, factor: float = 1) -> str:
    """Return the points of a result, or nothing where there is no grade."""
    return f"{round(row.total * factor, 2):.10g}" if row and row.graded else ""


def fresh(course: Course, topics: Sequence[str], of: Grades) -> bytes:
    """Return a file with the columns of the class list, and a column for each assignment."""
    known = class_state.read(course)
    topics = [topic for topic in topics if any(topic in own for own in of.values())]
    header, cells = known.columns, {who: known.students.get(who) or [] for who in of}
    if not header or not all(map(len, cells.values())):  # not all from the same list
        header, cells = _from_the_gradebook(course, of)
    rows = [[*cells[who], *(points(own.get(topic)) for topic in topics)] for who, own in of.items()]
    is_canvas = "ID" in header and bool({"SIS Login ID", "Section"} & {*header})
    if is_canvas:
        most = {
            topic: next(own[topic].max_total for own in of.values() if topic in own)
            for topic in topics
        }
        blank = [""] * (len(header) - 1)
        rows.insert(0, ["    Points Possible", *blank, *(f"{most[topic]:g}" for topic in topics)])
    text = results.comma_separated([*header, *topics], rows)
    # Canvas takes a mark before its first header for a part of it
    return text.encode() if is_canvas else results.for_spreadsheets(text)


def _from_the_gradebook(course: Course, of: Grades) -> tuple[list[str], dict[str, list[str]]]:
    header = ["id", "first_name", "last_name", "email", "lms_user_id"]
    with Backend(course).gradebook() as book:
        cells = {
            entry.id: [str(getattr(entry, name) or "") for name in header]
            for entry in book.students
        }
    return header, {who: cells[who] for who in of}


def fill(
    course: Course, sheet: Sheet, topics: Sequence[str], of: Grades, column: str, scale: bool
) -> tuple[bytes, list[str], list[str]]:
    """Fill a file that a platform made.

    Returns
    -------
    bytes
        The file; what it has besides is as it was.
    list of str
        Which column has the points of which assignment.
    list of str
        Students with a grade who are not in the file.
    """
    is_moodle = all(re.fullmatch(r"\D*\d+", cells[0]) for _, cells in sheet.rows)
    places = _columns(sheet, topics, column, is_moodle)
    members = on_the_list(course)
    found: set[str] = set()
    header, *filled = ([*cells] for cells in sheet.raw)
    for topic, place in places.items():
        most = _maximum(sheet, place, is_moodle)
        own = next((rows[topic].max_total for rows in of.values() if topic in rows), 0)
        if most and own and most != own and not scale:
            raise ToolError(
                f"{sheet.header[place]} has {most:g} points there, {topic} has {own:g} here",
                f"set {own:g} points on the platform and get the file again, or add --scale",
            )
        factor = most / own if most and own and scale else 1
        for (_, stripped), cells in zip(sheet.rows, filled, strict=True):
            student = _whose(sheet.header, stripped, members)
            if student in of:
                found.add(student)
                cells[place] = points(of[student].get(topic), factor) or cells[place]
    missing = [
        who for who, rows in of.items()
        if who not in found and any(row.graded for row in rows.values())
    ]  # fmt: skip
    if not found:
        raise ToolError(
            f"{sheet.file} names nobody on the class list",
            "give the platform's own file: Moodle's grading worksheet or Canvas's gradebook",
        )
    told = [f"{topic}: {sheet.header[place]}" for topic, place in places.items()]
    return tables.write([header, *filled], sheet), told, missing


def _columns(sheet: Sheet, topics: Sequence[str], column: str, is_moodle: bool) -> dict[str, int]:
    """Return which column takes the points of which assignment."""
    names = [plain(header) for header in sheet.header]
    if is_moodle or column:
        if len(topics) != 1:
            raise ToolError("that file has a column for one assignment", "name it: A=erm")
        wanted = (plain(column),) if column else GRADE
        places = [place for place, name in enumerate(names) if name in wanted]
        if not places:
            headers = ", ".join(sheet.header)
            raise ToolError(
                f"{sheet.file} has no column for grades among {headers}", "name it: --column NAME"
            )
        return {topics[0]: places[0]}
    titles = {
        place: f" {plain(header)} "
        for place, header in enumerate(sheet.header)
        if re.search(r"\(\d+\)$", header)
    }
    found: dict[str, int] = {}
    for topic in sorted(topics, key=len, reverse=True):  # bnp_cnn takes its own before bnp
        fitting = [place for place, title in titles.items() if f" {plain(topic)} " in title]
        if len(fitting) == 1:
            found[topic] = fitting[0]
            del titles[fitting[0]]
    if not found:
        listed = ", ".join(sheet.header[place] for place in titles) or "none"
        raise ToolError(
            f"no title in {sheet.file} holds the name of an assignment; its titles are {listed}",
            'say which: make grades A=erm INTO=file.csv COLUMN="Homework 1 (4711)"',
        )
    return found


def _maximum(sheet: Sheet, place: int, is_moodle: bool) -> float:
    """Return how many points a platform gives for an assignment; 0 where it does not say."""
    cell = ""
    if is_moodle:  # the maximum stands after the grade, in every language
        cell = (sheet.rows[0][1][place + 1 :] or [""])[0]
    else:
        for _, cells in sheet.rows:
            cell = cells[place] if cells[0].startswith("Points Possible") else cell
    try:
        return float(cell.replace(",", "."))
    except ValueError:
        return 0


def _whose(header: Sequence[str], cells: Sequence[str], members: Mapping[str, Member]) -> str:
    """Return the id of the student whom a row is about, or an empty string."""
    ids, number, keys = [], "", set()
    id_headers = [name for group in (roster.OWN_ID, *roster.IDS) for name in group]
    for name, cell in zip(map(plain, header), cells, strict=True):
        if name in (*id_headers, *roster.COLUMNS["email"]) and name not in ("id", "student"):
            ids.append(cell)
        elif name == "id":
            number = cell
        elif name in roster.COLUMNS["name"]:
            keys = name_keys(" ".join(reversed(cell.split(","))))
    found = same(ids, number, keys, members)
    return found[0].id if len(found) == 1 else ""


def table(of: Grades) -> Table:
    """Return a row for each student and a column for each assignment."""
    topics = list(dict.fromkeys(topic for own in of.values() for topic in own))
    made = Table("student", "name", box=None)
    for title in (*topics, "total"):
        made.add_column(title, justify="right", no_wrap=True)
    for who, own in list(of.items())[:SHOWN]:
        rows = list(own.values())
        name = f"{rows[0].first_name} {rows[0].last_name}" if rows else ""
        graded = [row.total for row in rows if row.graded]
        total = f"{sum(graded):g}" if graded else ""
        cells = [*(points(own.get(topic)) for topic in topics), total]
        made.add_row(Text(who), Text(name), *cells)
    return made


def command(arguments: argparse.Namespace, course: Course | None = None) -> None:
    """Write a file of grades, and show it."""
    course = course or Course(ROOT)
    topics = course.choose(arguments.topics)
    of = grades(course, topics)
    source = Path(arguments.into) if arguments.into else None
    if source and not any(row.graded for own in of.values() for row in own.values()):
        raise ToolError(
            f"nothing of {', '.join(topics)} has been graded", f"make grade A={topics[0]}"
        )
    target = Path(
        arguments.to or course.build / (f"grades-{source.name}" if source else "grades.csv")
    )
    if source:
        sheet = tables.read(source)
        content, told, missing = fill(course, sheet, topics, of, arguments.column, arguments.scale)
    else:
        content, told, missing = fresh(course, topics, of), [], []
    write_atomically(target, content)
    console.print(table(of))
    if len(of) > SHOWN:
        console.print(f"and {len(of) - SHOWN} more")
    rows = [row for own in of.values() for row in own.values()]
    others = {row.student for row in results.rows(course, topics) if not row.is_listed}
    for title, items in (
        ("Filled", told),
        ("Graded, but not in the file", missing),
        ("Not on the class list, and left out", sorted(others)),
        ("Written answers still to be read", sorted({row.student for row in rows if row.pending})),
    ):
        if items:
            console.print(Text(f"{title}: {', '.join(items)}"))
    console.print(Text(f"Wrote {target}"))


def parser() -> argparse.ArgumentParser:
    """Return the command line of this tool."""
    made = argparse.ArgumentParser(
        prog="python -m tools.grades",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("topics", nargs="*", metavar="TOPIC", help="an assignment; all when none")
    made.add_argument("--into", metavar="FILE", help="a file of the platform's to fill")
    made.add_argument("--column", metavar="TITLE", default="", help="the column that is filled")
    made.add_argument("--scale", action="store_true", help="convert to the platform's points")
    made.add_argument("--to", metavar="FILE", help="where to write it, instead of build/")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
