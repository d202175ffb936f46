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
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from gradebox.nbgrader.borrowed import names_of
from gradebox.nbgrader.cells import is_test, name_of, of
from gradebox.workers.protocol import Given
from gradebox.workers.syntax import body_of, parse, python_of


@dataclass(eq=False)
class Part:
    """A statement of a cell: an answer, or given."""

    cell: Any
    source: str
    is_answer: bool
    node: ast.stmt | None = None

    @cached_property
    def bound(self) -> frozenset[str]:
        """Return what it binds; an import in an answer binds nothing of the student's."""
        names, _, imported = names_of(body_of(self.source))
        return names - imported if self.is_answer else names

    @cached_property
    def words(self) -> set[str]:
        """Return all words of it."""
        return words(self.source)


def given_parts(cells: Iterable[Any]) -> tuple[Given, ...]:
    """Return what tests run of the code cells of a source notebook, in their order.

    A given statement that uses answers is among it only where it makes what the tests need: to run
    it takes the time of the student's code once more.
    """
    cells = [*cells]
    parts = [part for cell in cells if not _is_locked(cell) for part in parts_of(cell)]
    needed = {word for cell in cells if _is_locked(cell) for word in words(cell.source)}
    left_out = _left_out(parts, needed)
    given: list[Given] = []
    waiting: list[Given] = []
    for cell in cells:
        if _is_locked(cell):
            # what comes before it, comes before this, too
            given += [replace(part, before=name_of(cell)) for part in [*waiting, Given("", "")]]
            waiting = []
            continue
        lines: list[str] = []
        tags = tuple(cell.metadata.get("tags", ()))
        for part in (part for part in parts if part.cell is cell):
            if part.is_answer:
                texts = ["\n".join(lines), *_imports(part.source)]
                waiting += [Given("", text, (), tags) for text in texts]
                waiting.append(Given("", "", tuple(sorted(part.bound)), tags))
                lines = []
            elif part not in left_out:
                lines.append(part.source)
        waiting.append(Given("", "\n".join(lines), (), tags))
    return tuple(given)


def words(source: str) -> set[str]:
    """Return all words of a text: the names in it, and in the texts and comments in it."""
    return set(re.findall(r"\w+", source))


def _is_locked(cell: Any) -> bool:
    """Return whether the tests have a cell from the gradebook: it is a test, or locked."""
    is_locked = of(cell).get("locked") and not of(cell).get("solution")
    return is_test(cell) or bool(is_locked and name_of(cell))


def parts_of(cell: Any) -> Iterator[Part]:
    """Yield the statements of a cell; one with a magic for the whole cell is one to Python."""
    is_magic = cell.source.lstrip().startswith("%%")
    text = cell.source if is_magic else python_of(cell.source)
    lines = text.splitlines()
    solved = _solved(lines)
    if of(cell).get("solution") and not solved:
        solved = {*range(1, len(lines) + 1)}
    with contextlib.suppress(SyntaxError, ValueError):
        if is_magic:
            parse(body_of(text))
            yield Part(cell, text, bool(solved))
            return
        for node in parse(text).body:
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            is_answer = not solved.isdisjoint(range(first, (node.end_lineno or first) + 1))
            yield Part(cell, ast.unparse(node), is_answer, node)


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
    nodes: list[ast.AST] = [parse(body_of(source))]
    found = []
    while nodes:
        node = nodes.pop(0)
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(ast.unparse(node))
        elif not isinstance(node, inner):
            nodes += ast.iter_child_nodes(node)
    return found


def _left_out(parts: list[Part], needed: set[str]) -> set[Part]:
    """Return the given statements that use answers for nothing that is needed."""
    answers = {name for part in parts if part.is_answer for name in part.bound}
    given = {part for part in parts if not part.is_answer}
    plain = {name for part in given for name in part.bound if not _imports(part.source)} - answers
    left_out: set[Part] = set()
    # what is made of an answer is one to the next statement
    while more := {part for part in given - left_out if part.words & answers}:
        left_out |= more
        answers = answers.union(*(part.bound for part in more))
    while used := {p for p in left_out if (p.bound | (p.words & plain)) & needed}:
        left_out -= used
        needed = needed.union(*(part.words for part in used))
    return left_out
