"""The whole course in one go: release, site, a sample class, its grades: ``make course``.

A second run makes only what has changed, and a part that fails costs only itself.
"""

import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from rich.text import Text

from tools.classroom import grade, gradebook, release, report, sample_class
from tools.layout import HERE, Course
from tools.progress import OnProgress, Stages, each
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


def _site(course: Course, on_progress: OnProgress, stop: threading.Event) -> Path:
    def on_page(page: Path) -> None:
        console.print(f"The first page can be opened: {page.as_uri()}", soft_wrap=True)

    return book.build(out=course.root, on_progress=on_progress, stop=stop, on_page=on_page)


def _released(course: Course, topic: str) -> bool:
    release.write(course, topic)
    release.record(course, topic)
    return True


def _grade(
    course: Course, topics: Sequence[str], on_progress: OnProgress, steps: Steps
) -> grade.Summary:
    """Grade what is new or changed in every assignment; its progress has two steps a submission."""
    total, before = grade.Summary(), 0
    every = sum(2 * len(course.submitters(topic)) for topic in topics)
    for topic in topics:

        def inner(done: int, number: int, now: str, before: int = before) -> None:
            on_progress(before + done, every, now)

        graded = steps.run(f"grading of {topic}", grade.grade, course, topic, TIMEOUT, inner)
        total.add(graded or grade.Summary())
        before += 2 * len(course.submitters(topic))
    on_progress(every, every, "")
    return total


def _all_ours(course: Course, topics: Sequence[str], members: set[str]) -> bool:
    """Return whether nobody but the sample class has handed in: its notebooks can be trusted."""
    return all(members.issuperset(course.submitters(topic)) for topic in topics)


def _build(
    course: Course, topics: Sequence[str], steps: Steps, with_site: bool
) -> tuple[grade.Summary, Path | None]:
    """Build the site, and beside it release the assignments and grade the class."""
    stop, summary, building = threading.Event(), grade.Summary(), None
    with Stages() as shown, ThreadPoolExecutor(1) as pool:
        site = shown.add("Site") if with_site else None
        releasing, entering, grading = map(shown.add, ("Release", "Class", "Grade"))
        try:
            if site:
                # Other processes execute the pages: they and the grading share the cores.
                building = pool.submit(steps.run, "site", _site, course, site, stop)
            released = [
                topic
                for topic in each(topics, releasing)
                if steps.run(f"release of {topic}", _released, course, topic)
            ]
            entering(0, 1, "")
            members = steps.run("sample class", sample_class.create, course, released)
            if members is not None:
                entering(len(members), len(members), "")
                if _all_ours(course, released, set(members)):
                    os.environ.setdefault("GRADEBOX_ALLOW_UNSEALED", "yes")
                summary = _grade(course, released, grading, steps)
            return summary, building.result() if building else None
        except BaseException:
            stop.set()
            raise


def _show_class(course: Course, summary: grade.Summary, steps: Steps) -> Path | None:
    """Print how the sample class did, and return the report; work is broken on purpose, too."""
    console.print(sample_class.table())
    page, class_ = None, steps.run("gradebook", report.gather, course)
    if class_:
        gradebook.show(class_)
        page = steps.run("report", report.write, course, [], class_)
    broken = {student.id for student in sample_class.STUDENTS if student.is_broken}
    on_purpose = [row for row in summary.refused if row[0] in broken]
    summary.refused = [row for row in summary.refused if row[0] not in broken]
    grade.show(course, summary, {row.student: row.who for one in class_ or [] for row in one.rows})
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
    class_page = _show_class(course, summary, steps) if course.has_gradebook else None
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
