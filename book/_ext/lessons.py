"""What makes a page a lesson: its first line, its cards, the numbers in its prose, its lists.

``lesson`` stands below the title, ``cards`` at the end of the page, ``lessons`` on the first page
of a chapter, ``exercise-list`` on the page of an assignment, ``card-list`` on that of all cards.
The role ``number`` prints what a cell has computed; `tools.execution` evaluates it. What a reader
has done is shown by the script ``progress.js``, in the room that the lists reserve for it.
"""

import hashlib
import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from elements import element, html, link
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective, SphinxRole

ROW = re.compile(r"^\(((?:L1|L2|P|F)-\d\d)\)=", re.MULTILINE)
CARD = re.compile(r'<details class="card" id="card-(\w+)">(.*?)</details>', re.DOTALL)


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


class unfilled(nodes.General, nodes.Element):  # noqa: N801
    """Stands where a list will be, when all pages have been read."""


class ListDirective(SphinxDirective):
    """A list of ``lessons`` (or with ``spine`` of those on it), of exercises, or of cards."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the place of the list."""
        kind = " ".join((self.name, *self.arguments))
        if kind not in LISTS:
            raise self.error(f"expected one of {', '.join(LISTS)}; got {kind}")
        return [unfilled(kind=kind)]


def fill_lists(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Put the lists in their places."""
    for place in list(doctree.findall(unfilled)):
        place.replace_self(LISTS[place["kind"]](app, doctree, page))


def _below(app: Sphinx, doctree: nodes.document, page: str) -> list[nodes.Node]:
    return _lessons(app, page, app.env.toctree_includes.get(page, ()))


def _on_spine(app: Sphinx, doctree: nodes.document, page: str) -> list[nodes.Node]:
    lessons = lessons_of(app.env)
    return _lessons(app, page, (n for n in in_order(app.env) if n in lessons and lessons[n].spine))


def _lessons(app: Sphinx, page: str, pages: Iterable[str]) -> list[nodes.Node]:
    """Return the lessons among these pages, and links to the appendices among them."""
    lessons = lessons_of(app.env)
    pages = [name for name in pages if name in lessons]
    main = [name for name in pages if not lessons[name].appendix]
    more = [name for name in pages if lessons[name].appendix]
    items = (_item(app, page, name, main) for name in main)
    total = _counted(f"{len(main)} lessons, {sum(lessons[n].minutes for n in main)} minutes")
    appendices = nodes.paragraph("", "Not needed on the way: ")
    for number, name in enumerate(more):
        appendices += [nodes.Text(" · " if number else ""), _link(app, page, name)]
    return [total, element("ol", *items, class_="lessons"), *([appendices] if more else [])]


def _counted(text: str) -> html:
    """Return the line above a list, with room for how much of the list is done."""
    return element("p", text, element("span", class_="done-count"))


def in_order(env: BuildEnvironment) -> list[str]:
    """Return all pages in the order of the contents."""

    def below(page: str) -> Iterator[str]:
        yield page
        for child in env.toctree_includes.get(page, ()):
            yield from below(child)

    return list(dict.fromkeys(below(env.config.root_doc)))


def _item(app: Sphinx, page: str, name: str, main: list[str]) -> nodes.Element:
    """Return a lesson as an item of a list: its title, its minutes, and what it needs.

    A lesson of the same list is named by its number there, one of another chapter by its title.
    """
    lesson, labels = lessons_of(app.env)[name], app.env.get_domain("std").labels
    item = element("li", _link(app, page, name), f" · {lesson.minutes} minutes")
    if lesson.spine:
        item += [nodes.Text(" · "), element("span", "spine", class_="spine")]
    for number, other in enumerate(labels[need][0] for need in lesson.needs if need in labels):
        item += nodes.Text(", " if number else " · needs ")
        item += nodes.Text(str(main.index(other) + 1)) if other in main else _link(app, page, other)
    item += element("span", class_="done-mark")
    return item


def _link(app: Sphinx, page: str, name: str, anchor: str = "") -> nodes.reference:
    return link(app, page, name, *app.env.titles[name].deepcopy().children, anchor=anchor)


def contents(env: BuildEnvironment, page: str) -> list[tuple[str | None, list[tuple[str, str]]]]:
    """Return the parts of the contents below a page: a caption, and titles and names of pages.

    A page that has no title here has its own.
    """
    trees = env.tocs[page].findall(addnodes.toctree) if page in env.tocs else ()
    return [(tree.get("caption"), tree["entries"]) for tree in trees]


@cache
def title_of(app: Sphinx, page: str) -> str:
    """Return the title of a page with its number, as HTML."""
    return app.builder.render_partial(app.env.titles[page])["title"]


def _exercises(app: Sphinx, doctree: nodes.document, page: str) -> list[nodes.Node]:
    """Return the exercises of a page, with room for what has been solved."""
    boxes = list(doctree.findall(_is_exercise))
    listed = element("ul", class_="exercise-list")
    for box in boxes:
        number, title, *points = box[0].deepcopy().children
        to_box = nodes.reference("", "", number, title, internal=True, refid=box["ids"][0])
        mark = [element("span", class_="done-mark")] if _answers(box) else []
        listed += element("li", to_box, *points, *mark)
    return [_counted(f"{sum(map(bool, map(_answers, boxes)))} exercises with a check"), listed]


def _cards(app: Sphinx, doctree: nodes.document, page: str) -> html:
    """Return links to the cards of all lessons, by chapter."""
    lessons = (name for name in in_order(app.env) if name in lessons_of(app.env))
    chapters = []
    for folder, names in groupby(lessons, posixpath.dirname):
        title = element("strong", *app.env.titles[f"{folder}/index"].deepcopy().children)
        chapters.append(element("p", title, data_topic=posixpath.basename(folder)))
        for number, name in enumerate(names):
            chapters[-1] += nodes.Text(" · " if number else ": ")
            chapters[-1] += _link(app, page, name, "cards")
    return element("div", *chapters, class_="card-list")


LISTS = {
    "lessons": _below,
    "lessons spine": _on_spine,
    "exercise-list": _exercises,
    "card-list": _cards,
}


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


def write_scripts(app: Sphinx, error: Exception | None) -> None:
    """Write what there is to do in each lesson, and all cards, which the review loads."""
    if error is not None or app.builder.format != "html":
        return
    tasks, cards, lessons = {}, {}, lessons_of(app.env)
    for page in (page for page in in_order(app.env) if page in lessons):
        name = page.removeprefix("book/")
        tasks[name] = [*app.env.metadata[page]["work"], int(lessons[page].appendix)]
        text = Path(app.builder.get_outfilename(page)).read_text("utf-8")
        cards[name] = {match[1]: match[2].strip() for match in CARD.finditer(text)}
    for file, variable, content in (("lessons.js", "LESSONS", tasks), ("cards.js", "CARDS", cards)):
        script = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        path = Path(app.outdir) / "_static" / file
        path.write_text(f"window.{variable} = {script};\n", "utf-8")


class NumberRole(SphinxRole):
    """A number that the page computes: a field of an f-string, such as ``error[-1]:.2f``."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the number as text."""
        # `tools.book` writes the numbers of all pages beside the folder of the site
        numbers = _numbers(Path(self.env.app.outdir).parent / "numbers.json")
        name = " ".join(self.text.split())
        if value := numbers.get(self.env.docname, {}).get(name):
            return [nodes.Text(value)], []
        text = f"no cell of this page has computed the number {name}"
        return [], [self.inliner.reporter.error(text, line=self.lineno)]


@cache
def _numbers(file: Path) -> Mapping[str, Mapping[str, str]]:
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx about the directives and the role."""
    app.add_node(unfilled)
    for name in ("lessons", "exercise-list", "card-list"):
        app.add_directive(name, ListDirective)
    app.add_directive("lesson", LessonDirective)
    app.add_directive("cards", CardsDirective)
    app.add_role("number", NumberRole())
    app.add_css_file("progress.css")
    app.add_js_file("progress.js")
    app.connect("doctree-read", note)
    app.connect("doctree-resolved", fill_lists, priority=400)  # before rows become links
    app.connect("build-finished", write_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
