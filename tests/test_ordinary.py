"""The corpus of ordinary tests: in one process each right answer gets its point, no wrong one does.

One process runs them all, so that the state of this one is neither used nor changed.
"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest
from courses import code
from courses.grading import write_files
from ordinary import FILES, KINDS, Case, assignment_of, cases
from ordinary.one_process import Ran, run, start

pytestmark = pytest.mark.xdist_group("ordinary")

Runs = dict[tuple[str, bool], dict[str, Ran]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Return what became of the cells of each kind, with right answers and with wrong ones."""
    folder = tmp_path_factory.mktemp("ordinary")
    with ProcessPoolExecutor(
        max_workers=1,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=start,
        initargs=(folder / "profile",),
    ) as process:
        results = {}
        for kind in KINDS:
            for wrong in (False, True):
                beside = folder / f"{kind}-{wrong}"
                beside.mkdir()
                write_files(FILES, beside)
                names, sources, worth = code(assignment_of(kind, wrong=wrong))
                ran = process.submit(run, sources, beside, worth).result()
                results[kind, wrong] = dict(zip(names, ran, strict=True))
    return results


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_right_answer_gets_its_point_and_a_wrong_one_none(runs: Runs, case: Case) -> None:
    right, wrong = (runs[case.kind, is_wrong] for is_wrong in (False, True))
    assert right[case.id].points == 1, right[case.id].shown
    assert not wrong[f"answer-{case.id}"].failed, wrong[f"answer-{case.id}"].shown
    assert wrong[case.id].points == 0
