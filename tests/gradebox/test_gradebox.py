"""Cells in a fork of the fork server show what they show in a kernel."""

import re
from pathlib import Path
from typing import Any

import pytest
from hang import HANG
from hostile.texts import HERE, cells
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.preprocessors import Execute

from gradebox.nbgrader.execute import WarmExecute

pytestmark = pytest.mark.xdist_group("gradebox")


def cells_of(
    make: type, tmp_path: Path, *sources: str, timeout: int | None = HANG, **more: Any
) -> list[Any]:
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    # the limits of a kernel are in wall time
    kernel = {"startup_timeout": HANG, "iopub_timeout": HANG}
    executor = make(timeout=timeout, **kernel, **more)
    resources = {"metadata": {"path": str(tmp_path)}}
    return executor.preprocess(notebook, resources)[0].cells


def shown(cell: Any) -> list[Any]:
    """Return the outputs without what differs from process to process."""
    outputs = []
    for output in map(dict, cell.outputs):
        if output["output_type"] == "error":
            # the name of the cell's file is a number of the process
            message = re.sub(r"\([^()]*, line", "(cell, line", output["evalue"])
            output = {"error": output["ename"], "message": message}
        outputs.append(output)
    return outputs


NOT_KEPT = "display({'application/json': object()}, raw=True)"


def test_cell_outputs_match_those_of_a_kernel(tmp_path):
    (tmp_path / "here.txt").write_text("found")
    sources = [NOT_KEPT, "  ", *cells((HERE / "kernel.txt").read_text())]
    expected = cells_of(Execute, tmp_path, *sources, extra_arguments=["--log-level=ERROR"])
    for cell, other in zip(cells_of(WarmExecute, tmp_path, *sources), expected, strict=True):
        if cell.source == NOT_KEPT:  # each says in its own way why that cell alone fails
            assert [one.output_type for one in (*cell.outputs, *other.outputs)] == ["error"] * 2
        else:
            assert shown(cell) == shown(other), cell.source
        assert cell.execution_count == other.execution_count


def test_notebooks_are_isolated_from_each_other(tmp_path):
    leaves = "import json, os, sys\nsecret = json.secret = os.environ['SECRET'] = '1'\n"
    looks = "import json, os, sys\n{*globals(), *os.environ, *vars(json)} & {'secret', 'SECRET'}"
    cells_of(WarmExecute, tmp_path, leaves + "os.chdir('/')\nsys.path.insert(0, '/nowhere')")
    places = f"({str(tmp_path.resolve())!r}, False)"
    cells = cells_of(WarmExecute, tmp_path, looks, "print((os.getcwd(), '/nowhere' in sys.path))")
    assert cells[0].outputs[0].data["text/plain"] == "set()"
    assert cells[1].outputs[0].text == f"{places}\n"


def test_endless_loop_is_interrupted_and_later_cells_run(tmp_path):
    cells = cells_of(WarmExecute, tmp_path, "x = 1", "while True: x += 1", "x > 1", timeout=1)
    assert [output.ename for output in cells[1].outputs] == [
        "KeyboardInterrupt",
        "CellTimeoutError",
    ]
    assert cells[2].outputs[0].data["text/plain"] == "True"
