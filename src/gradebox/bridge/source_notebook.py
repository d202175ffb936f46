"""What the instructor's version of a notebook says about how its tests run."""

import ast
import builtins
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import ClearHiddenTests, ClearMarkScheme

from gradebox.process.magics import python_of
from gradebox.process.syntax import parse


@dataclass(frozen=True)
class Instructions:
    """What a source notebook asks for.

    Parameters
    ----------
    imports : tuple of str
        The import statements of its plain cells, which a student may change.
    modules : tuple of str
        The imports of modules in its solution cells, such as ``import statistics as stats``.
    answers : frozenset of str
        Names that its solutions define although Python has them, such as ``sum``.
    shared : frozenset of str
        Names that its cells define, tests left out: a test that gives one of them another value
        means the student's.
    beside : frozenset of str
        The test cells that are to run beside the student's code: those with
        ``"gradebox": {"beside": true}`` in their metadata.
    order : tuple of str
        The names of its cells in nbgrader, in their order.
    plain : frozenset of str
        The texts of its code cells that nbgrader knows nothing of.
    tags : mapping
        The tags of its cells, by their names in nbgrader.
    """

    imports: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    answers: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    beside: frozenset[str] = frozenset()
    order: tuple[str, ...] = ()
    plain: frozenset[str] = frozenset()
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def instructions(notebook: Path) -> Instructions:
    """Read a source notebook; one that is not there asks for nothing."""
    try:
        return _instructions(notebook, notebook.stat().st_mtime_ns)
    except FileNotFoundError:
        return Instructions()


@lru_cache(maxsize=64)
def _instructions(notebook: Path, changed: int) -> Instructions:
    nb = nbformat.read(notebook, as_version=4)  # type: ignore[no-untyped-call]
    imports: list[str] = []
    modules: list[str] = []
    answers: set[str] = set()
    shared: set[str] = set()
    beside: set[str] = set()
    for cell in nb.cells:
        metadata = cell.metadata.get("nbgrader", {})
        if cell.cell_type != "code":
            continue
        statements: list[ast.stmt] = []
        with contextlib.suppress(SyntaxError, ValueError):
            statements = parse(python_of(cell.source)).body
        if metadata.get("solution") or not metadata.get("grade"):
            shared |= {name for statement in statements for name in _defined(statement)}
        if metadata.get("solution"):
            answers |= {name for statement in statements for name in _defined(statement)}
            modules += [
                ast.unparse(statement)
                for statement in statements
                if isinstance(statement, ast.Import)
            ]
        elif not metadata.get("grade") and not metadata.get("locked"):
            kinds = ast.Import, ast.ImportFrom
            imports += [
                ast.unparse(statement) for statement in statements if isinstance(statement, kinds)
            ]
        elif metadata.get("grade") and cell.metadata.get("gradebox", {}).get("beside"):
            beside.add(metadata.grade_id)
    named_cells = [cell for cell in nb.cells if "nbgrader" in cell.metadata]
    return Instructions(
        tuple(imports),
        tuple(modules),
        frozenset(answers & set(dir(builtins))),
        frozenset(shared),
        frozenset(beside),
        tuple(cell.metadata.nbgrader.grade_id for cell in named_cells),
        frozenset(cell.source.strip() for cell in nb.cells if "nbgrader" not in cell.metadata),
        {
            cell.metadata.nbgrader.grade_id: tuple(cell.metadata.get("tags", ()))
            for cell in named_cells
        },
    )


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


def _defined(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Assign):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return []


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
