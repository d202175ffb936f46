"""Check an assignment and pack it to hand it in: ``python -m tools.classroom.submit [TOPIC]``.

The zip holds the notebooks and the record of a lab, under the names that the grader expects. All
checks that the student can see run before, in a new kernel, and those that fail are listed. Nothing
is refused, and no notebook is changed.
"""

import ast
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch
from zipfile import ZIP_DEFLATED, ZipFile

from nbformat import NotebookNode
from rich.table import Table
from rich.text import Text

from gradebox.exchange import Releases
from gradebox.nbgrader.cells import errors, headings, name_of, of
from gradebox.run import intake
from optdl.files import atomic_write
from tools import notebooks
from tools.classroom import lab
from tools.classroom.backend import environment
from tools.fingerprints import write_if_changed
from tools.layout import HERE, LAB, RECORD, Course
from tools.progress import OnProgress, Stages
from tools.terminal import ToolError, argument, command, console

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from nbgrader.preprocessors import Execute

STUDENT = ".student"  # in the place of work: the id under which its owner hands in
USABLE = re.compile(r"[^+/\\*?\[\]\s.:-][^+/\\*?\[\]\s:]*")  # ids that a class list can have
KERNELS_FILE = re.compile(r"\(\d+\.py, ")  # what a kernel puts before the line of a syntax error
CELL_SECONDS = 60  # an endless loop costs so many seconds
RECORD_SECONDS = 1800  # the check of a record trains again
AGREES, FAILS, WRITTEN, UNWRITTEN = "✓", "✗", "·", "–"
STATES = {AGREES: "agree", FAILS: "fail", WRITTEN: "in words", UNWRITTEN: "not written yet"}


def execute(
    course: Course, topic: str, notebook: NotebookNode, student: str, on_progress: OnProgress
) -> NotebookNode:
    """Return a notebook after all its cells but those that train have run.

    The seed of a lab follows from the id of the student.
    """
    checks, titles = Execute(config=course.config), headings(notebook)
    checks.on_cell_start = lambda cell, cell_index: on_progress(
        cell_index, len(notebook.cells), titles.get(name_of(cell), "")
    )
    checks.timeout_func = lambda cell: (
        RECORD_SECONDS if "check_record(" in cell.source else CELL_SECONDS
    )
    # the record of a lab has to be that of whoever hands in, here as in grading
    more = {"GRADEBOX_STUDENT": student, "NBGRADER_EXECUTION": "validate"}
    with patch.dict(os.environ, environment() | more), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result, _ = checks.preprocess(notebook, {"metadata": {"path": str(course.work / topic)}})
    on_progress(1, 1, "")
    return notebooks.node(result)


def answers(
    course: Course, notebook: NotebookNode, released: NotebookNode
) -> Iterator[tuple[str, str, str]]:
    """Yield what executed cells say of the answers: a sign, the exercise, and why it fails."""
    placeholders = {cell.id: cell.source.strip() for cell in released.cells}
    titles, earlier = headings(released), None
    for cell in notebook.cells:
        about, failures = of(cell), errors(cell)
        title = titles.get(name_of(cell), name_of(cell))
        if not about.get("grade"):
            earlier = failures[0] if failures and about.get("solution") else earlier
        elif cell.cell_type == "markdown":
            empty = cell.source.strip() in ("", placeholders.get(name_of(cell)))
            yield UNWRITTEN if empty else WRITTEN, title, ""
        elif ast.parse(cell.source).body:  # and no place of hidden checks
            # what the cell of an answer defines is not there if the cell has an error
            error = earlier if failures and failures[0].ename == "NameError" else None
            sign, reason = _judged(course, error or failures[0]) if failures else (AGREES, "")
            yield sign, title, reason
            earlier = None


def _judged(course: Course, error: NotebookNode) -> tuple[str, str]:
    """Return the sign of an answer whose check raised, and why, as the page of feedback will."""
    match = re.search(str(course.config.FeedbackPage.reason), error.evalue)
    reason = "".join(filter(None, match.groups())) if match else ""
    if error.ename == "NotImplementedError" or reason == "not written":
        return UNWRITTEN, ""
    if error.ename in ("Stopped", "CellTimeoutError"):
        _, _, where = error.evalue.partition(": stopped, ")
        return FAILS, "it took too long and was stopped" + (f", {where}" if where else "")
    first = error.evalue.strip().partition("\n")[0]
    return FAILS, reason or f"{error.ename}: {KERNELS_FILE.sub('(', first)}"


def pack(course: Course, topic: str, student: str) -> tuple[Path, list[str]]:
    """Write the zip to hand in, whole or not at all; return it, and the names in it."""
    files = [*(f"{name}.ipynb" for name in course.notebooks(topic)), RECORD]
    names = [f"{topic}/{file}" for file in files if (course.work / topic / file).is_file()]
    target = course.work / f"{student}-{topic}.zip"
    with atomic_write(target) as scratch, ZipFile(scratch, "w", ZIP_DEFLATED) as archive:
        for name in names:
            archive.write(course.work / name, name)
    return target, names


def identify(course: Course, given: str, called: str) -> str:
    """Return the id under which the student hands in: the one given, remembered, or asked for."""
    file = course.work / STUDENT
    student = given or (file.read_text(encoding="utf-8").strip() if file.is_file() else "")
    remedy = "make submit ID=NAME, or python -m tools.classroom.submit --id NAME"
    if not student:
        try:
            student = console.input(f"Your {called}, as your course knows it: ").strip()
        except EOFError:
            raise ToolError(f"your {called} is not known", remedy) from None
    if not USABLE.fullmatch(student):
        raise ToolError(
            f"{student!r} is no {called} that a course can have: it becomes part of a file's name",
            f"write it as your course does, without spaces and + / \\ : * ? [ ]: {remedy}",
        )
    write_if_changed(file, f"{student}\n".encode())
    return student


def check(course: Course, topic: str, student: str) -> None:
    """Print what the visible checks say of each notebook of an assignment.

    They are those of the release, as they are when it is graded.
    """
    table, notes = Table(box=None, show_header=False), list[str]()
    with Stages() as stages:
        for name in course.notebooks(topic):
            path, on_progress = course.work / topic / f"{name}.ipynb", stages.add(name)
            released = notebooks.read(course.released(topic, name))
            if Releases(course.exercises).knows(topic, path.name, path):
                notes.append(f"{path.name}: nothing is written yet.")
                continue
            try:
                notebook = intake.parse(name, path.read_bytes())
                now, checks = lab.locked(notebook), lab.locked(released)
                for cell in notebook.cells:
                    cell.source = checks.get(name_of(cell), cell.source)
                executed = execute(course, topic, notebook, student, on_progress)
                results = [*answers(course, executed, released)]
            except intake.Refused as error:
                notes.append(f"{error}. As it is, it cannot be graded.")
                continue
            except Exception as error:  # whatever is wrong with it, it can be handed in
                notes.append(f"{path.name} cannot be checked: {str(error).strip()[:300]}")
                continue
            signs = Counter(sign for sign, *_ in results)
            numbers = [f"{signs[sign]} {word}" for sign, word in STATES.items() if signs[sign]]
            table.add_row("", Text(path.name, "bold"), ", ".join(numbers))
            for sign, title, reason in results:
                told = "" if sign == AGREES else reason or STATES[sign]
                table.add_row(sign, title, Text(told))
            titles = headings(released)
            if changed := [titles[key] for key in checks if now.get(key) != checks[key]]:
                of_ = ", ".join(dict.fromkeys(changed))
                told = f"you have changed or deleted checks of: {of_}. The grader uses its own."
                notes.append(f"{path.name}: {told}")
    console.print(table)
    for note in notes:
        console.print(Text(note))


@command(
    argument("topic", nargs="?", metavar="TOPIC", help="the assignment, if not the last one saved"),
    argument("--id", dest="user", default="", help="the id under which your course knows you"),
)
def main(topic: str | None, user: str, course: Course = HERE) -> None:
    """Check an assignment, say what is unwritten and what fails, and pack it."""
    way = lab.submission_method(course)
    if way and way["how"] != lab.UPLOAD:
        raise ToolError("your class does not hand in a zip", way["text"])
    edited: dict[float, str] = {}
    for name in course.topics():
        lab.copy_for_work(course, name)
        for path in (course.work / name).glob("*.ipynb"):
            if not Releases(course.exercises).knows(name, path.name, path):
                edited[path.stat().st_mtime] = name
    if not (topic or edited):
        raise ToolError("nothing is written in work/ yet", "save your notebook in JupyterLab first")
    [topic] = course.choose([topic or edited[max(edited)]])
    student = identify(course, user, way.get("id", "user name"))
    check(course, topic, student)
    target, names = pack(course, topic, student)
    what = f"[bold]{target.relative_to(course.root)}[/] is what you hand in, as {student}"
    console.print(f"\n{what}. In it: {', '.join(names)}.", soft_wrap=True)
    if f"{topic}/{LAB}.ipynb" in names and f"{topic}/{RECORD}" not in names:
        console.print(f"There is no {RECORD}: it is written by the cell of the lab that trains.")
    console.print("Nothing was sent. Upload the file to the assignment on your course's page.")
