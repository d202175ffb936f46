"""Make the students' notebooks from the instructor's: ``python -m tools.release [TOPIC …]``.

The same source gives the same bytes, on every machine and at any time.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from nbformat import NotebookNode
from rich.table import Table
from traitlets.config import Config

from gradebox.exchange import Releases, gather
from tools import notebooks
from tools.backend import Backend, Failed, MissingEntry
from tools.fingerprints import Fingerprints, digest, files, write_if_changed
from tools.layout import LAB, ROOT, Course, is_result
from tools.progress import Stages
from tools.terminal import ToolError, console, need_disk, run

SECRETS = ("BEGIN SOLUTION", "END SOLUTION", "HIDDEN TESTS", "MARK SCHEME")
REGION = re.compile(r"^[^\n]*### BEGIN SOLUTION\n(.*?)^[^\n]*### END SOLUTION", re.M | re.S)
GO_ON = "raises-exception"
"""With this tag, JupyterLab's Run All goes on to the next exercise after a check has failed."""
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def render(course: Course, topic: str) -> dict[str, bytes]:
    """Return the students' notebooks of a topic by name; nothing of the course is changed.

    Raises
    ------
    ToolError
        When nbgrader refuses the source, or the result would be wrong to hand out.
    """
    with TemporaryDirectory() as folder:
        changes = Config()
        changes.CourseDirectory.release_directory = f"{folder}/release"
        changes.CourseDirectory.db_url = f"sqlite:///{folder}/gradebook.db"
        Backend(course, changes=changes).generate(topic)
        rendered = {
            name: notebooks.read(Path(folder, "release", topic, f"{name}.ipynb"))
            for name in course.notebooks(topic)
        }
    return {name: _finished(course, topic, name, notebook) for name, notebook in rendered.items()}


def _finished(course: Course, topic: str, name: str, notebook: NotebookNode) -> bytes:
    """Return the bytes of a notebook as nbgrader made it, once it is fit to be handed out."""
    notebook.metadata = notebooks.node(METADATA)
    for cell in notebook.cells:
        # in a lab, a cell that is not nbgrader's shows what the record holds, if there is one
        metadata = cell.metadata.get("nbgrader", {"locked": name == LAB})
        if cell.cell_type == "code" and metadata.get("locked"):
            cell.metadata.tags = [*cell.metadata.get("tags", []), GO_ON]
    problems = faults(notebooks.read(course.source(topic, name)), notebook)
    if problems:
        raise ToolError(
            f"{topic}/{name} would be wrong to hand out: {'; '.join(problems)}",
            f"correct solutions/{topic}/{name}.ipynb; the exercise in place was left as it was",
        )
    return notebooks.to_bytes(notebook)


def faults(source: NotebookNode, released: NotebookNode) -> list[str]:
    """Return what is wrong with a released notebook, in words; nothing, when all is well.

    Parameters
    ----------
    source : NotebookNode
        The instructor's notebook.
    released : NotebookNode
        What students would get.
    """
    result = []
    before, after = _graded(source), _graded(released)
    if list(before) != list(after):
        result.append("its graded cells are not those of the source")
    for name, cell in after.items():
        if cell.get("id") != name:
            result.append(f"cell {cell.get('id')!r} has the grade id {name!r}; make them equal")
        points = before.get(name, cell).metadata.nbgrader.get("points")
        if cell.metadata.nbgrader.get("points") != points:
            result.append(f"cell {name} has other points than in the source")
    ids = [cell.get("id") for cell in released.cells]
    if len(set(ids)) < len(ids):
        result.append("two cells have the same id")
    lines = {line.strip() for cell in released.cells for line in cell.source.splitlines()}
    result += [
        f"it still holds {secret!r}" for secret in SECRETS if any(secret in x for x in lines)
    ]
    result += [f"it gives away {line!r}" for line in _secret_lines(source) if line in lines]
    if any(cell.get("outputs") for cell in released.cells):
        result.append("it has outputs")
    return result


def _graded(notebook: NotebookNode) -> dict[str, NotebookNode]:
    cells = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
    return {cell.metadata.nbgrader["grade_id"]: cell for cell in cells}


def _secret_lines(source: NotebookNode) -> list[str]:
    """Return the lines of the solutions that are long enough to be recognized."""
    regions = [text for cell in source.cells for text in REGION.findall(cell.source)]
    regions += [
        cell.source
        for cell in source.cells
        if cell.cell_type == "markdown" and cell.metadata.get("nbgrader", {}).get("solution")
    ]
    lines = [line.strip() for text in regions for line in text.splitlines()]
    return [line for line in lines if len(line) >= 16]


def write(course: Course, topic: str) -> bool:
    """Write the students' notebooks and their data files; return whether anything changed.

    What somebody edited there is copied to the place of work before. What the instructor's runs
    left is no data: it would solve the students' own.
    """
    fingerprints = Fingerprints(course.build / "fingerprints.json")
    if fingerprints.matches(f"release/{topic}", _fingerprint(course, topic)):
        return False
    rendered, releases = render(course, topic), Releases(course.exercises)
    for said in gather(course.work, topic, [course.exercises], releases, course.root):
        console.print(f"[yellow]{said}[/]")
    contents = {course.released(topic, name): content for name, content in rendered.items()}
    for path in files(course.solutions / topic):
        if path.suffix != ".ipynb" and not is_result(path):
            target = course.exercises / topic / path.relative_to(course.solutions / topic)
            contents[target] = path.read_bytes()
    changed = [write_if_changed(target, content) for target, content in contents.items()]
    releases.remember(contents)  # and not what somebody else put there
    fingerprints.record(f"release/{topic}", _fingerprint(course, topic))
    return any(changed)


def _fingerprint(course: Course, topic: str) -> str:
    """Return the checksum of what a release is made from, and of the release itself."""
    sources = [Path(__file__), course.root / "nbgrader_config.py"]
    return digest([*sources, *files(course.solutions / topic), *files(course.exercises / topic)])


def record(course: Course, topic: str, due: datetime | str | None = None) -> bool:
    """Record the cells of an assignment in the gradebook, and publish it to the exchange.

    Returns whether there was anything to do.

    Parameters
    ----------
    due : datetime or "none", optional
        The deadline, in UTC, or that there is none; as it was when not given.
    """
    fingerprints = Fingerprints(course.build / "fingerprints.json")
    checksum = digest(
        version(topic, name)
        for name in course.notebooks(topic)
        for version in (course.source, course.released)
    )
    outbound = course.exchange / str(course.config.CourseDirectory.course_id) / "outbound"
    done = fingerprints.matches(f"record/{topic}", checksum) and _is_recorded(course, topic)
    if done and due is None and (sys.platform == "win32" or (outbound / topic).is_dir()):
        return False
    with TemporaryDirectory() as folder:
        changes = Config()
        changes.CourseDirectory.release_directory = folder
        backend = Backend(course, changes=changes)
        try:
            backend.generate(topic)
        except Failed as error:
            raise _explained(error, topic) from None
    with backend.gradebook() as book:
        if due is not None:
            if due == NO_DEADLINE:
                book.find_assignment(topic).duedate = None
                book.db.commit()
            else:
                book.update_or_create_assignment(topic, duedate=due)
    if sys.platform != "win32":
        Backend(course).publish(topic)
    fingerprints.record(f"record/{topic}", checksum)
    return True


def _is_recorded(course: Course, topic: str) -> bool:
    if not course.has_gradebook:
        return False
    with Backend(course).gradebook() as book:
        try:
            return bool(book.find_assignment(topic).notebooks)
        except MissingEntry:
            return False


REFUSALS = ("Cannot add or remove cells", "because there are submissions associated with it")
"""What nbgrader says when an assignment no longer fits its graded submissions."""


def _explained(error: Failed, topic: str) -> ToolError:
    if not any(text in error.log for text in REFUSALS):
        return error
    return ToolError(
        f"{topic} has other cells or notebooks than when its submissions were graded",
        "keep the graded cells as they were; or, when only the sample class has been graded, "
        "`python -m tools.sample_class --remove` and release again",
    )


NO_DEADLINE = "none"


def parse_due(text: str) -> datetime | str:
    """Return the moment, in UTC, that a text such as ``2026-03-01 23:59`` names, or "none"."""
    if text == NO_DEADLINE:
        return text
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M")
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no moment; write it as 2026-03-01 23:59 (UTC), or none"
        ) from None


def command(arguments: argparse.Namespace, course: Course | None = None) -> None:
    """Release the assignments named, or all."""
    course = course or Course(ROOT)
    course.need_solutions()
    topics = course.choose(arguments.topics)
    need_disk(course.root)
    table = Table("assignment", "notebooks", "", "exchange", box=None)
    with Stages() as stages:
        on_progress = stages.add("Release")
        for number, topic in enumerate(topics):
            on_progress(number, len(topics), topic)
            changed = write(course, topic)
            recorded = record(course, topic, arguments.due)
            paths = [course.released(topic, name) for name in course.notebooks(topic)]
            table.add_row(
                topic,
                "\n".join(str(path.relative_to(course.root)) for path in paths),
                "[green]new[/]" if changed else "as it was",
                "published" if recorded else "as it was",
            )
        on_progress(len(topics), len(topics), "")
    console.print(table)
    if arguments.due is not None:
        _show_deadlines(course, topics)


def _show_deadlines(course: Course, topics: Sequence[str]) -> None:
    with Backend(course).gradebook() as book:
        for topic in topics:
            due = book.find_assignment(topic).duedate
            here = f"{due.replace(tzinfo=UTC).astimezone():%a %d %b %Y, %H:%M %Z}" if due else ""
            text = f"is due {due:%Y-%m-%d %H:%M} UTC (here: {here})" if due else "has no deadline"
            console.print(f"{topic} {text}")


def parser() -> argparse.ArgumentParser:
    """Return the command line of this tool."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help="an assignment; all when none")
    parser.add_argument(
        "--due",
        type=parse_due,
        metavar="WHEN",
        help="when it is due, UTC: '2026-03-01 23:59'; none takes a deadline away",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
