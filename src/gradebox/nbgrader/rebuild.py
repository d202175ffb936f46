"""Rebuild a submitted notebook from the instructor's version of it.

The instructor's cells keep their text, their order and what they are worth, whatever a student's
copy of them says. The student contributes the answers, and further cells that are left where they
are. Two steps replace nbgrader's own, see :mod:`gradebox.configuration`.
"""

from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Any

from nbformat import from_dict
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.preprocessors import DeduplicateIds, OverwriteCells
from nbgrader.utils import is_locked

from gradebox.events import Event
from gradebox.files import digest
from gradebox.nbgrader.cells import name_of, of
from gradebox.nbgrader.gradebook import opened
from gradebox.nbgrader.source_notebook import Released, given_texts, released_by, source_of

SCHEMA = 3  # the version of nbgrader's metadata that cells are given

_KINDS = ("grade", "solution", "task")

Cells = dict[str, Any]  # the instructor's cells by name, with nbgrader's metadata for them


def originals(notebook: Any, order: Collection[str] = ()) -> Cells:
    """Return the cells of a notebook as the gradebook has them, in the order of their names.

    The gradebook keeps cells in the order in which it met them.
    """
    named = {
        kind: {cell.name: cell for cell in getattr(notebook, f"{kind}_cells")} for kind in _KINDS
    }
    points = {name: cell.max_score for name, cell in (named["task"] | named["grade"]).items()}
    cells = {}
    for cell in notebook.source_cells:
        metadata: dict[str, Any] = {kind: cell.name in named[kind] for kind in _KINDS}
        metadata |= {"grade_id": cell.name, "schema_version": SCHEMA, "checksum": cell.checksum}
        metadata |= {"locked": bool(cell.locked), "cell_type": str(cell.cell_type)}
        metadata |= {"points": points[cell.name]} if cell.name in points else {}
        fields = {"cell_type": str(cell.cell_type), "source": str(cell.source)}
        cells[cell.name] = from_dict(fields | {"metadata": {"nbgrader": metadata}})  # type: ignore[no-untyped-call]
    position = {name: number for number, name in enumerate(order)}
    return dict(sorted(cells.items(), key=lambda item: position.get(item[0], len(position))))


def aspects(cell: Any) -> dict[str, Any]:
    """Return what a cell with metadata of nbgrader's is; its text as a checksum."""
    points = of(cell).get("points")
    return {
        "type": cell.cell_type,
        "kind": [bool(of(cell).get(kind)) for kind in _KINDS],
        "lock": bool(is_locked(cell)),
        "points": points if isinstance(points, int | float) else None,
        "text": digest(["\n".join(cell.source.splitlines()).strip()]),
    }


def _lines(source: str) -> str:
    """Return a text with the line ends of Python, whatever Windows has made of them."""
    return source.replace("\r\n", "\n").replace("\r", "\n")


class Recognize(DeduplicateIds):  # type: ignore[misc]
    """Find the instructor's cells in a notebook, and make them what they were."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Take the metadata of nbgrader from all other cells, and put back those of these."""
        cells, is_known = _lookup(self, resources)
        for cell in nb.cells:
            cell.source = _lines(cell.source)
        self._disown(nb, cells)
        _adopt(nb, cells, released_by(self.parent))
        for cell in nb.cells:
            if name := name_of(cell):
                for aspect in _put_back(cell, cells[name]):
                    self.log.warning(_changed(name, aspect))
        context = resources["nbgrader"]
        texts = given_texts(self, context["assignment"], context["notebook"])
        given = {_lines(text) for text in texts} | {""}
        plain = [c for c in nb.cells if c.cell_type == "code" and not name_of(c)]
        own = [cell for cell in plain if cell.source.strip() not in given]
        if own and is_known:  # else nobody knows what students were given
            self.log.warning(Event("added", fields={"number": len(own)}))
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


class Rebuild(OverwriteCells):  # type: ignore[misc]
    """Put the instructor's text back, in the instructor's order, with what is missing."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Rebuild a notebook after :class:`Recognize`."""
        cells, _ = _lookup(self, resources)
        for cell in nb.cells:
            if (name := name_of(cell)) and of(cells[name])["locked"]:
                if _lines(cell.source).strip() not in _texts(cells[name], released_by(self.parent)):
                    self.log.warning(_changed(name, "text"))
                cell.source = cells[name].source
        self._order(nb, list(cells))
        position, names = 0, [name_of(cell) for cell in nb.cells]
        for name, original in cells.items():  # each after the cell that it follows there
            if name not in names:
                self.log.warning(Event("missing", "", name))
                nb.cells.insert(position, self._missing(name, original))
                names.insert(position, name)
            position = names.index(name) + 1
        return nb, resources

    def _order(self, nb: Any, order: list[str]) -> None:
        """Put the instructor's cells in order, into the places that they have together."""
        positions = [i for i, cell in enumerate(nb.cells) if name_of(cell)]
        cells = [nb.cells[position] for position in positions]
        ordered = sorted(cells, key=lambda cell: order.index(name_of(cell)))
        if ordered != cells:
            self.log.warning(Event("order"))
            for position, cell in zip(positions, ordered, strict=True):
                nb.cells[position] = cell

    def _missing(self, name: str, original: Any) -> Any:
        """Return a cell in place of a missing one, that says so."""
        code, metadata = original.cell_type == "code", of(original)
        notice = self.missing_cell_notification.format(cell_id=name)
        make: Callable[[str], Any] = new_code_cell if code else new_markdown_cell
        cell = make(f"{'# ' if code else ''}{notice}{original.source}")
        if not metadata["solution"]:
            cell.metadata |= {"deletable": False, "editable": False}
        cell.metadata["nbgrader"] = {k: v for k, v in metadata.items() if k != "task" or v}
        cell.cell_type = original.cell_type
        cell.pop("id", None)  # a random one; it is given another that is the same in every run
        return cell


def _changed(name: str, what: str) -> Event:
    return Event("changed", "", name, {"what": what, "verb": "were" if what == "points" else "was"})


def _lookup(step: Any, resources: Any) -> tuple[Cells, bool]:
    """Return the instructor's cells of a notebook, and whether there is a source notebook."""
    context = resources["nbgrader"]
    named = source_of(step, context).cells
    with opened(resources) as book:
        notebook = book.find_notebook(context["notebook"], context["assignment"])
        return originals(notebook, named), bool(named)


def _texts(original: Any, released: Released) -> tuple[str, str]:
    """Return what a cell that nobody changed may say: as it is, and as students get it."""
    return _lines(original.source).strip(), _lines(released(original.source)).strip()


def _adopt(nb: Any, cells: Cells, released: Released) -> None:
    """Give cells their names back, in order, where a program has lost the metadata."""
    present, lost = {name_of(cell) for cell in nb.cells}, defaultdict(list)
    for name, original in cells.items():
        if name not in present:
            lost[original.cell_type, _texts(original, released)[1]].append(of(original))
    for cell in nb.cells:
        if not name_of(cell) and (same := lost[cell.cell_type, cell.source.strip()]):
            cell.metadata["nbgrader"] = dict(same.pop(0))


def _put_back(cell: Any, original: Any) -> list[str]:
    """Make the type and the metadata of a cell the instructor's; return what was changed."""
    old, new, metadata = aspects(cell), aspects(original), of(original)
    told = ["type", "kind"]
    # nbgrader locks tests, and no answer, whatever their metadata say
    told += ["lock"] * (not (metadata["grade"] or metadata["solution"]))
    told += ["points"] * ("points" in metadata)
    cell.metadata["nbgrader"] = dict(metadata)
    if _lines(original.source) == cell.source:
        cell.source = original.source  # to the byte: nbgrader knows a blank answer by its checksum
    if old["type"] != new["type"]:
        cell.cell_type = new["type"]
        for name in ("attachments", "outputs", "execution_count"):
            cell.pop(name, None)
        if new["type"] == "code":
            cell.outputs, cell.execution_count = [], None
    return [aspect for aspect in told if old[aspect] != new[aspect]]
