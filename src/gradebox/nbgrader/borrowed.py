"""Find the names that tests define and other cells use."""

import builtins
import symtable
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from gradebox.nbgrader.cells import is_test, name_of
from gradebox.workers.syntax import python_of


class Borrowed(NamedTuple):
    """A name that a test defines, and the cell that uses it."""

    test: str
    name: str
    cell: str


@lru_cache(maxsize=1000)  # the tests of a class are the same
def names_of(source: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    r"""Return the names that code binds where it stands, takes from elsewhere, and imports.

    What a function binds is its own, unless it says ``global``.

    Examples
    --------
    >>> bound, used, imported = names_of("import math\ny = [math.exp(k) for k in x]")
    >>> sorted(bound), sorted(used), sorted(imported)
    (['math', 'y'], ['x'], ['math'])
    """
    try:
        tables = [symtable.symtable(python_of(source), "<cell>", "exec")]
    except (SyntaxError, ValueError):
        return frozenset(), frozenset(), frozenset()
    bound, used, imported = set[str](), set[str](), set[str]()
    for table in tables:
        tables += table.get_children()
        for symbol in table.get_symbols():
            if table is tables[0] or symbol.is_global():
                if symbol.is_assigned() or symbol.is_imported():
                    bound.add(symbol.get_name())
                if symbol.is_imported():
                    imported.add(symbol.get_name())
                if symbol.is_referenced():
                    used.add(symbol.get_name())
    return frozenset(bound), frozenset(used - bound), frozenset(imported)


def borrowed(
    cells: Sequence[Any], released: Callable[[str], str], by_tests: Collection[str] = ()
) -> list[Borrowed]:
    """Return what cells use of the tests before them, and no other cell defines.

    Only the part of a test that is ``released`` can be borrowed. Some borrowing is ``by_tests``.
    """
    code = [cell for cell in cells if cell.cell_type == "code"]
    own = {name for cell in code if not is_test(cell) for name in names_of(cell.source)[0]}
    own |= {*dir(builtins)}
    found: list[Borrowed] = []
    wanted: dict[str, str] = {}
    for cell in reversed(code):
        name = name_of(cell)
        bound, used, _ = names_of(released(cell.source) if is_test(cell) else cell.source)
        lent = sorted(bound & wanted.keys()) if is_test(cell) else []
        if name in by_tests:
            used = names_of(cell.source)[1]
        found += [Borrowed(name, each, wanted.pop(each)) for each in lent]
        if lent or not is_test(cell) or name in by_tests:
            wanted |= dict.fromkeys(used - own, name)
    return found
