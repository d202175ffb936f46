"""Read and write notebooks: always in version 4, always as the same bytes."""

from pathlib import Path

import nbformat
from nbformat import NotebookNode

from gradebox.nbgrader.cells import name_of

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def read(path: Path) -> NotebookNode:
    """Return the notebook of version 4 in a file; whether it is valid would take long to check."""
    notebook: NotebookNode = nbformat.v4.reads(path.read_text(encoding="utf-8"))  # type: ignore[no-untyped-call]
    return notebook


def node(content: object) -> NotebookNode:
    """Return a copy of nested dicts as a notebook, or a part of one."""
    notebook: NotebookNode = nbformat.from_dict(content)  # type: ignore[no-untyped-call]
    return notebook


def to_bytes(notebook: NotebookNode) -> bytes:
    """Return a notebook as it is written: keys sorted, one newline at the end."""
    text = str(nbformat.writes(notebook, version=4))  # type: ignore[no-untyped-call]
    return (text.rstrip("\n") + "\n").encode()


def named(notebook: NotebookNode) -> dict[str, NotebookNode]:
    """Return the cells of nbgrader's, by their names."""
    return {name: cell for cell in notebook.cells if (name := name_of(cell))}
