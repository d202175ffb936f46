"""What a student's process returns, sends or does forges no isolated test, and hangs no grader."""

import contextlib
import copy
import os
import re
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
from nbformat.v4 import new_code_cell, new_notebook
from notebooks import CONTEXT, SOON, also_in_wasm, cell, executed, scores, shown, step, write_source

from gradebox.nbgrader.dry_run import NotebookPlan
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

SENDS = "it has no such line; what it may send is in test_gradebox_wasm_hostile.py"
STOPS = "it has no processes to stop"
NOT_IN_WASM = {
    "test_a_function_of_the_test_is_not_called_after_the_call": "it has no threads",
    "test_values_that_take_the_tests_for_ever_to_read_are_given_up": "its hashes have 32 bits, "
    "so that these keys differ in them",
    "test_what_is_sent_forges_nothing_and_hangs_nothing": SENDS,
    "test_the_grader_takes_no_bytes_beside_a_message": SENDS,
    "test_odd_outputs_of_a_test_in_process_give_nothing_to_read": SENDS,
    "test_a_process_that_was_stopped_is_given_up": STOPS,
    "test_what_forks_and_does_not_answer_is_replaced": STOPS,
    "test_a_process_that_is_not_sealed_in_time_is_given_up": STOPS,
    "test_a_test_that_ends_its_process_costs_the_later_ones[stopped]": STOPS,
    "test_a_test_in_process_is_sealed": "it names its sandbox",
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


# --- what answers return ----------------------------------------------------------------------

# of each: a test, a right answer, and a wrong one that gets the points in-process
FORGERIES = {
    "a length that lies": (
        "out = f(3)\nassert len(out) == 3\nfor a, b in zip(out, [0, 1, 4]):\n    assert a == b",
        "def f(n): return [i * i for i in range(n)]",
        "class Odd(list):\n    def __len__(self): return 3\ndef f(n): return Odd()",
    ),
    "a dict without items": (
        "out = f()\nassert len(out) == 1\nfor name, value in out.items():\n    assert value == 1",
        "def f(): return {'a': 1}",
        "class Odd(dict):\n    def items(self): return ()\ndef f(): return Odd(a=0)",
    ),
    "a difference of nothing": (
        "assert f(2) - 4 == 0",
        "def f(x): return x * x",
        "class Odd(float):\n    def __sub__(self, other): return 0.0\ndef f(x): return Odd(1)",
    ),
    "a class that lies": (
        "assert isinstance(f(2), float) and abs(f(2) - 4.0) < 1e-9",
        "def f(x): return float(x * x)",
        "class Odd:\n    __class__ = float\n    def __sub__(self, other): return 0.0\n"
        "def f(x): return Odd()",
    ),
    "a text that is equal": (
        "assert f() == 'yes'",
        "def f(): return 'yes'",
        "class Odd(str):\n    def __eq__(self, other): return True\ndef f(): return Odd('no')",
    ),
    "a comparison with NaN that is true": (
        "assert f() == 3",
        "def f(): return 3",
        "class Odd(float):\n    def __eq__(self, other): return True\ndef f(): return Odd('nan')",
    ),
    "a type of an array that lies": (
        "import numpy\nout = f()\nassert out.dtype == numpy.float64 and out.sum() == 6",
        "import numpy\ndef f(): return numpy.array([1.0, 2.0, 3.0])",
        "import numpy\nclass Odd(numpy.ndarray):\n    dtype = numpy.dtype('f8')\n"
        "    def sum(self): return 6\ndef f(): return numpy.zeros(3, int).view(Odd)",
    ),
    "a masked array": (
        "assert not (abs(f() - 3.0) > 1e-9).any()",
        "import numpy\ndef f(): return numpy.full(2, 3.0)",
        "import numpy\ndef f(): return numpy.ma.masked_array(numpy.zeros(2), True)",
    ),
    "StopIteration in map": (
        "assert all(got == want for got, want in zip(map(f, [1, 2]), [1, 4]))",
        "def f(x): return x * x",
        "def f(x): raise StopIteration\nf.__name__ = f.__qualname__ = 'send'",
    ),
    "StopIteration in next": (
        "assert next(map(f, [2]), 4) == 4",
        "def f(x): return x * x",
        "def f(x): raise StopIteration",
    ),
    "an iterator that ends with an error of its own": (
        "for got, want in zip(f(), [1, 4]):\n    assert got == want",
        "def f(): return iter([1, 4])",
        "class Odd:\n    def __iter__(self): return self\n    def __next__(self): "
        "raise StopIteration\ndef f(): return Odd()",
    ),
    "a random state that is set": (
        "import random\nrandom.seed(3)\nassert f() == random.random()",
        "import random\ndef f(): return random.random()",
        "import random\ndef f():\n    random.seed(0)\n    first = random.random()\n"
        "    random.seed(0)\n    return first",
    ),
    "a file of pickles": (
        "import io, numpy\nout = numpy.load(io.BytesIO(f()), allow_pickle=True)\n"
        "assert abs(out[0] - 4.0) < 1e-9",
        "import io, numpy\ndef f():\n    file = io.BytesIO()\n"
        "    numpy.save(file, numpy.array([4.0]))\n    return file.getvalue()",
        "import io, numpy\nclass Odd:\n    def __reduce__(self):\n        return eval, "
        "('__import__(\"builtins\").__dict__.update(abs=lambda x: 0.0) or 1.0',)\n"
        "def f():\n    file = io.BytesIO()\n"
        "    numpy.save(file, numpy.array([Odd()]), allow_pickle=True)\n"
        "    return file.getvalue()",
    ),
    "the names of a function of the test": (
        "want = 4\ndef h(x): return x\nassert f(h) == want",
        "def f(h): return h(4)",
        "def f(h):\n    h.__globals__['want'] = 0\n    return 0",
    ),
    "the caller's names": (
        "want = 4\nassert f() == want",
        "def f(): return 4",
        "import sys\ndef f():\n    sys._getframe(1).f_globals['want'] = 0\n    return 0",
    ),
    "a module that the test imports later": (
        "from statistics import fmean\nassert fmean([f()]) == 4.0",
        "def f(): return 4",
        "import statistics\nstatistics.fmean = lambda x: 4.0\ndef f(): return 0",
    ),
}


def apart(number: int, source: str) -> str:
    """Return a source with names of its own, so that it can share a notebook."""
    return re.sub(r"\b(f|h|out|want|Odd)\b", rf"\1_{number}", source)


def test_answers_forge_no_isolated_test(tmp_path: Path) -> None:
    rows = [[apart(number, text) for text in row] for number, row in enumerate(FORGERIES.values())]
    tests, right, wrong = map(list, zip(*rows, strict=True))
    nodes = [cell(name, test, 1) for name, test in zip(FORGERIES, tests, strict=True)]

    def points(answers: list[str], **options: Any) -> dict[str, float]:
        return scores(tmp_path, *answers, *copy.deepcopy(nodes), source=nodes, **options)

    assert points(right) == dict.fromkeys(FORGERIES, 1)
    assert points(wrong) == dict.fromkeys(FORGERIES, 0)
    assert points(wrong, in_process=FORGERIES) == dict.fromkeys(FORGERIES, 1)  # the control


G = "def g(x): return x * x\n"
FIRST = cell("first", "assert g(2) == 4", 1)
TEST = cell("test", "assert f(3) == 9", 1)
LATER = cell("later", "assert g(2) == 4", 1)

LARGE = {
    "deep = []\n    for _ in range(10_000): deep = [deep]\n    return deep": "more than 100 deep",
    "loop = []\n    loop.append(loop)\n    return loop": "more than 100 deep",
    "return 'x' * (257 * 2**20)": "more than 256 MiB at once",
    "return bytes(257 * 2**20)": "more than 256 MiB at once",
    "return 'x' * (17 * 2**20)": "more than 16 MiB of text",
    "return 1 << 9 * 2**24": "more than 16 MiB of text",
    "return [None] * 1_000_001": "more than 1000000 items",
    "for _ in range(50): print('x' * 2**20)\n    return 8": "AssertionError",
}
_DEEP, _, _TEXT, *_ = LARGE
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

LINES = f"""
import json, os, signal, socket, struct, threading, time
def lines():
    ends = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{{fd}}").startswith("socket:"): ends.append(int(fd))
        except OSError: pass
    return ends
def send(content):
    for end in lines():
        try: os.write(end, content)
        except OSError: pass
def message(header):
    line = json.dumps(header).encode()
    return struct.pack("!II", len(line), 0) + line
def answer(tree, *parts):
    import gradebox.values.codec
    def write(self, value, depth=0):
        self.parts.extend(parts)
        return tree
    gradebox.values.codec.Writer.write = write
{G}
"""

VERDICT = {"message": "Tested", "score": 1, "outputs": [], "error": "", "refused": []}
VERDICT |= {"late": False, "gone": "", "lost": ""}
SHOWN = {"message": "Shown", "outputs": [], "execution_count": 1, "ok": True}
ODD: list[dict[str, Any]] = [
    {},
    {"output_type": ["x"]},
    {"output_type": "execute_result", "data": {"text/plain": ["x"]}, "metadata": {}}
    | {"execution_count": 1},
    {"output_type": "stream", "name": "stdout", "text": 7},
    {"output_type": "error", "ename": "x", "evalue": "y", "traceback": [7]},
    {"output_type": "display_data", "data": {"text/html": {"a": 1}}, "metadata": {}},
    {"output_type": "execute_result", "data": {"text/plain": "x"}, "metadata": {}},
]
SENT = {
    "garbage": "send(os.urandom(1000))",
    "half a message": "send(struct.pack('!II', 100, 0) + b'{')",
    "a huge size": "send(struct.pack('!II', 2**32 - 1, 2**32 - 1))",
    "a huge part": "send(struct.pack('!IIQ', 2, 1, 2**62) + b'{}')",
    "many parts": "send(struct.pack('!II', 2, 10**5) + struct.pack('!Q', 2**20) * 10**5)",
    "nesting": "send(struct.pack('!II', 10**5, 0) + b'[' * 10**5)",
    "no object": "send(message(None))",
    "a verdict": f"send(message({VERDICT}))",
    "odd outputs": f"send(message({SHOWN | {'outputs': ODD}}))",
    "another value": "send(message({'value': 8}) * 3)",
    "a module": "send(message({'module': 'operator'}))",
    "a call that was not asked for": "send(message({'callback': [7, ['list'], ['dict']]}))",
    "a name of a module": "answer(['name', 'numpy', 'square'])",
    "a function of the test": "answer(['yours', 0])",
    "a list in a set": "answer(['set', ['list']])",
    "an array of another size": "answer(['array', '<f8', [2, -1], 0], b'x' * 16)",
    "an array of no bytes": "answer(['array', '|S0', [2**28, 2**28], 0], b'')",
    "a generator that reads beyond": "answer(['Generator', ['dict', 'bit_generator', 'MT19937', "
    "'state', ['dict', 'key', ['list'] + [1] * 624, 'pos', 10**9]]])",
    "nothing any more": "[os.close(end) for end in lines()]",
    "an end": "[socket.socket(fileno=os.dup(end)).shutdown(2) for end in lines()]",
    "a signal to itself": "os.kill(os.getpid(), signal.SIGSTOP)",
    "a signal to its parent": "os.kill(os.getppid(), signal.SIGKILL)",
    "messages of a thread": "threading.Thread(target=lambda: [(send(message({'value': 8})), "
    "time.sleep(0.001)) for _ in iter(int, 1)], daemon=True).start()",
    "messages of a child": "if not os.fork():\n    while True:\n"
    "        send(message({'value': 8}))\n        time.sleep(0.01)",
    "garbage of a child": "if not os.fork():\n    while True:\n"
    "        send(os.urandom(99))\n        time.sleep(0.01)",
}


TOGETHER = [
    (name, when, "namespaces")
    for name, source in SENT.items()
    for when in ("in a cell", "in a call")
    # what a cell puts in place of all answers is sent in a call, too
    if when == "in a cell" or not source.startswith("answer(")
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
    sent = (
        f"{LINES}\ndef sent(header):\n    line = json.dumps(header).encode()\n"
        "    send(struct.pack('!IIQ', len(line), 1, 1) + line + b'x')\n"
    )
    cells, _ = executed(tmp_path, f"{sent}sent({SHOWN})")
    assert shown(cells[0]) == "the process ended while the cell ran"
    _, run = executed(tmp_path, G, cell("test", f"{sent}sent({VERDICT})", 1))
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

    def waiting(notebook: Notebook, source: str, *rest: Any) -> Any:
        if source == WAIT.source:
            wait_for(lambda: is_stopped(notebook))
        return test(notebook, source, *rest)

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
    hangs = {
        "the process that forks the tests does not answer": template,
        "the fork server did not answer and was ended": lambda: server().children(),
        "the fork server did not answer .* the next submission gets a new one": lambda: [server()],
    }
    for number, (why, processes) in enumerate(hangs.items()):
        stopped = processes()
        for process in stopped:
            process.suspend()
        folder = tmp_path / "other" if number == 1 else tmp_path  # with a template
        with monkeypatch.context() as patch:
            patch.setattr("gradebox.workers.client.ANSWER", 1.0)
            with pytest.raises(RuntimeError, match=why):
                scores(folder, G, LATER, **prepared)
        assert scores(tmp_path, G, LATER, **prepared) == {"later": 1}
        assert not psutil.wait_procs(stopped, MOST)[1]


def test_a_process_that_is_not_sealed_in_time_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradebox.workers.client.ANSWER", 1.0)
    forked = client.ForkServer._fork

    def stopping(*args: Any) -> int:
        pid = forked(*args)
        os.kill(pid, signal.SIGSTOP)
        return pid

    monkeypatch.setattr("gradebox.workers.client.ForkServer._fork", stopping)
    with pytest.raises(NotSealed, match="the process ended, or did not answer"):
        scores(tmp_path, G, LATER)


def test_what_one_students_tests_take_ends_no_other_students(tmp_path: Path) -> None:
    test = cell("test", "import time\nkept = [f(i) for i in range(3)]\ntime.sleep(1)", 1)
    write_source(tmp_path, [test])
    found = {}

    def run(student: str, size: int) -> None:
        (tmp_path / student).mkdir()
        answer = new_code_cell(f"def f(i): return bytes({size} * 2**20)")
        nb = new_notebook(cells=[answer, copy.deepcopy(test)])
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
    fields = {"message": "Tampered", "outputs": ODD, "execution_count": 1, "changed": []}
    answers = f"{LINES}\ndef f(x): send(message({fields}))"
    cells, _ = executed(tmp_path, answers, TEST, in_process=["test"])
    nbformat.validate(new_notebook(cells=cells), relax_add_props=True)
