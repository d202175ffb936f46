"""A notebook in two processes: the student's cells cannot reach the tests, nor make up a score."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hang import HANG
from nbformat.v4 import new_code_cell, new_notebook
from traitlets.config import Config

from gradebox.bridge.execute import WarmExecute
from gradebox.bridge.source_notebook import instructions
from gradebox.process import pool
from gradebox.process.client import ForkServer
from gradebox.sandbox.probe import choose
from gradebox.sandbox.seal import Level, Limits

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.xdist_group("gradebox"),
]

SOLVED = "def square(x):\n    return x * x"
TEST = "import numpy\nassert numpy.allclose(square(3), 9)\nassert square(-2) == 4"


@pytest.fixture(scope="module", autouse=True)
def servers() -> Iterator[None]:
    """End the warm processes after the tests."""
    yield
    pool.close()


def cell(name: str, source: str, points: float | None = None, **more: Any) -> Any:
    """Return a cell of an assignment: a test if it has points."""
    made = new_code_cell(source)
    about = {"grade_id": name, "solution": False, "locked": True, "grade": points is not None}
    made.metadata["nbgrader"] = about | ({} if points is None else {"points": points}) | more
    return made


def executed(folder: Path, *cells: Any, source: list[Any] | None = None, **traits: Any) -> Any:
    """Return the cells, and what the tests gave, of a notebook in a course."""
    made = [new_code_cell(one) if isinstance(one, str) else one for one in cells]
    config = Config()
    config.CourseDirectory.root = str(folder)
    place = folder / "source" / "toy" / "toy.ipynb"
    place.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=made if source is None else source), place)
    work = folder / "work"
    work.mkdir(exist_ok=True)
    nbformat.write(new_notebook(cells=made), work / "toy.ipynb")
    about = {"assignment": "toy", "notebook": "toy", "student": "ada"}
    step = WarmExecute(config=config, **{"timeout": 5, "trial": False, **traits})
    nb, resources = step.preprocess(
        new_notebook(cells=made), {"metadata": {"path": str(work)}, "nbgrader": about}
    )
    return nb.cells, resources["gradebox"]


def scores(folder: Path, *cells: Any, **more: Any) -> Any:
    """Return the scores of the test cells."""
    return executed(folder, *cells, **more)[1]["scores"]


def says(cell: Any) -> str:
    """Return all that a cell shows, as text."""
    return "".join(
        one.get("text", "") + one.get("evalue", "") + str(one.get("data", ""))
        for one in cell.outputs
    )


def test_right_and_wrong_answers_get_their_points(tmp_path: Path) -> None:
    test, part = cell("test", TEST, 3), cell("part", "square(1) / 4", 2)
    assert scores(tmp_path, SOLVED, test, part) == {"test": 3, "part": 0.25}
    wrong = "def square(x):\n    return x + x"
    assert scores(tmp_path, wrong, test, part) == {"test": 0, "part": 0.5}
    assert scores(tmp_path, "pass", test) == {"test": 0}


FORGED = {
    "an object equal to all": "class Yes:\n    def __eq__(self, other): return True\n"
    "    def __array_function__(self, *a): return True\n    def __bool__(self): return True\n"
    "def square(x): return Yes()",
    "a patched allclose": "import numpy\nnumpy.allclose = lambda *a, **k: True\n"
    "def square(x): return 0",
    "modules replaced": "import sys, types\nfake = types.ModuleType('numpy')\n"
    "fake.allclose = lambda *a: True\nsys.modules['numpy'] = fake\ndef square(x): return 0",
    "cells run otherwise": "get_ipython().run_cell = lambda *a, **k: None\ndef square(x): return 0",
    "statements taken out": "import ast\nclass Out(ast.NodeTransformer):\n"
    "    def visit_Assert(self, node): return ast.Pass()\n"
    "get_ipython().ast_transformers.append(Out())\ndef square(x): return 0",
    "a printed mark": "def square(x):\n    print(3.0)\n    return 0",
    "a shown mark": "from IPython.display import display\ndef square(x):\n    display(3.0)\n"
    "    return 0",
    "an end that looks well": "import os\ndef square(x): os._exit(0)",
    "asserts switched off": "import builtins\nbuiltins.AssertionError = None\n"
    "def square(x): return 0",
    "the caller's frame": "import sys\ndef square(x):\n    frame = sys._getframe()\n"
    "    while frame:\n        frame.f_globals['square'] = lambda x: x * x\n"
    "        frame = frame.f_back\n    return 0",
    "the line to the tests": "import os\nfor fd in range(3, 64):\n    try: os.write(fd, "
    'b\'{"message": {"id": 1, "value": 9, "printed": [], "unneeded": []}, "sizes": []}\\n\')\n'
    "    except OSError: pass\ndef square(x): return 0",
}


@pytest.mark.parametrize("source", FORGED.values(), ids=FORGED)
def test_no_score_is_forged(tmp_path: Path, source: str) -> None:
    assert scores(tmp_path, source, cell("test", TEST, 3)) == {"test": 0}


@pytest.mark.parametrize("name", ["an object equal to all", "a patched allclose"])
def test_beside_the_students_code_it_would_be(tmp_path: Path, name: str) -> None:
    test = cell("test", TEST.partition("assert square")[0], 3)
    assert scores(tmp_path, FORGED[name], test) == {"test": 0}
    assert scores(tmp_path, FORGED[name], test, apart=False) == {"test": 3}  # the control


def test_the_students_process_sees_no_test(tmp_path: Path) -> None:
    look = (
        "import os, gc\nfound = [name for name in os.listdir() if name.endswith('.ipynb')]\n"
        "texts = [o for o in gc.get_objects() if isinstance(o, str) and 'SECRET' + '42' in o]\n"
        "print(found, texts, [i for i in In if 'SECRET' + '42' in i])"
    )
    test = cell("test", "# SECRET42\nassert square(2) == 4", 1)
    cells, _ = executed(tmp_path, SOLVED, test, look)
    assert says(cells[2]) == "[] [] []\n"
    cells, _ = executed(tmp_path, SOLVED, test, look, apart=False)
    assert "SECRET42" in says(cells[2])  # the control


def test_a_locked_cell_runs_in_both_processes(tmp_path: Path) -> None:
    helper = cell("helper", "limit = 7\ndef near(a, b): return abs(a - b) < limit")
    cheat = "near = lambda a, b: True"
    test = cell("test", "assert near(square(3), 100)", 1)
    _, told = executed(tmp_path, helper, cheat, SOLVED, "print(limit)", test)
    assert told["scores"] == {"test": 0}
    cells, _ = executed(tmp_path, helper, "print(limit)")
    assert says(cells[1]) == "7\n"


def test_hidden_parts_of_a_locked_cell_stay_with_the_tests(tmp_path: Path) -> None:
    helper = cell(
        "helper", "a = 1\n### BEGIN HIDDEN TESTS\nexpected = 42\n### END HIDDEN TESTS\nb = 2"
    )
    test = cell("test", "assert answer == expected", 1)
    cells, told = executed(tmp_path, helper, "answer = globals().get('expected')", test)
    assert told["scores"] == {"test": 0}
    assert "42" not in says(cells[0])


def test_imports_of_the_instructors_plain_cells_are_the_tests(tmp_path: Path) -> None:
    test = cell("test", "assert_allclose(square(3), 9)", 1)
    source = [new_code_cell("from numpy.testing import assert_allclose\nx = 1"), test]
    cheat = "def assert_allclose(a, b): pass\ndef square(x): return 0"
    assert scores(tmp_path, cheat, test, source=source) == {"test": 0}
    assert scores(tmp_path, SOLVED, test, source=source) == {"test": 1}
    assert scores(tmp_path, cheat, test, source=[test]) == {"test": 1}  # the control


def test_a_name_of_python_can_be_asked_for(tmp_path: Path) -> None:
    test = cell("test", "assert sum([1, 2]) == 30", 1)
    source = [cell("answer", "def sum(x): ...", solution=True, locked=False), test]
    assert scores(tmp_path, "def sum(x): return 30", test, source=source) == {"test": 1}
    assert scores(tmp_path, "def sum(x): return 30", test, source=[test]) == {"test": 0}


def test_a_test_beside_the_students_code_is_flagged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    test = cell("test", "%who_ls function\nassert square(2) == 4", 2)
    test.metadata["gradebox"] = {"beside": True}
    _, told = executed(tmp_path, SOLVED, test)
    assert told == {"scores": {"test": 2}, "forgeable": ["test"]}
    plain = cell("test", "assert square(2) == 4", 2)
    _, told = executed(tmp_path, "def square(x): return 1", test, source=[plain])
    assert told == {"scores": {"test": 0}, "forgeable": []}  # a student cannot ask for it


UNPRINTABLE = """
class Odd(Exception):
    def _render_traceback_(self):
        raise ValueError("not to be shown")

def square(x):
    raise Odd("no")
"""


def test_an_error_that_cannot_be_shown_gives_no_points(tmp_path: Path) -> None:
    beside = cell("beside", "assert square(2) == 4", 3)
    cells, told = executed(tmp_path, UNPRINTABLE, "square(1)", beside, apart=False)
    assert told["scores"] == {"beside": 0}
    for shown in cells[1:]:
        assert [one.ename for one in shown.outputs if one.output_type == "error"] == ["Odd"]
    assert scores(tmp_path, UNPRINTABLE, beside) == {"beside": 0}


def test_a_number_beside_the_students_code_stays_within_its_bounds(tmp_path: Path) -> None:
    for value, expected in {"7": 2, "-1": 0, "float('nan')": 0, "1.5": 1.5, "'x'": 2}.items():
        got = scores(tmp_path, cell("test", value, 2), apart=False)
        assert got == {"test": expected}, value
    warns = cell("test", "import sys\nprint('x', file=sys.stderr)", 2)
    assert scores(tmp_path, warns, apart=False) == {"test": 2}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a package with answers and tests, which is on the path of new processes."""
    folder = tmp_path / "lib" / "course"
    (folder / "tests").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "toy.py").write_text("def square(x):\n    return x * x  # SECRET42\n")
    (folder / "other.py").write_text("def cube(x):\n    return x ** 3\n")
    text = "from course.toy import square as right\ndef check(f): assert f(5) == right(5)\n"
    (folder / "tests" / "__init__.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'lib'}:{':'.join(filter(None, sys.path))}")
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    return folder


BARRED: dict[str, Any] = {"banned": ["course.{assignment}"], "hollow": ["course.tests"]}


def test_the_reference_cannot_be_imported(tmp_path: Path, package: Path) -> None:
    imports = cell("imports", "from course.tests import check")
    test = cell("test", "check(square)", 1)
    for cheat in (
        "from course.toy import square",
        "import course.toy as toy\nsquare = toy.square",
        "import importlib\nsquare = importlib.import_module('course.toy').square",
        "import sys\nsys.meta_path = sys.meta_path[1:]\nfrom course.toy import square",
        f"exec(open({str(package / 'toy.py')!r}).read())",
        f"import sys\nsys.path.insert(0, {str(package)!r})\nfrom toy import square",
        "from course.tests import right as square",
    ):
        source = [imports, test]
        cells, told = executed(tmp_path, imports, cheat, test, source=source, **BARRED)
        assert told["scores"] == {"test": 0}, cheat
        assert "SECRET42" not in says(cells[1])
        control = scores(tmp_path, imports, cheat, test, source=source, imports=["course"])
        assert control == {"test": 1}, cheat
    cells, told = executed(tmp_path, imports, SOLVED, "check(square)", test, **BARRED)
    assert told["scores"] == {"test": 1}
    assert says(cells[0]) == ""
    assert "run apart" in says(cells[2])


def test_a_ban_is_told_and_other_modules_are_there(tmp_path: Path, package: Path) -> None:
    cells, _ = executed(
        tmp_path, "import course.toy", "from course.other import cube\ncube(2)", **BARRED
    )
    assert "course.toy cannot be imported while your work is graded" in says(cells[0])
    assert "course/" not in "".join(cells[0].outputs[0].traceback)
    assert "8" in says(cells[1])


@pytest.mark.parametrize("level", [Level.NAMESPACES, Level.LANDLOCK])
def test_barred_files_cannot_be_read(tmp_path: Path, package: Path, level: Level) -> None:
    try:
        choose(level)
    except Exception as error:
        pytest.skip(str(error))
    read = (
        "import os\n"
        f"top = {str(package)!r}\n"
        "for folder, _, files in os.walk(top):\n"
        "    for name in files:\n"
        "        try: text = open(os.path.join(folder, name), 'rb').read()\n"
        "        except OSError: continue\n"
        "        print(os.path.relpath(os.path.join(folder, name), top), b'SECRET42' in text)\n"
    )
    server = ForkServer((), ["course.toy"], ["course.tests"])
    work = tmp_path / "work"
    work.mkdir()
    try:
        with server.notebook(work, {}, level=level, limits=Limits()) as notebook:
            shown, _ = notebook.run(read + "import course.other", 10)
    finally:
        server.close()
    text = "".join(one.get("text", "") + one.get("evalue", "") for one in shown.outputs)
    assert "True" not in text
    assert "other.py False" in text
    assert shown.ok


def test_an_endless_call_costs_its_cell_only(tmp_path: Path) -> None:
    answer = "def square(x):\n    while x == 3: pass\n    return x * x"
    ends = cell("ends", "assert square(2) == 4", 2)
    cells, told = executed(
        tmp_path, answer, ends, cell("endless", TEST, 3), cell("later", ends.source, 1), timeout=1
    )
    assert told["scores"] == {"ends": 2, "endless": 0, "later": 1}
    assert "longer than 1 s" in says(cells[2])


def test_a_call_that_cannot_be_interrupted_costs_the_rest(tmp_path: Path) -> None:
    answer = (
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n"
        "def square(x):\n    while x == 3: pass\n    return x * x"
    )
    test = cell("ends", "assert square(2) == 4", 2)
    later = cell("later", test.source, 1)
    _, told = executed(
        tmp_path, answer, test, cell("endless", TEST, 3), later, "print(1)", timeout=1
    )
    assert told["scores"] == {"ends": 2, "endless": 0, "later": 0}


def test_a_process_that_ends_keeps_earlier_points(tmp_path: Path) -> None:
    for end in ("import os\nos._exit(0)", "import ctypes\nctypes.string_at(0)"):
        cells, told = executed(
            tmp_path, SOLVED, cell("first", TEST, 3), end, cell("second", TEST, 3), "print(1)"
        )
        assert told["scores"] == {"first": 3, "second": 0}
        assert "DeadKernelError" in [one.get("ename") for one in cells[4].outputs]


def test_a_test_cell_that_ends_its_process_is_told(tmp_path: Path) -> None:
    dies = cell("dies", "import os\nos._exit(1)", 1)
    cells, told = executed(tmp_path, SOLVED, cell("first", TEST, 3), dies, cell("last", TEST, 1))
    assert told["scores"] == {"first": 3, "dies": 0, "last": 0}
    assert "the process of the test cells ended" in says(cells[2])


def test_stderr_costs_nothing(tmp_path: Path) -> None:
    answer = "import sys\ndef square(x):\n    print('hm', file=sys.stderr)\n    return x * x"
    cells, told = executed(tmp_path, answer, cell("test", TEST, 3))
    assert told["scores"] == {"test": 3}
    assert [one.name for one in cells[1].outputs] == ["stdout"]  # as nbgrader, too, wants it


def test_a_source_that_is_not_there_asks_for_nothing(tmp_path: Path) -> None:
    asked = instructions(tmp_path / "none.ipynb")
    assert (asked.imports, asked.answers, asked.beside) == ((), frozenset(), frozenset())


def test_the_tests_have_a_parent_of_their_own(tmp_path: Path, package: Path) -> None:
    executed(tmp_path, cell("test", "pass", 1), imports=["json", "course.tests"], **BARRED)
    keys = [one for one in pool._servers if "json" in one[0]]
    assert keys == [(("json", "course.tests"), ("course.toy",), ("course.tests",))]
    assert pool._servers[keys[0]]._control_of_tests is not None


def test_the_process_that_starts_early_is_the_one_that_is_used(
    tmp_path: Path, package: Path
) -> None:
    pool.close()
    settings = {"imports": ["json", "course.tests"], **BARRED}
    test = cell("test", "import wave, json", 1)
    executed(tmp_path, test, **settings)
    pool.close()
    lines = [f"c.WarmExecute.{name} = {value!r}" for name, value in settings.items()]
    text = "\n".join(["c = get_config()", *lines])
    (tmp_path / "nbgrader_config.py").write_text(text)
    pool.start(tmp_path, "toy")
    until = time.monotonic() + HANG
    while not pool._servers and time.monotonic() < until:
        time.sleep(0.01)
    [early] = pool._servers.values()
    executed(tmp_path, test, **settings)
    assert [*pool._servers.values()] == [early]


def test_a_configuration_that_says_nothing_starts_nothing(tmp_path: Path) -> None:
    pool.close()
    for text in ("c = get_config()", "raise ValueError", "c.WarmExecute.imports.append('json')"):
        (tmp_path / "nbgrader_config.py").write_text(text)
        pool.start(tmp_path, "toy")
    time.sleep(0.3)
    assert not pool._servers


TAGGED = {"skip_cells_with_tag": "train"}


def tagged(made: Any, *tags: str) -> Any:
    made.metadata["tags"] = [*tags]
    return made


@pytest.mark.parametrize("apart", [True, False])
def test_cells_with_the_tag_are_not_executed(tmp_path: Path, apart: bool) -> None:
    train = tagged(cell("train", "print('trains')\nlimit = 0"), "train", "other")
    own = tagged(new_code_cell("print('own')"), "train")
    plain = tagged(new_code_cell("print('plain')"), "other")
    test = cell("test", "assert 'limit' not in globals()\nassert square(2) == 4", 1)
    more = {"apart": apart, **TAGGED}
    cells, told = executed(tmp_path, train, SOLVED, own, plain, test, **more)
    assert [says(one) for one in cells] == ["", "", "", "plain\n", ""]
    assert told["scores"] == {"test": 1}
    cells, _ = executed(tmp_path, train, skip_cells_with_tag="another", apart=apart)
    assert says(cells[0]) == "trains\n"  # the control


def test_a_students_tags_take_no_cell_of_the_instructors_away(tmp_path: Path) -> None:
    """Nor do they have a cell executed that is not."""
    helper, test = cell("helper", "print('helps')"), cell("test", "assert square(2) == 4", 1)
    train = tagged(cell("train", "print('trains')"), "train")
    source = [helper, train, test]
    handed_in = [
        tagged(cell("helper", helper.source), "train"),
        cell("train", train.source),
        "def square(x): return 0",
        tagged(cell("test", test.source, 1), "train"),
    ]
    cells, told = executed(tmp_path, *handed_in, source=source, **TAGGED)
    assert [says(one) for one in cells[:3]] == ["helps\n", "", ""]
    assert told["scores"] == {"test": 0}
    assert "AssertionError" in [one.ename for one in cells[3].outputs]


def test_a_test_is_executed_whatever_its_tags_are(tmp_path: Path) -> None:
    test = tagged(cell("test", "assert square(2) == 4", 1), "train")
    assert scores(tmp_path, "def square(x): return 0", test, **TAGGED) == {"test": 0}


def test_the_tests_know_whose_work_they_test(tmp_path: Path) -> None:
    ask = "import os\nassert os.environ['GRADEBOX_STUDENT'] == 'ada'"
    test, beside = cell("test", ask, 1), cell("beside", ask, 1)
    beside.metadata["gradebox"] = {"beside": True}
    cheat = "import os\nos.environ['GRADEBOX_STUDENT'] = 'eve'"
    assert scores(tmp_path, SOLVED, test, beside) == {"test": 1, "beside": 1}
    assert scores(tmp_path, cheat, test, beside) == {"test": 1, "beside": 0}


def test_what_the_instructors_cells_import_is_imported_once(tmp_path: Path) -> None:
    imports = cell("imports", "import wave, no_such_module\nfrom course import x")
    ask = "import sys, os\nprint('wave' in sys.modules)"
    cells, _ = executed(tmp_path, ask, source=[imports], imports=["no.module.{assignment}"])
    assert says(cells[0]) == "True\n"
    cells, _ = executed(tmp_path, ask, source=[cell("test", "pass", 1)])
    assert says(cells[0]) == "False\n"  # the control


RECORDER = """
class Axes:
    def __init__(self): self._calls, self.title = [], "loss"
    def plot(self, *args, **kwargs): self._calls.append(("plot", args, kwargs))
    def set_xlabel(self, label): self._calls.append(("set_xlabel", label))
    def set_yscale(self, scale, **kwargs): self._calls.append(("set_yscale", scale))
"""


def test_an_answer_uses_objects_of_the_modules_of_the_tests(tmp_path: Path, package: Path) -> None:
    """Their methods are the tests', what they note is not for the answer to change."""
    (package / "tests" / "axes.py").write_text(RECORDER)
    test = cell(
        "test",
        "from course.tests.axes import Axes\nax = Axes()\nassert draw(ax, [1, 2]) is ax\n"
        "assert ax._calls == [('plot', ([1, 2],), {'label': 'loss'}), ('set_yscale', 'log')]",
        1,
    )
    draw = "def draw(ax, x):\n    ax.plot(x, label=ax.title)\n    {}\n    return ax"
    answers = {draw.format("ax.set_yscale('log')"): 1, draw.format("ax.set_yscale('linear')"): 0}
    answers |= {draw.format("ax._calls = [('plot', (x,), {}), ('set_yscale', 'log')]"): 0}
    for answer, expected in answers.items():
        assert scores(tmp_path, answer, test, source=[test], **BARRED) == {"test": expected}, answer
    assert scores(tmp_path, next(iter(answers)), test, hollow=[]) == {"test": 0}  # the control
