"""The corpus of ordinary tests: in one process each right answer gets its point, no wrong one does.

One process runs them all, so that the state of this one is neither used nor changed.
"""

import ast
import itertools
import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from IPython.core.inputtransformer2 import TransformerManager
from ordinary import KINDS, Case, cases
from ordinary.one_process import Ran, run, start

pytestmark = pytest.mark.xdist_group("ordinary")

CASES = cases()
WRONG = [case for case in CASES if case.wrong]

MOST_SECONDS = 10
"""The processor time that a cell may take, on the slowest machine; most take milliseconds."""

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


def bound(source: str) -> set[str]:
    """Return the names that a cell gives values to, other than those of modules."""
    names = set()
    for statement in ast.parse(TransformerManager().transform_cell(source)).body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(statement.name)
            continue
        nodes = list(ast.walk(statement))
        targets = [node.target for node in nodes if isinstance(node, ast.comprehension)]
        local = {node for target in targets for node in ast.walk(target)}
        names |= {
            node.id
            for node in nodes
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in local
        }
    return names


def test_no_cell_of_another_case_uses_a_name_of_a_student() -> None:
    students = {case.name: bound(case.answer) | bound(case.wrong) for case in CASES}
    teachers = {case.name: bound(case.earlier) | bound(case.test) for case in CASES}
    for one, other in itertools.permutations(students, 2):
        assert not students[one] & (students[other] | teachers[other]), (one, other)
