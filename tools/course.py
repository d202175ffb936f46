"""The whole course in one go: release, site, a sample class, its grades: ``make course``.

A second run makes only what has changed, and a part that fails costs only itself.
"""

import contextlib
import os
import re
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rich.text import Text

from tools.classroom import grade, gradebook, release, sample_class
from tools.layout import HERE, Course
from tools.progress import OnProgress, Stages, each
from tools.site import book
from tools.terminal import ToolError, argument, command, console, explained

TIMEOUT = 2
"""Seconds of own time for a cell of the sample class: answers take milliseconds or never end."""


@contextlib.contextmanager
def _part(logs: Path, failures: dict[str, ToolError], name: str) -> Iterator[None]:
    """Note the failure of a part, after which the others go on; an interruption is none."""
    try:
        yield
    except (Exception, SystemExit) as error:
        log = logs / f"{re.sub('[^0-9A-Za-z]+', '-', name)}.log"
        failures[name] = explained(error, log)


def _trusted(course: Course, topics: list[str], members: set[str]) -> bool:
    """Return whether nobody but the sample class has handed in."""
    return all(members.issuperset(course.submitters(topic)) for topic in topics)


def _hand_on(report: OnProgress, done: int, total: int, *of_part: Any) -> None:
    """Report what a part of a stage does as the progress of the whole stage."""
    report(done, total, of_part[-1])


def _on_page(page: Path) -> None:
    console.print(f"The first page can be opened: {page.as_uri()}", soft_wrap=True)


def _tell(where: Mapping[str, object], failures: dict[str, ToolError]) -> None:
    """Print where everything is, and what failed and how to fix it."""
    for name, value in where.items():
        if value:
            # soft: an address that is broken over two lines cannot be copied
            console.print(Text(f"{name:<22} {value}"), soft_wrap=True)
    for name, error in failures.items():
        console.print(Text.assemble(("Failed: ", "bold red"), (name, "bold")))
        for line in error.problem.splitlines():
            console.print(Text(f"  {line}"))
        console.print(Text.assemble(("  To fix: ", "bold"), error.remedy))


@command(argument("--no-site", action="store_true", help="leave the site as it is"))
def main(no_site: bool, course: Course = HERE) -> int:
    """Do all of it, and say where everything is and what failed."""
    start, topics, failures = time.monotonic(), course.choose([]), dict[str, ToolError]()
    part = partial(_part, course.build / "logs", failures)
    members, summary = set[str](), grade.Summary()
    site: Path | None = None
    class_page: Path | None = None
    class_: list[gradebook.Assignment] = []
    with Stages() as shown:
        names = ("Release", *["Site"] * (not no_site), "Class", "Grade")
        releasing, *building, entering, grading = map(shown.add, names)
        for topic in each(topics, releasing):
            with part(f"release of {topic}"):
                release.update(course, [topic])
        for on_progress in building:
            with part("site"):
                site = book.build(on_progress, _on_page)
        released = [topic for topic in topics if f"release of {topic}" not in failures]
        # two assignments and a lab show what grading looks like
        few = [t for t in released if t in {*released[:2], sample_class.with_lab(course)}]
        entering(0, 1, "")
        with part("sample class"):
            members = {*sample_class.create(course, few)}
        entering(1, 1, "")
        if members and _trusted(course, released, members):
            os.environ.setdefault("GRADEBOX_ALLOW_UNSEALED", "yes")
        handed_in = [topic for topic in released if members and course.submitters(topic)]
        for number, topic in enumerate(handed_in):
            with part(f"grading of {topic}"):
                on_progress = partial(_hand_on, grading, number, len(handed_in))
                summary.add(grade.grade(course, topic, TIMEOUT, on_progress))
        grading(len(handed_in), len(handed_in), "")
    console.print(sample_class.table())
    with part("gradebook"):
        class_ = gradebook.gather(course)
    with part("report"):
        class_page = gradebook.show(course, class_)
    # work is broken on purpose, too
    broken = {student.id for student in sample_class.STUDENTS if student.is_broken}
    on_purpose = [row for row in summary.refused if row[0] in broken]
    summary.refused = [row for row in summary.refused if row[0] not in broken]
    grade.show(course, summary, {row.student: row.person for one in class_ for row in one.rows})
    if on_purpose:
        student, number = on_purpose[0][0], len(on_purpose)
        console.print(f"{student} hands in broken files on purpose: {number} were not graded.")
    state = "Not all is ready" if failures else "Ready"
    console.print(Text(f"{state} after {time.monotonic() - start:.0f} s", style="bold"))
    example = course.feedback / sample_class.SOLVER / topics[0] / f"{topics[0]}.html"
    where = {
        "site": site and (site / "index.html").as_uri(),
        "students' notebooks": f"{course.exercises.relative_to(course.root)}/",
        "report on the class": class_page and class_page.as_uri(),
        "the same as a table": class_page and class_page.with_suffix(".csv"),
        "feedback, for example": example.as_uri() if example.exists() else None,
        "one student": "python -m tools.classroom.gradebook --student NAME",
        "next": f"make lab · make test · make grade A={topics[0]}",
    }
    _tell(where, failures)
    return 1 if summary.refused or summary.lost or failures else 0
