"""The page about a class, which grading and ``tools.classroom.gradebook`` write.

It tells for each assignment how its exercises went, which mistakes the class made, who is stuck
where, and which answers are alike; then it shows the whole term. Beside it lies a file for
spreadsheets with the same data.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from statistics import mean
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from tools.classroom import results, similarity
from tools.classroom.results import Row
from tools.fingerprints import write_if_changed
from tools.layout import Course

LEVELS = ("none", "less than half", "half or more", "all")
"""How many of the points a student has, in words."""


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


def gather(course: Course) -> list[Assignment]:
    """Return what the class did in the assignments of which anything was graded."""
    topics = course.topics()
    rows = results.rows(course, topics, everybody=True)
    by_topic = {topic: [row for row in rows if row.assignment == topic] for topic in topics}
    return [
        Assignment(topic, of_topic, results.reports(course, topic, of_topic))
        for topic, of_topic in by_topic.items()
        if any(row.graded for row in of_topic)
    ]


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
            student, topic, parts = row.student, row.assignment, list[Sequence[object]]()
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
            day, left = row.handed_in and f"{row.handed_in:%Y-%m-%d}", None
            if row.handed_in and row.due:
                left = round((row.due - row.handed_in).total_seconds() / 3600)
            who = student, row.person.first_name, row.person.last_name, topic, day, left
            lines += [(*who, *part, "; ".join(row.remarks)) for part in parts]
    return results.comma_separated(COLUMNS, lines)


def write(course: Course, topics: Sequence[str], class_: Sequence[Assignment]) -> Path:
    """Write the page on assignments, or all, and its data beside it; return its path."""
    shown = [one for one in class_ if not topics or one.topic in topics]
    alike = {one.topic: similarity.find(course, one.topic) for one in shown}
    file = course.build / "report" / f"{'-'.join(topics) or 'term'}.html"
    write_if_changed(file, page(shown, class_, alike).encode())
    write_if_changed(file.with_suffix(".csv"), to_csv(shown).encode("utf-8-sig"))
    return file
