"""Print the gradebook: ``python -m tools.gradebook [TOPIC …] [--student NAME] [--csv FILE]``.

Without arguments each student has a row. Assignments that are named stand side by side, and
``--student`` tells all that is known of a student.
"""

import argparse
import difflib
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from tools import exercises
from tools.fingerprints import write_if_changed
from tools.layout import ROOT, Course
from tools.results import Row, for_spreadsheets, rows, summary, to_csv, unknown_time
from tools.terminal import ToolError, console, run

SEVERAL = 8
"""How many students with troubles a summary names."""


def _points(value: float) -> str:
    return f"{value:g}"


def _late(hours: float) -> str:
    """Return how late work came in, in hours or, past two days, in days."""
    if hours > 48:
        return f"{hours / 24:.0f} d"
    return f"{hours:g} h" if hours else ""


NOTES = 24
"""The least width of the notes, in characters."""


def table(results: Sequence[Row], width: int | None = None) -> Group:
    """Return the gradebook: a row for each student, a column for each assignment.

    Assignments that do not fit side by side into ``width`` follow in a further table, with the
    same students; the notes stand in the last one.
    """
    by_student: dict[str, dict[str, Row]] = {}
    for row in results:
        by_student.setdefault(row.student, {})[row.assignment] = row
    columns = {
        topic: [_cell(by_topic.get(topic)) for by_topic in by_student.values()]
        for topic in dict.fromkeys(row.assignment for row in results)
    }
    names = max(map(len, by_student), default=0)
    parts = _side_by_side(columns, (width or console.width) - names - 2)
    tables = [_part(by_student, columns, part, last=part is parts[-1]) for part in parts]
    tables[0].title, tables[0].title_style = "Gradebook", "bold"
    caption = "points for code · + points for written answers · ✎ written answers to read"
    tables[-1].caption = caption
    return Group(*tables)


def _side_by_side(columns: Mapping[str, Sequence[Text]], width: int) -> list[list[str]]:
    """Return the assignments in parts, each of which fits; the notes fit beside the last."""
    widths = {
        topic: 3 + max(len(topic), *(cell.cell_len for cell in cells))
        for topic, cells in columns.items()
    }
    parts: list[list[str]] = [[]]
    for topic in columns:
        if parts[-1] and sum(widths[other] for other in (*parts[-1], topic)) > width:
            parts.append([])
        parts[-1].append(topic)
    if len(parts[-1]) > 1 and sum(widths[topic] for topic in parts[-1]) + NOTES > width:
        parts.append([parts[-1].pop()])
    return parts


def _part(
    by_student: Mapping[str, Mapping[str, Row]],
    columns: Mapping[str, Sequence[Text]],
    topics: Sequence[str],
    last: bool,
) -> Table:
    """Return the columns of some assignments, with lateness and notes if they are the last."""
    part_table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    part_table.add_column("student", no_wrap=True)
    for topic in topics:
        part_table.add_column(topic, no_wrap=True)
    if last:
        part_table.add_column("late", justify="right", no_wrap=True)
        part_table.add_column("notes", no_wrap=True, overflow="ellipsis", ratio=1)
        part_table.expand = True
    for number, (student, by_topic) in enumerate(by_student.items()):
        cells: list[str | Text] = [student, *(columns[topic][number] for topic in topics)]
        if last:
            late = max(row.hours_late for row in by_topic.values())
            cells += [_late(late) or unknown_time(by_topic.values()), summary(by_topic.values())]
        part_table.add_row(*cells)
    return part_table


def _cell(row: Row | None) -> Text:
    """Return the points for code, and for written answers or that they wait to be read."""
    if row is None:
        return Text("–")
    if not row.graded:
        return Text(f"–/{_points(row.max_auto)}")
    full, none = row.auto == row.max_auto, row.auto == 0
    style = "green" if full else "red" if none else "yellow"
    text = Text(f"{_points(row.auto)}/{_points(row.max_auto)}", style=style)
    if row.max_written and (row.marked or not row.pending):
        text.append(f" +{_points(row.written)}", style="default")
    if row.pending:
        text.append(" ✎", style="cyan")
    return text


def _filling(title: str) -> Table:
    """Return a table that takes the whole width, and a row of it a single line."""
    return Table(
        box=box.SIMPLE_HEAD,
        title=title,
        title_style="bold",
        title_justify="left",
        caption_justify="left",
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
        expand=True,
    )


def _add_columns(target: Table, words: Sequence[str], numbers: Sequence[str], last: str) -> None:
    """Add columns for words and for numbers, and one for a phrase, which is cut at the width."""
    for name in words:
        target.add_column(name, no_wrap=True, overflow="ellipsis")
    for name in numbers:
        target.add_column(name, no_wrap=True, justify="right")
    target.add_column(last, no_wrap=True, overflow="ellipsis", ratio=1)


def assignments_table(results: Sequence[Row], held: Counter[tuple[str, str]]) -> Table:
    """Return a row for each assignment: how the class did, and its most frequent misconception."""
    table = _filling("Gradebook: the assignments")
    numbers = ("students", "mean", "all", "none", "to read", "late")
    _add_columns(table, ["assignment"], numbers, "most frequent misconception")
    for topic in dict.fromkeys(row.assignment for row in results):
        graded = [row for row in results if row.assignment == topic and row.graded]
        if not graded:
            continue
        cells = [
            len(graded),
            f"{sum(row.auto for row in graded) / len(graded):.1f}/{_points(graded[0].max_auto)}",
            sum(row.auto == row.max_auto for row in graded),
            sum(row.auto == 0 for row in graded),
            sum(row.pending for row in graded) or "",
            sum(row.hours_late > 0 for row in graded) or "",
        ]
        hints = _most_held(held, topic)[:1]
        common = "".join(f"{number} × {hint}" for number, hint in hints)
        table.add_row(topic, *map(str, cells), Text(common))
    table.caption = "mean points for code · students with all of them, with none · answers to read"
    return table


def students_table(results: Sequence[Row]) -> Table:
    """Return a row for each student: the points of all assignments, and what happened."""
    table = _filling("Gradebook: the students")
    _add_columns(table, ["student"], ("code", "of", "written", "to read", "late"), "what happened")
    for student in dict.fromkeys(row.student for row in results):
        assignments = [row for row in results if row.student == student]
        cells = [
            _points(sum(row.auto for row in assignments)),
            _points(sum(row.max_auto for row in assignments)),
            _points(sum(row.written for row in assignments)),
            str(sum(row.pending for row in assignments) or ""),
            str(sum(row.hours_late > 0 for row in assignments) or unknown_time(assignments)),
        ]
        table.add_row(Text(student), *cells, Text(summary(assignments)))
    table.caption = "points for code and for written answers · answers to read · late assignments"
    return table


def look_table(results: Sequence[Row]) -> Table:
    """Return a row for each of the first students whose work a teacher must look at.

    Those who left out a notebook, and no more, come last.
    """
    work: dict[str, list[Row]] = {}
    for row in results:
        work.setdefault(row.student, []).append(row)
    kinds = {
        student: {event.kind for row in assignments for event in row.events if event.is_to_look_at}
        for student, assignments in work.items()
    }
    students = [student for student in work if kinds[student]]
    students.sort(key=lambda student: kinds[student] == {"missing-notebook"})
    table = _filling("Look at")
    _add_columns(table, ["student"], ["assignments"], "what happened")
    for student in students[:SEVERAL]:
        table.add_row(Text(student), str(len(work[student])), Text(summary(work[student])))
    if len(students) > SEVERAL:
        table.add_row(f"and {len(students) - SEVERAL} more", "", "python -m tools.gradebook")
    return table


def student_table(assignments: Sequence[Row]) -> Table:
    """Return a row for each assignment of a student."""
    table = _filling(
        f"{assignments[0].student} · {assignments[0].first_name} {assignments[0].last_name}".rstrip(
            " ·"
        )
    )
    _add_columns(table, ["assignment"], ("code", "of", "written", "of", "to read"), "late")
    for row in assignments:
        scores = (row.auto, row.max_auto, row.written, row.max_written, row.pending)
        table.add_row(row.assignment, *map(_points, scores), _late(row.hours_late) or row.time)
    return table


def _most_held(held: Counter[tuple[str, str]], topic: str) -> list[tuple[int, str]]:
    """Return the misconceptions of an assignment with their numbers of students, most first."""
    of_topic = [(number, hint) for (which, hint), number in held.items() if which == topic]
    return sorted(of_topic, key=lambda item: (-item[0], item[1]))


def exercises_table(title: str, reports: Sequence[exercises.Report], most: int = 3) -> Table:
    """Return a row for each exercise: how many solved it, and why the others did not."""
    table = _filling(f"{title}: the exercises")
    _add_columns(table, ["exercise"], ("solved", "%"), "why not, with the number of students")
    for report in reports:
        causes = report.most_frequent
        lines = [f"{number} × {cause}" for cause, number in causes[:most]]
        if rest := sum(number for _, number in causes[most:]):
            lines.append(f"{rest} with other causes")
        solved = f"{report.solved}/{report.students}", f"{report.rate:.0f}"
        table.add_row(Text(report.title), *solved, Text("\n".join(lines)))
    return table


def show_exercises(course: Course, topics: Sequence[str]) -> None:
    """Print for each notebook of the assignments how its exercises went."""
    for topic in topics:
        for name, reports in groupby(
            exercises.reports(course, topic), key=lambda report: report.notebook
        ):
            title = topic if name == topic else f"{topic}, {name}"
            console.print(exercises_table(title, list(reports)))


def show_look(results: Sequence[Row]) -> None:
    """Print a row for each of the first students whose work a teacher must look at, if any."""
    if (table := look_table(results)).rows:
        console.print(table)


def show_student(results: Sequence[Row], student: str) -> None:
    """Print the assignments of a student, and all that happened in them, a line each."""
    assignments = [row for row in results if row.student == student]
    if not assignments:
        students = sorted({row.student for row in results})
        near = [name for name in students if name.startswith(student)]
        near += difflib.get_close_matches(student, students, n=1)
        guess = f"did you mean {near[0]!r}? " if near else ""
        raise ToolError(
            f"there are no results of {student!r}",
            f"{guess}`python -m tools.gradebook` lists all students",
        )
    console.print(student_table(assignments))
    for row in assignments:
        for text in [*filter(None, [row.why]), *map(str, row.events)]:
            console.print(Text(f"{row.assignment}: {text}"))


def command(arguments: argparse.Namespace, course: Course | None = None) -> None:
    """Print the gradebook, or write it to a file."""
    course = course or Course(ROOT)
    topics = course.choose(arguments.topics)
    results = rows(course, topics, everybody=True)
    if not results:
        raise ToolError("nothing has been graded yet", f"make grade A={topics[0]}")
    if arguments.csv:
        _write(arguments.csv, to_csv(results), len(results))
        return
    if arguments.exercises:
        reports = [report for topic in topics for report in exercises.reports(course, topic)]
        _write(arguments.exercises, exercises.to_csv(reports), len(reports))
        return
    if arguments.student:
        show_student(results, arguments.student)
        return
    if arguments.topics:
        console.print(table(results))
        show_exercises(course, topics)
        return
    console.print(students_table(results))


def _write(target: str, text: str, lines: int) -> None:
    """Write a table to a file, or print it."""
    if target == "-":
        print(text, end="")
        return
    write_if_changed(Path(target), for_spreadsheets(text))
    console.print(f"Wrote {lines} lines to {target}")


def parser() -> argparse.ArgumentParser:
    """Return the command line of this tool."""
    parser = argparse.ArgumentParser(prog="python -m tools.gradebook", description=__doc__)
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help="an assignment, in detail")
    parser.add_argument("--student", metavar="NAME", help="all that is known of one student")
    parser.add_argument("--csv", metavar="FILE", help="write to a file in place; - prints it")
    parser.add_argument(
        "--exercises",
        metavar="FILE",
        help="the same for how often each exercise was solved, and why not",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
