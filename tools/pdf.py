"""Print the book as one PDF: title page, contents with page numbers, chapters in their order.

Run as ``python -m tools.pdf``. It builds the site where anything has changed, joins its pages, and
has Chromium print them, without a network. The PDF is in ``_build``.
"""

import argparse
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import yaml  # type: ignore[import-untyped]
from bs4 import BeautifulSoup, Tag

from tools import book
from tools.layout import contents
from tools.progress import OnProgress, Stages
from tools.terminal import ToolError, console, run

ROOT = Path(__file__).resolve().parent.parent
NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
)
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
OLDEST = 131
"""The first Chromium that writes numbers into the margins of pages as a style sheet says."""
WIDTH = 665
"""Pixels between the margins of a page."""
UNLISTED = {"Summary", "Assignment", "Sources", "References"}
"""Sections that every chapter has; the contents do not list them."""
PATIENCE = 1_800_000
"""Milliseconds that laying out or printing may take; only what hangs takes so long."""

STYLE = """
@page { margin: 18mm 17mm 20mm; size: A4;
  @bottom-center { content: counter(page); font: 9pt "Liberation Sans", Arial, sans-serif; } }
@page :first { @bottom-center { content: none; } }
article.bd-article { break-before: page; }
.title-page { padding-top: 30%; text-align: center; }
.title-page p.title { font-size: 34pt; font-weight: 650; line-height: 1.2; margin: 2rem 0 1rem; }
.title-page img { height: 90px; }
.book-contents { break-before: page; }
.book-contents h1 { font-size: 22pt; margin: 0 0 1rem; }
.book-contents p { break-after: avoid; font-weight: 650; margin: 1rem 0 0.2rem; }
.book-contents a { color: inherit; display: flex; gap: 0.4rem; text-decoration: none; }
.book-contents a.section { font-size: 9pt; padding-left: 1.4rem; }
.book-contents a .dots { border-bottom: 1px dotted #999; flex: 1; margin-bottom: 0.3em; }
.book-contents a .page { min-width: 2.2em; text-align: right; }
"""
FORMULA = re.compile(r"<mjx-container[^>]*>(.*?)</mjx-container>", re.DOTALL)
# A formula or a table that is wider than the page is drawn smaller.
FIT = """(width) => {
  for (const block of document.querySelectorAll(
      "article div.math mjx-container, article span.math mjx-container, article table")) {
    const math = block.querySelector("mjx-math");
    const wide = Math.max(block.scrollWidth, math ? math.getBoundingClientRect().width : 0);
    const number = block.parentElement.querySelector(".eqno");
    const room = width - (number ? number.getBoundingClientRect().width + 12 : 0);
    if (wide > room) block.style.zoom = Math.max(0.4, 0.98 * room / wide);
  }
}"""
OVERFLOW = """(width) => [...document.querySelectorAll("article *, nav *")].filter((e) => {
  const box = e.getBoundingClientRect();
  const hidden = e.closest("mjx-assistive-mml, .visually-hidden");
  return box.width > 1 && box.right > width + 2 && !hidden;
}).map((e) => e.outerHTML.slice(0, 120))"""


@dataclass
class Heading:
    """A chapter or a section, as the contents list it.

    Parameters
    ----------
    target : str
        The id of its place in the joined document.
    text : str
        Its number and title.
    level : int
        1 for a chapter, 2 for a section.
    part : str
        What the part of the book is called, where one begins.
    """

    target: str
    text: str
    level: int
    part: str = ""


def find_chromium() -> str | None:
    """Return a Chromium or Chrome of this machine; the variable CHROMIUM names one."""
    named = os.environ.get("CHROMIUM")
    programs = [shutil.which(name) for name in ([named] if named else NAMES)]
    return next((path for path in programs if path), None) or next(
        (path for path in PLACES if not named and Path(path).exists()), None
    )


# --- One document of all pages --------------------------------------------------------------------


def _key(page: str) -> str:
    return page.replace("/", "-")


def join(site: Path, root: Path) -> tuple[str, list[Heading]]:
    """Return the pages of a site as one document, and its headings.

    Parameters
    ----------
    site : Path
        The folder of the built site.
    root : Path
        The folder of the book's sources, which has the contents.
    """
    # what is looked up on a screen, by links and by search, is not printed
    pages = [page for page in contents(root) if not page.startswith(("book/api", "book/review"))]
    parts = _parts(root)
    articles, headings, styles = [], [], []
    formulas: list[str] = []

    def aside(formula: re.Match[str]) -> str:
        formulas.append(formula[0])
        return f"<mjx-container>{len(formulas) - 1}</mjx-container>"

    for page in pages:
        file = site / f"{page}.html"
        # Formulas are most of a page, and stay as they are.
        text = FORMULA.sub(aside, file.read_text("utf-8"))
        soup = BeautifulSoup(text, "html.parser")
        article = soup.select_one("article.bd-article")
        if article is None:
            raise ToolError(f"{file} has no text", "build the site again: make book")
        _localize(article, page, pages, file)
        headings += _headings(article, page, parts.get(page, ""), formulas)
        articles.append(str(article))
        for link in soup.select('link[rel="stylesheet"]'):
            styles.append((file.parent / urldefrag(str(link["href"]).split("?")[0])[0]).resolve())
    front = _front(site, root, headings)
    head = "".join(f'<link rel="stylesheet" href="{s.as_uri()}">' for s in dict.fromkeys(styles))
    document = (
        f'<!DOCTYPE html><html lang="en" data-theme="light" data-mode="light"><head>'
        f'<meta charset="utf-8"><title>{escape(_title(root))}</title>{head}<style>{STYLE}</style>'
        f"</head><body>{front}"
        f'<div class="bd-main"><div class="bd-content"><div class="bd-article-container">'
        f"{''.join(articles)}</div></div></div></body></html>"
    )
    # On paper the letters are what is read: their MathML is not printed.
    read = [formula.replace(' aria-hidden="true"', "") for formula in formulas]
    return FORMULA.sub(lambda match: read[int(match[1])], document), headings


def _title(root: Path) -> str:
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    return str(config["title"])


def _parts(root: Path) -> dict[str, str]:
    """Return the caption of each part, by its first page."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    return {part["chapters"][0]["file"]: part.get("caption", "") for part in toc.get("parts", [])}


def _localize(article: Tag, page: str, pages: Sequence[str], file: Path) -> None:
    """Give what a page refers to its place in the joined document."""
    for control in article.select("script, link, style, button, .headerlink"):
        control.decompose()
    for folded in article.select(".cell:not(.tag_setup) > details.hide"):
        folded.decompose()
    for folded in article.select("details:not(table details)"):
        folded["open"] = ""
    key = _key(page)
    for tag in article.select("[id]"):
        tag["id"] = f"{key}--{tag['id']}"
    article["id"] = key
    for image in article.select("[src]"):
        image["src"] = _address(str(image["src"]), file)
        image.attrs.pop("loading", None)
    for link in article.select("a[href]"):
        address, anchor = urldefrag(str(link["href"]))
        if re.match(r"[a-z]+:", address):
            continue
        target = _page(address, page, pages)
        if target is None:
            del link["href"]  # a file beside the site, such as a notebook
        else:
            link["href"] = f"#{_key(target)}" + (f"--{unquote(anchor)}" if anchor else "")


def _page(address: str, page: str, pages: Sequence[str]) -> str | None:
    """Return the page to which an address leads from another page."""
    if not address:
        return page
    path = os.path.normpath(Path(page).parent / unquote(address)).replace(os.sep, "/")
    name = path.removesuffix(".html")
    return name if name in pages else None


def _address(source: str, file: Path) -> str:
    if source.startswith("data:"):
        return source
    return (file.parent / unquote(source.split("?")[0])).resolve().as_uri()


def _headings(article: Tag, page: str, part: str, formulas: Sequence[str]) -> list[Heading]:
    """Return the headings of a page; a formula in one is read as its MathML."""

    def words(text: Any) -> str:
        if text.parent.name != "mjx-container":
            return str(text)
        formula = BeautifulSoup(formulas[int(text)], "html.parser").find("math")
        return formula.get_text() if formula else ""

    headings = []
    for title in article.select("h1, h2"):
        if re.sub(r"^[\d.]+ ", "", " ".join(title.get_text().split())) in UNLISTED:
            continue
        section = title.find_parent("section")
        target = str(section["id"]) if section and title.name == "h2" else _key(page)
        text = " ".join("".join(map(words, title.strings)).split())
        first = title.name == "h1"
        headings.append(Heading(target, text, 1 if first else 2, part if first else ""))
    return headings


def _front(site: Path, root: Path, headings: Sequence[Heading]) -> str:
    """Return the title page and the contents; the numbers of pages are filled in later."""
    logo = next(iter(sorted((site / "_static").glob("logo.*"))), None)
    picture = f'<img src="{logo.as_uri()}" alt="">' if logo else ""
    lines = []
    for heading in headings:
        if heading.part:
            lines.append(f"<p>{escape(heading.part)}</p>")
        kind = "chapter" if heading.level == 1 else "section"
        lines.append(
            f'<a class="{kind}" href="#{escape(heading.target)}">'
            f"<span>{escape(heading.text)}</span>"
            '<span class="dots"></span><span class="page">000</span></a>'
        )
    return (
        f'<div class="title-page">{picture}<p class="title">{escape(_title(root))}</p></div>'
        f'<nav class="book-contents"><h1>Contents</h1>{"".join(lines)}</nav>'
    )


# --- Chromium -------------------------------------------------------------------------------------


@contextmanager
def chromium() -> Iterator[Any]:
    """Start a Chromium that reads files and nothing else.

    Raises
    ------
    ToolError
        When there is none, or one that is too old.
    """
    path = find_chromium()
    if path is None:
        raise ToolError(
            "no Chromium or Chrome was found, which prints the pages",
            "install one (Debian and Ubuntu: apt install chromium; others: chromium.org), "
            "or name its program in the environment variable CHROMIUM",
        )
    from playwright.sync_api import sync_playwright

    flags = ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        flags.append("--no-sandbox")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=flags, timeout=PATIENCE)
        try:
            if int(browser.version.split(".")[0]) < OLDEST:
                raise ToolError(
                    f"{path} is Chromium {browser.version}; {OLDEST} or later can number pages",
                    "install a newer one, or name it in the environment variable CHROMIUM",
                )
            context = browser.new_context(
                offline=True, viewport={"width": WIDTH, "height": 940}, color_scheme="light"
            )
            context.set_default_timeout(PATIENCE)
            yield context.new_page()
        finally:
            browser.close()


def lay_out(page: Any, document: Path) -> None:
    """Open the joined document and let everything fit the page.

    Raises
    ------
    ToolError
        When something is wider than the page.
    """
    page.emulate_media(media="print")
    page.goto(document.as_uri(), wait_until="load")
    # also those that the browser has not met while laying out the first sheet
    page.evaluate("Promise.all([...document.fonts].map((font) => font.load())).then(() => 0)")
    page.evaluate(FIT, WIDTH)
    wide = page.evaluate(OVERFLOW, WIDTH)
    if wide:
        raise ToolError(
            f"{len(wide)} parts are wider than the page, the first of them: {wide[0]}",
            "break the formula or the table into lines, in its page below book/",
        )


def number_pages(
    page: Any, headings: Sequence[Heading], file: Path, on_progress: OnProgress
) -> list[int]:
    """Print the document until the contents name the pages on which the headings are.

    Parameters
    ----------
    page : playwright.sync_api.Page
        The joined document, laid out.
    headings : sequence of Heading
        The entries of the contents, in order.
    file : Path
        Where the PDF is written.
    on_progress : callable
        Called before each attempt with a percentage.

    Returns
    -------
    list of int
        Numbers of pages, from 1, one for each heading.

    Raises
    ------
    ToolError
        If they still change after four attempts.
    """
    numbers: list[int] = []
    for attempt in range(4):
        on_progress(60 + 9 * attempt, 100, "printing")
        page.pdf(path=str(file), prefer_css_page_size=True, print_background=True, tagged=True)
        pages = find_pages(file, headings)
        if pages == numbers:
            return numbers
        numbers = pages
        page.evaluate(
            """(numbers) => document.querySelectorAll(".book-contents .page").forEach(
                (place, n) => { place.textContent = numbers[n]; })""",
            numbers,
        )
    raise ToolError("the numbers of the pages do not settle", "report this with your version")


def find_pages(file: Path, headings: Sequence[Heading]) -> list[int]:
    """Return the number of the page of each heading."""
    from pypdf import PdfReader

    reader = PdfReader(file)
    destinations = {
        name.lstrip("/"): destination for name, destination in reader.named_destinations.items()
    }
    return [
        (reader.get_destination_page_number(destinations[heading.target]) or 0) + 1
        for heading in headings
    ]


def finish(file: Path, headings: Sequence[Heading], pages: Sequence[int], title: str) -> None:
    """Add the outline, and say what the document is.

    Parameters
    ----------
    file : Path
        The PDF, which is written again.
    headings : sequence of Heading
        Those of level 2 stand below the last one of level 1.
    pages : sequence of int
        The page of each heading, from 1.
    title : str
        The title of the document.
    """
    from pypdf import PdfWriter

    # Chromium miscounts its objects by one, which harms nothing
    logging.getLogger("pypdf").setLevel(logging.ERROR)
    writer = PdfWriter(clone_from=file)
    chapter: Any = None
    for heading, number in zip(headings, pages, strict=True):
        parent = chapter if heading.level == 2 else None
        item = writer.add_outline_item(title=heading.text, page_number=number - 1, parent=parent)
        chapter = item if heading.level == 1 else chapter
    writer.page_mode = "/UseOutlines"
    writer.add_metadata({"/Title": title})
    writer.write(file)


def write_pdf(
    site: Path, root: Path, out: Path, on_progress: OnProgress = lambda done, total, now: None
) -> int:
    """Print a built site as one PDF; return the number of its pages.

    Parameters
    ----------
    site : Path
        The folder of the built site.
    root : Path
        The folder with ``_toc.yml`` and ``_config.yml``.
    out : Path
        The file to write; one that is in place is replaced by one that is whole.
    on_progress : callable
        Told about the progress.

    Raises
    ------
    ToolError
        When there is no Chromium, or something is wider than the page.
    """
    on_progress(0, 100, "starting Chromium")
    with tempfile.TemporaryDirectory(prefix="pdf-") as folder, chromium() as page:
        on_progress(5, 100, "joining the pages")
        text, headings = join(site, root)
        document = Path(folder) / "book.html"
        document.write_text(text, "utf-8")
        on_progress(20, 100, "laying the pages out")
        lay_out(page, document)
        printed = Path(folder) / "book.pdf"
        numbers = number_pages(page, headings, printed, on_progress)
        on_progress(96, 100, "writing the outline")
        finish(printed, headings, numbers, _title(root))
        from pypdf import PdfReader

        count = len(PdfReader(printed).pages)
        out.parent.mkdir(parents=True, exist_ok=True)
        whole = out.with_name(f".{out.name}.new")
        shutil.copyfile(printed, whole)
        whole.replace(out)
    on_progress(100, 100, "")
    return count


def command(arguments: argparse.Namespace) -> int:
    """Build the site, print it and say where the PDF is."""
    with Stages() as stages:
        on_site_progress, on_progress = stages.add("Site"), stages.add("PDF")
        try:
            site = book.build(on_progress=on_site_progress)
        except book.BookError as error:
            raise ToolError(str(error), "as the message says; then run it again") from None
        count = write_pdf(site, ROOT, arguments.out, on_progress)
    console.print(f"The book has {count} pages: {arguments.out.resolve().as_uri()}")
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the command line of this tool."""
    parser = argparse.ArgumentParser(prog="python -m tools.pdf", description=__doc__)
    parser.add_argument(
        "--out",
        type=Path,
        default=ROOT / "_build" / "learning-as-optimization.pdf",
        help="the file to write (default: _build/learning-as-optimization.pdf)",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
