"""Write the page that a student gets back: it names exercises and causes, and loads nothing.

Its index has a line for each exercise, with the points. A failed test shows what went wrong,
without frames and paths. Hidden tests stay hidden. Formulas are MathML.
"""

import re
from pathlib import Path
from typing import Any

from nbconvert.exporters import HTMLExporter
from nbconvert.preprocessors import Preprocessor
from nbgrader.api import Gradebook
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from traitlets import Bool, Unicode
from traitlets.config import Config, LoggingConfigurable

from gradebox.feedback.formulas import markdown2html
from gradebox.feedback.messages import matched, tell_students, titles
from gradebox.nbgrader.cells import error_text, is_test, name_of, of, setting
from gradebox.nbgrader.gradebook import NO_ANSWER
from gradebox.nbgrader.source_notebook import released_by, source_of

TEMPLATES = Path(__file__).parent.parent / "share" / "nbconvert" / "templates"


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

    def default_filters(self) -> Any:
        """Yield the filters of the template."""
        yield from super().default_filters()  # type: ignore[no-untyped-call]
        yield "markdown2html", markdown2html
        yield "points", points

    def _preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Take from a notebook with its scores what is for the student."""
        nb, resources = super()._preprocess(nb, resources)  # type: ignore[no-untyped-call]
        # of the settings those of nbgrader's steps, which do not know those of an exporter
        steps = {name: self.config[name] for name in ("ClearHiddenTests", "ClearMarkScheme")}
        released = released_by(LoggingConfigurable(config=Config(steps)))
        hidden = [name_of(c) for c in nb.cells if released(c.source) != c.source.rstrip()]
        names = titles(nb)
        shown = str if self.show_hidden_tests else released
        context = resources.get("nbgrader", {})
        # where the instructor's version is there, the names that it defines
        tell_students(nb, shown, source_of(self, context).defined)
        for cell in filter(is_test, nb.cells):
            cell.source = shown(cell.source)
        resources["gradebox"] = {
            "entries": _entries(nb, names, _waiting(context), self.reason),
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


def _waiting(context: Any) -> set[str]:
    """Return the cells of a submission that nobody has read yet."""
    if "db_url" not in context:
        return set()
    with Gradebook(context["db_url"]) as book:
        place = (context[name] for name in ("notebook", "assignment", "student"))
        notebook = book.find_submission_notebook(*place)
        unread = (g for g in notebook.grades if g.needs_manual_grade and g.manual_score is None)
        return {grade.name for grade in unread}


def _entries(nb: Any, names: dict[str, str], waiting: set[str], pattern: str) -> list[Any]:
    """Return the lines of the index; tests that follow each other under a title share one.

    Each has the ``cells`` that give it points, as nbgrader knows them, and why points are missing.
    """
    entries: list[Any] = []
    for cell in nb.cells:
        name, test = name_of(cell), is_test(cell)
        if name not in names:
            continue
        if not (entries and entries[-1]["title"] == names[name] and test and entries[-1]["test"]):
            new = {"title": names[name], "test": test, "cells": [], "reason": "", "waits": False}
            entries.append(new)
        entry = entries[-1]
        entry["cells"].append(of(cell))
        entry["waits"] |= name in waiting
        entry["reason"] = entry["reason"] or _reason(cell, pattern)
        lacking = [each for each in entry["cells"] if (each.get("score") or 0) < each.points]
        entry["link"] = (lacking or entry["cells"])[0]["grade_id"]
    return entries


def _reason(cell: Any, pattern: str) -> str:
    if of(cell).get("comment") == NO_ANSWER:
        return "not written"
    lines = [line for line in error_text(cell).split("\n") if line.strip()]
    return matched(pattern, error_text(cell)) or "".join(lines[:1]).removeprefix("✗ ")


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
