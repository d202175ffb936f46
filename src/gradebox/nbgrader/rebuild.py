"""Rebuild a submitted notebook from the instructor's version of it.

The instructor's cells keep their text, their order and what they are worth, whatever a student's
copy of them says. The student contributes the answers, and further cells that are left where they
are. Two steps replace nbgrader's own, see :mod:`gradebox.configuration`.
"""

from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.preprocessors import DeduplicateIds, OverwriteCells

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
class _Original:
    """A cell of the instructor's, as the gradebook has it, with nbgrader's metadata for it."""

    name: str
    type: str
    source: str
    metadata: dict[str, Any]


def _originals(notebook: Any, source_instructions: Instructions) -> dict[str, _Original]:
    """Return the instructor's cells of a notebook by name, in the order of the source notebook.

    The gradebook keeps cells in the order in which it met them.
    """
    named = {
        kind: {cell.name: cell for cell in getattr(notebook, f"{kind}_cells")} for kind in _KINDS
    }
    points = {name: cell.max_score for name, cell in (named["task"] | named["grade"]).items()}
    originals = {}
    for cell in notebook.source_cells:
        metadata: dict[str, Any] = {kind: cell.name in named[kind] for kind in _KINDS}
        metadata |= {"grade_id": cell.name, "schema_version": SCHEMA, "checksum": cell.checksum}
        metadata |= {"locked": bool(cell.locked), "cell_type": str(cell.cell_type)}
        metadata |= {"points": points[cell.name]} if cell.name in points else {}
        originals[cell.name] = _Original(cell.name, str(cell.cell_type), str(cell.source), metadata)
    order = {name: position for position, name in enumerate(source_instructions.order)}
    return dict(sorted(originals.items(), key=lambda item: order.get(item[0], len(order))))


def _name_of(cell: Any) -> str | None:
    """Return what a cell is called in nbgrader, if it is called something."""
    metadata = cell.metadata.get("nbgrader")
    name = metadata.get("grade_id") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else None


def _lines(source: str) -> str:
    """Return a text with the line ends of Python, whatever Windows has made of them."""
    return source.replace("\r\n", "\n").replace("\r", "\n")


class Recognize(DeduplicateIds):  # type: ignore[misc]
    """Find the instructor's cells in a notebook, and make them what they were."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Take the metadata of nbgrader from all other cells, and put back those of these."""
        originals, source_instructions = _lookup(self, resources)
        for cell in nb.cells:
            cell.source = _lines(cell.source)
        _disown(nb, originals, self.log)
        _adopt(nb, originals, released_by(self.parent))
        for cell in nb.cells:
            if (name := _name_of(cell)) is not None:
                for aspect in _put_back(cell, originals[name]):
                    verb = "were" if aspect == "points" else "was"
                    self.log.warning(Event("changed", "", name, {"what": aspect, "verb": verb}))
        context = resources["nbgrader"]
        texts = given_texts(self, context["assignment"], context["notebook"])
        given = {_lines(text) for text in texts} | {""}
        plain = [c for c in nb.cells if c.cell_type == "code" and _name_of(c) is None]
        own = [cell for cell in plain if cell.source.strip() not in given]
        if own and source_instructions.order:  # else nobody knows what students were given
            self.log.warning(Event("added", fields={"number": len(own)}))
        return nb, resources


class Rebuild(OverwriteCells):  # type: ignore[misc]
    """Put the instructor's text back, in the instructor's order, with what is missing."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Rebuild a notebook after :class:`Recognize`."""
        originals, _ = _lookup(self, resources)
        for cell in nb.cells:
            if (name := _name_of(cell)) is not None and originals[name].metadata["locked"]:
                self._overwrite(cell, originals[name])
        self._order(nb, list(originals))
        self._complete(nb, originals)
        return nb, resources

    def _overwrite(self, cell: Any, original: _Original) -> None:
        if _lines(cell.source).strip() not in _texts(original, released_by(self.parent)):
            fields = {"what": "text", "verb": "was"}
            self.log.warning(Event("changed", "", original.name, fields))
        cell.source = original.source

    def _order(self, nb: Any, order: list[str]) -> None:
        """Put the instructor's cells in order, into the places that they have together."""
        positions = [i for i, cell in enumerate(nb.cells) if _name_of(cell) is not None]
        cells = [nb.cells[position] for position in positions]
        ordered = sorted(cells, key=lambda cell: order.index(str(_name_of(cell))))
        if ordered != cells:
            self.log.warning(Event("order"))
            for position, cell in zip(positions, ordered, strict=True):
                nb.cells[position] = cell

    def _complete(self, nb: Any, originals: dict[str, _Original]) -> None:
        """Add what is missing, each after the cell that it follows in the instructor's version."""
        position, names = 0, [_name_of(cell) for cell in nb.cells]
        for original in originals.values():
            if original.name in names:
                position = names.index(original.name) + 1
                continue
            self.log.warning(Event("missing", "", original.name))
            nb.cells.insert(position, self._missing(original))
            names.insert(position, original.name)
            position += 1

    def _missing(self, original: _Original) -> Any:
        """Return a cell in place of a missing one, that says so."""
        code = original.type == "code"
        notice = self.missing_cell_notification.format(cell_id=original.name)
        make: Callable[[str], Any] = new_code_cell if code else new_markdown_cell
        cell = make(f"{'# ' if code else ''}{notice}{original.source}")
        if not original.metadata["solution"]:
            cell.metadata |= {"deletable": False, "editable": False}
        cell.metadata["nbgrader"] = {k: v for k, v in original.metadata.items() if k != "task" or v}
        cell.cell_type = original.type
        cell.pop("id", None)  # a random one; it is given another that is the same in every run
        return cell


def _lookup(step: Any, resources: Any) -> tuple[dict[str, _Original], Instructions]:
    """Return the instructor's cells of the notebook that a step is given."""
    context = resources["nbgrader"]
    path = source_folder(step, context["assignment"]) / f"{context['notebook']}.ipynb"
    source_instructions = instructions(path)
    with opened(resources) as book:
        notebook = book.find_notebook(context["notebook"], context["assignment"])
        return _originals(notebook, source_instructions), source_instructions


def _disown(nb: Any, names: Collection[str], log: Any) -> None:
    """Make plain cells of those that are none of the assignment's, and of all but the last copy."""
    found: set[str] = set()
    for cell in reversed(nb.cells):
        name = _name_of(cell)
        if name in names and name not in found:
            found.add(str(name))
        elif cell.metadata.pop("nbgrader", None) is not None and name is not None:
            log.warning(Event("twice" if name in names else "foreign", "", name))


def _texts(original: _Original, released: Released) -> tuple[str, str]:
    """Return what a cell that nobody changed may say: as it is, and as students get it."""
    return _lines(original.source).strip(), _lines(released(original.source)).strip()


def _adopt(nb: Any, originals: dict[str, _Original], released: Released) -> None:
    """Give cells their names back, in order, where a program has lost the metadata."""
    present, lost = {_name_of(cell) for cell in nb.cells}, defaultdict(list)
    for original in originals.values():
        if original.name not in present:
            lost[original.type, _texts(original, released)[1]].append(original)
    for cell in nb.cells:
        if _name_of(cell) is None and (same := lost[cell.cell_type, cell.source.strip()]):
            cell.metadata["nbgrader"] = dict(same.pop(0).metadata)


def _put_back(cell: Any, original: _Original) -> list[str]:
    """Make the type and the metadata of a cell the instructor's; return what was changed."""
    old, new = cell.metadata["nbgrader"], original.metadata
    is_changed = {
        "type": cell.cell_type != original.type,
        "kind": any(bool(old.get(kind)) != new[kind] for kind in _KINDS),
        # nbgrader locks tests, and no answer, whatever their metadata say
        "lock": not (new["grade"] or new["solution"]) and bool(old.get("locked")) != new["locked"],
        "points": "points" in new and not _same(old.get("points"), new["points"]),
    }
    cell.metadata["nbgrader"] = dict(new)
    if _lines(original.source) == cell.source:
        cell.source = original.source  # to the byte: nbgrader knows a blank answer by its checksum
    if is_changed["type"]:
        _retype(cell, original.type)
    return [aspect for aspect, changed in is_changed.items() if changed]


def _same(value: Any, points: float) -> bool:
    return isinstance(value, int | float) and float(value) == points


def _retype(cell: Any, kind: str) -> None:
    cell.cell_type = kind
    for name in ("attachments", "outputs", "execution_count"):
        cell.pop(name, None)
    if kind == "code":
        cell.outputs, cell.execution_count = [], None
