"""A small course of nbgrader, and a place to build a submission to it."""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from traitlets.config.loader import PyFileConfigLoader

NAME = "numbers"
DUE = "2026-01-02 00:00:00 UTC"
SECONDS = 2
"""So much own time a cell may have."""

KEY = "kestrel-4711"
"""Stands in the hidden tests, and nowhere else."""
PASSWORD = "osprey-2208"
"""Stands in the grader's environment and in a file of the grader's."""

POINTS = {
    "test-squares": 2.0,
    "test-means": 3.0,
    "test-running": 2.0,
    "share": 4.0,
    "test-nearest": 2.0,
}
"""What the cells that are graded by the machine are worth."""
NOTHING = dict.fromkeys(POINTS, 0.0)

WRONG = {
    "squares": "def sum_of_squares(x):\n    return 0.0",
    "means": "def means(rows):\n    return 0.0",
    "running": (
        "class Running:\n    count = 0\n    def add(self, x):\n        pass\n"
        "    def mean(self):\n        return 0.0"
    ),
    "digit": "def first_digit(n):\n    return 0",
    "nearest": "def nearest(numbers, distance):\n    return 0.0",
}
"""Answers that earn nothing."""

# What stock nbgrader and gradebox both read.
CONFIG = f"""c = get_config()
c.CourseDirectory.course_id = "hostile"
c.OverwriteCells.add_missing_cells = True
c.LateSubmissionPlugin.penalty_method = "zero"
c.Execute.timeout = {SECONDS}
c.Execute.extra_arguments = ["--log-level=ERROR"]
"""

HONEST = {
    "squares": "def sum_of_squares(x):\n    return float((numpy.asarray(x) ** 2).sum())",
    "means": "def means(rows):\n    return [sum(row) / len(row) for row in rows]",
    "running": (
        "class Running:\n"
        "    def __init__(self):\n        self.count, self.total = 0, 0.0\n"
        "    def add(self, x):\n        self.count += 1\n        self.total += x\n"
        "    def mean(self):\n        return self.total / self.count"
    ),
    "digit": "def first_digit(n):\n    return int(str(n)[0])",
    "nearest": "def nearest(numbers, distance):\n    return min(numbers, key=distance)",
    "words": "The mean of squares is at least the square of the mean.",
}

DRIVERS = """def record(kind, numbers):
    running = kind()
    for number in numbers:
        running.add(number)
    return running.mean(), running.count
"""
"""Lies beside the notebook, and is released with it."""

TESTS = {
    "test-squares": f"""got = sum_of_squares(numpy.array([1.0, 2.0]))
assert numpy.shape(got) == () and numpy.allclose(got, 5.0)
### BEGIN HIDDEN TESTS
key = "{KEY}"
assert numpy.allclose(sum_of_squares(numpy.arange(8.0)), 140.0)
### END HIDDEN TESTS""",
    "test-means": """assert means([[1.0, 3.0]]) == [2.0]
### BEGIN HIDDEN TESTS
assert means([[1.0, 2.0, 6.0], [4.0]]) == [3.0, 4.0]
### END HIDDEN TESTS""",
    "test-running": """import drivers
import gradebox
mean, count = gradebox.observe(drivers.record, Running, [2.0, 4.0])
assert mean == 3.0
### BEGIN HIDDEN TESTS
assert count == 2
### END HIDDEN TESTS""",
    "test-nearest": """from statistics import fmean
def far(x):
    return abs(x - 2.0)
assert abs(nearest([5.0, 1.0, 9.0], far) - 1.0) < 1e-9
### BEGIN HIDDEN TESTS
assert abs(nearest([6.5, -7.0], far) - 6.5) < 1e-9 and fmean([6.5, -7.0]) == -0.25
### END HIDDEN TESTS""",
    "share": "sum(first_digit(n) == digit for n, digit in ((7, 7), (42, 4), (905, 9), (1234, 1)))",
}


def _cell(kind: str, name: str, source: str, **more: Any) -> Any:
    metadata = {"grade": False, "solution": False, "locked": False, "task": False}
    metadata |= {"grade_id": name, "schema_version": 3, **more}
    cell = new_code_cell(source) if kind == "code" else new_markdown_cell(source)
    cell.id, cell.metadata = name, nbformat.from_dict({"nbgrader": metadata})
    return cell


def _answer(name: str) -> Any:
    text = f"### BEGIN SOLUTION\n{HONEST[name]}\n### END SOLUTION"
    return _cell("code", name, text, solution=True)


def _test(name: str) -> Any:
    return _cell("code", name, TESTS[name], grade=True, locked=True, points=POINTS[name])


def assignment() -> Any:
    """Return the instructor's notebook."""
    pairs = [("squares", "test-squares"), ("means", "test-means"), ("running", "test-running")]
    cells = [_cell("code", "setup", "import numpy", locked=True)]
    for answer, test in [*pairs, ("digit", "share"), ("nearest", "test-nearest")]:
        cells += [_answer(answer), _test(test)]
    cells.append(_cell("markdown", "words", "Why?", grade=True, solution=True, points=5))
    return new_notebook(cells=cells)


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Be in a folder, with this Python's programs on the path."""
    here, path = Path.cwd(), os.environ["PATH"]
    os.chdir(folder)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{path}"
    try:
        yield
    finally:
        os.chdir(here)
        os.environ["PATH"] = path


def create(root: Path, config: str = "") -> None:
    """Make the course, and release its assignment."""
    root.mkdir(parents=True)
    (root / "nbgrader_config.py").write_text(CONFIG + config)
    (root / "lib/reference").mkdir(parents=True)
    (root / "lib/reference/__init__.py").write_text("")
    reference = "\n\n\n".join(["import numpy", *HONEST.values()][:-1])
    (root / f"lib/reference/{NAME}.py").write_text(reference + "\n")
    (root / "secret.txt").write_text(PASSWORD)
    (root / f"source/{NAME}").mkdir(parents=True)
    nbformat.write(assignment(), root / f"source/{NAME}/{NAME}.ipynb")
    (root / f"source/{NAME}/drivers.py").write_text(DRIVERS)
    with _inside(root):
        settings = PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
        api = NbGraderAPI(config=settings)
        api.coursedir.root = str(root)
        result = api.generate_assignment(NAME)
    if not result["success"]:
        raise RuntimeError(f"the assignment was not released: {result['log']}")
    with Gradebook(f"sqlite:///{root}/gradebook.db", "hostile") as book:
        book.update_or_create_assignment(NAME, duedate=DUE)


def _name(cell: Any) -> str:
    return str(cell.metadata.get("nbgrader", {}).get("grade_id"))


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
        """Return a cell by its name in nbgrader."""
        return next(cell for cell in self.nb.cells if _name(cell) == name)

    def index(self, name: str) -> int:
        """Return where a cell stands."""
        return self.nb.cells.index(self.cell(name))

    def honest(self) -> None:
        """Answer everything, and rightly."""
        self.answer(**HONEST)

    def answer(self, **texts: str) -> None:
        """Write answers."""
        for name, text in texts.items():
            self.cell(name).source = text

    def first(self, source: str) -> None:
        """Add a cell before the first answer."""
        self.nb.cells.insert(1, self._extra(source))

    def last(self, source: str) -> None:
        """Add a cell at the end."""
        self.nb.cells.append(self._extra(source))

    def _extra(self, source: str) -> Any:
        text = f"# {self.student}\n{source}"
        for name, value in ("PORT", self.port), ("MARK", self.mark), ("ROOT", self.root):
            text = text.replace(name, str(value))
        cell = new_code_cell(text)
        cell.id = f"extra-{len(self.nb.cells)}"
        return cell

    def move(self, position: int, cells: Iterable[Any]) -> None:
        """Move cells, together."""
        moved = [*cells]
        rest = [cell for cell in self.nb.cells if cell not in moved]
        self.nb.cells = [*rest[:position], *moved, *rest[position:]]

    def become(self, constructor: Any, cell: Any) -> None:
        """Make a cell into one of another kind, of the same text."""
        new = constructor(cell.source)
        new.id, new.metadata = cell.id, cell.metadata
        self.nb.cells[self.nb.cells.index(cell)] = new

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
        """Hand in other content in place of the notebook."""
        self.nb = None
        self.file.write_bytes(content.encode() if isinstance(content, str) else content)
