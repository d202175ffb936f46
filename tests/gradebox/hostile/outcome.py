"""What became of submissions: read from the gradebook and the graded notebooks."""

from pathlib import Path
from typing import Any

import nbformat
import notebooks
from courses import reported

from benchmarks.gradebooks import rows, url
from gradebox.events import Event
from hostile.course import KEY, NAME, PASSWORD, POINTS


def scores(root: Path) -> dict[str, dict[str, tuple[Any, ...]]]:
    """Return by student and cell: points by machine, by hand, extra ones, and what is taken off."""
    by_student: dict[str, dict[str, tuple[Any, ...]]] = {}
    found = rows(url(root))
    taken = {student: penalty for student, _, _, penalty in found["notebooks"]}
    for student, _, cell, *numbers, _ in found["grades"]:
        texts = [*numbers, taken[student]]
        row = tuple(None if text == "None" else float(text) for text in texts)
        by_student.setdefault(student, {})[cell] = row
    return by_student


def report(root: Path) -> dict[str, Any]:
    """Return gradebox's report, each event as its sentence."""
    return {
        student: entry | {"events": [str(Event.of(event)) for event in entry["events"]]}
        for student, entry in reported(root, NAME).items()
    }


def page(root: Path, student: str) -> Any:
    path = root / "autograded" / student / NAME / f"{NAME}.ipynb"
    return nbformat.read(path, as_version=4) if path.is_file() else None


def shown(nb: Any) -> dict[str, str]:
    texts = {}
    for number, cell in enumerate(nb.cells):
        if cell.cell_type == "code":
            tracebacks = [line for output in cell.outputs for line in output.get("traceback", ())]
            name = notebooks.name_of(cell) or f"cell {number}"
            texts[name] = "\n".join([notebooks.shown(cell), *tracebacks])
    return texts


def leaks(root: Path, student: str) -> list[str]:
    """Return what the student's own cells show that students must not know."""
    nb = page(root, student)
    own = [text for name, text in shown(nb).items() if name not in POINTS] if nb else []
    return [secret for secret in (KEY, PASSWORD) if secret in "\n".join(own)]
