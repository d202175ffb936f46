"""The whole course in one go: release, site, a sample class, its grades: ``make course``.

A second run makes only what has changed.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.panel import Panel
from rich.progress import Progress, TaskID

from tools import book, grade, gradebook, release, sample_class
from tools.layout import ROOT, Course
from tools.stamps import Stamps, digest, files, write_atomically
from tools.terminal import ToolError, console, need_disk, progress, run

TIMEOUT = 10
"""Seconds for a cell of the sample class, whose answers take milliseconds or never end."""

Tell = Callable[[int, int, str], None]


def site(course: Course, tell: Callable[[str], None] = lambda line: None) -> Path:
    """Build the site where anything on its pages has changed; return its folder."""
    stamps = Stamps(course.build / "stamps.json")
    pages = course.root / "_build" / "html"
    names = (
        "book",
        "src/optdl",
        "exercises",
        "_config.yml",
        "_toc.yml",
        "requirements.txt",
        "tools/book.py",
        "tests",
        "solutions",
    )
    checksum = digest(
        part
        for path in files(*(course.root / name for name in names))
        for part in (path.relative_to(course.root).as_posix(), path)
    )
    if stamps.fresh("site", checksum) and (pages / "index.html").is_file():
        return pages
    stamps.forget("site")
    try:
        pages = book.build(out=course.root, progress=tell)
    except book.BookError as error:
        raise ToolError(
            str(error), "correct the page or the code that the message names, then run it again"
        ) from None
    stamps.record("site", checksum)
    return pages


def grade_all(course: Course, topics: Sequence[str], tell: Tell) -> grade.Summary:
    """Grade what is new or changed in every assignment."""
    total = grade.Summary()
    numbers = [2 * len(course.submitters(topic)) for topic in topics]
    for place, topic in enumerate(topics):
        before = sum(numbers[:place])

        def inner(done: int, number: int, now: str, before: int = before) -> None:
            tell(before + done, sum(numbers), now)

        total.add(grade.grade(course, topic, TIMEOUT, inner))
    return total


def _all_ours(course: Course, topics: Sequence[str], members: set[str]) -> bool:
    """Return whether nobody but the sample class has handed in: its notebooks can be trusted."""
    return all(members.issuperset(course.submitters(topic)) for topic in topics)


def _site_with_progress(course: Course, tell: Tell) -> Path:
    tell(0, 1, "")
    pages = site(course, lambda line: tell(0, 1, line))
    tell(1, 1, "")
    return pages


def _follow(bar: Progress, task: TaskID) -> Tell:
    def tell(done: int, total: int, now: str) -> None:
        bar.update(task, completed=done, total=total, now=now[-48:])

    return tell


def command(arguments: argparse.Namespace, course: Course | None = None) -> int:
    """Do all of it, and say where everything is."""
    course = course or Course(ROOT)
    start = time.monotonic()
    topics = course.choose([])
    need_disk(course.root, 500)
    with progress() as bar:
        tasks = {
            name: _follow(bar, bar.add_task(name, total=None, now="waits"))
            for name in ("Release", "Site", "Class", "Grade")
            if name != "Site" or not arguments.no_site
        }
        for number, topic in enumerate(topics):
            tasks["Release"](number, len(topics), topic)
            release.write(course, topic)
            release.record(course, topic)
        tasks["Release"](len(topics), len(topics), "")
        # The site is built by another process: it and the grading share the cores.
        with ThreadPoolExecutor(1) as beside:
            building = None
            if not arguments.no_site:
                building = beside.submit(_site_with_progress, course, tasks["Site"])
            tasks["Class"](0, 1, "")
            members = sample_class.make(course)
            tasks["Class"](len(members), len(members), "")
            if _all_ours(course, topics, {student.id for student in members}):
                os.environ.setdefault("GRADEBOX_ALLOW_UNSEALED", "yes")
            summary = grade_all(course, topics, tasks["Grade"])
            pages = building.result() if building else None
    results = gradebook.rows(course, topics)
    console.print(gradebook.table(results))
    if found := gradebook.causes(course, topics):
        console.print(gradebook.causes_table(found, most=3))
    sheet = course.build / "gradebook.csv"
    write_atomically(sheet, gradebook.to_csv(results).encode())
    grade.show(course, summary)
    _tell_where(course, pages, sheet, topics, time.monotonic() - start)
    return 1 if summary.failed else 0


def _tell_where(
    course: Course, pages: Path | None, sheet: Path, topics: Sequence[str], seconds: float
) -> None:
    example = course.feedback / "ada-all-correct" / topics[0] / f"{topics[0]}.html"
    files = [course.gradebook, sheet]
    where = [
        ("site", (pages / "index.html").as_uri() if pages else ""),
        ("students' notebooks", f"{course.exercises.relative_to(course.root)}/"),
        ("gradebook", ", ".join(str(one.relative_to(course.root)) for one in files if one)),
        ("feedback, for one", str(example.relative_to(course.root))),
        ("next", "make lab · make test · make grade A=" + topics[0]),
    ]
    lines = [f"{name:<20} {value}" for name, value in where if value]
    console.print(Panel.fit("\n".join(lines), title=f"Ready in {seconds:.0f} s"))


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
