"""Print the book as one PDF: a title page, then the chapters in their order, with an outline.

Run as ``python -m tools.site.pdf``. It builds the site where anything has changed, joins its pages,
and has Chromium print them, without a network. The PDF is in ``_build``.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from bs4 import BeautifulSoup, Tag

from optdl.files import atomic_write
from tools.layout import ROOT, configuration, contents, file_name
from tools.progress import OnProgress, Stages
from tools.site import book
from tools.terminal import ToolError, command, console

PROGRAMS = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge"),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
MIN_CHROMIUM = 131
"""The first Chromium that writes numbers into the margins of pages as a style sheet says."""
WIDTH = 665
"""Pixels between the margins of a page."""
PATIENCE = 1_800_000
"""Milliseconds that laying out or printing may take; only what hangs takes so long."""
STYLE = Path(__file__).with_suffix(".css").read_text("utf-8")
HEADING = re.compile(r"<(h[1-6])>.*?</\1>", re.DOTALL)
FIT = Path(__file__).with_suffix(".js").read_text("utf-8")
"""A function of the page, which draws smaller what is too wide, and returns what still is."""


def find_chromium() -> str | None:
    """Return a Chromium or Chrome of this machine; the variable CHROMIUM names one."""
    named = os.environ.get("CHROMIUM")
    programs = map(shutil.which, [named] if named else PROGRAMS)
    return next((path for path in programs if path), None)


def join(site: Path, root: Path) -> str:
    """Return the pages of a site as one document, in the order of the contents below ``root``."""
    # what is looked up on a screen, by links and by search, is not printed
    pages = [page for page in contents(root) if not page.startswith(("book/api", "book/review"))]
    articles: list[str] = []
    styles: dict[str, None] = {}
    for page in pages:
        file = site / f"{page}.html"
        soup = BeautifulSoup(file.read_text("utf-8"), "html.parser")
        article = soup.select_one("article.bd-article")
        if article is None:
            raise ToolError(f"{file} has no text", "build the site again: make book")
        _localize(article, page, pages, file)
        articles.append(HEADING.sub(lambda heading: " ".join(heading[0].split()), str(article)))
        sheets = soup.select('link[rel="stylesheet"]')
        styles |= dict.fromkeys(_address(str(sheet["href"]), file) for sheet in sheets)
    settings = configuration(root)
    title, logo = escape(settings["title"]), settings.get("logo")
    language = settings["sphinx"]["config"]["language"]
    picture = f'<img src="{(root / logo).as_uri()}" alt="">' if logo else ""
    links = "".join(f'<link rel="stylesheet" href="{style}">' for style in styles)
    return (
        f'<!DOCTYPE html><html lang="{language}" data-theme="light" data-mode="light"><head>'
        f'<meta charset="utf-8"><title>{title}</title>{links}<style>{STYLE}</style></head>'
        f'<body><div class="title-page">{picture}<p>{title}</p></div>'
        f'<div class="bd-main"><div class="bd-content"><div class="bd-article-container">'
        f"{''.join(articles)}</div></div></div></body></html>"
    )


def _localize(article: Tag, page: str, pages: Sequence[str], file: Path) -> None:
    """Make a page a part of the document: what is printed of it, and to what it refers there."""
    # one after the other: what is folded may hold a control
    folded = ".cell:not(.tag_setup) > details.hide"
    for unprinted in ("script, link, style, button, .headerlink", folded):
        for part in article.select(unprinted):
            part.decompose()
    for details in article.select("details:not(table details)"):
        details["open"] = ""
    # in the outline a formula has letters only; on paper the letters are what is read
    for formula in article.select(":is(h1, h2, h3, h4, h5, h6) mjx-container"):
        formula.replace_with(*(part.get_text() for part in formula.select("math")))
    for hidden in article.select("mjx-container [aria-hidden]"):
        del hidden["aria-hidden"]
    for tag in article.select("[id]"):
        tag["id"] = f"{page.replace('/', '-')}--{tag['id']}"
    article["id"] = page.replace("/", "-")
    for image in article.select("[src]"):
        image["src"] = _address(str(image["src"]), file)
        image.attrs.pop("loading", None)
    for link in article.select("a[href]"):
        address, anchor = urldefrag(str(link["href"]))
        if re.match(r"[a-z]+:", address):
            continue
        path = os.path.normpath(Path(page).parent / unquote(address)).replace(os.sep, "/")
        target = path.removesuffix(".html") if address else page
        if target in pages:
            key = target.replace("/", "-")
            link["href"] = f"#{key}" + (f"--{unquote(anchor)}" if anchor else "")
        else:
            del link["href"]  # a file beside the site, such as a notebook


def _address(source: str, file: Path) -> str:
    """Return the address of a file that a page names."""
    return source if source.startswith("data:") else urljoin(file.as_uri(), source.split("?")[0])


def launched(playwright: Any, path: str) -> Any:
    """Return a Chromium without any traffic of its own, which finds no other machine."""
    flags = ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    flags.append("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        flags.append("--no-sandbox")
    return playwright.chromium.launch(executable_path=path, args=flags, timeout=PATIENCE)


@contextmanager
def chromium() -> Iterator[Any]:
    """Start a Chromium that reads files and nothing else, or say which is needed."""
    path = find_chromium()
    if path is None:
        raise ToolError(
            "no Chromium or Chrome was found, which prints the pages",
            "install one (Debian and Ubuntu: apt install chromium; others: chromium.org), "
            "or name its program in the environment variable CHROMIUM",
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = launched(playwright, path)
        try:
            if int(browser.version.split(".")[0]) < MIN_CHROMIUM:
                problem = f"{path} is Chromium {browser.version}; {MIN_CHROMIUM} numbers pages"
                raise ToolError(problem, "install a newer one, or name it in CHROMIUM")
            size: Any = {"width": WIDTH, "height": 940}
            context = browser.new_context(offline=True, viewport=size, color_scheme="light")
            context.set_default_timeout(PATIENCE)
            yield context.new_page()
        finally:
            browser.close()


def write_pdf(site: Path, root: Path, out: Path, on_progress: OnProgress = lambda *_: None) -> None:
    """Print a built site as one PDF, in the order of the contents below ``root``."""
    on_progress(0, 100, "joining the pages")
    with tempfile.TemporaryDirectory(prefix="pdf-") as folder, chromium() as page:
        document = Path(folder) / "book.html"
        document.write_text(join(site, root), "utf-8")
        on_progress(20, 100, "laying the pages out")
        page.emulate_media(media="print")
        page.goto(document.as_uri(), wait_until="load")
        # also those that the browser has not met while laying out the first sheet
        page.evaluate("Promise.all([...document.fonts].map((font) => font.load())).then(() => 0)")
        if wide := page.evaluate(FIT, WIDTH):
            problem = f"{len(wide)} parts are wider than the page, the first of them: {wide[0]}"
            remedy = "break the formula or the table into lines, in its page below book/"
            raise ToolError(problem, remedy)
        on_progress(60, 100, "printing")
        with atomic_write(out) as file:
            options = {"prefer_css_page_size": True, "print_background": True}
            page.pdf(path=str(file), outline=True, tagged=True, **options)
    on_progress(100, 100, "")


@command()
def main() -> None:
    """Build the site, print it and say where the PDF is."""
    out = ROOT / "_build" / f"{file_name(ROOT)}.pdf"
    with Stages() as stages:
        site = book.build(stages.add("Site"))
        write_pdf(site, ROOT, out, stages.add("PDF"))
    console.print(f"The book is printed: {out.as_uri()}", soft_wrap=True)
