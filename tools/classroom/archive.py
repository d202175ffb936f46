"""Keep a term: ``python -m tools.classroom.archive`` packs submissions and marks."""

import contextlib
import shutil
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.fingerprints import write_if_changed
from tools.layout import HERE, Course
from tools.terminal import ToolError, command, console


def archive(course: Course, target: Path) -> None:
    """Write the archive whole or not at all."""
    book = course.gradebook
    if book is None:
        raise ToolError("the gradebook is on a server", "archive it with pg_dump")
    if not book.exists():
        raise ToolError("there is no gradebook yet", "grade something first: make grade A=erm")
    with TemporaryDirectory(prefix="archive-") as scratch:
        folder = Path(scratch, "term")
        folder.mkdir()
        for place in (course.submitted, course.feedback, course.build / "class"):
            if place.exists():
                shutil.copytree(place, folder / place.name)
        with (
            contextlib.closing(sqlite3.connect(book)) as original,
            contextlib.closing(sqlite3.connect(folder / "gradebook.db")) as copied,
        ):
            original.backup(copied)  # somebody may be writing to it
        packed = shutil.make_archive(f"{scratch}/packed", "zip", folder)
        write_if_changed(target, Path(packed).read_bytes())


@command()
def main(course: Course = HERE) -> None:
    """Archive a term, and say how to begin the next."""
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    target = course.build / "archive" / f"term-{day}.zip"
    if target.exists():
        raise ToolError(f"{target} is there already", "move it away")
    archive(course, target)
    console.print(
        f"{target}: submissions, gradebook, feedback and class list. Nothing was removed. To begin "
        "a new term, keep a copy of the archive elsewhere and remove by hand build/gradebook.db, "
        "build/class, build/submitted, build/autograded, build/feedback and build/exchange.",
        soft_wrap=True,
    )
