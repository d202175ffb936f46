"""A toy course, with or without a lab, and what the tests of the commands do with it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools import notebooks
from tools.classroom import answers, results, sample_class
from tools.layout import RECORD, ROOT, Course

# nbgrader and Jupyter import each other's deprecated names; the course can do nothing about it.
NOISY = ("nbgrader", "nbconvert", "jupyter_client")
MARKS = [
    pytest.mark.filterwarnings(*(f"ignore::DeprecationWarning:{name}" for name in NOISY)),
    pytest.mark.xdist_group("nbgrader"),
]

TIMEOUT = 1
"""Seconds of own time for a cell: no load of the machine makes an answer late."""

USER = f'''def user():
    """Return your user name."""
    ### BEGIN SOLUTION
    return "{sample_class.SOLVER}"
    ### END SOLUTION'''

LINE = '''class Line:
    """A line through the origin."""

    def __init__(self, slope):
        """Keep the slope."""
        ### BEGIN SOLUTION
        self.slope = slope
        ### END SOLUTION

    def __call__(self, x):
        """Return the value at x."""
        ### BEGIN SOLUTION
        return self.slope * x + 0 * x
        ### END SOLUTION'''

RUN = """import json
with open("record.json") as file:
    assert json.load(file)["user"] == user(), "the record is of another student" """
RIGHT = {"user": sample_class.SOLVER}
RECORDS = {"another": RIGHT, "missing": None}
"""Who hands in nothing but a right lab, with a record that is not of the student's own run."""


FUNCTION = '''def {}(x):
    """Do it."""
    ### BEGIN SOLUTION
    return {}
    ### END SOLUTION'''


def _cell(name: str, source: str, kind: Any = new_code_cell, **about: Any) -> Any:
    """Return a cell, which is nbgrader's if anything is told about it."""
    base = dict.fromkeys(("grade", "solution", "locked", "task"), False)
    nbgrader = base | {"schema_version": 3, "grade_id": name} | about
    return kind(source, id=name, metadata={"nbgrader": nbgrader} if about else {})


def _exercise(name: str, source: str, test: str) -> list[Any]:
    """Return an answer, a test that students see, for a point, and one that is hidden, for two."""
    hidden = f"# More when graded.\n### BEGIN HIDDEN TESTS\n{test}\n### END HIDDEN TESTS"
    return [
        _cell(f"{name}-task", f"## {name.rpartition('-')[2]}", new_markdown_cell),
        _cell(name, source, solution=True),
        _cell(f"{name}-visible", test, points=1, grade=True, locked=True),
        _cell(f"{name}-hidden", hidden, points=2, grade=True, locked=True),
    ]


def _notebook(*cells: Any) -> bytes:
    notebook = new_notebook(cells=list(cells), metadata=notebooks.METADATA)
    notebook.nbformat_minor = 5
    return notebooks.to_bytes(notebook)


def toy() -> bytes:
    """Return a notebook with two exercises of three points and a question of four."""
    test = r"assert double(3) == 6, '\nLikely cause: you square; doubling adds.'"
    triple = FUNCTION.format("triple", "x + x + x + 0 * x")
    written = "Since both agree.\n\n### BEGIN MARK SCHEME\n4 points\n### END MARK SCHEME"
    return _notebook(
        _cell("toy-title", "# Toy", new_markdown_cell),
        *_exercise("toy-double", FUNCTION.format("double", "x + x + 0 * x"), test),
        *_exercise("toy-triple", triple, "assert triple(2) == 6"),
        _cell("toy-why", written, new_markdown_cell, grade=True, solution=True, points=4),
    )


def toy_lab() -> bytes:
    """Return a lab with a class to write, for three points, and a run to hand in, for one."""
    test = r"assert Line(3)(2) == 6, '\nLikely cause: you add; a slope multiplies.'"
    train = _cell("toy-lab-train", "trained = True", locked=True)
    train.metadata["tags"] = ["train"]
    return _notebook(
        _cell("toy-lab-user-task", "## user", new_markdown_cell),
        _cell("toy-lab-user", USER, solution=True),
        *_exercise("toy-lab-line", LINE, test),
        _cell("toy-lab-run-task", "## run", new_markdown_cell),
        train,
        _cell("toy-lab-run", RUN, points=1, grade=True, locked=True),
    )


def blocks(topic: str = "*", *, lab: bool = False) -> dict[str, Any]:
    """Stand in for the checks of a topic or of its lab: an exercise with one misconception."""
    name, wrong = "double", "def double(x):\n    return x * x"
    if lab:
        name, wrong = "Line", answers.right(LINE).replace("self.slope * x", "self.slope + x")
    mistake = SimpleNamespace(text=lambda name: wrong)
    return {name: SimpleNamespace(name=name, misconceptions=[mistake])}


def make_course(root: Path, *topics: str, with_lab: bool = False) -> Course:
    """Make a course with a toy assignment, or with the same under other names."""
    course = Course(root)
    root.mkdir(parents=True, exist_ok=True)
    shared = (ROOT / "nbgrader_config.py").read_text("utf-8")
    limits = f"c.Execute.timeout = c.WarmExecute.timeout = {TIMEOUT}\n"
    (root / "nbgrader_config.py").write_text(f"{shared}\n{limits}", "utf-8")
    for topic in topics or ["toy"]:
        course.source(topic).parent.mkdir(parents=True)
        course.source(topic).write_bytes(toy())
    if with_lab:
        course.source("toy", "lab").write_bytes(toy_lab())
        course.record("toy").write_text(json.dumps(RIGHT))
    return course


@contextmanager
def edited(path: Path) -> Iterator[Any]:
    """Give the notebook in a file to change, and write it."""
    notebook = notebooks.read(path)
    yield notebook
    path.write_bytes(notebooks.to_bytes(notebook))


def hand_in_wrong_records(course: Course) -> None:
    """Hand in the solver's lab under other names, with wrong records of its run."""
    right = (course.submitted / sample_class.SOLVER / "toy" / "lab.ipynb").read_text("utf-8")
    for student, record in RECORDS.items():
        folder = course.submitted / student / "toy"
        folder.mkdir(parents=True)
        (folder / "lab.ipynb").write_text(right.replace(sample_class.SOLVER, student), "utf-8")
        if record is not None:
            (folder / RECORD).write_text(json.dumps(record))


def answered(notebook: Path, double: str, triple: str, why: str = "") -> bytes:
    """Return a notebook with answers."""
    filled, bodies = notebooks.read(notebook), {"double": double, "triple": triple}
    sources = {f"toy-{name}": f"def {name}(x):\n    return {bodies[name]}\n" for name in bodies}
    sources |= {"toy-why": why} if why else {}
    for cell in filled.cells:
        cell.source = sources.get(cell.id, cell.source)
    return notebooks.to_bytes(filled)


def use(module: object, course: Course, *arguments: str) -> int:
    """Run one of the course's commands."""
    return int(module.main(*arguments, course=course))  # type: ignore[attr-defined]


def rows(course: Course) -> dict[str, results.Row]:
    """Return the results of all students who handed in."""
    return {row.student: row for row in results.rows(course, ["toy"])}
