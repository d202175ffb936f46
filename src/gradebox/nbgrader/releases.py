"""Compare what students were given with the source, and with what they were given before."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.utils import is_grade, is_locked, is_solution, is_task

from gradebox.events import Event
from gradebox.files import read_json, write
from gradebox.nbgrader.cells import name_of
from gradebox.nbgrader.course import Course
from gradebox.nbgrader.dry_run import AUTOMATIC
from gradebox.nbgrader.gradebook import Sources
from gradebox.nbgrader.rebuild import aspects, originals
from gradebox.nbgrader.source_notebook import Released


def unreleased(course: Course, sources: Sources) -> list[str]:
    """Return the cells of the instructor's version that differ from those in the gradebook.

    Their tests would give points that the instructor has changed since. Where there is no source
    notebook there is nothing to compare, and nbgrader writes automatic tests when it releases them.
    """
    found = []
    for path in sorted(course.source.glob("*.ipynb")):
        if path.stem in sources.names:
            recorded = originals(sources.find_notebook(path.stem, course.assignment))
            written = _written(course, path)
            for name in written.keys() & recorded.keys():
                if AUTOMATIC in written[name].source:
                    written[name].source = recorded[name].source
            now, then = what_is(written.values()), what_is(recorded.values())
            found += [f"{path.stem}/{n}" for n in now | then if now.get(n) != then.get(n)]
    return found


def _written(course: Course, path: Path) -> dict[str, Any]:
    """Return the cells of a source notebook as a release would have them now."""
    nb = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    context = {"notebook": path.stem, "assignment": course.assignment, "student": "."}
    resources: Any = {"language": "python", "unique_key": path.stem, "metadata": {}}
    resources["nbgrader"] = context | {"db_url": course.url}
    for step in course.release_steps():
        nb, resources = step(nb, resources)
    kinds = (is_grade, is_solution, is_locked, is_task)
    return {name_of(c): c for c in nb.cells if name_of(c) and any(kind(c) for kind in kinds)}


def remember(file: Path, sources: Sources, released: Released) -> dict[str, list[Any]]:
    """Add the present release to those that a file remembers; return them, by notebook."""
    seen = read_json(file)
    before = json.dumps(seen)
    for name in sources.names:
        recorded = originals(sources.find_notebook(name, sources.assignment)).values()
        for cell in recorded:
            cell.source = released(cell.source)
        if (cells := what_is(recorded)) not in seen.setdefault(name, []):
            seen[name].append(cells)
    if json.dumps(seen) != before:
        write(file, json.dumps(seen))
    return seen


def what_is(cells: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """Return what cells that have a name in nbgrader are, by these names."""
    return {name_of(cell): aspects(cell) for cell in cells if name_of(cell)}


def judged(event: Event, releases: list[Any], cells: dict[str, Any]) -> Event:
    """Return an event, or that the cell which it calls changed is one of an older release.

    ``releases`` are those of the notebook that were seen, ``cells`` those that were handed in.
    """
    if event.kind == "changed" and event.cell in cells and len(releases) > 1:
        what = event.fields["what"]
        former = [each[event.cell][what] for each in releases if event.cell in each]
        if cells[event.cell][what] in former:
            return Event("older", event.notebook)
    return event
