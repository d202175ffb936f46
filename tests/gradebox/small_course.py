"""A course with one small assignment, and what students hand in."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
from courses import CONFIG, Assignment, write
from hang import HANG
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook
from notebooks import answer, cell, name_of

from benchmarks.gradebooks import rows, url
from gradebox import cli

MORE = """
c.OverwriteCells.add_missing_cells = True
c.LateSubmissionPlugin.penalty_method = "zero"
"""

ANSWER = "def double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION"
TEST = (
    "assert double(2) == 4\n### BEGIN HIDDEN TESTS\nassert double(-3) == -6\n### END HIDDEN TESTS"
)


def release(root: Path) -> None:
    """Make a course with one released assignment of two notebooks."""
    (root / "nbgrader_config.py").write_text(CONFIG.replace("others", "toy") + MORE)
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


def hand_in(root: Path, student: str, body: str | None = "return 2 * x", **cells: str) -> Path:
    """Hand in the released notebooks with the body of the answer, and cells by their names."""
    folder = root / "submitted" / student / "toy"
    folder.mkdir(parents=True)
    for name in ("toy", "two"):
        nb = nbformat.read(root / f"release/toy/{name}.ipynb", as_version=4)
        for node in nb.cells:
            if name_of(node) == "answer" and body is not None:
                node.source = f"def double(x):\n    {body}"
            node.source = cells.get(name_of(node), node.source)
        nbformat.write(nb, folder / f"{name}.ipynb")
    return folder


def points(root: Path) -> dict[tuple[str, str], str]:
    return {(row[0], row[2]): row[3] for row in rows(url(root))["grades"]}


def grade(*more: str) -> int:
    return cli.main(["grade", "toy", "-j", "2", *more])


def reported(root: Path) -> dict[str, Any]:
    return json.loads((root / ".gradebox/toy.json").read_text())


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
    """Hand in what a class hands in; only who is right or late hands in both notebooks."""
    early = hand_in(root, "right", words="Because.")
    (early / "timestamp.txt").write_text("2026-01-01 01:00:00 UTC")
    (hand_in(root, "late") / "timestamp.txt").write_text("2026-01-02 01:00:00 UTC")
    blank = hand_in(root, "blank", None)
    edits = hand_in(root, "edits", "return 0", test="print('all is well')")
    raises = hand_in(root, "raises", "raise ValueError('no')")
    (raises / "own.txt").write_text("mine")
    (raises / "data.txt").write_text("not the data")
    deletes = hand_in(root, "deletes")
    nb = nbformat.read(deletes / "toy.ipynb", as_version=4)
    nb.cells = [node for node in nb.cells if name_of(node) != "test"]
    nbformat.write(nb, deletes / "toy.ipynb")
    for folder in (blank, edits, raises, deletes):
        (folder / "two.ipynb").unlink()


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
import importlib, os, pkgutil, psutil, signal, sys
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
        hand_in(root, f"s{number}", body)


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
