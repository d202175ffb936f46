"""Write pages about a class: ``python -m tools.report [TOPIC …]``, or ``make report A=erm``.

A page tells for each assignment how its exercises went, which mistakes the class made, who is
stuck where, and how the points go with the time of handing in; then it shows the whole term. The
copy without names is for the projector: its students are numbered, in a new order each time. Beside
each page lies a file for spreadsheets with the same data.
"""

import argparse
import builtins
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from rich.text import Text

from tools import exercises, results, similarity
from tools.fingerprints import write_if_changed
from tools.layout import ROOT, Course
from tools.results import Row
from tools.terminal import ToolError, console, run

LEVELS = ("none", "less than half", "half or more", "all")
"""How many of the points a student has, in words."""

OTHER = "another reason"
KINDS_OF_CAUSE = {
    *(exercises.NOT_WRITTEN, exercises.NOT_FOUND, exercises.NOT_RUN, exercises.UNNAMED),
    *exercises.KINDS.values(),
    *(known for _, known in exercises.WHYS),
}
"""The causes whose words are the course's own, and never a student's."""

BEFORE = {
    timedelta(days=7): "more than 7 days before",
    timedelta(days=3): "3 to 7 days before",
    timedelta(days=1): "1 to 3 days before",
    timedelta(hours=6): "6 to 24 hours before",
    timedelta(hours=1): "1 to 6 hours before",
    timedelta(0): "in the last hour",
}
"""When work came, by the time that was left until the deadline."""

LATE = "late"

MOST_PAIRS = 30
"""How many pairs of students with alike answers a page lists."""


@dataclass(frozen=True)
class Assignment:
    """What a class did in an assignment.

    Parameters
    ----------
    topic : str
        The assignment.
    rows : list of Row
        The result of each student, also of those who handed in nothing.
    reports : list of exercises.Report
        How each exercise went.
    """

    topic: str
    rows: list[Row]
    reports: list[exercises.Report]

    @property
    def graded(self) -> list[Row]:
        """Return the results of those whose work was graded."""
        return [row for row in self.rows if row.graded]

    @cached_property
    def by_student(self) -> dict[str, Row]:
        """Return the result of each student, by id."""
        return {row.student: row for row in self.rows}

    @property
    def read(self) -> list[Row]:
        """Return the results whose answers in words have all been read."""
        return [row for row in self.graded if row.max_written and not row.pending]

    @property
    def mean(self) -> float:
        """Return the mean of the points for code."""
        return sum(row.auto for row in self.graded) / len(self.graded)

    @property
    def max_auto(self) -> float:
        """Return how many points there are for code."""
        return self.rows[0].max_auto

    @property
    def percent(self) -> float:
        """Return the mean in percent of the points for code."""
        return 100 * self.mean / self.max_auto if self.max_auto else 0.0

    @property
    def mistakes(self) -> list[tuple[str, int]]:
        """Return the misconceptions that the checks named, most students first."""
        count: Counter[str] = Counter()
        for report in self.reports:
            count.update({text: report.causes[text] for text in report.named & {*report.causes}})
        return count.most_common()

    @property
    def times(self) -> list[tuple[str, list[Row]]]:
        """Return the graded work by the time when it came, in the order of time."""
        groups: dict[str, list[Row]] = {}
        for row in sorted(self.graded, key=_order):
            groups.setdefault(came(row), []).append(row)
        return list(groups.items())


def _order(row: Row) -> tuple[bool, float]:
    """Order by the time that was left; work without a time comes last."""
    if row.handed_in is None:
        return True, 0
    return False, (row.handed_in - (row.due or datetime(1970, 1, 1))).total_seconds()


def came(row: Row) -> str:
    """Return when work came: before or after its deadline, or, without a deadline, on which day."""
    if row.handed_in is None:
        return results.TIME_UNKNOWN
    if row.due is None:
        return f"{row.handed_in:%Y-%m-%d}"
    left = row.due - row.handed_in
    return next((words for least, words in BEFORE.items() if left >= least), LATE)


def level(points: float, of: float) -> int:
    """Return the number of the level that points are on, of ``LEVELS``.

    >>> [LEVELS[level(points, 4)] for points in (0, 1, 2, 3.5, 4)]
    ['none', 'less than half', 'half or more', 'half or more', 'all']
    """
    if points >= of:
        return 3
    return 0 if points <= 0 else 1 if points < of / 2 else 2


def levels(points: Iterable[float], of: float) -> list[int]:
    """Count how many students are on each level.

    Parameters
    ----------
    points : iterable of float
        The points of each student.
    of : float
        The most that can be had.

    Returns
    -------
    list of int
        How many have none, less than half, half or more, and all.
    """
    count = Counter(level(points_of_student, of) for points_of_student in points)
    return [count[number] for number in range(len(LEVELS))]


def gather(course: Course, topics: Sequence[str]) -> list[Assignment]:
    """Return what the class did in those of the assignments of which anything was graded."""
    rows = results.rows(course, topics, everybody=True)
    class_ = [
        Assignment(topic, [row for row in rows if row.assignment == topic], []) for topic in topics
    ]
    return [
        replace(assignment, reports=exercises.reports(course, assignment.topic))
        for assignment in class_
        if assignment.graded
    ]


def without_names(class_: Sequence[Assignment]) -> list[Assignment]:
    """Return the same with numbered students, and nothing that one of them has written."""
    ids = sorted({row.student for assignment in class_ for row in assignment.rows})
    random.SystemRandom().shuffle(ids)
    labels = {student: f"Student {number}" for number, student in enumerate(ids, 1)}
    is_name = re.compile(r"\b(?:" + "|".join(map(re.escape, ids)) + r")\b")
    return [
        Assignment(
            assignment.topic,
            sorted((_without_name(row, labels) for row in assignment.rows), key=_number),
            [_without_names(report, labels, is_name) for report in assignment.reports],
        )
        for assignment in class_
    ]


def _number(row: Row) -> int:
    return int(row.student.rpartition(" ")[2])


def _without_name(row: Row, labels: dict[str, str]) -> Row:
    state = row.why.partition(":")[0]  # what follows may tell of a file
    return replace(
        row, student=labels[row.student], first_name="", last_name="", why=state, events=()
    )


def _without_names(
    report: exercises.Report, labels: dict[str, str], is_name: re.Pattern[str]
) -> exercises.Report:
    def shown(cause: str) -> str:
        is_ours = (
            cause in report.named
            or cause in KINDS_OF_CAUSE
            or cause.removeprefix("raises ").removeprefix("fails with ") in vars(builtins)
        )
        return cause if is_ours and not is_name.search(cause) else OTHER

    why = {labels[student]: shown(cause) for student, cause in report.why.items()}
    return replace(
        report,
        causes=Counter(why.values()),
        named=report.named & {*why.values()},
        points={labels[student]: points for student, points in report.points.items()},
        why=why,
    )


def people(class_: Sequence[Assignment], are_named: bool) -> dict[str, str]:
    """Return what each student is called on a page, by id.

    Those with the fewest points for code come first; numbered students stay in their order.
    """
    names, points = {}, Counter[str]()
    for row in (row for assignment in class_ for row in assignment.rows):
        names[row.student] = f"{row.first_name} {row.last_name}".strip() or row.student
        points[row.student] += row.auto  # type: ignore[assignment]
    if not are_named:
        return names
    same = Counter(names.values())
    names |= {id_: f"{name} ({id_})" for id_, name in names.items() if same[name] > 1}
    return dict(sorted(names.items(), key=lambda item: points[item[0]]))


def page(
    shown: Sequence[Assignment],
    term: Sequence[Assignment],
    pairs: Mapping[str, similarity.Similarity] | None = None,
) -> str:
    """Return the page on the assignments that are shown, with all of the term at its end.

    With ``pairs``, by assignment, it has the students' names; without, it is for the projector.
    """
    are_named = pairs is not None
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2").render(
        shown=shown,
        term=term if len(term) > 1 else [],
        are_named=are_named,
        pairs=pairs,
        similarity=similarity,
        MOST_PAIRS=MOST_PAIRS,
        people=people(term, are_named),
        level=level,
        levels=levels,
        LEVELS=LEVELS,
        now=f"{datetime.now():%Y-%m-%d}",
    )


COLUMNS = (
    *("student", "first_name", "last_name", "assignment", "day", "hours_before_deadline"),
    *("notebook", "exercise", "points", "max_points", "why_not"),
)


def to_csv(shown: Sequence[Assignment]) -> str:
    """Return the data of a page as comma-separated text: a line for each student and exercise.

    The line of a student whose work was not graded names no exercise.
    """
    lines: list[Sequence[object]] = []
    for assignment in shown:
        for row in assignment.rows:
            day = f"{row.handed_in:%Y-%m-%d}" if row.handed_in else ""
            has_time = row.handed_in and row.due
            left = round((row.due - row.handed_in).total_seconds() / 3600) if has_time else ""  # type: ignore[operator]
            who = (row.student, row.first_name, row.last_name, assignment.topic, day, left)
            reports = [report for report in assignment.reports if row.student in report.points]
            for report in reports:
                points = report.points[row.student], report.max_points
                why = report.why.get(row.student, "")
                lines.append((*who, report.notebook, report.title, *points, why))
            if not row.graded:
                lines.append((*who, "", "", "", row.max_auto, row.why))
            elif row.max_written:
                points_read = "" if row.pending else row.written
                why = "not read yet" if row.pending else ""
                words = (assignment.topic, "answers in words", points_read, row.max_written, why)
                lines.append((*who, *words))
    return results.comma_separated(COLUMNS, lines)


def write(course: Course, topics: Sequence[str]) -> list[Path]:
    """Write the pages and files on assignments, with names and without; return their paths."""
    class_ = gather(course, course.topics())
    if missing := [
        topic for topic in topics if topic not in {assignment.topic for assignment in class_}
    ]:
        raise ToolError(f"nothing of {missing[0]} has been graded", f"make grade A={missing[0]}")
    if not class_:
        raise ToolError("nothing has been graded", "make grade A=TOPIC")
    folder, name = course.build / "report", "-".join(topics) or "term"
    pairs = {
        assignment.topic: similarity.find(course, assignment.topic)
        for assignment in _chosen(class_, topics)
    }
    nobody = without_names(class_)
    contents = {
        f"{name}.html": page(_chosen(class_, topics), class_, pairs),
        f"{name}.csv": to_csv(_chosen(class_, topics)),
        f"{name}-alike.csv": similarity.to_csv(pairs),
        f"{name}-without-names.html": page(_chosen(nobody, topics), nobody),
        f"{name}-without-names.csv": to_csv(_chosen(nobody, topics)),
    }
    for file, text in contents.items():
        is_page = file.endswith(".html")
        content = text.encode() if is_page else results.for_spreadsheets(text)
        write_if_changed(folder / file, content)
    return [folder / file for file in contents]


def _chosen(class_: Sequence[Assignment], topics: Sequence[str]) -> list[Assignment]:
    return [assignment for assignment in class_ if not topics or assignment.topic in topics]


def command(arguments: argparse.Namespace, course: Course | None = None) -> None:
    """Write the pages, and tell where they are."""
    course = course or Course(ROOT)
    for path in write(course, course.choose(arguments.topics) if arguments.topics else []):
        console.print(Text(f"Wrote {path.relative_to(course.root)}"))


def parser() -> argparse.ArgumentParser:
    """Return the command line of this tool."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.report",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help="an assignment; all when none")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
