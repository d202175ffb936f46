"""A toy course, with or without a lab, and what the tests of the commands do with it."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from optdl.checks.exercise import Exercise, Misconception
from tools import notebooks
from tools.classroom import release, results, sample_class
from tools.layout import RECORD, ROOT, Course

# nbgrader and Jupyter import each other's deprecated names; the course can do nothing about it.
MARKS = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:nbgrader"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:nbconvert"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:jupyter_client"),
    pytest.mark.xdist_group("nbgrader"),
]

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
    record = json.load(file)
assert record["user"] == user(), "the record is of another student"
losses = [run["curves"]["loss"] for run in record["runs"]]
assert losses == [[1.0, 0.5, 0.25], [1.0, 2.0]], "the losses are not those of the runs" """

RIGHT = {
    "user": sample_class.SOLVER,
    "runs": [{"curves": {"loss": [1.0, 0.5, 0.25]}}, {"curves": {"loss": [1.0, 2.0]}}],
}
RECORDS = {
    "another": (RIGHT, "the record is of another student"),
    "edited": (
        {"user": "edited", "runs": [{"curves": {"loss": [0.5]}}]},
        "the losses are not those of the runs",
    ),
    "missing": (None, "No such file or directory: 'record.json'"),
}
"""Who hands in nothing but a right lab with a wrong record of its run, and why it is refused."""


def _about(name: str, **more: Any) -> dict[str, Any]:
    base = {"grade": False, "solution": False, "locked": False, "task": False}
    return {"nbgrader": base | {"schema_version": 3, "grade_id": name} | more}


def _tests(cell: str, test: str) -> list[Any]:
    """Return a test that students see, for a point, and one that they do not, for two."""
    hidden = f"# More when graded.\n### BEGIN HIDDEN TESTS\n{test}\n### END HIDDEN TESTS"
    return [
        new_code_cell(
            source, id=name, metadata=_about(name, points=points, grade=True, locked=True)
        )
        for name, source, points in ((f"{cell}-visible", test, 1), (f"{cell}-hidden", hidden, 2))
    ]


def _exercise(name: str, body: str, test: str) -> list[Any]:
    cell = f"toy-{name}"
    source = (
        f'def {name}(x):\n    """Do it."""\n    ### BEGIN SOLUTION\n    {body}\n'
        "    ### END SOLUTION"
    )
    return [
        new_markdown_cell(f"## {name}", id=f"{cell}-task"),
        new_code_cell(source, id=cell, metadata=_about(cell, solution=True)),
        *_tests(cell, test),
    ]


def _notebook(*cells: Any) -> bytes:
    notebook = new_notebook(cells=list(cells), metadata=release.METADATA)
    notebook.nbformat_minor = 5
    return notebooks.to_bytes(notebook)


def toy() -> bytes:
    """Return a notebook with two exercises of three points and a question of four."""
    test = r"assert double(3) == 6, '\nLikely cause: you square; doubling adds.'"
    written = "Since both agree.\n\n### BEGIN MARK SCHEME\n4 points\n### END MARK SCHEME"
    about = _about("toy-why", grade=True, solution=True, points=4)
    return _notebook(
        new_markdown_cell("# Toy", id="toy-title"),
        *_exercise("double", "return x + x + 0 * x", test),
        *_exercise("triple", "return x + x + x + 0 * x", "assert triple(2) == 6"),
        new_markdown_cell(written, id="toy-why", metadata=about),
    )


def toy_lab() -> bytes:
    """Return a lab with a class to write, for three points, and a run to hand in, for one."""
    test = r"assert Line(3)(2) == 6, '\nLikely cause: you add; a slope multiplies.'"
    train = _about("toy-lab-train", locked=True) | {"tags": ["train"]}
    run = _about("toy-lab-run", points=1, grade=True, locked=True)
    return _notebook(
        new_markdown_cell("## user", id="toy-lab-user-task"),
        new_code_cell(USER, id="toy-lab-user", metadata=_about("toy-lab-user", solution=True)),
        new_markdown_cell("## line", id="toy-lab-line-task"),
        new_code_cell(LINE, id="toy-lab-line", metadata=_about("toy-lab-line", solution=True)),
        *_tests("toy-lab-line", test),
        new_markdown_cell("## run", id="toy-lab-run-task"),
        new_code_cell("trained = True", id="toy-lab-train", metadata=train),
        new_code_cell(RUN, id="toy-lab-run", metadata=run),
    )


def double(x: float) -> float:
    return x + x


def squares(x: float) -> float:
    return x * x


class Line:
    """Stand in for the reference, of which only the name is used."""


class Sum:
    """Add the slope."""

    def __init__(self, slope: float) -> None:
        self.slope = slope

    def __call__(self, x: float) -> float:
        return self.slope + x


def blocks(topic: str = "*", *, lab: bool = False) -> dict[str, Exercise]:
    """Stand in for the checks of a topic or of its lab: an exercise with one misconception."""
    if lab:
        mistake = Misconception("you add; a slope multiplies.", Sum)
        return {"LAB-0": Exercise("LAB-0", Line, misconceptions=[mistake])}
    mistake = Misconception("you square; doubling adds.", squares)
    return {"L0-01": Exercise("L0-01", double, misconceptions=[mistake])}


def make_course(root: Path, *topics: str, with_lab: bool = False) -> Course:
    """Make a course with a toy assignment, or with the same under other names."""
    course = Course(root)
    root.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "nbgrader_config.py", root)
    for topic in topics or ["toy"]:
        course.source(topic).parent.mkdir(parents=True)
        course.source(topic).write_bytes(toy())
    if with_lab:
        course.source("toy", "lab").write_bytes(toy_lab())
        course.record("toy").write_text(json.dumps(RIGHT))
    return course


def copy_of(course: Course, root: Path, *students: str) -> Course:
    """Copy a course with all that was made in it, or with the work of some students only."""
    shutil.copytree(course.root, root)
    made = Course(root)
    for name in {*made.submitters("toy")} - {*students} if students else ():
        shutil.rmtree(made.submitted / name)
    return made


def change(notebook: Path, cell: int, source: str) -> None:
    """Add to the source of a cell."""
    changed = notebooks.read(notebook)
    changed.cells[cell].source += source
    notebook.write_bytes(notebooks.to_bytes(changed))


def hand_in_wrong_records(course: Course) -> None:
    """Hand in the solver's lab under other names, with wrong records of its run."""
    right = (course.submitted / sample_class.SOLVER / "toy" / "lab.ipynb").read_text("utf-8")
    for student, (record, _) in RECORDS.items():
        folder = course.submitted / student / "toy"
        folder.mkdir(parents=True)
        (folder / "lab.ipynb").write_text(right.replace(sample_class.SOLVER, student), "utf-8")
        if record is not None:
            (folder / RECORD).write_text(json.dumps(record))


def answered(notebook: Path, double: str, triple: str, why: str = "") -> bytes:
    """Return a notebook with answers."""
    filled = notebooks.read(notebook)
    for cell in filled.cells:
        name = cell.id.removeprefix("toy-")
        if name in ("double", "triple"):
            body = {"double": double, "triple": triple}[name]
            cell.source = f"def {name}(x):\n    return {body}\n"
        elif name == "why" and why:
            cell.source = why
    return notebooks.to_bytes(filled)


def use(module: object, course: Course, *arguments: str) -> int:
    """Run one of the course's commands."""
    return int(module.main(*arguments, course=course))  # type: ignore[attr-defined]


def rows(course: Course) -> dict[str, results.Row]:
    """Return the results of all students who handed in."""
    return {row.student: row for row in results.rows(course, ["toy"])}
