"""``gradebox grade`` gives the points of stock nbgrader.

It does so to a corpus of ordinary tests, of which one student hands in right answers, another wrong
ones, a third what was released, and to the example course of nbgrader's package, with and without
automatic tests. Each is graded as it comes, with its dry run.
"""

import contextlib
import shutil
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import nbgrader
import pytest
from courses import CONFIG, Assignment, Points, fill_in, write, write_files
from hostile.texts import split
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.apps.quickstartapp import QuickStartApp
from notebooks import needs_wasm
from ordinary import FILES, cases, sources

from gradebox.nbgrader import plan
from gradebox.nbgrader.course import Course
from gradebox.run.batch import Executor

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ordinary")]

COMPILED = "its modules are compiled for a machine"
NOT_IN_WASM = {
    "a seed set by torch.manual_seed reaches the answer": COMPILED,
    "a torch.Generator is passed in": COMPILED,
    "a frame of pandas is filtered, and compared by assert_frame_equal": COMPILED,
    "the test trains a module of the student's": COMPILED,
    "backward of a loss that the answer computes fills .grad": COMPILED,
    "a database is passed in": "sqlite3 is not in its Python",
    "a test runs a command and keeps what a magic returns": "it has no processes",
    "a warning of NumPy is an error for the test": "WebAssembly notes no division by zero, so "
    "that NumPy warns of none",
}
"""The cases that do not give their points in WebAssembly, and why; 68 do."""


class Graded(NamedTuple):
    """What nbgrader and ``gradebox grade`` give, and what gradebox says."""

    stock: Points
    ours: Points
    report: dict[str, Any]
    doubted: set[tuple[str, str]]
    tests: dict[tuple[str, str], plan.TestRun]


def doubted(report: dict[str, Any]) -> set[tuple[str, str]]:
    """Return the tests of wrong answers that pass isolated alone, which is told."""
    events = report["wrong"]["events"]
    return {(e["notebook"], e["cell"]) for e in events if e["kind"] == "fails-in-process"}


def handed_in(root: Path, without: Collection[str] = ()) -> Assignment:
    """Make a course with what three students have handed in."""
    chosen = [case for case in cases() if case.name not in without]
    for kind, nb in sources(chosen).items():
        write(root / f"source/all/{kind}.ipynb", nb)
    write_files(FILES, root / "source/all")
    write(root / "source/header.ipynb", new_notebook(cells=[new_code_cell("'of the course'")]))
    header = 'c.IncludeHeaderFooter.header = "source/header.ipynb"\n'
    (root / "nbgrader_config.py").write_text(CONFIG + header)
    assignment = Assignment(root, "all")
    released = assignment.release()
    students: dict[str, dict[str, str]] = {"right": {}, "wrong": {}, "blank": {}}
    for case in chosen:
        students["right"] |= case.right
        students["wrong"] |= case.wrong
    for student, answers in students.items():
        for path in released.glob("*.ipynb"):
            fill_in(root / f"submitted/{student}/all/{path.name}", path, answers)
        write_files(FILES, root / f"submitted/{student}/all")
    return assignment


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    """Return what became of the submissions; nbgrader has those with answers only."""
    folder = tmp_path_factory.mktemp("ordinary")
    assignment = handed_in(folder / "course")
    root = assignment.root
    stock = assignment.copy(folder / "stock")
    shutil.rmtree(stock.root / "submitted/blank")
    shutil.rmtree(root / "release")  # the header is no student's cell, though nothing else shows it
    autograded = stock.autograde()
    assert assignment.grade() == 0
    with contextlib.chdir(root):
        tests = Executor(Course(root, "all")).dry_run(2)
    return Graded(
        autograded,
        assignment.points(),
        report := assignment.report(),
        doubted(report),
        {(t.notebook, t.cell): t for t in tests},
    )


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_points_of_answers_match_nbgrader(graded, case):
    keys = [(case.kind, name) for name in case.points]
    for key, worth in zip(keys, case.points.values(), strict=True):
        assert graded.tests[key].answers == worth, graded.tests[key].why
        assert graded.tests[key].blank == 0
        assert graded.stock["right", *key] == graded.ours["right", *key]
        assert float(graded.ours["right", *key][0]) == worth
    assert float(graded.stock["wrong", *keys[-1]][0]) < worth
    for key in keys:
        if key not in graded.doubted:
            assert graded.ours["wrong", *key] == graded.stock["wrong", *key]


def test_remaining_cells_match_nbgrader_and_raise_no_event(graded):
    tests = {(case.kind, name) for case in cases() for name in case.points}
    others = {key: row for key, row in graded.stock.items() if key[1:] not in tests}
    assert len(others) == 2 * 3
    assert others.items() <= graded.ours.items()
    assert {key for key in graded.ours if key[0] != "blank"} == graded.stock.keys()
    for student in ("right", "blank"):
        assert graded.report[student] == {"state": "graded", "events": [], "why": ""}
    ways = Counter(test.way for test in graded.tests.values())
    assert ways == {"isolated": 45, "in-process": 39}
    assert len(graded.doubted) == 9  # a test asks for no value there


@needs_wasm
@pytest.mark.xdist_group("wasm")
def test_68_cases_give_the_same_points_in_webassembly(tmp_path):
    compiled = {name for name, why in NOT_IN_WASM.items() if why == COMPILED}
    assignment = handed_in(tmp_path / "course", without=compiled)
    assert assignment.grade("--sandbox=wasm") == 0
    points, told, same = assignment.points(), doubted(assignment.report()), set()
    for case in cases():
        if case.name not in compiled:
            keys, worth = [(case.kind, name) for name in case.points], [*case.points.values()]
            right = [float(points["right", *key][0]) for key in keys]
            is_refused = float(points["wrong", *keys[-1]][0]) < worth[-1]
            if right == worth and (is_refused or keys[-1] in told):
                same.add(case.name)
    assert same == {case.name for case in cases()} - NOT_IN_WASM.keys()
    assert len(same) == 68


PACKAGED = Path(nbgrader.__file__).parent / "docs/source/user_guide/submitted"
"""What two students hand in to nbgrader's example course."""


def answers() -> dict[str, dict[str, str]]:
    text = Path(__file__).with_name("courses").joinpath("example.txt").read_text(encoding="utf-8")
    return {name: dict(split(cells, "---")) for name, cells in split(text, "===")}


@pytest.mark.parametrize("options", [[], ["--autotest"]], ids=["example", "autotest"])
def test_points_of_nbgraders_example_match_nbgrader(tmp_path, options):
    root = tmp_path / "example"
    with contextlib.chdir(tmp_path):
        program = QuickStartApp()
        program.initialize([root.name, *options])
        program.start()
    with (root / "nbgrader_config.py").open("a") as file:
        file.write(CONFIG)
    example = Assignment(root, "ps1")
    for path in example.release().glob("*.ipynb"):
        for student, filled in answers().items():
            fill_in(root / f"submitted/{student}/ps1/{path.name}", path, filled)
    if not options:
        shutil.copytree(PACKAGED, root / "submitted", dirs_exist_ok=True)
    stock = example.copy(tmp_path / "stock")
    before = contents(root)
    assert example.grade() == 0
    assert example.points() == stock.autograde()
    assert {student for student, *_ in example.points()} >= answers().keys()
    report = example.report()
    assert report["otherwise"]["events"] == report["blank"]["events"] == []
    assert before.items() <= contents(root).items()


def contents(root: Path) -> dict[Path, bytes]:
    """Return the files of a course other than its gradebook."""
    files = (path for path in root.rglob("*") if path.is_file() and path.name != "gradebook.db")
    return {path: path.read_bytes() for path in files}
