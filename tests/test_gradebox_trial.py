"""Before a class is graded, its tests are tried on the instructor's own answers."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.api import Gradebook
from test_gradebox_cli import CONFIG, api, graded, write

from gradebox import cli
from gradebox.advice import mend
from gradebox.batch import Batch, Unready, Workshop
from gradebox.bridge.course import Course
from gradebox.bridge.trial import Points
from gradebox.process import pool

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.xdist_group("gradebox"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="gradebox grade needs fork"),
]

TRIED = CONFIG.replace("trial = False", "trial = True")
SOLUTION = "### BEGIN SOLUTION\n    return {}\n    ### END SOLUTION"
SQUARE = f"def square(x):\n    {SOLUTION.format('x * x')}"
TESTS = {
    "plain": "assert square(3) == 9",
    "inside": "assert 'math' in square.__globals__\nassert square(4) == 16",
    "helper": "assert square.__globals__\nhelper = square(2)\nassert helper == 4",
    "helped": "assert helper == 4",
    "wrong": "assert square(4) == 17",
    "free": "assert callable(square)",
}


def made(tests: dict[str, str] = TESTS, answer: str = SQUARE) -> Any:
    """Return the instructor's version of a notebook; each test is worth 2 points."""
    return new_notebook(
        cells=[
            new_code_cell("import math", id="start"),
            graded("code", "square", answer, solution=True),
            *(
                graded("code", name, source, grade=True, locked=True, points=2)
                for name, source in tests.items()
            ),
        ]
    )


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a course with one assignment, which the gradebook does not know yet."""
    (tmp_path / "nbgrader_config.py").write_text(TRIED)
    write(tmp_path / "source/toy/toy.ipynb", made())
    monkeypatch.chdir(tmp_path)
    # nbgrader calls alembic, which lies there
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    yield tmp_path
    pool.close()


def trials(root: Path) -> dict[str, Any]:
    found = Workshop(Course(root, "toy")).try_out()
    return {one.cell: one for one in found}


def test_a_test_that_needs_the_students_process_runs_beside(course: Path) -> None:
    found = trials(course)
    assert {name: one.moved for name, one in found.items()} == {
        "plain": False,
        "inside": True,
        "helper": True,
        "helped": True,  # it uses a name that only the one before it makes
        "wrong": False,
        "free": False,
    }
    assert not any(one.is_lost for one in found.values())
    assert found["inside"].together.answers == 2
    assert found["inside"].apart.answers == 0
    assert found["inside"].why.startswith("AttributeError")


def test_own_answers_that_lose_points_and_blank_ones_that_get_some_are_told(course: Path) -> None:
    found = trials(course)
    assert [name for name, one in found.items() if one.fails] == ["wrong"]
    assert [name for name, one in found.items() if one.is_free] == ["free"]


def test_what_is_marked_in_the_notebook_is_left_so(course: Path) -> None:
    nb = made()
    for cell in nb.cells[2:]:
        cell.metadata["gradebox"] = {"beside": True}
    write(course / "source/toy/toy.ipynb", nb)
    assert not any(one.moved for one in trials(course).values())


def test_check_tells_and_marks(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "toy"]) == 1  # for the test that is wrong
    said = capsys.readouterr().out
    assert "toy/inside: mark it, or use what a function returns, not what it is made of" in said
    assert "toy/wrong: mend the test or the answer" in said
    assert "add --write" in said
    assert "beside" not in (course / "source/toy/toy.ipynb").read_text()
    cli.main(["check", "toy", "--write"])
    nb = nbformat.read(course / "source/toy/toy.ipynb", as_version=4)
    marked = [cell.id for cell in nb.cells if cell.metadata.get("gradebox", {}).get("beside")]
    assert marked == ["inside", "helper", "helped"]
    nbformat.validate(nb)
    capsys.readouterr()
    cli.main(["check", "toy"])
    assert "mark it" not in capsys.readouterr().out


def test_check_without_a_notebook(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "other"]) == 2
    assert "expected your own notebooks in" in capsys.readouterr().err


def test_mends_are_for_what_is_the_matter(course: Path) -> None:
    found = trials(course)
    assert mend(found["plain"]) == ""
    assert "made of" in mend(found["helper"])
    assert "mark it" in mend(found["helped"])


@pytest.fixture
def released(course: Path) -> Path:
    """Return the course with its assignment released and handed in by two students."""
    result = api(course).generate_assignment("toy")
    assert result["success"], result
    for student, answer in (("right", "return x * x"), ("wrong", "return x + x")):
        nb = made(answer=f"def square(x):\n    {answer}")
        write(course / f"submitted/{student}/toy/toy.ipynb", nb)
    return course


def points(root: Path) -> dict[str, dict[str, float]]:
    with Gradebook(f"sqlite:///{root}/gradebook.db", "toy") as book:
        return {
            one.student.id: {
                grade.name: grade.auto_score
                for notebook in one.notebooks
                for grade in notebook.grades
            }
            for one in book.assignment_submissions("toy")
        }


def test_a_class_is_graded_as_in_one_process_and_that_is_said_first(
    released: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["grade", "toy"]) == 0
    said = capsys.readouterr().out
    first = said.index("Beside the student's code run toy/inside, toy/helper, toy/helped")
    assert first < said.index("Graded 2")
    assert "Your own answers do not get all points of toy/wrong." in said
    assert "A blank notebook gets points of toy/free." in said
    assert "everyone" in said
    full = dict.fromkeys(("plain", "inside", "helper", "helped", "free"), 2.0)
    of_two = {"helper": 2.0, "helped": 2.0, "free": 2.0}  # 2 + 2 is 2 · 2
    assert points(released) == {
        "right": full | {"wrong": 0.0},
        "wrong": dict.fromkeys(full, 0.0) | {"wrong": 0.0} | of_two,
    }
    told = json.loads((released / ".gradebox/toy.json").read_text())
    assert any("inside ran beside" in flag for flag in told["right"]["flags"])


def test_the_same_tests_are_tried_once(released: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli.main(["grade", "toy"]) == 0
    before = (released / ".gradebox/trials/toy.json").read_text()
    monkeypatch.setattr(Workshop, "try_out", lambda self: pytest.fail("tried again"))
    assert cli.main(["grade", "toy"]) == 0
    assert (released / ".gradebox/trials/toy.json").read_text() == before


def test_a_change_of_the_tests_asks_for_another_trial(released: Path) -> None:
    assert cli.main(["grade", "toy"]) == 0
    write(released / "source/toy/toy.ipynb", made(TESTS | {"inside": "assert square(5) == 25"}))
    assert api(released).generate_assignment("toy", force=True)["success"]
    assert [one.cell for one in Batch(Course(released, "toy")).prepare() if one.moved] == [
        "helper",
        "helped",
    ]


def test_what_can_be_graded_neither_apart_nor_beside_is_refused(course: Path) -> None:
    """A test that runs beside needs a module that the student's process does not get."""
    (course / "secret_checks.py").write_text("def check(square):\n    assert square(2) == 4\n")
    (course / "nbgrader_config.py").write_text(
        f"{TRIED}c.WarmExecute.imports = ['secret_checks']\n"
        "c.WarmExecute.hollow = ['secret_checks']\n"
    )
    test = "assert square.__globals__\nfrom secret_checks import check\ncheck(square)"
    write(course / "source/toy/toy.ipynb", made({"both": test}))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(course))
        patch.setenv("PYTHONPATH", str(course))
        assert api(course).generate_assignment("toy")["success"]
        with pytest.raises(Unready, match="cannot grade toy/both"):
            Batch(Course(course, "toy")).prepare()


OWN_KIND = """class Number:
    def __init__(self, value):
        self.value = value
    def __eq__(self, other):
        return self.value == getattr(other, "value", other)

def square(x):
    return Number({})
"""


@pytest.mark.parametrize(("value", "flagged"), [("x * x", True), ("x + x", False)])
def test_a_right_answer_of_another_kind_than_your_own_is_flagged(
    course: Path, value: str, flagged: bool
) -> None:
    """Its class has an operator that a stand-in has not; in one process it gets the point."""
    write(course / "source/toy/toy.ipynb", made({"plain": TESTS["plain"]}))
    assert api(course).generate_assignment("toy")["success"]
    nb = made({"plain": TESTS["plain"]}, OWN_KIND.format(value))
    write(course / "submitted/ada/toy/toy.ipynb", nb)
    assert cli.main(["grade", "toy"]) == 0
    assert points(course) == {"ada": {"plain": 0.0}}
    flags = json.loads((course / ".gradebox/toy.json").read_text())["ada"]["flags"]
    assert flags == (
        [
            "cell plain gives 2 points in one process, and 0 apart from the student's code "
            "(a stand-in for a Number): look at it"
        ]
        if flagged
        else []
    )


RECORD = """import json, os
with open("record.json") as file:
    record = json.load(file)
assert record["user"] == os.environ.get("GRADEBOX_STUDENT", "the instructor")
"""


def test_a_file_that_each_student_makes_is_the_instructors_only_in_the_trial(course: Path) -> None:
    """The file beside the source notebook is found by the trial, and by no submission."""
    with (course / "nbgrader_config.py").open("a") as file:
        file.write('c.Autograde.exclude_overwriting = {"toy": ["record.json"]}\n')
        file.write('c.Execute.skip_cells_with_tag = "train"\n')
    nb = made({"record": RECORD})
    train = graded("code", "train", "open('record.json', 'w').write('{}')", locked=True)
    train.metadata["tags"] = ["train"]
    nb.cells.insert(2, train)
    write(course / "source/toy/toy.ipynb", nb)
    (course / "source/toy/record.json").write_text('{"user": "the instructor"}')
    assert trials(course)["record"].graded == Points(2, 2)
    assert api(course).generate_assignment("toy")["success"]
    for student, user in {"ada": "ada", "eve": "ada", "none": None}.items():
        write(course / f"submitted/{student}/toy/toy.ipynb", nb)
        if user:
            text = json.dumps({"user": user})
            (course / f"submitted/{student}/toy/record.json").write_text(text)
    assert cli.main(["grade", "toy"]) == 0
    assert {name: one["record"] for name, one in points(course).items()} == {
        "ada": 2,
        "eve": 0,
        "none": 0,
    }
    why = next(cell for cell in graded_cells(course, "none") if cell.id == "record").outputs
    assert "FileNotFoundError" in [one.get("ename") for one in why]


def graded_cells(root: Path, student: str) -> list[Any]:
    path = root / "autograded" / student / "toy/toy.ipynb"
    return list(nbformat.read(path, as_version=4).cells)
