"""Rebuild a submitted notebook from the instructor's version of it.

The instructor's cells keep their text, their order and what they are worth, whatever a student's
copy of them says. The student contributes the answers, and further cells that are left where they
are. Two steps replace nbgrader's own, see :mod:`gradebox.configuration`.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.preprocessors import DeduplicateIds, OverwriteCells
from nbgrader.utils import is_locked

from gradebox.events import Event
from gradebox.nbgrader.gradebook import opened
from gradebox.nbgrader.source_notebook import (
    Instructions,
    Released,
    given_texts,
    instructions,
    released_by,
    source_folder,
)

SCHEMA = 3
"""The version of nbgrader's metadata that cells are given."""

_KINDS = ("grade", "solution", "task")


@dataclass(frozen=True)
class InstructorCell:
    """A cell of the instructor's, as the gradebook has it."""

    name: str
    type: str
    source: str
    locked: bool
    grade: bool
    solution: bool
    task: bool
    points: float | None
    checksum: str | None


def instructor_cells(notebook: Any, source_instructions: Instructions) -> dict[str, InstructorCell]:
    """Return the instructor's cells of a notebook by name, in their order.

    Parameters
    ----------
    notebook : Notebook
        The notebook in the gradebook, which keeps cells in the order in which it met them.
    source_instructions : Instructions
        What the source notebook says, which has the order, if it is there.
    """
    graded = {cell.name: cell.max_score for cell in notebook.grade_cells}
    tasks = {cell.name: cell.max_score for cell in notebook.task_cells}
    solutions = {cell.name for cell in notebook.solution_cells}
    cells = {
        cell.name: InstructorCell(
            name=cell.name,
            type=str(cell.cell_type),
            source=str(cell.source),
            locked=bool(cell.locked),
            grade=cell.name in graded,
            solution=cell.name in solutions,
            task=cell.name in tasks,
            points=graded.get(cell.name, tasks.get(cell.name)),
            checksum=cell.checksum,
        )
        for cell in notebook.source_cells
    }
    order = {name: position for position, name in enumerate(source_instructions.order)}
    return dict(sorted(cells.items(), key=lambda item: order.get(item[0], len(order))))


def name_of(cell: Any) -> str | None:
    """Return what a cell is called in nbgrader, if it is called something."""
    metadata = cell.metadata.get("nbgrader")
    name = metadata.get("grade_id") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else None


class Recognize(DeduplicateIds):  # type: ignore[misc]
    """Find the instructor's cells in a notebook, and make them what they were."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Take the metadata of nbgrader from all other cells, and put back those of these."""
        originals, source_instructions = _lookup(self, resources)
        _disown_strangers(nb, originals, self.log)
        _disown_copies(nb, self.log)
        _adopt(nb, originals, released_by(self.parent))
        for cell in nb.cells:
            if (name := name_of(cell)) is not None:
                for aspect in _put_back(cell, originals[name]):
                    verb = "were" if aspect == "points" else "was"
                    self.log.warning(Event("changed", "", name, {"what": aspect, "verb": verb}))
        context = resources["nbgrader"]
        given = given_texts(self, context["assignment"], context["notebook"])
        own = [cell for cell in nb.cells if name_of(cell) is None and _is_own(cell, given)]
        if own and source_instructions.order:  # else nobody knows what students were given
            self.log.warning(Event("added", fields={"number": len(own)}))
        return nb, resources


class Rebuild(OverwriteCells):  # type: ignore[misc]
    """Put the instructor's text back, in the instructor's order, with what is missing."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Rebuild a notebook after :class:`Recognize`."""
        originals, _ = _lookup(self, resources)
        for cell in nb.cells:
            if (name := name_of(cell)) is not None and originals[name].locked:
                self._overwrite(cell, originals[name])
        self._order(nb, list(originals))
        self._complete(nb, originals)
        return nb, resources

    def _overwrite(self, cell: Any, original: InstructorCell) -> None:
        text = cell.source.strip()
        released = released_by(self.parent)
        if text != original.source.strip() and text != released(original.source).strip():
            fields = {"what": "text", "verb": "was"}
            self.log.warning(Event("changed", "", original.name, fields))
        cell.source = original.source

    def _order(self, nb: Any, order: list[str]) -> None:
        """Put the instructor's cells in order, into the places that they have together."""
        positions = [
            position for position, cell in enumerate(nb.cells) if name_of(cell) is not None
        ]
        cells = [nb.cells[position] for position in positions]
        rank = {name: position for position, name in enumerate(order)}
        ordered = sorted(cells, key=lambda cell: rank[str(name_of(cell))])
        if ordered != cells:
            self.log.warning(Event("order"))
            for position, cell in zip(positions, ordered, strict=True):
                nb.cells[position] = cell

    def _complete(self, nb: Any, originals: dict[str, InstructorCell]) -> None:
        """Add what is missing, each after the cell that it follows in the instructor's version."""
        position, names = 0, [name_of(cell) for cell in nb.cells]
        for original in originals.values():
            if original.name in names:
                position = names.index(original.name) + 1
                continue
            self.log.warning(Event("missing", "", original.name))
            nb.cells.insert(position, self._missing(original))
            names.insert(position, original.name)
            position += 1

    def _missing(self, original: InstructorCell) -> Any:
        """Return a cell in place of a missing one, that says so."""
        code = original.type == "code"
        notice = self.missing_cell_notification.format(cell_id=original.name)
        make: Callable[[str], Any] = new_code_cell if code else new_markdown_cell
        cell = make(f"{'# ' if code else ''}{notice}{original.source}")
        if not original.solution:
            cell.metadata |= {"deletable": False, "editable": False}
        cell.metadata["nbgrader"] = {"grade_id": original.name, "cell_type": original.type}
        cell.pop("id", None)  # a random one; it is given another that is the same in every run
        _put_back(cell, original)
        return cell


def _lookup(step: Any, resources: Any) -> tuple[dict[str, InstructorCell], Instructions]:
    """Return the instructor's cells of the notebook that a step is given."""
    context = resources["nbgrader"]
    path = source_folder(step, context["assignment"]) / f"{context['notebook']}.ipynb"
    source_instructions = instructions(path)
    with opened(resources) as book:
        return instructor_cells(
            book.find_notebook(context["notebook"], context["assignment"]), source_instructions
        ), source_instructions


def _disown_strangers(nb: Any, names: Collection[str], log: Any) -> None:
    """Make plain cells of those that say they are the assignment's and are not."""
    for cell in nb.cells:
        name = name_of(cell)
        if "nbgrader" in cell.metadata and name not in names:
            del cell.metadata["nbgrader"]
            if name is not None:
                log.warning(Event("foreign", "", name))


def _disown_copies(nb: Any, log: Any) -> None:
    """Make plain cells of all but the last of those that have the same name."""
    names: set[str] = set()
    for cell in reversed(nb.cells):
        name = name_of(cell)
        if name in names:
            del cell.metadata["nbgrader"]
            log.warning(Event("twice", "", name))
        elif name is not None:
            names.add(name)


def _adopt(nb: Any, originals: dict[str, InstructorCell], released: Released) -> None:
    """Give locked cells their name back, where a program has lost the metadata."""
    present = {name_of(cell) for cell in nb.cells}
    lost = {
        (original.type, released(original.source).strip()): original.name
        for original in originals.values()
        if original.locked and original.name not in present
    }
    for cell in nb.cells:
        if name_of(cell) is None:
            name = lost.pop((cell.cell_type, cell.source.strip()), None)
            if name is not None:
                cell.metadata["nbgrader"] = {"grade_id": name, **_kinds(originals[name])}


def _kinds(original: InstructorCell) -> dict[str, Any]:
    points = {} if original.points is None else {"points": original.points}
    kinds = {name: getattr(original, name) for name in _KINDS}
    return {**kinds, "locked": original.locked, **points}


def _put_back(cell: Any, original: InstructorCell) -> list[str]:
    """Make the type and the metadata of a cell the instructor's; return what was changed."""
    metadata = cell.metadata["nbgrader"]
    changed = [] if cell.cell_type == original.type else ["type"]
    if [bool(metadata.get(name)) for name in _KINDS] != [
        getattr(original, name) for name in _KINDS
    ]:
        changed.append("kind")
    metadata |= {name: getattr(original, name) for name in ("grade", "solution")}
    if original.task or "task" in metadata:
        metadata["task"] = original.task
    if is_locked(cell) != original.locked:
        changed.append("lock")
        metadata["locked"] = original.locked
    metadata["locked"] = bool(metadata.get("locked", original.locked))
    if original.points is None:
        metadata.pop("points", None)
    elif not _same(metadata.get("points"), original.points):
        changed.append("points")
        metadata["points"] = original.points
    metadata |= {"schema_version": SCHEMA, "checksum": original.checksum}
    if "cell_type" in metadata:
        metadata["cell_type"] = original.type
    _retype(cell, original.type)
    return changed


def _same(value: Any, points: float) -> bool:
    return isinstance(value, int | float) and float(value) == points


def _retype(cell: Any, kind: str) -> None:
    if cell.cell_type == kind:
        return
    cell.cell_type = kind
    cell.pop("attachments", None)
    if kind == "code":
        cell.outputs, cell.execution_count = [], None
    else:
        cell.pop("outputs", None)
        cell.pop("execution_count", None)


def _is_own(cell: Any, given: Collection[str]) -> bool:
    """Return whether a plain cell is a student's own code."""
    text = cell.source.strip()
    return cell.cell_type == "code" and bool(text) and text not in given
