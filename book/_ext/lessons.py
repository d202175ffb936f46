"""What makes a page a lesson: its first line, its cards, the numbers in its prose, its lists.

``lesson`` stands below the title, ``cards`` at the end of the page, ``lessons`` on the first page
of a chapter, ``exercise-list`` on the page of an assignment, ``review`` and ``card-list`` on the
page of all cards.
The role ``number`` prints what a cell has computed; `tools.execution` evaluates it. What a reader
has done is shown by the script ``progress.js``, in the room that the lists reserve for it.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from coverage_table import element, html
from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective, SphinxRole

ROW = re.compile(r"^\(((?:L1|L2|P|F)-\d\d)\)=", re.MULTILINE)
CARD = re.compile(r'<details class="card" id="card-(\w+)">(.*?)</details>', re.DOTALL)
NUMBERS = "numbers.json"
"""The numbers of all pages, beside the folder of the site; `tools.book` writes it."""
TASKS = "lessons.js"
"""The script with the answers and cards of each lesson, below ``_static``."""
CARDS = "cards.js"
"""The script with all cards, which the page of the review alone loads."""


@dataclass(frozen=True)
class Lesson:
    """What a reader is told of a lesson before it begins.

    Parameters
    ----------
    minutes : int
        An honest reading time.
    needs : tuple of str
        The labels of the lessons that come before.
    spine : bool
        Whether it belongs to the short way through the course.
    appendix : bool
        Whether the way through the chapter goes past it.
    """

    minutes: int
    needs: tuple[str, ...] = ()
    spine: bool = False
    appendix: bool = False


def lessons_of(env: BuildEnvironment) -> dict[str, Lesson]:
    """Return the lessons that have been read, by their pages."""
    if not hasattr(env, "lessons"):
        env.lessons = {}  # type: ignore[attr-defined]
    lessons: dict[str, Lesson] = env.lessons  # type: ignore[attr-defined]
    return lessons


def work(env: BuildEnvironment) -> dict[str, tuple[list[str], list[str]]]:
    """Return what a reader does in each lesson: the names of its answers, and of its cards."""
    if not hasattr(env, "lesson_work"):
        env.lesson_work = {}  # type: ignore[attr-defined]
    result: dict[str, tuple[list[str], list[str]]] = env.lesson_work  # type: ignore[attr-defined]
    return result


# --- The line below a title ---------------------------------------------------------------------


class LessonDirective(SphinxDirective):
    """The line below the title of a lesson: minutes, what it needs, the rows that it teaches."""

    option_spec = {  # noqa: RUF012
        "minutes": directives.positive_int,
        "needs": directives.unchanged,
        "spine": directives.flag,
        "appendix": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        """Return the line, and remember the lesson."""
        if "minutes" not in self.options:
            raise self.error("a lesson needs the option :minutes:, the time to read it")
        needs = tuple(re.findall(r"[\w-]+", self.options.get("needs") or ""))
        flags = {name: name in self.options for name in ("spine", "appendix")}
        lesson = Lesson(self.options["minutes"], needs, **flags)
        lessons_of(self.env)[self.env.docname] = lesson
        line = nodes.container(classes=["lesson-line"])
        self.state.nested_parse(StringList([" · ".join(self.parts(lesson))], ""), 0, line)
        return [line]

    def parts(self, lesson: Lesson) -> Iterator[str]:
        """Yield the parts of the line as Markdown."""
        yield f"{lesson.minutes} minutes"
        if lesson.spine:
            yield "on the {ref}`spine <spine>`"
        if lesson.appendix:
            yield "appendix"
        if lesson.needs:
            yield "needs " + ", ".join(f"{{ref}}`{label}`" for label in lesson.needs)
        source = Path(self.env.doc2path(self.env.docname)).read_text(encoding="utf-8")
        if rows := ROW.findall(source):
            yield "teaches " + ", ".join(rows)


# --- Lists of lessons ---------------------------------------------------------------------------


class lesson_list(nodes.General, nodes.Element):  # noqa: N801
    """Stands where a list of lessons will be, when all pages have been read."""


class LessonsDirective(SphinxDirective):
    """The lessons of the chapter that begins with this page; with ``spine``, those of the spine."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the place of the list."""
        if self.arguments not in ([], ["spine"]):
            raise self.error(f"expected no argument, or spine; got {self.arguments[0]}")
        return [lesson_list(spine=bool(self.arguments))]


def fill_lists(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Put the lists of lessons in their places."""
    for placeholder in list(doctree.findall(lesson_list)):
        lessons = lessons_of(app.env)
        if placeholder["spine"]:
            names = [name for name in in_order(app.env) if name in lessons and lessons[name].spine]
        else:
            names = [name for name in app.env.toctree_includes.get(page, ()) if name in lessons]
        main = [name for name in names if not lessons[name].appendix]
        more = [name for name in names if lessons[name].appendix]
        items = (_item(app, page, name, main) for name in main)
        minutes = sum(lessons[name].minutes for name in main)
        total = _counted(f"{len(main)} lessons, {minutes} minutes")
        filled: list[nodes.Node] = [total, element("ol", *items, class_="lessons")]
        if more:
            appendices = nodes.paragraph("", "Not needed on the way: ")
            for number, name in enumerate(more):
                appendices += [nodes.Text(" · " if number else ""), _link(app, page, name)]
            filled.append(appendices)
        placeholder.replace_self(filled)


def _counted(text: str) -> html:
    """Return the line above a list, with room for how much of the list is done."""
    return element("p", nodes.Text(text), element("span", class_="done-count"))


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
    lesson = lessons_of(app.env)[name]
    item = element("li", _link(app, page, name), nodes.Text(f" · {lesson.minutes} minutes"))
    if lesson.spine:
        item += [nodes.Text(" · "), element("span", nodes.Text("spine"), class_="spine")]
    labels = app.env.get_domain("std").labels  # type: ignore[attr-defined]
    needed = [labels[label][0] for label in lesson.needs if label in labels]
    for number, other in enumerate(needed):
        item += nodes.Text(", " if number else " · needs ")
        if other in main:
            item += nodes.Text(str(main.index(other) + 1))
        else:
            item += _link(app, page, other)
    item += element("span", class_="done-mark")
    return item


def _link(app: Sphinx, page: str, name: str) -> nodes.reference:
    uri = app.builder.get_relative_uri(page, name)
    link = nodes.reference("", "", internal=True, refuri=uri)
    link += [child.deepcopy() for child in app.env.titles[name].children]
    return link


def contents(env: BuildEnvironment, page: str) -> list[tuple[str | None, list[tuple[str, str]]]]:
    """Return the parts of the contents below a page: a caption, and titles and names of pages.

    A page that has no title here has its own.
    """
    trees = env.tocs[page].findall(addnodes.toctree) if page in env.tocs else ()
    return [(tree.get("caption"), tree["entries"]) for tree in trees]


@cache
def title_of(app: Sphinx, page: str) -> str:
    """Return the title of a page with its number, as HTML."""
    title: str = app.builder.render_partial(app.env.titles[page])["title"]  # type: ignore[attr-defined]
    return title


# --- Exercises of an assignment -----------------------------------------------------------------


class exercise_list(nodes.General, nodes.Element):  # noqa: N801
    """Stands where a list of exercises will be, when the page has been read."""


class ExerciseListDirective(SphinxDirective):
    """The exercises of the page, with room for what has been solved."""

    def run(self) -> list[nodes.Node]:
        """Return the place of the list."""
        return [exercise_list()]


def note(app: Sphinx, doctree: nodes.document) -> None:
    """Remember what a reader does in a lesson, and list the exercises where a page asks for it."""
    boxes = [box for box in doctree.findall(nodes.container) if "exercise" in box["classes"]]
    if app.env.docname in lessons_of(app.env):
        answers = [cell["ids"][0].removeprefix("cell-") for box in boxes for cell in _answers(box)]
        cards = [name for card in doctree.findall(html) for name in _cards_of(card)]
        work(app.env)[app.env.docname] = (answers, cards)
    for placeholder in list(doctree.findall(exercise_list)):
        checked = sum(bool(_answers(box)) for box in boxes)
        items = [_exercise(box) for box in boxes]
        listed = element("ul", *items, class_="exercise-list")
        placeholder.replace_self([_counted(f"{checked} exercises with a check"), listed])


def _answers(box: nodes.container) -> list[nodes.container]:
    """Return the cells of an exercise that a check looks at."""
    cells = box.findall(nodes.container)
    return [cell for cell in cells if "exercise-answer" in cell["classes"]]


def _cards_of(card: html) -> list[str]:
    return [name.removeprefix("card-") for name in card["ids"] if name.startswith("card-")]


def _exercise(box: nodes.container) -> html:
    """Return an exercise as an item of a list: a link, its points, and room for a mark."""
    number, title, *points = (part.deepcopy() for part in box.children[0].children)
    link = nodes.reference("", "", number, title, internal=True, refid=box["ids"][0])
    mark = [element("span", class_="done-mark")] if _answers(box) else []
    return element("li", link, *points, *mark)


# --- Cards --------------------------------------------------------------------------------------


class CardsDirective(SphinxDirective):
    """What is worth knowing in a year: questions with short answers, as a definition list.

    The name of a card is made from its page and its question: a new question is a new card.
    """

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return each card as a question that unfolds its answer."""
        holder = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, holder)
        if len(holder) != 1 or not isinstance(holder[0], nodes.definition_list):
            raise self.error(
                "cards are questions, each with its answer below it after a colon and a space"
            )
        cards = element("div", class_="cards")
        cards["ids"] = ["cards"]
        cards += element("p", nodes.Text("To remember"), class_="cards-title")
        for item in holder[0].children:
            term, definition = item.children[0], item.children[-1]
            card = element("details", element("summary", *term.children), class_="card")
            name = hashlib.sha256(f"{self.env.docname}\n{term.astext()}".encode()).hexdigest()
            card["ids"] = [f"card-{name[:6]}"]
            card += definition.children
            cards += card
        return [cards]


class ReviewDirective(SphinxDirective):
    """The cards that are due: the script ``review.js`` shows them one after the other."""

    def run(self) -> list[nodes.Node]:
        """Return the place of the cards."""
        static = "../" * self.env.docname.count("/") + "_static"
        scripts = (
            f'<script defer src="{static}/{name}"></script>' for name in (CARDS, "review.js")
        )
        note = (
            "<noscript><p>This needs JavaScript. Without it, the cards of a lesson are questions "
            "that unfold their answers; links to them are below.</p></noscript>"
        )
        deck = f'<div id="review-deck">{note}</div>{"".join(scripts)}'
        return [nodes.raw("", deck, format="html")]


class card_list(nodes.General, nodes.Element):  # noqa: N801
    """Stands where links to all cards will be, when all pages have been read."""


class CardListDirective(SphinxDirective):
    """Links to the cards of all lessons, by chapter."""

    def run(self) -> list[nodes.Node]:
        """Return the place of the list."""
        return [card_list()]


def fill_card_lists(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Link to the cards of all lessons, by chapter."""
    for placeholder in list(doctree.findall(card_list)):
        chapters: dict[str, html] = {}
        for name in in_order(app.env):
            if name in lessons_of(app.env):
                topic = posixpath.dirname(name)
                if topic not in chapters:
                    first = element("strong", *app.env.titles[f"{topic}/index"].deepcopy().children)
                    chapters[topic] = element("p", first, nodes.Text(": "))
                    chapters[topic]["html"]["data-topic"] = posixpath.basename(topic)
                else:
                    chapters[topic] += nodes.Text(" · ")
                link = _link(app, page, name)
                link["refuri"] += "#cards"
                chapters[topic] += link
        placeholder.replace_self(element("div", *chapters.values(), class_="card-list"))


def write_scripts(app: Sphinx, error: Exception | None) -> None:
    """Write what there is to do in each lesson, and all cards as they stand on their pages.

    The formulas of the pages have been typeset by now.
    """
    if error is not None or app.builder.format != "html":
        return
    static, tasks, cards = Path(app.outdir) / "_static", {}, {}
    for page in in_order(app.env):
        if page not in work(app.env):
            continue
        name = page.removeprefix("book/")
        tasks[name] = [*work(app.env)[page], int(lessons_of(app.env)[page].appendix)]
        text = Path(app.builder.get_outfilename(page)).read_text("utf-8")  # type: ignore[attr-defined]
        cards[name] = {match[1]: match[2].strip() for match in CARD.finditer(text)}
    for file, variable, content in ((TASKS, "LESSONS", tasks), (CARDS, "CARDS", cards)):
        script = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        (static / file).write_text(f"window.{variable} = {script};\n", "utf-8")


# --- Numbers in the prose -----------------------------------------------------------------------


class NumberRole(SphinxRole):
    """A number that the page computes: a field of an f-string, such as ``error[-1]:.2f``."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the number as text."""
        numbers = _numbers(Path(self.env.app.outdir).parent / NUMBERS)
        name = " ".join(self.text.split())
        value = numbers.get(self.env.docname, {}).get(name)
        if value is None:
            message = self.inliner.reporter.error(
                f"no cell of this page has computed the number {name}", line=self.lineno
            )
            return [], [message]
        return [nodes.Text(value)], []


@cache
def _numbers(file: Path) -> Mapping[str, Mapping[str, str]]:
    numbers: Mapping[str, Mapping[str, str]] = (
        json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    )
    return numbers


# --- Sphinx -------------------------------------------------------------------------------------


def purge(app: Sphinx, env: BuildEnvironment, page: str) -> None:
    """Forget a page that is read again."""
    lessons_of(env).pop(page, None)
    work(env).pop(page, None)


def merge(app: Sphinx, env: BuildEnvironment, pages: Sequence[str], other: Any) -> None:
    """Take the lessons that another process has read."""
    for table in (lessons_of, work):
        table(env).update({name: table(other)[name] for name in pages if name in table(other)})


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx about the directives and the role."""
    for node in (lesson_list, exercise_list, card_list):
        app.add_node(node)
    app.add_directive("lesson", LessonDirective)
    app.add_directive("lessons", LessonsDirective)
    app.add_directive("cards", CardsDirective)
    app.add_directive("exercise-list", ExerciseListDirective)
    app.add_directive("review", ReviewDirective)
    app.add_directive("card-list", CardListDirective)
    app.add_role("number", NumberRole())
    app.add_css_file("progress.css")
    app.add_js_file("progress.js")
    app.connect("doctree-read", note)
    app.connect("doctree-resolved", fill_lists)
    app.connect("doctree-resolved", fill_card_lists)
    app.connect("env-purge-doc", purge)
    app.connect("env-merge-info", merge)
    # after the formulas
    app.connect("build-finished", write_scripts, priority=700)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
