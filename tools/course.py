"""The whole course in one go: release, site, a sample class, its grades: ``make course``.

A second run makes only what has changed, and a part that fails costs only itself.
"""

import argparse
import os
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

from rich.text import Text

from tools import book, exercises, grade, gradebook, release, results, sample_class
from tools.attempts import Attempts
from tools.layout import ROOT, Course
from tools.stages import Stages, Tell
from tools.terminal import ToolError, console, need_disk, run

TIMEOUT = 2
"""Seconds of own time for a cell of the sample class: answers take milliseconds or never end."""


def site(course: Course, tell: Tell, stop: threading.Event) -> Path:
    """Build the site where anything on its pages has changed; return its folder."""
    try:
        return book.build(out=course.root, tell=tell, stop=stop)
    except book.BookError as error:
        raise ToolError(str(error), "") from None  # its message says how to mend it


def _release(course: Course, topics: Sequence[str], tell: Tell, attempts: Attempts) -> list[str]:
    """Release the assignments; return those for which it succeeded."""
    released = []
    for number, topic in enumerate(topics):
        tell(number, len(topics), topic)
        if attempts.make(f"release of {topic}", partial(_release_topic, course, topic)):
            released.append(topic)
    tell(len(topics), len(topics), "")
    return released


def _release_topic(course: Course, topic: str) -> bool:
    release.write(course, topic)
    release.record(course, topic)
    return True


def grade_all(
    course: Course, topics: Sequence[str], tell: Tell, attempts: Attempts
) -> grade.Summary:
    """Grade what is new or changed in every assignment."""
    total = grade.Summary()
    numbers = [2 * len(course.submitters(topic)) for topic in topics]
    for position, topic in enumerate(topics):
        before = sum(numbers[:position])

        def inner(done: int, number: int, now: str, before: int = before) -> None:
            tell(before + done, sum(numbers), now)

        action = partial(grade.grade, course, topic, TIMEOUT, inner)
        if graded := attempts.make(f"grading of {topic}", action):
            total.add(graded)
    tell(sum(numbers), sum(numbers), "")
    return total


def _all_ours(course: Course, topics: Sequence[str], members: set[str]) -> bool:
    """Return whether nobody but the sample class has handed in: its notebooks can be trusted."""
    return all(members.issuperset(course.submitters(topic)) for topic in topics)


def _class(
    course: Course, topics: Sequence[str], stages: dict[str, Tell], attempts: Attempts
) -> grade.Summary:
    """Let the sample class hand in, and grade it."""
    stages["Class"](0, 1, "")
    members = attempts.make("sample class", partial(sample_class.ensure, course, topics))
    if members is None:
        return grade.Summary()
    stages["Class"](len(members), len(members), "")
    if _all_ours(course, topics, set(members)):
        os.environ.setdefault("GRADEBOX_ALLOW_UNSEALED", "yes")
    return grade_all(course, topics, stages["Grade"], attempts)


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
    attempts = Attempts(course.root, course.build / "logs")
    summary, pages = _make(course, topics, attempts, with_site=not arguments.no_site)
    sheet = None
    if course.has_gradebook:
        console.print(sample_class.table())
        sheet = attempts.make("gradebook", partial(_show_gradebook, course, topics))
        on_purpose = _set_apart(summary)
        grade.show(course, summary)
        if on_purpose:
            student, number = on_purpose[0][0], len(on_purpose)
            console.print(f"{student} hands in broken files on purpose: {number} were not graded.")
    state = "Not all is ready" if attempts.failures else "Ready"
    _show_where(course, pages, sheet, topics, f"{state} after {time.monotonic() - start:.0f} s")
    attempts.show(console)
    return 1 if summary.failed or attempts.failures else 0


def _set_apart(summary: grade.Summary) -> list[tuple[str, str, str]]:
    """Take what is broken on purpose out of the submissions that failed, and return it."""
    broken = {student.id for student in sample_class.STUDENTS if student.is_broken}
    found = [row for row in summary.failed if row[0] in broken]
    summary.failed = [row for row in summary.failed if row[0] not in broken]
    return found


def _make(
    course: Course, topics: Sequence[str], attempts: Attempts, with_site: bool
) -> tuple[grade.Summary, Path | None]:
    """Release, build the site, and grade the class beside it."""
    stop = threading.Event()
    with Stages() as shown, ThreadPoolExecutor(1) as beside:
        names = ("Release", *(["Site"] if with_site else []), "Class", "Grade")
        stages = {name: shown.add(name) for name in names}
        try:
            released = _release(course, topics, stages["Release"], attempts)
            building: Future[Path | None] | None = None
            if with_site:
                # Other processes execute the pages: they and the grading share the cores.
                action = partial(site, course, stages["Site"], stop)
                building = beside.submit(attempts.make, "site", action)
            summary = _class(course, released, stages, attempts)
            return summary, building.result() if building else None
        except BaseException:
            stop.set()
            raise


def _show_where(
    course: Course, pages: Path | None, sheet: Path | None, topics: Sequence[str], title: str
) -> None:
    example = course.feedback / sample_class.SOLVER / topics[0] / f"{topics[0]}.html"
    scores = ", ".join(
        str(one.relative_to(course.root)) for one in (course.gradebook, sheet) if one
    )
    feedback = str(example.relative_to(course.root)) if example.exists() else ""
    where = [
        ("site", (pages / "index.html").as_uri() if pages else ""),
        ("students' notebooks", f"{course.exercises.relative_to(course.root)}/"),
        ("gradebook", scores if sheet else ""),
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
    made = argparse.ArgumentParser(prog="python -m tools.course", description=__doc__)
    made.add_argument("--no-site", action="store_true", help="leave the site as it is")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
