"""Cells in a fork show what they show in a kernel; isolated tests see values and stubs alone."""

import json
import re
import socket
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from courses import wait_until
from hang import HANG
from hostile import texts
from hostile.tables import execute, table
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.preprocessors import Execute
from notebooks import answer, cell, executed, scores, shown, write_source

from gradebox.nbgrader.execute import WarmExecute
from gradebox.nbgrader.source_notebook import given_parts
from gradebox.workers import client, pool
from gradebox.workers.client import ForkServer

pytestmark = pytest.mark.xdist_group("gradebox")

NOTEBOOKS = texts.sections("tables/notebooks.txt")


def outputs_of(node: Any) -> list[Any]:
    """Return the outputs without what differs from process to process."""
    outputs = []
    for output in map(dict, node.outputs):
        if output["output_type"] == "error":
            # the name of the cell's file is a number of the process
            message = re.sub(r"\([^()]*, line", "(cell, line", output["evalue"])
            output = {"error": output["ename"], "message": message}
        outputs.append(output)
    return outputs


NOT_KEPT = "display({'application/json': object()}, raw=True)"


def test_cell_outputs_match_those_of_a_kernel(tmp_path):
    (tmp_path / "here.txt").write_text("found")
    sources = [NOT_KEPT, "  ", *texts.cells((texts.HERE / "kernel.txt").read_text())]
    # the limits of a kernel are in wall time
    settings = dict.fromkeys(("timeout", "startup_timeout", "iopub_timeout"), HANG)
    settings["extra_arguments"] = ["--log-level=ERROR"]
    ours, theirs = (new_notebook(cells=[*map(new_code_cell, sources)]) for _ in range(2))
    warm = partial(WarmExecute, imports=["numpy", "matplotlib.pyplot"])
    for make, nb in (warm, ours), (Execute, theirs):
        make(**settings).preprocess(nb, {"metadata": {"path": str(tmp_path)}})
    for node, other in zip(ours.cells, theirs.cells, strict=True):
        if node.source == NOT_KEPT:  # each says in its own way why that cell alone fails
            assert [one.output_type for one in (*node.outputs, *other.outputs)] == ["error"] * 2
        else:
            assert outputs_of(node) == outputs_of(other), node.source
        assert node.execution_count == other.execution_count


SQUARE = "def square(x):\n    return x * x"


CROSSES = texts.sections("tables/crosses.txt")
HELPERS, STUDENT, DRIVERS = (CROSSES.pop(name) for name in ("helpers", "student", "drivers"))


def test_values_cross_and_functions_are_called(tmp_path):
    for folder in ("source/toy", "work"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "drivers.py").write_text(DRIVERS)
    tests = {name: cell(name, source, 1) for name, source in CROSSES.items()}
    _, run = executed(tmp_path, cell("helpers", HELPERS), STUDENT, *tests.values())
    assert run.scores == dict.fromkeys(CROSSES, 1), run.reasons
    assert shown(tests["what it prints"]) == "four\n"


def test_error_shows_lines_of_test_and_student(tmp_path):
    test = cell("test", "import math\nf(math.pi)", 1)
    cells, _ = executed(tmp_path, "def f(x):\n    return x.nothing", test)
    [output] = cells[1].outputs
    assert output.ename == "AttributeError"
    text = "\n".join(output.traceback)
    assert "    f(math.pi)\n" in text
    assert text.endswith("In the student's code:\n  line 2: return x.nothing")
    assert "gradebox" not in text


def test_tests_read_original_files_despite_overwriting(tmp_path):
    for folder in ("source/toy", "work"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "expected.txt").write_text("16")
    student = "open('expected.txt', 'w').write('0')\nopen('sched.py', 'w').write('x = 1')\n"
    tests = {
        "import os\nassert str(square(4)) == open('expected.txt').read()": 0,
        "import os, sched\nassert os.listdir() == ['expected.txt'] and sched.scheduler": 1,
    }
    own = student + "def square(x): return 0"
    assert scores(tmp_path, own, *(cell(test, test, 1) for test in tests)) == tests


def test_the_instructors_cells_run_where_the_tests_run(tmp_path):
    made = table("given")
    why = {made.cells[place].metadata.nbgrader.grade_id: t for place, t in made.said["why"].items()}
    handed_in = [node for node in made.cells if node.metadata.get("nbgrader")]  # no plain cells
    options: dict[str, Any] = {"source": made.cells, "skip_cells_with_tag": "train"}
    run = executed(tmp_path, *handed_in, **options)[1]
    assert run.reasons == why
    assert run.scores == {name: float(name not in why) for name in made.names}


SOLUTIONS = {
    "x = 1\n### BEGIN SOLUTION\ny = x\n### END SOLUTION\nz = y": {"y"},
    "def f(x):\n    ### BEGIN SOLUTION\n    y = x\n    ### END SOLUTION": {"f"},
    "for k in (1, 2):\n    (a, *b), c.d, e[0] = k": {"k", "a", "b"},
    "import u.v, w as q\nfrom u import s as t": set(),
    "with open('a') as f, open('b') as (g, h): n = (m := [o for p in f])": {*"fghnm"},
    "def f():\n    global g\n    g = h = 1": {"f", "g"},
    "try:\n    import a\nexcept ImportError as b:\n    a = c = None": {"b", "c"},
    "class A:\n    b = 1\n    def c(self): self.d = 1": {"A"},
    "x += 1\ndel y\nz: int = 3": {"x", "y", "z"},
    "match [1]:\n    case [a, *b]: pass\n    case {'c': c, **d}: pass": {*"abcd"},
    "%%capture out\nx = 1": {"x", "out"},
    "%matplotlib inline\nx = !ls": {"x"},
    "def broken(": set(),
}


@pytest.mark.parametrize(("source", "names"), SOLUTIONS.items())
def test_answer_names_are_those_solutions_bind(source, names):
    parts = given_parts([answer(source), cell("test", "pass", 1)])
    assert {name for part in parts for name in part.answers} == names


@pytest.mark.usefixtures("short_limits")
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_each_notebook_gets_its_points(tmp_path, monkeypatch, name):
    found, expected = execute(tmp_path, NOTEBOOKS[name], monkeypatch)
    assert found == expected


LATER = cell("later", "assert square(2) == 4", 1)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a package with answers and tests, which is on the path of new processes."""
    library = tmp_path_factory.mktemp("package") / "lib"  # which others may enter
    folder = library / "course"
    (folder / "tests").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "toy.py").write_text("def square(x):\n    return x * x  # SECRET42\n")
    (folder / "other.py").write_text("def cube(x):\n    return x ** 3\n")
    text = "from course.toy import square as right\ndef check(f): assert f(5) == right(5)\n"
    (folder / "tests" / "__init__.py").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{library}:{':'.join(filter(None, sys.path))}")
        patch.syspath_prepend(str(library))
        yield folder


BARRED: dict[str, Any] = {"banned": ["course.{assignment}"], "stubbed": ["course.tests"]}
IMPORTS = cell("imports", "from course.tests import check")
CHECK = cell("test", "check(square)", 1)


def test_the_reference_cannot_be_imported(tmp_path, package):
    cheats = [
        "from course.toy import square",
        "import importlib\nsquare = importlib.import_module('course.toy').square",
        f"exec(open({str(package / 'toy.py')!r}).read())",
        f"import sys\nsys.path.insert(0, {str(package)!r})\nfrom toy import square",
        "import sys\nsys.meta_path = sys.meta_path[1:]\nfrom course.toy import square",
        "from course.tests import right as square",
    ]
    # a name of its own that a cheat that fails leaves without a value
    own = [f"{cheat}\nsquare_{number} = square" for number, cheat in enumerate(cheats)]
    tests = [cell(cheat, f"check(square_{number})", 1) for number, cheat in enumerate(cheats)]
    names = "\n".join(f"square_{number} = None" for number in range(len(cheats)))
    source = [IMPORTS, answer(names), *tests]
    cells, run = executed(tmp_path, IMPORTS, *own, *tests, source=source, **BARRED)
    assert run.scores == dict.fromkeys(cheats, 0)
    assert not [node.source for node in cells if "SECRET42" in shown(node)]
    handed_in = [IMPORTS, cheats[-1], CHECK]
    source = [IMPORTS, answer(SQUARE), CHECK]
    control = scores(tmp_path, *handed_in, source=source, imports=["course"])
    assert control == {"test": 1}


def test_banned_modules_import_only_in_tests(tmp_path, package):
    locked = cell("reference", "import course.toy\nprint('here')")
    handed_in = [IMPORTS, SQUARE, "import course.toy", "check(square)", locked, CHECK]
    options = {"source": [IMPORTS, answer(SQUARE), locked, CHECK]} | BARRED
    cells, run = executed(tmp_path, *handed_in, **options)
    assert run.scores == {"test": 1}
    assert shown(cells[0]) == ""
    assert "course.toy cannot be imported while your work is graded" in shown(cells[2])
    assert "course/" not in "".join(cells[2].outputs[0].traceback)
    assert "the tests do not run in this process" in shown(cells[3])
    assert shown(cells[4]) == "here\n"  # as where the tests run
    _, run = executed(tmp_path, IMPORTS, SQUARE, CHECK, in_process=["test"], **BARRED)
    assert run.scores == {"test": 0}  # the stub raises: a test of it would otherwise pass


def test_barred_files_cannot_be_read(tmp_path, package, level):
    read = (
        "import os\n"
        f"top = {str(package)!r}\n"
        "for folder, _, files in os.walk(top):\n"
        "    for name in files:\n"
        "        try: text = open(os.path.join(folder, name), 'rb').read()\n"
        "        except OSError: continue\n"
        "        print(os.path.relpath(os.path.join(folder, name), top), b'SECRET42' in text)\n"
    )
    options = {"source": [IMPORTS], "sandbox": str(level)} | BARRED
    cells, _ = executed(tmp_path, read, "import course.other", **options)
    assert "True" not in shown(cells[0])
    assert "other.py False" in shown(cells[0])
    assert shown(cells[1]) == ""


def test_tagged_cells_are_skipped_by_instructors_tags(tmp_path):
    def tagged(name: str, source: str, points: float | None, *tags: str) -> Any:
        node = cell(name, source, points)
        node.metadata["tags"] = [*tags]
        return node

    helper, train = ("helper", "print('helps')", None), ("train", "print('trains')", None)
    test = "test", "assert square(2) == 4", 1
    source = [tagged(*helper), tagged(*train, "train", "other"), answer(SQUARE)]
    own = new_code_cell("print('own')", metadata={"tags": ["train"]})
    handed_in = [tagged(*helper, "train"), tagged(*train), own, "def square(x): return 0"]
    for cells in source, handed_in:
        cells.append(tagged(*test, "train"))
    cells, run = executed(tmp_path, *handed_in, source=source, skip_cells_with_tag="train")
    assert [shown(node) for node in cells[:4]] == ["helps\n", "", "", ""]
    assert run.scores == {"test": 0}
    assert cells[4].outputs[0].ename == "AssertionError"


def test_server_that_ends_gives_no_process_id():
    server, (ours, theirs) = pool.server(pool.modules("", ("numpy",))), socket.socketpair()
    with ours, theirs:
        theirs.shutdown(socket.SHUT_WR)  # 0 would end the grader's own group
        with pytest.raises(ConnectionError):
            server._fork(ours, b"f")


def test_server_interrupted_before_its_answer_is_replaced(monkeypatch):
    modules = pool.modules("", ("numpy",))
    server, (ours, theirs) = pool.server(modules), socket.socketpair()
    with ours, theirs, monkeypatch.context() as patch:
        patch.setattr(client.socket, "send_fds", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):  # its answer would be that to the next request
            server._fork(server._control, b"f", theirs)
    assert not server.alive
    assert pool.server(modules).alive


def test_notebook_whose_server_ends_is_not_graded(tmp_path, monkeypatch):
    run, server = client.Notebook.run, pool.server(pool.modules("", ("numpy",)))

    def ending(*values: Any) -> Any:
        server.close()  # as one that does not answer another notebook
        return run(*values)

    monkeypatch.setattr(client.Notebook, "run", ending)
    with pytest.raises(RuntimeError, match="the fork server ended while the notebook ran"):
        scores(tmp_path, SQUARE, LATER)


def test_interruption_after_a_cell_loses_no_answer(tmp_path):
    late = (
        "import signal\nfrom gradebox.workers import protocol\nsend = protocol.send\n"
        "def late(*values):\n    signal.raise_signal(signal.SIGINT)\n    send(*values)\n"
        "protocol.send = late"
    )
    cells, run = executed(tmp_path, late, "print('here')", SQUARE, LATER)
    assert (shown(cells[1]), run.scores) == ("here\n", {"later": 1})


def test_server_start_failure_is_reported(monkeypatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(RuntimeError, match="the fork server did not start; try: /bin/false"):
        ForkServer(("numpy",)).wait_until_ready()


def test_server_started_early_is_reused(tmp_path, package):
    settings: dict[str, Any] = {"imports": ["wave", "course.tests"], **BARRED}
    lines = [f"c.WarmExecute.{name} = {value!r}" for name, value in settings.items()]
    (tmp_path / "nbgrader_config.py").write_text("\n".join(["c = get_config()", *lines]))
    test = cell("test", "import colorsys, json", 1)
    write_source(tmp_path, [test])
    before = [*pool._servers]
    pool.start((pool.configured(tmp_path, "toy") or [None])[0])
    wait_until(lambda: len(pool._servers) > len(before))
    started = [*pool._servers]
    assert [key[1:3] for key in started[len(before) :]] == [(("course.toy",), ("course.tests",))]
    executed(tmp_path, test, **settings)
    assert [*pool._servers] == started
    (tmp_path / "nbgrader_config.py").write_text("raise ValueError")
    assert pool.configured(tmp_path, "toy") is None


def test_imports_of_instructors_cells_are_preloaded(tmp_path):
    (tmp_path / "json.py").write_text("")
    texts = ["import numpy as np, json\nfrom os.path import join", "%magic", "import no_x"]
    notebook = tmp_path / "beside.txt"
    code = [{"cell_type": "code", "source": text} for text in texts]
    notebook.write_text(json.dumps({"cells": code}))
    assert pool._imported(tmp_path, ((notebook, 0),)) == ("numpy", "os.path", "os.path:join")
    text = "import wave, no_such_module\nfrom course import x\nfrom json import no\n"
    # a part of it is imported when it is asked for a name
    imports = cell("imports", f"{text}from concurrent.futures import ProcessPoolExecutor")
    known = "import sys\nprint('wave' in sys.modules, 'concurrent.futures.process' in sys.modules)"
    for source, own, expected in (
        ([imports], ["no_such_module"], "True True\n"),
        ([LATER], [], "False False\n"),
    ):
        cells, _ = executed(tmp_path, known, source=source, imports=own)
        assert shown(cells[0]) == expected
