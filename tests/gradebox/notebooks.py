"""Notebooks of an assignment that tests execute without a gradebook."""

import importlib
import importlib.util
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from traitlets import Float
from traitlets.config import Config

from gradebox.nbgrader.execute import WarmExecute
from gradebox.nbgrader.notebook_run import Run
from gradebox.nbgrader.plan import IN_PROCESS, PlannedTest

CONTEXT = {"assignment": "toy", "notebook": "toy"}

needs_wasm = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("gradebox_wasm", "wasmtime"))
    or not importlib.import_module("gradebox_wasm").INTERPRETER.is_file(),
    reason="the interpreter is missing; it is made by: python -m tools.site.wasm_wheel",
)
SOON = 0.3
"""Seconds of own time of a limit that is waited for; see the fixture ``short_limits``."""


def cell(
    name: str,
    source: str,
    points: float | None = None,
    make: Callable[[str], Any] = new_code_cell,
    **fields: Any,
) -> Any:
    """Return a cell of an assignment: a test if it has points, else a locked cell."""
    new = make(source)
    metadata = {"grade_id": name, "solution": False, "locked": True, "grade": points is not None}
    metadata |= {"schema_version": 3, "task": False, "cell_type": new.cell_type}
    new.metadata["nbgrader"] = metadata | ({} if points is None else {"points": points}) | fields
    return new


def answer(source: str, name: str = "answer", **fields: Any) -> Any:
    return cell(name, source, solution=True, locked=False, **fields)


class QuickExecute(WarmExecute):
    """Has limits in parts of a second, so that no test waits long for one."""

    timeout = Float()
    max_seconds = Float(600)


def step(folder: Path, **traits: Any) -> WarmExecute:
    """Return the step that executes notebooks of a course in a folder."""
    config = traits.pop("config", Config())
    config.CourseDirectory.root = str(folder)
    return QuickExecute(config=config, **{"timeout": 20} | traits)


def write_source(folder: Path, cells: Collection[Any]) -> Path:
    """Write the instructor's version of the notebook, and return its folder."""
    path = folder / "source" / "toy" / "toy.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=[*cells]), path)  # type: ignore[no-untyped-call]
    return path.parent


def executed(
    folder: Path,
    *cells: Any,
    source: Collection[Any] | None = None,
    in_process: Collection[str] = (),
    forks: Collection[str] = (),
    **traits: Any,
) -> tuple[list[Any], Run]:
    """Execute a notebook of a course; return its cells, and what the tests gave.

    ``source`` is the instructor's version, where that is another one. The tests that are named run
    in the student's process, those in ``forks`` with the objects of where they stand.
    """
    nodes = [new_code_cell(item) if isinstance(item, str) else item for item in cells]
    if source is None:  # what has no name there is the student's to answer
        source = [
            answer(n, f"answer-{i}") if isinstance(n, str) else n for i, n in enumerate(cells)
        ]
    write_source(folder, source)
    work = folder / "work"
    work.mkdir(exist_ok=True)
    context = CONTEXT | {"student": "ada"}
    nb = new_notebook(cells=nodes)
    plan = {name: PlannedTest(IN_PROCESS, in_fork=name in forks) for name in (*in_process, *forks)}
    return nb.cells, step(folder, **traits).run(nb, work, context, plan)


def scores(folder: Path, *cells: Any, **options: Any) -> dict[str, float]:
    return executed(folder, *cells, **options)[1].scores


def shown(node: Any) -> str:
    """Return all that a cell shows, as text."""
    names = "text", "ename", "evalue", "data"
    return "".join(str(output.get(name, "")) for output in node.outputs for name in names)


def name_of(node: Any) -> str:
    """Return the name of a cell in nbgrader, or nothing."""
    known = node.metadata.get("nbgrader")
    return known.get("grade_id", "") if isinstance(known, dict) else ""
