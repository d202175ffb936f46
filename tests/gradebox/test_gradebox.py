"""Cells in a fork of the fork server show what they show in a kernel."""

import re
from pathlib import Path
from typing import Any

import pytest
from hang import HANG
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.preprocessors import Execute

from gradebox.nbgrader.execute import WarmExecute

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:nbgrader"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:nbconvert"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:jupyter_client"),
    pytest.mark.xdist_group("gradebox"),
]


def cells_of(
    make: type, tmp_path: Path, *sources: str, timeout: int | None = HANG, **more: Any
) -> list[Any]:
    """Return the cells after execution."""
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


SAME = {
    "a value": ("1 + 1", "_ * 2", "None"),
    "text": ("print('a'); print('b', end='')", "import sys; print('c', file=sys.stderr)"),
    "streams in order": (
        "import sys; print(1); print(2, file=sys.stderr); print(3)",
        "sys.stdout.flush()",
    ),
    "an error, and on": ("x = 3\n1 / 0\nx = 4", "x"),
    "a syntax error, and on": ("def f(:", "2"),
    "an error of its own": ("class Odd(Exception): pass", "raise Odd('why')", "raise Odd"),
    "a rendered traceback": (
        "class Told(Exception):\n    def _render_traceback_(self): return ['only this']",
        "raise Told('x')",
    ),
    "a display": (
        "from IPython.display import HTML, display\ndisplay(HTML('<b>x</b>'))",
        "display(3, 'four')",
        "HTML('<i>y</i>')",
    ),
    "a display that changes": (
        "from IPython.display import display\nh = display('before', display_id='one')\n"
        "h.update('after')",
    ),
    "a picture in bytes, as Pillow shows it": (
        "class Picture:\n    def _repr_png_(self): return bytes(range(99))\n"
        "    def __repr__(self): return 'picture'\ndisplay(Picture())",
        "Picture()",
    ),
    "cleared": ("from IPython.display import clear_output\nprint('gone')\nclear_output()",),
    "magic": ("%%capture kept\nprint('x')", "kept.stdout", "%who_ls"),
    "a shell without input": (
        "__name__",
        "import sys; sys.modules['__main__'].__dict__ is globals()",
    ),
    "await": ("import asyncio\nawait asyncio.sleep(0)\n5", "async def f(): return 6\nawait f()"),
    "numbers of cells": ("a = 1", "a", "In[1], Out[2]"),
    "a semicolon": ("7;", "7"),
    "sys.exit": ("import sys\nsys.exit(3)", "8"),
    "files beside it": ("open('here.txt').read()",),
    "warnings": ("import warnings\nwarnings.simplefilter('ignore')\nwarnings.warn('x')",),
    "a blank cell": ("  ",),
    "a figure": ("import matplotlib.pyplot as plt\nplt.plot([1, 2]);",),
    "an array": ("import numpy as np\nnp.arange(3)", "np.__name__"),
}


NOT_KEPT = "display({'application/json': object()}, raw=True)"


def test_cells_show_what_they_show_in_a_kernel(tmp_path: Path) -> None:
    (tmp_path / "here.txt").write_text("found")
    sources = [NOT_KEPT, *(source for group in SAME.values() for source in group)]
    expected = cells_of(Execute, tmp_path, *sources, extra_arguments=["--log-level=ERROR"])
    for cell, other in zip(cells_of(WarmExecute, tmp_path, *sources), expected, strict=True):
        if cell.source == NOT_KEPT:  # each says in its own way why that cell alone fails
            assert [one.output_type for one in (*cell.outputs, *other.outputs)] == ["error"] * 2
        else:
            assert shown(cell) == shown(other), cell.source
        assert cell.execution_count == other.execution_count


def test_a_notebook_sees_nothing_of_another(tmp_path: Path) -> None:
    leaves = "import json, os, sys\nsecret = json.secret = os.environ['SECRET'] = '1'\n"
    looks = "import json, os, sys\n{*globals(), *os.environ, *vars(json)} & {'secret', 'SECRET'}"
    cells_of(WarmExecute, tmp_path, leaves + "os.chdir('/')\nsys.path.insert(0, '/nowhere')")
    places = f"({str(tmp_path.resolve())!r}, False)"
    cells = cells_of(WarmExecute, tmp_path, looks, "print((os.getcwd(), '/nowhere' in sys.path))")
    assert cells[0].outputs[0].data["text/plain"] == "set()"
    assert cells[1].outputs[0].text == f"{places}\n"


def test_a_loop_is_interrupted_and_the_rest_is_run(tmp_path: Path) -> None:
    cells = cells_of(WarmExecute, tmp_path, "x = 1", "while True: x += 1", "x > 1", timeout=1)
    assert [output.ename for output in cells[1].outputs] == [
        "KeyboardInterrupt",
        "CellTimeoutError",
    ]
    assert cells[2].outputs[0].data["text/plain"] == "True"


LAZY = "concurrent.futures"


@pytest.mark.parametrize(
    ("module", "without", "imports"),
    [
        ("wave", ["numpy"], ["wave", "no_such_module"]),
        # which the package imports when it is asked for the name
        (f"{LAZY}.process", ["numpy", LAZY], [f"{LAZY}:ProcessPoolExecutor", "json:no"]),
    ],
)
def test_the_imports_are_there_before_the_first_cell(
    tmp_path: Path, module: str, without: list[str], imports: list[str]
) -> None:
    source = f"import sys\n{module!r} in sys.modules"
    for names, expected in (without, "False"), (imports, "True"):
        [cell] = cells_of(WarmExecute, tmp_path, source, imports=names)
        assert cell.outputs[0].data["text/plain"] == expected
