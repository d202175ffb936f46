"""How each test of an assignment runs is found out on the instructor's own answers."""

import os
from io import StringIO
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from notebooks import CONTEXT, OF_R, answer, cell, shown, step, write_source
from rich.console import Console
from traitlets.config import Config

from gradebox.nbgrader import dry_run
from gradebox.nbgrader.cells import NotPython, errors, require_python
from gradebox.nbgrader.dry_run import IN_PROCESS, ISOLATED, NotebookPlan, planned
from gradebox.nbgrader.execute import WarmExecute
from gradebox.run import report

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.xdist_group("gradebox"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="gradebox needs fork"),
]

SQUARE = "def square(x):\n    ### BEGIN SOLUTION\n    return x * x\n    ### END SOLUTION"


def runs(folder: Path, *cells: Any, **traits: Any) -> dict[str, dry_run.TestRun]:
    """Return how the tests of a notebook run, by their names."""
    nodes = [new_code_cell(item) if isinstance(item, str) else item for item in cells]
    source = write_source(folder, nodes)
    return {run.cell: run for run in dry_run.dry_run(step(folder, **traits), source, "toy")}


def of_two_points(sources: dict[str, str]) -> list[Any]:
    """Return tests that are worth 2 points each."""
    return [cell(name, source, 2) for name, source in sources.items()]


TESTS = {
    "plain": "assert square(3) == 9",
    "inside": "assert 'math' in square.__globals__\nassert square(4) == 16",
    "wrong": "assert square(4) == 17",
    "wrong inside": "assert square.__globals__\nassert square(4) == 17",
    "free": "assert callable(square)",
    "free isolated": "if hasattr(square, '__code__'):\n    assert square(4) == 16",
    "helper": "assert square.__globals__\nhelped = square(2)\nassert helped == 4",
    "helped": "assert helped == 4 and square(2) == 4",
    "deletes": "squares = square(2)\ndel squares\nassert square(2) == 4",
    "draws": "import matplotlib.pyplot as plt\nassert square.__globals__ and square(2) == 4\n"
    "plt.plot([1, 2])",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dry_run.TestRun]:
    """Return how a notebook's tests run."""
    cells = ["import math", answer(SQUARE), *of_two_points(TESTS)]
    return runs(tmp_path_factory.mktemp("course"), *cells)


def shown_tests(found: dict[str, dry_run.TestRun]) -> str:
    """Return what ``gradebox check`` prints."""
    text = StringIO()
    report.show_tests(Console(file=text, width=200), [*found.values()])
    return text.getvalue()


def test_each_cell_goes_its_own_way(found: dict[str, dry_run.TestRun]) -> None:
    assert {name: run.way for name, run in found.items()} == dict.fromkeys(TESTS, ISOLATED) | {
        "inside": IN_PROCESS,
        "helper": IN_PROCESS,
        "helped": IN_PROCESS,  # it uses a name that only the one before it makes
        "draws": IN_PROCESS,
    }


def test_own_answers_that_lose_points_and_blank_ones_that_get_some_are_named(
    found: dict[str, dry_run.TestRun],
) -> None:
    assert [name for name, run in found.items() if run.fails] == ["wrong", "wrong inside"]
    assert [name for name, run in found.items() if run.is_free] == ["free"]


def test_the_report_gives_the_reasons_in_plain_words(found: dict[str, dry_run.TestRun]) -> None:
    lines = shown_tests(found).splitlines()
    for line in (
        "toy/inside: in-process, because isolated it gave: AttributeError: 'Stub' object has no "
        "attribute '__globals__'",
        "toy/helped: in-process, because isolated it gave: NameError: name 'helped' is not defined",
        "toy/wrong: your own answers get 0 of 2 points (AssertionError); correct the test or "
        "the answer",
        # and not what it raised isolated, where it gets no __globals__
        "toy/wrong inside: your own answers get 0 of 2 points (AssertionError); correct the test "
        "or the answer",
        "toy/free: a blank notebook gets points; let it fail without an answer",
        "4 of 10 scores (8 points) come from tests in the student's process: a student who tries "
        "can forge them.",
    ):
        assert line in lines
    assert not [line for line in lines if line.startswith("toy/plain:")]


def test_the_plan_has_what_the_own_answers_change_themselves(
    found: dict[str, dry_run.TestRun],
) -> None:
    plan = planned(found.values())["toy"]
    assert plan.in_process == ["inside", "helper", "helped", "draws"]
    assert plan.again == ["plain", "free", "free isolated", "deletes"]
    assert "matplotlib.pyplot.draw_if_interactive" in plan.usual


def test_a_test_that_ends_its_process_takes_no_later_one_with_it(tmp_path: Path) -> None:
    ends = "import os\nif not hasattr(square, '__code__'):\n    os._exit(1)\n"
    tests = {"ends": ends + "assert square(3) == 9", "later": "assert square(2) == 4"}
    found = runs(tmp_path, answer(SQUARE), *of_two_points(tests))
    assert {name: (run.way, run.answers) for name, run in found.items()} == {
        "ends": (IN_PROCESS, 2),
        "later": (ISOLATED, 2),
    }


def test_metadata_and_the_configuration_insist(tmp_path: Path) -> None:
    insisting = of_two_points({"isolated": TESTS["inside"], "in-process": TESTS["plain"]})
    for test in insisting:
        test.metadata["gradebox"] = {"way": test.metadata.nbgrader.grade_id}
    odd = cell("odd", TESTS["inside"], 2)
    odd.metadata["gradebox"] = {"way": "beside"}
    cells = ["import math", answer(SQUARE), *insisting, odd]
    for way, of_odd in (("auto", IN_PROCESS), (ISOLATED, ISOLATED), (IN_PROCESS, IN_PROCESS)):
        found = runs(tmp_path, *cells, way=way)
        assert {name: run.way for name, run in found.items()} == {
            "isolated": ISOLATED,
            "in-process": IN_PROCESS,
            "odd": of_odd,
        }
        assert found["isolated"].fails
        assert not found["in-process"].fails


def test_an_answer_may_use_what_a_test_defines(tmp_path: Path) -> None:
    uses = answer("def area():\n    return side * side", "area")
    test = {"side": "side = 3\nassert area() == 9", "other": "assert square(2) == 4"}
    found = runs(tmp_path, answer(SQUARE), uses, *of_two_points(test))
    assert {name: (run.way, run.answers) for name, run in found.items()} == {
        "side": (IN_PROCESS, 2),
        "other": (ISOLATED, 2),
    }


GAUGE = """gauge = [1, 5, 2]
assert square(2) == 4
### BEGIN HIDDEN TESTS
hidden = 16
assert square(4) == hidden
### END HIDDEN TESTS"""
WET = "wet = [depth for depth in gauge if depth > 1]"


def test_an_answer_may_use_at_once_what_an_earlier_test_defines(tmp_path: Path) -> None:
    """The text that students have of that test runs among their cells, and nothing hidden."""
    tests = [cell("gauge", GAUGE, 2), cell("wet", "assert wet == [5, 2]", 2)]
    found = runs(tmp_path, answer(SQUARE), tests[0], answer(WET, "uses"), tests[1])
    assert {name: (run.way, run.answers, run.released) for name, run in found.items()} == {
        "gauge": (ISOLATED, 2, True),
        "wet": (ISOLATED, 2, False),
    }
    assert "what students see of it also runs among their cells" in shown_tests(found)
    looks = answer(f"{WET}\nprint(sorted(globals()))", "uses")
    nb = new_notebook(cells=[answer(SQUARE), tests[0], looks, tests[1]])
    run = step(tmp_path).run(nb, tmp_path, CONTEXT, planned(found.values())["toy"])
    assert run.scores == {"gauge": 2, "wet": 2}
    assert "'gauge'" in shown(looks)
    assert "'hidden'" not in shown(looks)
    found = runs(tmp_path, answer(SQUARE), tests[0], answer(WET, "uses"), tests[1], way=ISOLATED)
    assert {name: (run.answers, run.released) for name, run in found.items()} == {
        "gauge": (2, False),
        "wet": (0, False),
    }


def test_no_score_becomes_forgeable_for_what_a_later_answer_uses(tmp_path: Path) -> None:
    count = answer("calls = []\ndef count():\n    calls.append(1)\n    return len(calls)")
    tests = {"first": "gauge = [1, 5, 2]\nassert count() == 1", "wet": "assert wet == [5, 2]"}
    first, wet = of_two_points(tests)
    found = runs(tmp_path, count, first, answer(WET, "uses"), wet)
    assert {name: (run.way, run.answers) for name, run in found.items()} == {
        "first": (ISOLATED, 2),
        "wet": (ISOLATED, 0),
    }


def test_a_module_beside_the_notebook_is_imported(tmp_path: Path) -> None:
    source = write_source(tmp_path, [])
    (source / "tests.py").write_text("def check(f):\n    assert f(3) == 9\n")
    locked = cell("locked", "import tests as beside")
    test = {"from": "from tests import check\ncheck(square)", "locked": "beside.check(square)"}
    found = runs(
        tmp_path, locked, answer(SQUARE), *of_two_points({f"t-{k}": v for k, v in test.items()})
    )
    assert [(run.way, run.answers, run.blank) for run in found.values()] == [(ISOLATED, 2, 0)] * 2


def test_cells_without_a_name_are_no_tests(tmp_path: Path) -> None:
    """nbgrader's demo course has cells with metadata of nbgrader's and no grade_id."""
    bare = new_code_cell("assert True", metadata={"nbgrader": {"grade": True, "points": 1}})
    odd = new_code_cell("x = 1", metadata={"nbgrader": {"solution": True, "locked": False}})
    locked = new_code_cell("y = 1", metadata={"nbgrader": {"locked": True}})
    cells = [bare, odd, locked, answer(SQUARE), *of_two_points({"plain": "assert square(y) == 1"})]
    found = runs(tmp_path, *cells)
    assert {name: run.answers for name, run in found.items()} == {"plain": 2}


def test_nobody_else_can_read_the_copy_of_the_instructors_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readable: list[bool] = []
    run = WarmExecute.run

    def looking(self: WarmExecute, nb: Any, folder: Path, *rest: Any) -> Any:
        modes = [place.stat().st_mode for place in (folder, folder.parent)]
        readable.append(all(mode & 0o055 for mode in modes))
        return run(self, nb, folder, *rest)

    monkeypatch.setattr(WarmExecute, "run", looking)
    cells = [answer(SQUARE), *of_two_points({"test": "assert square(3) == 9"})]
    write_source(tmp_path, cells).chmod(0o755)
    assert runs(tmp_path, *cells)["test"].answers == 2
    assert set(readable) == {False}


def test_a_notebook_without_tests_is_not_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradebox.nbgrader.execute.WarmExecute.run", None)
    assert runs(tmp_path, answer(SQUARE), "1") == {}


def test_the_same_tests_are_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_source(tmp_path, [answer(SQUARE), *of_two_points({"plain": TESTS["plain"]})])
    first = dry_run.remembered(step(tmp_path), source, "toy")
    file = tmp_path / "kept.json"
    assert dry_run.kept(file, "key", lambda: first) == first

    def again(*_: Any) -> list[dry_run.TestRun]:
        return []

    monkeypatch.setattr(dry_run, "dry_run", again)
    assert dry_run.remembered(step(tmp_path), source, "toy") == first
    assert dry_run.kept(file, "key", again) == first
    assert dry_run.kept(file, "another", again) == []
    write_source(tmp_path, [answer(SQUARE), *of_two_points({"plain": "assert square(4) == 16"})])
    assert dry_run.remembered(step(tmp_path), source, "toy") == []


def test_a_submission_is_executed_as_planned(tmp_path: Path) -> None:
    cells = [answer(SQUARE), *of_two_points({name: TESTS[name] for name in ("plain", "helper")})]
    write_source(tmp_path, cells)
    executing = step(tmp_path)
    nb = new_notebook(cells=cells)
    context = {"assignment": "toy", "notebook": "toy"}
    resources = {"metadata": {"path": str(tmp_path)}, "nbgrader": context}
    _, resources = executing.preprocess(nb, resources)
    assert executing.plan == {"toy": NotebookPlan(["helper"], again=["plain"])}
    assert resources["gradebox"] == {"scores": {"plain": 2, "helper": 2}}


RATES = "rates = {'oats': 2}\ndef cost(goods):\n    return sum(rates[name] for name in goods)"
COST = "goods = ['oats', 'oats']\nassert cost(goods) == 4 and goods == ['oats', 'oats']"


TAKES = "def cost(goods):\n    return 2 * len([goods.pop() for _ in goods[:]])"
EXIT = "import os\nos._exit(0)"


@pytest.mark.parametrize(
    ("written", "later", "score"),
    [
        pytest.param(RATES, "", 2, id="as the instructor's"),
        pytest.param(RATES, "rates.clear()", 2, id="spoilt by a later cell"),
        pytest.param(RATES, EXIT, 2, id="ended by a later cell"),
        pytest.param(TAKES, "", 0, id="changes its argument"),
        pytest.param(TAKES, EXIT, 0, id="changes its argument, and ends"),
        pytest.param(
            "class Two:\n    __eq__ = lambda *_: True\ndef cost(goods):\n    return Two()",
            "",
            0,
            id="forged in-process",
        ),
    ],
)
def test_an_isolated_test_is_asked_again_in_process(
    tmp_path: Path, written: str, later: str, score: float
) -> None:
    """An argument that is changed is a copy there, which only the student's process sees."""
    test = cell("test", COST, 2)
    write_source(tmp_path, [answer(RATES), test])
    nb = new_notebook(cells=[answer(written), test, new_code_cell(later)])
    resources = {"metadata": {"path": str(tmp_path)}, "nbgrader": CONTEXT}
    nb, resources = step(tmp_path).preprocess(nb, resources)
    assert resources["gradebox"] == {"scores": {"test": score}}
    assert bool(errors(nb.cells[1])) == (score == 0)


def test_one_test_that_fails_in_process_keeps_no_other_from_being_asked_again(
    tmp_path: Path,
) -> None:
    of_stubs = (
        "try:\n    cost.__doc__\nexcept AttributeError:\n    pass\nelse:\n    raise TypeError"
    )
    found = runs(tmp_path, answer(RATES), *of_two_points({"stub": of_stubs, "cost": COST}))
    assert {name: (run.way, run.again) for name, run in found.items()} == {
        "stub": (ISOLATED, False),
        "cost": (ISOLATED, True),
    }


TANK = """class Tank:
    ### BEGIN SOLUTION
    level = 0
    def fill(self, litres):
        self.level += litres
    ### END SOLUTION
"""


def test_a_test_sees_objects_as_they_were_where_it_stands(tmp_path: Path) -> None:
    """Where later cells change them: the others need no process of their own."""
    ways = runs(
        tmp_path,
        answer(TANK),
        "tank = Tank()",
        cell("before", "tank.fill(2)\nassert tank.level == 2", 2),
        "tank.level = 5",
        cell("after", "assert Tank.level == 0", 2),
    )
    assert {name: (run.answers, run.in_fork) for name, run in ways.items()} == {
        "before": (2, True),
        "after": (2, False),
    }


def test_a_file_of_each_student_is_not_the_instructors(tmp_path: Path) -> None:
    """The dry run has the instructor's own file; a submission without the file gets nothing."""
    config = Config({"Autograde": {"exclude_overwriting": {"toy": ["record.txt"]}}})
    source = write_source(tmp_path, [])
    (source / "record.txt").write_text("mine")
    (tmp_path / "work").mkdir()
    cells = [answer(SQUARE), *of_two_points({"record": "assert open('record.txt').read()"})]
    executing = step(tmp_path, config=config)
    write_source(tmp_path, cells)
    found = dry_run.dry_run(executing, source, "toy")
    assert [(run.way, run.answers) for run in found] == [(IN_PROCESS, 2)]
    context = {"assignment": "toy", "notebook": "toy", "student": "ada"}
    run = executing.run(
        new_notebook(cells=cells), tmp_path / "work", context, planned(found)["toy"]
    )
    assert run.scores == {"record": 0}


@pytest.mark.parametrize("kernelspec", [{}, {"name": "python3"}, {"language": "Python"}])
def test_python_is_what_no_other_language_is(kernelspec: dict[str, str]) -> None:
    nb = nbformat.from_dict({"metadata": {"kernelspec": kernelspec}})
    require_python(nb, "a")
    nb.metadata["kernelspec"] = OF_R
    with pytest.raises(NotPython, match="in R: gradebox runs"):
        require_python(nb, "a")
