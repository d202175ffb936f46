"""Tell in plain words what an instructor should look at in a submission."""

import re
from typing import Any

from gradebox.messages import absent

_CHANGED = re.compile(r"Attribute '(\w+)' for cell (\S+) has changed!")
_TWICE = re.compile(r"Cell with id '(.*)' exists multiple times!")
_MISSING = re.compile(r"Missing grade cell (\S+) encountered")
_PENALTY = re.compile(r"Late submission penalty: (\S+)")
_LATE = re.compile(r".* is (\S+) seconds late")

_WHAT = {
    "points": "the points of cell {} were changed",
    "cell_type": "the type of cell {} was changed",
    "locked": "the lock of cell {} was changed",
}


def plainly(warnings: list[str]) -> list[str]:
    """Return nbgrader's warnings about a submission in the words of an instructor."""
    told = (_plain(printable(" ".join(warning.split()))) for warning in warnings)
    return list(dict.fromkeys(one for one in told if one))


def printable(text: str) -> str:
    """Return a text that does nothing to a terminal: students choose names of cells and files."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)


def _plain(warning: str) -> str:
    if found := _PENALTY.match(warning):
        return "" if found[1] == "None" else f"{found[1]} points taken off for being late"
    if found := _CHANGED.match(warning):
        if found[1] == "checksum":  # so it always is where the release leaves out hidden tests
            return ""
        what = _WHAT.get(found[1], f"{found[1]} of cell {{}} was changed")
        return what.format(found[2]) + "; it was put back"
    if found := _TWICE.match(warning):
        return f"cell {found[1]} is there twice; the last one counts"
    if found := _MISSING.match(warning):
        return f"cell {found[1]} was missing; it was put back"
    if found := _LATE.match(warning):
        return f"handed in {duration(float(found[1]))} late"
    return warning[:200]


def duration(seconds: float) -> str:
    """Return a time as people say it.

    >>> [duration(seconds) for seconds in (20, 150, 3600, 83440, 200_000)]
    ['1 minute', '3 minutes', '1 hour', '23.2 hours', '2.3 days']
    """
    if seconds < 3540:
        number, unit = f"{max(1, -(-seconds // 60)):.0f}", "minute"
    elif seconds < 48 * 3600:
        number, unit = f"{round(seconds / 3600, 1):g}", "hour"
    else:
        number, unit = f"{round(seconds / 86400, 1):g}", "day"
    return f"{number} {unit}{'' if number == '1' else 's'}"


def troubles(nb: Any) -> list[str]:
    """Return where the execution of a notebook went wrong beyond an error in a cell."""
    says = {
        "CellTimeoutError": "a cell took too long",
        "NotebookTimeoutError": "all cells together took too long",
        "StudentTimeout": "a call by the tests took too long",
        "Late": "a test cell took too long",
        "DeadKernelError": "a cell ended Python",
        "StudentGone": "a call by the tests ended Python",
    }
    names = [
        output.get("ename")
        for cell in nb.cells
        for output in cell.get("outputs", [])
        if output.output_type == "error"
    ]
    found = {one.name: one for one in absent(nb).values() if one.guess and not one.failed}
    renamed = [
        f"the {one.what} was not found; was it renamed to `{one.guess}`?" for one in found.values()
    ]
    return [text for name, text in says.items() if name in names] + renamed
