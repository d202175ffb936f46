"""Courses that others made: each cell gets the points that stock nbgrader gives.

nbgrader's own example course is taken from the installed package, and graded by ``nbgrader
autograde`` with a kernel for each notebook. The courses in ``tests/courses`` are modelled on public
ones; what stock nbgrader gives is found in one IPython, and for one submission of each with a
kernel, too. Both are graded by ``gradebox grade`` as it comes, with its dry run.
"""

import contextlib
import itertools
import multiprocessing
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import nbformat
import nbgrader
import pytest
from courses import STUDENTS, Course, code, courses, hand_in
from courses.grading import CONFIG, Assignment, Points, write, write_files
from nbgrader.apps.quickstartapp import QuickStartApp
from ordinary.one_process import run, start

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.xdist_group("courses"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="gradebox grade needs fork"),
]

COURSES = courses()
ANSWERED = ("solution", "another")

DIFFERENT = {
    ("documentation", "wrong", "farthest-without-max"): "the patch is in the process of the tests",
    ("randomized", "careless", "totals-of-market"): "the rows that the answer removes are a copy",
    ("randomized", "careless", "totals-drawn"): "the rows that the answer removes are a copy",
}
"""Why gradebox gives other points than stock nbgrader: by course, student and cell."""

MODULES = ("matplotlib.figure", "networkx", "numpy", "scipy.sparse")

PACKAGED = Path(nbgrader.__file__).parent / "docs/source/user_guide/submitted"
"""What two students hand in to nbgrader's example course."""

EXAMPLE = {
    "otherwise": {
        "squares": """
        def squares(n):
            if not n >= 1:
                raise ValueError(n)
            found = []
            while len(found) < n:
                found.append((len(found) + 1) * (len(found) + 1))
            return found
        """,
        "sum_of_squares": """
        def sum_of_squares(n):
            total = 0
            for square in squares(n):
                total += square
            return total
        """,
    },
    "mistaken": {
        "squares": "def squares(n):\n    return [i ** 2 for i in range(n)]",
        "sum_of_squares": "def sum_of_squares(n):\n    return n * (n + 1) * (2 * n + 1) // 6",
        "sum_of_squares_equation": "$n^2$",
    },
    "careless": {
        "squares": "def squares(n):\n    return [i ** 2 for i in range(1, n + 1)]",
        "sum_of_squares": "def sum_of_squares(n):\n    return sum(square(n))",
        "cell-d3df8cd59fd0eb74": "my_dictionary = {'one': '1', 'two': '2', 'three': '3'}",
    },
    "blank": {},
}
"""Answers to nbgrader's example course by student and cell."""

Scores = dict[str, float]


class Graded(NamedTuple):
    """What all cells of an assignment got, by student, notebook and cell, and what happened."""

    stock: Points
    ours: Points
    report: dict[str, Any]
    is_unchanged: bool
    """Whether all files of the course are what they were."""


def quickstart(root: Path, students: Iterable[str], *options: str) -> Assignment:
    """Return nbgrader's example course, with submissions of some students."""
    with contextlib.chdir(root.parent):
        program = QuickStartApp()
        program.initialize([root.name, *options])
        program.start()
    with (root / "nbgrader_config.py").open("a") as file:
        file.write(CONFIG)
    made = Assignment(root, "ps1")
    released = made.release()
    for path, student in itertools.product(released.glob("*.ipynb"), students):
        nb = nbformat.read(path, as_version=4)
        answers = {name: dedent(answer).strip() for name, answer in EXAMPLE[student].items()}
        write(root / f"submitted/{student}/ps1/{path.name}", hand_in(nb, answers))
    return made


def modelled(root: Path, made: Mapping[str, Course], students: Sequence[str]) -> Assignment:
    """Return an assignment with a notebook for each of these courses, with submissions."""
    source = root / "source/all"
    for name, course in made.items():
        write(source / f"{name}.ipynb", course.source())
        write_files(course.files, source)
    (root / "nbgrader_config.py").write_text(CONFIG)
    assignment = Assignment(root, "all")
    released = assignment.release()
    for name, course in made.items():
        nb = nbformat.read(released / f"{name}.ipynb", as_version=4)
        for student in students:
            folder = root / f"submitted/{student}/all"
            write(folder / f"{name}.ipynb", hand_in(nb, course.answers(student)))
            write_files(course.files, folder)
    return assignment


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Graded]:
    """Return what all cells got; of the courses in ``tests``, nbgrader grades ``mixed`` only."""
    folder = tmp_path_factory.mktemp("graded")
    example = quickstart(folder / "example", EXAMPLE)
    shutil.copytree(PACKAGED, example.root / "submitted", dirs_exist_ok=True)
    autotest = quickstart(folder / "autotest", ["otherwise", "careless"], "--autotest")
    ours = modelled(folder / "modelled", COURSES, [*STUDENTS, "mixed"])
    made = {"example": example, "autotest": autotest, "modelled": ours}
    copies = {name: one.copy(folder / f"{name}-stock") for name, one in made.items()}
    wanted = {"modelled": ["mixed"]}
    with ThreadPoolExecutor(1) as thread:  # kernels of two programs may take the same ports
        stock = {
            name: thread.submit(copy.autograde, wanted.get(name, []))
            for name, copy in copies.items()
        }
        before = {name: contents(assignment.root) for name, assignment in made.items()}
        assert [assignment.grade() for assignment in made.values()] == [0, 0, 0]
        return {
            name: Graded(
                stock[name].result(),
                assignment.points(),
                assignment.report(),
                before[name].items() <= contents(assignment.root).items(),
            )
            for name, assignment in made.items()
        }


@pytest.fixture(scope="module")
def in_one_process(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Scores]:
    """Return what all cells of our courses get in one IPython, by course and student."""
    folder = tmp_path_factory.mktemp("in_one_process")
    with ProcessPoolExecutor(
        max_workers=1,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=start,
        initargs=(folder / "profile", MODULES),
    ) as process:
        found = {}
        for (name, course), student in itertools.product(COURSES.items(), [*STUDENTS, "mixed"]):
            beside = folder / name / student
            beside.mkdir(parents=True)
            write_files(course.files, beside)
            cells, sources, worth = code(course.submission(student))
            ran = process.submit(run, sources, beside, worth).result()
            scores = {cell: one.points for cell, one in zip(cells, ran, strict=True)}
            found[name, student] = {test: scores[test] for test in course.points()}
    return found


@pytest.mark.parametrize("name", ["example", "autotest"])
def test_nbgraders_example_gets_what_nbgrader_gives(graded: dict[str, Graded], name: str) -> None:
    stock, ours, *_ = graded[name]
    assert {"otherwise", "careless"} <= {student for student, *_ in stock}
    assert ours.keys() == stock.keys()
    differ = {
        (name, student, cell)
        for student, notebook, cell in stock
        if ours[student, notebook, cell] != stock[student, notebook, cell]
    }
    assert differ == expected(name)


@pytest.mark.parametrize("name", COURSES)
def test_a_course_is_a_measure(in_one_process: dict[tuple[str, str], Scores], name: str) -> None:
    worth = {test: points for test, points in COURSES[name].points().items() if points}
    for test, points in worth.items():
        scores = {student: in_one_process[name, student][test] for student in STUDENTS}
        assert {scores[student] for student in ANSWERED} == {points}, test
        assert min(scores.values()) < points, test


@pytest.mark.parametrize("name", COURSES)
def test_a_kernel_gives_what_one_process_gives(
    graded: dict[str, Graded], in_one_process: dict[tuple[str, str], Scores], name: str
) -> None:
    assert of(graded["modelled"].stock, name, "mixed") == in_one_process[name, "mixed"]


@pytest.mark.parametrize("name", COURSES)
def test_a_course_gets_what_nbgrader_gives(
    graded: dict[str, Graded], in_one_process: dict[tuple[str, str], Scores], name: str
) -> None:
    differ = set()
    for student in (*STUDENTS, "mixed"):
        ours = of(graded["modelled"].ours, name, student)
        stock = in_one_process[name, student]
        assert ours.keys() == stock.keys()
        differ |= {(name, student, test) for test in stock if ours[test] != stock[test]}
    assert differ == expected(name)


@pytest.mark.parametrize("name", ["example", "autotest", "modelled"])
def test_what_students_were_given_is_no_event(graded: dict[str, Graded], name: str) -> None:
    report = graded[name].report
    for student in {"solution", "another", "otherwise", "blank"} & report.keys():
        assert report[student]["events"] == []
    assert graded[name].is_unchanged


def contents(root: Path) -> dict[Path, bytes]:
    """Return the files of a course other than its gradebook."""
    files = (path for path in root.rglob("*") if path.is_file() and path.name != "gradebook.db")
    return {path: path.read_bytes() for path in files}


def expected(name: str) -> set[tuple[str, str, str]]:
    """Return what is known to differ in a course."""
    return {key for key in DIFFERENT if key[0] == name}


def of(found: Points, name: str, student: str) -> Scores:
    """Return the scores of the tests in a notebook that gradebook and student have."""
    return {test: float(found[student, name, test][0]) for test in COURSES[name].points()}
