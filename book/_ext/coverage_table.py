"""Tables of the book that turn into cards on a phone.

``coverage-table`` draws the rows of the course with links to where each is taught;
``stacking-table`` takes any Markdown table. The module is not named ``coverage``: that is a
package which the tests import.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from elements import above, element, html, nothing
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from exercises import exercises
from tools.coverage import Chapter, Evidence, Kind, Row, gather, read_rows, sections

ROOT = Path(__file__).resolve().parent.parent.parent
STYLE = "coverage_table.css"
COLUMNS: tuple[tuple[str, Kind, str], ...] = (
    ("Section", "section", "sections"),
    ("Code", "code", "objects"),
    ("Tests", "test", "tests"),
    ("Exercise", "exercise", "exercises"),
)
"""The name of each column, the evidence in it, and what many of that are called."""
FEW = 3
PAGE = "book/coverage"
"""The page that holds the tables of the rows."""
GATHERED = {"src/optdl": "*.py", "tests": "*.py", "solutions": "*.ipynb", "book": "rows.yml"}
"""Folders, and files below them, of which the tables are made."""
ROW = re.compile(r"\b(?:L1|L2|P|F)-\d\d\b")
UNLINKED = (nodes.literal, nodes.literal_block, nodes.reference, nodes.title, nodes.raw, nodes.math)
"""Where the name of a row stays as it is."""
logger = logging.getLogger(__name__)


class to_label(nodes.General, nodes.Inline, nodes.Element):  # noqa: N801
    """A link to a label of the book, resolved when all pages are read."""


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
        head, *body = [
            [entry.children[0].children if entry.children else [] for entry in row.children]
            for table in self.parse_content_to_nodes()
            for row in table.findall(nodes.row)
        ]
        names = ["".join(node.astext() for node in cell) for cell in head]
        rows = [body_row(names, row, header) for row in body]
        return [table(self.arguments[0], names, rows, "coverage stacking")]


def table(caption: str, names: list[str], rows: list[html], style: str) -> html:
    """Return a table; its roles survive where the style turns rows into cards."""
    head = (element("th", nodes.Text(n), scope="col", role="columnheader") for n in names)
    return element(
        "table",
        element("caption", nodes.Text(caption), class_="visually-hidden"),
        element("thead", element("tr", *head, role="row"), role="rowgroup"),
        element("tbody", *rows, role="rowgroup"),
        class_=style,
        role="table",
    )


def body_row(names: list[str], row: list[list[nodes.Node]], header: int) -> html:
    """Return a row; on a phone each cell after its header shows the name of its column."""
    content = [
        # a name in code font may go on in a new line
        [breakable(node.astext()) if isinstance(node, nodes.literal) else node for node in cell]
        for cell in row
    ]
    *before, named = content[:header]
    what = "coverage-what" if before else "coverage-what coverage-symbol"
    cells = [element("td", *cell, role="cell", class_="coverage-symbol") for cell in before]
    cells.append(element("th", *named, scope="row", role="rowheader", class_=what))
    for name, cell in zip(names[header:], content[header:], strict=True):
        empty = "".join(node.astext() for node in cell) in ("", "–")
        style = {"class_": "coverage-none coverage-empty"} if empty else {}
        cells.append(element("td", element("div", *cell), role="cell", data_label=name, **style))
    return element("tr", *cells, role="row")


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
        self.env.coverage_sections = section_titles()
        chapters = gather(ROOT).chapters
        return [self._section(number, chapter) for number, chapter in enumerate(chapters, 1)]

    def _section(self, number: int, chapter: Chapter) -> nodes.section:
        rows = "1 row" if len(chapter.rows) == 1 else f"{len(chapter.rows)} rows"
        done = f"{chapter.complete} of {rows} complete"
        state = done if chapter.exists else f"chapter to come, {rows}"
        columns = [name for name, _, _ in COLUMNS] if chapter.exists else []
        style = "coverage" if chapter.exists else "coverage coverage-to-come"
        body = [self._row(chapter, row) for row in chapter.rows]
        return nodes.section(
            "",
            nodes.title("", f"{number}. {chapter.title}"),
            nodes.paragraph("", state, classes=["coverage-state"]),
            table(f"{chapter.title}: {state}", ["Row", "What", *columns], body, style),
            ids=[f"coverage-{chapter.topic.replace('_', '-')}"],
        )

    def _row(self, chapter: Chapter, row: Row) -> html:
        header = element("th", nodes.Text(row.name), scope="row", role="rowheader")
        header["ids"] = [f"row-{name.lower()}" for name in ROW.findall(row.name)]
        title = element("td", *self.parse_inline(row.title)[0], role="cell", class_="coverage-what")
        cells = (
            element("td", self._cell(chapter, row, kind, many), role="cell", data_label=name)
            for name, kind, many in (COLUMNS if chapter.exists else ())
        )
        return element("tr", header, title, *cells, role="row")

    def _cell(self, chapter: Chapter, row: Row, kind: Kind, many: str) -> html:
        evidence = row.of(kind)
        if not evidence:
            hole = kind in row.missing
            text, style = ("missing", "coverage-hole") if hole else ("not asked", "coverage-none")
            return element("div", element("span", nodes.Text(text), class_=style))
        listed = element("ul", *(element("li", self._link(chapter, item)) for item in evidence))
        alone = len(evidence) == 1
        if len(evidence) <= FEW and kind != "test":
            return element("div", listed)
        count = element("summary", nodes.Text(f"{len(evidence)} {many}"[: -1 if alone else None]))
        # One name for all: opening one list closes the last.
        return element("div", element("details", count, listed, name="places"))

    def _link(self, chapter: Chapter, item: Evidence) -> nodes.Node:
        if item.kind == "section":
            return to_label("", *self.parse_inline(item.name)[0], target=item.id.lower())
        prefix = f"{chapter.topic}." if item.kind == "code" else ""
        name = breakable(item.name.split("::", 1)[-1].removeprefix(prefix))
        name["entry"] = item.name  # of the API
        if item.kind != "exercise":
            return name
        topic = chapter.topic.replace("_", "-")
        if item.id.startswith("LAB"):
            return to_label("", name, page=f"book/{chapter.topic}/index", anchor=topic)
        page = f"book/exercises/{chapter.topic}"
        return to_label("", name, page=page, anchor=exercise_of(item, f"exercises-{topic}"))


def exercise_of(item: Evidence, whole: str) -> str:
    """Return the anchor of the exercise that asks for a function, or else of the ``whole`` page."""
    asks = re.compile(rf"^(?:def|class) {re.escape(item.name)}\b", re.MULTILINE)
    for name, exercise in exercises(ROOT / item.file).items():
        if any(asks.search(source) for _, _, source in exercise.cells):
            return f"exercise-{name}"
    return whole


def resolve(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Turn each :class:`to_label` into a link to its section."""
    labels = app.env.get_domain("std").labels
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
        if ROW.search(text) and not above(text, *UNLINKED):
            parts = (part for part in re.split(f"({ROW.pattern})", text) if part)
            linked = [
                nodes.reference("", part, refuri=f"{page}#row-{part.lower()}", internal=True)
                if part in known_rows(ROOT)
                else nodes.Text(part)
                for part in parts
            ]
            text.parent.replace(text, linked)


def add_style(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document
) -> None:
    """Load the style on the pages that have such a table, and on no other."""
    if doctree and any(node["tag"] == "table" for node in doctree.findall(html)):
        app.add_css_file(STYLE)


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx about the directives."""
    app.setup_extension("elements")
    plain = (nothing, nothing)
    app.add_node(to_label, html=plain, latex=plain, text=plain)
    app.add_directive("coverage-table", CoverageTable)
    app.add_directive("stacking-table", StackingTable)
    app.connect("env-get-outdated", outdated)
    app.connect("doctree-resolved", resolve)
    app.connect("doctree-resolved", link_rows)
    app.connect("html-page-context", add_style)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
