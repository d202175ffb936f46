"""Python as WebAssembly gives the points and words of the kernel's sandbox, and nothing else."""

import atexit
import contextlib
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import nbformat
import platformdirs
import pytest
from courses import grade, hand_in, pages, points
from hang import HANG
from hostile.tables import FIRST, LATER, TEST, attacked
from hostile.texts import cells, lines, sections
from nbformat.v4 import new_notebook
from notebooks import SOON, answer, cell, executed, name_of, needs_wasm, shown, step, write_source
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from gradebox import cli, files
from gradebox.nbgrader.cells import is_test
from gradebox.sandbox import probe
from gradebox.sandbox.seal import Level, Limits, NotSealed
from gradebox.values.channel import Gone, packed, unpacked
from gradebox.workers import pool, protocol
from gradebox.workers.protocol import Begin, plain
from gradebox_wasm import machine, memory, template
from gradebox_wasm.clock import Clock
from gradebox_wasm.files import File, Folder, Number, Tree
from gradebox_wasm.instance import Instance
from gradebox_wasm.modules import Modules
from gradebox_wasm.sandbox import Wasm
from gradebox_wasm.template import Template
from gradebox_wasm.wasi import Wasi
from tools.classroom import sample_class
from tools.layout import ROOT, Course

pytestmark = [needs_wasm, pytest.mark.xdist_group("wasm")]

COURSE = Course(ROOT)
CONFIG = PyFileConfigLoader(str(ROOT / "nbgrader_config.py")).load_config()
_NAMES = "banned", "stubbed", "prepare"
_SETTINGS = [CONFIG.WarmExecute[name] for name in _NAMES]
_IMPORTS = ["numpy", *pool.imported(COURSE.source("erm").parent)]
_MODULES = pool.modules("erm", _IMPORTS, *_SETTINGS)
OF_ERM: dict[str, Any] = dict(zip(("imports", *_NAMES), _MODULES, strict=True))
OF_ERM["config"] = Config({"Wasm": {"substitutes": [str(ROOT / CONFIG.Wasm.substitutes[0])]}})
"""Settings of the course's first assignment: all notebooks share two memories with its imports."""

GRACE = 1.0
"""What is interrupted has to show where."""


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradebox_wasm.clock.GRACE", GRACE)


def run(folder: Path, *cells: Any, **options: Any) -> tuple[list[Any], Any]:
    """Execute a notebook in WebAssembly; return its cells and what it came to."""
    began = time.monotonic()
    options = deepcopy(OF_ERM | options)
    done, result = executed(folder, *deepcopy(cells), sandbox="wasm", **options)
    assert time.monotonic() - began < HANG
    nbformat.validate(new_notebook(cells=done), relax_add_props=True)
    return done, result


def slow_but(*few: Any, among: Iterable[Any]) -> list[Any]:
    """Return parameters of which all but a few are slow."""
    return [pytest.param(each, marks=() if each in few else pytest.mark.slow) for each in among]


@pytest.mark.parametrize("topic", slow_but("erm", among=COURSE.topics()))
def test_wasm_gives_same_scores_and_outputs_as_kernel(topic, tmp_path):
    sheet = sample_class.sheet(COURSE, topic)
    own: Any = nbformat.read(COURSE.source(topic), as_version=4)  # type: ignore[no-untyped-call]
    tests = {name_of(each): each.source for each in filter(is_test, own.cells)}
    context = {"assignment": topic, "notebook": topic, "student": "ada"}

    def graded(sandbox: str, content: bytes) -> tuple[dict[str, float], dict[str, str]]:
        nb: Any = nbformat.reads(content.decode(), as_version=4)  # type: ignore[no-untyped-call]
        for each in filter(is_test, nb.cells):  # what was handed in has no hidden lines
            each.source = tests[name_of(each)]
        way = step(ROOT, sandbox=sandbox, config=deepcopy(CONFIG))
        result = way.run(nb, tmp_path, context, {})
        words = {
            name_of(each) or each.id: shown(each) for each in nb.cells if each.cell_type == "code"
        }
        # where a wrong answer shows eigenvalues of a singular matrix, as LAPACK rounds them
        rounded = "conditioning-steps-needed", "bnp-condition-numbers"
        for name in filter(lambda name: name.startswith(rounded), words):
            words[name] = re.sub(r"(?s)Why: .*?\n(?=Likely|$)|got = .*", "", words[name])
        return result.scores, words

    # in the quick topic one, half of whose answers are right; requests below are forged
    is_quick = topic == "erm"
    kinds, full = {"misconception 1", *["all correct", "forger"] * (not is_quick)}, set()
    for student in (each for each in sample_class.STUDENTS if each.kind in kinds):
        own = student.filling(sheet) | (dict([*sheet.right.items()][::2]) if is_quick else {})
        content = sample_class.submission(sheet, replace(student, filling=lambda _, own=own: own))
        expected = graded("kernel", content)
        assert graded("wasm", content) == expected, student.name
        kinds.remove(student.kind)
        full |= {name for name, score in expected[0].items() if score}
    assert not kinds
    assert len(full) > (4 if is_quick else 10)


@pytest.mark.slow
def test_answers_forge_no_isolated_test_in_wasm(tmp_path):
    found = attacked(tmp_path, sandbox="wasm")
    without_threads = {"an executor whose results nobody asks for": (0, 0)}  # right answers, too
    assert found == dict.fromkeys(found, (1, 0)) | without_threads


ALONE = "what cannot be interrupted ends alone"  # as a request for ever does, below
DRAWN = "a figure is drawn"  # matplotlib takes seconds to import
CELLS = {name: cells(text) for name, text in sections("tables/wasm.txt").items()}
OPTIONS: dict[str, dict[str, Any]] = {
    "what it writes has limits": {"max_disk": 5_000_000, "max_memory": 2**28},
    "time is that of the instance": {"timeout": SOON},
    ALONE: {"timeout": SOON},
}


@pytest.mark.parametrize("name", slow_but(*(CELLS.keys() - {ALONE, DRAWN}), among=CELLS))
def test_wasm_cell_outputs_match_expected_patterns(tmp_path, monkeypatch, name):
    # nbgrader leaves it behind where a run ends with an exception
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.setattr("gradebox_wasm.files.MAX_FILES", 500)
    numbers = tmp_path / "work/data/numbers.txt"
    numbers.parent.mkdir(parents=True)
    numbers.write_text("1 2 3")
    (tmp_path / "work/link").symlink_to(__file__)
    (tmp_path / "work/other.ipynb").write_text("{}")
    # a source of its own would import what the cells import, and each have its own interpreter
    rows = [line.replace("HERE", __file__).split(" => ") for line in CELLS[name]]
    sources = [source for _, source in rows]
    done, _ = run(tmp_path, *sources, source=[], **OPTIONS.get(name, {}))
    words = zip(map(shown, done), (pattern for pattern, _ in rows), strict=True)
    assert [(word, pattern) for word, pattern in words if not re.search(pattern, word)] == []
    assert numbers.read_text() == "1 2 3"


def test_changed_file_is_named_in_wasm(tmp_path):
    for folder in (tmp_path / "work", write_source(tmp_path, [])):
        folder.mkdir(exist_ok=True)
        (folder / "data.txt").write_text("4")
    test = cell("test", "assert open('data.txt').read() == '0'", 1)
    _, result = run(tmp_path, "open('data.txt', 'w').write('0')", test, in_process=["test"])
    assert result.changed == ["data.txt"]


def test_clock_interrupts_each_side_once_before_ending():
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


@pytest.mark.parametrize("maps", slow_but(True, among=(True, False)))
def test_interpreter_image_is_cached_until_files_change(tmp_path, monkeypatch, maps):
    monkeypatch.setattr(memory, "_MAPS", maps)  # not on Windows
    counted = tmp_path / "counted.py"
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "caches").mkdir()
    machine.module()  # before its folder is another one
    monkeypatch.setattr(machine, "folder", lambda: tmp_path / "caches")
    settings = {"imports": ["counted", "counted:none"], "tests": False, "banned": [], "stubbed": []}
    counted.write_text("value = 1")
    Template(Modules(), settings)
    monkeypatch.setattr(Instance, "save", lambda *_: pytest.fail("it was made again"))
    begin = Begin(str(tmp_path / "caches"), {}, Level.NONE, vars(Limits(disk=10**8)))
    message = packed(plain(protocol.RunCell("import counted; counted.value")))
    with Template(Modules(), settings).instance(begin) as instance:
        content, _ = unpacked(instance.turn("obey", message))
    assert content["outputs"][0]["data"]["text/plain"] == "1"
    [kept] = (tmp_path / "caches").glob("*.image")
    status = counted.stat()
    counted.write_text("value = 2")
    assert template._load(kept, Modules()) is None
    os.utime(counted, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert template._load(kept, Modules())
    kept.write_bytes(kept.read_bytes()[:1000])
    assert template._load(kept, Modules()) is None


def test_missing_cache_folder_is_replaced_by_temporary_one(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda name: str(tmp_path / "file"))
    at_the_end: list[Any] = []
    monkeypatch.setattr(atexit, "register", lambda *a, **k: at_the_end.append(partial(*a, **k)))
    own = machine.folder.__wrapped__()
    assert own.stat().st_mode & 0o777 == 0o700
    at_the_end[0]()
    assert not own.exists()


def test_interpreter_start_failure_is_reported(monkeypatch):
    full = Mock(side_effect=OSError("the disk is full"))
    monkeypatch.setattr(Wasm, "_template", full)
    assert "the disk is full" in Wasm().obstacle(((), (), (), ""), [])


NEEDING = {
    "__init__": "import json, numpy",
    "plain": "def f():\n    import torch",
    "without": "try:\n    import torch\nexcept ImportError:\n    pass",
    "wrapped": "try:\n    import torch\nexcept ImportError as e:\n    raise ImportError from e",
}


def test_import_that_needs_torch_is_refused_in_wasm(tmp_path, monkeypatch, capsys):
    (tmp_path / "lib/needing").mkdir(parents=True)
    for name, text in NEEDING.items():
        (tmp_path / f"lib/needing/{name}.py").write_text(text)
    # an interpreter that there is: one with these modules takes seconds to make
    made = Wasm(config=OF_ERM["config"])._template(_MODULES, tests=True)
    monkeypatch.setattr(Wasm, "_template", lambda *_, **__: made)
    monkeypatch.syspath_prepend(tmp_path / "lib")
    assert Wasm().obstacle(_MODULES, ["numpy", "needing.plain:f", "needing:without"]) == ""
    with pytest.raises(NotSealed, match="'wasm': there is no torch"):
        executed(tmp_path, "from needing import wrapped", cell("t", "1", 1), sandbox="wasm")
    none = probe.Survey(Level.NONE, {"namespaces": "no Linux", "landlock": "no Linux"})
    monkeypatch.setattr(probe, "_survey", lambda: none)
    monkeypatch.delenv("GRADEBOX_ALLOW_UNSEALED", raising=False)
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\n")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["check", "toy"]) == 2
    assert re.search("toy: notebooks cannot be .*wasm: there is no torch", capsys.readouterr().err)


ODD = [{}, {"output_type": ["x"]}, {"output_type": "stream", "name": "stdout", "text": 7}]
SHOWN, TESTED = plain(protocol.Shown(ODD, 1)), plain(protocol.Tested(1, []))
NAMES = ["", "..", "/etc", "etc", "../gradebox", "a/b", "a.b", "*", "\0", "answers", "a" * 10**6]
NAMES += ["solved", "solved.py", "nbgrader_config", "tests", "sqlite3", "none", "__main__", "os"]

HOST = sections("tables/host.txt")
DOOR = HOST["door"].replace("GIVEN", repr((SHOWN, TESTED, ODD, NAMES)))
SENT = lines(HOST["sent"])


REQUESTS = {
    f"{name}, {place}": (name, place)
    for name in SENT
    for place in ("in a call", "in a cell", "in-process")
}
QUICK = "an answer, in a cell", "an answer, for ever, in a call", "an answer, in-process"


@pytest.mark.parametrize("sent", slow_but(*QUICK, among=REQUESTS))
def test_requests_to_wasm_host_neither_forge_nor_hang(tmp_path, sent):
    name, place = REQUESTS[sent]
    body = SENT[name].replace("\n", "\n    ")
    own = [f"def f(x):\n    {body}\n    return 8"]
    if place == "in a cell":
        own = [SENT[name], "def f(x): return 8"]
    in_process = ["test"] * (place == "in-process")
    options: dict[str, Any] = {"source": [answer("f = g = None"), FIRST, TEST, LATER]}
    handed_in = [DOOR, FIRST, *own, TEST, LATER, "None", "1 + 1"]
    done, result = run(tmp_path, *handed_in, in_process=in_process, timeout=SOON, **options)
    assert result.scores["first"] == 1
    # a test among the student's objects can be forged; that the host reads it is enough
    assert in_process or result.scores["test"] == 0
    is_gone = any(event.kind == "ended" for event in result.events)
    assert is_gone or "'2'" in shown(done[-1])
    # in a call, what is sent later answers the next test, too
    assert is_gone or place != "in a cell" or result.scores["later"] == 1


def test_module_names_of_students_are_not_cached(tmp_path, monkeypatch):
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers/__init__.py").write_text("")
    (tmp_path / "solved.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    modules = Modules()
    before = [*modules.folder.entries], len(modules._answers)
    assert all(map(modules.fetch, NAMES))
    assert ([*modules.folder.entries], len(modules._answers)) == before


def test_forked_wasm_test_keeps_objects_and_may_import(tmp_path):
    test = cell("test", "__import__('iniconfig')\nassert items == [1]", 1)
    deep = "import os\nitems = [1]\nfor n in range(1, 1500): os.mkdir('a/' * n)"
    done, result = run(tmp_path, deep, test, "items.append(2)", forks=["test"])
    assert shown(done[0]) == ""
    assert result.scores == {"test": 1}, result.reasons


@pytest.fixture
def instance() -> Iterator[Instance]:
    """Return one in which nothing has run."""
    with contextlib.closing(Instance(Tree(0), Limits(), lambda name: "")) as made:
        yield made


def test_addresses_outside_wasm_memory_are_refused(instance):
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
    instance._allocate = lambda *arguments: 0
    with pytest.raises(Gone, match="no memory"):
        instance.turn("test")


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


def test_system_calls_refuse_what_would_pass_the_limits(instance):
    tree = Tree(100)
    instance._memory.write(NAME, b"name")
    instance._memory.write(PIECE, struct.pack("<II", 400, 50))
    calls = Wasi(tree, 2, instance._memory, print)
    assert [(call, calls.call(*call)) for call, _ in CALLS] == CALLS
    twin = Wasi(tree.copy(), 2, instance._memory, print)
    assert [twin.call(*call) for call in (OPEN, WRITE)] == [Number.SUCCESS, Number.NO_SPACE]


def test_random_system_calls_stay_within_the_limits(instance):
    rng, tree, memory = random.Random(7), Tree(300_000), instance._memory
    tree.put("a", File())
    tree.put("b", Folder())
    memory.write(0, bytes(rng.choices(b"\0\0\0\0\0\0\0\7", k=2**14)))
    wasi = Wasi(tree, 99, memory, lambda seconds: None)
    edges = [-(2**63), -(2**31), -5, -1, *(3 * [*range(6)]), 2**12, 2**18, 2**31 - 1, 2**63 - 1]
    calls = [(str(each.name), len(each.type.params)) for each in machine.module().imports]
    assert len(calls) > 40
    most = 0
    for _ in range(6_000):
        name, count = rng.choice(calls)
        memory.write(0, rng.choice([b"a", b"b", b"b/c", b"/a/..", b"\xff"]).ljust(8, b"\0"))
        wasi.call("path_open", 3, 0, 0, 1, 1, 2**6, 0, 0, 2**13)
        numbers = [rng.choice(edges) for _ in range(count)]
        if name != "proc_exit":
            with contextlib.suppress(Gone, struct.error):
                assert 0 <= wasi.call(name, *numbers) < 80
        nodes = {id(each.node): each.node for each in wasi._opened.values()}.values()
        most = max(most, sum(len(node.content) for node in nodes if isinstance(node, File)))
    assert 200_000 < most <= 300_000


# takes away what Windows does not have, and calls itself Windows; what other packages do
# there is theirs, and paths remain those of this system
LACKING = """
import mmap, os, select, selectors, shutil, signal, socket, subprocess, sys, types
# what others need of a system they have got before
import IPython, filelock, math_core, matplotlib_inline, nbconvert, nbgrader.apps, numpy
import platformdirs, psutil
import rich.progress, sqlalchemy, wasmtime
# Python's own modules have other ways on Windows
subprocess._PopenSelector, shutil._USE_CP_SENDFILE = selectors.SelectSelector, False
shutil._use_fd_functions = False
subprocess.signal, subprocess.os = (types.SimpleNamespace(**vars(m)) for m in (signal, os))
for module, names in {
    os: "fork setsid killpg getpgid sysconf getuid geteuid getegid chown fchown sendfile "
        "sched_getaffinity setresuid setgroups O_NOFOLLOW O_NONBLOCK WNOHANG mkfifo fchmod",
    mmap: "MAP_PRIVATE",
    select: "poll",
    signal: "SIGKILL SIGCHLD SIGALRM pthread_sigmask sigtimedwait",
    socket: "send_fds recv_fds AF_UNIX CMSG_SPACE SO_PASSCRED SCM_CREDENTIALS",
}.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
filelock.FileLock = filelock.SoftFileLock  # that of Windows needs Windows
assert not any(name.startswith("gradebox") for name in sys.modules)
sys.platform = "win32"
"""

IMPORT_AND_GRADE = """
import importlib, pkgutil, gradebox.cli, gradebox_wasm
count = 0
for package in (gradebox, gradebox_wasm):
    for _, name, _ in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not name.endswith(("__main__", "_wasm.fetching", "_wasm.guest")):  # those run inside
            importlib.import_module(name)
            count += 1
assert count > 50
sys.exit(gradebox.cli.main(["grade", "toy", "--no-resume"]))
"""


@pytest.mark.slow
def test_modules_import_and_grade_without_unix_calls(course):
    hand_in(course, "right")
    hand_in(course, "wrong", "1 / 0")
    (course / "source/toy/sub").mkdir()
    (course / "source/toy/sub/more.txt").write_text("more")
    assert grade() == 0
    expected = points(course), pages(course)
    shutil.rmtree(course / "autograded")
    (course / ".gradebox/lock").unlink()
    done = subprocess.run(
        [sys.executable, "-c", LACKING + IMPORT_AND_GRADE],
        env=os.environ | {"PYTHONPATH": str(Path(str(files.__file__)).parents[1])},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (points(course), pages(course)) == expected
