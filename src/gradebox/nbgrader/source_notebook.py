"""Read what the instructor's version of a notebook says about its cells and tests."""

import ast
import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import ClearHiddenTests, ClearMarkScheme

from gradebox.nbgrader.cells import is_test
from gradebox.nbgrader.given import given_parts, words
from gradebox.workers.protocol import Given
from gradebox.workers.syntax import PYTHONS, parse, python_of

Names = Mapping[str, tuple[str, ...]]
"""Some names for each cell, by its name in nbgrader."""


@dataclass(frozen=True)
class Instructions:
    """What a source notebook asks for.

    Parameters
    ----------
    given : tuple of Given
        What the tests run of its other cells, in their order.
    pythons : mapping
        The names of Python's own that its solutions bind and a test mentions, by its name.
    imports : tuple of str
        The import statements of these cells.
    ways : mapping
        The way that the metadata of a test insist on, by its name: ``"gradebox": {"way":
        "isolated"}`` or ``"in-process"``.
    seconds : mapping
        How long a test may run, by its name, where its metadata say so: ``"gradebox": {"seconds":
        120}``.
    helpers : mapping
        The functions that a locked cell alone defines.
    order : tuple of str
        The names of its cells in nbgrader, in their order.
    plain : frozenset of str
        The texts of its cells that have no name in nbgrader.
    tags : mapping
        The tags of its cells.
    defined : frozenset of str
        The names that its cells give a meaning, tests left out.
    """

    given: tuple[Given, ...] = ()
    pythons: Names = field(default_factory=dict)
    imports: tuple[str, ...] = ()
    ways: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    helpers: Names = field(default_factory=dict)
    order: tuple[str, ...] = ()
    plain: frozenset[str] = frozenset()
    tags: Names = field(default_factory=dict)
    defined: frozenset[str] = frozenset()


def instructions(notebook: Path) -> Instructions:
    """Read a source notebook; one that is not there asks for nothing."""
    try:
        return _instructions(notebook, notebook.stat().st_mtime_ns)
    except FileNotFoundError:
        return Instructions()


@lru_cache(maxsize=64)
def _instructions(notebook: Path, changed: int) -> Instructions:
    nb = nbformat.read(notebook, as_version=4)  # type: ignore[no-untyped-call]
    code = [(cell, _statements(cell)) for cell in nb.cells if cell.cell_type == "code"]
    named = [cell for cell in nb.cells if "grade_id" in _of(cell)]
    given = given_parts(cell for cell, _ in code)
    pythons = PYTHONS & {name for part in given for name in part.answers}
    return Instructions(
        given=given,
        pythons={
            _of(cell).grade_id: tuple(sorted(pythons & words(cell.source)))
            for cell, _ in code
            if is_test(cell) and pythons & words(cell.source)
        },
        imports=tuple(
            ast.unparse(node)
            for cell, nodes in code
            if not is_test(cell)
            for node in nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
        ),
        ways=_wanted(named, "way"),
        seconds=_wanted(named, "seconds"),
        helpers=_helpers(code),
        order=tuple(_of(cell).grade_id for cell in named),
        plain=frozenset(cell.source.strip() for cell in nb.cells if "grade_id" not in _of(cell)),
        tags={_of(cell).grade_id: tuple(cell.metadata.get("tags", ())) for cell in named},
        defined=frozenset(
            name
            for cell, nodes in code
            if not is_test(cell)
            for node in nodes
            for name in _bound(node)
        ),
    )


def _wanted(cells: Iterable[NotebookNode], what: str) -> dict[str, Any]:
    """Return what the metadata of some cells ask for, by their names."""
    asked = {_of(cell).grade_id: cell.metadata.get("gradebox", {}) for cell in cells}
    return {name: wishes[what] for name, wishes in asked.items() if what in wishes}


def given_texts(step: Any, assignment: str, notebook: str) -> frozenset[str]:
    """Return the texts of the cells that students were given and nbgrader knows nothing of.

    They stand in the source, in the release, and in the header and footer that a course adds.
    """
    course = _course(step)
    folders = course.source_directory, course.release_directory
    paths = [Path(course.format_path(f, ".", assignment), f"{notebook}.ipynb") for f in folders]
    added = step.config.get("IncludeHeaderFooter", {})
    names = (added.get(name) for name in ("header", "footer"))
    paths += [Path(course.root, name) for name in names if isinstance(name, str) and name]
    return frozenset().union(*(instructions(path.resolve()).plain for path in paths))


def _of(cell: Any) -> Any:
    return cell.metadata.get("nbgrader", {})


def _statements(cell: Any) -> list[ast.stmt]:
    with contextlib.suppress(SyntaxError, ValueError):
        return parse(python_of(cell.source)).body
    return []


def _helpers(code: list[tuple[Any, list[ast.stmt]]]) -> Names:
    """Return the functions of locked cells that no other cell gives another meaning."""
    bound = Counter(
        name for _, nodes in code for name in {n for node in nodes for n in _bound(node)}
    )
    return {
        _of(cell).grade_id: tuple(
            name for node in nodes for name in _defined(node) if bound[name] == 1
        )
        for cell, nodes in code
        if _of(cell).get("locked") and not _of(cell).get("grade") and "grade_id" in _of(cell)
    }


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement may bind, in whatever function they are."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]


def bound_names(cell: Any) -> set[str]:
    """Return the names that a cell may bind."""
    return {name for node in _statements(cell) for name in _bound(node)}


def used_names(cell: Any) -> set[str]:
    """Return the names that a cell looks up."""
    nodes = (node for statement in _statements(cell) for node in ast.walk(statement))
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _defined(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Assign):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return []


def _course(step: Any) -> CourseDirectory:
    course = getattr(getattr(step.parent, "parent", None), "coursedir", None)
    return course or CourseDirectory(parent=step)


def written_tests(step: Any, assignment: str, notebook: str) -> dict[str, str]:
    """Return the tests as the gradebook has them, by name; none before they are released.

    nbgrader writes automatic tests when it releases them: the source notebook has only comments.
    """
    url = _course(step).db_url
    if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists():
        return {}
    with Gradebook(url) as book:
        try:
            notebook_entry = book.find_notebook(notebook, assignment)
        except MissingEntry:
            return {}
        return {str(cell.name): str(cell.source) for cell in notebook_entry.source_cells}


def source_folder(step: Any, assignment: str) -> Path:
    """Return the folder of the instructor's version, as one of nbgrader's steps knows it."""
    course = _course(step)
    return Path(course.format_path(course.source_directory, ".", assignment)).resolve()


@lru_cache(maxsize=8)
def released_by(parent: Any) -> "Released":
    """Return what gives the text of a cell as students get it; nbgrader's steps are made once."""
    return Released(parent)


class Released:
    """Gives the text of a cell as students get it.

    Parameters
    ----------
    parent : Configurable
        Holds nbgrader's configuration.
    """

    def __init__(self, parent: Any) -> None:
        self._clear = (
            ClearHiddenTests(parent=parent)._remove_hidden_test_region,
            ClearMarkScheme(parent=parent)._remove_mark_scheme_region,
        )

    def __call__(self, source: str) -> str:
        """Return the text without hidden tests and mark schemes."""
        cell = NotebookNode(source=source)  # type: ignore[no-untyped-call]
        for clear in self._clear:
            clear(cell)
        return str(cell.source)
