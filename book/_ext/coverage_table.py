"""Tables of the book that turn into cards on a phone.

``coverage-table`` draws the rows of the course with links to where each is taught;
``stacking-table`` takes any Markdown table. The module is not named ``coverage``: that is a
package which the tests import.
"""

import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT))

from tools.coverage import Chapter, Evidence, Kind, Row, gather, read_rows, sections  # noqa: E402

STYLE = "coverage_table.css"
COLUMNS: tuple[tuple[str, Kind], ...] = (
    ("Section", "section"),
    ("Code", "code"),
    ("Tests", "test"),
    ("Exercise", "exercise"),
)
MANY: dict[Kind, str] = {
    "section": "sections",
    "code": "objects",
    "test": "tests",
    "exercise": "exercises",
}
FEW = 3
PAGE = "book/coverage"
"""The page that holds the tables of the rows."""
GATHERED = {"src/optdl": "*.py", "tests": "*.py", "solutions": "*.ipynb", "book": "rows.yml"}
"""Folders, and files below them, of which the tables are made."""
ROW = re.compile(r"\b(?:L1|L2|P|F)-\d\d\b")
UNLINKED = (nodes.literal, nodes.literal_block, nodes.reference, nodes.title, nodes.raw, nodes.math)
"""Where the name of a row stays as it is."""
logger = logging.getLogger(__name__)


class html(nodes.General, nodes.TextElement):  # noqa: N801
    """One HTML element; other builders write its contents alone."""


class to_label(nodes.General, nodes.Inline, nodes.Element):  # noqa: N801
    """A link to a label of the book, resolved when all pages are read."""


def element(tag: str, *children: nodes.Node, **attributes: str) -> html:
    """Return an HTML element with its children; ``_`` in a name of an attribute means ``-``."""
    named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    return html("", "", *children, tag=tag, html=named)


class StackingTable(SphinxDirective):
    """A Markdown table that turns into cards on a phone; the argument is its caption.

    The option ``header-column`` says which column names the rows: the first, or the second, after
    a symbol that a screen reader cannot read.
    """

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"header-column": lambda value: ("1", "2").index(value) + 1}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """Return the table; on a phone the cells after the header have labels."""
        header = self.options.get("header-column", 1)
        holder = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, holder)
        head, *body = [
            [entry.children[0].children if entry.children else [] for entry in row.children]
            for row in holder.findall(nodes.row)
        ]
        names = ["".join(node.astext() for node in cell) for cell in head]
        return [
            element(
                "table",
                element("caption", nodes.Text(self.arguments[0]), class_="visually-hidden"),
                element("thead", head_row(names), role="rowgroup"),
                element("tbody", *(body_row(names, row, header) for row in body), role="rowgroup"),
                class_="coverage stacking",
                role="table",
            )
        ]


def head_row(names: list[str]) -> html:
    """Return the row that names the columns."""
    cells = (element("th", nodes.Text(n), scope="col", role="columnheader") for n in names)
    return element("tr", *cells, role="row")


def body_row(names: list[str], row: list[list[nodes.Node]], header: int) -> html:
    """Return a row; on a phone each cell after its header shows the name of its column."""
    content = [[spread(node) for node in cell] for cell in row]
    *before, named = content[:header]
    what = "coverage-what" if before else "coverage-what coverage-symbol"
    cells = [element("td", *cell, role="cell", class_="coverage-symbol") for cell in before]
    cells.append(element("th", *named, scope="row", role="rowheader", class_=what))
    for name, cell in zip(names[header:], content[header:], strict=True):
        empty = "".join(node.astext() for node in cell) in ("", "–")
        style = {"class_": "coverage-none coverage-empty"} if empty else {}
        cells.append(element("td", element("div", *cell), role="cell", data_label=name, **style))
    return element("tr", *cells, role="row")


def spread(node: nodes.Node) -> nodes.Node:
    """Let a name in code font go on in a new line."""
    return breakable(node.astext()) if isinstance(node, nodes.literal) else node


def breakable(name: str) -> html:
    """Return a name in code font that may break after each ``_``, ``.`` and ``::``."""
    parts = re.findall(r".+?(?:[_.(]+|::|$)", name)
    inside = [node for part in parts for node in (nodes.Text(part), element("wbr"))]
    return element("code", *inside[:-1])


def section_titles() -> list[tuple[str, str, str]]:
    """Return the label of each row with the heading and the page at which it stands."""
    return [(section.id, section.name, section.file) for section in sections(ROOT)]


def outdated(
    app: Sphinx, env: Any, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """Return the page of the tables when the section of a row has changed."""
    before = getattr(env, "coverage_sections", None)
    return [PAGE] if before is not None and before != section_titles() else []


class CoverageTable(SphinxDirective):
    """Draw one section with a table for each chapter."""

    def run(self) -> list[nodes.Node]:
        """Return the sections, in the order of the book."""
        # what it shows is gathered from other files; `outdated` looks after the pages of the book
        for folder, pattern in GATHERED.items():
            for path in (ROOT / folder).rglob(pattern):
                self.env.note_dependency(str(path))
        self.env.coverage_sections = section_titles()  # type: ignore[attr-defined]
        chapters = gather(ROOT).chapters
        return [self._section(number, chapter) for number, chapter in enumerate(chapters, 1)]

    def _section(self, number: int, chapter: Chapter) -> nodes.section:
        section = nodes.section(ids=[f"coverage-{chapter.topic.replace('_', '-')}"])
        name = f"{number}. {chapter.title}"
        rows = "1 row" if len(chapter.rows) == 1 else f"{len(chapter.rows)} rows"
        done = f"{chapter.complete} of {rows} complete"
        state = done if chapter.exists else f"chapter to come, {rows}"
        section += nodes.title("", name)
        section += nodes.paragraph("", state, classes=["coverage-state"])
        section += self._table(chapter, f"{chapter.title}: {state}")
        return section

    def _table(self, chapter: Chapter, caption: str) -> html:
        columns = COLUMNS if chapter.exists else ()
        names = ["Row", "What", *(name for name, _ in columns)]
        body = [self._row(chapter, row) for row in chapter.rows]
        return element(
            "table",
            element("caption", nodes.Text(caption), class_="visually-hidden"),
            element("thead", head_row(names), role="rowgroup"),
            element("tbody", *body, role="rowgroup"),
            class_="coverage" + ("" if chapter.exists else " coverage-to-come"),
            # Roles survive where the style turns rows into cards.
            role="table",
        )

    def _row(self, chapter: Chapter, row: Row) -> html:
        header = element("th", nodes.Text(row.name), scope="row", role="rowheader")
        header["ids"] = [anchor(name) for name in ROW.findall(row.name)]
        title = element("td", *self._inline(row.title), role="cell", class_="coverage-what")
        cells = [header, title]
        for name, kind in COLUMNS if chapter.exists else ():
            content = element("div", *self._cell(chapter, row, kind))
            cells.append(element("td", content, role="cell", data_label=name))
        return element("tr", *cells, role="row")

    def _cell(self, chapter: Chapter, row: Row, kind: Kind) -> list[nodes.Node]:
        evidence = row.of(kind)
        if not evidence:
            hole = kind in row.missing
            text, style = ("missing", "coverage-hole") if hole else ("not asked", "coverage-none")
            return [element("span", nodes.Text(text), class_=style)]
        listed = element("ul", *(element("li", self._link(chapter, item)) for item in evidence))
        if len(evidence) <= FEW and kind != "test":
            return [listed]
        count = "1 test" if len(evidence) == 1 else f"{len(evidence)} {MANY[kind]}"
        summary = element("summary", nodes.Text(count))
        # One name for all: opening one list closes the last.
        return [element("details", summary, listed, name="places")]

    def _link(self, chapter: Chapter, item: Evidence) -> nodes.Node:
        if item.kind == "section":
            return to_label("", *self._inline(item.name), target=item.id.lower())
        prefix = f"{chapter.topic}." if item.kind == "code" else ""
        name = breakable(item.name.split("::", 1)[-1].removeprefix(prefix))
        name["entry"] = item.name  # of the API
        if item.kind == "exercise":
            topic = chapter.topic.replace("_", "-")
            if item.id.startswith("LAB"):
                return to_label("", name, page=f"book/{chapter.topic}/index", anchor=topic)
            page = f"book/exercises/{chapter.topic}"
            return to_label("", name, page=page, anchor=exercise_of(item, f"exercises-{topic}"))
        return name

    def _inline(self, text: str) -> list[nodes.Node]:
        """Return a title as nodes, with its mathematics."""
        inline, _ = self.state.inline_text(text, self.lineno)
        return list(inline)


def exercise_of(item: Evidence, whole: str) -> str:
    """Return the anchor of the exercise that asks for a function, or else of the ``whole`` page."""
    from exercises import exercises  # here, because it imports this module itself

    asks = re.compile(rf"^(?:def|class) {re.escape(item.name)}\b", re.MULTILINE)
    for name, exercise in exercises(ROOT / item.file).items():
        if any(asks.search(source) for _, _, source in exercise.cells):
            return f"exercise-{name}"
    return whole


def resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Turn each :class:`to_label` into a link to its section."""
    labels = app.env.get_domain("std").labels  # type: ignore[attr-defined]
    for link in list(doctree.findall(to_label)):
        page, anchor = link.get("page", ""), link.get("anchor", "")
        if "target" in link:
            page, anchor, _ = labels.get(link["target"], ("", "", ""))
        if page not in app.env.all_docs:
            logger.warning("no page has the label of %s", link.astext(), location=docname)
            link.replace_self(link.children)
            continue
        uri = f"{app.builder.get_relative_uri(docname, page)}#{anchor}"
        link.replace_self(nodes.reference("", "", *link.children, refuri=uri, internal=True))


def anchor(row: str) -> str:
    """Return the anchor of a row on its page."""
    return f"row-{row.lower()}"


@cache
def known_rows(root: Path) -> frozenset[str]:
    """Return the names of all rows."""
    return frozenset(name for c in read_rows(root) for row in c.rows for name in row.ids)


def link_rows(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Link the name of each row, wherever a page mentions it, to its place in the tables."""
    if docname == PAGE or PAGE not in app.env.all_docs:
        return
    page = app.builder.get_relative_uri(docname, PAGE)
    for text in list(doctree.findall(nodes.Text)):
        if not ROW.search(text) or in_any(text, UNLINKED):
            continue
        parts: list[nodes.Node] = []
        for part in re.split(f"({ROW.pattern})", text):
            if part in known_rows(ROOT):
                uri = f"{page}#{anchor(part)}"
                parts.append(nodes.reference("", part, refuri=uri, internal=True))
            elif part:
                parts.append(nodes.Text(part))
        text.parent.replace(text, parts)


def in_any(node: nodes.Node, kinds: tuple[type[nodes.Node], ...]) -> bool:
    """Return whether a node lies within another of these kinds."""
    while node.parent is not None:
        node = node.parent
        if isinstance(node, kinds):
            return True
    return False


def add_style(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document
) -> None:
    """Load the style on the pages that have such a table, and on no other."""
    if doctree and any(
        "coverage" in node["html"].get("class", "") for node in doctree.findall(html)
    ):
        app.add_css_file(STYLE)


def visit(translator: Any, node: html) -> None:
    """Open an element."""
    attributes = dict(node["html"])
    if "class" in attributes:
        attributes["CLASS"] = attributes.pop("class")
    translator.body.append(translator.starttag(node, node["tag"], "", **attributes))


def depart(translator: Any, node: html) -> None:
    """Close an element."""
    if node["tag"] != "wbr":
        translator.body.append(f"</{node['tag']}>")


def nothing(translator: Any, node: nodes.Node) -> None:
    """Write only what is inside."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx about the directive."""
    plain = (nothing, nothing)
    app.add_node(html, html=(visit, depart), latex=plain, text=plain)
    app.add_node(to_label, html=plain, latex=plain, text=plain)
    app.add_directive("coverage-table", CoverageTable)
    app.add_directive("stacking-table", StackingTable)
    app.connect("config-inited", _add_static)
    app.connect("env-get-outdated", outdated)
    app.connect("doctree-resolved", resolve)
    app.connect("doctree-resolved", link_rows)
    app.connect("html-page-context", add_style)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def _add_static(app: Sphinx, config: Any) -> None:
    config.html_static_path.append(str(HERE / STYLE))
