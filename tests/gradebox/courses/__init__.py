"""Assignments in courses of their own, released and graded as a teacher does it; a small class."""

import contextlib
import gc
import json
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import nbformat
import psutil
from hang import HANG
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader import api
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from notebooks import answer, cell, name_of
from traitlets.config.loader import PyFileConfigLoader

from benchmarks.gradebooks import rows, url
from gradebox import cli

CONFIG = """
c = get_config()
c.CourseDirectory.course_id = "others"
c.Execute.timeout = 1800
c.Execute.startup_timeout = 1800
c.Execute.iopub_timeout = 1800
"""

Points = dict[tuple[str, ...], tuple[Any, ...]]


class Assignment(NamedTuple):
    """An assignment in a course of its own, and its submissions."""

    root: Path
    name: str

    def copy(self, folder: Path) -> "Assignment":
        return Assignment(Path(shutil.copytree(self.root, folder)), self.name)

    def release(self) -> Path:
        """Return the folder of what students get."""
        self._nbgrader(lambda api: api.generate_assignment(self.name))
        return self.root / "release" / self.name

    def autograde(self) -> Points:
        """Grade as nbgrader does, in this process: to import it anew takes as long as a kernel."""
        self._nbgrader(lambda api: api.autograde(self.name, "*"))
        return self.points()

    def _nbgrader(self, command: Callable[[NbGraderAPI], dict[str, Any]]) -> None:
        with contextlib.chdir(self.root), patch.object(api, "get_alembic_version", _version):
            config = PyFileConfigLoader("nbgrader_config.py", path=str(self.root)).load_config()
            made = NbGraderAPI(config=config)
            made.coursedir.root = str(self.root)
            with warnings.catch_warnings(action="ignore"):
                result = command(made)
                gc.collect()  # the sockets to the kernels
        assert result["success"], result["log"]

    def grade(self, *options: str) -> int:
        with contextlib.chdir(self.root):
            return cli.main(["grade", self.name, "-j", "2", *options])

    def points(self) -> Points:
        return {row[:3]: row[3:] for row in rows(url(self.root))["grades"]}

    def report(self) -> dict[str, Any]:
        return reported(self.root, self.name)


def fill_in(file: Path, released: Path, answers: Mapping[str, str]) -> None:
    """Hand in a notebook with the answers filled in; cells without an answer stay as they are."""
    nb = nbformat.read(released, as_version=4)
    for node in nb.cells:
        node.source = answers.get(name_of(node), node.source)
    write(file, nb)


def _version() -> str:
    """Return the version of a gradebook, for which nbgrader would start a program."""
    files = Path(api.__file__).with_name("alembic").glob("versions/*.py")
    found = re.findall(r"^(down_)?revision = '(\w+)'", "".join(map(Path.read_text, files)), re.M)
    [head] = {name for down, name in found if not down} - {name for down, name in found if down}
    return head


def write(file: Path, nb: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nb, file)  # type: ignore[no-untyped-call]


def write_files(files: Mapping[str, str], folder: Path) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)


ANSWER = "def double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION"
TEST = (
    "assert double(2) == 4\n### BEGIN HIDDEN TESTS\nassert double(-3) == -6\n### END HIDDEN TESTS"
)


def release(root: Path) -> None:
    """Make a course with one released assignment of two notebooks."""
    config = CONFIG.replace("others", "toy") + "c.OverwriteCells.add_missing_cells = True\n"
    config += 'c.LateSubmissionPlugin.penalty_method = "zero"\n'
    (root / "nbgrader_config.py").write_text(config)
    write(root / "source/toy/toy.ipynb", assignment())
    (root / "source/toy/data.txt").write_text("the data")
    write(root / "source/toy/two.ipynb", new_notebook(cells=[cell("two-test", "assert 1", 5)]))
    Assignment(root, "toy").release()
    is_due(url(root), "2026-01-02")


def assignment() -> Any:
    return new_notebook(
        cells=[
            new_code_cell("import numpy as np", id="start"),
            answer(ANSWER),
            cell("test", TEST, 3),
            cell("part", "double(1) / 4", 1),
            answer("Why?", "words", points=2, grade=True, make=new_markdown_cell),
            new_code_cell("print(open('data.txt').read())\nopen('made.txt', 'w').write('x')"),
        ]
    )


def is_due(address: str, day: str) -> None:
    with Gradebook(address, "toy") as book:
        book.update_or_create_assignment("toy", duedate=f"{day} 00:00:00 UTC")


def hand_in(
    root: Path, student: str, body: str | None = "return 2 * x", both: bool = False, **cells: str
) -> Path:
    """Hand in a released notebook, or both, with the body of the answer, and cells by names."""
    folder = root / "submitted" / student / "toy"
    answers = {} if body is None else {"answer": f"def double(x):\n    {body}"}
    for name in ("toy.ipynb", "two.ipynb")[: 1 + both]:
        fill_in(folder / name, root / "release/toy" / name, answers | cells)
    return folder


def points(root: Path) -> dict[tuple[str, str], str]:
    return {(row[0], row[2]): row[3] for row in rows(url(root))["grades"]}


def grade(*more: str) -> int:
    return cli.main(["grade", "toy", "-j", "2", *more])


def reported(root: Path, name: str = "toy") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / f".gradebox/{name}.json").read_text())
    return found


def pages(root: Path) -> dict[str, Any]:
    """Return the graded notebooks, without what differs from kernel to kernel."""
    found = {}
    for path in sorted((root / "autograded").rglob("*")):
        content: Any = path.name if path.is_dir() else path.read_bytes()
        if path.suffix == ".ipynb":
            content = nbformat.reads(content.decode(), 4)
            content["metadata"].pop("language_info", None)
            for cell in content["cells"]:
                cell["metadata"].pop("execution", None)
                cell.pop("execution_count", None)  # test cells, which run apart, have no number
                for output in cell.get("outputs", []):
                    output.pop("traceback", None)
                    output.pop("execution_count", None)
                if "was missing" in "".join(cell["source"]):
                    cell["id"] = "random in nbgrader"
        found[str(path.relative_to(root))] = (content, path.stat().st_mode)
    return found


def a_class(root: Path) -> None:
    """Hand in what a class hands in; only who is late hands in both notebooks."""
    late = hand_in(root, "late", both=True, words="Because.")
    (late / "timestamp.txt").write_text("2026-01-02 01:00:00 UTC")
    edits = hand_in(root, "edits", "return x", test="print('all is well')")
    own = {"timestamp": "2026-01-01 01:00:00 UTC", "own": "mine", "data": "not the data"}
    for name, text in own.items():
        (edits / f"{name}.txt").write_text(text)
    nb = nbformat.read(edits / "toy.ipynb", as_version=4)
    nb.cells = [node for node in nb.cells if name_of(node) != "part"]
    nbformat.write(nb, edits / "toy.ipynb")


def stumbling(root: Path) -> None:
    """Hand in what ends nbgrader."""
    for student, name in (("copies", "test"), ("adds", "mine")):
        folder = hand_in(root, student)
        nb = nbformat.read(folder / "toy.ipynb", as_version=4)
        copy = nbformat.from_dict({**nb.cells[2], "id": "again"})
        copy.metadata = {"nbgrader": {**copy.metadata.nbgrader, "grade_id": name}}
        nb.cells.insert(0, copy)
        nbformat.write(nb, folder / "toy.ipynb")


DIES = """
import os, pkgutil, psutil, signal, sys
import gradebox.cli, gradebox.run.report, sqlalchemy.orm
place, name, left = sys.argv[1], sys.argv[2], [int(sys.argv[3])]
owner = pkgutil.resolve_name(place)
was = getattr(owner, name)
def dies(*values, **more):
    left[0] -= 1
    if left[0] == 0:
        print(*[child.pid for child in psutil.Process().children(recursive=True)], flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    return was(*values, **more)
setattr(owner, name, dies)
sys.exit(gradebox.cli.main(["grade", "toy", "-j", "2"]))
"""


def five(root: Path) -> None:
    for number, body in enumerate(("return 2 * x", "return x", "return 2 * x", "1 / 0", "pass")):
        hand_in(root, f"s{number}", body, both=number == 1)


def killed(root: Path, place: str, name: str, call: int) -> list[int]:
    """Grade until a function is called so many times; return the processes there were."""
    command = [sys.executable, "-c", DIES, place, name, str(call)]
    died = subprocess.run(command, cwd=root, capture_output=True, timeout=HANG, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr[-2000:]
    return [int(pid) for pid in died.stdout.splitlines()[-1].split()]


def wait_until(is_so: Callable[[], bool]) -> None:
    last = time.monotonic() + HANG
    while not is_so():
        assert time.monotonic() < last
        time.sleep(0.02)


def lives(pid: int) -> bool:
    """Return whether a process has not ended; some systems bury it only a second later."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def wait_for_ends(pids: Collection[int]) -> None:
    wait_until(lambda: not any(map(lives, pids)))
