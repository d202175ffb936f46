"""Tell what tests run of the instructor's other cells from what they ask the student for.

A solution is what stands between ``BEGIN SOLUTION`` and ``END SOLUTION``, or the whole of a
solution cell without these; what its statements bind is the student's. All else is the
instructor's: plain cells, the other statements of solution cells, and every import. Tests run that
in their own process, so that a student who changes it changes no test.
"""

import ast
import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gradebox.nbgrader.cells import is_test
from gradebox.workers.protocol import Given
from gradebox.workers.syntax import bound_names, parse, python_of


@dataclass
class _Part:
    """A statement of a cell: an answer, or given."""

    cell: Any
    source: str
    is_answer: bool = False

    @cached_property
    def bound(self) -> set[str]:
        """Return what it binds; an import in an answer binds nothing of the student's."""
        names, imported = bound_names(_python(self.source))
        return names - imported if self.is_answer else names

    @cached_property
    def words(self) -> set[str]:
        return words(self.source)


def given_parts(cells: Iterable[Any]) -> tuple[Given, ...]:
    """Return what tests run of the code cells of a source notebook, in their order.

    A given statement that uses answers is among it only where it makes what the tests need: to run
    it takes the time of the student's code once more.
    """
    cells = [*cells]
    parts = [part for cell in cells if not _is_locked(cell) for part in _parts(cell)]
    needed = {word for cell in cells if _is_locked(cell) for word in words(cell.source)}
    left_out = _left_out(parts, needed)
    given: list[Given] = []
    for cell, before in zip(cells, _following(cells), strict=True):
        if _is_locked(cell):
            given.append(Given(before, ""))  # what comes before it, comes before this, too
            continue
        lines: list[str] = []
        tags = tuple(cell.metadata.get("tags", ()))
        for part in (part for part in parts if part.cell is cell):
            if not part.is_answer and id(part) not in left_out:
                lines.append(part.source)
            elif part.is_answer:
                imports = _imports(part.source)
                given += [Given(before, text, (), tags) for text in ("\n".join(lines), *imports)]
                given.append(Given(before, "", tuple(sorted(part.bound)), tags))
                lines = []
        given.append(Given(before, "\n".join(lines), (), tags))
    return tuple(part for part in given if part.before)


def words(source: str) -> set[str]:
    """Return all words of a text: the names in it, and in the texts and comments in it."""
    return set(re.findall(r"\w+", source))


def _of(cell: Any) -> Any:
    return cell.metadata.get("nbgrader", {})


def _is_locked(cell: Any) -> bool:
    """Return whether the tests have a cell from the gradebook: it is a test, or locked."""
    is_locked = _of(cell).get("locked") and not _of(cell).get("solution")
    return is_test(cell) or bool(is_locked and "grade_id" in _of(cell))


def _following(cells: list[Any]) -> list[str]:
    """Return for each cell the name of the next one that is locked or a test."""
    names, name = [], ""
    for cell in reversed(cells):
        name = _of(cell).grade_id if _is_locked(cell) else name
        names.append(name)
    return names[::-1]


def _python(source: str) -> str:
    """Return the Python in the source of a cell that may begin with a magic for the whole cell."""
    if source.lstrip().startswith("%%"):
        line, _, source = source.lstrip().partition("\n")
        if line.startswith("%%capture ") and line.split()[-1].isidentifier():
            source += f"\n{line.split()[-1]} = None"
    return python_of(source)


def _parts(cell: Any) -> Iterator[_Part]:
    is_magic = cell.source.lstrip().startswith("%%")
    text = cell.source if is_magic else python_of(cell.source)
    lines = text.splitlines()
    solved = _solved(lines)
    if _of(cell).get("solution") and not solved:
        solved = {*range(1, len(lines) + 1)}
    with contextlib.suppress(SyntaxError, ValueError):
        if is_magic:  # one statement to Python
            bound_names(_python(text))
            yield _Part(cell, text, bool(solved))
            return
        for node in parse(text).body:
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            is_answer = not solved.isdisjoint(range(first, (node.end_lineno or first) + 1))
            yield _Part(cell, ast.unparse(node), is_answer)


def _solved(lines: list[str]) -> set[int]:
    """Return the numbers of the lines of solutions."""
    solved, is_inside = set(), False
    for number, line in enumerate(lines, 1):
        is_inside = is_inside or "BEGIN SOLUTION" in line
        if is_inside:
            solved.add(number)
        is_inside = is_inside and "END SOLUTION" not in line
    return solved


def _imports(source: str) -> list[str]:
    """Return the imports of a statement, but for those in functions and classes."""
    inner = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    nodes: list[ast.AST] = [parse(_python(source))]
    found = []
    while nodes:
        node = nodes.pop(0)
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(ast.unparse(node))
        elif not isinstance(node, inner):
            nodes += ast.iter_child_nodes(node)
    return found


def _left_out(parts: list[_Part], needed: set[str]) -> set[int]:
    """Return the given statements that use answers for nothing that is needed, by their ids."""
    answers = {name for part in parts if part.is_answer for name in part.bound}
    given = [part for part in parts if not part.is_answer]
    plain = {name for part in given for name in part.bound if not _imports(part.source)} - answers
    left_out: dict[int, _Part] = {}
    for _ in given:  # what is made of an answer is one to the next statement
        before = len(left_out)
        of_answers = answers.union(*(part.bound for part in left_out.values()))
        left_out |= {id(part): part for part in given if part.words & of_answers}
        if len(left_out) == before:
            break
    for _ in given:
        used = [p for p in left_out.values() if (p.bound | (p.words & plain)) & needed]
        if not used:
            break
        for part in used:
            del left_out[id(part)]
            needed |= part.words
    return {*left_out}
