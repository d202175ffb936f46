"""Ordinary tests of a teacher's, each with a right and a wrong answer: a measure for graders.

Each kind has a text file with its cases, which make one notebook. A line ``=== name`` begins
a case, with the student's cell; lines ``--- kind`` begin what follows:

- ``answer`` is another cell of the student's, ``locked`` and ``plain`` are cells of the teacher's,
  and one that is ``unnamed`` is as early versions of nbgrader left it;
- ``test``, or ``test 2``, is a test cell that is worth a point, or two; ``words``, ``program`` and
  ``task`` are graded by hand;
- ``wrong`` and ``another`` stand for the answer above them where a student is wrong, or is right in
  another way. A comment ``# wrong: x`` does so for its line, or the one above it; an empty one
  takes it away.

Stock nbgrader gives each right answer its points, and no wrong one all those of its last test.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from nbformat.v4 import new_markdown_cell, new_notebook
from notebooks import cell

KINDS = ("notebook", "courses", "values", "objects", "calls", "effects")
"""The names of the text files."""

FILES = {
    "rainfall.txt": "48.0\n91.5\n12.0\n",
    "harbour.py": "class Cargo:\n    kind = 'goods'\n    def describe(self):\n"
    "        return f'{self.kind}: {self.weight()} t'\n",
    "testing_market.py": "import random\ndef check_totals(function):\n    for _ in range(40):\n"
    "        rows = [(random.choice('abc'), random.randint(1, 9)) for _ in range(9)]\n"
    "        expected = {key: sum(n for k, n in rows if k == key) for key, _ in rows}\n"
    "        assert function(rows) == expected, f'for {rows}: expected {expected}'\n",
}
"""The texts of the files beside the notebooks."""

OF_STUDENT = {"solution": True, "locked": False}
ROLES: dict[str, dict[str, Any]] = {
    "answer": OF_STUDENT,
    "program": OF_STUDENT,
    "words": OF_STUDENT | {"make": new_markdown_cell},
    "task": {"make": new_markdown_cell, "grade": False, "task": True},
    "unnamed": {"locked": False},
}
"""How the metadata of a cell differ from those of one that is locked."""

_WRONG = re.compile(r"^( *)(\S.*?)(?:  |\n *)# wrong: ?(.*)$", re.M)


class Case(NamedTuple):
    """One exercise: its cells, what its tests are worth, and answers by names of cells."""

    kind: str
    name: str
    cells: list[Any]
    points: dict[str, float]
    right: dict[str, str]
    wrong: dict[str, str]


def cases() -> list[Case]:
    found = []
    for kind in KINDS:
        text = Path(__file__).with_name(f"{kind}.txt").read_text(encoding="utf-8")
        parts = re.split(r"^=== (.*)\n", text, flags=re.M)[1:]
        found += [_case(kind, *pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
    return found


def sources(chosen: Iterable[Case]) -> dict[str, Any]:
    """Return the instructor's notebooks with some cases, by their kind."""
    cells: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    for case in chosen:
        cells[case.kind] += case.cells
    return {kind: new_notebook(cells=nodes) for kind, nodes in cells.items()}


def _case(kind: str, name: str, text: str) -> Case:
    case, given = Case(kind, name, [], {}, {}, {}), ""
    base = re.sub(r"\W+", "-", name)[:50].strip("-")  # an id has 64 characters at most
    parts = re.split(r"^--- (\w+) ?(.*)\n", f"--- answer\n{text}", flags=re.M)[1:]
    for role, worth, lines in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        points = float(worth) if worth else 1.0 if role == "test" else None
        grade_id, source = f"{base}-{len(case.cells)}", lines.strip()
        if role == "another":
            case.right[given] = source
        elif role == "wrong":
            case.wrong[given] = source
        elif source:
            right = _WRONG.sub(r"\1\2", source)
            node = cell(grade_id, right, points, **ROLES.get(role, {}))
            case.cells.append(node)
            if role == "test":
                case.points[grade_id] = points or 0
            elif role == "plain":
                del node.metadata["nbgrader"]
            elif role == "unnamed":
                del node.metadata.nbgrader["grade_id"]
            elif role in ("answer", "words", "program"):
                given = grade_id
                case.right[given], case.wrong[given] = right, _WRONG.sub(r"\1\3", source)
    return case
