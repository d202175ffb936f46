"""Tables of cells, whose rows make one notebook.

A line ``=== name`` begins a row. Lines ``--- kind`` begin its cells: ``answer`` is the student's,
``plain`` and ``locked`` are the instructor's, ``tagged`` is plain with the tag *train*, ``test``
is worth a point. Other kinds say something of the cell above them: ``wrong`` is handed in in its
place, ``why`` is why the test fails. A row that begins with no such line begins with what is handed
in in the place of the answer ``def f(x): return x * x``.
"""

import re
from collections.abc import Collection
from typing import Any, NamedTuple

from nbformat.v4 import new_code_cell
from notebooks import answer, cell

from hostile.texts import sections, split

NAMES = (
    r"\b(f|x|xs|k|h|m|np|out|want|got|right|rate|near|shown|begin|result|Odd|Near|Row|Result|Table"
    r"|Left|Right|nine|found|one|two|three|five)\b"
)
"""Each row has these names for itself."""

CELLS: dict[str, Any] = {
    "plain": lambda text, name: new_code_cell(text),
    "tagged": lambda text, name: new_code_cell(text, metadata={"tags": ["train"]}),
    "answer": answer,
    "locked": lambda text, name: cell(name, text),
    "test": lambda text, name: cell(name, text, 1),
}

SQUARE = "--- answer\ndef f(x): return x * x\n--- wrong\n"


class Table(NamedTuple):
    """A notebook, what is said of its cells by their places, and the names of its tests."""

    cells: list[Any]
    said: dict[str, dict[int, str]]
    names: list[str]


def table(name: str, without: Collection[str] = ()) -> Table:
    """Return what a table says, without some of its rows."""
    made = Table([], {"wrong": {}, "why": {}}, [])
    for number, (row, text) in enumerate(sections(f"tables/{name}.txt").items()):
        if row in without:
            continue
        whole = text if text.startswith("---") else SQUARE + text
        for kind, lines in split(re.sub(NAMES, rf"\1_{number}", whole), "---"):
            if kind in made.said:
                made.said[kind][len(made.cells) - 1] = lines
            else:
                label = row if kind == "test" else f"cell-{len(made.cells)}"
                made.cells.append(CELLS[kind](lines, label))
        made.names.append(row)
    return made
