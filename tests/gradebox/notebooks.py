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
from gradebox.nbgrader.plan import NotebookPlan

CONTEXT = {"assignment": "toy", "notebook": "toy"}

needs_wasm = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("gradebox_wasm", "wasmtime"))
    or not importlib.import_module("gradebox_wasm").INTERPRETER.is_file(),
    reason="the interpreter is missing; it is made by: python -m tools.site.wasm_wheel",
)
SANDBOX = "auto"
"""The sandbox of the tests that do not name one."""
SOON = 0.3
"""Seconds of own time of a limit that is waited for; see the fixture ``short_limits``."""
OF_R = {"name": "ir", "display_name": "R", "language": "R"}


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
    """Return a cell with an answer."""
    return cell(name, source, solution=True, locked=False, **fields)


class QuickExecute(WarmExecute):
    """Has limits in parts of a second, so that no test waits long for one."""

    timeout = Float()
    max_seconds = Float(600)


def step(folder: Path, **traits: Any) -> WarmExecute:
    """Return the step that executes notebooks of a course in a folder."""
    config = traits.pop("config", Config())
    config.CourseDirectory.root = str(folder)
    return QuickExecute(config=config, **{"timeout": 20, "sandbox": SANDBOX} | traits)


def also_in_wasm(without: dict[str, str]) -> Callable[[pytest.Metafunc], None]:
    """Return what has pytest run the tests of a module in the sandbox of WebAssembly, too.

    Parameters
    ----------
    without : dict
        Why a test, ``test_x``, or a case of one, ``test_x[case]``, is not for that sandbox.
    """
    marks = [needs_wasm, pytest.mark.xdist_group("wasm"), pytest.mark.slow]

    def generate(metafunc: pytest.Metafunc) -> None:
        if "tmp_path" in metafunc.fixturenames and metafunc.definition.name not in without:
            wasm = pytest.param(("wasm", without), id="wasm", marks=marks)
            kernel = pytest.param((SANDBOX, {}), id="kernel")
            metafunc.parametrize("sandbox", [kernel, wasm], indirect=True)

    return generate


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

    Parameters
    ----------
    folder : Path
        The folder of the course.
    *cells : str or cell
        What was handed in.
    source : list of cells, optional
        The instructor's version, where that is another one.
    in_process, forks : collection of str
        The tests that run in the student's process; those with the objects of where they stand.
    **traits : object
        Settings of ``WarmExecute``.
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
    plan = NotebookPlan([*in_process, *forks], forks=[*forks])
    return nb.cells, step(folder, **traits).run(nb, work, context, plan)


def scores(folder: Path, *cells: Any, **options: Any) -> dict[str, float]:
    """Return the scores of the tests of a notebook."""
    return executed(folder, *cells, **options)[1].scores


def shown(node: Any) -> str:
    """Return all that a cell shows, as text."""
    return "".join(
        output.get("text", "") + output.get("evalue", "") + str(output.get("data", ""))
        for output in node.outputs
    )
