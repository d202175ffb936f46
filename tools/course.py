"""The whole course in one go: release, site, a sample class, its grades: ``make course``.

A second run makes only what has changed, and a part that fails costs only itself.
"""

import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rich.text import Text

from tools.classroom import grade, gradebook, release, sample_class
from tools.layout import HERE, Course
from tools.progress import Stages, each
from tools.site import book
from tools.terminal import ToolError, argument, command, console, explained

TIMEOUT = 2
"""Seconds of own time for a cell of the sample class: answers take milliseconds or never end."""

Result = TypeVar("Result")


class Steps:
    """Run the steps of a command; one that fails costs only itself."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self.failures: list[tuple[str, ToolError]] = []

    def run(self, name: str, action: Callable[..., Result], *arguments: Any) -> Result | None:
        """Return what the action returns, or None when it fails; an interruption goes on."""
        try:
            return action(*arguments)
        except (Exception, SystemExit) as error:
            log = f"logs/{re.sub('[^0-9A-Za-z]+', '-', name)}.log"
            self.failures.append((name, explained(error, self._course.build / log)))
        return None

    def show(self) -> None:
        """Print what failed, and how to fix it."""
        for name, error in self.failures:
            console.print(Text.assemble(("Failed: ", "bold red"), (name, "bold")))
            for line in error.problem.splitlines():
                console.print(Text(f"  {line}"))
            console.print(Text.assemble(("  To fix: ", "bold"), error.remedy))


def _trusted(course: Course, topics: Sequence[str], members: set[str]) -> bool:
    """Return whether nobody but the sample class has handed in."""
    return all(members.issuperset(course.submitters(topic)) for topic in topics)


def _build(
    course: Course, topics: Sequence[str], steps: Steps, with_site: bool
) -> tuple[grade.Summary, Path | None]:
    """Release the assignments, build the site with them, and grade the class."""
    summary, pages = grade.Summary(), None

    def on_page(page: Path) -> None:
        console.print(f"The first page can be opened: {page.as_uri()}", soft_wrap=True)

    with Stages() as shown:
        names = ("Release", *["Site"] * with_site, "Class", "Grade")
        releasing, *site, entering, grading = map(shown.add, names)
        for topic in each(topics, releasing):
            steps.run(f"release of {topic}", release.update, course, [topic])
        if with_site:
            pages = steps.run("site", book.build, course.root, *site, on_page)
        failed = {name for name, _ in steps.failures}
        topics = [topic for topic in topics if f"release of {topic}" not in failed]
        # two assignments and a lab show what grading looks like
        few = [topic for topic in topics if topic in {*topics[:2], sample_class.with_lab(course)}]
        entering(0, 1, "")
        members = steps.run("sample class", sample_class.create, course, few)
        entering(1, 1, "")
        if members and _trusted(course, topics, {*members}):
            os.environ.setdefault("GRADEBOX_ALLOW_UNSEALED", "yes")
        topics = [topic for topic in topics if members and course.submitters(topic)]
        for number, topic in enumerate(topics):

            def inner(done: int, total: int, now: str, number: int = number) -> None:
                grading(number, len(topics), now)

            graded = steps.run(f"grading of {topic}", grade.grade, course, topic, TIMEOUT, inner)
            summary.add(graded or grade.Summary())
        grading(len(topics), len(topics), "")
    return summary, pages


def _show_class(course: Course, summary: grade.Summary, steps: Steps) -> Path | None:
    """Print how the sample class did, and return the report; work is broken on purpose, too."""
    console.print(sample_class.table())
    class_ = steps.run("gradebook", gradebook.gather, course)
    page = steps.run("report", gradebook.show, course, class_) if class_ else None
    broken = {student.id for student in sample_class.STUDENTS if student.is_broken}
    on_purpose = [row for row in summary.refused if row[0] in broken]
    summary.refused = [row for row in summary.refused if row[0] not in broken]
    people = {row.student: row.person for one in class_ or [] for row in one.rows}
    grade.show(course, summary, people)
    if on_purpose:
        student, number = on_purpose[0][0], len(on_purpose)
        console.print(f"{student} hands in broken files on purpose: {number} were not graded.")
    return page


@command(argument("--no-site", action="store_true", help="leave the site as it is"))
def main(no_site: bool, course: Course = HERE) -> int:
    """Do all of it, and say where everything is and what failed."""
    start = time.monotonic()
    topics = course.choose([])
    steps = Steps(course)
    summary, pages = _build(course, topics, steps, with_site=not no_site)
    class_page = _show_class(course, summary, steps)
    state = "Not all is ready" if steps.failures else "Ready"
    console.print(Text(f"{state} after {time.monotonic() - start:.0f} s", style="bold"))
    example = course.feedback / sample_class.SOLVER / topics[0] / f"{topics[0]}.html"
    where = {
        "site": pages and (pages / "index.html").as_uri(),
        "students' notebooks": f"{course.exercises.relative_to(course.root)}/",
        "report on the class": class_page and class_page.as_uri(),
        "the same as a table": class_page and class_page.with_suffix(".csv"),
        "feedback, for example": example.as_uri() if example.exists() else None,
        "one student": "python -m tools.classroom.gradebook --student NAME",
        "next": f"make lab · make test · make grade A={topics[0]}",
    }
    for name, value in where.items():
        if value:
            # soft: an address that is broken over two lines cannot be copied
            console.print(Text(f"{name:<22} {value}"), soft_wrap=True)
    steps.show()
    return 1 if summary.refused or summary.lost or steps.failures else 0
