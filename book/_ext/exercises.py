"""The directives ``exercise`` and ``exercises``: tasks of an assignment, to be solved on the page.

The one source of an exercise is the released notebook of its assignment. A page shows the task and
the cell to be filled in; the script ``exercise.js`` makes an editor and a check of it. Without
JavaScript a link leads to the notebook.
"""

import json
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

HEADING = re.compile(r"^## *(\d+) · *(.*?)\s*(?:\*\(.*\)\*)?\s*$", re.M)
KINDS = {"answer": "an answer in Python", "run": "an experiment", "written": "an answer in words"}


@dataclass
class Exercise:
    """A task of an assignment: its number and title, its text and its cells.

    Parameters
    ----------
    topic, name : str
        The assignment, and the name of the exercise's first cell without ``-task``.
    number, title : str
        As the notebook's heading has them.
    cells : list of tuple
        For each cell its kind (``text``, or one of `KINDS`), its name and its source.
    """

    topic: str
    name: str
    number: str
    title: str
    cells: list[tuple[str, str, str]] = field(default_factory=list)


def kind(cell: dict[str, Any]) -> str:
    """Return what a cell is for a reader; nothing for a test."""
    marks = cell["metadata"].get("nbgrader", {})
    if cell["cell_type"] == "markdown":
        return "written" if marks.get("solution") else "text"
    if marks.get("solution"):
        return "answer"
    return "" if marks.get("grade") else "run"


@cache
def exercises(path: Path) -> dict[str, Exercise]:
    """Return the exercises of a released notebook by their names, in order."""
    found: dict[str, Exercise] = {}
    current = None
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        identity = cell["metadata"].get("nbgrader", {}).get("grade_id") or cell["id"]
        heading = HEADING.match(source) if cell["cell_type"] == "markdown" else None
        if heading:
            name = re.sub(r"-(task|question)$", "", identity)
            if name in found or identity.endswith("-question"):
                name = identity
            current = found[name] = Exercise(path.stem, name, heading[1], heading[2])
            source = source[heading.end() :].strip()
        if current and kind(cell) and not identity.endswith("-summary"):
            current.cells.append((kind(cell), identity, source))
    return found


class ExerciseDirective(SphinxDirective):
    """One exercise; the argument is its name, such as ``erm-empirical-risk``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the exercise with its cells."""
        name = self.arguments[0]
        topic = name.partition("-")[0]
        known = self.assignment(topic)
        if name not in known:
            raise self.error(f"no exercise {name}; the assignment {topic} has {', '.join(known)}")
        return [self.exercise(known[name])]

    def assignment(self, topic: str) -> dict[str, Exercise]:
        """Return the exercises of a topic; the page is read again when the notebook changes."""
        path = Path(self.env.srcdir) / "exercises" / topic / f"{topic}.ipynb"
        if not path.is_file():
            raise self.error(f"no assignment {topic}: expected {path.relative_to(self.env.srcdir)}")
        self.env.note_dependency(str(path))
        return exercises(path)

    def exercise(self, exercise: Exercise) -> nodes.container:
        """Return a box with the title, the task and the cells."""
        box = nodes.container(classes=["exercise"], ids=[f"exercise-{exercise.name}"])
        title = nodes.paragraph("", "", classes=["exercise-title"])
        title += nodes.strong("", f"Exercise {exercise.number}")
        title += nodes.Text(f" · {exercise.title}")
        box += title
        for kind, name, source in exercise.cells:
            if kind == "text":
                self.state.nested_parse(StringList(source.splitlines(), name), 0, box)
            else:
                box += self.cell(kind, name, source)
        box += nodes.raw("", self.without_script(exercise), format="html")
        return box

    def cell(self, kind: str, name: str, source: str) -> nodes.container:
        """Return a cell as it stands in the notebook."""
        cell = nodes.container(classes=["exercise-cell", f"exercise-{kind}"], ids=[f"cell-{name}"])
        if kind == "written":
            cell += nodes.paragraph("", "This answer is text; people read and grade it.")
        else:
            cell += nodes.literal_block(source, source, language="python")
        return cell

    def without_script(self, exercise: Exercise) -> str:
        """Return what stands there without JavaScript."""
        static = "../" * self.env.docname.count("/") + "_static/python"
        script = ""
        if not self.env.temp_data.get("exercise"):
            self.env.temp_data["exercise"] = True
            script = f'<script defer src="{static}/start.js"></script>'
        name = f"{exercise.topic}.ipynb"
        address = f"{static}/notebooks/{exercise.topic}.json"
        link = f'<a href="{address}" download="{name}">the notebook of this assignment</a>'
        return (
            f"{script}<noscript><p>With JavaScript you can solve this exercise on the page. "
            f"It also stands in {link}, for JupyterLab.</p></noscript>"
        )


class ExercisesDirective(ExerciseDirective):
    """All exercises of an assignment; the argument is its topic."""

    def run(self) -> list[nodes.Node]:
        """Return the exercises, in the order of the notebook."""
        return [self.exercise(each) for each in self.assignment(self.arguments[0]).values()]


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx about the directives."""
    app.add_css_file("python/exercise.css")  # in the head, so that no box moves when it arrives
    app.add_directive("exercise", ExerciseDirective)
    app.add_directive("exercises", ExercisesDirective)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
