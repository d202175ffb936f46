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

from gradebox.nbgrader.plan import NotebookPlan
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
    "test_what_forgers_try_in_process_is_named[together]": "it has no threads",
    "test_what_forgers_try_in_process_is_named[ast.parse]": "its Python has another one",
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


# --- what answers return, raise, and call things ----------------------------------------------

# each with a right answer, and a wrong one that tries to get the points of the test
ATTACKS = r"""
=== a helper that the test does not reach
--- answer
def f(x): return x * x
--- wrong
def f(x): raise ValueError
def near(a, b): return True
got = 0
--- test
try:
    got = f(3)
    def near(a, b): return abs(a - b) < 1e-9
except Exception:
    pass
assert near(got, 9)
=== a name in the place of a fallback
--- answer
def f(x): return x * x
--- wrong
def f(x): raise ValueError
right = 100
got = 100
--- test
try:
    got = f(3)
    right = 9
except Exception:
    got = 100
assert got == right
=== a constant of a plain cell
--- plain
right = 9
--- wrong
right = 0
--- answer
def f(x): return x * x
--- wrong
def f(x): return 0
--- test
assert f(3) == right
=== a helper of a plain cell
--- plain
def near(a, b):
    return abs(a - b) < 1e-9
--- wrong
def near(a, b): return True
--- answer
def f(x): return x * x
--- wrong
def f(x): return 0
--- test
assert near(f(3), 9)
=== what a plain cell makes with exec, global and a magic
--- plain
exec("right = 9")
def begin():
    global rate
    rate = 2
begin()
--- wrong
right, rate = 0, 0
--- plain
%%capture shown
print("shown")
--- wrong
class shown:
    stdout = ""
--- answer
def f(x): return x * x
--- wrong
def f(x): return 0
--- test
assert f(3) * rate == 2 * right
assert shown.stdout == "shown\n"
=== a constant among the given lines of an answer
--- answer
right = 9
def f(x):
    ### BEGIN SOLUTION
    return x * x
    ### END SOLUTION
--- wrong
right = 0
def f(x): return 0
--- test
assert f(3) == right
=== a name that Python has, where another test needs it
--- answer
def sum(items):
    ### BEGIN SOLUTION
    total = 0
    for item in items:
        total += item
    return total
    ### END SOLUTION
def f(x):
    ### BEGIN SOLUTION
    return [x, x * x]
    ### END SOLUTION
--- wrong
def sum(items): return 12
def f(x): return [0]
--- test
assert sum(f(3)) == 12
=== a function that an answer imports
--- answer
from math import isclose
def f(x): return x * x
--- wrong
def isclose(a, b): return True
def f(x): return 0
--- test
assert isclose(f(3), 9)
=== a module that an answer imports
--- answer
### BEGIN SOLUTION
import numpy as np
from os import path as place
def f(x): return np.square(x)
### END SOLUTION
--- wrong
class np:
    def allclose(*values): return True
def f(x): return 0
--- test
assert np.allclose(f(3), 9) and place.join
=== a module of another name that an answer may import
--- answer
try:
    import no_such_module as m
except ImportError:
    import math as m
def f(x): return x * x
--- wrong
class m:
    def isclose(*values): return True
def f(x): return 0
--- test
assert m.isclose(f(3), 9)
=== what an answer imports with a star
--- answer
from math import *
def f(x): return x * x
--- wrong
def isclose(a, b): return True
def f(x): return 0
--- test
assert isclose(f(3), 9)
=== a name that a test asks globals for
--- answer
def f(x): return x * x
--- wrong
right = 0
def f(x): return 0
--- test
assert f(3) == globals().get("right", 9) == get_ipython().user_ns.get("right", 9)
assert "right" not in dir()
=== a name of an answer that the test gives another meaning later
--- answer
def f(x):
    return x * x
right = 4
--- wrong
right = 0
def f(x):
    raise ValueError
--- test
try:
    got = f(3)
    right = 9
except Exception:
    got = 0
assert got == right
=== a name that an earlier test defines
--- answer
def f(x): return x * x
--- wrong
def f(x):
    if x == 2: raise ValueError
    return 0
right = 0
--- locked
f(2)
right = 9
--- test
assert f(3) == right
=== a local name of an answer
--- answer
def f(x):
    right = x * x
    return right
--- wrong
right = 0
def f(x): raise ValueError
--- test
try:
    got = f(3)
    right = 9
except ValueError:
    got = 0
assert got == right
=== a class with methods of its own
--- plain
class Near:
    def __init__(self, x): self.x = x
    def __eq__(self, other): return abs(self.x - other) < 1e-9
--- wrong
class Near:
    def __init__(self, x): pass
    def __eq__(self, other): return True
--- answer
def f(x): return x * x
--- wrong
def f(x): return 0
--- test
assert Near(f(3)) == 9
=== IndexError ends a loop over items
--- answer
def f(k): return k * k
--- wrong
def f(k): raise IndexError
--- test
class Row:
    def __getitem__(self, k):
        if k > 3: raise IndexError
        return f(k)
for k, item in enumerate(Row()):
    assert item == k * k
=== IndexError passes a with statement
--- answer
def f(k): return k * k
--- wrong
def f(k): raise IndexError
--- test
import numpy as np
class Row:
    def __getitem__(self, k):
        with np.errstate(all="ignore"):
            return f(k) if k < 4 else [][0]
for k, item in enumerate(Row()):
    assert item == k * k
=== StopIteration ends a map
--- answer
def f(x): return x * x
--- wrong
def f(x): raise StopIteration
--- test
assert all(got == want for got, want in zip(map(f, [1, 2]), [1, 4]))
=== StopIteration ends an iterator of the test's
--- answer
def f(k): return k * k
--- wrong
def f(k): raise StopIteration
--- test
class Row:
    k = -1
    def __iter__(self): return self
    def __next__(self):
        self.k += 1
        if self.k > 3: raise StopIteration
        return f(self.k)
for k, item in enumerate(Row()):
    assert item == k * k
=== StopIteration ends a call with a last value
--- answer
def f(): return 4
--- wrong
def f(): raise StopIteration
--- test
for item in iter(f, 4):
    assert False
=== AttributeError is no to hasattr
--- answer
def f(): return -1
--- wrong
def f(): raise AttributeError
--- test
class Result:
    @property
    def value(self): return f()
assert not hasattr(Result(), "value") or Result().value == -1
=== KeyError ends a search in a mapping
--- answer
def f(key): return key * 2
--- wrong
def f(key): raise KeyError
--- test
from collections.abc import Mapping
class Table(Mapping):
    def __getitem__(self, key): return f(key)
    def __iter__(self): return iter("ab")
    def __len__(self): return 2
assert Table().get("a", "aa") == "aa"
=== TypeError is no length
--- answer
def f(): return 2
--- wrong
def f(): raise TypeError
--- test
class Row:
    def __length_hint__(self): return f()
    def __iter__(self): return iter((1, 2))
assert list(Row()) == [1, 2]
=== an exception that ends a process
--- answer
def f(): return 4
--- wrong
def f(): raise SystemExit
--- test
try:
    got = f()
except Exception:
    raise
except BaseException:
    got = 4
assert got == 4
=== GeneratorExit ends a generator
--- answer
def f(): return 4
--- wrong
def f(): raise GeneratorExit
--- test
def items():
    try:
        yield f()
    except GeneratorExit:
        yield 4
assert next(items()) == 4
=== NotImplemented is no answer
--- answer
def f(): return True
--- wrong
def f(): return NotImplemented
--- test
class Left:
    def __eq__(self, other): return f()
class Right:
    def __eq__(self, other): return True
assert Left() == Right()
=== a stub is no length and no truth
--- answer
def f(x): return [x]
--- wrong
def f(x): return lambda *more: 1
--- test
assert len(f(1)) == 1 and f(1) == [1]
=== a pickle that sets __eq__ of a Counter
--- answer
import pickle
def f(): return pickle.dumps([4, 4])
--- wrong
import pickle
texts = [
    b"\x80\x04ccollections\nCounter\nN}\x8c\x06__eq__cbuiltins\nset\ns\x86b.",
    pickle.dumps([0]),
]
def f(): return texts.pop(0)
--- test
import pickle
from collections import Counter
pickle.loads(f())
assert Counter(pickle.loads(f())) == Counter([4, 4])
=== a length that lies
--- answer
def f(n): return [i * i for i in range(n)]
--- wrong
class Odd(list):
    def __len__(self): return 3
def f(n): return Odd()
--- test
out = f(3)
assert len(out) == 3
for a, b in zip(out, [0, 1, 4]):
    assert a == b
=== a dict without items
--- answer
def f(): return {'a': 1}
--- wrong
class Odd(dict):
    def items(self): return ()
def f(): return Odd(a=0)
--- test
out = f()
assert len(out) == 1
for name, value in out.items():
    assert value == 1
=== a type of an array that lies
--- answer
import numpy
def f(): return numpy.array([1.0, 2.0, 3.0])
--- wrong
import numpy
class Odd(numpy.ndarray):
    dtype = numpy.dtype('f8')
    def sum(self): return 6
def f(): return numpy.zeros(3, int).view(Odd)
--- test
import numpy
out = f()
assert out.dtype == numpy.float64 and out.sum() == 6
=== a masked array
--- answer
import numpy
def f(): return numpy.full(2, 3.0)
--- wrong
import numpy
def f(): return numpy.ma.masked_array(numpy.zeros(2), True)
--- test
assert not (abs(f() - 3.0) > 1e-9).any()
=== an iterator that ends with an error of its own
--- answer
def f(): return iter([1, 4])
--- wrong
class Odd:
    def __iter__(self): return self
    def __next__(self): raise StopIteration
def f(): return Odd()
--- test
for got, want in zip(f(), [1, 4]):
    assert got == want
=== a random state that is set
--- answer
import random
def f(): return random.random()
--- wrong
import random
def f():
    random.seed(0)
    first = random.random()
    random.seed(0)
    return first
--- test
import random
random.seed(3)
assert f() == random.random()
=== a file of pickles
--- answer
import io, numpy
def f():
    file = io.BytesIO()
    numpy.save(file, numpy.array([4.0]))
    return file.getvalue()
--- wrong
import io, numpy
class Odd:
    def __reduce__(self):
        return eval, ('__import__("builtins").__dict__.update(abs=lambda x: 0.0) or 1.0',)
def f():
    file = io.BytesIO()
    numpy.save(file, numpy.array([Odd()]), allow_pickle=True)
    return file.getvalue()
--- test
import io, numpy
out = numpy.load(io.BytesIO(f()), allow_pickle=True)
assert abs(out[0] - 4.0) < 1e-9
=== the names of a function of the test
--- answer
def f(h): return h(4)
--- wrong
def f(h):
    h.__globals__['want'] = 0
    return 0
--- test
want = 4
def h(x): return x
assert f(h) == want
=== a name that changes between two looks
--- plain
import numpy as np
--- answer
x = np.ones(5)
--- wrong
old = get_ipython().user_ns
class Names(dict):
    looks = 0
    def __getitem__(self, name):
        if name == "x":
            Names.looks += 1
            return np.zeros(5) if Names.looks % 2 else np.empty((0, 1))
        return dict.__getitem__(self, name)
get_ipython().user_ns = Names(old)
--- test
assert x.shape == (5,)
assert np.allclose(x, np.ones(5))
"""

WORDS = (
    r"\b(f|x|xs|k|h|m|np|out|want|got|right|rate|near|shown|begin|result|Odd|Near|Row|Result|Table"
    r"|Left|Right)\b"
)
ROLES: dict[str, Any] = {
    "plain": lambda text, name: new_code_cell(text),
    "answer": answer,
    "locked": lambda text, name: cell(name, text),
    "test": lambda text, name: cell(name, text, 1),
}


def attacks() -> tuple[list[str], list[Any], dict[int, str]]:
    """Return the names of the attacks, the cells of the instructor, and by position wrong ones."""
    names, cells, wrong = [], [], {}
    parts = re.split(r"^=== (.*)\n", ATTACKS, flags=re.M)[1:]
    for number, (name, text) in enumerate(zip(parts[::2], parts[1::2], strict=True)):
        text = re.sub(WORDS, rf"\1_{number}", text)
        roles = re.split(r"^--- (\w+)\n", text, flags=re.M)[1:]
        for role, lines in zip(roles[::2], roles[1::2], strict=True):
            if role == "wrong":
                wrong[len(cells) - 1] = lines.strip()
                continue
            label = name if role == "test" else f"cell-{len(cells)}"
            cells.append(ROLES[role](lines.strip(), label))
        names.append(name)
    return names, cells, wrong


def test_answers_forge_no_isolated_test(tmp_path: Path) -> None:
    names, cells, wrong = attacks()
    assert len(names) > 30
    for answers, points in (({}, 1), (wrong, 0)):
        handed_in = [answers.get(n, copy.deepcopy(node)) for n, node in enumerate(cells)]
        _, run = executed(tmp_path, *handed_in, source=cells)
        assert run.scores == dict.fromkeys(names, points), run.reasons


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
def array(dtype, shape, part):
    answer(["array", ["tuple", dtype, ["tuple", *shape], ["bytes", 0]]], part)
{G}
"""

VERDICT = {"message": "Tested", "score": 1, "outputs": [], "error": "", "refused": []}
VERDICT |= {"late": False, "gone": "", "lost": "", "changed": []}
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
    "a list in a set": "answer(['set', ['list', ['list']]])",
    "a member of a class that it made": "answer(['member', '__main__', 'f', 'x', 9])",
    "a named tuple that is none": "answer(['named', 'subprocess', 'Popen', ['tuple', 9]])",
    "an array of another size": "array('<f8', [2, -1], b'x' * 16)",
    "an array of no bytes": "array('|S0', [2**28, 2**28], b'')",
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
class Near:
    def __init__(self, x): self.x = x
    def __eq__(self, other): return self.x == other
"""
JUDGES = """
assert near(g(2), 4) and Near(g(2)) == 4
assert numpy.allclose(g(2), 4) and math.isclose(g(2), 4) and g(2) == pytest.approx(4)
"""
TRICKS = r"""
=== get_ipython().events
def before(info): info.raw_cell = 'None'
get_ipython().events.register('pre_run_cell', before)
=== get_ipython().events
def after(): get_ipython().outputs.start()
get_ipython().events.register('post_execute', after)
=== gradebox.workers.cells.result
import gradebox.workers.cells as c
c.result = lambda *a: (1.0, None)
=== gradebox.workers.cells.Cell.run
import gradebox.workers.cells as c
c.Cell.run = lambda self, names: None
=== gradebox.workers.cells.result
import gradebox.workers.cells as c
c.result.__code__ = (lambda run, points, outputs, refuses: (1.0, None)).__code__
=== gradebox.workers.cells._evaluate
import gradebox.workers.cells as c
c._evaluate = lambda *a: None
=== gradebox.workers.tampering.Pristine.changed
import gradebox.workers.tampering as t
t.Pristine.changed = lambda self: []
import gradebox.workers.cells as c
c.Cell.run = lambda self, names: None
=== numpy.allclose
import numpy
numpy.allclose = lambda *a, **k: True
=== numpy._core.numeric.isclose
import numpy._core.numeric as n
n.isclose = lambda *a, **k: n.True_
=== numpy.testing.assert_allclose
import numpy.testing
numpy.testing.assert_allclose = lambda *a, **k: None
=== numpy.allclose
import numpy
numpy.allclose._implementation.__defaults__ = (9e9, 9e9, True)
=== unittest.case.TestCase.assertEqual
import unittest
unittest.TestCase.assertEqual = lambda *a: None
=== _pytest.python_api.ApproxScalar.__eq__
import pytest
type(pytest.approx(1.0)).__eq__ = lambda *a: True
=== numpy.any
import numpy
numpy.any = numpy.all._implementation
=== numpy.all
exec("def all(*a, **k): return True", vars(numpy))
=== math.isclose
import math
math.isclose = lambda *a, **k: True
=== sys.meta_path
import sys
class Finder:
    def find_spec(self, *a): return None
sys.meta_path.insert(0, Finder())
=== threading.enumerate
import threading, time
def loop():
    while True: time.sleep(0.01)
threading.Thread(target=loop, daemon=True).start()
=== gc.callbacks
import gc
gc.callbacks.append(lambda *a: None)
=== near
near = lambda *a: True
=== Near
Near.__eq__ = lambda *a: True
=== near
near.__defaults__ = (9e9,)
"""
"""What a test in the student's process uses, and how it is changed; all in one notebook."""
ALONE = r"""
=== get_ipython().ast_transformers
import ast
class Out(ast.NodeTransformer):
    def visit_Assert(self, node): return ast.Pass()
get_ipython().ast_transformers.append(Out())
=== get_ipython().input_transformers_cleanup
get_ipython().input_transformers_cleanup.append(lambda lines: ['None'])
=== get_ipython().input_transformers_post
get_ipython().input_transformers_post.append(lambda lines: ['None'])
=== get_ipython().run_cell
s = get_ipython()
run = s.run_cell
s.run_cell = lambda source, *a, **k: run('None', *a, **k)
=== gradebox.workers.shell.Shell.run_code
async def nothing(*a, **k): return False
type(get_ipython()).run_code = nothing
=== sys.settrace
import sys
sys.setprofile(lambda *a: None)
=== compile
import builtins
old = compile
builtins.compile = lambda s, *a, **k: old('None' if 'assert' in str(s) else s, *a, **k)
=== AssertionError
import builtins
class Never(Exception): pass
builtins.AssertionError = Never
=== ast.parse
import ast
old = ast.parse
ast.parse = lambda *a, **k: old('None')
=== math
import sys, types
sys.modules['math'] = types.ModuleType('math')
=== get_ipython().user_ns
class N(dict): pass
get_ipython().user_ns = N(get_ipython().user_ns)
=== get_ipython().displayhook.write_format_data
get_ipython().displayhook.write_format_data = lambda *a, **k: None
import sys
sys.displayhook = print
=== get_ipython().showtraceback
get_ipython().showtraceback = lambda *a, **k: None
=== get_ipython().custom_exceptions
get_ipython().set_custom_exc((Exception,), lambda *a, **k: None)
=== gradebox.workers.protocol.Tested.__init__
import gradebox.workers.protocol as p
old = p.Tested.__init__
def init(self, score, outputs, error='', *a, **k): old(self, 1.0, [], '')
p.Tested.__init__ = init
=== gradebox.workers.student.send
import gradebox.workers.student as s, gradebox.workers.protocol as p
old = s.send
def send(line, m):
    if type(m).__name__ == 'Tested': m = p.Tested(1.0, [])
    old(line, m)
s.send = send
"""
"""The same, of what keeps later cells from running."""


def tricks(text: str) -> list[tuple[str, str]]:
    """Return what is changed by each of some tricks, and how."""
    parts = re.split(r"^=== (.*)\n", text, flags=re.M)[1:]
    return [*zip(parts[::2], parts[1::2], strict=True)]


@pytest.mark.parametrize(
    "chosen",
    [tricks(TRICKS), *([trick] for trick in tricks(ALONE))],
    ids=["together", *(name for name, _ in tricks(ALONE))],
)
def test_what_forgers_try_in_process_is_named(
    tmp_path: Path, chosen: list[tuple[str, str]]
) -> None:
    helpers, test = cell("helpers", HELPERS), cell("test", JUDGES, 1)
    source = [helpers, answer(G), test]
    wrong = ["def g(x): return 0", *(trick for _, trick in chosen)]
    imports = ["numpy.testing", "pytest"]
    _, run = executed(
        tmp_path, helpers, *wrong, test, source=source, in_process=["test"], imports=imports
    )
    assert {name for name, _ in chosen} <= {*run.changed}
    assert "tampering" in [event.kind for event in run.events]
    assert run.scores["test"] == 0 or chosen[0][0] == "ast.parse"


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
    answers = f"{LINES}\ndef f(x): send(message({VERDICT | {'outputs': ODD}}))"
    cells, _ = executed(tmp_path, answers, TEST, in_process=["test"])
    nbformat.validate(new_notebook(cells=cells), relax_add_props=True)
