"""Tests isolated from a student's code see values and stubs; tests in its process see all."""

import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import notebooks
import pytest
from hang import HANG
from hostile.tables import table
from hostile.texts import sections
from notebooks import (
    SOON,
    also_in_wasm,
    answer,
    cell,
    executed,
    scores,
    shown,
    step,
    write_source,
)

from gradebox.nbgrader.dry_run import dry_run
from gradebox.nbgrader.source_notebook import given_parts
from gradebox.sandbox.choice import choose
from gradebox.sandbox.seal import Level, NotSealed
from gradebox.workers import client, pool
from gradebox.workers.client import ForkServer

pytestmark = [
    pytest.mark.usefixtures("sandbox"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.xdist_group("gradebox"),
]

SERVERS = "it has no fork servers"
NOT_IN_WASM = {
    "test_an_honest_notebook_is_no_tampering": "it has no matplotlib",
    "test_the_instructors_cells_run_where_the_tests_run[an imported part]": "it has no matplotlib",
    "test_a_seed_reaches_the_answer_and_no_draw_comes_back": "it has no torch",
    "test_a_call_that_cannot_be_interrupted_costs_the_rest": "it blocks no signals",
    "test_a_process_that_ends_keeps_earlier_points": "it has no ctypes",
    "test_all_cells_together_have_a_limit": "its time.process_time is the time that passes",
    "test_barred_files_cannot_be_read": "it names its sandbox",
    "test_a_server_that_died_is_started_again": SERVERS,
    "test_the_server_that_starts_early_is_the_one_that_is_used": SERVERS,
    "test_a_configuration_that_says_nothing_asks_for_nothing": SERVERS,
}
pytest_generate_tests = also_in_wasm(NOT_IN_WASM)

SQUARE = "def square(x):\n    return x * x"
TEST = "import numpy\nassert numpy.allclose(square(3), 9)\nassert square(-2) == 4"


def passed(folder: Path, student: str, *tests: str, **options: Any) -> list[bool]:
    """Return of each test whether it gave its point."""
    cells = [cell(str(number), test, 1) for number, test in enumerate(tests)]
    _, run = executed(folder, student, *cells, **options)
    return [run.scores[str(number)] == 1 for number in range(len(tests))]


def tagged(node: Any, *tags: str) -> Any:
    node.metadata["tags"] = [*tags]
    return node


def kinds(run: Any) -> list[tuple[str, str]]:
    """Return the kinds of the events with their cells."""
    return [(event.kind, event.cell) for event in run.events]


# --- points -----------------------------------------------------------------------------------

POINTS = {
    "pass": 4,
    "x = 3\nassert x == 3": 4,
    "assert False": 0,
    "1.5": 1.5,
    "np.float64(2.5)": 2.5,
    "-3": 0,
    "99": 4,
    "float('nan')": 0,
    "10 ** 400": 4,
    "True": 4,
    "'3'": 4,
    "3;": 4,
    "number": 2,
    "number == np.ones(3)": 0,
    "import sys; print('error', file=sys.stderr)": 4,
    "print(3)": 4,
    "def f(:": 0,
    "raise SystemExit": 0,
    "nothing_of_this_name": 0,
    "[number for _ in range(2)]": 4,
    "def g(): return number\nassert g() == 2": 4,
    "import asyncio\nawait asyncio.sleep(0)\nassert number == 2": 4,
    "async def f(): return 3\nawait f()": 3,
    "%matplotlib inline\nassert number == 2": 4,
    "assert get_ipython() is not None\ndisplay(number)": 4,
    "assert 'number' in globals() and 'other' not in globals()": 4,
    "assert {'number', 'f'} <= set(dir()) and 'other' not in dir()": 4,
    "number = number + 1\nassert number == 3\ndel number": 4,
    "number = 5\nassert number == 5\ndel number\nassert number == 2": 0,
    "[print(name) for name in list(globals())];": 4,
}


def points_of(folder: Path) -> dict[str, float]:
    """Return what each of these tests gives; all of them are worth 4."""
    tests = [cell(source, source, 4) for source in POINTS]
    cells, run = executed(folder, "number = 2\nimport numpy as np\ndef f(): ...", *tests)
    assert all(output.get("name") != "stderr" for node in cells for output in node.outputs)
    return run.scores


@pytest.mark.parametrize("source", POINTS)
def test_a_test_gives_what_its_last_line_and_its_errors_say(once: Any, source: str) -> None:
    assert once(points_of)[source] == POINTS[source]


def test_numbers_stay_within_their_bounds_in_process(tmp_path: Path) -> None:
    points = {"7": 2, "-1": 0, "float('nan')": 0, "1.5": 1.5, "'x'": 2, "1 / 0": 0}
    points["import sys\nprint('x', file=sys.stderr)"] = 2
    tests = [cell(source, source, 2) for source in points]
    assert scores(tmp_path, "pass", *tests, in_process=points) == points


def test_an_error_that_cannot_be_shown_gives_no_points(tmp_path: Path) -> None:
    odd = "class Odd(Exception):\n    def _render_traceback_(self): raise ValueError\n"
    odd += "def square(x): raise Odd"
    tests = [cell(name, "square(2)", 3) for name in ("isolated", "inside")]
    cells, run = executed(tmp_path, odd, *tests, in_process=["inside"])
    assert run.scores == {"isolated": 0, "inside": 0}
    assert [node.outputs[-1].ename for node in cells[1:]] == ["Exception", "Odd"]


# --- what crosses -----------------------------------------------------------------------------

CROSSES = sections("tables/crosses.txt")
HELPERS, STUDENT, DRIVERS = (CROSSES.pop(name) for name in ("helpers", "student", "drivers"))


def crossed(folder: Path) -> tuple[Any, dict[str, Any]]:
    """Return what the tests gave for which values cross, and their cells."""
    for place in (folder / "source/toy", folder / "work"):
        place.mkdir(parents=True, exist_ok=True)
        (place / "drivers.py").write_text(DRIVERS)
    tests = {name: cell(name, source, 1) for name, source in CROSSES.items()}
    _, run = executed(folder, cell("helpers", HELPERS), STUDENT, *tests.values())
    return run, tests


@pytest.mark.parametrize("name", CROSSES)
def test_values_cross_and_functions_are_called(once: Any, name: str) -> None:
    run, cells = once(crossed)
    assert run.scores[name] == 1, run.reasons[name]
    assert name != "what it prints" or shown(cells[name]) == "four\n"


REFUSED = {
    "account = Account()": "`Account` returns an Account: only values cross",
    "same(__import__('threading').Lock())": "the test passes `same` a lock: only values cross",
    "class Mine: pass\nsame(Mine)": "the test passes `same` the class Mine: only values cross",
    "thing": "`thing` is an Account: only values cross",
    "try:\n    thing\nexcept Exception:\n    pass": "`thing` is an Account: only values cross",
    "draws": "`draws` is what raises ZeroDivisionError: only values cross",
    "same(lambda: object())()": "",
    "twice(lambda x: object(), 1)": "a function of the test returns an object: only values cross",
}


def refused(folder: Path) -> Any:
    """Return what became of the tests that ask for what is no value."""
    student = f"{STUDENT}\nthing = Account()\ndraws = (1 / 0 for _ in [1])"
    _, run = executed(folder, student, *(cell(source, source, 1) for source in REFUSED))
    assert {cell for _, cell in kinds(run)} <= REFUSED.keys()
    return run


@pytest.mark.parametrize(("source", "why"), REFUSED.items())
def test_what_is_no_value_costs_the_points_and_is_said(once: Any, source: str, why: str) -> None:
    run = once(refused)
    assert run.reasons.get(source, "") == why
    assert run.scores[source] == (0 if why else 1)
    assert [kind for kind, cell in kinds(run) if cell == source] == ["not-a-value"] * bool(why)


def test_the_error_shows_the_line_of_the_test_and_of_the_student(tmp_path: Path) -> None:
    test = cell("test", "import math\nf(math.pi)", 1)
    cells, _ = executed(tmp_path, "def f(x):\n    return x.nothing", test)
    [output] = cells[1].outputs
    assert output.ename == "AttributeError"
    text = "\n".join(output.traceback)
    assert "    f(math.pi)\n" in text
    assert text.endswith("In the student's code:\n  line 2: return x.nothing")
    assert "gradebox" not in text


SEEDS = {
    "random": ("random.seed(3)", "random.random()"),
    "numpy": ("np.random.seed(3)", "np.random.rand()"),
    "torch": ("torch.manual_seed(3)", "torch.rand(1).item()"),
}


def test_a_seed_reaches_the_answer_and_no_draw_comes_back(tmp_path: Path) -> None:
    imports = "import random, torch\nimport numpy as np\n"
    draws = "".join(f"def {name}(): return {draw}\n" for name, (_, draw) in SEEDS.items())
    tests = [
        f"{imports}{seed}\nexpected = {draw}\n{seed}\nassert {name.replace('_', '')}_draw() == "
        f"expected\nassert {draw} == expected\nassert {name}_draw() != expected"
        for name, (seed, draw) in SEEDS.items()
    ]
    draws = draws.replace("():", "_draw():")
    assert passed(tmp_path, imports + draws, *tests) == [True] * 3


# --- whose names and files --------------------------------------------------------------------


def test_a_file_that_the_student_overwrites_is_not_what_the_test_reads(tmp_path: Path) -> None:
    for folder, text in (("source/toy", "16"), ("work", "16")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "expected.txt").write_text(text)
    student = "open('expected.txt', 'w').write('0')\nopen('colorsys.py', 'w').write('x = 1')\n"
    tests = (
        "import os\nassert str(square(4)) == open('expected.txt').read()",
        "import os, colorsys\nassert os.listdir() == ['expected.txt'] and colorsys.rgb_to_hsv",
    )
    assert passed(tmp_path, student + "def square(x): return 0", *tests) == [False, True]


def test_a_locked_cell_runs_for_both_and_its_hidden_part_for_the_tests(tmp_path: Path) -> None:
    helper = cell(
        "helper",
        "limit = 7\ndef near(a, b): return abs(a - b) < limit\n"
        "### BEGIN HIDDEN TESTS\nexpected = 42\n### END HIDDEN TESTS",
    )
    cheat = "near = lambda a, b: True\nseen = globals().get('expected')"
    tests = [cell("near", "assert near(square(3), 100)", 1)]
    tests += [cell("seen", "assert expected == 42 and seen is None", 1)]
    handed_in = [helper, cheat, SQUARE, "print(limit)", *tests]
    source = [helper, answer(SQUARE), answer("seen = None", "seen"), *tests]
    cells, run = executed(tmp_path, *handed_in, source=source)
    assert run.scores == {"near": 0, "seen": 1}
    assert shown(cells[3]) == "7\n"


def given(folder: Path, *without: str) -> tuple[Any, dict[str, str]]:
    """Return what became of tests of the instructor's cells, and why those fail that should."""
    made = table("given", without)
    why = {made.cells[place].metadata.nbgrader.grade_id: t for place, t in made.said["why"].items()}
    handed_in = [node for node in made.cells if node.metadata.get("nbgrader")]  # no plain cells
    options: dict[str, Any] = {"source": made.cells, "skip_cells_with_tag": "train"}
    return executed(folder, *handed_in, **options)[1], why


def given_in_wasm(folder: Path) -> tuple[Any, dict[str, str]]:
    return given(folder, "an imported part")


@pytest.mark.parametrize("name", sections("tables/given.txt"))
def test_the_instructors_cells_run_where_the_tests_run(once: Any, name: str) -> None:
    run, why = once(given_in_wasm if notebooks.SANDBOX == "wasm" else given)
    assert run.reasons.get(name, "") == why.get(name, "")
    assert run.scores[name] == (0 if name in why else 1)


SOLUTIONS = {
    "x = 1\n### BEGIN SOLUTION\ny = x\n### END SOLUTION\nz = y": {"y"},
    "def f(x):\n    ### BEGIN SOLUTION\n    y = x\n    ### END SOLUTION": {"f"},
    "for k in (1, 2):\n    (a, *b), c.d, e[0] = k": {"k", "a", "b"},
    "import u.v, w as q\nfrom u import s as t": set(),
    "with open('a') as f, open('b') as (g, h): n = (m := [o for p in f])": {*"fghnm"},
    "def f():\n    global g\n    g = h = 1": {"f", "g"},
    "try:\n    import a\nexcept ImportError as b:\n    a = c = None": {"b", "c"},
    "class A:\n    b = 1\n    def c(self): self.d = 1": {"A"},
    "x += 1\ndel y\nz: int = 3": {"x", "y", "z"},
    "match [1]:\n    case [a, *b]: pass\n    case {'c': c, **d}: pass": {*"abcd"},
    "%%capture out\nx = 1": {"x", "out"},
    "%matplotlib inline\nx = !ls": {"x"},
    "def broken(": set(),
}


@pytest.mark.parametrize(("source", "names"), SOLUTIONS.items())
def test_a_test_may_ask_for_what_solutions_bind(source: str, names: set[str]) -> None:
    parts = given_parts([answer(source), cell("test", "pass", 1)])
    assert {name for part in parts for name in part.answers} == names


def test_a_name_that_python_has_is_the_students_where_a_test_needs_it(tmp_path: Path) -> None:
    solution = "def {}:\n    ### BEGIN SOLUTION\n    return {}\n    ### END SOLUTION"
    sources = {"sum(x)": 30, "max(x)": "sorted(x)[-1]", "f()": "[1, 2]"}
    cells = [answer(solution.format(*pair), f"answer-{pair[0][0]}") for pair in sources.items()]
    tests = {
        "fails with Python's": "assert sum(f()) == 30",
        "says nothing with Python's": "assert max([1, 2]) == 2",
        "needs neither": "assert max(f()) == 2",
    }
    cells += [cell(name, test, 1) for name, test in tests.items()]
    runs = dry_run(step(tmp_path), write_source(tmp_path, cells), "toy")
    assert [(run.way, run.answers, run.blank) for run in runs] == [("isolated", 1, 0)] * 3
    assert [run.pythons for run in runs] == [("sum",), ("max",), ()]


def test_the_tests_know_whose_work_they_test(tmp_path: Path) -> None:
    ask = "import os\nassert os.environ['GRADEBOX_STUDENT'] == 'ada'"
    cheat = "import os\nos.environ['GRADEBOX_STUDENT'] = 'eve'"
    assert passed(tmp_path, cheat, ask, ask, in_process=["1"]) == [True, False]


# --- time and death ---------------------------------------------------------------------------

LATER = cell("later", "assert square(2) == 4", 1)


@pytest.mark.usefixtures("short_limits")
def test_an_endless_call_costs_its_cell_only(tmp_path: Path) -> None:
    student = "def square(x):\n    while x == 3: pass\n    return x * x"
    swallows = "try:\n    square(3)\nexcept Exception:\n    pass"
    first, swallow = cell("first", "assert square(2) == 4", 2), cell("swallow", swallows, 1)
    _, run = executed(
        tmp_path, student, first, cell("endless", TEST, 3), swallow, LATER, timeout=SOON
    )
    assert run.scores == {"first": 2, "endless": 0, "swallow": 0, "later": 1}
    assert kinds(run) == [("slow", "endless"), ("slow", "swallow")]


@pytest.mark.usefixtures("short_grace")
def test_a_call_that_cannot_be_interrupted_costs_the_rest(tmp_path: Path) -> None:
    student = (
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n"
        "def square(x):\n    while x == 3: pass\n    return x * x"
    )
    first, endless = cell("first", "assert square(2) == 4", 2), cell("endless", TEST, 3)
    cells, run = executed(tmp_path, student, first, endless, LATER, "print(1)", timeout=SOON)
    assert run.scores == {"first": 2, "endless": 0, "later": 0}
    assert cells[4].outputs[-1].ename == "DeadKernelError"


def test_a_process_that_ends_keeps_earlier_points(tmp_path: Path) -> None:
    first, own = cell("first", TEST, 3), cell("own", "assert 1 + 1 == 2", 1)
    for end in ("import os\nos._exit(0)", "import ctypes\nctypes.string_at(0)"):
        cells, run = executed(tmp_path, SQUARE, first, end, LATER, own, "print(1)")
        assert run.scores == {"first": 3, "later": 0, "own": 1}
        assert "DeadKernelError" in [output.get("ename") for output in cells[5].outputs]
        assert kinds(run)[0] == ("ended", "")


def test_a_call_that_ends_python_costs_a_test_that_catches_it(tmp_path: Path) -> None:
    student = f"import os\n{SQUARE}\ndef die(f=print): f(); os._exit(0)"
    swallows = "try:\n    die(lambda: None)\nexcept Exception:\n    pass"
    _, run = executed(tmp_path, student, cell("first", TEST, 1), cell("dies", swallows, 1), LATER)
    assert run.scores == {"first": 1, "dies": 0, "later": 0}
    assert kinds(run) == [("ended", "dies")]


@pytest.mark.usefixtures("short_grace")
def test_a_test_that_loops_or_ends_its_process_costs_no_earlier_points(tmp_path: Path) -> None:
    loop = "while True:\n    try:\n        while True: square(1)\n    except Exception: pass"
    stops = "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"
    first, loops = cell("first", TEST, 1), cell("loops", "while True: pass", 1)
    _, run = executed(tmp_path, SQUARE, first, loops, LATER, timeout=SOON)
    assert run.scores == {"first": 1, "loops": 0, "later": 1}
    assert kinds(run) == [("slow", "loops")]
    for end in (loop, stops, "import os\nos._exit(0)"):
        _, run = executed(tmp_path, SQUARE, first, cell("ends", end, 1), LATER, timeout=SOON)
        assert (run.scores["first"], run.scores["ends"]) == (1, 0)


def test_all_cells_together_have_a_limit(tmp_path: Path) -> None:
    busy = "import time\nuntil = time.process_time() + 0.2\nwhile time.process_time() < until: pass"
    cells, run = executed(tmp_path, *[busy] * 3, timeout=5, max_seconds=0.3)
    assert "all cells together took longer than 0.3 s" in shown(cells[-1])
    assert str(run.events[-1]) == "all cells together took too long"


# --- in-process -------------------------------------------------------------------------------


def test_no_test_is_in_the_students_process_while_its_cells_run(tmp_path: Path) -> None:
    spy = (
        "seen = []\ndef look(info): seen.append(info.raw_cell)\n"
        "get_ipython().events.register('pre_run_cell', look)\n"
        "import gc\ndef texts(): return [o for o in gc.get_objects()"
        " if isinstance(o, str) and 'SECRET' + '42' in o]"
    )
    tests = [cell("first", "# SECRET42\nassert square(2) == 4", 1)]
    tests += [cell("last", "assert not any('SECRET' '42' in text for text in [*seen, *In])", 1)]
    look = "print(sum('SECRET' + '42' in text for text in [*seen, *In]), texts())"
    every = [spy, SQUARE, *tests, look]
    cells, run = executed(tmp_path, *every, in_process=["first", "last"])
    assert shown(cells[4]) == "0 []\n"
    assert run.scores == {"first": 1, "last": 1}  # nor does a hook, or a history, get one then


def test_names_are_those_where_the_test_stands(tmp_path: Path) -> None:
    cells = [
        "x = 1\ndef f(): return x",
        cell("before", "assert (x, f()) == (1, 1)\nmine = x", 1),
        "x = 2\ny = 3\ndef f(): return -x",
        cell("between", "assert (x, y, f(), mine) == (2, 3, -2, 1)", 1),
        "del x",
        cell("after", "assert 'x' not in globals() and mine == 1 and y == 3", 1),
    ]
    names = ["before", "between", "after"]
    _, run = executed(tmp_path, *cells, in_process=names)
    assert run.scores == dict.fromkeys(names, 1)
    assert run.events == []


def test_answers_use_what_the_student_has_put_in_place_of_pythons_own(tmp_path: Path) -> None:
    student = "import builtins\nmine = builtins.abs = lambda x: 6\ndef h(x): return abs(x)\n"
    student += "builtins.vars = builtins.sorted = None\ndef f(g): return g(1) + abs(1)"
    tests = [cell("nested", "assert f(lambda x: h(x)) == 12", 1)]
    tests += [cell("inside", "assert f(h) == 12 and abs is mine", 1)]
    _, run = executed(tmp_path, student, *tests, in_process=["inside"])
    assert run.scores == {"nested": 1, "inside": 1}
    assert [(event.kind, event.fields["what"]) for event in run.events] == [
        ("tampering", "abs, sorted, vars")
    ]


PUT_BACK = {
    "near.__code__ = (lambda *a: True).__code__": ("near", "def near(a, b): return a == b"),
    "close.__defaults__ = (9,)": ("close", "def close(a, b, by=0): return abs(a - b) <= by"),
    "same = None": ("same", "def same(a, b): return a == b"),
    "Near.of = lambda *a: True": ("Near.of", "class Near:\n    def of(a, b): return a == b"),
}


def test_helpers_are_put_back(tmp_path: Path) -> None:
    helpers = [cell(f"helper of {name}", text) for name, text in PUT_BACK.values()]
    tests = [
        cell(cheat, f"assert {name}(2, 2)\nassert {name}(square(2), 5)", 1)
        for cheat, (name, _) in PUT_BACK.items()
    ]
    source = [*helpers, answer(SQUARE), *tests]
    handed_in = [*helpers, SQUARE, *PUT_BACK, *tests]
    _, run = executed(tmp_path, *handed_in, source=source, in_process=PUT_BACK)
    assert run.scores == dict.fromkeys(PUT_BACK, 0)
    assert run.reasons == dict.fromkeys(PUT_BACK, "AssertionError")
    assert {*run.changed} == {"near", "close", "same", "Near"}


def test_an_honest_notebook_is_no_tampering(tmp_path: Path) -> None:
    helper = cell("helper", "import numpy as np\ndef near(a, b): return a == b")
    student = "import numpy as np, warnings\nnp.random.seed(1)\nnp.seterr(all='ignore')\n"
    student += "warnings.simplefilter('ignore')\ndef max(*a): return 9\n"
    student += "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1])\n"
    student += "plt.switch_backend('agg')"
    test = cell("test", "assert near(square(2), 4)", 1)
    imports = ["matplotlib.pyplot"]
    cells = [helper, SQUARE, student, test]
    _, run = executed(tmp_path, *cells, in_process=["test"], imports=imports)
    assert run.scores == {"test": 1}
    assert run.events == []


# --- what cells cannot import -----------------------------------------------------------------


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a package with answers and tests, which is on the path of new processes."""
    library = tmp_path_factory.mktemp("package") / "lib"  # which others may enter
    folder = library / "course"
    (folder / "tests").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "toy.py").write_text("def square(x):\n    return x * x  # SECRET42\n")
    (folder / "other.py").write_text("def cube(x):\n    return x ** 3\n")
    text = "from course.toy import square as right\ndef check(f): assert f(5) == right(5)\n"
    (folder / "tests" / "__init__.py").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{library}:{':'.join(filter(None, sys.path))}")
        patch.syspath_prepend(str(library))
        yield folder


BARRED: dict[str, Any] = {"banned": ["course.{assignment}"], "stubbed": ["course.tests"]}
IMPORTS = cell("imports", "from course.tests import check")
CHECK = cell("test", "check(square)", 1)


def test_the_reference_cannot_be_imported(tmp_path: Path, package: Path) -> None:
    cheats = [
        "from course.toy import square",
        "import importlib\nsquare = importlib.import_module('course.toy').square",
        f"exec(open({str(package / 'toy.py')!r}).read())",
        f"import sys\nsys.path.insert(0, {str(package)!r})\nfrom toy import square",
        "import sys\nsys.meta_path = sys.meta_path[1:]\nfrom course.toy import square",
        "from course.tests import right as square",
    ]
    # a name of its own that a cheat that fails leaves without a value
    own = [f"{cheat}\nsquare_{number} = square" for number, cheat in enumerate(cheats)]
    tests = [cell(cheat, f"check(square_{number})", 1) for number, cheat in enumerate(cheats)]
    names = "\n".join(f"square_{number} = None" for number in range(len(cheats)))
    source = [IMPORTS, answer(names), *tests]
    cells, run = executed(tmp_path, IMPORTS, *own, *tests, source=source, **BARRED)
    assert run.scores == dict.fromkeys(cheats, 0)
    assert not [node.source for node in cells if "SECRET42" in shown(node)]
    handed_in = [IMPORTS, cheats[-1], CHECK]
    source = [IMPORTS, answer(SQUARE), CHECK]
    control = scores(tmp_path, *handed_in, source=source, imports=["course"])
    assert control == {"test": 1}


def test_the_tests_have_what_answers_do_not(tmp_path: Path, package: Path) -> None:
    imports = ["json", "course.tests"]
    cells, run = executed(
        tmp_path,
        IMPORTS,
        SQUARE,
        "import course.toy",
        "check(square)",
        CHECK,
        imports=imports,
        **BARRED,
    )
    assert run.scores == {"test": 1}
    assert shown(cells[0]) == ""
    assert "course.toy cannot be imported while your work is graded" in shown(cells[2])
    assert "course/" not in "".join(cells[2].outputs[0].traceback)
    assert "the tests do not run in this process" in shown(cells[3])
    _, run = executed(tmp_path, IMPORTS, SQUARE, CHECK, in_process=["test"], **BARRED)
    assert run.scores == {"test": 0}  # the stub raises: a test of it would otherwise pass


@pytest.mark.parametrize("level", [Level.NAMESPACES, Level.LANDLOCK], ids=str)
def test_barred_files_cannot_be_read(tmp_path: Path, package: Path, level: Level) -> None:
    try:
        choose(level)
    except NotSealed as error:
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
    cells, _ = executed(tmp_path, read, "import course.other", sandbox=str(level), **BARRED)
    assert "True" not in shown(cells[0])
    assert "other.py False" in shown(cells[0])
    assert shown(cells[1]) == ""


# --- tags -------------------------------------------------------------------------------------


def test_cells_with_the_tag_are_not_executed_and_the_instructors_tags_count(tmp_path: Path) -> None:
    helper, train = cell("helper", "print('helps')"), cell("train", "print('trains')")
    test = cell("test", "assert square(2) == 4", 1)
    source = [helper, tagged(cell("train", train.source), "train", "other"), answer(SQUARE)]
    source.append(tagged(cell("test", test.source, 1), "train"))
    own = cell("", "print('own')")
    del own.metadata["nbgrader"]
    handed_in = [
        tagged(cell("helper", helper.source), "train"),
        train,
        tagged(own, "train"),
        "def square(x): return 0",
        tagged(cell("test", test.source, 1), "train"),
    ]
    cells, run = executed(tmp_path, *handed_in, source=source, skip_cells_with_tag="train")
    assert [shown(node) for node in cells[:4]] == ["helps\n", "", "", ""]
    assert run.scores == {"test": 0}
    assert cells[4].outputs[0].ename == "AssertionError"


# --- fork servers -----------------------------------------------------------------------------


def test_a_server_that_died_is_started_again(tmp_path: Path) -> None:
    executed(tmp_path, "1", imports=["sched"])
    [process] = [each._process for key, each in pool._servers.items() if "sched" in key[0]]
    process.kill()
    process.wait()
    assert shown(executed(tmp_path, "2", imports=["sched"])[0][0]) == "{'text/plain': '2'}"


def test_a_process_that_never_spoke_has_no_number() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        theirs.close()  # then the kernel says 0, which would end the grader's own group
        with pytest.raises(RuntimeError):
            client._sender(ours)


def test_a_server_that_does_not_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(RuntimeError, match="the fork server did not start; try: /bin/false"):
        ForkServer(("numpy",)).wait_until_ready()


def test_the_server_that_starts_early_is_the_one_that_is_used(
    tmp_path: Path, package: Path
) -> None:
    settings: dict[str, Any] = {"imports": ["wave", "course.tests"], **BARRED}
    lines = [f"c.WarmExecute.{name} = {value!r}" for name, value in settings.items()]
    (tmp_path / "nbgrader_config.py").write_text("\n".join(["c = get_config()", *lines]))
    test = cell("test", "import colorsys, json", 1)
    write_source(tmp_path, [test])
    before = [*pool._servers]
    pool.start((pool.configured(tmp_path, "toy") or [None])[0])
    until = time.monotonic() + HANG
    while len(pool._servers) == len(before) and time.monotonic() < until:
        time.sleep(0.01)
    started = [*pool._servers]
    assert [key[1:3] for key in started[len(before) :]] == [(("course.toy",), ("course.tests",))]
    executed(tmp_path, test, **settings)
    assert [*pool._servers] == started


@pytest.mark.parametrize("text", ["c = get_config()", "raise ValueError"])
def test_a_configuration_that_says_nothing_asks_for_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "nbgrader_config.py").write_text(text)
    assert pool.configured(tmp_path, "toy") is None


def test_what_the_instructors_cells_import_is_imported_once(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("")
    texts = ["import numpy as np, json\nfrom os.path import join", "%magic", "import no_x"]
    assert pool.imports_of(texts, tmp_path) == ["numpy", "os.path", "os.path:join"]
    imports = cell("imports", "import wave, no_such_module\nfrom course import x")
    for source, expected in (([imports], "True\n"), ([LATER], "False\n")):
        cells, _ = executed(tmp_path, "import sys\nprint('wave' in sys.modules)", source=source)
        assert shown(cells[0]) == expected
