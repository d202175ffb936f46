"""The corpus of ordinary tests, run apart from the answers: the points are those of one process.

What one process gives is 1 point for each right answer and none for a wrong one:
``test_ordinary`` proves that. All cases stand in one notebook, so that two processes do for all.
"""

from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from ordinary import Case, cases
from ordinary.apart import BESIDE, FILE, render
from traitlets.config import Config

from gradebox.bridge.execute import WarmExecute
from gradebox.process import pool

pytestmark = pytest.mark.xdist_group("gradebox")

CASES = cases()


def _cell(name: str, source: str, *, graded: bool) -> Any:
    made = new_code_cell(source)
    about = {"grade_id": name, "schema_version": 3, "task": False, "solution": not graded}
    made.metadata["nbgrader"] = {**about, "grade": graded, "locked": graded}
    if graded:
        made.metadata["nbgrader"]["points"] = 1
    return made


def _notebook(answers: dict[Case, str]) -> Any:
    made = new_notebook()
    for case, answer in answers.items():
        made.cells.append(_cell(f"answer {case.name}", answer, graded=False))
        if case.earlier:
            made.cells.append(_cell(f"earlier {case.name}", case.earlier, graded=True))
        made.cells.append(_cell(case.name, case.test, graded=True))
    return made


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, dict[str, float]]:
    """Return the points of all cases apart, with right answers and with wrong ones."""
    root = tmp_path_factory.mktemp("course")
    config = Config()
    config.CourseDirectory.root = str(root)
    config.WarmExecute.imports = [
        *("numpy", "pandas", "pytest", "scipy.optimize", "scipy.sparse", "torch")
    ]
    step = WarmExecute(config=config, timeout=600, max_seconds=3600, trial=False)
    source = root / "source" / "all" / "all.ipynb"
    source.parent.mkdir(parents=True)
    right = _notebook({case: case.answer for case in CASES})
    wrong = _notebook({case: case.wrong for case in CASES if case.wrong})
    nbformat.write(right, source)  # type: ignore[no-untyped-call]
    found = {}
    for is_right, nb in ((True, right), (False, wrong)):
        folder = tmp_path_factory.mktemp("handed-in")
        about = {"assignment": "all", "notebook": "all"}
        found[is_right] = step.run(nb, folder, about, frozenset()).scores
    pool.close()
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_answer_gets_what_it_gets_in_one_process(
    scores: dict[bool, dict[str, float]], case: Case
) -> None:
    assert scores[True][case.name] == (case.name not in BESIDE)
    assert scores[False].get(case.name, 0) == 0


def test_what_runs_beside_is_in_the_corpus() -> None:
    assert {*BESIDE} <= {case.name for case in CASES}


def test_the_table_in_the_book_is_that_of_the_corpus() -> None:
    expected = render()
    assert FILE.read_text(encoding="utf-8") == expected, "cd tests && python -m ordinary.apart"
