"""The corpus of ordinary tests, graded by ``gradebox grade``: the points of stock nbgrader.

The notebooks are the instructor's; one student hands in the right answers, another the wrong ones.
"""

import contextlib
import os
from collections import Counter

import pytest
from courses.grading import CONFIG, Assignment, write, write_files
from ordinary import FILES, KINDS, Case, assignment_of, cases

from gradebox.nbgrader import dry_run
from gradebox.nbgrader.course import Course
from gradebox.run.executor import Executor

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.xdist_group("gradebox"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="gradebox grade needs fork"),
]

WAYS = {"isolated": 52, "in-process": 59}
"""How many of the tests run in which way."""

FREE = {
    "the answer must leave the global generator as it is": "the generator is the other process's",
    "a warning of NumPy is an error for the test": "filters of warnings are the other process's",
    "a function of a library is forbidden by a patch": "the patch is in the other process",
    "an argument must not be changed": "the argument is a copy",
    "the result must not be the argument": "the result is a copy",
    "an array that is returned must not be a view of the argument": "the result is a copy",
    "the rows of a result must not be the same list": "each row is a copy",
    "a variable must hold a copy of another": "the values are copies",
    "a class must not have an attribute": "a stub has no attributes",
    "a result must be of a type itself, not of a class derived from it": "a dict arrives",
    "an error must be of a class itself, not of one derived from it": "the built-in class arrives",
    "no file must be left behind": "the answer has another folder",
    "a file beside the notebook must stay as it is": "the answer has another folder",
    "a function of Python's is forbidden by another of the same name": "the name is the test's",
}
"""Wrong answers that get points isolated although stock nbgrader gives none, and why."""


class Graded:
    """What ``gradebox grade`` says of the corpus."""

    def __init__(self, assignment: Assignment) -> None:
        assert assignment.grade() == 0
        self.points = {key: float(row[0]) for key, row in assignment.points().items()}
        self.report = assignment.report()
        with contextlib.chdir(assignment.root):
            tests = Executor(Course(assignment.root, assignment.name)).dry_run(2)
        self.tests: dict[tuple[str, str], dry_run.TestRun] = {
            (t.notebook, t.cell): t for t in tests
        }


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    """Return what became of both submissions."""
    root = tmp_path_factory.mktemp("ordinary")
    (root / "nbgrader_config.py").write_text(CONFIG)
    folders = {name: root / f"submitted/{name}/all" for name in ("right", "wrong")}
    for folder in (root / "source/all", *folders.values()):
        for kind in KINDS:
            write(folder / f"{kind}.ipynb", assignment_of(kind, wrong=folder == folders["wrong"]))
        write_files(FILES, folder)
    assignment = Assignment(root, "all")
    assignment.release()
    return Graded(assignment)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_right_answer_gets_its_point_and_a_wrong_one_none(
    graded: Graded, case: Case, request: pytest.FixtureRequest
) -> None:
    test = graded.tests[case.kind, case.id]
    assert test.answers == 1, test.why
    assert graded.points["right", case.kind, case.id] == 1
    if case.name in FREE:
        request.applymarker(pytest.mark.xfail(strict=True, reason=FREE[case.name]))
    assert test.blank == 0
    assert graded.points["wrong", case.kind, case.id] == 0


def test_right_answers_are_no_event(graded: Graded) -> None:
    assert graded.report["right"] == {"state": "graded", "events": [], "why": ""}


def test_so_many_run_isolated(graded: Graded) -> None:
    assert Counter(test.way for test in graded.tests.values()) == WAYS
