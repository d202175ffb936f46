"""Whatever an instance of WebAssembly asks of its host, nothing is gained, leaks or hangs."""

import contextlib
import copy
import os
import random
import struct
import threading
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hang import HANG
from nbformat.v4 import new_code_cell, new_notebook
from notebooks import CONTEXT, cell, executed, needs_wasm, shown, step, write_source

from gradebox.nbgrader.dry_run import NotebookPlan
from gradebox.sandbox.seal import Limits
from gradebox.values.channel import HEADER, PARTS, Gone, unpacked
from gradebox_wasm import wasi
from gradebox_wasm.files import MOST_FILES, File, Folder, Tree
from gradebox_wasm.instance import Instance
from gradebox_wasm.modules import Modules

pytestmark = [needs_wasm, pytest.mark.xdist_group("wasm")]

DOOR = """
import _host, json, os, struct
import gradebox_wasm.guest as guest
def g(x): return x * x
def message(header, more=0):
    line = json.dumps(header).encode()
    return struct.pack("!II", len(line) + more, 0) + line
class Line:
    receive = guest._grader.receive
    def __init__(self, sent): self.sent = sent
    def send(self, header, parts=()): _host.call(b"G" + self.sent)
"""
FIRST = cell("first", "assert g(2) == 4", 1)
TEST = cell("test", "assert f(3) == 9", 1)
LATER = cell("later", "assert g(2) == 4", 1)

SHOWN = {"message": "Shown", "outputs": [], "execution_count": 1, "ok": True}
ODD = [{}, {"output_type": ["x"]}, {"output_type": "stream", "name": "stdout", "text": 7}]
TESTED = {"message": "Tested", "score": 1, "outputs": [], "error": "", "refused": []}
TESTED |= {"late": False, "gone": "", "lost": ""}
TAMPERED = {"message": "Tampered", "outputs": ODD, "execution_count": 1, "changed": []}
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
    for cells in ([in_a_call], [SENT[name], "def f(x): return 8"]):
        cells, result = run(tmp_path, DOOR, FIRST, *cells, TEST, LATER, "1 + 1")
        assert (result.scores["first"], result.scores["test"]) == (1, 0)
        is_gone = any(event.kind == "ended" for event in result.events)
        assert is_gone or "'2'" in shown(cells[-1])


REPLIES = {
    "shown": f"message({SHOWN | {'outputs': ODD}})",
    "a verdict": f"message({TESTED})",
    "no message": "b'x'",
    "nothing": "b''",
    "a line that is longer": "message({}, 2**31)",
    "a long line": "struct.pack('!II', 200 * 2**20, 0) + b'[' * (200 * 2**20)",
}


@pytest.mark.slow
@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_a_false_reply_to_the_grader_gives_no_points(tmp_path: Path, reply: str) -> None:
    cells = [DOOR, FIRST, f"guest._grader = Line({reply})", "def f(x): return 8", TEST]
    _, result = run(tmp_path, *cells)
    assert result.scores == {"first": 1, "test": 0}


@pytest.mark.slow
def test_odd_outputs_of_a_test_among_the_objects_give_nothing_to_read(tmp_path: Path) -> None:
    answers = f"{DOOR}\nf = g\nguest._grader = Line(message({TAMPERED}))"
    run(tmp_path, answers, TEST, in_process=["test"])


def test_a_function_of_the_test_that_is_over_raises(tmp_path: Path) -> None:
    keeps = cell("test", "assert f(lambda x: x + 1) == 4", 1)
    answers = f"{DOOR}\ndef f(h):\n    global kept\n    kept = h\n    return h(3)"
    cells, result = run(tmp_path, answers, keeps, "kept(3)", "1 + 1", LATER)
    assert result.scores == {"test": 1, "later": 1}
    assert cells[2].outputs[-1].get("ename") == "Gone", cells[2]
    assert "'2'" in shown(cells[3])


@pytest.mark.slow
def test_files_without_end_are_held_back(tmp_path: Path) -> None:
    source = "from pathlib import Path\nPath('one').touch()\nprint(Path('one').exists())\n"
    source += "for i in range(6_000): Path(f'/tmp/{i}').touch()"
    cells, result = run(tmp_path, source, "def f(x:", DOOR, LATER, timeout=10)
    assert shown(cells[0]).startswith("True")
    assert "No space left" in shown(cells[0])
    assert [event.kind for event in result.events] == ["syntax"]
    assert result.scores == {"later": 1}


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
    for name in (*NAMES, "solved", "solved.py", "nbgrader_config", "__main__", "os"):
        assert modules.fetch(name)
    assert ([*modules.folder.entries], len(modules._answers)) == before


def test_a_test_among_objects_of_before_imports_what_nobody_has_imported(tmp_path: Path) -> None:
    test = cell("test", "__import__('iniconfig')\nassert g(2) == 4", 1)
    deep = "folder = os.open('.', os.O_RDONLY)\nfor _ in range(1500):\n"
    deep += "    os.mkdir('a', dir_fd=folder)\n    inner = os.open('a', os.O_RDONLY, "
    deep += "dir_fd=folder)\n    os.close(folder)\n    folder = inner"
    write_source(tmp_path, [test])
    nb = new_notebook(cells=[new_code_cell(DOOR), new_code_cell(deep), copy.deepcopy(test)])
    context = CONTEXT | {"student": "ada"}
    plan = NotebookPlan(["test"], forks=["test"])
    (tmp_path / "work").mkdir()
    found = step(tmp_path, sandbox="wasm").run(nb, tmp_path / "work", context, plan)
    assert shown(nb.cells[1]) == ""
    assert found.scores == {"test": 1}, found.reasons


@pytest.mark.slow
def test_other_students_go_on(tmp_path: Path) -> None:
    write_source(tmp_path, [TEST])
    answers = {"right": "f = g", "ends": "f = os._exit", "wrong": "def f(x): return 8"}
    answers |= {name: f"def f(x): {SENT[name]}" for name in SENT if "\n" not in SENT[name]}
    found = {}

    def of(student: str) -> None:
        (tmp_path / student).mkdir()
        nb = new_notebook(
            cells=[new_code_cell(f"{DOOR}\n{answers[student]}"), *map(copy.deepcopy, [TEST])]
        )
        execute = step(tmp_path, sandbox="wasm", timeout=1)
        context = CONTEXT | {"student": student}
        found[student] = execute.run(nb, tmp_path / student, context, NotebookPlan()).scores["test"]

    students = [threading.Thread(target=of, args=(student,)) for student in answers]
    for each in students:
        each.start()
    for each in students:
        each.join(HANG)
    assert found == dict.fromkeys(answers, 0) | {"right": 1}


def test_nothing_is_written_where_there_is_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Instance(Tree(0), Limits(), lambda name: None)
    monkeypatch.setattr(instance, "_allocate", lambda *arguments: 0)
    with pytest.raises(Gone, match="no memory"):
        instance.turn("test")


def test_no_address_outside_of_its_memory_is_read_or_written() -> None:
    instance = Instance(Tree(0), Limits(), lambda name: None)
    memory, store = instance._memory, instance._store
    size = len(memory.content(store))
    outside = [(size, 1), (size - 1, 2), (-1, 1), (0, size + 1), (0, -1), (2**31, 1)]
    for at, length in outside:
        with pytest.raises(Gone, match="outside"):
            memory.read(store, at, length)
    with pytest.raises(Gone, match="outside"):
        memory.write(store, size - 1, b"xx")
    memory.write(store, size - 1, b"x")
    memory._exported.grow(store, 1)
    assert memory.read(store, size - 1, 2) == b"x\0"
    instance.close()


@pytest.mark.parametrize("sizes", [(HEADER + 1, 0), (0, PARTS + 1)], ids=["line", "parts"])
def test_no_message_is_read_that_would_not_be_sent(sizes: tuple[int, int]) -> None:
    length, count = sizes
    content = struct.pack("!II", length, count) + bytes(8 * count) + b" " * length
    with pytest.raises(Gone, match="too long"):
        unpacked(content)


def test_no_call_with_any_numbers_takes_more_of_the_host_than_it_may() -> None:
    rng, memory, room = random.Random(7), bytearray(os.urandom(2**12)), 10**6
    tree = Tree(room)
    tree.put("a", File())
    tree.put("b", Folder())

    def read(at: int, length: int) -> bytes:
        return bytes(memory[at & 0xFFF : (at & 0xFFF) + (length & 0xFFF)])

    files = wasi.Wasi(tree, ["A=1"], 20, read, lambda at, content: None, lambda seconds: None)
    edges = [-(2**63), -(2**31), -5, -1, 0, 1, 3, 4, 2**12, 2**31 - 1, 2**63 - 1]
    calls = sorted(wasi.CALLS.items())
    for _ in range(20_000):
        name, kinds = rng.choice(calls)
        memory[0:8] = rng.choice([b"a", b"b", b"b/c", b"/a/..", b"\xff", b"b/c/d"]).ljust(8, b"\0")
        numbers = [rng.choice([*edges, rng.randrange(8)]) for _ in kinds]
        if name != "proc_exit":
            with contextlib.suppress(IndexError, struct.error):
                assert 0 <= files.call(name, *numbers) < 80
    assert sum(len(each.content) for each in _files(tree.root)) <= room
    assert len([*_files(tree.root)]) <= MOST_FILES


def _files(folder: Folder) -> Any:
    for node in folder.entries.values():
        if isinstance(node, Folder):
            yield from _files(node)
        else:
            yield node
