"""The whole course in one go: release, site, a sample class, its grades: ``make course``.

A second run makes only what has changed, and a part that fails costs only itself.
"""

import argparse
import contextlib
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.text import Text

from tools import book, exercises, grade, gradebook, release, report, results, sample_class
from tools.fingerprints import write_if_changed
from tools.layout import ROOT, Course
from tools.progress import OnProgress, Stages
from tools.terminal import ToolError, console, need_disk, run

TIMEOUT = 2
"""Seconds of own time for a cell of the sample class: answers take milliseconds or never end."""


Result = TypeVar("Result")


@dataclass(frozen=True)
class Failure:
    """A step that failed.

    Parameters
    ----------
    step : str
        What people call the step.
    problem : str
        What is wrong.
    remedy : str
        What to do about it; empty where the problem says it already.
    """

    step: str
    problem: str
    remedy: str


class Steps:
    """Run the steps of a command; one that fails costs only itself.

    Parameters
    ----------
    root : Path
        The folder from which paths are shown.
    logs : Path
        Where the tracebacks of unexpected errors are written.
    """

    def __init__(self, root: Path, logs: Path) -> None:
        self._root, self._logs = root, logs
        self.failures: list[Failure] = []

    def run(self, name: str, action: Callable[[], Result]) -> Result | None:
        """Return what the action returns, or None when it fails; an interruption goes on."""
        try:
            return action()
        except ToolError as error:
            self.failures.append(Failure(name, error.problem, error.remedy))
        except (Exception, SystemExit) as error:
            self.failures.append(self._unexpected(name, error))
        return None

    def _unexpected(self, name: str, error: BaseException) -> Failure:
        log = self._logs / f"{re.sub(r'[^0-9A-Za-z]+', '-', name)}.log"
        # a full disk may be the very error: then the traceback is lost, and its last line is not
        with contextlib.suppress(OSError):
            write_if_changed(log, "".join(traceback.format_exception(error)).encode())
        last = traceback.format_exception_only(error)[-1].strip()
        where = log.relative_to(self._root)
        return Failure(name, last, f"the traceback in {where} shows where; then run this again")

    def show(self, screen: Console) -> None:
        """Print what failed, and how to fix it."""
        for failure in self.failures:
            screen.print(Text.assemble(("Failed: ", "bold red"), (failure.step, "bold")))
            for line in failure.problem.splitlines():
                screen.print(Text(f"  {line}"))
            if failure.remedy:
                screen.print(Text.assemble(("  To fix: ", "bold"), failure.remedy))


def site(course: Course, on_progress: OnProgress, stop: threading.Event) -> Path:
    """Build the site where anything on its pages has changed; return its folder."""

    def on_page(page: Path) -> None:
        console.print(f"The first page can be opened: {page.as_uri()}", soft_wrap=True)

    try:
        return book.build(out=course.root, on_progress=on_progress, stop=stop, on_page=on_page)
    except book.BookError as error:
        raise ToolError(str(error), "") from None  # its message says how to fix it


def _release(
    course: Course, topics: Sequence[str], on_progress: OnProgress, steps: Steps
) -> list[str]:
    """Release the assignments; return those for which it succeeded."""
    released = []
    for number, topic in enumerate(topics):
        on_progress(number, len(topics), topic)
        if steps.run(f"release of {topic}", partial(_release_topic, course, topic)):
            released.append(topic)
    on_progress(len(topics), len(topics), "")
    return released


def _release_topic(course: Course, topic: str) -> bool:
    release.write(course, topic)
    release.record(course, topic)
    return True


def grade_all(
    course: Course, topics: Sequence[str], on_progress: OnProgress, steps: Steps
) -> grade.Summary:
    """Grade what is new or changed in every assignment.

    Parameters
    ----------
    topics : sequence of str
        The assignments.
    on_progress : callable
        Called with the number of steps done, two for each submission, of all, and what is done now.
    steps : Steps
        Takes note of an assignment whose grading fails; the others are graded.
    """
    total = grade.Summary()
    numbers = [2 * len(course.submitters(topic)) for topic in topics]
    for position, topic in enumerate(topics):
        before = sum(numbers[:position])

        def inner(done: int, number: int, now: str, before: int = before) -> None:
            on_progress(before + done, sum(numbers), now)

        action = partial(grade.grade, course, topic, TIMEOUT, inner)
        if graded := steps.run(f"grading of {topic}", action):
            total.add(graded)
    on_progress(sum(numbers), sum(numbers), "")
    return total


def _all_ours(course: Course, topics: Sequence[str], members: set[str]) -> bool:
    """Return whether nobody but the sample class has handed in: its notebooks can be trusted."""
    return all(members.issuperset(course.submitters(topic)) for topic in topics)


def _class(
    course: Course, topics: Sequence[str], stages: dict[str, OnProgress], steps: Steps
) -> grade.Summary:
    """Let the sample class hand in, and grade it."""
    stages["Class"](0, 1, "")
    members = steps.run("sample class", partial(sample_class.ensure, course, topics))
    if members is None:
        return grade.Summary()
    stages["Class"](len(members), len(members), "")
    if _all_ours(course, topics, set(members)):
        os.environ.setdefault("GRADEBOX_ALLOW_UNSEALED", "yes")
    return grade_all(course, topics, stages["Grade"], steps)


def _show_gradebook(course: Course, topics: Sequence[str]) -> Path | None:
    """Print a summary of the gradebook, write the whole as CSV, and return that file."""
    graded = results.rows(course, topics)
    sheet = results.write_sheet(course)
    console.print(gradebook.assignments_table(graded, exercises.misconceptions(course, topics)))
    gradebook.show_look(graded)
    return sheet


def command(arguments: argparse.Namespace, course: Course | None = None) -> int:
    """Do all of it, and say where everything is and what failed."""
    course = course or Course(ROOT)
    start = time.monotonic()
    topics = course.choose([])
    need_disk(course.root, 500)
    steps = Steps(course.root, course.build / "logs")
    summary, pages = _run(course, topics, steps, with_site=not arguments.no_site)
    sheet = class_page = None
    if course.has_gradebook:
        console.print(sample_class.table())
        sheet = steps.run("gradebook", partial(_show_gradebook, course, topics))
        written = steps.run("report", partial(report.write, course, [])) if sheet else None
        class_page = written[0] if written else None
        on_purpose = _set_apart(summary)
        grade.show(course, summary)
        if on_purpose:
            student, number = on_purpose[0][0], len(on_purpose)
            console.print(f"{student} hands in broken files on purpose: {number} were not graded.")
    state = "Not all is ready" if steps.failures else "Ready"
    title = f"{state} after {time.monotonic() - start:.0f} s"
    _show_where(course, pages, sheet, class_page, topics, title)
    steps.show(console)
    return 1 if summary.failed or steps.failures else 0


def _set_apart(summary: grade.Summary) -> list[tuple[str, str, str]]:
    """Take what is broken on purpose out of the submissions that failed, and return it."""
    broken = {student.id for student in sample_class.STUDENTS if student.is_broken}
    on_purpose = [row for row in summary.failed if row[0] in broken]
    summary.failed = [row for row in summary.failed if row[0] not in broken]
    return on_purpose


def _run(
    course: Course, topics: Sequence[str], steps: Steps, with_site: bool
) -> tuple[grade.Summary, Path | None]:
    """Build the site, and beside it release the assignments and grade the class."""
    stop = threading.Event()
    with Stages() as shown, ThreadPoolExecutor(1) as pool:
        names = (*(["Site"] if with_site else []), "Release", "Class", "Grade")
        stages = {name: shown.add(name) for name in names}
        try:
            building: Future[Path | None] | None = None
            if with_site:
                # Other processes execute the pages: they and the grading share the cores.
                action = partial(site, course, stages["Site"], stop)
                building = pool.submit(steps.run, "site", action)
            released = _release(course, topics, stages["Release"], steps)
            summary = _class(course, released, stages, steps)
            return summary, building.result() if building else None
        except BaseException:
            stop.set()
            raise


def _show_where(
    course: Course,
    pages: Path | None,
    sheet: Path | None,
    class_page: Path | None,
    topics: Sequence[str],
    title: str,
) -> None:
    example = course.feedback / sample_class.SOLVER / topics[0] / f"{topics[0]}.html"
    scores = ", ".join(
        str(path.relative_to(course.root)) for path in (course.gradebook, sheet) if path
    )
    feedback = str(example.relative_to(course.root)) if example.exists() else ""
    where = [
        ("site", (pages / "index.html").as_uri() if pages else ""),
        ("students' notebooks", f"{course.exercises.relative_to(course.root)}/"),
        ("gradebook", scores if sheet else ""),
        ("report on the class", class_page.as_uri() if class_page else ""),
        ("feedback, for example", feedback),
        ("details", "python -m tools.gradebook [TOPIC …] [--student NAME]" if sheet else ""),
        ("next", "make lab · make test · make grade A=" + topics[0]),
    ]
    console.print(Text(title, style="bold"))
    for name, value in where:
        if value:
            # soft: an address that is broken over two lines cannot be copied
            console.print(Text(f"{name:<22} {value}"), soft_wrap=True)


def parser() -> argparse.ArgumentParser:
    """Return the command line of this tool."""
    parser = argparse.ArgumentParser(prog="python -m tools.course", description=__doc__)
    parser.add_argument("--no-site", action="store_true", help="leave the site as it is")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
