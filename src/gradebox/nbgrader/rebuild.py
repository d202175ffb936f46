"""Rebuild a submitted notebook from the instructor's version of it, and compare the releases.

The instructor's cells keep their text, order and points, whatever a student's copy of them says.
The student contributes the answers, and further cells, which are left where they are.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.preprocessors import OverwriteCells
from nbgrader.utils import is_grade, is_locked, is_solution, is_task

from gradebox.events import Event
from gradebox.files import digest, read_json, write
from gradebox.nbgrader import source_notebook
from gradebox.nbgrader.cells import KINDS, name_of, of
from gradebox.nbgrader.course import Course
from gradebox.nbgrader.gradebook import Sources
from gradebox.nbgrader.source_notebook import AUTOMATIC, Released, released_by

Cells = dict[str, Any]  # the instructor's cells by name, with nbgrader's metadata for them


def aspects(cell: Any) -> dict[str, Any]:
    """Return what a cell with metadata of nbgrader's is; its text as a checksum."""
    own = of(cell)
    points = own.get("points")
    return {
        "type": cell.cell_type,
        "kind": [bool(own.get(kind)) for kind in KINDS],
        "lock": bool(is_locked(cell)),
        "points": points if isinstance(points, int | float) else None,
        "text": digest(["\n".join(cell.source.splitlines()).strip()]),
    }


def _lines(source: str) -> str:
    """Return a text with the line ends of Python, whatever Windows has made of them."""
    return source.replace("\r\n", "\n").replace("\r", "\n")


class Rebuild(OverwriteCells):  # type: ignore[misc]
    """Find the instructor's cells in a notebook, and put back what was changed or is missing."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Rebuild a notebook, with the kernel that the gradebook names."""
        context = resources["nbgrader"]
        assignment, notebook = context["assignment"], context["notebook"]
        # a run puts there what it has read already
        book = resources.get("gradebook") or Sources.read(context["db_url"], assignment)
        if kernel := book.notebooks[notebook]["kernelspec"]:
            nb.metadata["kernelspec"] = kernel
        source, recorded = source_notebook.source_of(self, context).cells, book.cells(notebook)
        # the gradebook keeps cells in the order in which it met them
        cells = {name: recorded[name] for name in [*source, *recorded] if name in recorded}
        for cell in nb.cells:
            cell.source = _lines(cell.source)
        released, former = released_by(self.parent), book.releases.get(notebook, ())
        given = {name: _lines(released(cell.source)).strip() for name, cell in cells.items()}
        self._disown(nb, cells)
        _adopt(nb, cells, given)
        for cell in nb.cells:
            if name := name_of(cell):
                handed_in = aspects(cell)
                before = [each[name] for each in former if name in each and len(former) > 1]
                for what in _put_back(cell, handed_in, cells[name], given[name]):
                    verb = "were" if what == "points" else "was"
                    changed = Event("changed", "", name, {"what": what, "verb": verb})
                    is_old = any(each[what] == handed_in[what] for each in before)
                    self.log.warning(Event("older") if is_old else changed)
        if source:  # else nobody knows what students were given
            texts = {"", *map(_lines, source_notebook.given_texts(self, assignment, notebook))}
            plain = [c.source for c in nb.cells if c.cell_type == "code" and not name_of(c)]
            if number := sum(text.strip() not in texts for text in plain):
                self.log.warning(Event("added", fields={"number": number}))
            _take_up(nb, cells, texts)
        # all of the instructor's in order, into the places that they have together
        named = {name_of(cell): cell for cell in nb.cells if name_of(cell)}
        ordered = [named[name] for name in cells if name in named]
        if ordered != [*named.values()]:
            self.log.warning(Event("order"))
        of_course = iter(ordered)
        nb.cells = [next(of_course) if name_of(cell) else cell for cell in nb.cells]
        position, names = 0, [name_of(cell) for cell in nb.cells]
        for name, cell in cells.items():  # each after the cell that it follows there
            if name not in names:
                self.log.warning(Event("missing", "", name))
                nb.cells.insert(position, self._missing(name, cell))
                names.insert(position, name)
            position = names.index(name) + 1
        return nb, resources

    def _disown(self, nb: Any, names: Collection[str]) -> None:
        """Make plain cells of those that are none of the assignment's, and of earlier copies."""
        found: set[str] = set()
        for cell in reversed(nb.cells):
            name = name_of(cell)
            if name in names and name not in found:
                found.add(name)
            elif cell.metadata.pop("nbgrader", None) is not None and name:
                self.log.warning(Event("twice" if name in names else "foreign", "", name))

    def _missing(self, name: str, cell: Any) -> Any:
        notice = self.missing_cell_notification.format(cell_id=name)
        cell.source = f"{'# ' if cell.cell_type == 'code' else ''}{notice}{cell.source}"
        if not of(cell)["task"]:
            del of(cell)["task"]  # as in nbgrader's own
        if not of(cell)["solution"]:
            cell.metadata |= {"deletable": False, "editable": False}
        _without_outputs(cell)
        return cell


def _adopt(nb: Any, cells: Cells, given: dict[str, str]) -> None:
    """Give cells their names back, in order, where a program has lost the metadata."""
    present, lost = {name_of(cell) for cell in nb.cells}, defaultdict(list)
    for name, original in cells.items():
        if name not in present:
            lost[original.cell_type, given[name]].append(of(original))
    for cell in nb.cells:
        if not name_of(cell) and (same := lost[cell.cell_type, cell.source.strip()]):
            cell.metadata["nbgrader"] = dict(same.pop(0))


def _take_up(nb: Any, cells: Cells, given: Collection[str]) -> None:
    """Copy into a written answer that is blank what the student wrote in a new cell below it.

    The cell stays: it may be a text of an earlier release, with the heading of what follows.
    """
    for answer, below in pairwise(nb.cells):
        original = cells.get(name_of(answer))
        is_blank = original and of(original)["solution"] and answer.source == original.source
        is_own = not name_of(below) and below.source.strip() not in given
        if is_blank and is_own and answer.cell_type == below.cell_type == "markdown":
            answer |= {"source": below.source, "attachments": below.get("attachments", {})}


def _put_back(cell: Any, old: dict[str, Any], original: Any, given: str) -> list[str]:
    """Make of a cell what the instructor's is, of a locked one its text, too; say what was not."""
    new, metadata = aspects(original), of(original)
    # nbgrader locks tests, and no answer, whatever their metadata say
    told = ["type", "kind"] + ["lock"] * (not (metadata["grade"] or metadata["solution"]))
    told += ["points"] * ("points" in metadata)
    changed = [aspect for aspect in told if old[aspect] != new[aspect]]
    cell.metadata["nbgrader"] = dict(metadata)
    text = _lines(original.source)
    if metadata["locked"] and cell.source.strip() not in (text.strip(), given):
        changed.append("text")
    if metadata["locked"] or cell.source == text:
        cell.source = original.source  # to the byte: nbgrader knows a blank answer by its checksum
    if old["type"] != new["type"]:
        cell.cell_type = new["type"]
        cell.pop("attachments", None)
        _without_outputs(cell)
    return changed


def _without_outputs(cell: Any) -> None:
    for name in ("outputs", "execution_count"):
        cell.pop(name, None)
    if cell.cell_type == "code":
        cell.outputs, cell.execution_count = [], None


# --- releases


def unreleased(course: Course, sources: Sources) -> list[str]:
    """Return the cells of the instructor's version that differ from those in the gradebook."""
    found, kinds = [], (is_grade, is_solution, is_locked, is_task)
    for path in sorted(course.source.glob("*.ipynb")):
        if path.stem not in sources.notebooks:
            continue
        nb = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        resources = course.chain.resources(".", path.stem, course.source, None)
        resources["language"] = "python"
        for step in course.release_steps():
            nb, resources = step(nb, resources)
        recorded = sources.cells(path.stem)
        for cell in nb.cells:
            # nbgrader writes these tests when it releases them
            if AUTOMATIC in cell.source and name_of(cell) in recorded:
                cell.source = recorded[name_of(cell)].source
        now = what_is(cell for cell in nb.cells if any(kind(cell) for kind in kinds))
        then = what_is(recorded.values())
        found += [f"{path.stem}/{n}" for n in now | then if now.get(n) != then.get(n)]
    return found


def remember(file: Path, sources: Sources, released: Released) -> dict[str, list[Any]]:
    """Add the present release to those that a file remembers; return them, by notebook."""
    seen: dict[str, list[Any]] = read_json(file)
    before = json.dumps(seen)
    for name in sources.notebooks:
        recorded = sources.cells(name).values()
        for cell in recorded:
            cell.source = released(cell.source)
        if (cells := what_is(recorded)) not in seen.setdefault(name, []):
            seen[name].append(cells)
    if (now := json.dumps(seen)) != before:
        write(file, now)
    return seen


def what_is(cells: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """Return what cells that have a name in nbgrader are, by these names."""
    return {name_of(cell): aspects(cell) for cell in cells if name_of(cell)}
