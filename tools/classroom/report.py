"""Write pages about a class: ``python -m tools.classroom.report [TOPIC …]``.

A page tells for each assignment how its exercises went, which mistakes the class made, who is
stuck where, and how the points go with the time of handing in; then it shows the whole term. The
copy without names is for the projector: its students are numbered, in a new order each time. Beside
the page lies a file for spreadsheets with the same data.
"""

import builtins
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from statistics import mean
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from rich.text import Text

from tools.classroom import results, similarity
from tools.classroom.results import Row
from tools.fingerprints import write_if_changed
from tools.layout import HERE, Course
from tools.terminal import ToolError, argument, command, console

LEVELS = ("none", "less than half", "half or more", "all")
"""How many of the points a student has, in words."""
OTHER = "another reason"
KINDS_OF_CAUSE = {
    *(results.NOT_WRITTEN, results.NOT_FOUND, results.NOT_RUN, results.UNNAMED),
    *results.KINDS.values(),
    *(known for _, known in results.WHYS),
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


@dataclass(frozen=True)
class Assignment:
    """What a class did: a row for each student, also without a hand-in, and each exercise."""

    topic: str
    rows: list[Row]
    reports: list[results.Report]

    @property
    def graded(self) -> list[Row]:
        """Return the results of those whose work was graded."""
        return [row for row in self.rows if row.graded]

    @cached_property
    def by_student(self) -> dict[str, Row]:
        """Return the result of each student, by id."""
        return {row.student: row for row in self.rows}

    @property
    def pending(self) -> int:
        """Return how many answers in words wait to be read."""
        return sum(row.pending for row in self.rows)

    @property
    def read(self) -> list[Row]:
        """Return the results whose answers in words have all been read."""
        return [row for row in self.graded if row.max_written and not row.pending]

    @property
    def mean(self) -> float:
        """Return the mean of the points for code."""
        return mean(row.auto for row in self.graded)

    @property
    def max_auto(self) -> float:
        """Return how many points there are for code."""
        return self.rows[0].max_auto

    @property
    def mistakes(self) -> list[tuple[str, int]]:
        """Return the misconceptions that the checks named, most students first."""
        count: Counter[str] = Counter()
        for report in self.reports:
            count.update({text: n for text, n in report.causes.items() if text in report.named})
        return count.most_common()

    @property
    def times(self) -> list[tuple[str, list[Row]]]:
        """Return the graded work by the time when it came, in the order of time."""

        def order(row: Row) -> timedelta:
            since = row.due or datetime(1970, 1, 1)
            return row.handed_in - since if row.handed_in else timedelta.max  # which comes last

        groups = defaultdict[str, list[Row]](list)
        for row in sorted(self.graded, key=order):
            groups[came(row)].append(row)
        return [*groups.items()]


def came(row: Row) -> str:
    """Return when work came: before or after its deadline, or, without a deadline, on which day."""
    if row.handed_in is None:
        return "late" if row.is_late else results.TIME_UNKNOWN
    if row.due is None:
        return f"{row.handed_in:%Y-%m-%d}"
    left = row.due - row.handed_in
    return next((words for least, words in BEFORE.items() if left >= least), "late")


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


def gather(course: Course, topics: Sequence[str] = ()) -> list[Assignment]:
    """Return what the class did in those of the assignments of which anything was graded."""
    topics = topics or course.topics()
    rows = results.rows(course, topics, everybody=True)
    graded = {row.assignment for row in rows if row.graded}
    by_topic = {topic: [row for row in rows if row.assignment == topic] for topic in topics}
    return [
        Assignment(topic, of_topic, results.reports(course, topic, of_topic))
        for topic, of_topic in by_topic.items()
        if topic in graded
    ]


def without_names(class_: Sequence[Assignment]) -> list[Assignment]:
    """Return the same with numbered students, and nothing that one of them has written."""
    ids = sorted({row.student for assignment in class_ for row in assignment.rows})
    random.SystemRandom().shuffle(ids)
    labels = {student: f"Student {number}" for number, student in enumerate(ids, 1)}
    is_name = re.compile(r"\b(?:" + "|".join(map(re.escape, ids)) + r")\b")

    def shown(cause: str, named: set[str]) -> str:
        error = cause.removeprefix("raises ").removeprefix("fails with ")
        is_ours = cause in named | KINDS_OF_CAUSE or error in vars(builtins)
        return cause if is_ours and not is_name.search(cause) else OTHER

    def anonymous(report: results.Report) -> results.Report:
        why = {labels[who]: shown(cause, report.named) for who, cause in report.why.items()}
        points = {labels[who]: points for who, points in report.points.items()}
        return replace(report, points=points, why=why, named=report.named & {*why.values()})

    def numbered(assignment: Assignment) -> Assignment:
        nobody: Any = {"first_name": "", "last_name": "", "events": ()}
        rows = [
            # what follows the colon may tell of a file
            replace(row, student=labels[row.student], why=row.why.partition(":")[0], **nobody)
            for row in sorted(assignment.rows, key=lambda row: ids.index(row.student))
        ]
        return Assignment(assignment.topic, rows, [*map(anonymous, assignment.reports)])

    return [*map(numbered, class_)]


def people(class_: Sequence[Assignment], are_named: bool) -> dict[str, str]:
    """Return what each student is called, by id; with names, the fewest points come first."""
    names, points = {}, Counter[str]()
    for row in (row for assignment in class_ for row in assignment.rows):
        names[row.student] = f"{row.first_name} {row.last_name}".strip() or row.student
        points[row.student] += row.auto  # type: ignore[assignment]
    if not are_named:
        return names
    same = Counter(names.values())
    names |= {id_: f"{name} ({id_})" for id_, name in names.items() if same[name] > 1}
    return dict(sorted(names.items(), key=lambda item: points[item[0]]))


def template(name: str) -> Template:
    """Return a template of this folder."""
    options: Any = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
    loader = FileSystemLoader(Path(__file__).parent)
    return Environment(loader=loader, undefined=StrictUndefined, **options).get_template(name)


def page(
    shown: Sequence[Assignment],
    term: Sequence[Assignment],
    alike: Mapping[str, similarity.Similarity] | None = None,
) -> str:
    """Return the page on the assignments that are shown, with all of the term at its end.

    With alike answers, by assignment, it has the students' names; without, it is for the projector.
    """
    return template("report.html.j2").render(
        shown=shown,
        term=term if len(term) > 1 else [],
        are_named=alike is not None,
        alike=alike,
        similarity=similarity,
        people=people(term, alike is not None),
        level=level,
        levels=levels,
        LEVELS=LEVELS,
        now=f"{datetime.now():%Y-%m-%d}",
    )


COLUMNS = (
    *("student", "first_name", "last_name", "assignment", "day", "hours_before_deadline"),
    *("notebook", "exercise", "points", "max_points", "why_not", "notes"),
)


def to_csv(shown: Sequence[Assignment]) -> str:
    """Return the data of a page as comma-separated text: a line for each student and exercise.

    The points of a student's lines add up to the total, less a late penalty. The line of a student
    whose work was not graded names no exercise.
    """
    lines: list[Sequence[object]] = []
    for assignment in shown:
        for row in assignment.rows:
            day = f"{row.handed_in:%Y-%m-%d}" if row.handed_in else ""
            has_time = row.handed_in and row.due
            left = round((row.due - row.handed_in).total_seconds() / 3600) if has_time else ""  # type: ignore[operator]
            topic, student = assignment.topic, row.student
            who = (student, row.first_name, row.last_name, topic, day, left)
            parts: list[Sequence[object]] = []
            for each in assignment.reports:
                if student in each.points:
                    of, why = (each.points[student], each.max_points), each.why.get(student)
                    parts.append((each.notebook, each.title, *of, why))
            if not row.graded:
                parts.append(("", "", "", row.max_total, ""))
            elif row.max_written:
                given, why = ("", "not read yet") if row.pending else (row.written, "")
                parts.append((topic, "answers in words", given, row.max_written, why))
            if row.late_penalty:
                penalty = row.total - row.auto - row.written
                parts.append((topic, "late penalty", penalty, 0, row.late))
            lines += [(*who, *part, "; ".join(row.remarks)) for part in parts]
    return results.comma_separated(COLUMNS, lines)


def write(
    course: Course, topics: Sequence[str], class_: Sequence[Assignment] | None = None
) -> list[Path]:
    """Write the pages on assignments, with names and without, and their data; return the paths."""
    class_ = gather(course) if class_ is None else class_
    graded = {assignment.topic for assignment in class_}
    if missing := [topic for topic in topics if topic not in graded]:
        raise ToolError(f"nothing of {missing[0]} has been graded", f"make grade A={missing[0]}")
    if not class_:
        raise ToolError("nothing has been graded", "make grade A=TOPIC")

    def chosen(class_: Sequence[Assignment]) -> list[Assignment]:
        return [one for one in class_ if not topics or one.topic in topics]

    folder, name = course.build / "report", "-".join(topics) or "term"
    alike = {one.topic: similarity.find(course, one.topic) for one in chosen(class_)}
    nobody = without_names(class_)
    contents = {
        f"{name}.html": page(chosen(class_), class_, alike).encode(),
        f"{name}.csv": to_csv(chosen(class_)).encode("utf-8-sig"),
        f"{name}-without-names.html": page(chosen(nobody), nobody).encode(),
    }
    for file, content in contents.items():
        write_if_changed(folder / file, content)
    return [folder / file for file in contents]


@command(argument("topics", nargs="*", metavar="TOPIC", help="an assignment; all when none"))
def main(topics: list[str], course: Course = HERE) -> None:
    """Write the pages, and tell where they are."""
    for path in write(course, course.choose(topics) if topics else []):
        console.print(Text(f"Wrote {path.relative_to(course.root)}"))
