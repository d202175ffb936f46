"""What a student's process returns, sends or does forges no isolated test, and hangs no grader."""

import copy
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
from courses import wait_for_ends, wait_until
from hostile.tables import FIRST, LATER, LINES, TEST, attacked, execute
from hostile.texts import HERE, sections, split
from nbformat.v4 import new_code_cell, new_notebook
from notebooks import CONTEXT, SOON, answer, cell, executed, scores, step, write_source

from gradebox.nbgrader.dry_run import dry_run
from gradebox.nbgrader.notebook_run import Run
from gradebox.nbgrader.plan import planned
from gradebox.sandbox.seal import MIB, Level, NotSealed
from gradebox.workers import client, pool

pytestmark = [
    pytest.mark.usefixtures("namespaces", "short_limits"),
    pytest.mark.xdist_group("gradebox"),
]

FORGED = sections("tables/forged.txt")
TIMEOUT_SECONDS = 60.0
"""Seconds of wall time in which each of these submissions is over, on a busy machine too."""


def test_an_answer_forges_no_isolated_test(tmp_path):
    found = attacked(tmp_path)
    assert found == dict.fromkeys(found, (1, 0))


G = "def g(x): return x * x\n"


SENT = sections("tables/sent.txt")
del SENT["lines"]
OF_OTHERS = "a signal to itself", "a signal to its parent", "messages of a child"
# what a cell puts in place of all answers is sent in a call, too
IN_PLACE = [name for name, source in SENT.items() if source.startswith("answer(")]
IN_A_CELL = ["garbage", "a verdict", "odd outputs", "another value", "an end", "a signal to itself"]
TOGETHER = [(name, "in a cell", Level.NAMESPACES) for name in IN_A_CELL + IN_PLACE]
TOGETHER += [(name, "in a call", Level.NAMESPACES) for name in SENT if name not in IN_PLACE]
# of them what is held back otherwise there
TOGETHER += [(name, "in a call", Level.LANDLOCK) for name in OF_OTHERS]


@pytest.mark.parametrize(("name", "when", "level"), TOGETHER, indirect=["level"])
def test_messages_sent_by_students_neither_forge_nor_hang(tmp_path, monkeypatch, name, when, level):
    monkeypatch.setattr(client, "GRACE", 0.1)  # what has to be ended anyway gets little time
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


@pytest.mark.parametrize("name", FORGED)
def test_forging_notebook_gets_the_expected_result(tmp_path, monkeypatch, name):
    found, expected = execute(tmp_path, FORGED[name], monkeypatch)
    assert found == expected


def test_unresponsive_fork_server_is_replaced(tmp_path, monkeypatch):
    # so there is a server of the tests, that of a notebook above
    prepared = {"prepare": "answer = 'forty-' + 'two'"}

    def server() -> psutil.Process:
        [begun] = [each for key, each in pool._servers.items() if key[-1] == prepared["prepare"]]
        # until what it forked for submissions has ended there may be more than that of the tests
        process = psutil.Process(begun._process.pid)
        wait_until(lambda: len(process.children()) == 1)
        return process

    assert scores(tmp_path, G, LATER, **prepared) == {"later": 1}
    for processes, end, why in (
        (lambda: server().children(), psutil.Process.suspend, "did not answer and was ended"),
        (lambda: [server()], psutil.Process.suspend, "did not answer and was ended"),
        (lambda: server().children(), psutil.Process.kill, "ended"),
    ):
        stopped = processes()
        for process in stopped:
            end(process)
        with monkeypatch.context() as patch:
            patch.setattr("gradebox.workers.client.ANSWER", 0.3)
            with pytest.raises(RuntimeError, match=f"the fork server {why}"):
                scores(tmp_path, G, LATER, **prepared)
        assert scores(tmp_path, G, LATER, **prepared) == {"later": 1}
        wait_for_ends([process.pid for process in stopped])


def test_process_stopped_before_sealing_is_given_up(tmp_path, monkeypatch):
    fork = client.ForkServer._fork

    def stopping(*values: Any) -> int:
        pid = fork(*values)
        os.kill(pid, signal.SIGSTOP)
        monkeypatch.setattr(client, "ANSWER", SOON)
        return pid

    scores(tmp_path, G)  # so there is a server
    monkeypatch.setattr(client.ForkServer, "_fork", stopping)
    with pytest.raises(NotSealed, match="the process ended, or did not answer"):
        executed(tmp_path, G)  # without a test, so with no process that has to be forked soon


def test_heavy_memory_use_ends_no_other_students_tests(tmp_path):
    # two looks at the memory
    test = cell("test", "import time\nkept = [f(i) for i in range(3)]\ntime.sleep(0.6)", 1)
    write_source(tmp_path, [answer("def f(i): ..."), test])

    def run(student: str, size: int) -> dict[str, float]:
        (tmp_path / student).mkdir()
        own = new_code_cell(f"def f(i): return bytes({size} * 2**20)")
        nb = new_notebook(cells=[own, copy.deepcopy(test)])
        context = CONTEXT | {"student": student}
        execute = step(tmp_path, max_memory=150 * MIB)
        return execute.run(nb, tmp_path / student, context, {}).scores

    with ThreadPoolExecutor(3) as threads:
        honest, *_ = threads.map(run, ["honest", "heavy", "other"], [1, 35, 35])
    assert honest == {"test": 1}


HELPERS = """
import math, numpy, numpy.testing, pytest, unittest
def near(a, b, by=1e-9): return abs(a - b) <= by
def close(a, b, *, by=1e-9): return abs(a - b) <= by
class Near:
    def __init__(self, x): self.x = x
    def __eq__(self, other): return self.x == other
digits = [1e-9]
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


def test_tampering_in_process_is_named(tmp_path):
    first: dict[str, str] = {}
    for name, text in TRICKS:
        first.setdefault(name, text)
    again = dict(pair for pair in TRICKS if pair not in first.items())
    for tricks in first, again:  # two that change the same
        run = tried(tmp_path, *tricks.values())
        assert tricks.keys() - {*run.changed} == set()
        assert "tampering" in [event.kind for event in run.events]
        assert run.scores["test"] == 0


@pytest.mark.parametrize("name", ALONE)
def test_tampering_that_stops_later_cells_is_named(tmp_path, name):
    run = tried(tmp_path, ALONE[name])
    assert name in run.changed
    assert "tampering" in [event.kind for event in run.events]
    assert run.scores["test"] == 0 or name == "ast.parse"


CLOSE = "def to(a, b): return a == b"
REACHES = split((HERE / "tables/reaches.txt").read_text(encoding="utf-8"), "===")


@pytest.mark.parametrize(("what", "own"), REACHES)
def test_reaching_into_a_test_is_named(tmp_path, what, own):
    test = cell("test", "want = 9\ngot = f(3)\nassert got == want", 1)
    source = [answer("def f(x): return x * x\nother = 0"), test]
    run = executed(tmp_path, own, test, source=source, in_process=["test"])[1]
    assert run.scores == {"test": 1}
    assert [(event.kind, event.fields["what"]) for event in run.events] == [("reaches", what)]


OTHERS = {
    "nothing": "",
    "file": f"open('close.py', 'w').write({CLOSE.replace('a == b', 'True')!r})",
    "patched": "import close\nclose.to = lambda a, b: True",
    "replaced": "import sys, types\n"
    "sys.modules['close'] = types.SimpleNamespace(to=lambda a, b: True)",
    "path": "import os, sys\nos.mkdir('x')\nsys.path.insert(0, 'x')\n"
    f"open('x/close.py', 'w').write({CLOSE.replace('a == b', '1')!r})",
    "data": "open('data.txt', 'w').write('0')",
    "folder": "import close, os\nos.mkdir('x')\nopen('x/data.txt', 'w').write('0')\nos.chdir('x')",
}
NAMED = {"nothing": "", "data": "data.txt", "folder": "the working folder"}


@pytest.mark.parametrize("trick", OTHERS)
def test_replaced_file_beside_the_notebook_is_named(tmp_path, trick):
    for folder in (tmp_path / "work", write_source(tmp_path, [])):
        folder.mkdir(exist_ok=True)
        (folder / "close.py").write_text(CLOSE)
        (folder / "data.txt").write_text("4")
    test = "import close\nassert close.to(g(2), int(open('data.txt').read()))"
    own = ["def g(x): return 0", OTHERS[trick], cell("test", test, 1)]
    run = executed(tmp_path, *own, in_process=["test"])[1]
    assert ", ".join(run.changed) == NAMED.get(trick, "close.py")
    assert run.scores["test"] == len(run.changed)


def test_mark_of_wrong_type_gives_no_points(tmp_path):
    marks = {"1": 1, "''": 0, "datetime.timedelta(0)": 0, "None": 0, "True": 0}
    tests = [cell(mark, f"f_{n}(2)", 1) for n, mark in enumerate(marks)]

    def returning(*values: str) -> Any:
        own = [f"def f_{n}(x): return {value}" for n, value in enumerate(values)]
        return answer("\n".join(["import datetime", *own]))

    source = [returning(*["0.5 * x"] * len(marks)), *tests]
    folder, execute = write_source(tmp_path, source), step(tmp_path)
    plan = planned(dry_run(execute, folder / "toy.ipynb", "toy"))["toy"]
    nb = new_notebook(cells=[returning(*marks), *tests])
    assert execute.run(nb, folder, CONTEXT, plan).scores == marks
