"""Rebuild a notebook that was handed in from the instructor's version of it.

The instructor's cells keep their text, their order and what they are worth, whatever a student's
copy of them says; of the student come the answers, and further cells that are left where they are.
Two steps take the places of nbgrader's own, see
:mod:`gradebox.configuration`.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.preprocessors import DeduplicateIds, OverwriteCells
from nbgrader.utils import is_locked

from gradebox.bridge.gradebook import opened
from gradebox.bridge.source_notebook import Instructions, Released, instructions, source_folder

SCHEMA = 3
"""The version of nbgrader's metadata that cells are given."""

_KINDS = ("grade", "solution", "task")


@dataclass(frozen=True)
class Known:
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


def known_cells(notebook: Any, asked: Instructions) -> dict[str, Known]:
    """Return the instructor's cells of a notebook by name, in their order.

    Parameters
    ----------
    notebook : Notebook
        The notebook in the gradebook, which keeps cells in the order in which it met them.
    asked : Instructions
        What the source notebook says, which has the order, if it is there.
    """
    graded = {one.name: one.max_score for one in notebook.grade_cells}
    tasks = {one.name: one.max_score for one in notebook.task_cells}
    solutions = {one.name for one in notebook.solution_cells}
    found = {
        one.name: Known(
            name=one.name,
            type=str(one.cell_type),
            source=str(one.source),
            locked=bool(one.locked),
            grade=one.name in graded,
            solution=one.name in solutions,
            task=one.name in tasks,
            points=graded.get(one.name, tasks.get(one.name)),
            checksum=one.checksum,
        )
        for one in notebook.source_cells
    }
    order = {name: place for place, name in enumerate(asked.order)}
    return dict(sorted(found.items(), key=lambda item: order.get(item[0], len(order))))


def name_of(cell: Any) -> str | None:
    """Return what a cell is called in nbgrader, if it is called something."""
    about = cell.metadata.get("nbgrader")
    name = about.get("grade_id") if isinstance(about, dict) else None
    return name if isinstance(name, str) else None


class Recognize(DeduplicateIds):  # type: ignore[misc]
    """Find the instructor's cells in a notebook, and make them what they were."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Take the metadata of nbgrader from all other cells, and put back those of these."""
        known, asked = _lookup(self, resources)
        _disown_strangers(nb, known, self.log)
        _disown_copies(nb, self.log)
        _adopt(nb, known, Released(self.parent))
        for cell in nb.cells:
            if (name := name_of(cell)) is not None:
                for what in _put_back(cell, known[name]):
                    verb = "were" if what == "points" else "was"
                    self.log.warning(
                        "the %s of cell %s %s changed; it was put back", what, name, verb
                    )
        own = [one for one in nb.cells if name_of(one) is None and _is_own(one, asked)]
        if own:
            many = "1 cell was" if len(own) == 1 else f"{len(own)} cells were"
            self.log.warning("%s added", many)
        return nb, resources


class Rebuild(OverwriteCells):  # type: ignore[misc]
    """Put the instructor's text back, in the instructor's order, with what is missing."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Rebuild a notebook after :class:`Recognize`."""
        known, _ = _lookup(self, resources)
        released = Released(self.parent)
        for cell in nb.cells:
            if (name := name_of(cell)) is not None and known[name].locked:
                self._overwrite(cell, known[name], released)
        self._order(nb, list(known))
        self._complete(nb, known)
        return nb, resources

    def _overwrite(self, cell: Any, source: Known, released: Released) -> None:
        given = (source.source.strip(), released(source.source).strip())
        if cell.source.strip() not in given:
            self.log.warning(
                "the text of the locked cell %s was changed; it was put back", source.name
            )
        cell.source = source.source

    def _order(self, nb: Any, order: list[str]) -> None:
        """Put the instructor's cells in order, into the places that they have together."""
        places = [place for place, cell in enumerate(nb.cells) if name_of(cell) is not None]
        found = [nb.cells[place] for place in places]
        rank = {name: place for place, name in enumerate(order)}
        ordered = sorted(found, key=lambda cell: rank[str(name_of(cell))])
        if ordered != found:
            self.log.warning("the cells were in another order; they were put back")
            for place, cell in zip(places, ordered, strict=True):
                nb.cells[place] = cell

    def _complete(self, nb: Any, known: dict[str, Known]) -> None:
        """Add what is missing, each after the cell that it follows in the instructor's version."""
        place, names = 0, [name_of(cell) for cell in nb.cells]
        for source in known.values():
            if source.name in names:
                place = names.index(source.name) + 1
                continue
            self.log.warning("cell %s was missing; it was put back", source.name)
            nb.cells.insert(place, self._missing(source))
            names.insert(place, source.name)
            place += 1

    def _missing(self, source: Known) -> Any:
        """Return a cell in place of a missing one, that says so."""
        code = source.type == "code"
        said = self.missing_cell_notification.format(cell_id=source.name)
        make: Callable[[str], Any] = new_code_cell if code else new_markdown_cell
        made = make(f"{'# ' if code else ''}{said}{source.source}")
        if not source.solution:
            made.metadata |= {"deletable": False, "editable": False}
        made.metadata["nbgrader"] = {"grade_id": source.name, "cell_type": source.type}
        made.pop("id", None)  # a random one; it is given another that is the same in every run
        _put_back(made, source)
        return made


def _lookup(step: Any, resources: Any) -> tuple[dict[str, Known], Instructions]:
    """Return the instructor's cells of the notebook that a step is given."""
    about = resources["nbgrader"]
    path = source_folder(step, about["assignment"]) / f"{about['notebook']}.ipynb"
    asked = instructions(path)
    with opened(resources) as book:
        return known_cells(book.find_notebook(about["notebook"], about["assignment"]), asked), asked


def _disown_strangers(nb: Any, known: Collection[str], log: Any) -> None:
    """Make plain cells of those that say they are the assignment's and are not."""
    for cell in nb.cells:
        name = name_of(cell)
        if "nbgrader" in cell.metadata and name not in known:
            del cell.metadata["nbgrader"]
            if name is not None:
                log.warning("cell %s is none of the assignment's", name)


def _disown_copies(nb: Any, log: Any) -> None:
    """Make plain cells of all but the last of those that have the same name."""
    seen: set[str] = set()
    for cell in reversed(nb.cells):
        name = name_of(cell)
        if name in seen:
            del cell.metadata["nbgrader"]
            log.warning("cell %s is there twice; the last one counts", name)
        elif name is not None:
            seen.add(name)


def _adopt(nb: Any, known: dict[str, Known], released: Released) -> None:
    """Give locked cells their name back, where a program has lost the metadata."""
    there = {name_of(cell) for cell in nb.cells}
    lost = {
        (one.type, released(one.source).strip()): one.name
        for one in known.values()
        if one.locked and one.name not in there
    }
    for cell in nb.cells:
        if name_of(cell) is None:
            name = lost.pop((cell.cell_type, cell.source.strip()), None)
            if name is not None:
                cell.metadata["nbgrader"] = {"grade_id": name, **_kinds(known[name])}


def _kinds(source: Known) -> dict[str, Any]:
    points = {} if source.points is None else {"points": source.points}
    kinds = {name: getattr(source, name) for name in _KINDS}
    return {**kinds, "locked": source.locked, **points}


def _put_back(cell: Any, source: Known) -> list[str]:
    """Make the type and the metadata of a cell the instructor's; return what was changed."""
    about = cell.metadata["nbgrader"]
    changed = [] if cell.cell_type == source.type else ["type"]
    if [bool(about.get(name)) for name in _KINDS] != [getattr(source, name) for name in _KINDS]:
        changed.append("kind")
    about |= {name: getattr(source, name) for name in ("grade", "solution")}
    if source.task or "task" in about:
        about["task"] = source.task
    if is_locked(cell) != source.locked:
        changed.append("lock")
        about["locked"] = source.locked
    about["locked"] = bool(about.get("locked", source.locked))
    if source.points is None:
        about.pop("points", None)
    elif not _same(about.get("points"), source.points):
        changed.append("points")
        about["points"] = source.points
    about |= {"schema_version": SCHEMA, "checksum": source.checksum}
    if "cell_type" in about:
        about["cell_type"] = source.type
    _retype(cell, source.type)
    return changed


def _same(given: Any, points: float) -> bool:
    return isinstance(given, int | float) and float(given) == points


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


def _is_own(cell: Any, asked: Instructions) -> bool:
    """Return whether a plain cell is a student's own code, if the source notebook is there."""
    text = cell.source.strip()
    return bool(cell.cell_type == "code" and text and asked.order and text not in asked.plain)
