"""Whatever an instance of WebAssembly asks of its host, nothing is gained, leaks or hangs."""

import contextlib
import copy
import os
import random
import struct
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from hang import HANG
from nbformat.v4 import new_code_cell, new_notebook
from notebooks import CONTEXT, cell, executed, needs_wasm, shown, step, write_source

from gradebox.nbgrader.plan import NotebookPlan
from gradebox.sandbox.seal import Limits
from gradebox.values.channel import Gone
from gradebox_wasm import machine
from gradebox_wasm.files import MOST_FILES, File, Folder, Number, Tree
from gradebox_wasm.instance import Instance
from gradebox_wasm.modules import Modules
from gradebox_wasm.wasi import Wasi

pytestmark = [needs_wasm, pytest.mark.xdist_group("wasm")]

DOOR = """
import _host, json, os, struct
import gradebox_wasm.guest as guest
def g(x): return x * x
def message(header, more=0):
    line = json.dumps(header).encode()
    return struct.pack("!II", len(line) + more, 0) + line
def reply(sent): guest._grader.send = lambda header, parts=(): _host.call(b"G" + sent)
"""
FIRST = cell("first", "assert g(2) == 4", 1)
TEST = cell("test", "assert f(3) == 9", 1)
LATER = cell("later", "assert g(2) == 4", 1)

ODD = [{}, {"output_type": ["x"]}, {"output_type": "stream", "name": "stdout", "text": 7}]
SHOWN = {"message": "Shown", "outputs": ODD, "execution_count": 1, "ok": True}
TESTED = {"message": "Tested", "score": 1, "outputs": [], "error": "", "refused": []}
TESTED |= {"late": False, "gone": "", "lost": "", "changed": []}
NAMES = ["", "..", "/etc", "etc", "../gradebox", "a/b", "a.b", "*", "\0", "answers", "a" * 10**6]

SENT = {
    "nothing": "_host.call(b'')",
    "of no kind": "_host.call(b'?' + bytes(1000))",
    "garbage": "_host.call(b'x' + os.urandom(1000))",
    "an answer": "_host.call(b'x' + message({'value': 8}))",
    "many answers": "[_host.call(b'x' + message({'value': 8})) for _ in range(1000)]",
    "a call that was not asked for": "_host.call(b'x' + message({'callback': [7, ['list'], "
    "['dict']]}))",
    "nesting": "_host.call(b'x' + struct.pack('!II', 10**6, 0) + b'[' * 10**6)",
    "a huge message": "_host.call(b'x' + bytes(300 * 2**20))",
    "many parts": "_host.call(b'x' + struct.pack('!II', 2, 2**32 - 1) + bytes(10**7))",
    "another verdict": f"_host.call(b'G' + message({TESTED}))",
    "names of modules": f"[_host.call(b'm' + name.encode()) for name in {NAMES}]",
    "what is no name": "_host.call(b'm' + os.urandom(1000))",
    "an answer, for ever": "while True: _host.call(b'x' + message({'value': 8}))",
    "names, for ever": "while True: _host.call(b'm' + os.urandom(9).hex().encode())",
    "a reply with odd outputs": f"reply(message({SHOWN}))",
    "a reply that is a verdict": f"reply(message({TESTED}))",
    "a reply that is odd to a test": f"reply(message({TESTED | {'outputs': ODD}}))",
    "a reply that is no message": "reply(b'x')",
    "an empty reply": "reply(b'')",
    "a reply with a line that is longer": "reply(message({}, 2**31))",
    "a reply with a long line": "reply(struct.pack('!II', 200 * 2**20, 0) + b'[' * (200 * 2**20))",
}
QUICK = {"an answer", "an answer, for ever"}


def run(folder: Path, *cells: Any, timeout: float = 1, **options: Any) -> tuple[list[Any], Any]:
    """Execute a notebook in WebAssembly; return its cells and what it came to."""
    began = time.monotonic()
    done, result = executed(
        folder, *copy.deepcopy(cells), sandbox="wasm", timeout=timeout, **options
    )
    assert time.monotonic() - began < HANG
    nbformat.validate(new_notebook(cells=done), relax_add_props=True)
    return done, result


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in QUICK else pytest.mark.slow) for n in SENT]
)
def test_what_is_asked_of_the_host_forges_nothing_and_hangs_nothing(
    tmp_path: Path, name: str
) -> None:
    body = SENT[name].replace("\n", "\n    ")
    in_a_call = f"def f(x):\n    {body}\n    return 8"
    wrong = "def f(x): return 8"
    for cells, in_process in [
        ([in_a_call], []),
        ([SENT[name], wrong], []),
        ([SENT[name], wrong], ["test"]),
    ]:
        cells = [DOOR, FIRST, *cells, TEST, LATER, "1 + 1"]
        done, result = run(tmp_path, *cells, in_process=in_process)
        assert result.scores["first"] == 1
        # a test among the student's objects can be forged; that the host reads it is enough
        assert in_process or result.scores["test"] == 0
        is_gone = any(event.kind == "ended" for event in result.events)
        assert is_gone or "'2'" in shown(done[-1])


def test_a_function_of_the_test_that_is_over_raises(tmp_path: Path) -> None:
    keeps = cell("test", "assert f(lambda x: x + 1) == 4", 1)
    answers = f"{DOOR}\ndef f(h):\n    global kept\n    kept = h\n    return h(3)"
    cells, result = run(tmp_path, answers, keeps, "kept(3)", "1 + 1", LATER)
    assert result.scores == {"test": 1, "later": 1}
    assert cells[2].outputs[-1].get("ename") == "Gone", cells[2]
    assert "'2'" in shown(cells[3])


def test_no_student_changes_what_others_import(tmp_path: Path) -> None:
    look = "import os\n[*os.walk('/site/gradebox'), os.listdir('/site'), *os.walk('/usr/local')]"
    changes = (
        "import os, shutil",
        "open('/site/evil.py', 'w')",
        "os.mkdir('/site/evil')",
        "os.rename('/site/gradebox', 'gradebox')",
        "os.rename('/site/traitlets', '/site/evil')",
        "open('own.py', 'w').write('')\nos.rename('own.py', '/site/gradebox/own.py')",
        "shutil.rmtree('/site')",
        "os.symlink('/work', '/site/evil')",
    )
    before, _ = run(tmp_path, look)
    cells, _ = run(tmp_path, *changes)
    assert {cell.outputs[-1].output_type for cell in cells[1:]} == {"error"}
    after, _ = run(tmp_path, look)
    assert shown(after[0]) == shown(before[0])


def test_a_students_names_of_modules_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers" / "__init__.py").write_text("")
    (tmp_path / "solved.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    modules = Modules()
    before = [*modules.folder.entries], len(modules._answers)
    more = "solved", "solved.py", "nbgrader_config", "tests", "sqlite3", "none", "__main__", "os"
    for name in (*NAMES, *more):
        assert modules.fetch(name)
    assert ([*modules.folder.entries], len(modules._answers)) == before


def test_a_test_among_objects_of_before_has_them_and_may_import(tmp_path: Path) -> None:
    test = cell("test", "__import__('iniconfig')\nassert items == [1]", 1)
    deep = "items = [1]\nfolder = os.open('.', os.O_RDONLY)\nfor _ in range(1500):\n"
    deep += "    os.mkdir('a', dir_fd=folder)\n    inner = os.open('a', os.O_RDONLY, "
    deep += "dir_fd=folder)\n    os.close(folder)\n    folder = inner"
    write_source(tmp_path, [test])
    cells = [new_code_cell(DOOR), new_code_cell(deep), test, new_code_cell("items.append(2)")]
    nb = new_notebook(cells=copy.deepcopy(cells))
    context = CONTEXT | {"student": "ada"}
    plan = NotebookPlan(["test"], forks=["test"])
    (tmp_path / "work").mkdir()
    found = step(tmp_path, sandbox="wasm").run(nb, tmp_path / "work", context, plan)
    assert shown(nb.cells[1]) == ""
    assert found.scores == {"test": 1}, found.reasons


def test_no_address_outside_of_its_memory_is_read_or_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    instance = Instance(Tree(0), Limits(), lambda name: "")
    memory = instance._memory
    size = memory._size
    for at, length in [(size, 1), (size - 1, 2), (-1, 1), (0, size + 1), (0, -1), (2**31, 1)]:
        with pytest.raises(Gone, match="outside"):
            memory.read(at, length)
    with pytest.raises(Gone, match="outside"):
        memory.write(size - 1, b"xx")
    memory.write(size - 1, b"x")
    memory._exported.grow(instance._store, 1)
    assert memory.read(size - 1, 2) == b"x\0"
    monkeypatch.setattr(instance, "_allocate", lambda *arguments: 0)
    with pytest.raises(Gone, match="no memory"):
        instance.turn("test")
    instance.close()


NAME, PIECE, HERE = 100, 300, 200
"""Where a name lies in a memory, where one piece of fifty bytes, and where what comes back."""
OPEN = "path_open", 3, 0, NAME, 4, 1, 2**6, 0, 0, HERE
WRITE = "fd_write", 4, PIECE, 1, HERE
CALLS = [
    (OPEN, Number.SUCCESS),
    (WRITE, Number.SUCCESS),
    (("fd_pwrite", 4, PIECE, 1, -20, HERE), Number.INVALID),
    (("fd_pread", 4, PIECE, 1, -20, HERE), Number.INVALID),
    (("fd_seek", 4, -70, 1, HERE), Number.INVALID),
    (("fd_filestat_set_size", 4, -(2**40)), Number.INVALID),
    (WRITE, Number.SUCCESS),
    (WRITE, Number.NO_SPACE),
    (("path_open", 3, 0, NAME, 2**30, 1, 2**6, 0, 0, HERE), Number.TOO_LONG),
    (("fd_write", 77, PIECE, 1, HERE), Number.BAD_FILE),
    (("random_get", HERE, 2**30), Number.TOO_LONG),
    (("sock_accept", 3, 0, HERE), Number.UNKNOWN),
    (("fd_filestat_set_size", 4, 60), Number.SUCCESS),
    (("fd_filestat_set_size", 4, 101), Number.NO_SPACE),
    (("fd_filestat_set_size", 4, 100), Number.SUCCESS),
    (("path_unlink_file", 3, NAME, 4), Number.SUCCESS),
    (OPEN, Number.SUCCESS),
    (OPEN, Number.MANY_OPEN),
]


def host(tree: Tree, memory: bytearray) -> Wasi:
    """Return the system calls on some bytes."""

    def write(at: int, content: bytes) -> None:
        memory[at : at + len(content)] = content

    def read(at: int, length: int) -> bytes:
        return bytes(memory[at & 0xFFF : (at & 0xFFF) + (length & 0xFFF)])

    some_memory: Any = SimpleNamespace(read=read, write=write)
    return Wasi(tree, 2, some_memory, lambda seconds: None)


def test_system_calls_refuse_what_would_pass_the_limits() -> None:
    memory = bytearray(1000)
    memory[NAME : NAME + 4], memory[PIECE : PIECE + 8] = b"name", struct.pack("<II", 400, 50)
    tree = Tree(100)
    calls = host(tree, memory)
    assert [(call, calls.call(*call)) for call, _ in CALLS] == CALLS
    twin = host(tree.copy(), memory)
    assert [twin.call(*call) for call in (OPEN, WRITE)] == [Number.SUCCESS, Number.NO_SPACE]


def test_no_call_with_any_numbers_takes_more_of_the_host_than_it_may() -> None:
    rng, memory, room = random.Random(7), bytearray(os.urandom(2**12)), 10**6
    tree = Tree(room)
    tree.put("a", File())
    tree.put("b", Folder())
    files = host(tree, memory)
    edges = [-(2**63), -(2**31), -5, -1, 0, 1, 3, 4, 2**12, 2**31 - 1, 2**63 - 1]
    calls = [(str(each.name), len(each.type.params)) for each in machine.module().imports]
    assert len(calls) > 40
    for _ in range(20_000):
        name, count = rng.choice(calls)
        memory[0:8] = rng.choice([b"a", b"b", b"b/c", b"/a/..", b"\xff", b"b/c/d"]).ljust(8, b"\0")
        numbers = [rng.choice([*edges, rng.randrange(8)]) for _ in range(count)]
        if name != "proc_exit":
            with contextlib.suppress(IndexError, struct.error):
                assert 0 <= files.call(name, *numbers) < 80
    waiting, sizes = [tree.root], []
    for folder in waiting:
        waiting += [node for node in folder.entries.values() if isinstance(node, Folder)]
        sizes += [len(node.content) for node in folder.entries.values() if isinstance(node, File)]
    assert sum(sizes) <= room
    assert len(sizes) <= MOST_FILES
