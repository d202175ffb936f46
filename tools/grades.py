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
from tools.fingerprints import write_if_changed
from tools.layout import ROOT, Course
from tools.results import Row
from tools.student_matching import Member, class_members, find_members, name_keys
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
    by_student: dict[str, dict[str, Row]] = {who: {} for who in class_state.read(course).students}
    for row in results.rows(course, topics, everybody=True):
        if row.is_listed:
            by_student.setdefault(row.student, {})[row.assignment] = row
    return by_student


def points(row: Row | None, factor: float = 1) -> str:
    """Return the points of a result, or nothing where there is no grade.

    Parameters
    ----------
    row : Row or None
        A result of a student in an assignment.
    factor : float
        The platform's points for one point here.

    Returns
    -------
    str
        Rounded to two digits after the point.
    """
    return f"{round(row.total * factor, 2):.10g}" if row and row.graded else ""


def new_sheet(course: Course, topics: Sequence[str], by_student: Grades) -> bytes:
    """Return a file with the columns of the class list, and a column for each assignment.

    Parameters
    ----------
    topics : sequence of str
        The assignments; those without any result get no column.
    by_student : mapping
        Results by student and assignment.

    Returns
    -------
    bytes
        Comma-separated text in UTF-8; for a spreadsheet with a byte order mark, for Canvas without.
    """
    state = class_state.read(course)
    topics = [
        topic for topic in topics if any(topic in by_topic for by_topic in by_student.values())
    ]
    header, cells = state.columns, {who: state.students.get(who) or [] for who in by_student}
    if not header or not all(map(len, cells.values())):  # not all from the same list
        header, cells = _from_the_gradebook(course, by_student)
    rows = [
        [*cells[who], *(points(by_topic.get(topic)) for topic in topics)]
        for who, by_topic in by_student.items()
    ]
    is_canvas = "ID" in header and bool({"SIS Login ID", "Section"} & {*header})
    if is_canvas:
        maxima = {
            topic: next(
                by_topic[topic].max_total for by_topic in by_student.values() if topic in by_topic
            )
            for topic in topics
        }
        blank = [""] * (len(header) - 1)
        rows.insert(0, ["    Points Possible", *blank, *(f"{maxima[topic]:g}" for topic in topics)])
    text = results.comma_separated([*header, *topics], rows)
    # Canvas takes a mark before its first header for a part of it
    return text.encode() if is_canvas else results.for_spreadsheets(text)


def _from_the_gradebook(
    course: Course, by_student: Grades
) -> tuple[list[str], dict[str, list[str]]]:
    header = ["id", "first_name", "last_name", "email", "lms_user_id"]
    with Backend(course).gradebook() as book:
        cells = {
            entry.id: [str(getattr(entry, name) or "") for name in header]
            for entry in book.students
        }
    return header, {who: cells[who] for who in by_student}


def fill(
    course: Course,
    sheet: Sheet,
    topics: Sequence[str],
    by_student: Grades,
    column: str,
    scale: bool,
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
    columns = _columns(sheet, topics, column, is_moodle)
    members = class_members(course)
    matched: set[str] = set()
    header, *filled_rows = ([*cells] for cells in sheet.raw)
    for topic, index in columns.items():
        theirs = _maximum(sheet, index, is_moodle)
        ours = next((rows[topic].max_total for rows in by_student.values() if topic in rows), 0)
        if theirs and ours and theirs != ours and not scale:
            raise ToolError(
                f"{sheet.header[index]} has {theirs:g} points there, {topic} has {ours:g} here",
                f"set {ours:g} points on the platform and get the file again, or add --scale",
            )
        factor = theirs / ours if theirs and ours and scale else 1
        for (_, stripped), cells in zip(sheet.rows, filled_rows, strict=True):
            student = _whose(sheet.header, stripped, members)
            if student in by_student:
                matched.add(student)
                cells[index] = points(by_student[student].get(topic), factor) or cells[index]
    missing = [
        who for who, rows in by_student.items()
        if who not in matched and any(row.graded for row in rows.values())
    ]  # fmt: skip
    if not matched:
        raise ToolError(
            f"{sheet.file} names nobody on the class list",
            "give the platform's own file: Moodle's grading worksheet or Canvas's gradebook",
        )
    filled_columns = [f"{topic}: {sheet.header[index]}" for topic, index in columns.items()]
    return tables.write([header, *filled_rows], sheet), filled_columns, missing


def _columns(sheet: Sheet, topics: Sequence[str], column: str, is_moodle: bool) -> dict[str, int]:
    """Return which column takes the points of which assignment."""
    names = [plain(header) for header in sheet.header]
    if is_moodle or column:
        if len(topics) != 1:
            raise ToolError("that file has a column for one assignment", "name it: A=erm")
        headers = (plain(column),) if column else GRADE
        indices = [index for index, name in enumerate(names) if name in headers]
        if not indices:
            listed = ", ".join(sheet.header)
            raise ToolError(
                f"{sheet.file} has no column for grades among {listed}", "name it: --column NAME"
            )
        return {topics[0]: indices[0]}
    titles = {
        index: f" {plain(header)} "
        for index, header in enumerate(sheet.header)
        if re.search(r"\(\d+\)$", header)
    }
    columns: dict[str, int] = {}
    for topic in sorted(topics, key=len, reverse=True):  # bnp_cnn takes its own before bnp
        fitting = [index for index, title in titles.items() if f" {plain(topic)} " in title]
        if len(fitting) == 1:
            columns[topic] = fitting[0]
            del titles[fitting[0]]
    if not columns:
        listed = ", ".join(sheet.header[index] for index in titles) or "none"
        raise ToolError(
            f"no title in {sheet.file} holds the name of an assignment; its titles are {listed}",
            'say which: make grades A=erm INTO=file.csv COLUMN="Homework 1 (4711)"',
        )
    return columns


def _maximum(sheet: Sheet, index: int, is_moodle: bool) -> float:
    """Return how many points a platform gives for an assignment; 0 where it does not say."""
    cell = ""
    if is_moodle:  # the maximum stands after the grade, in every language
        cell = (sheet.rows[0][1][index + 1 :] or [""])[0]
    else:
        for _, cells in sheet.rows:
            cell = cells[index] if cells[0].startswith("Points Possible") else cell
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
    matches = find_members(ids, number, keys, members)
    return matches[0].id if len(matches) == 1 else ""


def table(by_student: Grades) -> Table:
    """Return a row for each student and a column for each assignment."""
    topics = list(dict.fromkeys(topic for by_topic in by_student.values() for topic in by_topic))
    result = Table("student", "name", box=None)
    for title in (*topics, "total"):
        result.add_column(title, justify="right", no_wrap=True)
    for who, by_topic in list(by_student.items())[:SHOWN]:
        rows = list(by_topic.values())
        name = f"{rows[0].first_name} {rows[0].last_name}" if rows else ""
        graded = [row.total for row in rows if row.graded]
        total = f"{sum(graded):g}" if graded else ""
        cells = [*(points(by_topic.get(topic)) for topic in topics), total]
        result.add_row(Text(who), Text(name), *cells)
    return result


def command(arguments: argparse.Namespace, course: Course | None = None) -> None:
    """Write a file of grades, and show it."""
    course = course or Course(ROOT)
    topics = course.choose(arguments.topics)
    by_student = grades(course, topics)
    source = Path(arguments.into) if arguments.into else None
    if source and not any(
        row.graded for by_topic in by_student.values() for row in by_topic.values()
    ):
        raise ToolError(
            f"nothing of {', '.join(topics)} has been graded", f"make grade A={topics[0]}"
        )
    target = Path(
        arguments.to or course.build / (f"grades-{source.name}" if source else "grades.csv")
    )
    if source:
        sheet = tables.read(source)
        content, filled_columns, missing = fill(
            course, sheet, topics, by_student, arguments.column, arguments.scale
        )
    else:
        content, filled_columns, missing = new_sheet(course, topics, by_student), [], []
    write_if_changed(target, content)
    console.print(table(by_student))
    if len(by_student) > SHOWN:
        console.print(f"and {len(by_student) - SHOWN} more")
    rows = [row for by_topic in by_student.values() for row in by_topic.values()]
    unlisted = {row.student for row in results.rows(course, topics) if not row.is_listed}
    for title, items in (
        ("Filled", filled_columns),
        ("Graded, but not in the file", missing),
        ("Not on the class list, and left out", sorted(unlisted)),
        ("Written answers still to be read", sorted({row.student for row in rows if row.pending})),
    ):
        if items:
            console.print(Text(f"{title}: {', '.join(items)}"))
    console.print(Text(f"Wrote {target}"))


def parser() -> argparse.ArgumentParser:
    """Return the command line of this tool."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.grades",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help="an assignment; all when none")
    parser.add_argument("--into", metavar="FILE", help="a file of the platform's to fill")
    parser.add_argument("--column", metavar="TITLE", default="", help="the column that is filled")
    parser.add_argument("--scale", action="store_true", help="convert to the platform's points")
    parser.add_argument("--to", metavar="FILE", help="where to write it, instead of build/")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
