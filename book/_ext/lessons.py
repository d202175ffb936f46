"""What makes a page a lesson: its first line, its cards, the numbers in its prose, its lists.

``lesson`` stands below the title, ``cards`` at the end of the page, ``lessons`` on the first page
of a chapter, ``exercise-list`` on the page of an assignment, ``course-list`` on *My course*.
The role ``number`` prints what a cell has computed; `tools.site.execution` evaluates it. What a
reader has done is shown by the script ``progress.js``, in the room that the lists reserve for it.
"""

import hashlib
import posixpath
import re
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from elements import element, html, shown
from markupsafe import Markup
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective, SphinxRole

ROW = re.compile(r"^\(((?:L1|L2|P|F)-\d\d)\)=", re.MULTILINE)


@dataclass(frozen=True)
class Lesson:
    """What a reader is told of a lesson; it needs the lessons with these labels."""

    minutes: int
    needs: tuple[str, ...]
    spine: bool
    appendix: bool


def lessons_of(env: BuildEnvironment) -> dict[str, Lesson]:
    """Return the lessons that have been read, by their pages; Sphinx keeps them up to date."""
    return {page: data["lesson"] for page, data in env.metadata.items() if "lesson" in data}


class LessonDirective(SphinxDirective):
    """The line below the title of a lesson: minutes, what it needs, the rows that it teaches."""

    option_spec = {  # noqa: RUF012
        "minutes": directives.positive_int,
        "needs": directives.unchanged,
        "spine": directives.flag,
        "appendix": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        """Return the line, in Markdown, and remember the lesson."""
        if "minutes" not in self.options:
            raise self.error("a lesson needs the option :minutes:, the time to read it")
        needs = tuple(re.findall(r"[\w-]+", self.options.get("needs") or ""))
        flags = {name: name in self.options for name in ("spine", "appendix")}
        lesson = Lesson(self.options["minutes"], needs, **flags)
        self.env.metadata[self.env.docname]["lesson"] = lesson
        rows = ROW.findall(Path(self.env.doc2path(self.env.docname)).read_text("utf-8"))
        parts = (
            f"{lesson.minutes} minutes",
            "on the {ref}`spine <spine>`" if lesson.spine else "",
            "appendix" if lesson.appendix else "",
            needs and "needs " + ", ".join(f"{{ref}}`{label}`" for label in needs),
            rows and "teaches " + ", ".join(rows),
        )
        line = self.parse_text_to_nodes(" · ".join(part for part in parts if part))
        return [nodes.container("", *line, classes=["lesson-line"])]


def note(app: Sphinx, doctree: nodes.document) -> None:
    """Remember what a reader does in a lesson: the names of its answers, and of its cards."""
    cells = [cell for box in doctree.findall(_is_exercise) for cell in _answers(box)]
    names = [name for card in doctree.findall(html) for name in card["ids"]]
    app.env.metadata[app.env.docname]["work"] = (
        [cell["ids"][0].removeprefix("cell-") for cell in cells],
        [name.removeprefix("card-") for name in names if name.startswith("card-")],
    )


def _is_exercise(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and "exercise" in node["classes"]


def _answers(box: Any) -> list[nodes.container]:
    """Return the cells of an exercise that a check looks at."""
    cells = box.findall(nodes.container)
    return [cell for cell in cells if "exercise-answer" in cell["classes"]]


LISTS = ("lessons", "lessons spine", "exercise-list", "course-list")


class unfilled(nodes.General, nodes.TextElement):  # noqa: N801
    """Stands where a list will be, when all pages have been read."""


class ListDirective(SphinxDirective):
    """A list of ``lessons`` (or with ``spine`` of those on it), of exercises, or of the course."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the place of the list."""
        kind = " ".join((self.name, *self.arguments))
        if kind not in LISTS:
            raise self.error(f"expected one of {', '.join(LISTS)}; got {kind}")
        return [unfilled(kind=kind)]


def visit_list(writer: Any, node: unfilled) -> None:
    """Write a list as ``lists.html`` tells; the search finds its words in the tree."""
    builder, page = writer.builder, writer.builder.current_docname
    lessons, ordered = lessons_of(builder.env), in_order(builder.env)
    listed = [name for name in builder.env.toctree_includes.get(page, ()) if name in lessons]
    if "spine" in node["kind"]:
        listed = [name for name in ordered if lessons[name].spine]
    boxes = list(node.document.findall(_is_exercise))
    context = {
        "kind": node["kind"],
        "labels": builder.env.get_domain("std").labels,
        "minutes": {name: lesson.minutes for name, lesson in lessons.items()},
        "pages": {name: lessons[name] for name in listed if not lessons[name].appendix},
        "appendices": [name for name in listed if lessons[name].appendix],
        "boxes": boxes,
        "checked": [box for box in boxes if _answers(box)],
        "chapters": {f: list(names) for f, names in groupby(ordered, posixpath.dirname)},
        "work": {name: builder.env.metadata[name]["work"] for name in ordered},
        "uri": partial(builder.get_relative_uri, page),
        "name": partial(title_of, builder.app, numbered=False),
    }
    text = builder.templates.render("lists.html", context)
    writer.body.append(text)
    node += nodes.Text(Markup(text).striptags())
    raise nodes.SkipNode


def in_order(env: BuildEnvironment) -> list[str]:
    """Return all lessons in the order of the contents."""
    return [page for page in env.collect_relations() if page in lessons_of(env)]


@cache
def title_of(app: Sphinx, page: str, numbered: bool = True) -> str:
    """Return the title of a page as HTML, with its number or without it."""
    title = app.env.titles[page].deepcopy()
    shown = title if numbered else nodes.inline("", "", *title.children)
    return app.builder.render_partial(shown)["title" if numbered else "fragment"]


class CardsDirective(SphinxDirective):
    """What is worth knowing in a year: questions with short answers, as a definition list.

    The name of a card is made from its page and its question: a new question is a new card.
    """

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return each card as a question that unfolds its answer."""
        content = self.parse_content_to_nodes()
        if len(content) != 1 or not isinstance(content[0], nodes.definition_list):
            message = "cards are questions, each with its answer below it after a colon and a space"
            raise self.error(message)
        title = element("p", "To remember", class_="cards-title")
        cards = element("div", title, class_="cards", ids=["cards"])
        for term, *_, definition in (item.children for item in content[0].children):
            name = hashlib.sha256(f"{self.env.docname}\n{term.astext()}".encode()).hexdigest()
            inside = element("summary", *term.children), *definition.children
            cards += element("details", *inside, class_="card", ids=[f"card-{name[:6]}"])
        return [cards]


class NumberRole(SphinxRole):
    """A number that the page computes: a field of an f-string, such as ``error[-1]:.2f``."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the number as text."""
        name = " ".join(self.text.split())
        if value := shown(self.env).get("numbers", {}).get(name):
            return [element("span", value, data_number=name)], []
        text = f"no cell of this page has computed the number {name}"
        return [], [self.inliner.reporter.error(text, line=self.lineno)]


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx about the directives and the role."""
    app.add_node(unfilled, html=(visit_list, None))
    for name in ("lessons", "exercise-list", "course-list"):
        app.add_directive(name, ListDirective)
    app.add_directive("lesson", LessonDirective)
    app.add_directive("cards", CardsDirective)
    app.add_role("number", NumberRole())
    app.add_css_file("progress.css")
    app.add_js_file("progress.js")
    app.connect("doctree-read", note)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
