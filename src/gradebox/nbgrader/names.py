"""Find the names that the cells of a notebook bind, use, lend each other and lack."""

import ast
import builtins
import contextlib
import difflib
import re
import symtable
import unicodedata
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from gradebox.nbgrader.cells import errors, is_test, name_of
from gradebox.workers.syntax import python_of

_NOT_DEFINED = re.compile(r"name '(\w+)' is not defined")
_DEFINES = re.compile(r"^(?:async )?(?:def|class) (\w+)", re.MULTILINE)


class _Generators(ast.NodeTransformer):
    """Make each comprehension a generator: its variables are its own in every version of Python."""

    def visit(self, node: ast.AST) -> Any:
        node = self.generic_visit(node)
        if isinstance(node, ast.DictComp):
            return ast.GeneratorExp(ast.Tuple([node.key, node.value], ast.Load()), node.generators)
        if isinstance(node, ast.ListComp | ast.SetComp):
            return ast.GeneratorExp(node.elt, node.generators)
        return node


@lru_cache(maxsize=1000)  # the tests of a class are the same
def names_of(source: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    r"""Return the names that code binds where it stands, takes from elsewhere, and imports.

    What a function binds is its own, unless it says ``global``.

    >>> bound, used, imported = names_of("import math\ny = [math.exp(k) for k in x]")
    >>> sorted(bound), sorted(used), sorted(imported)
    (['math', 'y'], ['x'], ['math'])
    >>> names_of("y = f\"{'\xa0'}\"")[0]
    frozenset({'y'})
    """
    try:
        code = python_of(source)
        with contextlib.suppress(RecursionError, ValueError):  # a sum of a thousand terms, say
            code = ast.unparse(_Generators().visit(ast.parse(code)))
        tables = [symtable.symtable(code, "<cell>", "exec")]
    except (SyntaxError, ValueError, RecursionError):
        return frozenset(), frozenset(), frozenset()
    symbols = []
    for table in tables:
        tables += table.get_children()
        symbols += [s for s in table.get_symbols() if table is tables[0] or s.is_global()]
    imported = frozenset(s.get_name() for s in symbols if s.is_imported())
    bound = imported.union(s.get_name() for s in symbols if s.is_assigned())
    return bound, frozenset(s.get_name() for s in symbols if s.is_referenced()) - bound, imported


def words(source: str) -> set[str]:
    """Return all words of a text: the names in it, and in the texts and comments in it."""
    return set(re.findall(r"\w+", unicodedata.normalize("NFKC", source)))  # as Python reads names


def bound_outside_tests(cells: Sequence[Any]) -> set[str]:
    """Return the names that the code cells bind that are no tests."""
    own = (cell.source for cell in cells if cell.cell_type == "code" and not is_test(cell))
    return {name for source in own for name in names_of(source)[0]}


class Borrowed(NamedTuple):
    """A name that a test defines, and the cell that uses it."""

    test: str
    name: str
    cell: str


def borrowed(
    cells: Sequence[Any], released: Callable[[str], str], by_tests: Collection[str] = ()
) -> list[Borrowed]:
    """Return what cells, and some tests, use of what is ``released`` of the tests before them."""
    own = bound_outside_tests(cells) | {*dir(builtins)}
    found: list[Borrowed] = []
    wanted: dict[str, str] = {}
    for cell in reversed([cell for cell in cells if cell.cell_type == "code"]):
        name = name_of(cell)
        bound, used, _ = names_of(released(cell.source) if is_test(cell) else cell.source)
        lent = sorted(bound & wanted.keys()) if is_test(cell) else []
        if name in by_tests:
            used = names_of(cell.source)[1]
        found += [Borrowed(name, each, wanted.pop(each)) for each in lent]
        if lent or not is_test(cell) or name in by_tests:
            wanted |= dict.fromkeys(used - own, name)
    return found


class Absent(NamedTuple):
    """A name that a test uses and no cell defines."""

    name: str
    kind: str  # what the test takes it for: a ``function`` or a ``name``
    failed: bool  # whether a cell would define it, and ended with an error
    guess: str  # what the student may call it; empty if nothing is like it


def absent(nb: Any, given: Collection[str] = ()) -> dict[str, Absent]:
    """Return what tests did not find, by their names; no name that was ``given`` is a new name."""
    tests, missing = [*filter(is_test, nb.cells)], {}
    own = [c.source for c in nb.cells if c.cell_type == "code" and not is_test(c)]
    defined = {name for source in own for name in _DEFINES.findall(source)}
    mentioned = {name_of(cell): frozenset().union(*names_of(cell.source)[:2]) for cell in tests}
    others = sorted(defined.difference(given, dir(builtins), *mentioned.values()))
    for cell in tests:
        for output in errors(cell):
            match = _NOT_DEFINED.match(str(output.get("evalue", "")))
            if output.ename == "NameError" and match and match[1] in mentioned[name_of(cell)]:
                name, low = match[1], match[1].lower()
                is_called = re.search(rf"\b{name}\s*\(|, {name}\b", cell.source)
                alike = [other for other in others if low in other.lower() or other.lower() in low]
                alike += difflib.get_close_matches(name, others, n=1)
                kind, guess = "function" if is_called else "name", "".join(alike[:1])
                missing[name_of(cell)] = Absent(name, kind, name in defined, guess)
    return missing
