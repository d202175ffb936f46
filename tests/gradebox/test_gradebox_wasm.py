"""The sandbox of WebAssembly gives what the kernel's does; its files, limits and modules."""

import atexit
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import nbformat
import platformdirs
import pytest
from notebooks import answer, cell, executed, needs_wasm, shown, step, write_source
from traitlets.config import Config

from gradebox import cli
from gradebox.nbgrader.cells import is_test
from gradebox.nbgrader.plan import NotebookPlan
from gradebox.sandbox import probe
from gradebox.sandbox.seal import Level, Limits, NotSealed
from gradebox.values.channel import packed, unpacked
from gradebox.workers.client import GRACE, beginning
from gradebox.workers.protocol import RunCell, plain
from gradebox_wasm import machine, memory
from gradebox_wasm.clock import Clock
from gradebox_wasm.instance import Instance
from gradebox_wasm.modules import Modules
from gradebox_wasm.sandbox import Wasm
from gradebox_wasm.template import Template
from tools import sample_class
from tools.layout import ROOT, Course

pytestmark = [needs_wasm, pytest.mark.xdist_group("wasm")]

COURSE = Course(ROOT)
CONFIG = Config()
CONFIG.CourseDirectory.source_directory = "solutions"
CONFIG.Wasm.substitutes = [str(ROOT / "tools" / "inpage" / "library")]
PLAIN: dict[str, Any] = {"banned": [], "stubbed": [], "prepare": ""}


def run(folder: Path, cells: dict[str, str], **options: Any) -> None:
    """Execute cells in WebAssembly, of which each shows what a pattern matches."""
    done, _ = executed(folder, *cells, sandbox="wasm", **options)
    words = [shown(each) for each in done]
    unlike = [(w, p) for w, p in zip(words, cells.values(), strict=True) if not re.search(p, w)]
    assert unlike == []


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
    runs: dict[str, list[Any]] = {"kernel": [], "wasm": []}
    for sandbox, found in runs.items():
        way = step(ROOT, sandbox=sandbox, config=deepcopy(CONFIG), **traits)
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


CELLS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "what Python offers works, or says that it does not": (
        {},
        {
            "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]);": "image/png",
            "%%time\nx = 3": "Wall time",
            "%timeit -n1 -r1 x": "1 run, 1 loop",
            "display({'a': x})": "{'a': 3}",
            "_ = !ls": "does not support processes",
            "input('your name')": "EOF",
            "import threading\nthreading.Thread(target=print).start()": "can't start new thread",
            "import socket\nsocket.create_connection(('127.0.0.1', 9))": ".",
            "import numpy as np\nint((np.arange(10**5) ** 2)[-1])": "1409865409",
            "from pathlib import Path\nPath('one').touch()\nPath('one').exists()": "True",
            "import sys\nsys.exit(3)": "To exit",
            "f'still {x}'": "still 3",
            "import os\nos._exit(3)": "the process ended",
            "2 + 2": "killed Python",
        },
    ),
    "modules are those in Python alone, and no answers": (
        {"banned": ["optdl.erm"], "stubbed": ["optdl.checks"], "config": CONFIG},
        {
            "__import__('torch')": "torch is not part of the Python in which this notebook is",
            "import optdl.erm": "it holds the answers",
            "import glob\nprint(*map(glob.glob, ['/site/optdl/erm*', '/site/optdl/checks*']))": "^"
            r"\[\] \[\]$",
            "import traitlets, optdl\ntraitlets.__file__": "/site/traitlets/__init__.py",
            "import tests, tools, solutions, nbgrader_config": "No module named 'tests'",
        },
    ),
    "what it writes has limits": (
        {"max_disk": 5_000_000, "max_memory": 2**28},
        {
            "for i in range(9): open(str(i), 'w').write('x' * 10**6)": "No space left",
            "kept = [open('0') for i in range(300)]": "No file descriptors available",
            "try: bytearray(10**9)\nexcept MemoryError: print('none')": "none",
            "import os\nfor i in range(9): os.remove(str(i))": "",
            "open('again', 'w').write('x' * 10**6)": "1000000",
            "while True: os.write(1, bytes(10**5))": "No space left",
            "for i in range(6_000): open(f'/tmp/{i}', 'w')": "No space left",
        },
    ),
    "time is that of the instance": (
        {"timeout": 1},
        {
            "x = 0\nwhile True: x += 1": "longer than 1 s",
            "x > 1000": "True",
            "import time\ntime.sleep(1000)": "longer than 1 s",
            "import numpy as np\nA = np.eye(300)\nwhile True: A = A @ A": "longer than 1 s",
            "x = 'still here'; x": "still here",
        },
    ),
    "what cannot be interrupted ends alone": (
        {"timeout": 1},
        {
            "while True:\n    try:\n        while 1: 1\n    except BaseException: 1": "could not",
            "1": "killed Python",
        },
    ),
}


@pytest.mark.parametrize("name", CELLS)
def test_cells_show_what_they_may(tmp_path: Path, name: str) -> None:
    options, cells = CELLS[name]
    run(tmp_path, cells, **deepcopy(options))


OPEN = "for name in NAMES:\n    try: open(name); print('open', name)\n    except OSError: pass"


def test_it_has_what_was_handed_in_and_nothing_else(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "data").mkdir(parents=True)
    (work / "data" / "numbers.txt").write_text("1 2 3")
    (work / "link").symlink_to(__file__)
    (work / "other.ipynb").write_text("{}")
    names = [__file__, "link", "other.ipynb", "/etc/passwd", "../../etc/passwd"]
    cells = {
        "open('data/numbers.txt').read()": "'1 2 3'",
        "import os\n[os.listdir(name) for name in ('.', '/', '/tmp')]": r"\[\['data'\], "
        r"\['usr', 'site', 'work', 'tmp'\], \[\]\]",
        OPEN.replace("NAMES", repr(names)): "^$",
        "open('/site/gradebox/__init__.py', 'a')": "Permission",
        "open('data/numbers.txt', 'w').write('4'); open('data/numbers.txt').read()": "'4'",
        "print(*sorted(os.environ))": "^GRADEBOX_STUDENT HOME MPLBACKEND TMPDIR\n$",
    }
    run(tmp_path, cells)
    assert (work / "data" / "numbers.txt").read_text() == "1 2 3"


# --- Parts ---------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("maps", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_memory_is_kept_until_a_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, maps: bool
) -> None:
    monkeypatch.setattr(memory, "_MAPS", maps)  # not on Windows
    package = tmp_path / "counted"
    package.mkdir()
    (package / "__init__.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "caches").mkdir()
    machine.module()  # before its folder is another one
    monkeypatch.setattr(machine, "folder", lambda: tmp_path / "caches")
    settings = PLAIN | {"imports": ["counted"], "tests": False}
    made: list[Any] = []
    save = Instance.save
    monkeypatch.setattr(Instance, "save", lambda self, f: made.append(save(self, f)) or made[-1])
    begin = beginning(tmp_path / "caches", {}, Level.NONE, Limits(disk=10**8))
    shown = []
    for text in ("value = 1\n", "value = 1\n", "value = 22\n"):
        if (package / "__init__.py").read_text() != text:
            (package / "__init__.py").write_text(text)
        with Template(Modules(), settings).instance(begin) as instance:
            cell = packed(plain(RunCell("import counted; counted.value")))
            content, _ = unpacked(instance.turn("obey", cell))
            shown.append(content["outputs"][0]["data"]["text/plain"])
    assert shown == ["1", "1", "22"]
    assert len(made) == 2
    [kept] = (tmp_path / "caches").glob("*.image")
    kept.write_bytes(kept.read_bytes()[:1000])
    assert Template(Modules(), settings)
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


# --- What it refuses -----------------------------------------------------------------------------


def test_what_a_notebook_cannot_do_without_is_found_in_what_it_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "__init__": "import json, numpy, matplotlib.pyplot",
        "plain": "def f():\n    import torch",
        "without": "try:\n    import torch\nexcept ImportError:\n    pass",
        "wrapped": "try:\n    import torch\nexcept ImportError as e:\n    raise ImportError from e",
        "deep": "from . import plain, wrapped",
    }
    (tmp_path / "needing").mkdir()
    for name, text in files.items():
        (tmp_path / "needing" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    template = Template(Modules(), PLAIN | {"imports": ["needing.plain:f"], "tests": True})
    assert template.obstacle(("numpy", "needing.plain:f", "needing.without")) == ""
    for _ in range(2):
        assert template.obstacle(("numpy", "needing.deep")) == "torch"


def test_what_keeps_the_interpreter_from_running_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any, **more: Any) -> Any:
        raise OSError("the disk is full")

    monkeypatch.setattr(Wasm, "_template", full)
    assert "the disk is full" in Wasm().obstacle(((), (), (), ""), [])


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
    assert re.search("toy: notebooks cannot be .*wasm: there is no torch", capsys.readouterr().err)
    with pytest.raises(NotSealed, match="'wasm': there is no torch"):
        run(tmp_path, {"import torch": ""})
