"""What became of submissions: read from the gradebook and the graded notebooks."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import nbformat

from gradebox.events import Event
from hostile.course import KEY, NAME, PASSWORD, POINTS

_SCORES = """
SELECT submitted_assignment.student_id, base_cell.name, grade.auto_score, grade.manual_score,
       grade.extra_credit, submitted_notebook.late_submission_penalty
FROM grade JOIN base_cell ON base_cell.id = grade.cell_id
JOIN submitted_notebook ON submitted_notebook.id = grade.notebook_id
JOIN submitted_assignment ON submitted_assignment.id = submitted_notebook.assignment_id
"""


def scores(root: Path) -> dict[str, dict[str, tuple[Any, ...]]]:
    """Return by student and cell: points by machine, by hand, extra ones, and what is taken off."""
    by_student: dict[str, dict[str, tuple[Any, ...]]] = {}
    with sqlite3.connect(root / "gradebook.db") as book:
        for student, cell, *numbers in book.execute(_SCORES):
            by_student.setdefault(student, {})[cell] = tuple(numbers)
    return by_student


def report(root: Path) -> dict[str, Any]:
    """Return gradebox's report, each event as its sentence."""
    report: dict[str, Any] = json.loads((root / f".gradebox/{NAME}.json").read_text())
    return {
        student: entry | {"events": [str(Event.of(event)) for event in entry["events"]]}
        for student, entry in report.items()
    }


def page(root: Path, student: str) -> Any:
    """Return a graded notebook, or None."""
    path = root / "autograded" / student / NAME / f"{NAME}.ipynb"
    return nbformat.read(path, as_version=4) if path.is_file() else None


def shown(nb: Any, tests: bool) -> dict[str, str]:
    """Return by cell what was shown: in the tests, or in all the others."""
    result = {}
    for number, cell in enumerate(nb.cells):
        name = (cell.metadata.get("nbgrader") or {}).get("grade_id", f"cell {number}")
        if (name in POINTS) == tests and cell.cell_type == "code":
            result[name] = "\n".join(map(_text, cell.outputs))
    return result


def _text(output: Any) -> str:
    if output.output_type == "error":
        return "\n".join([output.ename, output.evalue, *output.traceback])
    return str(output.get("text") or json.dumps(output.get("data")))


def leaks(root: Path, student: str) -> list[str]:
    """Return what the student's own cells show that students must not know."""
    nb = page(root, student)
    text = "" if nb is None else "\n".join(shown(nb, tests=False).values())
    return [name for name in (KEY, PASSWORD) if name in text]
