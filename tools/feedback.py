"""Give pages back to students: ``python -m tools.feedback TOPIC``.

A page goes through the exchange to each student who submitted in JupyterLab. The others, whose
work came by mail or in a folder, are named with the places of their pages.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

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
    return [one for one in students if one not in rest], rest


def command(arguments: argparse.Namespace, course: Course | None = None) -> None:
    """Release the pages of the assignments named, and say who gets none."""
    course = course or Course(ROOT)
    if not arguments.topics:
        known = course.choose([])
        raise ToolError(
            f"which assignment? There are {', '.join(known)}", f"make feedback A={known[0]}"
        )
    for topic in course.choose(arguments.topics):
        released, rest = release(course, topic)
        number = "1 student" if len(released) == 1 else f"{len(released)} students"
        console.print(f"Released the pages of {topic} to {number}.")
        if not rest:
            continue
        table = Table("not released to", "send the pages in", box=None)
        for student, folder in rest.items():
            table.add_row(Text(student), Text(str(folder.relative_to(course.root))))
        console.print(table)
        console.print("They did not submit in JupyterLab, so the exchange does not know them.")


def parser() -> argparse.ArgumentParser:
    """Return the command line of this tool."""
    made = argparse.ArgumentParser(prog="python -m tools.feedback", description=__doc__)
    made.add_argument("topics", nargs="*", metavar="TOPIC", help="an assignment")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
