"""Write a file of grades for a learning platform: ``python -m tools.classroom.grades [TOPIC …]``.

Without more it has the id, the name, the e-mail address and the platform's number of each student,
and a column of points for each assignment. ``--into FILE`` fills a file that the platform made:
Moodle's grading worksheet, or Canvas's gradebook as it was exported. Such a file goes back as it
is.

Everyone on the class list is in it, with a blank where there is no grade. A cell that holds no
number, such as Canvas's EX for *excused*, stays as it is.
"""

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from pathlib import Path

from rich.text import Text

from tools.classroom import layouts, results
from tools.classroom.layouts import Layout, plain
from tools.classroom.results import NOT_HANDED_IN, Row
from tools.classroom.students import FIELDS, class_members, described, everybody, match
from tools.fingerprints import write_if_changed
from tools.layout import HERE, Course
from tools.terminal import ToolError, argument, command, console, tell

Grades = Mapping[str, Mapping[str, Row]]  # by student and assignment
NUMBER = re.compile(r"-|-?\d+([.,]\d+)?")  # what a cell of points holds, if it is not empty


def points(row: Row | None, factor: float = 1) -> str:
    """Return the points of a result, rounded to two digits, or nothing where there is no grade."""
    return f"{round(row.total * factor, 2):.10g}" if row and row.graded else ""


def fill(
    course: Course, layout: Layout, columns: Mapping[str, int], by_student: Grades, scale: bool
) -> bytes:
    """Fill a file that a platform made, and say what was not; what it has besides is as it was."""
    members, rows = class_members(course), {row.number: row for row in layout.students}
    claims = {number: layout.person(row.cells) for number, row in rows.items()}
    students, reasons = match(claims, members)
    if not students:
        remedy = "give the platform's own file: Moodle's grading worksheet or Canvas's gradebook"
        raise ToolError(f"{layout.file} names nobody on the class list", remedy)
    kept = []
    for topic, index in columns.items():
        ours = next((of[topic].max_total for of in by_student.values() if topic in of), 0)
        theirs = _points_possible(layout, index) or ours
        if theirs != ours and not scale:
            file = shlex.quote(str(layout.file))
            remedy = f"set {ours:g} points on the platform and get the file again, or convert: "
            title = shlex.quote(layout.header[index])
            remedy += f"python -m tools.classroom.grades {topic} --into {file} "
            remedy += f"--column {title} --scale"
            both = f"{layout.header[index]} has {theirs:g} points there, {topic} has {ours:g} here"
            raise ToolError(both, remedy)
        factor = theirs / ours if ours else 1
        nearby = [cell for row in layout.rows for cell in row.cells[index : index + 2]]
        decimal_sign = "," if any(re.fullmatch(r"-?\d+,\d+", cell) for cell in nearby) else "."
        for number, person in students.items():
            new, old = points(by_student[person.id].get(topic), factor), rows[number].cells[index]
            if new and NUMBER.fullmatch(old or "0"):
                rows[number].raw[index] = new.replace(".", decimal_sign)
            elif new:
                kept.append(f"{person}: {old}")
    graded = {row.student for of in by_student.values() for row in of.values() if row.graded}
    tell("Filled", [f"{topic}: {layout.header[index]}" for topic, index in columns.items()])
    tell("Left as they were", kept)
    blank = [
        f"line {number}, {claims[number]}: {reason}"
        for number, reason in reasons.items()
        if not reason.startswith("nearest")
    ]
    tell("Left blank, for it is not clear whose row it is", ["; ".join(blank)])
    missing = graded - {person.id for person in students.values()}
    tell("Graded, but not in the file", described(missing, members))
    return layout.write()


def _columns(course: Course, layout: Layout, topics: Sequence[str], column: str) -> dict[str, int]:
    """Return which column takes the points of which assignment."""
    if layout.platform == "Moodle" or column:
        if len(topics) != 1:
            raise ToolError("that file has a column for one assignment", "name it: A=erm")
        fitting = layout.find((plain(column),) if column else layouts.GRADE)
        if len(fitting) != 1:
            among = f"{repr(column) if column else 'for grades'} among {', '.join(layout.header)}"
            remedy = f"name one of them: make grades A={topics[0]} INTO=file.csv COLUMN=NAME"
            raise ToolError(f"{layout.file} has {len(fitting) or 'no'} columns {among}", remedy)
        return {topics[0]: fitting[0]}
    numbered = {i: name for i, name in enumerate(layout.header) if re.search(r"\(\d+\)$", name)}
    titles = {index: f" {plain(name)} " for index, name in numbered.items()}
    columns: dict[str, int] = {}
    for topic in sorted(course.topics(), key=len, reverse=True):  # bnp_cnn takes its own before bnp
        fitting = [index for index, title in titles.items() if f" {plain(topic)} " in title]
        if len(fitting) > 1 and topic in topics:
            both = [layout.header[index] for index in fitting]
            remedy = f'say which: make grades A={topic} INTO=file.csv COLUMN="{both[0]}"'
            raise ToolError(f"the titles {' and '.join(both)} hold the name of {topic}", remedy)
        for index in fitting:
            del titles[index]
            columns[topic] = index
    columns = {topic: columns[topic] for topic in topics if topic in columns}
    if not columns:
        titles_are = f"its titles are {', '.join(numbered.values()) or 'none'}"
        remedy = 'say which: make grades A=erm INTO=file.csv COLUMN="Homework 1 (4711)"'
        problem = f"no title in {layout.file} holds the name of an assignment; {titles_are}"
        raise ToolError(problem, remedy)
    return columns


def _points_possible(layout: Layout, index: int) -> float:
    """Return how many points a platform gives for an assignment; 0 where it does not say."""
    rows = [row.cells for row in layout.rows]
    maxima = [cells[index] for cells in rows if cells[0].startswith("Points Possible")]
    if layout.platform == "Moodle":  # the maximum stands after the grade, in every language
        maxima = [layout.maximum(cells, index) for cells in rows]
        for words in (cell for cell in maxima if cell and not NUMBER.fullmatch(cell)):
            problem = f"{layout.file} takes no points: its grades are words of a scale, {words}"
            raise ToolError(problem, "choose Moodle's grade type Point, and get the file again")
    cell = (maxima or [""])[-1].replace(",", ".")
    return float(cell) if NUMBER.fullmatch(cell) and cell != "-" else 0


@command(
    argument("topics", nargs="*", metavar="TOPIC", help="an assignment; all when none"),
    argument("--into", metavar="FILE", help="a file of the platform's to fill"),
    argument("--column", metavar="TITLE", default="", help="the column that is filled"),
    argument("--scale", action="store_true", help="convert to the platform's points"),
)
def main(
    topics: list[str], into: str | None, column: str, scale: bool, course: Course = HERE
) -> None:
    """Write a file of grades, and say of whom."""
    topics, people = course.choose(topics), everybody(course)
    rows = results.rows(course, topics, everybody=True)
    listed = [row for row in rows if row.is_listed]
    by_student: dict[str, dict[str, Row]] = {who: {} for who in class_members(course)}
    for row in listed:
        people.setdefault(row.student, row.person)  # who could not be graded, and is on no list
        by_student.setdefault(row.student, {})[row.assignment] = row
    graded = Counter(row.assignment for row in listed if row.graded)
    if not graded:
        problem = f"nothing of {', '.join(topics)} has been graded"
        raise ToolError(problem, f"make grade A={topics[0]}")
    topics = [topic for topic in topics if graded[topic]]
    tell("Graded", [f"{topic}: {graded[topic]}" for topic in topics])
    if into:
        layout, target = layouts.read(Path(into)), course.build / f"grades-{Path(into).name}"
        columns = _columns(course, layout, topics, column)
        content = fill(course, layout, columns, by_student, scale)
    else:
        lines = [
            [who, *astuple(people[who])[1 : len(FIELDS)], *(points(of.get(t)) for t in topics)]
            for who, of in by_student.items()
        ]
        # spreadsheets need a mark to open it as UTF-8
        content = results.comma_separated([*FIELDS, *topics], lines).encode("utf-8-sig")
        target = course.build / "grades.csv"
    write_if_changed(target, content)
    handed_in = [row for row in rows if not row.why.startswith(NOT_HANDED_IN)]
    unlisted = {row.student for row in handed_in if not row.is_listed}
    unread = {row.student for row in listed if row.pending}
    tell("Not on the class list, and left out", described(unlisted, people))
    tell("Written answers still to be read", described(unread, people))
    console.print(Text(f"Wrote {target}"))
