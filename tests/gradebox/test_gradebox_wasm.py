"""The sandbox of WebAssembly gives what the kernel's does; its files, limits and modules."""

import atexit
import mmap
import random
import re
import struct
import time
from copy import deepcopy
from pathlib import Path
from typing import Any

import nbformat
import platformdirs
import pytest
from nbformat.v4 import new_notebook
from notebooks import answer, cell, executed, needs_wasm, scores, shown, step, write_source
from traitlets.config import Config

from gradebox import cli
from gradebox.nbgrader.cells import is_test
from gradebox.nbgrader.dry_run import NotebookPlan
from gradebox.sandbox import probe
from gradebox.sandbox.seal import Level, Limits, NotSealed
from gradebox.values.channel import packed, unpacked
from gradebox.workers.client import GRACE, beginning
from gradebox.workers.protocol import RunCell, plain
from gradebox_wasm import machine
from gradebox_wasm.clock import Clock
from gradebox_wasm.files import File, Folder, Full, HostFolder, Tree
from gradebox_wasm.instance import Instance
from gradebox_wasm.memory import Image
from gradebox_wasm.modules import Modules, obstacle
from gradebox_wasm.notebook import Template
from gradebox_wasm.wasi import NO_SPACE, Wasi
from tools import sample_class
from tools.layout import ROOT, Course

pytestmark = [needs_wasm, pytest.mark.xdist_group("wasm")]

COURSE = Course(ROOT)
SUBSTITUTES = str(ROOT / "tools" / "inpage" / "library")


def run(folder: Path, *cells: Any, **options: Any) -> tuple[list[Any], Any]:
    """Execute a notebook in WebAssembly."""
    return executed(folder, *cells, sandbox="wasm", **options)


# --- The same as the kernel's sandbox -------------------------------------------------------------

EVERY = [
    pytest.param(topic, marks=() if topic == "erm" else pytest.mark.slow)
    for topic in COURSE.topics()
]
ROUNDED = ("conditioning-steps-needed", "bnp-condition-numbers")
"""Exercises where a wrong answer shows eigenvalues of a singular matrix, as LAPACK rounds them."""


@pytest.mark.parametrize("topic", EVERY)
def test_an_assignment_gives_the_same_scores_and_the_same_words(topic: str, tmp_path: Path) -> None:
    sheet = sample_class.sheet(COURSE, topic)
    own: Any = nbformat.read(COURSE.source(topic), as_version=4)  # type: ignore[no-untyped-call]
    tests = {each.metadata.nbgrader.grade_id: each.source for each in filter(is_test, own.cells)}
    kinds = {"all correct", "blank", "misconception 1", "misconception 2", "forger"}
    students = [each for each in sample_class.STUDENTS if each.kind in kinds]
    assert len(students) == len(kinds)
    context = {"assignment": topic, "notebook": topic, "student": "ada"}
    traits = {
        "imports": ["numpy"],
        "banned": ["optdl.{assignment}"],
        "stubbed": ["optdl.checks"],
        "prepare": "from optdl.checks import prepare; prepare('{assignment}')",
    }
    config = Config()
    config.Wasm.substitutes = [SUBSTITUTES]
    config.CourseDirectory.source_directory = "solutions"
    runs: dict[str, list[Any]] = {"kernel": [], "wasm": []}
    for sandbox, found in runs.items():
        way = step(ROOT, sandbox=sandbox, config=deepcopy(config), **traits)
        for student in students:
            content = sample_class.submission(sheet, student).decode()
            nb: Any = nbformat.reads(content, as_version=4)  # type: ignore[no-untyped-call]
            for each in filter(is_test, nb.cells):  # what was handed in has no hidden lines
                each.source = tests[each.metadata.nbgrader.grade_id]
            result = way.run(nb, tmp_path, context, NotebookPlan())
            words = {
                each.metadata.get("nbgrader", {}).get("grade_id"): shown(each)
                for each in nb.cells
                if each.cell_type == "code"
            }
            for name in words:
                if name and name.startswith(ROUNDED):
                    words[name] = re.sub(r"(?s)Why: .*?\n(?=Likely|$)|got = .*", "", words[name])
            found.append((student.name, result.scores, words))
    for of_wasm, of_kernel in zip(runs["wasm"], runs["kernel"], strict=True):
        for mine, its in zip(of_wasm[1:], of_kernel[1:], strict=True):
            assert {name: mine[name] for name in its if mine[name] != its[name]} == {}, of_kernel
    full = {name: score for _, each, _ in runs["kernel"] for name, score in each.items() if score}
    assert len(full) > 10


@pytest.mark.slow
def test_what_ipython_offers_works_or_says_that_it_does_not(tmp_path: Path) -> None:
    cells, _ = run(
        tmp_path,
        "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]);",
        "%%time\nx = 3",
        "%timeit -n1 -r1 x",
        "display({'a': x})",
        "x?",
        "_ = !ls",
        "input('your name')",
        "import threading\nthreading.Thread(target=print).start()",
    )
    assert "image/png" in cells[0].outputs[-1].data
    assert "Wall time" in shown(cells[1])
    assert "1 run, 1 loop" in shown(cells[2])
    assert "{'a': 3}" in shown(cells[3])
    assert "does not support processes" in shown(cells[5])
    assert "EOF" in shown(cells[6])
    assert "can't start new thread" in shown(cells[7])


# --- What an instance has ------------------------------------------------------------------------


def test_it_has_what_was_handed_in_and_nothing_else(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "data").mkdir(parents=True)
    (work / "data" / "numbers.txt").write_text("1 2 3")
    (work / "link").symlink_to(__file__)
    (work / "other.ipynb").write_text("{}")
    told = f"for name in ({__file__!r}, 'link', 'other.ipynb', '/etc/passwd', '../../etc/passwd'):"
    cells, _ = run(
        tmp_path,
        "open('data/numbers.txt').read()",
        "import os\n[os.listdir(name) for name in ('.', '/', '/tmp')]",
        told + "\n    try: open(name); print('open', name)\n    except FileNotFoundError: pass",
        "import socket\nsocket.create_connection(('127.0.0.1', 9))",
        "open('/site/gradebox/__init__.py', 'a')",
        "open('data/numbers.txt', 'w').write('4'); open('data/numbers.txt').read()",
        "print(sorted(name for name in os.environ if 'GRADEBOX' in name), os.environ['HOME'])",
    )
    assert "'1 2 3'" in shown(cells[0])
    assert "[['data'], ['usr', 'site', 'work', 'tmp'], []]" in shown(cells[1])
    assert shown(cells[2]) == ""
    assert cells[3].outputs[-1].output_type == "error"
    assert "Permission" in shown(cells[4])
    assert "'4'" in shown(cells[5])
    assert (work / "data" / "numbers.txt").read_text() == "1 2 3"
    assert shown(cells[6]) == "['GRADEBOX_STUDENT'] /tmp\n"


def test_it_has_modules_in_python_alone_and_no_answers(tmp_path: Path) -> None:
    barred = {"banned": ["optdl.erm"], "stubbed": ["optdl.checks"]}
    config = Config()
    config.Wasm.substitutes = [SUBSTITUTES]
    cells, _ = run(
        tmp_path,
        "__import__('torch')",
        "import optdl.erm",
        "import glob\nprint(glob.glob('/site/optdl/erm*'), glob.glob('/site/optdl/checks*'))",
        "import traitlets, optdl\ntraitlets.__file__",
        "import tests, tools, solutions, nbgrader_config",
        config=config,
        **barred,
    )
    assert "torch is not part of the Python in which this notebook is graded" in shown(cells[0])
    assert "it holds the answers" in shown(cells[1])
    assert shown(cells[2]) == "[] []\n"
    assert "/site/traitlets/__init__.py" in shown(cells[3])
    assert "No module named 'tests'" in shown(cells[4])


def test_what_it_writes_has_limits(tmp_path: Path) -> None:
    cells, _ = run(
        tmp_path,
        "for i in range(9): open(str(i), 'w').write('x' * 10**6)",
        "kept = [open('0') for i in range(300)]",
        "x = bytearray(10**9)",
        "import os\nfor i in range(9): os.remove(str(i))",
        "open('again', 'w').write('x' * 10**6)",
        max_disk=5_000_000,
        max_memory=2**28,
    )
    assert "No space left" in shown(cells[0])
    assert "No file descriptors available" in shown(cells[1])
    assert cells[2].outputs[0].ename == "MemoryError"
    assert "1000000" in shown(cells[4])


def test_time_is_that_of_the_instance(tmp_path: Path) -> None:
    cells, result = run(
        tmp_path,
        "x = 0\nwhile True: x += 1",
        "x > 1000",
        "import time\ntime.sleep(1000)",
        "import numpy as np\nA = np.eye(300)\nwhile True: A = A @ A",
        "x = 'still here'; x",
        timeout=1,
    )
    for late in (0, 2, 3):
        assert "longer than 1 s" in shown(cells[late])
    assert "True" in shown(cells[1])
    assert "still here" in shown(cells[4])
    assert {event.kind for event in result.events} == {"slow"}


def test_what_ends_python_ends_alone(tmp_path: Path) -> None:
    cells, _ = run(tmp_path, "import sys\nsys.exit(3)", "1 + 1", "import os\nos._exit(3)", "2 + 2")
    assert "2" in shown(cells[1])
    assert "the process ended" in shown(cells[2])
    assert "killed Python" in shown(cells[3])


@pytest.mark.slow
def test_what_cannot_be_interrupted_ends_alone(tmp_path: Path) -> None:
    stubborn = "while True:\n    try:\n        while True: pass\n    except BaseException: pass"
    test = cell("t", "assert f(2) == 3", 2)
    cells, result = run(
        tmp_path, answer("def f(x): return x + 1"), stubborn, "1 + 1", test, timeout=1
    )
    assert "could not be interrupted" in shown(cells[1])
    assert "killed Python" in shown(cells[2])
    assert result.scores == {"t": 0.0}
    assert scores(tmp_path, answer("def f(x): return x + 1"), test, sandbox="wasm") == {"t": 2.0}


# --- Tests ---------------------------------------------------------------------------------------

SQUARE = answer("calls = []\ndef square(x):\n    calls.append(x)\n    return x * x")


def test_tests_have_values_and_functions_cross(tmp_path: Path) -> None:
    tests = {
        "right": "import numpy as np\nassert np.all(square(np.arange(4)) == [0, 1, 4, 9])",
        "wrong": "assert square(2) == 5, 'it is no square'",
        "function": "assert apply(lambda x: square(x) + 1, 3) == 10",
        "none": "calls.append",
    }
    cells, result = run(
        tmp_path,
        SQUARE,
        answer("def apply(f, x): return f(x)", "apply"),
        *(cell(name, source, 1) for name, source in tests.items()),
    )
    assert result.scores == {"right": 1, "wrong": 0, "function": 1, "none": 1}
    assert "it is no square" in shown(cells[3])


def test_a_test_among_the_objects_may_have_them_as_they_were(tmp_path: Path) -> None:
    test = cell("t", "assert items == [1]", 1)
    cells = [answer("items = [1]"), test, answer("items.append(2)", "later")]
    assert scores(tmp_path, *cells, in_process=["t"], sandbox="wasm") == {"t": 0.0}
    nb = new_notebook(cells=cells)
    way = step(tmp_path, sandbox="wasm")
    plan = NotebookPlan(["t"], forks=["t"])
    context = {"assignment": "toy", "notebook": "toy", "student": "ada"}
    assert way.run(nb, tmp_path / "work", context, plan).scores == {"t": 1.0}


# --- Parts ---------------------------------------------------------------------------------------


def test_a_tree_agrees_with_a_dict_of_paths() -> None:
    rng, tree, paths = random.Random(3), Tree(10**6), dict[str, int]()
    for _ in range(300):
        name = rng.choice("abcdef")
        if name in paths and rng.random() < 0.4:
            folder, last = tree.parent(f"/x/../{name}")
            assert folder is not None
            del folder.entries[last], paths[name]
        else:
            size = rng.randrange(1000)
            file = tree.find(name) or File()
            assert isinstance(file, File)
            if name not in paths:
                tree.make(tree.root, name, file)
            tree.resize(file, size)
            paths[name] = size
        sizes = {each: len(file.content) for each, file in tree.root.entries.items()}  # type: ignore[union-attr]
        assert sizes == paths
    copied = tree.copy()
    tree.root.entries.clear()
    assert set(copied.root.entries) == set(paths)


def test_a_tree_has_room_for_so_much(tmp_path: Path) -> None:
    tree, file = Tree(100), File()
    tree.resize(file, 100)
    with pytest.raises(Full):
        tree.resize(file, 101)
    tree.resize(file, 50)
    tree.resize(file, 100)
    (tmp_path / "inside").mkdir()
    tree.put("host", HostFolder(str(tmp_path)))
    host = tree.find("host")
    assert isinstance(host, Folder)
    with pytest.raises(PermissionError):
        tree.make(host, "new", File())


def test_system_calls_refuse_what_would_pass_the_limits() -> None:
    memory = bytearray(1000)
    tree = Tree(100)

    def write(at: int, content: bytes) -> None:
        memory[at : at + len(content)] = content

    calls = Wasi(tree, [], 9, lambda at, size: bytes(memory[at : at + size]), write, time.sleep)
    memory[100:104] = b"name"
    open_new = (3, 0, 100, 4, 1, 2**6, 0, 0, 200)
    assert calls.call("path_open", *open_new) == 0
    number = int.from_bytes(memory[200:204], "little")
    file = tree.find("name")
    assert isinstance(file, File)
    memory[300:308] = struct.pack("<II", 400, 50)  # one piece of fifty bytes
    assert calls.call("fd_write", number, 300, 1, 208) == 0
    assert len(file.content) == 50
    assert calls.call("fd_pwrite", number, 300, 1, -20, 208) != 0
    assert calls.call("fd_filestat_set_size", number, -(2**40)) != 0
    assert calls.call("fd_write", number, 300, 1, 208) == 0
    assert calls.call("fd_write", number, 300, 1, 208) == NO_SPACE
    assert len(file.content) == 100
    assert calls.call("path_open", 3, 0, 100, 2**30, 1, 2**6, 0, 0, 200) != 0
    assert calls.call("fd_write", 77, 300, 1, 208) != 0


def test_each_side_is_interrupted_once_and_has_a_while_then() -> None:
    clock = Clock(2.0)
    clock.add(1.9)
    assert not clock.is_over("student")
    clock.add(0.2)
    assert clock.is_over("student")
    assert not clock.is_over("student")
    assert not clock.is_over("tests")
    clock.add(GRACE)
    assert clock.is_over("tests")
    clock.add(GRACE)
    with pytest.raises(TimeoutError, match="longer than 2 s"):
        clock.is_over("tests")


def test_what_a_notebook_needs_is_found_in_what_it_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "needing"
    package.mkdir()
    (package / "__init__.py").write_text("import json, numpy, matplotlib.pyplot\n")
    (package / "plain.py").write_text("def f():\n    import torch\n")
    (package / "deep.py").write_text("from needing import tensors\nfrom . import plain\n")
    (package / "tensors.py").write_text("try:\n    import torch\nexcept ImportError:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert obstacle(("numpy", "needing.plain:f")) == ""
    assert obstacle(("needing.deep",)) == "torch"
    substitute = tmp_path / "substitutes"
    substitute.mkdir()
    (substitute / "torch.py").write_text("")
    assert obstacle(("needing.deep",), (str(substitute),)) == ""


@pytest.mark.parametrize("name", ["..", "/etc", "tests", "no_such_module", "sqlite3", "torch"])
def test_what_is_no_module_in_python_alone_is_not_fetched(name: str) -> None:
    modules = Modules()
    before = set(modules.folder.entries)
    assert modules.fetch(name)
    assert set(modules.folder.entries) == before


@pytest.mark.parametrize("shared", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_memory_is_kept_until_a_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    if not shared:  # as on Windows
        monkeypatch.delattr(mmap, "MAP_PRIVATE")
    package = tmp_path / "counted"
    package.mkdir()
    (package / "__init__.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "caches").mkdir()
    machine.module()  # before its folder is another one
    monkeypatch.setattr(machine, "folder", lambda: tmp_path / "caches")
    settings = {"imports": ["counted"], "banned": [], "stubbed": [], "prepare": "", "tests": False}
    made: list[Image] = []
    whole = Instance.image
    monkeypatch.setattr(Instance, "image", lambda self: made.append(whole(self)) or made[-1])
    begin = beginning(tmp_path / "caches", {}, Level.NONE, Limits(disk=10**8))
    shown = []
    for text in ("value = 1\n", "value = 1\n", "value = 22\n"):
        if (package / "__init__.py").read_text() != text:
            (package / "__init__.py").write_text(text)
        with Template.make(Modules(), settings).instance(begin) as instance:
            cell = packed(plain(RunCell("import counted; counted.value")))
            content, _ = unpacked(instance.turn("obey", cell))
            shown.append(content["outputs"][0]["data"]["text/plain"])
    assert shown == ["1", "1", "22"]
    assert len(made) == 2
    [kept] = (tmp_path / "caches").glob("*.image")
    kept.write_bytes(kept.read_bytes()[:1000])
    assert Template.make(Modules(), settings)
    assert len(made) == 3


def test_without_a_folder_for_caches_one_run_has_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda name: str(tmp_path / "file"))
    at_the_end: list[Any] = []
    monkeypatch.setattr(atexit, "register", lambda *call, **more: at_the_end.append((call, more)))
    own = machine.folder.__wrapped__()
    assert own.stat().st_mode & 0o777 == 0o700
    [((remove, *rest), more)] = at_the_end
    remove(*rest, **more)
    assert not own.exists()


# --- Which sandbox -------------------------------------------------------------------------------


def test_a_notebook_that_needs_more_is_refused_with_the_module(tmp_path: Path) -> None:
    with pytest.raises(NotSealed, match="there is no torch"):
        run(tmp_path, "import torch")


def test_the_command_names_the_notebook_and_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    none = probe.Survey(Level.NONE, {"namespaces": "no Linux", "landlock": "no Linux"})
    monkeypatch.setattr(probe, "_survey", lambda: none)
    monkeypatch.delenv("GRADEBOX_ALLOW_UNSEALED", raising=False)
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\n")
    write_source(tmp_path, [answer("import torch"), cell("t", "assert True", 1)])
    monkeypatch.chdir(tmp_path)
    assert cli.main(["check", "toy"]) == 2
    told = capsys.readouterr()
    assert "toy: notebooks cannot be sealed here" in told.err
    assert "wasm: there is no torch" in told.err
