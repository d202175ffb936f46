"""The site is whole, private where it must be, and loads nothing from anywhere else."""

import contextlib
import functools
import gzip
import http.server
import inspect
import json
import pkgutil
import posixpath
import pydoc
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
import tinycss2
import yaml
from bs4 import BeautifulSoup
from traitlets import HasTraits

import gradebox
import optdl

pytestmark = pytest.mark.xdist_group("site")

ROOT = Path(__file__).resolve().parents[2]
TOPICS = sorted(folder.name for folder in (ROOT / "exercises").iterdir() if folder.is_dir())
OUTSIDE = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
TEXT = {".html", ".css", ".js", ".json", ".svg", ".txt", ".md", ".ipynb", ".inv"}
FORMULA = re.compile(r"(<mjx-container[^>]*>).*?(</mjx-container>)", re.DOTALL)
KILOBYTES = 900

# --- the site, built once for all tests of this file ---


@pytest.fixture(scope="session")
def pages(site: Path) -> dict[str, BeautifulSoup]:
    """Return every page by its path, its formulas emptied; they are parsed once."""
    return {
        path.relative_to(site).as_posix(): BeautifulSoup(
            FORMULA.sub(r"\1\2", path.read_text("utf-8")), "html.parser"
        )
        for path in sorted(site.rglob("*.html"))
        if "_static" not in path.parts
    }


def chapters() -> list[str]:
    """Return the pages that _toc.yml names, as the site calls them."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    named = [toc["root"]] + [one["file"] for part in toc["parts"] for one in part["chapters"]]
    return [f"{name}.html" for name in named]


def test_every_page_of_the_contents_is_built(pages: dict[str, BeautifulSoup]) -> None:
    assert set(chapters()) <= set(pages)
    assert {"index.html", "search.html"} <= set(pages)


# --- nothing is loaded from outside: read in the files themselves ---

LOADING_RELS = {
    "stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch", "modulepreload",
    "manifest", "apple-touch-icon", "mask-icon",
}  # fmt: skip
CSS_LOAD = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""", re.IGNORECASE)
JS_LOAD = re.compile(
    r"""(?:\bimport\s*\(?|\bfrom|\bfetch\s*\(|\bimportScripts\s*\(|\bnew\s+(?:Shared)?Worker\s*\("""
    r"""|\.open\s*\(\s*["'][A-Z]+["']\s*,|\.(?:src|href)\s*=|setAttribute\s*\(\s*["'](?:src|href)["']\s*,)"""
    r"""\s*["'`]([^"'`]+)"""
)


def loads_of_css(text: str) -> list[str]:
    """Return the addresses that a style sheet loads."""
    return [one or other for one, other in CSS_LOAD.findall(text)]


def loads_of_page(page: BeautifulSoup) -> list[str]:
    """Return the addresses that a page loads by itself, before the reader clicks anything."""
    found = [tag[name] for name in ("src", "poster") for tag in page.select(f"[{name}]")]
    found += [tag["data"] for tag in page.select("object[data]")]
    found += [
        part.split()[0] for tag in page.select("[srcset]") for part in tag["srcset"].split(",")
    ]
    found += [tag["href"] for tag in page.select("image[href], use[href]")]
    found += [link["href"] for link in page.select("link[href]") if LOADING_RELS & set(link["rel"])]
    for tag in page.select('meta[http-equiv="refresh" i]'):
        found += re.findall(r"url=(\S+)", tag["content"])
    for tag in page.select("style"):
        found += loads_of_css(tag.string or "")
    for tag in page.select("[style]"):
        found += loads_of_css(tag["style"])
    for tag in page.select("script:not([src])"):
        found += JS_LOAD.findall(tag.string or "")
    return found


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://a.example/x.js"></script>',
        '<img src="//a.example/x.png">',
        '<img srcset="x.png 1x, https://a.example/x.png 2x">',
        '<link rel="preconnect" href="https://a.example">',
        '<link rel="shortcut icon" href="https://a.example/i.svg">',
        '<style>@import "https://a.example/x.css";</style>',
        '<p style="background: url(https://a.example/x.png)"></p>',
        '<script>import("https://a.example/x.js")</script>',
        "<script>s.src = 'https://a.example/x.js'</script>",
        '<iframe src="http://a.example"></iframe>',
    ],
)
def test_a_load_from_outside_is_seen(text: str) -> None:
    assert any(
        OUTSIDE.match(address) for address in loads_of_page(BeautifulSoup(text, "html.parser"))
    )


def test_a_link_to_elsewhere_is_no_load() -> None:
    page = BeautifulSoup('<a href="https://a.example">there</a>', "html.parser")
    assert loads_of_page(page) == []


def test_pages_load_nothing_from_outside(pages: dict[str, BeautifulSoup]) -> None:
    outside = [
        (name, address)
        for name, page in pages.items()
        for address in loads_of_page(page)
        if OUTSIDE.match(address)
    ]
    assert outside == []


def test_styles_and_scripts_load_nothing_from_outside(site: Path) -> None:
    outside = []
    for path in site.rglob("*.*"):
        loads = {".css": loads_of_css, ".js": JS_LOAD.findall, ".mjs": JS_LOAD.findall}.get(
            path.suffix
        )
        if loads is not None:
            found = [one for one in loads(path.read_text("utf-8")) if OUTSIDE.match(one)]
            outside += [(path.relative_to(site).as_posix(), one) for one in found]
    assert outside == []


def test_what_styles_load_is_there(site: Path) -> None:
    missing = [
        (path.name, address)
        for path in site.rglob("_static/*.css")
        for address in loads_of_css(path.read_text("utf-8"))
        if path.name == "site.css"
        and not address.startswith(("data:", "#"))
        and not (path.parent / urlsplit(address).path).exists()
    ]
    assert missing == []


def of_chapter(pages: Iterable[str], topic: str) -> list[str]:
    """Return the names of a chapter's pages."""
    return [name for name in pages if name.startswith(f"book/{topic}/")]


def select(pages: dict[str, BeautifulSoup], topic: str, selector: str) -> list[Any]:
    """Return what a selector finds on the pages of a chapter."""
    return [tag for name in of_chapter(pages, topic) for tag in pages[name].select(selector)]


# --- only the book is published ---


def test_answers_tests_and_environment_are_not_published(site: Path) -> None:
    names = [path.relative_to(site).parts for path in site.rglob("*")]
    forbidden = {"solutions", "exams", "tests", ".venv", "src", "build", "tools", ".git"}
    assert [name for name in names if forbidden & set(name)] == []
    sources = {path.relative_to(site).parts[:2] for path in (site / "_sources").rglob("*.*")}
    assert sources <= {("_sources", "book")}


def test_no_file_holds_an_answer(site: Path) -> None:
    secrets = (
        "BEGIN SOLUTION",
        "BEGIN HIDDEN TESTS",
        "BEGIN MARK SCHEME",
        "Partial credit.",
        "properties=True",
    )
    files = [path for path in site.rglob("*") if path.suffix in TEXT]
    assert files
    assert [
        (path.name, secret)
        for path in files
        for secret in secrets
        if secret in path.read_text("utf-8", errors="replace")
    ] == []


@pytest.mark.parametrize("topic", TOPICS)
def test_each_chapter_hands_out_its_notebook(
    site: Path, pages: dict[str, BeautifulSoup], topic: str
) -> None:
    links = pages[f"book/{topic}/index.html"].select(f'article a[href$="/{topic}.ipynb"]')
    assert links, f"book/{topic}/index.md lacks {{download}} of its notebook"
    published = (site / "book" / topic / links[0]["href"]).resolve()
    assert published.read_bytes() == (ROOT / "exercises" / topic / f"{topic}.ipynb").read_bytes()


def test_each_chapter_hands_out_its_lab(site: Path, pages: dict[str, BeautifulSoup]) -> None:
    for lab in sorted((ROOT / "exercises").glob("*/lab.ipynb")):
        page = f"book/{lab.parent.name}/index.html"
        links = pages[page].select('article a[href$="/lab.ipynb"]')
        assert links, f"{page} lacks {{download}} of its lab"
        published = (site / page).parent.joinpath(links[0]["href"]).resolve()
        assert published.read_bytes() == lab.read_bytes()


# --- every page is whole ---


def test_every_page_has_one_title_a_language_and_a_description(
    pages: dict[str, BeautifulSoup],
) -> None:
    described: dict[str, str] = {}
    for name, page in pages.items():
        assert page.html["lang"] == "en", name
        assert page.title.get_text(strip=True), name
        assert len(page.select("h1")) == 1, name
        (description,) = page.select('meta[name="description"]')
        assert 20 <= len(description["content"]) <= 200, name
        assert len(page.select('meta[name="viewport"]')) == 1, name
        assert page.select('link[rel~="icon"]'), name
        if name != "index.html":
            described.setdefault(description["content"], name)
            assert described[description["content"]] == name, "two pages describe themselves alike"


def test_pictures_are_described(pages: dict[str, BeautifulSoup]) -> None:
    for name, page in pages.items():
        for image in page.select("img"):
            assert image.get("alt") is not None, (name, image.get("src"))
        for image in page.select("article img"):
            alt = image["alt"]
            assert len(alt) >= 20, (name, alt)
            assert not re.search(r"\.(svg|png|jpe?g)$|_images/", alt), (name, alt)


def test_titles_descend_step_by_step(pages: dict[str, BeautifulSoup]) -> None:
    for name, page in pages.items():
        levels = [int(title.name[1]) for title in page.select("article :is(h1,h2,h3,h4,h5,h6)")]
        jumps = [pair for pair in pairwise(levels) if pair[1] > pair[0] + 1]
        assert jumps == [], name


def test_controls_have_names_and_ids_are_unique(pages: dict[str, BeautifulSoup]) -> None:
    for name, page in pages.items():
        for button in page.select("button, summary"):
            assert button.get_text(strip=True) or button.get("aria-label"), (
                name,
                str(button)[:200],
            )
        ids = [tag["id"] for tag in page.select("[id]")]
        assert sorted(ids) == sorted(set(ids)), name


def test_every_link_inside_the_site_leads_somewhere(
    site: Path, pages: dict[str, BeautifulSoup]
) -> None:
    anchors = {name: {tag["id"] for tag in page.select("[id]")} for name, page in pages.items()}
    broken = []
    for name, page in pages.items():
        links = [tag[key] for key in ("href", "src") for tag in page.select(f"[{key}]")]
        for link in links:
            if OUTSIDE.match(link) or link.startswith(("data:", "mailto:")):
                continue
            address, anchor = urldefrag(link)
            path = unquote(urlsplit(address).path)
            target = ((site / name).parent / path).resolve() if path else site / name
            inside = target.is_relative_to(site.resolve()) and target.is_file()
            page_of = target.relative_to(site.resolve()).as_posix() if inside and path else name
            known = anchors.get(page_of, {unquote(anchor)})
            if (path and not inside) or (anchor and unquote(anchor) not in known):
                broken.append((name, link))
    assert broken == []


def test_formulas_are_typeset_in_the_pages_themselves(
    site: Path, pages: dict[str, BeautifulSoup]
) -> None:
    for name, page in pages.items():
        assert not page.select('script[src*="mathjax" i]'), name
        styled = bool(page.select('link[href$="math/math.css"]'))
        assert styled == bool(page.select(".math")), name
        for formula in page.select(".math"):
            assert len(formula.select("mjx-container")) == 1, (name, str(formula)[:200])
            assert not re.search(r"\\[(\[]", formula.get_text()), (name, formula.get_text()[:80])
    text = "".join(file.read_text("utf-8") for file in (site / "book" / "bnp").glob("*.html"))
    # each is MathML for whoever does not see it
    assert text.count("<mjx-container") == text.count("<mjx-assistive-mml") > 500
    assert "NaNem" not in text, "a length that MathJax could not measure"


def test_style_sheets_are_whole_and_name_files_that_are_there(site: Path) -> None:
    for sheet in (site / "_static" / "site.css", site / "_static" / "math" / "math.css"):
        rules = tinycss2.parse_stylesheet(sheet.read_text("utf-8"))
        assert [rule.message for rule in rules if rule.type == "error"] == [], sheet
        for address in loads_of_css(sheet.read_text("utf-8")):
            if not address.startswith("data:") and "vendor/" not in address:
                assert (sheet.parent / address.split("?")[0].split("#")[0]).is_file(), address


# --- in a browser, from the disk, with the network watched ---


@dataclass
class Visit:
    """What a browser saw on one page."""

    requests: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)
    untypeset: int = 0
    formulas: int = 0
    sideways: int = 0
    unreachable: list[str] = field(default_factory=list)

    @property
    def outside(self) -> list[str]:
        """Return what was asked for elsewhere."""
        return [
            one
            for one in self.requests
            if urlsplit(one).scheme not in {"file", "data", "blob", "about"}
        ]

    @property
    def kilobytes(self) -> float:
        """Return the size of all files as a server would send them."""
        return sum(weigh(one) for one in self.requests if one.startswith("file:"))


PATIENCE = 600_000
"""Milliseconds that a page may take; only a page that hangs takes so long, on any machine."""
COUNT = """() => {
  const all = [...document.querySelectorAll('.math')];
  const bad = all.filter(e => !e.querySelector('mjx-container') || e.querySelector('mjx-merror'));
  return [all.length, bad.length];
}"""
UNREACHABLE = """() => [...document.querySelectorAll('article *')].filter(e => {
  const style = getComputedStyle(e);
  return /auto|scroll/.test(style.overflowX) && e.scrollWidth > e.clientWidth + 1
    && e.clientWidth > 0 && e.tabIndex < 0 && !e.closest('mjx-container');
}).map(e => e.outerHTML.slice(0, 120))"""


@functools.cache
def weigh(address: str) -> float:
    """Return the size of a file as a server would send it, in kilobytes."""
    path = Path(unquote(urlsplit(address).path))
    data = path.read_bytes() if path.is_file() else b""
    return (len(gzip.compress(data, 6)) if path.suffix in TEXT else len(data)) / 1000


def visit(page: Any, page_file: Path, seen: Visit) -> None:
    """Open one page from the disk, on a desk and then on a phone."""
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(page_file.as_uri(), wait_until="load")
    # the page at the root leads on
    page.wait_for_function("() => !document.querySelector('meta[http-equiv=refresh]')")
    page.wait_for_load_state("load")
    seen.formulas, seen.untypeset = page.evaluate(COUNT)
    page.set_viewport_size({"width": 390, "height": 844})
    # The page's script answers the new width when it gets to it; only a defect lasts for a minute.
    with contextlib.suppress(Exception):
        page.wait_for_function(f"() => ({UNREACHABLE})().length === 0", timeout=60_000)
    seen.sideways = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    seen.unreachable = page.evaluate(UNREACHABLE)
    page.evaluate("() => document.fonts.ready.then(() => {})")  # a font on its way would fail


def watched(browser: Any, scheme: str, visits: list[Visit]) -> Any:
    """Return a tab of the browser; what happens in it is written to the latest visit."""
    page = browser.new_page(color_scheme=scheme)
    page.set_default_timeout(PATIENCE)
    page.on("request", lambda request: visits[-1].requests.add(request.url))
    page.on("pageerror", lambda error: visits[-1].errors.append(str(error)))
    page.on("requestfailed", lambda request: visits[-1].errors.append(f"failed: {request.url}"))
    page.on(
        "console",
        lambda message: (
            visits[-1].errors.append(message.text) if message.type in {"error", "warning"} else None
        ),
    )
    return page


@pytest.fixture(scope="session")
def visits(site: Path, pages: dict[str, BeautifulSoup], browser: Any) -> dict[str, Visit]:
    """Open every page; half of them in the dark."""
    seen: list[Visit] = []
    tabs = [watched(browser, scheme, seen) for scheme in ("light", "dark")]
    for number, name in enumerate(pages):
        seen.append(Visit())
        visit(tabs[number % 2], site / name, seen[-1])
        tabs[number % 2].goto("about:blank")  # what this page has yet to do ends here
    for tab in tabs:
        tab.close()
    return dict(zip(pages, seen, strict=True))


def test_no_page_asks_for_anything_outside(visits: dict[str, Visit]) -> None:
    assert {name: one.outside for name, one in visits.items() if one.outside} == {}


def test_no_page_reports_an_error(visits: dict[str, Visit]) -> None:
    assert {name: one.errors for name, one in visits.items() if one.errors} == {}


def test_every_formula_is_typeset(visits: dict[str, Visit]) -> None:
    assert {name: one.untypeset for name, one in visits.items() if one.untypeset} == {}
    for topic in TOPICS:
        assert sum(visits[name].formulas for name in of_chapter(visits, topic)) > 20


def test_no_page_is_heavy(visits: dict[str, Visit]) -> None:
    assert {name: one.kilobytes for name, one in visits.items() if one.kilobytes > KILOBYTES} == {}


def test_no_page_of_lessons_is_long(site: Path, pages: dict[str, BeautifulSoup]) -> None:
    chapters = {name.rsplit("/", 1)[0] for name in pages if pages[name].select(".lesson-line")}
    lessons = [name for name in pages if name.rsplit("/", 1)[0] in chapters]
    assert len(lessons) > 30
    for name in lessons:
        assert (site / name).stat().st_size < 400_000, name
        assert len(pages[name].find_all(True)) < 8000, name


def test_no_page_scrolls_sideways_on_a_phone(visits: dict[str, Visit]) -> None:
    assert {name: one.sideways for name, one in visits.items() if one.sideways > 0} == {}


def test_what_scrolls_can_be_reached_by_keyboard(visits: dict[str, Visit]) -> None:
    assert {name: one.unreachable for name, one in visits.items() if one.unreachable} == {}


def test_the_contents_lead_to_a_section_and_mark_it(site: Path, browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE)
    page.goto((site / "book" / "optimizers" / "reference.html").as_uri())
    links = page.locator(".bd-toc-nav a")
    for number in (3, links.count() - 2, 1):
        link = links.nth(number)
        target = link.get_attribute("href").removeprefix("#")
        link.click()
        marked = ".bd-toc-nav a[aria-current]"
        page.wait_for_function(
            f"target => document.querySelector('{marked}')?.hash === '#' + target", arg=target
        )
        at = page.evaluate("id => document.getElementById(id).getBoundingClientRect().top", target)
        assert 0 <= at < 120, target
    page.close()


def test_a_formula_within_a_line_is_no_stop_for_the_keyboard(site: Path, browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE)
    page.goto((site / "book" / "dropout" / "mask.html").as_uri())
    # the wait ends when the script has gone through the page: its blocks of code can be focused
    page.wait_for_function("document.querySelectorAll('article [tabindex]').length > 5")
    assert page.evaluate("document.querySelectorAll('article span.math').length") > 50
    assert page.evaluate("document.querySelectorAll('article span.math[tabindex]').length") == 0
    page.close()


def test_search_works_from_the_disk(site: Path, browser: Any) -> None:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto((site / "search.html").as_uri() + "?q=gradient")
    page.wait_for_selector("#search-results li a")
    found = page.eval_on_selector_all("#search-results li a", "all => all.map(a => a.href)")
    page.close()
    assert any("book/quadratic/" in link for link in found)


def test_the_theme_can_be_switched(site: Path, browser: Any) -> None:
    context = browser.new_context(color_scheme="dark")
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto((site / "book" / "index.html").as_uri())
    theme = "document.documentElement.dataset.theme"
    seen = {page.evaluate(theme)}
    for _ in range(3):
        page.click(".theme-switch-button")
        seen.add(page.evaluate(theme))
    context.close()
    assert seen == {"light", "dark"}


# --- what readers look up ---


def test_the_glossary_is_sorted_and_each_term_leads_to_a_chapter(
    pages: dict[str, BeautifulSoup],
) -> None:
    glossary = pages["book/glossary.html"]
    terms = [term.get_text().rstrip("#") for term in glossary.select("dl.glossary dt")]
    assert len(terms) >= 60
    assert terms == sorted(terms, key=str.lower)
    for term in glossary.select("dl.glossary dt"):
        definition = term.find_next_sibling("dd")
        links = [urldefrag(link["href"]) for link in definition.select("a.internal")]
        assert links, f"{term.get_text()} leads nowhere"
        for address, anchor in links:
            assert address.split("/")[0] in TOPICS, term.get_text()
            assert pages[f"book/{address}"].find(id=anchor), (term.get_text(), anchor)


def test_chapters_lead_to_the_glossary(pages: dict[str, BeautifulSoup]) -> None:
    known = {term["id"] for term in pages["book/glossary.html"].select("dl.glossary dt")}
    for topic in TOPICS:
        links = select(pages, topic, 'article a[href^="../glossary.html#term-"]')
        assert links, topic
        assert {link["href"].split("#")[1] for link in links} <= known


def test_the_name_of_a_row_leads_to_its_row(pages: dict[str, BeautifulSoup]) -> None:
    rows = {tag["id"] for tag in pages["book/coverage.html"].select("th[id], th span[id]")}
    assert len(rows) > 80
    for topic in TOPICS:
        (sources,) = select(pages, topic, "section#sources")
        linked = {link.get_text(): link["href"] for link in sources.select("a.internal")}
        named = set(re.findall(r"\b(?:L1|L2|P|F)-\d\d\b", sources.get_text()))
        assert named, topic
        assert linked == {name: f"../coverage.html#row-{name.lower()}" for name in named}
        assert {href.split("#")[1] for href in linked.values()} <= rows


def test_references_are_links(pages: dict[str, BeautifulSoup]) -> None:
    slides = ("Mondal", "Piastra")
    for name, page in pages.items():
        for entry in page.select(".footnote-list aside, aside.footnote"):
            text = entry.get_text()
            assert entry.select('a[href^="https://"]') or any(one in text for one in slides), (
                name,
                text,
            )


def test_a_list_of_lessons_says_what_each_needs(pages: dict[str, BeautifulSoup]) -> None:
    """The line below a lesson's title has the same links."""
    lists = {name: page.select("ol.lessons > li") for name, page in pages.items()}
    lists = {name: items for name, items in lists.items() if items}
    assert len(lists) > 5
    for name, items in lists.items():
        places = {_followed(name, item.a): str(k) for k, item in enumerate(items, 1)}
        for lesson, item in zip(places, items, strict=True):
            line = pages[lesson].select_one(".lesson-line")
            needed = (
                re.split(" · needs | · teaches ", str(line))[1:2] if "needs" in str(line) else []
            )
            links = [link for part in needed for link in BeautifulSoup(part, "html.parser")("a")]
            expected = [places.get(_followed(lesson, link), link.get_text()) for link in links]
            told = item.get_text().partition(" · needs ")[2]
            assert told == ", ".join(expected), (name, lesson)


def _followed(name: str, link: Any) -> str:
    """Return the page to which a link on a page leads."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), link["href"].split("#")[0]))


def test_imports_are_on_the_page(pages: dict[str, BeautifulSoup]) -> None:
    for setup in (cell for topic in TOPICS for cell in select(pages, topic, "div.tag_setup")):
        assert setup.summary.get_text(strip=True).startswith("Imports of this page")
        assert "import " in setup.get_text()


def test_a_chapter_is_offered_as_a_notebook(site: Path, pages: dict[str, BeautifulSoup]) -> None:
    for topic in TOPICS:
        links = {link["href"] for link in select(pages, topic, "a.chapter-tool")}
        files = {path.name for path in (site / "_notebooks").glob(f"chapter-{topic}*.ipynb")}
        assert links <= {f"../../_notebooks/{file}" for file in files}, topic
        assert links, topic
    for path in site.rglob("*.ipynb"):
        assert path.with_name(f"{path.name}.js").is_file(), path


@contextlib.contextmanager
def served(site: Path, prefix: str) -> Iterator[str]:
    """Serve the site below a prefix as GitHub Pages does, with its page for what is missing."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(body=True)

        def do_HEAD(self) -> None:
            self.answer(body=False)

        def answer(self, body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            file = site / path.removeprefix(prefix)
            there = path.startswith(prefix) and file.is_file()
            data = (file if there else site / "404.html").read_bytes()
            self.send_response(200 if there else 404)
            kind = {".js": "text/javascript", ".css": "text/css"}.get(file.suffix, "text/html")
            self.send_header("Content-Type", kind if there else "text/html")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if body:
                self.wfile.write(data)

        def log_message(self, *arguments: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("prefix", ["/", "/course/"])
@pytest.mark.parametrize("missing", ["none.html", "book/deep/er/none.html"])
def test_the_page_404_leads_home_from_any_depth(
    site: Path, browser: Any, prefix: str, missing: str
) -> None:
    with served(site, prefix) as address:
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        answers: list[int] = []
        page.on("response", lambda answer: answers.append(answer.status))
        with page.expect_response(lambda answer: answer.ok):
            page.goto(f"{address}{prefix}{missing}")
        page.wait_for_function(
            "wanted => document.querySelector('a').href === wanted",
            arg=f"{address}{prefix}book/index.html",
        )
        assert page.evaluate("document.forms[0].action") == f"{address}{prefix}search.html"
        assert answers == [404, 200], "only the page itself is missing: its folder is guessed right"
        page.click("a")
        page.wait_for_selector("article.bd-article")
        page.close()


def results(page: Any, address: str, query: str) -> list[tuple[str, str]]:
    """Return the address and the words of each result."""
    page.goto(f"{address}?q={query.replace(' ', '+')}")
    page.wait_for_selector("#search-results li p.context")
    found = page.eval_on_selector_all(
        "#search-results li",
        "all => all.map(e => [e.querySelector('a').href, e.querySelector('p').innerText])",
    )
    return [(href, words) for href, words in found]


@pytest.mark.parametrize("scheme", ["file", "http"])
def test_the_search_shows_words_of_the_text(site: Path, browser: Any, scheme: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    failed: list[str] = []
    page.on("pageerror", lambda error: failed.append(str(error)))
    with served(site, "/") as address:
        search = f"{address}/search.html" if scheme == "http" else (site / "search.html").as_uri()
        # a word of the text that stands in no title
        (first, *_) = results(page, search, "dichotomies") or [("", "")]
        assert "book/erm/" in first[0] or "book/coverage.html" in first[0]
        for query in ("condition number", "variance of the minibatch", "learning rate"):
            found = results(page, search, query)
            assert len(found) >= 5, query
            assert any(query.split()[0] in words.lower() for _, words in found)
            for href, words in found:
                assert not re.search(r"\\[a-zA-Z(\[]|\$", words), (href, words)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), query
    context.close()
    assert failed == []


def test_a_row_leads_to_its_lesson_and_its_exercise(site: Path, browser: Any) -> None:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    found = results(page, (site / "search.html").as_uri(), "L1-26")
    page.close()
    assert [href.split("/book/")[1] for href, _ in found] == [
        "optimizers/momentum.html#what-does-the-method-remember",
        "exercises/optimizers.html#exercise-optimizers-restarted-nesterov",
        "coverage.html#row-l1-26",
    ]


def test_titles_in_the_search_have_no_source_of_formulas(site: Path) -> None:
    texts, _, _ = (site / "_static" / "searchtexts.js").read_text("utf-8").partition(";\n")
    titles = [one[1] for page in json.loads(texts.split("=", 1)[1]).values() for one in page]
    assert len(titles) > 500
    assert [title for title in titles if re.search(r"\\[a-zA-Z(\[]|\$", title)] == []


def test_a_result_leads_to_the_section_with_its_words(site: Path, browser: Any) -> None:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    (href, _), *_ = [
        one
        for one in results(page, (site / "search.html").as_uri(), "condition number")
        if re.search(r"book/conditioning/\w+\.html#", one[0])
    ]
    page.goto(href)
    anchor = href.split("#")[1]
    text = page.evaluate("id => document.getElementById(id).innerText", anchor)
    page.close()
    assert "condition number" in text


def test_a_notebook_is_saved_from_a_page_on_the_disk(site: Path, browser: Any) -> None:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto((site / "book" / "dropout" / "index.html").as_uri())
    for link, name in (
        ("a.chapter-tool", "chapter-dropout.ipynb"),
        ('article a[href$="/dropout.ipynb"]', "dropout.ipynb"),
    ):
        with page.expect_download() as download:
            page.click(link)
        assert download.value.suggested_filename == name
        (published,) = site.rglob(name)
        assert Path(download.value.path()).read_text("utf-8") == published.read_text("utf-8")
    page.close()


VISIBLE = """(selector) => [...document.querySelectorAll(selector)].filter(e => {
  const box = e.getBoundingClientRect();
  return box.width > 1 && box.height > 1 && getComputedStyle(e).visibility === "visible";
}).map(e => e.outerHTML.slice(0, 100))"""
WIDE = """(selector) => [...document.querySelectorAll(selector)].filter(e => {
  const box = e.getBoundingClientRect();
  return box.right > innerWidth + 1 || e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0;
}).map(e => e.outerHTML.slice(0, 100))"""


@pytest.mark.parametrize("name", ["optimizers/momentum", "bnp/gain"])
def test_a_printed_page_has_its_title_and_is_light(site: Path, browser: Any, name: str) -> None:
    # what lies between the margins of a sheet of A4
    context = browser.new_context(viewport={"width": 665, "height": 940}, color_scheme="dark")
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto((site / "book" / f"{name}.html").as_uri())
    page.emulate_media(media="print")
    page.wait_for_function("document.documentElement.dataset.theme === 'light'")
    (title,) = page.evaluate(VISIBLE, "article h1")
    assert "section-number" in title
    controls = "button, input, select, .bd-sidebar, .bd-header-article, .headerlink, .copybtn"
    assert page.evaluate(VISIBLE, controls) == []
    for part in ("body", "article pre"):
        colors = page.evaluate(
            "s => (e => [e.color, e.backgroundColor])(getComputedStyle(document.querySelector(s)))",
            part,
        )
        ink, paper = (sum(map(int, re.findall(r"\d+", color)[:3])) for color in colors)
        assert ink < 200 < 600 < paper, (part, colors)
    assert page.evaluate(WIDE, "article :is(pre, figure, img)") == []
    assert page.evaluate(VISIBLE, ".tag_setup pre")
    context.close()


# --- slides ---

OVER = """() => [document.documentElement.scrollHeight - innerHeight,
  document.documentElement.scrollWidth - innerWidth]"""


@pytest.mark.parametrize("name", ["erm/risk", "optimizers/race", "bnp/centering"])
def test_slides_fit_their_window(site: Path, browser: Any, name: str) -> None:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto((site / "book" / f"{name}.html").as_uri() + "#slide=1")
    count = int(page.locator(".slides-place").inner_text().split("/")[1])
    assert count > 10
    for width, height in ((1280, 720), (1920, 1080)):
        page.set_viewport_size({"width": width, "height": height})
        for number in range(1, count + 1):
            page.evaluate("number => { location.hash = `slide=${number}`; }", number)
            page.wait_for_function(
                "text => document.querySelector('.slides-place').textContent === text",
                arg=f"{number} / {count}",
            )
            assert max(page.evaluate(OVER)) <= 0, (number, width)
    page.close()


# --- the API ---

API = yaml.safe_load((ROOT / "book" / "api.yml").read_text("utf-8"))


def members(module: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a module offers, and what a module among that offers."""
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.ismodule(value):
            yield from ((f"{name}.{inner}", one) for inner, one in members(value))
        else:
            yield name, value


def offered() -> list[tuple[str, str, Any]]:
    """Return the page, the name and the object of each public name, as Python tells them."""
    found = []
    for page, listed in API.items():
        for name in listed:
            value = pydoc.locate(name)
            inner = members(value) if inspect.ismodule(value) else [("", value)]
            found += [(page, f"{name}.{own}".rstrip("."), one) for own, one in inner]
    return found


def entries(pages: dict[str, BeautifulSoup]) -> dict[str, Any]:
    """Return the entries of all pages of the API by their anchors."""
    found = {}
    for page in API:
        for term in pages[f"book/api/{page}.html"].select("article dt.sig-object[id]"):
            found[term["id"]] = term
    return found


def test_every_module_is_in_the_api() -> None:
    listed = {name.split(".")[1] for names in API.values() for name in names if "optdl" in name}
    there = {module.name for module in pkgutil.iter_modules(optdl.__path__)}
    assert listed == there
    configured = (ROOT / "nbgrader_config.py").read_text("utf-8")
    used = set(re.findall(r"\b(gradebox\.[\w.]+)", configured))
    assert used >= {"gradebox.configure", "gradebox.configure_feedback", "gradebox.Submit"}
    assert {*used, *(f"gradebox.{name}" for name in gradebox.__all__)} <= set(API["gradebox"])


def test_every_public_name_has_an_entry(pages: dict[str, BeautifulSoup]) -> None:
    terms = entries(pages)
    index = {urldefrag(a["href"])[1] for a in pages["book/api.html"].select("article li a")}
    names = [(page, name) for page, name, _ in offered() if not name.endswith("cli.parser")]
    assert len(names) > 400
    assert [name for _, name in names if name not in terms] == []
    assert [name for _, name in names if name not in index] == []
    for page, name in names:
        assert pages[f"book/api/{page}.html"].find(id=name), (page, name)


def test_an_entry_tells_its_parameters_and_what_it_is(pages: dict[str, BeautifulSoup]) -> None:
    terms = entries(pages)
    for term in terms.values():
        assert term.find_next_sibling("dd").get_text(strip=True), term["id"]
    for _, name, value in offered():
        if inspect.isfunction(value) and name in terms:
            shown = re.findall(r"\w+", terms[name].get_text())
            assert set(inspect.signature(value).parameters) <= set(shown), name
            (first, *_) = inspect.getdoc(value).split()
            assert first in terms[name].find_next_sibling("dd").get_text(), name


def test_an_option_of_the_grader_has_an_entry(pages: dict[str, BeautifulSoup]) -> None:
    terms = entries(pages)
    for _, name, value in offered():
        if isinstance(value, type) and issubclass(value, HasTraits):
            options = value.class_own_traits(config=True)
            assert {f"{name}.{option}" for option in options} <= set(terms)
    commands = pages["book/api/gradebox.html"].get_text()
    assert "--scheduler" in commands
    assert "gradebox check" in commands


def test_chapters_lead_to_the_api(pages: dict[str, BeautifulSoup]) -> None:
    known = entries(pages)
    for topic in TOPICS:
        links = [
            (urldefrag(link["href"])[1], link.get_text())
            for link in select(pages, topic, 'article a[href^="../api/"]')
        ]
        names = {anchor: text for anchor, text in links if anchor.startswith("optdl.")}
        assert any(name.startswith(f"optdl.{topic}.") for name in names), topic
        assert set(names) <= set(known), topic
        for anchor, text in names.items():
            shown = text.removesuffix("()").split(".")[-1]
            assert anchor.endswith(f".{shown}"), (topic, shown)


def test_the_api_leads_to_the_rows(pages: dict[str, BeautifulSoup]) -> None:
    entry = entries(pages)["optdl.erm.empirical_risk"].find_next_sibling("dd")
    assert entry.select('a[href="../coverage.html#row-l1-01"]')
    assert entry.select("div.math")


@pytest.mark.parametrize("query", ["hinge_risk_gradient", "erm.hinge_risk_gradient"])
def test_the_search_leads_to_an_entry(site: Path, browser: Any, query: str) -> None:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    (first, words), *_ = results(page, (site / "search.html").as_uri(), query)
    page.close()
    assert first.endswith("book/api/optdl_erm.html#optdl.erm.hinge_risk_gradient")
    assert "Return" in words
