"""Give pages back to students: ``python -m tools.feedback TOPIC``.

A page goes through the exchange to each student who submitted in JupyterLab. Pages of those whose
work came in a zip of Moodle's or Canvas's are packed as that platform takes them. The others, whose
work came by mail or in a folder, are named with the places of their pages.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from rich.table import Table
from rich.text import Text

from optdl.files import atomic_write
from tools import class_state, results
from tools.backend import Backend
from tools.layout import ROOT, Course
from tools.terminal import ToolError, console, run


def release(course: Course, topic: str) -> tuple[list[str], dict[str, Path]]:
    """Release the pages of an assignment.

    Returns
    -------
    list of str
        Who can fetch a page now.
    dict
        The others, with the folders of their pages.
    """
    backend = Backend(course)
    pages = sorted(course.feedback.glob(f"*/{topic}/*.html"))
    students = list(dict.fromkeys(page.parent.parent.name for page in pages))
    if not students:
        raise ToolError(f"there is no page of {topic} yet", f"make grade A={topic}")
    rest = backend.release_feedback(topic)
    return [student for student in students if student not in rest], rest


def pack(course: Course, topic: str, folders: Mapping[str, Path]) -> dict[Path, list[str]]:
    """Pack pages for the platforms from which the work came; return whose are in which zip."""
    state, packed = class_state.read(course), {}
    for platform in ("Moodle", "Canvas"):
        pages: dict[str, Path] = {}
        students = []
        for student, folder in folders.items():
            hand_in = state.hand_in(topic, student)
            if hand_in is None or hand_in.platform != platform:
                continue
            students.append(student)
            for page in sorted(folder.glob("*.html")):
                prefix = hand_in.names.get(page.stem, "")
                # Moodle wants a folder for each student, Canvas the name of what it replies to
                name = f"{prefix}/{page.name}" if platform == "Moodle" else f"{prefix}{page.name}"
                if prefix:
                    pages[name] = page
        if pages:
            target = course.feedback / f"{topic}-{platform.lower()}.zip"
            with atomic_write(target) as scratch, ZipFile(scratch, "w", ZIP_DEFLATED) as archive:
                for name, page in pages.items():
                    archive.write(page, name)
            packed[target] = students
    return packed


UPLOAD = {
    "moodle": "In the assignment: Submissions, Upload multiple feedback files in a zip.",
    "canvas": "In the gradebook, at the assignment: Re-Upload Submissions. Canvas shows a page "
    "under the name of the notebook; students save it as .html.",
}
"""Where the zips go."""


def command(arguments: argparse.Namespace, course: Course | None = None) -> None:
    """Release the pages of the assignments named, and say who gets none."""
    course = course or Course(ROOT)
    if not arguments.topics:
        topics = course.choose([])
        raise ToolError(
            f"which assignment? There are {', '.join(topics)}", f"make feedback A={topics[0]}"
        )
    for topic in course.choose(arguments.topics):
        released, rest = release(course, topic)
        have_pages = [*released, *rest]
        if released:
            number = "1 student" if len(released) == 1 else f"{len(released)} students"
            console.print(f"Released the pages of {topic} to {number}.")
        for target, students in pack(course, topic, rest).items():
            where = target.relative_to(course.root)
            platform = target.stem.rpartition("-")[2]
            number = "1 student" if len(students) == 1 else f"{len(students)} students"
            console.print(Text(f"Packed the pages of {number}: {where}"))
            console.print(UPLOAD[platform])
            rest = {student: folder for student, folder in rest.items() if student not in students}
        unread = [row.student for row in results.rows(course, [topic]) if row.pending]
        for title, who in (
            ("Written answers still to be read", unread),
            ("Handed in, and not graded", sorted({*course.submitters(topic)} - {*have_pages})),
        ):
            if who:
                console.print(Text(f"{title}: {', '.join(who)}"))
        if not rest:
            continue
        table = Table("not released to", "send the pages in", box=None)
        for student, folder in rest.items():
            table.add_row(Text(student), Text(str(folder.relative_to(course.root))))
        console.print(table)
        console.print("They did not submit in JupyterLab, so the exchange does not know them.")


def parser() -> argparse.ArgumentParser:
    """Return the command line of this tool."""
    parser = argparse.ArgumentParser(prog="python -m tools.feedback", description=__doc__)
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help="an assignment")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
