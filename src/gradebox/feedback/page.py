"""Write the page that a student gets back: it names exercises and causes, and loads nothing.

Its index has a line for each exercise, with the points. A failed test shows what went wrong,
without frames and paths. Hidden tests stay hidden. Formulas are MathML.
"""

import re
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jinja2 import Environment, MemcachedBytecodeCache
from nbconvert.exporters import HTMLExporter
from nbconvert.filters import strip_ansi
from nbconvert.preprocessors import Preprocessor
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from traitlets import Bool, Unicode
from traitlets.config import Config, LoggingConfigurable

from gradebox.feedback.formulas import markdown2html
from gradebox.nbgrader.cells import error_text, errors, headings, is_test, name_of, of, setting
from gradebox.nbgrader.gradebook import NO_ANSWER, entry_of
from gradebox.nbgrader.names import Absent, absent
from gradebox.nbgrader.source_notebook import released_by, source_of
from gradebox.workers.stubs import StudentGone, StudentTimeout

TEMPLATES = Path(__file__).parent.parent / "share" / "nbconvert" / "templates"


# what is compiled of templates, for the next page: nbconvert would compile them anew
_KEPT = dict[str, bytes]()
_COMPILED = MemcachedBytecodeCache(SimpleNamespace(get=_KEPT.get, set=_KEPT.__setitem__))


class FeedbackPage(HTMLExporter):
    """Writes the page of a graded notebook."""

    show_hidden_tests = setting(Bool(), "Whether students see the code of hidden tests.")
    reason = setting(
        Unicode(),
        "A pattern that finds in the error of a test why points are missing: its groups, side by "
        "side. Without it, that is the first line of the error.",
    )

    @property
    def default_config(self) -> Config:
        """Return what wins over the settings that nbgrader makes for its own page."""
        config = Config({"FeedbackPage": {"template_name": "gradebox", "filters": {}}})
        config.FeedbackPage.extra_template_basedirs = [str(TEMPLATES)]
        config.merge(super().default_config)
        return config

    def _create_environment(self) -> Environment:
        environment: Environment = super()._create_environment()  # type: ignore[no-untyped-call]
        environment.bytecode_cache = _COMPILED
        return environment

    def default_filters(self) -> Any:
        """Yield the filters of the template."""
        yield from super().default_filters()  # type: ignore[no-untyped-call]
        yield "markdown2html", markdown2html
        yield "points", points
        # a check says code between backticks; without str, jinja's Markup would escape the tags
        yield "with_code", lambda text: re.sub("(`+)([^<\n]+?)\\1", r"<code>\2</code>", str(text))

    def _preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Take from a notebook with its scores what is for the student."""
        nb, resources = super()._preprocess(nb, resources)  # type: ignore[no-untyped-call]
        # of the settings those of nbgrader's steps, which do not know those of an exporter
        steps = {name: self.config[name] for name in ("ClearHiddenTests", "ClearMarkScheme")}
        released = released_by(LoggingConfigurable(config=Config(steps)))
        # an answer may quote the marks of hidden parts, and not all of them
        given = (cell for cell in nb.cells if not of(cell).get("solution"))
        hidden = [name_of(c) for c in given if released(c.source) != c.source.rstrip()]
        names, context, waiting = headings(nb), resources.get("nbgrader", {}), set[str]()
        if "db_url" in context:  # the cells that nobody has read yet
            with entry_of(resources) as (_, notebook):
                grades = [g for g in notebook.grades if g.manual_score is None]
                waiting = {grade.name for grade in grades if grade.needs_manual_grade}
        shown = str if self.show_hidden_tests else released
        # where the instructor's version is there, the names that it defines
        tell_students(nb, shown, source_of(self, context).defined)
        for cell in filter(is_test, nb.cells):
            cell.source = shown(cell.source)
        resources["gradebox"] = {
            "entries": _entries(nb, names, waiting, self.reason),
            "hidden": [] if self.show_hidden_tests else hidden,
            "no_answer": NO_ANSWER,
            "style": HtmlFormatter(style="default").get_style_defs(".highlight"),
        }
        return nb, resources


def points(value: Any) -> str:
    """Return a number of points, with no more digits than it needs.

    >>> points(3.0), points(2.5), points(None)
    ('3', '2.5', '0')
    """
    return f"{round(float(value or 0), 2):g}"


def _entries(nb: Any, names: dict[str, str], waiting: set[str], pattern: str) -> list[Any]:
    """Return the lines of the index; tests that follow each other under a title share one.

    Each has the ``cells`` that give it points, as nbgrader knows them, and why points are missing.
    """

    def exercise(cell: Any) -> tuple[str, str]:
        return names[name_of(cell)], "" if is_test(cell) else name_of(cell)

    entries: list[Any] = []
    graded = [cell for cell in nb.cells if of(cell).get("grade") or of(cell).get("task")]
    for (title, _), group in groupby(graded, exercise):
        cells = [*group]
        own = [*map(of, cells)]
        lacking = [each for each in own if (each.get("score") or 0) < each.points]
        reason = next(filter(None, (_reason(cell, pattern) for cell in cells)), "")
        entry = {"title": title, "cells": own, "link": (lacking or own)[0]["grade_id"]}
        waits = any(name_of(cell) in waiting for cell in cells)
        entries.append(entry | {"reason": reason, "waits": waits})
    return entries


def _reason(cell: Any, pattern: str) -> str:
    if of(cell).get("comment") == NO_ANSWER:
        return "not written"
    text = error_text(cell)
    match = re.search(pattern, text) if pattern else None
    found = " ".join(filter(None, match.groups() or (match[0],))) if match else ""
    lines = [line for line in text.split("\n") if line.strip()]
    return found or "".join(lines[:1]).removeprefix("✗ ")


# --- what went wrong, without frames, paths and hidden code

_FRAME = re.compile(r' *(?:(?P<cell>Cell In *\[|File "<)|File (?:".*", line |.+:)\d)')
_ARROW = re.compile(r"^-+> *\d+ ")
_ERROR = re.compile(r"[A-Za-z_][\w.]*(?:: |$)")

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
            lines = [*map(strip_ansi, shown)]
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
    check = next((line for line in code if line in shown), "")
    mark = "``" if "`" in check else "`"  # as in Markdown
    failed = f"✗ {mark}{check}{mark} fails." if check else "✗ A check fails that is not shown here."
    why = f"{output.ename}: {output.get('evalue', '')}".removesuffix(": ")
    line = own.partition("\n")[0].partition(": ")[2]
    return [failed, "", *why.splitlines(), *([f"  in your line `{line}`"] if line else [])]


def _without_files(traceback: Sequence[str]) -> list[str]:
    """Return a traceback without the frames of files, of cells alone."""
    lines: list[str] = []
    in_file = False
    for line in traceback:
        plain = strip_ansi(line)  # type: ignore[no-untyped-call]
        if (frame := _FRAME.match(plain)) or not plain.strip() or _ERROR.match(plain):
            in_file = bool(frame and not frame["cell"])
        if not in_file and (plain.strip() or (lines and lines[-1].strip())):
            lines.append(line)
    return lines


def _without_paths(text: str) -> str:
    own = [sys.prefix, sys.base_prefix, tempfile.gettempdir(), Path(__file__).resolve().parents[2]]
    folders = {str(folder) for folder in (*own, Path.cwd(), Path.home())} - {"/"}
    inner_first = "|".join(map(re.escape, sorted(folders, key=len, reverse=True)))
    return re.sub(rf"(?:{inner_first})(?:[/\\][\w.@+-]+)*[/\\]", "…/", text)


# --- the mark scheme of a question beside the answer, where a person gives the points

SCHEME = re.compile(r"^.*BEGIN MARK SCHEME.*\n([\s\S]*?)^.*END MARK SCHEME", re.MULTILINE)

# before the answer, so that nothing in the answer can change it
BOX = """<aside aria-label="Mark scheme" style="float: right; width: 45%; margin: 0 0 1em 1.5em; \
padding: 0 1em; border: 1px solid #777; background: #f5f5f5">

**Mark scheme**

{}
</aside>

"""


class MarkScheme(Preprocessor):
    """Puts the mark scheme of the instructor's notebook beside each answer in words."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Return the notebook as the formgrader, which is for instructors alone, shows it."""
        if "submission_id" not in resources:
            return nb, resources
        names = {"assignment": resources["assignment_id"], "notebook": resources["notebook_id"]}
        sources = source_of(self, names).cells
        found = {name: SCHEME.search(cell.source) for name, cell in sources.items()}
        for cell in nb.cells:
            if cell.cell_type == "markdown" and (scheme := found.get(name_of(cell))):
                cell.source = BOX.format(scheme[1]) + cell.source
        return nb, resources
