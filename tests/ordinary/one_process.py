"""The cells of a notebook in one plain IPython, each scored as nbgrader scores what it shows."""

import gc
import os
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nbformat.v4 import new_code_cell, new_output
from nbgrader.utils import determine_grade
from traitlets.config import Config

_MODULES = (
    "matplotlib.figure",
    "numpy",
    "pandas",
    "pytest",
    "scipy.optimize",
    "scipy.sparse",
    "torch",
    "torch._dynamo",  # which the first optimizer would import
)


class Ran(NamedTuple):
    """What became of a cell."""

    failed: bool
    """Whether it raised something."""
    points: float
    """What nbgrader gives for it; 0 if it is no test cell."""
    shown: str
    """What it printed, and the error."""
    seconds: float
    """The processor time that it took."""


def start(profile: Path, modules: Sequence[str] = _MODULES) -> None:
    """Import what cells need, so that none takes long because it is the first to.

    What IPython writes, it writes into a folder of its own.
    """
    for name in modules:
        import_module(name)
    sys.path.insert(0, "")  # as in a kernel: the folder of the notebook
    os.environ["IPYTHONDIR"] = str(profile)
    settings = Config()
    settings.HistoryManager.enabled = False
    settings.InteractiveShell.colors = "nocolor"
    settings.InteractiveShell.xmode = "Plain"
    InteractiveShell.instance(config=settings)
    # each reset of the shell collects garbage, and need not look for it among the modules
    gc.freeze()


def run(
    cells: Sequence[str], folder: Path, worth: Sequence[float | None] | None = None
) -> list[Ran]:
    """Run the cells of one notebook in a folder, all of them, even after an error.

    Each is a test cell worth 1 point unless ``worth`` says otherwise: its points, or None for a
    cell that is no test.
    """
    os.chdir(folder)
    shell = InteractiveShell.instance()
    shell.reset()
    worth = [1] * len(cells) if worth is None else worth
    return [_run(shell, cell, points) for cell, points in zip(cells, worth, strict=True)]


def _run(shell: InteractiveShell, source: str, worth: float | None) -> Ran:
    begin = time.process_time()
    with capture_output(display=False) as captured:
        result = shell.run_cell(source, store_history=True)
    seconds = time.process_time() - begin
    outputs: list[Any] = []
    if captured.stderr:
        outputs.append(new_output("stream", name="stderr", text=captured.stderr))
    if not result.success:
        outputs.append(new_output("error"))
    elif result.result is not None:
        data, metadata = shell.display_formatter.format(result.result)
        outputs.append(new_output("execute_result", data=data, metadata=metadata))
    grading = {"grade": True, "solution": False, "locked": True, "points": worth}
    cell = new_code_cell(source, outputs=outputs, metadata={"nbgrader": grading})
    points = 0.0 if worth is None else determine_grade(cell)[0]
    return Ran(not result.success, points, captured.stdout + captured.stderr, seconds)
