"""Read what the instructor's version of a notebook says about its cells and tests.

What the statements of a solution bind is the student's. All else is the instructor's: plain cells,
the other statements of solution cells, and every import. Tests run that in their own process, so
that a student who changes it changes no test.
"""

import ast
import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby, takewhile
from operator import attrgetter
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.api import MissingEntry
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import ClearHiddenTests, ClearMarkScheme

from gradebox.nbgrader.cells import is_test, name_of, of
from gradebox.nbgrader.gradebook import Sources
from gradebox.nbgrader.names import bound_outside_tests, names_of, words
from gradebox.workers.protocol import Given
from gradebox.workers.syntax import PYTHONS, body_of, parse, python_of

AUTOMATIC = "AUTOTEST"  # what a test says in which nbgrader writes automatic tests
Names = Mapping[str, tuple[str, ...]]  # some names for each cell, by its name in nbgrader
Released = Callable[[str], str]  # gives the part of a cell that students have
_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Instructions:
    """What a source notebook asks for."""

    # its cells that have a name in nbgrader, by these, in their order
    cells: Mapping[str, Any] = field(default_factory=dict)
    plain: frozenset[str] = frozenset()  # the texts of its other cells
    given: tuple[Given, ...] = ()  # what the tests run of its other cells, in their order
    # the names of Python's own that its solutions bind and a test mentions, by its name
    pythons: Names = field(default_factory=dict)
    imports: tuple[str, ...] = ()  # the import statements of the cells that are no tests
    helpers: Names = field(default_factory=dict)  # the functions that a locked cell alone defines
    defined: frozenset[str] = frozenset()  # the names that its cells give a meaning, tests left out

    def wish(self, name: str, what: str) -> Any:
        """Return what the metadata of a cell ask for: its ``seconds``, or the ``way`` it runs."""
        cell = self.cells.get(name)
        return cell.metadata.get("gradebox", {}).get(what) if cell else None


def instructions(notebook: Path) -> Instructions:
    """Read a source notebook; one that is not there asks for nothing."""
    with contextlib.suppress(FileNotFoundError):
        return _instructions(notebook, notebook.stat().st_mtime_ns)
    return Instructions()


@lru_cache(maxsize=64)
def _instructions(notebook: Path, changed: int) -> Instructions:
    nb = nbformat.read(notebook, as_version=4)  # type: ignore[no-untyped-call]
    code = [cell for cell in nb.cells if cell.cell_type == "code"]
    others = [cell for cell in code if not is_test(cell)]
    parts = [part for cell in others for part in _parts(cell)]
    given = given_parts(code)
    answered = PYTHONS & {name for part in given for name in part.answers}
    pythons = {name_of(c): tuple(sorted(answered & words(c.source))) for c in code if is_test(c)}
    bound = Counter(name for cell in code for name in names_of(cell.source)[0])
    helpers: dict[str, tuple[str, ...]] = {}
    for cell in others:
        if of(cell).get("locked") and name_of(cell):
            made = (p for p in _parts(cell) if isinstance(p.node, ast.Assign | _DEFINITIONS))
            names = sorted(name for part in made for name in part.bound)
            helpers[name_of(cell)] = tuple(name for name in names if bound[name] == 1)
    return Instructions(
        cells={name_of(cell): cell for cell in nb.cells if name_of(cell)},
        plain=frozenset(cell.source.strip() for cell in nb.cells if not name_of(cell)),
        given=given,
        pythons={test: names for test, names in pythons.items() if names},
        imports=tuple(p.source for p in parts if isinstance(p.node, ast.Import | ast.ImportFrom)),
        helpers=helpers,
        defined=frozenset(bound_outside_tests(code)),
    )


# --- what of it is the student's


class _Part:
    """A statement of a cell: an answer, or given."""

    def __init__(self, source: str, is_answer: bool, node: ast.stmt | None = None) -> None:
        self.source, self.is_answer, self.node = source, is_answer, node
        self.words = words(source)
        bound, _, imported = names_of(body_of(source))
        # an import in an answer binds nothing of the student's
        self.bound = bound - imported if is_answer else bound


def given_parts(cells: Sequence[Any]) -> tuple[Given, ...]:
    """Return what tests run of the code cells of a source notebook, in their order.

    A given statement that uses answers is among it only where it makes what the tests need.
    """
    parts = {id(cell): list(_parts(cell)) for cell in cells if not _is_locked(cell)}
    needed = {word for cell in cells if _is_locked(cell) for word in words(cell.source)}
    left_out = _left_out([part for of_cell in parts.values() for part in of_cell], needed)
    given: list[Given] = []
    locked = [name_of(cell) for cell in cells if _is_locked(cell)]
    for cell in takewhile(lambda _: locked, cells):  # no test comes after the last of them
        if _is_locked(cell):
            # what comes before it, comes before this, too
            given.append(Given(locked.pop(0), ""))
            continue
        tags = tuple(cell.metadata.get("tags", ()))
        for is_answer, group in groupby(parts[id(cell)], attrgetter("is_answer")):
            if is_answer:
                for part in group:
                    given += [Given(locked[0], text, (), tags) for text in _imports(part.source)]
                    given.append(Given(locked[0], "", tuple(sorted(part.bound)), tags))
            else:
                text = "\n".join(part.source for part in group if part not in left_out)
                given.append(Given(locked[0], text, (), tags))
    return tuple(given)


def _is_locked(cell: Any) -> bool:
    """Return whether the tests have a cell from the gradebook: it is a test, or locked."""
    is_locked = of(cell).get("locked") and not of(cell).get("solution")
    return is_test(cell) or bool(is_locked and name_of(cell))


def _parts(cell: Any) -> Iterator[_Part]:
    """Yield the statements of a cell; one with a magic for the whole cell is one to Python."""
    is_magic = cell.source.lstrip().startswith("%%")
    text = cell.source if is_magic else python_of(cell.source)
    lines, solved, is_inside = text.splitlines(), set[int](), False
    for number, line in enumerate(lines, 1):
        is_inside = is_inside or "BEGIN SOLUTION" in line
        solved |= {number} if is_inside else set()
        is_inside = is_inside and "END SOLUTION" not in line
    if of(cell).get("solution") and not solved:
        solved = {*range(1, len(lines) + 1)}
    with contextlib.suppress(SyntaxError, ValueError):
        if is_magic:
            parse(body_of(text))
            yield _Part(text, bool(solved))
            return
        for node in parse(text).body:
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            is_answer = not solved.isdisjoint(range(first, (node.end_lineno or first) + 1))
            yield _Part(ast.unparse(node), is_answer, node)


def _imports(source: str) -> list[str]:
    """Return the imports of a statement, but for those in functions and classes."""
    nodes: list[ast.AST] = [parse(body_of(source))]
    for node in nodes:  # which grow meanwhile
        nodes += () if isinstance(node, _DEFINITIONS) else ast.iter_child_nodes(node)
    return [ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


def _left_out(parts: list[_Part], needed: set[str]) -> set[_Part]:
    """Return the given statements that use answers for nothing that is needed."""
    answers = {name for part in parts if part.is_answer for name in part.bound}
    given = {part for part in parts if not part.is_answer}
    plain = {name for part in given for name in part.bound if not _imports(part.source)} - answers
    left_out: set[_Part] = set()
    # what is made of an answer is one to the next statement
    while more := {part for part in given - left_out if part.words & answers}:
        left_out |= more
        answers = answers.union(*(part.bound for part in more))
    while used := {p for p in left_out if (p.bound | (p.words & plain)) & needed}:
        left_out -= used
        needed = needed.union(*(part.words for part in used))
    return left_out


# --- what one of nbgrader's steps knows of it


def _course(step: Any) -> CourseDirectory:
    course = getattr(getattr(step.parent, "parent", None), "coursedir", None)
    return course or CourseDirectory(parent=step)


def source_folder(step: Any, assignment: str) -> Path:
    """Return the folder of the instructor's version."""
    course = _course(step)
    return Path(course.format_path(course.source_directory, ".", assignment)).resolve()


def source_of(step: Any, context: Any) -> Instructions:
    """Return what the source of a notebook asks for, which the context of a step names."""
    folder = source_folder(step, context.get("assignment", ""))
    return instructions(folder / f"{context.get('notebook', '')}.ipynb")


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


def written_tests(step: Any, assignment: str, notebook: str) -> dict[str, str]:
    """Return the tests as the gradebook has them, by name; none before they are released."""
    url = _course(step).db_url
    is_there = not url.startswith("sqlite:///") or Path(url.removeprefix("sqlite:///")).exists()
    with contextlib.suppress(MissingEntry, KeyError):
        cells = Sources.read(url, assignment).cells(notebook) if is_there else {}
        return {name: cell.source for name, cell in cells.items()}
    return {}


@lru_cache(maxsize=8)
def released_by(parent: Any) -> Released:
    """Return what gives the text of a cell as students get it: as ``parent`` is configured."""
    tests, schemes = ClearHiddenTests(parent=parent), ClearMarkScheme(parent=parent)

    @lru_cache(maxsize=4096)  # the tests of a class are the same
    def released(source: str) -> str:
        cell = NotebookNode(source=source)  # type: ignore[no-untyped-call]
        tests._remove_hidden_test_region(cell)
        schemes._remove_mark_scheme_region(cell)
        return str(cell.source)

    return released
