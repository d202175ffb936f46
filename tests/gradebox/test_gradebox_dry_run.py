"""How each test runs is found out on the instructor's own answers, as the page on gradebox says."""

import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from courses import write
from hostile.texts import sections
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.preprocessors import Execute
from notebooks import CONTEXT, answer, cell, shown, step, write_source
from rich.console import Console
from traitlets.config import Config

from gradebox.events import LOOK, NOTE
from gradebox.nbgrader import dry_run, plan
from gradebox.nbgrader.cells import errors
from gradebox.nbgrader.execute import WarmExecute
from gradebox.nbgrader.notebook_run import Run
from gradebox.nbgrader.plan import IN_PROCESS, ISOLATED, PlannedTest, planned
from gradebox.run import report

pytestmark = pytest.mark.xdist_group("gradebox")

Runs = dict[str, plan.TestRun]
SQUARE = "def square(x):\n    ### BEGIN SOLUTION\n    return x * x\n    ### END SOLUTION"


def nodes_of(*cells: Any) -> list[Any]:
    """Return cells: a text is one of the student's, and a dict has tests of two points."""
    nodes: list[Any] = []
    for item in cells:
        if type(item) is dict:
            nodes += [cell(name, source, 2) for name, source in item.items()]
        else:
            nodes.append(new_code_cell(item) if isinstance(item, str) else item)
    return nodes


def runs(folder: Path, *cells: Any, **traits: Any) -> Runs:
    """Return how the tests of a notebook run, by their names."""
    source = write_source(folder, nodes_of(*cells)) / "toy.ipynb"
    return {run.cell: run for run in dry_run.dry_run(step(folder, **traits), source, "toy")}


def graded(folder: Path, found: Runs, *cells: Any) -> tuple[list[Any], Run]:
    """Execute what a student hands in, as planned; return its cells, and what the tests gave."""
    nb = new_notebook(cells=nodes_of(*cells))
    (folder / "work").mkdir(exist_ok=True)
    context = CONTEXT | {"student": "ada"}
    run = step(folder).run(nb, folder / "work", context, planned(found.values())["toy"])
    return nb.cells, run


def checked(found: Runs, width: int = 200) -> list[str]:
    text = StringIO()
    report.show_tests(Console(file=text, width=width), [*found.values()])
    return text.getvalue().splitlines()


TESTS = {
    "plain": "assert square(3) == 9",
    "inside": "assert 'math' in square.__globals__\nassert square(4) == 16",
    "wrong": "assert square(4) == 17",
    "wrong inside": "assert square.__globals__\nassert square(4) == 17",
    "free": "assert callable(square)",
    "blind": "if hasattr(square, '__code__'):\n    assert square(4) == 16",
    "only isolated": "if hasattr(square, '__code__'):\n    raise TypeError\nassert square(4) == 16",
    "helper": "assert square.__globals__\nhelped = square(2)\nassert helped == 4",
    "helped": "assert helped == 4 and square(2) == 4",
    "deletes": "squares = square(2)\ndel squares\nassert square(2) == 4",
    "ends": "import os\nif not hasattr(square, '__code__'):\n    os._exit(1)\n"
    "assert square(3) == 9",
    "after the end": "assert square(2) == 4",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    shows = "import numpy as np\nnp.show_config = lambda: None\n"
    return runs(tmp_path_factory.mktemp("course"), "import math", answer(shows + SQUARE), TESTS)


def test_dry_run_plans_how_each_test_runs(found):
    toy = planned(found.values())["toy"]
    in_process = ["inside", "blind", "helper", "helped", "ends"]  # helper makes helped
    assert [n for n, how in toy.items() if how.way == IN_PROCESS] == in_process
    again = ["plain", "free", "deletes", "after the end"]
    assert [n for n, how in toy.items() if how.again] == again
    assert [name for name, run in found.items() if run.fails] == ["wrong", "wrong inside"]
    assert [name for name, run in found.items() if run.blank > 0] == ["free"]
    assert "numpy.show_config" in toy["inside"].usual


def test_check_reports_why_tests_need_attention(found):
    lines = checked(found)
    for name, words in {
        "inside": "'Stub' object has no attribute '__globals__'",
        "helped": "NameError: name 'helped' is not defined",
        "wrong": "your own answers get 0 of 2 points (AssertionError)",
        # and not what it raised isolated, where it gets no __globals__
        "wrong inside": "your own answers get 0 of 2 points (AssertionError)",
        "free": "a blank notebook gets points",
        "blind": "its points to a blank notebook, too",
    }.items():
        assert [line for line in lines if line.startswith(f"toy/{name}: ") and words in line], name
    assert not [line for line in lines if line.startswith("toy/plain:")]


def test_dependencies_of_tests_on_answers_are_found(tmp_path):
    """Modules beside the notebook, helpers, plain cells, and answers through all of them."""
    folder = write_source(tmp_path, [])
    (folder / "tests.py").write_text("def check(f):\n    assert f(3) == 9\n")
    (folder / ".#tests.py").symlink_to("of an editor")
    # nbgrader's demo course has cells with metadata of nbgrader's and no grade_id: no tests
    nameless = {
        "assert True": {"grade": True, "points": 1},
        "depth = 1": {"solution": True},
        "y = 1": {"locked": True},
    }
    bare = [new_code_cell(text, metadata={"nbgrader": own}) for text, own in nameless.items()]
    locked = cell("locked", "import tests as beside\ndef is_right(x): return square(x) == x * x")
    answers = answer(SQUARE), answer("def cube(x): return x**3", "other")
    tests = {
        "plain": "assert square(y) == 1",
        "from": "from tests import check\ncheck(square)",
        "beside": "beside.check(square)",
        "helped": "assert is_right(3)",
        "made": "assert made == 8",
    }
    found = runs(tmp_path, *bare, locked, *answers, "made = cube(2)", tests)
    assert {name: run.asks for name, run in found.items()} == {
        **dict.fromkeys(("plain", "from", "beside", "helped"), ("square",)),
        "made": ("cube",),
    }
    assert {(run.way, run.answers, run.blank) for run in found.values()} == {(ISOLATED, 2, 0)}


def test_metadata_and_configuration_override_the_planned_way(tmp_path):
    insisting = nodes_of({"isolated": TESTS["inside"], "in-process": TESTS["plain"]})
    for test in insisting:
        test.metadata["gradebox"] = {"way": test.metadata.nbgrader.grade_id}
    odd = cell("odd", TESTS["inside"], 2)
    odd.metadata["gradebox"] = {"way": "beside"}
    for way, of_odd in (("auto", IN_PROCESS), (ISOLATED, ISOLATED), (IN_PROCESS, IN_PROCESS)):
        found = runs(tmp_path, "import math", answer(SQUARE), *insisting, odd, way=way)
        assert [run.way for run in found.values()] == [ISOLATED, IN_PROCESS, of_odd]
        assert found["isolated"].fails
        assert not found["in-process"].fails


OWN_SUM = SQUARE.replace("square(x)", "sum(numbers)").replace("x * x", "[*numbers][-1] + 1")


def test_redefined_builtin_comes_from_student_where_needed(tmp_path):
    """Where Python's own fails, and where a blank notebook would pass with it."""
    tests = {
        "fails": "assert sum([1, 2, 3]) == 4",
        "free": "assert sum([1, 2]) == 3",
        "python's": "assert square(2) == sum([2, 2])",
    }
    found = runs(tmp_path, answer(SQUARE), answer(OWN_SUM, "own"), tests)
    assert [run.pythons for run in found.values()] == [("sum",), ("sum",), ()]
    assert {(run.way, run.answers, run.blank) for run in found.values()} == {(ISOLATED, 2, 0)}
    assert "`square`, `sum`" in checked(found)[-1]
    # who leaves it out does not get Python's
    assert graded(tmp_path, found, answer(SQUARE), "pass", tests)[1].scores["free"] == 0


GAUGE = """gauge = [1, 5, 2]
assert square(2) == 4
### BEGIN HIDDEN TESTS
hidden = 16
assert square(4) == hidden
### END HIDDEN TESTS"""
WET = "wet = [depth for depth in gauge if depth > 1]"


def test_answers_may_use_visible_code_of_tests(tmp_path):
    """That runs among their cells, and nothing hidden; another test's name is told."""
    gauge, wet = cell("gauge", GAUGE, 2), cell("wet", "assert wet == [5, 2]", 2)
    cells = answer(SQUARE), gauge, answer(WET, "uses"), wet
    found = runs(tmp_path, *cells)
    assert {(run.way, run.answers) for run in found.values()} == {(ISOLATED, 2)}
    assert [run.lends for run in found.values()] == [("gauge",), ()]
    assert [line for line in checked(found) if line.startswith("toy/gauge: what students see")]
    looks = answer(f"{WET}\nprint(sorted(globals()))", "uses")
    cells, run = graded(tmp_path, found, answer(SQUARE), gauge, looks, wet)
    assert (run.scores, run.events) == ({"gauge": 2, "wet": 2}, [])
    assert "'gauge'" in shown(cells[2])
    assert "'hidden'" not in shown(cells[2])
    own = runs(tmp_path, answer(SQUARE), gauge, answer("wet = [5, 2]", "uses"), wet)
    _, run = graded(tmp_path, own, answer(SQUARE), gauge, answer(WET, "uses"), wet)
    assert run.scores == {"gauge": 2, "wet": 2}
    assert [(e.kind, e.cell, e.fields["name"]) for e in run.events] == [
        ("borrowed", "uses", "gauge")
    ]


def test_notebook_without_tests_is_not_executed(tmp_path, monkeypatch):
    monkeypatch.setattr(WarmExecute, "run", lambda *_: pytest.fail("it was executed"))
    assert runs(tmp_path, answer(SQUARE), "1") == {}


def test_dry_run_of_unchanged_source_is_remembered(tmp_path, monkeypatch):
    source = write_source(tmp_path, nodes_of(answer(SQUARE), {"plain": TESTS["plain"]}))
    first = dry_run.remembered(step(tmp_path), source, "toy")
    file = tmp_path / "kept.json"
    assert dry_run.kept(file, "key", lambda: first) == first

    monkeypatch.setattr(dry_run, "dry_run", lambda *_: [])
    assert dry_run.remembered(step(tmp_path), source, "toy") == first
    kept = [*map(vars, dry_run.kept(file, "key", list))]
    assert kept == json.loads(json.dumps([*map(vars, first)]))
    assert dry_run.kept(file, "another", list) == []
    write_source(tmp_path, nodes_of(answer(SQUARE), {"plain": "assert square(4) == 16"}))
    assert dry_run.remembered(step(tmp_path), source, "toy") == []


def test_a_submission_is_executed_as_planned(tmp_path):
    cells = nodes_of(answer(SQUARE), {name: TESTS[name] for name in ("plain", "helper")})
    write_source(tmp_path, cells)
    executing = step(tmp_path)
    resources = {"metadata": {"path": str(tmp_path)}, "nbgrader": CONTEXT}
    _, resources = executing.preprocess(new_notebook(cells=cells), resources)
    plans = {"plain": PlannedTest(again=True), "helper": PlannedTest(IN_PROCESS)}
    assert executing.plan == {"toy": plans}
    assert resources["gradebox"] == {"scores": {"plain": 2, "helper": 2}}


RATES = """rates = {"oats": 2}
def cost(goods):
    return [rates["oats"] * len(goods)]"""
COST = """goods = ["oats", "oats"]
assert cost(goods)[0] == sum([np.int64(2), 2]) and goods == ["oats", "oats"]
hidden = True"""
AGAIN = sections("tables/again.txt")
"""The points and events of answers, and of what stands in a later cell."""


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Runs]:
    """Return a course whose test is asked again, and how it runs."""
    folder = tmp_path_factory.mktemp("again")
    found = runs(folder, "import numpy as np", answer(RATES), cell("test", COST, 2))
    assert found["test"].again
    return folder, found


@pytest.mark.parametrize("name", AGAIN)
def test_an_isolated_test_is_asked_again_in_process(again, name):
    """Its score stays where it fails there, which is told; no page shows what it says there."""
    expected, written, *later = AGAIN[name].replace("@rates", RATES).split("\n---\n")
    score, *kinds = expected.split()
    test = cell("test", COST, 2)
    cells, run = graded(*again, "import numpy as np", answer(written), test, *later)
    assert run.scores == {"test": float(score)}
    assert [event.kind for event in run.events] == kinds
    assert bool(errors(cells[2])) == (score == "0")
    assert not [node for node in cells if "hidden = True" in str(node.outputs)]


TANK = """class Tank:
    ### BEGIN SOLUTION
    level = 0
    def fill(self, litres):
        self.level += litres
    ### END SOLUTION
"""


def test_forked_test_sees_objects_before_later_changes(tmp_path):
    """Where later cells change them: the others need no process of their own."""
    before = cell("before", "tank.fill(2)\nassert tank.level == 2", 2)
    after = {"after": "assert Tank.level == 0"}
    found = runs(tmp_path, answer(TANK), "tank = Tank()", before, "tank.level = 5", after)
    assert [(run.answers, run.in_fork) for run in found.values()] == [(2, True), (2, False)]


def test_missing_student_file_is_not_replaced_by_instructors(tmp_path):
    """The dry run has the instructor's own file; a submission without the file gets nothing."""
    config = Config({"Autograde": {"exclude_overwriting": {"toy": ["record.txt"]}}})
    (write_source(tmp_path, []) / "record.txt").write_text("mine")
    record = cell("record", "assert open('record.txt').read()", 2)
    found = runs(tmp_path, answer(SQUARE), record, config=config)
    assert [(run.way, run.answers) for run in found.values()] == [(IN_PROCESS, 2)]
    assert graded(tmp_path, found, answer(SQUARE), record)[1].scores == {"record": 0}


PAGE = (Path(__file__).resolve().parents[2] / "book" / "gradebox.md").read_text("utf-8")
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def section(title: str) -> str:
    """Return the text below a heading of the page."""
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_every_kind_of_event_is_on_the_page():
    table, notes = section("What must you look at?").split("The kinds of notes are ")
    rows = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`([\w-]+)`", "".join(rows))) == sorted(LOOK)
    assert sorted(re.findall(r"`([\w-]+)`", notes)) == sorted(NOTE)


def test_every_limit_is_on_the_page():
    defaults = {"c.Execute.timeout": Execute.class_traits()["timeout"].default()} | {
        f"c.WarmExecute.{name}": trait.default()
        for name, trait in WarmExecute.class_traits().items()
        if name.startswith("max_")
    }
    rows = re.findall(r"^\| `(c\.\S+)` \| (\d+) ?(\w*)", section("What are the limits?"), re.M)
    assert {name: int(size) * UNITS.get(unit, 1) for name, size, unit in rows} == defaults


def test_the_example_of_a_driver_runs_as_shown(tmp_path):
    page = section("How do you test a class?")
    driver, observed, attribute = re.findall(r"```python\n(.*?)```", page, re.S)
    [printed] = re.findall(r"```console\n.*?\n(.*?)```", page, re.S)
    account = (
        "class Account:\n    ### BEGIN SOLUTION\n    balance = 0\n    def deposit(self, amount):\n"
        "        self.balance += amount\n    ### END SOLUTION"
    )
    cells = [answer(account), cell("attribute", attribute, 1), cell("driver", observed, 2)]
    source = tmp_path / "source" / "ps2" / "ps2.ipynb"
    write(source, new_notebook(cells=cells))
    (source.parent / "drivers.py").write_text(driver)
    found = {run.cell: run for run in dry_run.dry_run(step(tmp_path), source, "ps2")}
    assert [line.rstrip() for line in checked(found, width=84)] == printed.splitlines()
