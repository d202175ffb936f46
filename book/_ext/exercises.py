"""The directives ``exercise`` and ``exercises``: code to be written and run on the page.

The one source of an exercise is the released notebook of its assignment. A page shows the task and
the cell to be filled in; the script ``exercise.js`` makes an editor and a check of it. Hints are
folded below it. Without JavaScript a link leads to the notebook.
"""

import json
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from elements import element, static
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from tools.classroom import answers

HEADING = re.compile(r"^## *(\d+) · *(.*?)\s*(?:\*\(.*\)\*)?\s*$", re.M)
CHECK = re.compile(r'^check\("(.+?)"', re.M)
WITHOUT_SCRIPT = (
    "With JavaScript you can solve this exercise on the page. It also stands in "
    '<a href="{static}/python/notebooks/{topic}.json" download="{topic}.ipynb">'
    "the notebook of this assignment</a>, for JupyterLab."
)
PLACEHOLDER = "# YOUR CODE HERE\n    raise NotImplementedError()"


@dataclass
class Exercise:
    """A task of an assignment; its name is that of its first cell without ``-task``."""

    topic: str
    name: str
    number: str
    title: str
    cells: list[tuple[str, str, str]] = field(default_factory=list)
    """For each cell what `kind` says of it, its name and its source."""
    points: int = 0
    """What a right answer earns, by the checks and by people."""
    keys: dict[str, str] = field(default_factory=dict)
    """For each answer in Python the key of its check, such as ``L1-07``."""


def kind(cell: dict[str, Any]) -> str:
    """Return what a cell is: ``text``, ``written``, ``answer``, ``run``; nothing for a test."""
    marks, is_text = cell["metadata"].get("nbgrader", {}), cell["cell_type"] == "markdown"
    if marks.get("solution"):
        return "written" if is_text else "answer"
    return "text" if is_text else "" if marks.get("grade") else "run"


@cache
def exercises(path: Path) -> dict[str, Exercise]:
    """Return the exercises of a released notebook by their names, in order."""
    result: dict[str, Exercise] = {}
    current = None
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source, marks = "".join(cell["source"]), cell["metadata"].get("nbgrader", {})
        identity = marks.get("grade_id") or cell["id"]
        if cell["cell_type"] == "markdown" and (heading := HEADING.match(source)):
            name = re.sub(r"-(task|question)$", "", identity)
            if name in result or identity.endswith("-question"):
                name = identity
            current = result[name] = Exercise(path.stem, name, heading[1], heading[2])
            source = source[heading.end() :].strip()
        if not current:
            continue
        current.points += marks.get("points", 0)
        if kind(cell) and not identity.endswith("-summary"):
            current.cells.append((kind(cell), identity, source))
        elif check := CHECK.search(source):
            current.keys[current.cells[-1][1]] = check[1]
    return result


def _cell(kind: str, name: str, source: str) -> nodes.container:
    """Return a cell as it stands in the notebook."""
    written = nodes.paragraph("", "This answer is text; people read and grade it.")
    inside = written if kind == "written" else _code(source)
    classes = ["exercise-cell", f"exercise-{kind}"]
    return nodes.container("", inside, classes=classes, ids=[f"cell-{name}"])


def _code(source: str) -> nodes.Element:
    return nodes.literal_block(source, source, language="python")


class ExerciseDirective(SphinxDirective):
    """An exercise by its name, such as ``erm-risk-estimate``, or all ``exercises`` of a topic.

    Content stands in the answer in place of the placeholder; the first button then runs the check.
    """

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the exercises; the page is read again when the notebook changes."""
        name = self.arguments[0]
        topic = name.partition("-")[0]
        path = Path(self.env.srcdir) / "exercises" / topic / f"{topic}.ipynb"
        if not path.is_file():
            raise self.error(f"no assignment {topic}: expected {path.relative_to(self.env.srcdir)}")
        self.env.note_dependency(str(path))
        assignment = exercises(path)
        if self.name == "exercises":
            return [self.exercise(each) for each in assignment.values()]
        if name not in assignment:
            names = ", ".join(assignment)
            raise self.error(f"no exercise {name}; the assignment {topic} has {names}")
        return [self.exercise(assignment[name])]

    def exercise(self, exercise: Exercise) -> nodes.container:
        """Return a box with the title, the task and the cells."""
        box = self.box(exercise.name, f"Exercise {exercise.number}", exercise.title)
        if exercise.points:
            points = "1 point" if exercise.points == 1 else f"{exercise.points} points"
            box[0] += nodes.inline("", f" · {points}", classes=["exercise-points"])
        for kind, name, source in exercise.cells:
            box += self.parse_text_to_nodes(source) if kind == "text" else _cell(kind, name, source)
            if key := exercise.keys.get(name):  # an answer with a check
                box += self.hints(exercise.topic, key)
                if self.config.self_study:
                    box += self.solution(exercise.topic, name)
        if self.content:
            self.fill(box, "\n    ".join(self.content))
        note = WITHOUT_SCRIPT.format(static=static(self.env), topic=exercise.topic)
        box += nodes.raw("", f"<noscript><p>{note}</p></noscript>", format="html")
        return box

    def fill(self, box: nodes.container, lines: str) -> None:
        """Put lines in place of the placeholder of an answer."""
        blocks = [b for b in box.findall(nodes.literal_block) if PLACEHOLDER in b.astext()]
        if not blocks:
            raise self.error(f"no cell of {self.arguments[0]} has the placeholder")
        blocks[0].parent["classes"].append("exercise-begun")
        blocks[0].replace_self(_code(blocks[0].astext().replace(PLACEHOLDER, lines)))

    def hints(self, topic: str, key: str) -> nodes.Element:
        """Return the hints of an exercise, each folded within the one before."""
        for file in answers.files_with_hints(topic):
            self.env.note_dependency(str(file))
        texts = answers.hints(key)
        fold: list[nodes.Node] = []
        for number, text in reversed([*enumerate(texts, 1)]):
            title = element("summary", f"Hint {number} of {len(texts)}")
            inside = (title, *self.parse_text_to_nodes(text), *fold)
            fold = [element("details", *inside, class_="exercise-hints")]
        return fold[0]

    def solution(self, topic: str, name: str) -> nodes.Element:
        """Return an answer of the course; the script shows it after some attempts."""
        path = Path(self.env.srcdir) / "solutions" / topic / f"{topic}.ipynb"
        self.env.note_dependency(str(path))
        cells = (cell for exercise in exercises(path).values() for cell in exercise.cells)
        source = answers.right(next(source for _, cell, source in cells if cell == name))
        title = element("summary", "A solution")
        return element("details", title, _code(source), class_="exercise-solution", hidden="")

    def box(self, name: str, label: str, title: str) -> nodes.container:
        """Return the box of an exercise, with its title alone; the first loads the script."""
        text = nodes.strong("", label), nodes.Text(f" · {title}")
        line = nodes.paragraph("", "", *text, classes=["exercise-title"])
        box = nodes.container("", line, classes=["exercise"], ids=[f"exercise-{name}"])
        if not self.env.temp_data.get("exercise"):
            self.env.temp_data["exercise"] = True
            script = f'<script src="{static(self.env)}/python/start.js"></script>'
            box += nodes.raw("", script, format="html")
        return box


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx about the directives."""
    app.add_config_value("self_study", False, "env", types=[bool])
    app.add_css_file("python/exercise.css")  # in the head, so that no box moves when it arrives
    app.add_directive("exercise", ExerciseDirective)
    app.add_directive("exercises", ExerciseDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
