"""Compare what students were given with the source, and with what they were given before."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.utils import is_grade, is_locked, is_solution, is_task

from gradebox.events import Event
from gradebox.files import digest, read_json, write
from gradebox.nbgrader.course import Course
from gradebox.nbgrader.dry_run import AUTOMATIC
from gradebox.nbgrader.gradebook import Sources
from gradebox.nbgrader.source_notebook import Released

Aspects = dict[str, Any]
"""What a cell is: its ``text`` as a checksum, its ``kind``, ``lock``, ``points`` and ``type``."""


def unreleased(course: Course, sources: Sources) -> list[str]:
    """Return the cells of the instructor's version that differ from those in the gradebook.

    Their tests would give points that the instructor has changed since. Where there is no source
    notebook there is nothing to compare, and nbgrader writes automatic tests when it releases them.
    """
    found = []
    for path in sorted(course.source.glob("*.ipynb")):
        if path.stem in sources.names:
            recorded = sources.find_notebook(path.stem, course.assignment)
            released = _recorded(recorded)
            written = _written(course, path, automatic=released)
            differ = [n for n in written | released if written.get(n) != released.get(n)]
            found += [f"{path.stem}/{name}" for name in differ]
    return found


def _written(course: Course, path: Path, automatic: Mapping[str, Aspects]) -> dict[str, Aspects]:
    """Return the cells of a source notebook as a release would have them now."""
    nb = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    resources: Any = {"language": "python", "unique_key": path.stem, "metadata": {}}
    context = {"notebook": path.stem, "assignment": course.assignment, "student": "."}
    resources["nbgrader"] = context | {"db_url": course.url}
    for step in course.release_steps():
        nb, resources = step(nb, resources)
    written = {}
    for cell in nb.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name and any(kind(cell) for kind in (is_grade, is_solution, is_locked, is_task)):
            written[name] = _aspects(cell, is_locked(cell))
            if AUTOMATIC in cell.source and name in automatic:
                written[name]["text"] = automatic[name]["text"]
    return written


def _recorded(notebook: Any, released: Released | None = None) -> dict[str, Aspects]:
    """Return the cells of a notebook in the gradebook; as students get them, with ``released``."""
    graded = {c.name: c.max_score for c in [*notebook.grade_cells, *notebook.task_cells]}
    kinds = {kind: {c.name for c in getattr(notebook, f"{kind}_cells")} for kind in _KINDS}
    return {
        cell.name: {
            "text": _checksum(released(cell.source) if released else cell.source),
            "kind": [cell.name in kinds[kind] for kind in _KINDS],
            "lock": bool(cell.locked),
            "points": graded.get(cell.name),
            "type": cell.cell_type,
        }
        for cell in notebook.source_cells
    }


_KINDS = ("grade", "solution", "task")


def _aspects(cell: Any, is_locked: bool) -> Aspects:
    metadata = cell["metadata"]["nbgrader"]
    points = metadata.get("points")
    return {
        "text": _checksum("".join(cell["source"])),
        "kind": [bool(metadata.get(kind)) for kind in _KINDS],
        "lock": is_locked,
        "points": float(points) if isinstance(points, int | float) else None,
        "type": cell["cell_type"],
    }


def _checksum(source: str) -> str:
    return digest(["\n".join(source.splitlines()).strip()])


def remember(file: Path, sources: Sources, released: Released) -> dict[str, list[Any]]:
    """Add the present release to those that a file remembers; return them, by notebook."""
    seen = read_json(file)
    before = json.dumps(seen)
    for name in sources.names:
        cells = _recorded(sources.find_notebook(name, sources.assignment), released)
        if cells not in seen.setdefault(name, []):
            seen[name].append(cells)
    if json.dumps(seen) != before:
        write(file, json.dumps(seen))
    return seen


def judged(events: Iterable[Event], releases: list[Any], nb: Any) -> list[Event]:
    """Tell what a student has changed in a notebook from what has been changed in the release.

    Parameters
    ----------
    events : iterable of Event
        What was found.
    releases : list
        The releases of the notebook that were seen.
    nb : NotebookNode
        The notebook, as it was handed in.
    """
    events = [*events]
    if not any(event.kind == "changed" for event in events) or len(releases) < 2:
        return events
    metadata = [(cell, cell["metadata"].get("nbgrader")) for cell in nb["cells"]]
    cells = {
        each["grade_id"]: _aspects(cell, bool(each.get("locked")))
        for cell, each in metadata
        if isinstance(each, dict) and isinstance(each.get("grade_id"), str)
    }

    def is_older(event: Event) -> bool:
        if event.kind != "changed":
            return False
        what = event.fields["what"]
        former = [each[event.cell][what] for each in releases if event.cell in each]
        return event.cell in cells and cells[event.cell][what] in former

    return [Event("older", event.notebook) if is_older(event) else event for event in events]
