"""Tables of cells: the rows make one notebook, or each row makes one.

A line ``=== name`` begins a row. Lines ``--- kind`` begin its cells: ``answer`` is the student's,
``plain`` and ``locked`` are the instructor's, ``tagged`` is plain with the tag *train*, ``test``
is worth a point. Other kinds say something of the cell above them: ``wrong`` is handed in in its
place, ``why`` is why the test fails. ``f`` begins what is handed in in the place of the answer
``def f(x): return x * x``, and so does a row that begins with no such line.
"""

import copy
import re
from ast import literal_eval
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from notebooks import answer, cell, executed, shown

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
"""What ``--- f`` stands for."""


class Table(NamedTuple):
    """A notebook, what is said of its cells by their places, and the names of its tests."""

    cells: list[Any]
    said: dict[str, dict[int, str]]
    names: list[str]


def table(name: str) -> Table:
    """Return what a table says."""
    made = Table([], {"wrong": {}, "why": {}}, [])
    for number, (row, text) in enumerate(sections(f"tables/{name}.txt").items()):
        whole = text if text.startswith("---") else f"--- f\n{text}"
        whole = whole.replace("--- f\n", SQUARE)
        for kind, lines in split(re.sub(NAMES, rf"\1_{number}", whole), "---"):
            if kind in made.said:
                made.said[kind][len(made.cells) - 1] = lines
            else:
                label = row if kind == "test" else f"cell-{len(made.cells)}"
                made.cells.append(CELLS[kind](lines, label))
        made.names.append(row)
    return made


def attacked(folder: Path, **options: Any) -> dict[str, tuple[float, ...]]:
    """Return by attack the points of the right answers and of those that try to get them.

    Of the latter only those that no teacher is told to look at. The last attack exchanges the
    student's names, so what stands behind it would prove nothing.
    """
    made = table("attacks")
    runs = [
        executed(
            folder,
            *(said.get(place, copy.deepcopy(node)) for place, node in enumerate(made.cells)),
            source=made.cells,
            **options,
        )[1]
        for said in ({}, made.said["wrong"])
    ]
    seen = {event.cell for event in runs[1].events if event.is_to_look_at}
    right, wrong = (run.scores for run in runs)
    return {name: (right[name], 0 if name in seen else wrong[name]) for name in made.names}


# what stands around an attack on the answer ``f``
FIRST = cell("first", "assert g(2) == 4", 1)
TEST = cell("test", "assert f(3) == 9", 1)
LATER = cell("later", "assert g(2) == 4", 1)
LINES = sections("tables/sent.txt")["lines"]
RECORD = "calls = []\ndef h(x):\n    calls.append(x)\n    return x"
SQUARE_OF_G = {"answer": "def g(x): return x * x", "test": "assert g(2) == 4"}
"""What stands in cells of which nothing is said."""


def execute(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Execute the notebook of a row; return what became of it, and what the row says of that.

    A line ``field: value; …`` comes first: settings, ``grace``, the tests that run ``in-process``,
    the ``events`` by their kinds and cells, and what was ``changed``. Lines ``--- kind`` begin the
    cells: ``answer`` and ``own`` are the student's, the first with ``source`` in its place in the
    instructor's version; ``locked NAME`` and ``test NAME SCORE/POINTS`` are in both. ``shows`` and
    ``why`` say what the cell above shows, with its streams, and why the test above fails.
    ``@lines`` and ``@record`` stand for texts above; an answer and a test without a text for those
    of :data:`SQUARE_OF_G`.
    """
    for name, named in {"@lines": LINES, "@record": RECORD}.items():
        text = text.replace(name, named)
    head, *parts = re.split(r"^--- (.*)\n", f"{text}\n", flags=re.M)
    fields = dict(part.split(": ", 1) for part in head.strip().split("; ") if part)
    if "grace" in fields:
        monkeypatch.setattr("gradebox.workers.client.GRACE", float(fields.pop("grace")))
    expected = {name: fields.pop(name, "") for name in ("events", "changed")}
    options: dict[str, Any] = {"in_process": fields.pop("in-process", "").split()}
    options |= {name: literal_eval(value) for name, value in fields.items()}
    handed_in, source, said, scores = list[Any](), list[Any](), list[Any](), dict[str, float]()
    for label, lines in zip(parts[::2], parts[1::2], strict=True):
        (kind, *more), name = label.split(), f"cell-{len(source)}"
        lines = lines.rstrip("\n") or SQUARE_OF_G[kind.replace("source", "answer")]
        if kind in ("shows", "why"):
            said.append((kind, handed_in[-1], lines))
        elif kind == "source":
            source[-1] = answer(lines, name)
        elif kind in ("answer", "own"):
            handed_in.append(new_code_cell(lines))
            source += [answer(lines, name)] if kind == "answer" else []
        else:
            score, _, points = more[1].partition("/") if kind == "test" else ("", "", "0")
            scores |= {more[0]: float(score)} if score else {}
            worth = float(points or 1) if score else None
            handed_in.append(cell(more[0], lines, worth))
            source.append(cell(more[0], lines, worth))
    _, run = executed(folder, *handed_in, source=source, **options)
    nbformat.validate(new_notebook(cells=handed_in), relax_add_props=True)
    found: dict[Any, Any] = {"scores": run.scores, "changed": ", ".join(sorted({*run.changed}))}
    found["events"] = ", ".join(f"{event.kind} {event.cell}".strip() for event in run.events)
    for name, text in expected.items():
        expected[name] = found[name] if text == "any" else text
    for kind, node, text in said:
        name = node.metadata.get("nbgrader", {}).get("grade_id")
        names = "".join(output.get("ename", output.get("name", "")) for output in node.outputs)
        told = run.reasons.get(name, "") if kind == "why" else shown(node) + names
        assert len(told) < 3 * 2**20
        found[kind, name, text] = text if text in told else told
        expected[kind, name, text] = text
    return found, expected | {"scores": scores}
