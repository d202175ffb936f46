"""Tell how a class did, in a few lines and on a page: ``python -m tools.classroom.gradebook``.

Each assignment has a line. The page, written anew, tells for each how its exercises went, which
mistakes the class made, who is stuck where, and which answers are alike; then it shows the whole
term. Beside it lies a file for spreadsheets with the same data. ``--student`` tells all that is
known of a student.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import mean
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from rich import box
from rich.table import Table
from rich.text import Text

from tools.classroom import results, similarity
from tools.classroom.results import TIME_UNKNOWN, Row
from tools.classroom.students import everybody, find
from tools.fingerprints import write_if_changed
from tools.layout import HERE, Course
from tools.terminal import ToolError, argument, command, console, cut

MAX_NAMED = 8  # how many students whose work a teacher must look at are named
LEVELS = ("none", "less than half", "half or more", "all")
"""How many of the points a student has, in words."""
COLUMNS = (
    *("student", "first_name", "last_name", "assignment", "day", "hours_before_deadline"),
    *("notebook", "exercise", "points", "max_points", "why_not", "notes"),
)


@dataclass
class Assignment:
    """What a class did: a row for each student, also without a hand-in, and each exercise."""

    topic: str
    rows: list[Row]
    exercises: list[results.Exercise]

    def __post_init__(self) -> None:
        """Count what the page and the terminal tell."""
        self.graded = [row for row in self.rows if row.graded]
        self.by_student = {row.student: row for row in self.rows}
        self.pending = sum(row.pending for row in self.rows)  # answers that wait to be read
        self.mean = mean([row.auto for row in self.graded] or [0])  # of the points for code
        # the misconceptions that the checks named, most students first
        causes = ((each.named, each.why.values()) for each in self.exercises)
        named = Counter(why for known, whys in causes for why in whys if why in known)
        self.mistakes = named.most_common()


def gather(course: Course) -> list[Assignment]:
    """Return what the class did in the assignments of which anything was graded."""
    rows = defaultdict[str, list[Row]](list)
    for row in results.rows(course, course.topics(), everybody=True):
        rows[row.assignment].append(row)
    return [
        Assignment(topic, rows[topic], results.exercises(course, topic, rows[topic]))
        for topic in course.topics()
        if any(row.graded for row in rows[topic])
    ]


# --- the page, and its data


def level(points: float, of: float) -> int:
    """Return the number of the level that points are on, of ``LEVELS``.

    >>> [LEVELS[level(points, 4)] for points in (0, 1, 2, 3.5, 4)]
    ['none', 'less than half', 'half or more', 'half or more', 'all']
    """
    return 3 if points >= of else (points > 0) + (points >= of / 2)


def levels(points: Iterable[float], of: float) -> list[int]:
    """Count how many students are on each level, from their points and the most there are."""
    count = Counter(level(points_of_student, of) for points_of_student in points)
    return [count[number] for number in range(len(LEVELS))]


def people(class_: Sequence[Assignment]) -> dict[str, str]:
    """Return what each student is called, by id; the fewest points come first."""
    names, points = dict[str, str](), defaultdict[str, float](float)
    for row in (row for assignment in class_ for row in assignment.rows):
        names[row.student] = row.person.name or row.student
        points[row.student] += row.auto
    same = Counter(names.values())
    names |= {who: f"{name} ({who})" for who, name in names.items() if same[name] > 1}
    return {who: names[who] for who in sorted(names, key=points.__getitem__)}


def template(name: str) -> Template:
    """Return a template of this folder."""
    options: Any = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
    loader = FileSystemLoader(Path(__file__).parent)
    return Environment(loader=loader, undefined=StrictUndefined, **options).get_template(name)


def page(
    shown: Sequence[Assignment],
    term: Sequence[Assignment],
    alike: Mapping[str, similarity.Similarity],
) -> str:
    """Return the page on the assignments that are shown, with all of the term at its end."""
    return template("report.html.j2").render(
        shown=shown,
        term=term if len(term) > 1 else [],
        alike=alike,
        similarity=similarity,
        people=people(term),
        level=level,
        levels=levels,
        LEVELS=LEVELS,
        now=f"{datetime.now():%Y-%m-%d}",
    )


def to_csv(shown: Sequence[Assignment]) -> str:
    """Return the data of a page as comma-separated text: a line for each student and exercise.

    The points of a student's lines add up to the total, less a late penalty. The line of a student
    whose work was not graded names no exercise.
    """
    lines: list[Sequence[object]] = []
    for row, assignment in ((row, one) for one in shown for row in one.rows):
        parts: list[Sequence[object]] = [
            (each.notebook, each.title, each.points[row.student], each.max_points, why)
            for each in assignment.exercises
            if row.student in each.points
            for why in [each.why.get(row.student)]
        ]
        if not row.graded:
            parts.append(("", "", "", row.max_total, ""))
        elif row.max_written:
            given, why = ("", "not read yet") if row.pending else (row.written, "")
            parts.append((row.assignment, "answers in words", given, row.max_written, why))
        if row.late_penalty:
            penalty = row.total - row.auto - row.written
            parts.append((row.assignment, "late penalty", penalty, 0, row.late))
        day, left = row.handed_in and f"{row.handed_in:%Y-%m-%d}", None
        if row.handed_in and row.due:
            left = round((row.due - row.handed_in).total_seconds() / 3600)
        first, last = row.person.first_name, row.person.last_name
        who = row.student, first, last, row.assignment, day, left
        lines += [(*who, *part, "; ".join(row.remarks())) for part in parts]
    return results.comma_separated(COLUMNS, lines)


# --- a few lines


def show(course: Course, class_: Sequence[Assignment], topics: Sequence[str] = ()) -> Path | None:
    """Print a line for each assignment, or those named, whom to look at first, and the page.

    The page and its data are written anew; its path is returned, if anything is shown.
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
        graded, most = f"{len(one.graded)} of {len(one.rows)}", one.rows[0].max_auto
        common = Text("".join(f"{number} × {hint}" for hint, number in one.mistakes[:1]))
        points = f"{one.mean:.1f}/{most:g}"
        table.add_row(one.topic, graded, points, late, str(one.pending or ""), common)
    console.print(table)
    rows = [row for one in shown for row in one.rows if row.look_at]
    # who left out a notebook, and no more, comes last
    rows.sort(key=lambda row: row.look_at == {"missing-notebook"})
    for row in rows[:MAX_NAMED]:
        cut(f"Look at {row.person}, {row.assignment}: {row.summary}")
    if len(rows) > MAX_NAMED:
        console.print(f"and at {len(rows) - MAX_NAMED} more: see the report")
    alike = {one.topic: similarity.find(course, one.topic) for one in shown}
    file = (
        course.build / "report" / f"{'-'.join(one.topic for one in shown if topics) or 'term'}.html"
    )
    write_if_changed(file, page(shown, class_, alike).encode())
    write_if_changed(file.with_suffix(".csv"), to_csv(shown).encode("utf-8-sig"))
    # soft: an address that is broken over two lines cannot be copied
    console.print(Text(f"Report: {file.as_uri()}"), soft_wrap=True)
    return file


@command(
    argument("topics", nargs="*", metavar="TOPIC", help="an assignment; all when none"),
    argument("--student", metavar="NAME", help="all that is known of one student"),
)
def main(topics: list[str], student: str | None, course: Course = HERE) -> None:
    """Print the gradebook, or all of a student."""
    chosen = course.choose(topics)
    class_ = gather(course)
    rows = [row for one in class_ if one.topic in chosen for row in one.rows]
    if not rows:
        raise ToolError("nothing has been graded yet", f"make grade A={chosen[0]}")
    if student:
        # who is on no list, and handed in what cannot be graded, is not in the gradebook
        person = find(student, {row.student: row.person for row in rows} | everybody(course))
        for row in [row for row in rows if row.student == person.id]:
            points, told = "–", ""
            if row.graded:
                unread = f", {row.pending} to read" if row.pending else ""
                words = f"in words {row.written:g}/{row.max_written:g}{unread}"
                points, told = f"{row.total:g}", f" (code {row.auto:g}/{row.max_auto:g}, {words})"
            of = f"{row.person}, {row.assignment}: {points} of {row.max_total:g} points{told}"
            console.print(Text("\n  ".join([of, *row.remarks()])))
    else:
        show(course, class_, topics)
