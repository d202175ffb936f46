"""The corpus of ordinary tests: in one process each right answer gets its point, no wrong one does.

One process runs them all, so that the state of this one is neither used nor changed.
"""

import ast
import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from ordinary import KINDS, Case, cases
from ordinary.one_process import Ran, run, start

CASES = cases()
WRONG = [case for case in CASES if case.wrong]

MOST_SECONDS = 2
"""The processor time that a cell may take."""

Run = Callable[..., list[Ran]]


@pytest.fixture(scope="module")
def run_cells(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Return a function that runs the cells of a notebook in a folder, in another process."""
    with ProcessPoolExecutor(
        max_workers=1,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=start,
        initargs=(tmp_path_factory.mktemp("profile"),),
    ) as process:
        yield lambda *arguments: process.submit(run, *arguments).result()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_right_answer_gets_its_point(run_cells: Run, tmp_path: Path, case: Case) -> None:
    for ran in run_cells(case.cells(case.answer), tmp_path):
        assert not ran.failed, ran.shown
        assert ran.points == 1, ran.shown
        assert ran.seconds < MOST_SECONDS


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.name)
def test_a_wrong_answer_gets_no_point(run_cells: Run, tmp_path: Path, case: Case) -> None:
    answer, *_, test = run_cells(case.cells(case.wrong), tmp_path)
    assert not answer.failed, answer.shown
    assert test.points == 0, test.shown
    assert test.seconds < MOST_SECONDS


@pytest.mark.parametrize("wrong", [False, True], ids=["right", "wrong"])
def test_all_cases_may_stand_in_one_notebook(run_cells: Run, tmp_path: Path, wrong: bool) -> None:
    given = [(case, case.wrong if wrong else case.answer) for case in CASES]
    notebook = [(case, case.cells(answer)) for case, answer in given]
    ran = iter(run_cells([cell for _, cells in notebook for cell in cells], tmp_path))
    last = {case.name: [next(ran) for _ in cells][-1] for case, cells in notebook}
    expected = {case.name: float(not wrong) for case in (WRONG if wrong else CASES)}
    assert {name: last[name].points for name in expected} == expected


def test_names_of_cases_are_unique() -> None:
    assert [name for name, count in Counter(case.name for case in CASES).items() if count > 1] == []


def test_each_kind_has_cases() -> None:
    assert list(dict.fromkeys(case.kind for case in CASES)) == list(KINDS)


def defined(source: str) -> set[str]:
    """Return the names that a student's cell defines, other than those of modules."""
    found = set()
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(statement.name)
        elif not isinstance(statement, ast.Import | ast.ImportFrom):
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    found.add(node.id)
    return found


def test_no_two_cases_define_the_same_name() -> None:
    names = [name for case in CASES for name in defined(case.answer) | defined(case.wrong)]
    assert [name for name, count in Counter(names).items() if count > 1] == []
