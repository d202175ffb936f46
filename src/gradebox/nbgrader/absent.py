"""Find the names that tests use and no cell of the student's defines."""

import builtins
import difflib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from gradebox.nbgrader.borrowed import names_of
from gradebox.nbgrader.cells import errors, is_test, name_of

_NOT_DEFINED = re.compile(r"name '(\w+)' is not defined")
_DEFINES = re.compile(r"^(?:async )?(?:def|class) (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Absent:
    """A name that a test uses and no cell defines."""

    name: str
    kind: str = "function"
    """What the test takes it for: a ``function`` or a ``name``."""
    failed: bool = False
    """Whether a cell would define it, and ended with an error."""
    guess: str = ""
    """What the student may call it; empty if nothing is like it."""


def absent(nb: Any, given: Collection[str] = ()) -> dict[str, Absent]:
    """Return what the tests of a graded notebook did not find, by the names of their cells.

    Nobody has renamed anything to what is ``given``: names that the instructor's version defines.
    """
    unknown = {}
    for cell in filter(is_test, nb.cells):
        for output in errors(cell):
            match = _NOT_DEFINED.match(str(output.get("evalue", "")))
            if output.ename == "NameError" and match and match[1] in _names(cell.source):
                unknown[name_of(cell)] = match[1], cell.source
    if not unknown:
        return {}
    own = [cell for cell in nb.cells if cell.cell_type == "code" and not is_test(cell)]
    defined = {name for cell in own for name in _DEFINES.findall(cell.source)}
    tested = {name for cell in nb.cells if is_test(cell) for name in _names(cell.source)}
    candidates = sorted(defined - tested - {*given, *dir(builtins)})
    missing = {}
    for test, (name, source) in unknown.items():
        kind = "function" if re.search(rf"\b{name}\s*\(|, {name}\b", source) else "name"
        missing[test] = Absent(name, kind, name in defined, _alike(name, candidates))
    return missing


def _names(source: str) -> frozenset[str]:
    bound, used, _ = names_of(source)
    return bound | used


def _alike(name: str, names: Sequence[str]) -> str:
    low = name.lower()
    inside = [other for other in names if low in other.lower() or other.lower() in low]
    return next(iter(inside + difflib.get_close_matches(name, names, n=1)), "")
