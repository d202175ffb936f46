"""A small course of nbgrader, and a place to build a submission to it."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nbformat
from courses import Assignment, write
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook
from notebooks import answer, cell, name_of

from hostile.texts import sections

NAME = "numbers"
DUE = "2026-01-02 00:00:00 UTC"
SECONDS = 2
"""So much own time a cell may have."""
KEY = "kestrel-4711"
"""Stands in the hidden tests, and nowhere else."""
PASSWORD = "osprey-2208"
"""Stands in the grader's environment and in a file of the grader's."""

TESTS = {
    "squares": "test-squares",
    "means": "test-means",
    "running": "test-running",
    "digit": "share",
    "nearest": "test-nearest",
}
"""The answers that the machine grades, each with its test."""
POINTS = dict(zip(TESTS.values(), (2.0, 3.0, 2.0, 4.0, 2.0), strict=True))
NOTHING = dict.fromkeys(POINTS, 0.0)

TEXTS = sections("assignment.txt")
HONEST = {name: TEXTS[name] for name in (*TESTS, "words")}
WRONG = {name: TEXTS[f"wrong {name}"] for name in TESTS}
"""Answers that earn nothing."""

# What stock nbgrader and gradebox both read.
CONFIG = f"""c = get_config()
c.CourseDirectory.course_id = "hostile"
c.OverwriteCells.add_missing_cells = True
c.LateSubmissionPlugin.penalty_method = "zero"
c.Execute.timeout = {SECONDS}
c.Execute.extra_arguments = ["--log-level=ERROR"]
"""


def returning(value: str) -> dict[str, str]:
    """Return answers that all return the same odd value."""
    return {name: TEXTS[f"returning {name}"].replace("VALUE", value) for name in TESTS}


def assignment() -> Any:
    cells = [cell("setup", "import numpy")]
    for name, test in TESTS.items():
        text = f"### BEGIN SOLUTION\n{HONEST[name]}\n### END SOLUTION"
        cells += [answer(text, name), cell(test, TEXTS[test], POINTS[test])]
    cells.append(answer("Why?", "words", grade=True, points=5, make=new_markdown_cell))
    for node in cells:
        node.id = node.metadata.nbgrader.grade_id
    return new_notebook(cells=cells)


def create(root: Path, config: str = "") -> None:
    reference = "\n\n\n".join(["import numpy", *HONEST.values()][:-1])
    for name, text in {
        "nbgrader_config.py": CONFIG + config,
        "lib/reference/__init__.py": "",
        f"lib/reference/{NAME}.py": f"{reference}\n",
        "secret.txt": PASSWORD,
        f"source/{NAME}/drivers.py": TEXTS["drivers.py"] + "\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    write(root / f"source/{NAME}/{NAME}.ipynb", assignment())
    Assignment(root, NAME).release()
    with Gradebook(f"sqlite:///{root}/gradebook.db", "hostile") as book:
        book.update_or_create_assignment(NAME, duedate=DUE)


class Work:
    """A submission that is being built, from the released notebook on.

    Only the test listens at the ``port``; by the ``mark`` what a submission starts can be found
    among the processes.
    """

    def __init__(self, root: Path, student: str, port: int = 9, mark: str = "x") -> None:
        self.root, self.student, self.port, self.mark = root, student, port, mark
        self.folder = root / "submitted" / student / NAME
        self.file = self.folder / f"{NAME}.ipynb"
        shutil.copytree(root / "release" / NAME, self.folder)
        self.nb: Any = nbformat.read(self.file, as_version=4)

    def cell(self, name: str) -> Any:
        return self.nb.cells[self.index(name)]

    def index(self, name: str) -> int:
        return [*map(name_of, self.nb.cells)].index(name)

    def honest(self) -> None:
        self.answer(**HONEST)

    def answer(self, **texts: str) -> None:
        for name, text in texts.items():
            self.cell(name).source = text

    def insert(self, position: int, source: str) -> None:
        """Add a cell, in which the words in capitals stand for what they name."""
        text = f"# {self.student}\n{source}"
        for name, value in ("PORT", self.port), ("MARK", self.mark), ("ROOT", self.root):
            text = text.replace(name, str(value))
        new = new_code_cell(text, id=f"extra-{len(self.nb.cells)}")
        self.nb.cells.insert(position, new)

    def move(self, position: int, cells: Iterable[Any]) -> None:
        moved = [*cells]
        rest = [node for node in self.nb.cells if node not in moved]
        self.nb.cells = [*rest[:position], *moved, *rest[position:]]

    def become(self, constructor: Any, node: Any) -> None:
        new = constructor(node.source, id=node.id, metadata=node.metadata)
        self.nb.cells[self.nb.cells.index(node)] = new

    def saved(self) -> Path:
        """Hand in the notebook, and return its file, which is not written again."""
        self.save()
        self.nb = None
        return self.file

    def save(self) -> None:
        """Hand in the notebook, if it was not replaced by something else."""
        if self.nb is not None:
            self.file.write_text(nbformat.v4.writes(self.nb))

    def raw(self, content: bytes | str) -> None:
        self.nb = None
        self.file.write_bytes(content.encode() if isinstance(content, str) else content)
