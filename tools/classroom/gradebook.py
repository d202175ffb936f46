"""Tell how a class did, in a few lines: ``python -m tools.classroom.gradebook [TOPIC …]``.

Each assignment has a line; the report, a page that is written anew, has the rest. ``--student``
tells all that is known of a student.
"""

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text

from tools.classroom import report
from tools.classroom.report import Assignment
from tools.classroom.results import TIME_UNKNOWN, Row
from tools.classroom.student_matching import everybody, find
from tools.layout import HERE, Course
from tools.terminal import ToolError, argument, command, console, cut

MAX_NAMED = 8  # how many students whose work a teacher must look at are named


def show(course: Course, class_: Sequence[Assignment], topics: Sequence[str] = ()) -> Path | None:
    """Print a line for each assignment, or those named, whom to look at first, and the report.

    The report is written anew; its path is returned, if anything is shown.
    """
    shown = [one for one in class_ if not topics or one.topic in topics]
    if not shown:
        return None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, expand=True)
    for title in ("assignment", "graded", "mean for code", "late", "to read"):
        table.add_column(title, no_wrap=True)
    table.add_column("most frequent mistake", no_wrap=True, overflow="ellipsis", ratio=1)
    for one in shown:
        late = str(sum(row.is_late for row in one.graded) or "")
        if unknown := sum(row.time == TIME_UNKNOWN for row in one.graded):
            late += f" ({unknown} unknown)"
        if penalty := sum(row.late_penalty for row in one.graded):
            late += f" (−{penalty:g} points)"
        graded, points = f"{len(one.graded)} of {len(one.rows)}", f"{one.mean:.1f}/{one.max_auto:g}"
        common = Text("".join(f"{number} × {hint}" for hint, number in one.mistakes[:1]))
        table.add_row(one.topic, graded, points, late, str(one.pending or ""), common)
    console.print(table)
    rows = [row for one in shown for row in one.rows if row.look_at]
    # who left out a notebook, and no more, comes last
    rows.sort(key=lambda row: row.look_at == {"missing-notebook"})
    for row in rows[:MAX_NAMED]:
        cut(f"Look at {row.person}, {row.assignment}: {row.summary}")
    if len(rows) > MAX_NAMED:
        console.print(f"and at {len(rows) - MAX_NAMED} more: see the report")
    page = report.write(course, [one.topic for one in shown] if topics else [], class_)
    # soft: an address that is broken over two lines cannot be copied
    console.print(Text(f"Report: {page.as_uri()}"), soft_wrap=True)
    return page


def show_student(row: Row) -> None:
    """Print the points of a student in an assignment, and all that happened to the work."""
    code, words = f"{row.auto:g}/{row.max_auto:g}", f"{row.written:g}/{row.max_written:g}"
    unread = f", {row.pending} to read" if row.pending else ""
    parts = f" (code {code}, in words {words}{unread})" if row.graded else ""
    points = f"{row.total:g}" if row.graded else "–"
    of = f"{points} of {row.max_total:g} points{parts}"
    console.print(Text(f"{row.person}, {row.assignment}: {of}"))
    for remark in row.remarks:
        console.print(Text(f"  {remark}"))


@command(
    argument("topics", nargs="*", metavar="TOPIC", help="an assignment; all when none"),
    argument("--student", metavar="NAME", help="all that is known of one student"),
)
def main(topics: list[str], student: str | None, course: Course = HERE) -> None:
    """Print the gradebook, or all of a student."""
    chosen = course.choose(topics)
    class_ = report.gather(course)
    rows = [row for one in class_ if one.topic in chosen for row in one.rows]
    if not rows:
        raise ToolError("nothing has been graded yet", f"make grade A={chosen[0]}")
    if student:
        # who is on no list, and handed in what cannot be graded, is not in the gradebook
        person = find(student, {row.student: row.person for row in rows} | everybody(course))
        for row in [row for row in rows if row.student == person.id]:
            show_student(row)
    else:
        show(course, class_, topics)
