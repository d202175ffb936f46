"""Read what the instructor's version of a notebook says about its cells and tests."""

import ast
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import ClearHiddenTests, ClearMarkScheme

from gradebox.nbgrader.borrowed import names_of
from gradebox.nbgrader.cells import is_test, name_of, of
from gradebox.nbgrader.given import given_parts, parts_of, words
from gradebox.workers.protocol import Given
from gradebox.workers.syntax import PYTHONS

Names = Mapping[str, tuple[str, ...]]
"""Some names for each cell, by its name in nbgrader."""

Released = Callable[[str], str]
"""Gives the part of a cell that students have."""


@dataclass(frozen=True)
class Instructions:
    """What a source notebook asks for."""

    cells: Mapping[str, Any] = field(default_factory=dict)
    """Its cells that have a name in nbgrader, by these, in their order."""
    plain: frozenset[str] = frozenset()
    """The texts of its other cells."""
    given: tuple[Given, ...] = ()
    """What the tests run of its other cells, in their order."""
    pythons: Names = field(default_factory=dict)
    """The names of Python's own that its solutions bind and a test mentions, by its name."""
    imports: tuple[str, ...] = ()
    """The import statements of the cells that are no tests."""
    helpers: Names = field(default_factory=dict)
    """The functions that a locked cell alone defines."""
    defined: frozenset[str] = frozenset()
    """The names that its cells give a meaning, tests left out."""

    def wish(self, name: str, what: str) -> Any:
        """Return what the metadata of a cell ask for, such as ``"gradebox": {"seconds": 120}``.

        A test may run so many ``seconds``, in a ``way`` that it insists on.
        """
        cell = self.cells.get(name)
        return cell.metadata.get("gradebox", {}).get(what) if cell else None


def instructions(notebook: Path) -> Instructions:
    """Read a source notebook; one that is not there asks for nothing."""
    try:
        return _instructions(notebook, notebook.stat().st_mtime_ns)
    except FileNotFoundError:
        return Instructions()


@lru_cache(maxsize=64)
def _instructions(notebook: Path, changed: int) -> Instructions:
    nb = nbformat.read(notebook, as_version=4)  # type: ignore[no-untyped-call]
    code = [cell for cell in nb.cells if cell.cell_type == "code"]
    others = [cell for cell in code if not is_test(cell)]
    parts = [part for cell in others for part in parts_of(cell)]
    given = given_parts(code)
    answered = PYTHONS & {name for part in given for name in part.answers}
    pythons = {name_of(c): tuple(sorted(answered & words(c.source))) for c in code if is_test(c)}
    bound = Counter(name for cell in code for name in names_of(cell.source)[0])
    return Instructions(
        cells={name_of(cell): cell for cell in nb.cells if name_of(cell)},
        plain=frozenset(cell.source.strip() for cell in nb.cells if not name_of(cell)),
        given=given,
        pythons={test: names for test, names in pythons.items() if names},
        imports=tuple(p.source for p in parts if isinstance(p.node, ast.Import | ast.ImportFrom)),
        helpers={
            name_of(cell): tuple(
                name
                for part in parts
                if part.cell is cell
                for name in _defined(part.node)
                if bound[name] == 1
            )
            for cell in others
            if of(cell).get("locked") and name_of(cell)
        },
        defined=frozenset(name for cell in others for name in names_of(cell.source)[0]),
    )


def _defined(statement: ast.stmt | None) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Assign):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return []


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
def released_by(parent: Any) -> Released:
    """Return what gives the text of a cell as students get it; nbgrader's steps are made once.

    They leave out hidden tests and mark schemes, as the configuration of ``parent`` says.
    """
    steps = (
        ClearHiddenTests(parent=parent)._remove_hidden_test_region,
        ClearMarkScheme(parent=parent)._remove_mark_scheme_region,
    )

    def released(source: str) -> str:
        cell = NotebookNode(source=source)  # type: ignore[no-untyped-call]
        for clear in steps:
            clear(cell)
        return str(cell.source)

    return released
