"""What a student's process returns, sends or does forges no isolated test, and hangs no grader."""

import contextlib
import copy
import os
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any

import nbformat
import notebooks
import psutil
import pytest
from hostile.tables import LINES, execute, not_in_wasm, table
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
from small_course import wait_until

from gradebox.nbgrader.dry_run import dry_run
from gradebox.nbgrader.notebook_run import Run
from gradebox.nbgrader.plan import NotebookPlan, planned
from gradebox.sandbox.seal import MIB, Level, NotSealed
from gradebox.workers import client, pool
from gradebox.workers.notebook import Notebook

pytestmark = [
    pytest.mark.usefixtures("namespaces", "sandbox", "short_limits"),
    pytest.mark.xdist_group("gradebox"),
]

SENDS = "it has no such line; what it may send is in test_gradebox_wasm.py"
STOPS = "it has no processes to stop"
FORGED = sections("tables/forged.txt")
NOT_IN_WASM = {
    "test_what_forgers_try_in_process_is_named[threading.enumerate]": "it has no threads",
    "test_so_is_what_keeps_later_cells_from_running[ast.parse]": "its Python has another one",
    "test_what_is_sent_forges_nothing_and_hangs_nothing": SENDS,
    "test_a_process_that_was_stopped_is_given_up": STOPS,
    "test_what_forks_and_does_not_answer_is_replaced": STOPS,
    "test_a_process_that_is_not_sealed_in_time_is_given_up": STOPS,
    **not_in_wasm("test_each_notebook_forges_nothing", FORGED),
}
pytest_generate_tests = also_in_wasm(NOT_IN_WASM)

TIMEOUT_SECONDS = 60.0
"""Seconds of wall time in which each of these submissions is over, on a busy machine too."""


def kinds(run: Run) -> list[tuple[str, str]]:
    """Return the kinds of the events with their cells."""
    return [(event.kind, event.cell) for event in run.events]


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
del SENT["lines"]
OF_OTHERS = "a signal to itself", "a signal to its parent", "messages of a child"
TOGETHER = [
    (name, when, Level.NAMESPACES)
    for name, source in SENT.items()
    for when in ("in a cell", "in a call")
    # what a cell puts in place of all answers is sent in a call, too
    if when == "in a cell" or not source.startswith(("answer(", "array("))
]
# of them what is held back otherwise there
TOGETHER += [(name, "in a call", Level.LANDLOCK) for name in SENT if name.endswith(OF_OTHERS)]


@pytest.mark.usefixtures("short_grace")
@pytest.mark.parametrize(("name", "when", "level"), TOGETHER, indirect=["level"])
def test_what_is_sent_forges_nothing_and_hangs_nothing(
    tmp_path: Path, name: str, when: str, level: Level
) -> None:
    attack, answers = SENT[name], "def f(x): return 8"
    if when == "in a call":
        body = attack.replace("\n", "\n    ")
        attack, answers = "pass", f"def f(x):\n    {body}\n    return 8"
    handed_in = [LINES, FIRST, attack, answers, TEST, LATER]
    began = time.monotonic()
    cells, run = executed(tmp_path, *handed_in, timeout=SOON, sandbox=str(level))
    assert (run.scores["first"], run.scores["test"]) == (1, 0)
    nbformat.validate(new_notebook(cells=cells), relax_add_props=True)
    assert time.monotonic() - began < TIMEOUT_SECONDS


# --- notebooks by themselves ------------------------------------------------------------------


@pytest.mark.parametrize("name", FORGED)
def test_each_notebook_forges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    found, expected = execute(tmp_path, FORGED[name], monkeypatch)
    assert found == expected


# --- processes that do not answer -------------------------------------------------------------

STOPPED = f"{LINES}\nif not os.fork():\n    while True:\n        time.sleep(0.1)\n"
STOPPED += "        os.kill(os.getppid(), signal.SIGSTOP)"
WAIT = cell("wait", "'the process was stopped'", 1)
LOAD = cell("test", "import numpy\nassert g(numpy.zeros(10**7)).sum() == 0", 1)


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Go on from the test that waits when the student's process has been stopped, or ended."""
    test = Notebook.test

    def is_stopped(pid: int) -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            family = psutil.Process(pid).children(recursive=True)
            return any(process.status() == psutil.STATUS_STOPPED for process in family)
        # before it could answer for its own cell it has been ended for that
        return not psutil.pid_exists(pid)

    def waiting(notebook: Notebook, name: str, *rest: Any) -> Any:
        if name == "wait":
            wait_until(lambda: is_stopped(notebook._student.pid))
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
    assert time.monotonic() - began < TIMEOUT_SECONDS


def test_what_forks_and_does_not_answer_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = {"prepare": "import json"}  # so there is a server of the tests

    def server() -> psutil.Process:
        [begun] = [each for key, each in pool._servers.items() if key[-1] == prepared["prepare"]]
        # until what it forked for submissions has ended there may be more than that of the tests
        process = psutil.Process(begun._process.pid)
        wait_until(lambda: len(process.children()) == 1)
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
        assert not psutil.wait_procs(stopped, TIMEOUT_SECONDS)[1]


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


CLOSE = "def to(a, b): return a == b"
OTHERS = {
    "nothing": "",
    "file": f"open('close.py', 'w').write({CLOSE.replace('a == b', 'True')!r})",
    "patched": "import close\nclose.to = lambda a, b: True",
    "replaced": "import sys, types\n"
    "sys.modules['close'] = types.SimpleNamespace(to=lambda a, b: True)",
    "path": "import os, sys\nos.mkdir('x')\nsys.path.insert(0, 'x')\n"
    f"open('x/close.py', 'w').write({CLOSE.replace('a == b', '1')!r})",
}


@pytest.mark.parametrize("trick", OTHERS)
def test_a_module_beside_the_notebook_that_is_another_is_named(tmp_path: Path, trick: str) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/close.py").write_text(CLOSE)
    test = cell("test", "import close\nassert close.to(g(2), 4)", 1)
    _, run = executed(tmp_path, "def g(x): return 0", OTHERS[trick], test, in_process=["test"])
    assert run.changed == ["close"] * bool(OTHERS[trick])
    assert run.scores["test"] == len(run.changed)


def test_a_mark_that_is_no_number_gives_no_points(tmp_path: Path) -> None:
    source = [answer("import datetime\ndef f(x): return 0.5 * x"), cell("test", "f(2)", 1)]
    folder, execute = write_source(tmp_path, copy.deepcopy(source)), step(tmp_path)
    plan = planned(dry_run(execute, folder, "toy"))["toy"]
    for value, score in {"1": 1, "''": 0, "datetime.timedelta(0)": 0, "None": 0, "True": 0}.items():
        own = answer(f"import datetime\ndef f(x): return {value}")
        nb = new_notebook(cells=copy.deepcopy([own, source[1]]))
        assert execute.run(nb, folder, CONTEXT, plan).scores == {"test": score}, value


def test_what_forges_a_test_that_is_asked_again_is_named(tmp_path: Path) -> None:
    wrong = "import math\nmath.isclose = lambda *a: True\ndef f(x): return object()"
    source = [answer("import math\ndef f(x): return x * x"), cell("test", "assert f(3) == 9", 1)]
    folder = write_source(tmp_path, copy.deepcopy(source))
    nb = new_notebook(cells=[answer(wrong), source[1]])
    run = step(tmp_path).run(nb, folder, CONTEXT, NotebookPlan(again=["test"]))
    assert [event.kind for event in run.events] == ["not-a-value", "tampering"]


def test_outputs_that_are_left_out_hide_no_error(tmp_path: Path) -> None:
    much = ["print('x' * 900)"] * 40
    cells = [G, *much, cell("test", "assert g(2) == 5", 1)]
    _, run = executed(tmp_path, *cells, in_process=["test"], max_output=1000)
    assert run.scores == {"test": 0}
    assert "large-output" in [event.kind for event in run.events]
