"""Refuse notebooks that carry outputs or execution counts.

Run as ``python -m tools.notebook_outputs FILE_OR_FOLDER ...``; with ``--mend`` they are removed.
"""

import argparse
import sys
from pathlib import Path

from nbformat import NotebookNode

from tools.notebooks import read, to_bytes


def executed_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """Return the cells that keep what a run left in them."""
    code = (cell for cell in notebook.cells if cell.cell_type == "code")
    return [cell for cell in code if cell.outputs or cell.execution_count is not None]


def strip(notebook: NotebookNode) -> None:
    """Remove outputs and execution counts in place."""
    for cell in executed_cells(notebook):
        cell.outputs = []
        cell.execution_count = None


def _notebooks(paths: list[Path]) -> list[Path]:
    return [
        file
        for path in paths
        for file in (sorted(path.rglob("*.ipynb")) if path.is_dir() else [path])
        if ".ipynb_checkpoints" not in file.parts
    ]


def main(arguments: list[str] | None = None) -> int:
    """Return 1 when a notebook carries outputs, after naming it."""
    parser = argparse.ArgumentParser(prog="python -m tools.notebook_outputs", description=__doc__)
    parser.add_argument("paths", type=Path, nargs="+", help="notebooks, or folders of them")
    parser.add_argument("--mend", action="store_true", help="remove the outputs")
    options = parser.parse_args(arguments)
    status = 0
    for path in _notebooks(options.paths):
        notebook = read(path)
        if not executed_cells(notebook):
            continue
        status = 1
        if options.mend:
            strip(notebook)
            path.write_bytes(to_bytes(notebook))
        print(f"{path} {'had' if options.mend else 'has'} outputs", end="")
        print("; they are removed" if options.mend else "; run this with --mend")
    return status


if __name__ == "__main__":
    sys.exit(main())
