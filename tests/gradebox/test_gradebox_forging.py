"""What a student's process returns, sends or does forges no isolated test, and hangs no grader."""

import contextlib
import copy
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import notebooks
import psutil
import pytest
from hostile.tables import table
from hostile.texts import HERE, sections, split
from nbformat.v4 import new_code_cell, new_notebook
from notebooks import (
    CONTEXT,
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
from gradebox.nbgrader.notebook_run import Run
from gradebox.nbgrader.plan import NotebookPlan, planned
from gradebox.sandbox import probe
from gradebox.sandbox.seal import MIB, Level, NotSealed
from gradebox.workers import client, pool
from gradebox.workers.notebook import Notebook

pytestmark = [
    pytest.mark.usefixtures("sandbox", "short_limits"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.xdist_group("gradebox"),
    pytest.mark.skipif(
        not hasattr(os, "fork") or probe.probe() is not Level.NAMESPACES,
        reason="hostile code is run behind the strongest barrier only",
    ),
]

SENDS = "it has no such line; what it may send is in test_gradebox_wasm.py"
STOPS = "it has no processes to stop"
NOT_IN_WASM = {
    "test_a_function_of_the_test_is_not_called_after_the_call": "it has no threads",
    "test_values_that_take_the_tests_for_ever_to_read_are_given_up": "its hashes have 32 bits, "
    "so that these keys differ in them",
    "test_what_forgers_try_in_process_is_named[threading.enumerate]": "it has no threads",
    "test_so_is_what_keeps_later_cells_from_running[ast.parse]": "its Python has another one",
    "test_what_is_sent_forges_nothing_and_hangs_nothing": SENDS,
    "test_the_grader_takes_no_bytes_beside_a_message": SENDS,
    "test_odd_outputs_of_a_test_in_process_give_nothing_to_read": SENDS,
    "test_a_process_that_was_stopped_is_given_up": STOPS,
    "test_what_forks_and_does_not_answer_is_replaced": STOPS,
    "test_a_process_that_is_not_sealed_in_time_is_given_up": STOPS,
    "test_a_test_that_ends_its_process_costs_the_later_ones[stopped]": STOPS,
    "test_a_test_in_process_is_sealed": "it names its sandbox",
    "test_students_process_has_no_text_of_what_is_prepared": "it has no /proc",
}
pytest_generate_tests = also_in_wasm(NOT_IN_WASM)

MOST = 60.0
"""Seconds of wall time in which each of these submissions is over, on a busy machine too."""


def wait_for(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    last = time.monotonic() + MOST
    while not is_so():
        assert time.monotonic() < last
        time.sleep(0.005)


def require(level: str) -> None:
    """Skip a test where a level is not to be had; a barrier with a hole is no reason to."""
    told = probe.survey().tried.get(level, "not tried")
    if told.startswith(("refused", "not tried")):
        pytest.skip(f"{level} is not to be had here: {told}")


# --- what answers return, raise, and call things ----------------------------------------------


def attacked(folder: Path) -> dict[str, list[float]]:
    """Return by attack the points of the right answers and of those that try to get them."""
    made = table("attacks")
    runs = [
        executed(
            folder,
            *(said.get(place, copy.deepcopy(node)) for place, node in enumerate(made.cells)),
            source=made.cells,
        )[1].scores
        for said in ({}, made.said["wrong"])
    ]
    return {name: [scores[name] for scores in runs] for name in made.names}


@pytest.mark.parametrize("name", sections("tables/attacks.txt"))
def test_an_answer_forges_no_isolated_test(once: Any, name: str) -> None:
    assert once(attacked)[name] == [1, 0]


def test_a_cell_that_was_refused_leaves_what_it_had_before(tmp_path: Path) -> None:
    has = "import math\nxs = [1, 2]\n"
    cells = [cell("locked", f"{has}got = f(1)"), cell("test", "assert math.isclose(xs[1], 2)", 1)]
    for wrong in ("object()", "{}[0]"):
        own = answer(f"def f(x): return {wrong}")
        _, run = executed(tmp_path, own, *copy.deepcopy(cells), source=[answer("f = abs"), *cells])
        assert run.scores == {"test": 1}, run.reasons


def test_a_process_that_has_ended_raises_what_no_later_test_expects(tmp_path: Path) -> None:
    expects = "try:\n    {}(3)\nexcept Exception:\n    pass\nelse:\n    assert False"
    tests = [cell(name, expects.format(name), 1) for name in ("f", "g")]
    raises = answer("def f(x): raise ValueError\ng = f")
    for own, points in ((copy.deepcopy(raises), 1), (answer("import os\nos._exit(0)"), 0)):
        _, run = executed(tmp_path, own, *copy.deepcopy(tests), source=[raises, *tests])
        assert run.scores == {"f": points, "g": points}, run.reasons


G = "def g(x): return x * x\n"
FIRST = cell("first", "assert g(2) == 4", 1)
TEST = cell("test", "assert f(3) == 9", 1)
LATER = cell("later", "assert g(2) == 4", 1)

LARGE = {
    "deep = []\n    for _ in range(10_000): deep = [deep]\n    return deep": "more than 100 deep",
    "return 'x' * (257 * 2**20)": "more than 256 MiB at once",
    "return 'x' * (17 * 2**20)": "more than 16 MiB of text",
    "return 1 << 9 * 2**24": "more than 16 MiB of text",
    "for _ in range(50): print('x' * 2**20)\n    return 8": "AssertionError",
}
_DEEP, _TEXT, *_ = LARGE
NOT_SO_LARGE_IN_WASM = _DEEP, _TEXT
"""Its stack ends when a list is freed that is so deep, and it has no memory for so much text."""


def test_answers_that_are_too_large_cost_their_tests_only(tmp_path: Path) -> None:
    left_out = NOT_SO_LARGE_IN_WASM if notebooks.SANDBOX == "wasm" else ()
    expected = {body: why for body, why in LARGE.items() if body not in left_out}
    answers = [f"def f_{number}(x):\n    {body}" for number, body in enumerate(expected)]
    tests = [cell(body, f"assert f_{number}(3) == 9", 1) for number, body in enumerate(expected)]
    cells, run = executed(tmp_path, G, *answers, *tests, LATER)
    assert run.scores == dict.fromkeys(expected, 0) | {"later": 1}, run.reasons
    for body, why in expected.items():
        assert why in run.reasons[body]
    assert max(len(shown(node)) for node in cells) < 3 * MIB


# --- what a student's process sends -----------------------------------------------------------

SENT = sections("tables/sent.txt")
LINES = SENT.pop("lines")
"""A cell with what the others send, and with what."""

TOGETHER = [
    (name, when, "namespaces")
    for name, source in SENT.items()
    for when in ("in a cell", "in a call")
    # what a cell puts in place of all answers is sent in a call, too
    if when == "in a cell" or not source.startswith(("answer(", "array("))
]
TOGETHER += [  # of them what is held back otherwise there
    (name, "in a call", "landlock")
    for name in ("a signal to itself", "a signal to its parent", "messages of a child")
]


@pytest.mark.usefixtures("short_grace")
@pytest.mark.parametrize(("name", "when", "level"), TOGETHER)
def test_what_is_sent_forges_nothing_and_hangs_nothing(
    tmp_path: Path, name: str, when: str, level: str
) -> None:
    require(level)
    source = SENT[name]
    body = source.replace("\n", "\n    ")
    answers = (
        f"def f(x):\n    {body}\n    return 8" if when == "in a call" else "def f(x): return 8"
    )
    attack = "pass" if when == "in a call" else source
    began = time.monotonic()
    cells, run = executed(
        tmp_path, LINES, FIRST, attack, answers, TEST, LATER, timeout=SOON, sandbox=level
    )
    assert (run.scores["first"], run.scores["test"]) == (1, 0)
    nbformat.validate(new_notebook(cells=cells), relax_add_props=True)
    assert time.monotonic() - began < MOST


def test_the_grader_takes_no_bytes_beside_a_message(tmp_path: Path) -> None:
    cells, _ = executed(tmp_path, f"{LINES}\nsend(message(shown, b'x'))")
    assert shown(cells[0]) == "the process ended while the cell ran"
    _, run = executed(tmp_path, G, cell("test", f"{LINES}\nsend(message(verdict, b'x'))", 1))
    assert run.scores == {"test": 0}
    assert [(event.kind, event.cell) for event in run.events] == [("ended", "test")]


@pytest.mark.usefixtures("short_grace")
def test_values_that_take_the_tests_for_ever_to_read_are_given_up(tmp_path: Path) -> None:
    # made before the call, whose time is limited; each is compared with all others
    keys = "tree = ['dict', *(x for i in range(40_000) for x in (i * (2**61 - 1), 0))]"
    collide = f"{LINES}\n{keys}\ndef f(x): answer(tree)"
    began = time.monotonic()
    _, run = executed(tmp_path, collide, FIRST, TEST, LATER, timeout=SOON)
    assert run.scores == {"first": 1, "test": 0, "later": 0}
    assert [(event.kind, event.cell) for event in run.events] == [("slow", "test")]
    assert time.monotonic() - began < MOST


# --- functions of the test --------------------------------------------------------------------

RECORD = "calls = []\ndef h(x):\n    calls.append(x)\n    return x\n"
CALLS = {
    "a million times": "for i in range(10**6): h(i)\n    return h(3)",
    "with other values": "h([h] * 1000)\n    h(None)\n    return h(3) + 1",
    "with what is no value": "try: h(object())\n    except Exception: pass\n    return 0",
    "without end": "return f_3(h)",
}


def called(name: str, function: str) -> Any:
    """Return a test that passes a function to a function of the student's."""
    return cell(name, f"{RECORD}assert {function}(h) == calls[-1] == 3", 1)


def test_a_function_of_the_test_may_be_called_anyhow(tmp_path: Path) -> None:
    answers = [f"def f_{number}(h):\n    {body}" for number, body in enumerate(CALLS.values())]
    tests = [called(name, f"f_{number}") for number, name in enumerate(CALLS)]
    _, run = executed(tmp_path, G, *answers, *tests, LATER, timeout=SOON)
    assert run.scores == dict.fromkeys(CALLS, 0) | {"later": 1}, run.reasons


def test_a_function_of_the_test_is_not_called_after_the_call(tmp_path: Path) -> None:
    keeps = f"{G}def f(h):\n    global kept\n    kept = h\n    return h(3)"
    calls = "import threading, time\nthreading.Thread(target=kept, args=[4]).start()\n"
    cells = [keeps, called("test", "f"), f"{calls}time.sleep(0.1)", LATER]
    _, run = executed(tmp_path, *cells)
    assert run.scores == {"test": 1, "later": 0}, run.reasons


# --- processes that do not answer -------------------------------------------------------------

STOPPED = f"{LINES}\nif not os.fork():\n    while True:\n        time.sleep(0.1)\n"
STOPPED += "        os.kill(os.getppid(), signal.SIGSTOP)"
WAIT = cell("wait", "'the process was stopped'", 1)
LOAD = cell("test", "import numpy\nassert g(numpy.zeros(10**7)).sum() == 0", 1)


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Go on from the test that waits when the student's process has been stopped.

    If that was before it could answer for its own cell, it has been ended for that.
    """
    test = Notebook.test

    def is_stopped(notebook: Notebook) -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            family = psutil.Process(notebook._student.pid).children(recursive=True)
            return any(process.status() == psutil.STATUS_STOPPED for process in family)
        return not psutil.pid_exists(notebook._student.pid)

    def waiting(notebook: Notebook, name: str, *rest: Any) -> Any:
        if name == "wait":
            wait_for(lambda: is_stopped(notebook))
        return test(notebook, name, *rest)

    monkeypatch.setattr(Notebook, "test", waiting)


@pytest.mark.usefixtures("short_grace", "stopped")
@pytest.mark.parametrize(
    "cells",
    [[TEST], [LOAD], ["1", TEST], ["#" * MIB, TEST]],
    ids=["a question", "large arguments", "a cell", "a large cell"],
)
def test_a_process_that_was_stopped_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cells: list[Any]
) -> None:
    monkeypatch.setattr("gradebox.values.channel.STALLED", SOON)
    began = time.monotonic()
    handed_in = [f"{G}f = g", STOPPED, WAIT, *copy.deepcopy(cells)]
    _, run = executed(tmp_path, *handed_in, timeout=SOON)
    assert run.scores == {"wait": 1, "test": 0}
    assert run.events
    assert time.monotonic() - began < MOST


def test_students_process_has_no_text_of_what_is_prepared(tmp_path: Path) -> None:
    looks = "import sys\nprint(sys.orig_argv, open('/proc/self/cmdline').read())\n"
    cells, run = executed(tmp_path, looks + G, LATER, prepare="answer = 'forty-two'")
    assert run.scores == {"later": 1}
    assert "gradebox.workers.server" in shown(cells[0])
    assert "forty-two" not in shown(cells[0])


def test_what_forks_and_does_not_answer_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = {"prepare": "import json"}  # so there is a server of the tests

    def server() -> psutil.Process:
        [begun] = [each for key, each in pool._servers.items() if key[-1] == prepared["prepare"]]
        # until what it forked for submissions has ended there may be more than that of the tests
        process = psutil.Process(begun._process.pid)
        wait_for(lambda: len(process.children()) == 1)
        return process

    def template() -> list[psutil.Process]:
        [begun] = pool._templates.values()
        first = psutil.Process(begun._process.pid)
        return [first, *first.children()]

    assert scores(tmp_path, G, LATER, **prepared) == {"later": 1}
    hangs = (template, lambda: server().children(), lambda: [server()])
    for number, processes in enumerate(hangs):
        stopped = processes()
        for process in stopped:
            process.suspend()
        folder = tmp_path / "other" if number == 1 else tmp_path  # with a template
        with monkeypatch.context() as patch:
            patch.setattr("gradebox.workers.client.ANSWER", 1.0)
            with pytest.raises(RuntimeError, match="the fork server did not answer and was ended"):
                scores(folder, G, LATER, **prepared)
        assert scores(tmp_path, G, LATER, **prepared) == {"later": 1}
        assert not psutil.wait_procs(stopped, MOST)[1]


def test_a_process_that_is_not_sealed_in_time_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradebox.workers.client.ANSWER", 1.0)
    sender = client._sender

    def stopping(end: socket.socket) -> int:
        pid = sender(end)
        os.kill(pid, signal.SIGSTOP)
        return pid

    monkeypatch.setattr(client, "_sender", stopping)
    with pytest.raises(NotSealed, match="the process ended, or did not answer"):
        scores(tmp_path, G, LATER)


def test_what_one_students_tests_take_ends_no_other_students(tmp_path: Path) -> None:
    test = cell("test", "import time\nkept = [f(i) for i in range(3)]\ntime.sleep(1)", 1)
    write_source(tmp_path, [answer("def f(i): ..."), test])
    found = {}

    def run(student: str, size: int) -> None:
        (tmp_path / student).mkdir()
        own = new_code_cell(f"def f(i): return bytes({size} * 2**20)")
        nb = new_notebook(cells=[own, copy.deepcopy(test)])
        context = CONTEXT | {"student": student}
        execute = step(tmp_path, max_memory=150 * MIB)
        found[student] = execute.run(nb, tmp_path / student, context, NotebookPlan()).scores

    students = {"honest": 1, "heavy": 35, "other": 35}
    threads = [threading.Thread(target=run, args=pair) for pair in students.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found["honest"] == {"test": 1}


# --- in-process -------------------------------------------------------------------------------

HELPERS = """
import math, numpy, numpy.testing, pytest, unittest
def near(a, b, by=1e-9): return abs(a - b) <= by
def close(a, b, *, by=1e-9): return abs(a - b) <= by
class Near:
    def __init__(self, x): self.x = x
    def __eq__(self, other): return self.x == other
"""
JUDGES = """
assert near(g(2), 4) and Near(g(2)) == 4
assert numpy.allclose(g(2), 4) and math.isclose(g(2), 4) and g(2) == pytest.approx(4)
"""
TRICKS = split((HERE / "tables/tricks.txt").read_text(), "===")
ALONE = sections("tables/tricks_alone.txt")
"""What a test in the student's process uses, and how it is changed, first in one notebook."""


def tried(folder: Path, *tricks: str) -> Run:
    """Return what became of wrong answers and tricks, in the process of the test."""
    helpers, test = cell("helpers", HELPERS), cell("test", JUDGES, 1)
    return executed(
        folder,
        *(helpers, "def g(x): return 0", *tricks, test),
        source=[helpers, answer(G), test],
        in_process=["test"],
        imports=["numpy.testing", "pytest"],
    )[1]


def tried_together(folder: Path) -> list[Run]:
    """Return what became of them; of two that change the same one is in another notebook."""
    again = [any(name == one for one, _ in TRICKS[:n]) for n, (name, _) in enumerate(TRICKS)]
    return [
        tried(folder, *(t for (_, t), second in zip(TRICKS, again, strict=True) if second is which))
        for which in (False, True)
    ]


@pytest.mark.parametrize("number", range(len(TRICKS)), ids=[name for name, _ in TRICKS])
def test_what_forgers_try_in_process_is_named(once: Any, number: int) -> None:
    name, _ = TRICKS[number]
    runs = once(tried_together)
    run = runs[name in [one for one, _ in TRICKS[:number]]]
    assert name in run.changed
    assert "tampering" in [event.kind for event in run.events]
    assert run.scores["test"] == 0


@pytest.mark.parametrize("name", ALONE)
def test_so_is_what_keeps_later_cells_from_running(tmp_path: Path, name: str) -> None:
    run = tried(tmp_path, ALONE[name])
    assert name in run.changed
    assert "tampering" in [event.kind for event in run.events]
    assert run.scores["test"] == 0 or name == "ast.parse"


@pytest.mark.parametrize(
    "trick",
    [
        "open('close.py', 'w').write('def to(a, b): return True')",
        "import close\nclose.to = lambda a, b: True",
        "import sys, types\nsys.modules['close'] = types.SimpleNamespace(to=lambda a, b: True)",
        "import os, sys\nos.mkdir('x')\nopen('x/close.py', 'w').write('def to(a, b): return 1')\n"
        "sys.path.insert(0, 'x')",
    ],
    ids=["file", "patched", "replaced", "path"],
)
def test_a_module_beside_the_notebook_that_is_another_is_named(tmp_path: Path, trick: str) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/close.py").write_text("def to(a, b): return a == b")
    test = cell("test", "import close\nassert close.to(g(2), 4)", 1)
    own = "def g(x): return 0"
    for cells, changed in (((own,), []), ((own, trick), ["close"])):
        (tmp_path / "work/close.py").write_text("def to(a, b): return a == b")
        _, run = executed(tmp_path, *cells, copy.deepcopy(test), in_process=["test"])
        assert run.changed == changed
        assert run.scores["test"] == len(changed)


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize(
    "wrong",
    [
        "class Yes:\n    def __eq__(self, other): return True\ndef g(x): return Yes()",
        "import sys\ndef g(x): return sys._getframe(1).f_globals['want']",
        "def g(x):\n    globals()['want'] = 0\n    return 0",
    ],
)
def test_what_reaches_into_a_test_is_to_be_looked_at(
    tmp_path: Path, wrong: str, given: bool
) -> None:
    test = cell("test", "want = 4\nassert g(2) == want", 1)
    source = [answer(wrong if given else G), test]
    cells = wrong, copy.deepcopy(test)
    _, run = executed(tmp_path, *cells, source=source, in_process=["test"])
    assert [event.kind for event in run.events] == ([] if given else ["reaches"])


@pytest.mark.parametrize("value", ["''", "datetime.timedelta(0)", "None", "True"])
def test_a_mark_that_is_no_number_gives_no_points(tmp_path: Path, value: str) -> None:
    source = [answer("import datetime\ndef f(x): return 0.5 * x"), cell("test", "f(2)", 1)]
    folder = write_source(tmp_path, copy.deepcopy(source))
    execute = step(tmp_path)
    runs = dry_run(execute, folder, "toy")
    wrong = answer(f"import datetime\ndef f(x): return {value}")
    got = execute.run(new_notebook(cells=[wrong, source[1]]), folder, CONTEXT, planned(runs)["toy"])
    assert got.scores == {"test": 0}


def test_what_forges_a_test_that_is_asked_again_is_named(tmp_path: Path) -> None:
    wrong = "import math\nmath.isclose = lambda *a: True\ndef f(x): return object()"
    source = [answer("import math\ndef f(x): return x * x"), cell("test", "assert f(3) == 9", 1)]
    folder = write_source(tmp_path, copy.deepcopy(source))
    nb = new_notebook(cells=[answer(wrong), source[1]])
    run = step(tmp_path).run(nb, folder, CONTEXT, NotebookPlan(again=["test"]))
    assert [event.kind for event in run.events] == ["not-a-value", "tampering"]


INSIDE = {
    "network": "import socket\nsocket.create_connection(('127.0.0.1', PORT), 2)",
    "files of the instructor": "open('ROOT/source/toy/toy.ipynb').read()",
    "other files": "open('ROOT/secret').read()",
    "files to write": "open('ROOT/new', 'w')",
    "the grader": "import os\nos.kill(GRADER, 0)",
}


@pytest.mark.parametrize("level", ["namespaces", "landlock"])
def test_a_test_in_process_is_sealed(tmp_path: Path, level: str) -> None:
    require(level)
    (tmp_path / "secret").write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        names = {"PORT": listener.getsockname()[1], "ROOT": tmp_path, "GRADER": os.getpid()}
        tests = [cell("right", "assert g(2) == 4", 1)]
        for name, source in INSIDE.items():
            for target, value in names.items():
                source = source.replace(target, str(value))
            body = source.replace("\n", "\n    ")
            tests.append(cell(name, f"def reach():\n    {body}\nreach()", 1))
        inside = [*INSIDE, "right"]
        _, run = executed(tmp_path, G, *tests, in_process=inside, sandbox=level)
    assert run.scores == {"right": 1} | dict.fromkeys(INSIDE, 0)
    assert not (tmp_path / "new").exists()


def test_a_test_in_process_has_limits(tmp_path: Path) -> None:
    answers = f"{G}def f(x):\n    while True: pass\ndef sleeps(x): __import__('time').sleep(60)"
    cells = [answers, FIRST, TEST, cell("asleep", "assert sleeps(3) == 9", 1), LATER]
    in_process = ["test", "asleep", "later"]
    _, run = executed(tmp_path, *cells, in_process=in_process, timeout=SOON)
    assert run.scores == {"first": 1, "test": 0, "asleep": 0, "later": 1}
    assert [(event.kind, event.cell) for event in run.events] == [
        ("slow", "test"),
        ("slow", "asleep"),
    ]


@pytest.mark.usefixtures("short_grace")
@pytest.mark.parametrize("end", ["kill(os.getpid(), 19)", "_exit(0)"], ids=["stopped", "ended"])
def test_a_test_that_ends_its_process_costs_the_later_ones(tmp_path: Path, end: str) -> None:
    cells = [f"{G}import os\ndef f(x): os.{end}", FIRST, TEST, LATER]
    _, run = executed(tmp_path, *cells, in_process=["test", "later"], timeout=SOON)
    assert run.scores == {"first": 1, "test": 0, "later": 0}
    assert [event.kind for event in run.events] == ["ended"]


def test_outputs_that_are_left_out_hide_no_error(tmp_path: Path) -> None:
    much = ["print('x' * 900)"] * 40
    cells = [G, *much, cell("test", "assert g(2) == 5", 1)]
    _, run = executed(tmp_path, *cells, in_process=["test"], max_output=1000)
    assert run.scores == {"test": 0}
    assert "large-output" in [event.kind for event in run.events]


def test_odd_outputs_of_a_test_in_process_give_nothing_to_read(tmp_path: Path) -> None:
    answers = f"{LINES}\ndef f(x): send(message(verdict | {{'outputs': odd}}))"
    cells, _ = executed(tmp_path, answers, TEST, in_process=["test"])
    nbformat.validate(new_notebook(cells=cells), relax_add_props=True)
