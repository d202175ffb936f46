"""Explain a failed test to the student: without frames, paths and hidden code."""

import re
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from gradebox.nbgrader.cells import COLORS, errors, is_test, name_of, of
from gradebox.nbgrader.names import Absent, absent
from gradebox.workers.stubs import StudentGone, StudentTimeout

_FRAME = re.compile(r' *(?:(?P<cell>Cell In *\[|File "<)|File (?:".*", line |.+:)\d)')
_ARROW = re.compile(r"^-+> *\d+ ")
_ERROR = re.compile(r"[A-Za-z_][\w.]*(?:: |$)")
_HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)

# what the errors of a test mean that could not call the student's code to its end
_STOPPED = {
    StudentTimeout.__name__: "✗ Your code took too long and was stopped.",
    StudentGone.__name__: "✗ Your code ended Python, so no further test of it ran.",
}


def tell_students(nb: Any, released: Callable[[str], str], given: Collection[str] = ()) -> None:
    """Put into the outputs of a graded notebook what a student can use.

    ``released`` gives the part of a test that students may see; the instructor's version defines
    the names that are ``given``.
    """
    missing = absent(nb, given)
    for cell in nb.cells:
        for output in errors(cell):
            shown = "\n".join(map(str, output.get("traceback", []))).splitlines()
            lines = [COLORS.sub("", line) for line in shown]
            name = name_of(cell)
            if not is_test(cell):
                lines = _without_files(shown)
            elif name in missing and output.ename == "NameError":
                lines = [_of_absent(missing[name])]
            elif output.ename in _STOPPED:
                lines = [_STOPPED[output.ename]]
            elif any(map(_FRAME.match, lines)):
                lines = _without_frames(output, lines, released(cell.source))
            output.traceback = [_without_paths(line) for line in lines]
            output.evalue = _without_paths(str(output.get("evalue", "")))


def _of_absent(absent: Absent) -> str:
    what = f"✗ The {absent.kind} `{absent.name}`"
    if absent.failed:
        return f"{what} is not there: the cell that defines it ends with an error."
    if absent.guess:
        return f"{what} was not found. Did you rename it? Your notebook has `{absent.guess}`."
    return f"{what} was not found. Did you rename or delete it?"


def _without_frames(output: Any, lines: list[str], visible: str) -> list[str]:
    """Return an error of a test: which line of it, if it may be seen, and what went wrong."""
    test, _, own = "\n".join(lines).partition("\nIn the student's code:\n  line ")
    shown = {line.strip() for line in visible.splitlines()} - {""}
    code = [_ARROW.sub("", line).strip() for line in _without_files(test.splitlines())]
    hidden = "✗ A check fails that is not shown here."
    failed = next((f"✗ `{line}` fails." for line in code if line in shown), hidden)
    why = f"{output.ename}: {output.get('evalue', '')}".removesuffix(": ")
    line = own.partition("\n")[0].partition(": ")[2]
    return [failed, "", *why.splitlines(), *([f"  in your line `{line}`"] if line else [])]


def _without_files(traceback: Sequence[str]) -> list[str]:
    """Return a traceback without the frames of files, of cells alone."""
    lines: list[str] = []
    in_file = False
    for line in traceback:
        plain = COLORS.sub("", line)
        if (frame := _FRAME.match(plain)) or not plain.strip() or _ERROR.match(plain):
            in_file = bool(frame and not frame["cell"])
        if not in_file and (plain.strip() or (lines and lines[-1].strip())):
            lines.append(line)
    return lines


@lru_cache(maxsize=8)
def _private_paths(here: Path) -> re.Pattern[str]:
    folders = [sys.prefix, sys.base_prefix, here, Path.home(), tempfile.gettempdir()]
    folders.append(Path(__file__).resolve().parents[2])
    names = sorted({str(folder) for folder in folders if len(str(folder)) > 1}, key=len)
    return re.compile(rf"(?:{'|'.join(map(re.escape, reversed(names)))})(?:[/\\][\w.@+-]+)*[/\\]")


def _without_paths(text: str) -> str:
    return _private_paths(Path.cwd()).sub("…/", text)


def titles(nb: Any) -> dict[str, str]:
    """Return the heading above each graded cell, or else its name, by its name in nbgrader."""
    names: dict[str, str] = {}
    heading = ""
    for cell in nb.cells:
        if cell.cell_type == "markdown" and not of(cell).get("solution"):
            heading = [heading, *_HEADING.findall(cell.source)][-1]
        if of(cell).get("grade") or of(cell).get("task"):
            names[name_of(cell)] = re.sub(r"[*`$\\]", "", heading) or name_of(cell)
    return names


def matched(pattern: str, text: str) -> str:
    """Return the groups of what a pattern finds, side by side, or all of it if it has none."""
    match = re.search(pattern, text) if pattern else None
    return " ".join(filter(None, match.groups() or (match[0],))) if match else ""
