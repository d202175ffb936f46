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
from elements import above, element, html, link
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from exercises import exercises
from tools.site.coverage import Chapter, Evidence, Row, gather, read_rows, sections

ROOT = Path(__file__).resolve().parent.parent.parent
COLUMNS = (
    ("Section", "section"),
    ("Code", "code"),
    ("Tests", "test"),
    ("Exercise", "exercise"),
)
"""The name of each column, and the evidence in it."""
PAGE = "book/coverage"
"""The page that holds the tables of the rows."""
GATHERED = {"src/optdl": "*.py", "tests": "*.py", "solutions": "*.ipynb", "book": "rows.yml"}
"""Folders, and files below them, of which the tables are made."""
ROW = re.compile(r"\b(?:L1|L2|P|F)-\d\d\b")
UNLINKED = (nodes.literal, nodes.literal_block, nodes.reference, nodes.title, nodes.raw, nodes.math)
"""Where the name of a row stays as it is."""


class StackingTable(SphinxDirective):
    """A Markdown table that turns into cards on a phone; the argument is its caption.

    ``header-column`` names the rows: 1, or 2 after a symbol that a screen reader cannot read.
    """

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"header-column": lambda value: ("1", "2").index(value) + 1}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """Return the table; on a phone the cells after the header have labels."""
        head, *body = [
            [entry.children[0].children if entry.children else [] for entry in row.children]
            for table in self.parse_content_to_nodes()
            for row in table.findall(nodes.row)
        ]
        names = [_words(cell) for cell in head]
        header = self.options.get("header-column", 1)
        rows = [body_row(names, row, header, bare=header) for row in body]
        return [table(self.arguments[0], names, rows, "coverage stacking")]


def _words(cell: list[nodes.Node]) -> str:
    return "".join(node.astext() for node in cell)


def table(caption: str, names: list[str], rows: list[html], style: str) -> html:
    """Return a table; its roles survive where the style turns rows into cards."""
    head = (element("th", name, scope="col", role="columnheader") for name in names)
    return element(
        "table",
        element("caption", caption, class_="visually-hidden"),
        element("thead", element("tr", *head, role="row"), role="rowgroup"),
        element("tbody", *rows, role="rowgroup"),
        class_=style,
        role="table",
    )


def body_row(names: list[str], row: list[list[nodes.Node]], header: int, bare: int) -> html:
    """Return a row; on a phone each cell after the bare ones shows the name of its column."""
    result = element("tr", role="row")
    for column, (name, cell) in enumerate(zip(names, row, strict=True), 1):
        # a name in code font may go on in a new line
        inside = [breakable(n.astext()) if isinstance(n, nodes.literal) else n for n in cell]
        marks = ["coverage-what"] * (column == bare) + ["coverage-symbol"] * (column == 1)
        if column > bare:
            empty = {"class_": "coverage-none coverage-empty"} if _words(cell) in ("", "–") else {}
            content = element("div", *inside)
            result += element("td", content, role="cell", data_label=name, **empty)
        elif column == header:
            ids = [f"row-{name.lower()}" for name in ROW.findall(_words(cell))]
            heads = {"scope": "row", "role": "rowheader", "class_": " ".join(marks)}
            result += element("th", *inside, ids=ids, **heads)
        else:
            result += element("td", *inside, role="cell", class_=" ".join(marks))
    return result


def breakable(name: str) -> html:
    """Return a name in code font that may break after each ``_``, ``.`` and ``::``."""
    parts = re.findall(r".+?(?:[_.(]+|::|$)", name)
    inside = [node for part in parts for node in (part, element("wbr"))]
    return element("code", *inside[:-1])


def section_titles() -> list[tuple[str, str, str]]:
    """Return the label of each row with the heading and the page at which it stands."""
    return [(section.id, section.name, section.file) for section in sections(ROOT)]


def outdated(app: Sphinx, env: Any, *changes: set[str]) -> list[str]:
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
        chapters = (chapter for chapter in gather(ROOT)[0] if chapter.exists)
        return [self._section(number, chapter) for number, chapter in enumerate(chapters, 1)]

    def _section(self, number: int, chapter: Chapter) -> nodes.section:
        rows = "1 row" if len(chapter.rows) == 1 else f"{len(chapter.rows)} rows"
        state = f"{sum(not row.missing for row in chapter.rows)} of {rows} complete"
        names = ["Row", "What", *(name for name, _ in COLUMNS)]
        body = [body_row(names, self._cells(chapter, row), 1, 2) for row in chapter.rows]
        return nodes.section(
            "",
            nodes.title("", f"{number}. {chapter.title}"),
            nodes.paragraph("", state, classes=["coverage-state"]),
            table(f"{chapter.title}: {state}", names, body, "coverage"),
            ids=[f"coverage-{chapter.topic.replace('_', '-')}"],
        )

    def _cells(self, chapter: Chapter, row: Row) -> list[list[nodes.Node]]:
        title = self.parse_inline(row.title)[0]
        evidence = ([self._evidence(chapter, row, kind)] for _, kind in COLUMNS)
        return [[nodes.Text(row.name)], title, *evidence]

    def _evidence(self, chapter: Chapter, row: Row, kind: str) -> html:
        evidence = row.of(kind)
        if not evidence:
            hole = kind in row.missing
            text, style = ("missing", "coverage-hole") if hole else ("not asked", "coverage-none")
            return element("span", text, class_=style)
        listed = element("ul", *(element("li", self._link(chapter, item)) for item in evidence))
        if len(evidence) <= 3 and kind != "test":
            return listed
        what = "object" if kind == "code" else kind
        count = element("summary", f"{len(evidence)} {what}{'s' if len(evidence) > 1 else ''}")
        # One name for all: opening one list closes the last.
        return element("details", count, listed, name="places")

    def _link(self, chapter: Chapter, item: Evidence) -> nodes.Node:
        if item.kind == "section":
            inside = nodes.inline("", "", *self.parse_inline(item.name)[0])
            label = {"reftarget": item.id.lower(), "refdoc": self.env.docname}
            return pending_xref("", inside, reftype="myst", refdomain="", refexplicit=True, **label)
        prefix = f"{chapter.topic}." if item.kind == "code" else ""
        name = breakable(item.name.split("::", 1)[-1].removeprefix(prefix))
        name["entry"] = item.name  # of the API
        if item.kind != "exercise":
            return name
        page, anchor = f"book/{chapter.topic}/index", chapter.topic.replace("_", "-")
        if not item.id.startswith("LAB"):
            page = f"book/exercises/{chapter.topic}"
            anchor = exercise_of(item, f"exercises-{anchor}")
        return link(self.env.app, self.env.docname, page, name, anchor=anchor)


def exercise_of(item: Evidence, whole: str) -> str:
    """Return the anchor of the exercise that asks for a function, or else of the ``whole`` page."""
    asks = re.compile(rf"^(?:def|class) {re.escape(item.name)}\b", re.MULTILINE)
    for name, exercise in exercises(ROOT / item.file).items():
        if any(asks.search(source) for _, _, source in exercise.cells):
            return f"exercise-{name}"
    return whole


@cache
def known_rows(root: Path) -> frozenset[str]:
    """Return the names of all rows in the tables."""
    rows = (row for chapter in read_rows(root) if chapter.exists for row in chapter.rows)
    return frozenset(name for row in rows for name in row.ids)


def link_rows(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Link the name of each row, wherever a page mentions it, to its place in the tables."""
    if docname == PAGE or PAGE not in app.env.all_docs:
        return
    known = known_rows(ROOT)

    def linked(row: nodes.Text) -> nodes.Node:
        return link(app, docname, PAGE, row, anchor=f"row-{row.lower()}")

    for text in list(doctree.findall(nodes.Text)):
        if ROW.search(text) and not above(text, *UNLINKED):
            parts = (nodes.Text(part) for part in re.split(f"({ROW.pattern})", text) if part)
            text.parent.replace(text, [linked(part) if part in known else part for part in parts])


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx about the directives."""
    app.setup_extension("elements")
    app.add_directive("coverage-table", CoverageTable)
    app.add_directive("stacking-table", StackingTable)
    app.connect("env-get-outdated", outdated)
    app.connect("doctree-resolved", link_rows)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
