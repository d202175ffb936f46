"""The site is whole, private where it must be, and loads nothing from anywhere else."""

import functools
import gzip
import inspect
import pkgutil
import posixpath
import pydoc
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from html import unescape
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
import tinycss2
import yaml
from bs4 import BeautifulSoup
from serving import SHIFT, Server, play
from traitlets import HasTraits

import gradebox
import optdl
from tools.layout import ROOT, contents

pytestmark = pytest.mark.xdist_group("site")

TOPICS = sorted(folder.name for folder in (ROOT / "exercises").iterdir() if folder.is_dir())
TEXT = {".html", ".css", ".js", ".json", ".svg", ".txt", ".md", ".ipynb", ".inv"}
FORMULA = re.compile(r"(<mjx-container[^>]*>).*?(</mjx-container>)", re.DOTALL)
CONTENTS = re.compile(r'(<nav class="bd-links[^>]*>).*?(</nav>)', re.DOTALL)
COLORED = re.compile(r'<span class="\w{1,3}">([^<]*)</span>')
"""A word of highlighted code: a third of all tags, of which no test asks anything."""
ELSEWHERE = r"(?:[a-z][a-z0-9+.-]*:)?//"
LOADS = ("src", "srcset", "href", "poster", "data")


class Page:
    """A page as its file tells it, its formulas emptied: its tags by name and by class.

    The contents of the course, half of all tags, are kept on the first page of each folder.
    """

    def __init__(self, file: Path) -> None:
        self.file, self.text = file, file.read_text("utf-8")
        text = FORMULA.sub(r"\1\2", self.text)
        self.tags = len(re.findall("<[a-z]", text))
        text = text if file.stem == "index" else CONTENTS.sub(r"\1\2", text)
        self.soup = BeautifulSoup(COLORED.sub(r"\1", text), "html.parser")
        self.all = self.soup.find_all(True)
        self.named: dict[str, list[Any]] = defaultdict(list)
        self.classed: dict[str, list[Any]] = defaultdict(list)
        for tag in self.all:
            self.named[tag.name].append(tag)
            for name in tag.get("class", ()):
                self.classed[name].append(tag)
        self.ids = Counter(tag["id"] for tag in self.all if tag.has_attr("id"))
        self.links = {unescape(link) for link in re.findall(r'\s(?:href|src)="([^"]*)"', self.text)}
        self.meta = defaultdict(list)
        for tag in self.named["meta"]:
            self.meta[tag.get("name")].append(tag.get("content", ""))


Pages = dict[str, Page]


@pytest.fixture(scope="session")
def pages(site: Path) -> Pages:
    """Return every page by its path; they are read once."""
    files = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    return {path.relative_to(site).as_posix(): Page(path) for path in files}


def of_chapter(pages: Pages, topic: str) -> list[Page]:
    return [page for name, page in pages.items() if name.startswith(f"book/{topic}/")]


def select(pages: Pages, topic: str, selector: str) -> list[Any]:
    """Return what a selector finds in the articles of a chapter."""
    articles = [tag for page in of_chapter(pages, topic) for tag in page.named["article"]]
    return [tag for article in articles for tag in article.select(selector)]


# --- each page by itself: a query gathers what is wrong ---


def undescribed(image: Any) -> bool:
    alternative = image.get("alt")
    short = alternative is None or (len(alternative) < 20 and image.find_parent("article"))
    return bool(short or re.search(r"\.(svg|png|jpe?g)$|_images/", alternative))


def jumps(page: Page) -> list[Any]:
    titles = [tag for tag in page.all if re.fullmatch("h[1-6]", tag.name)]
    levels = [int(tag.name[1]) for tag in titles if tag.find_parent("article")]
    return [pair for pair in pairwise(levels) if pair[1] > pair[0] + 1]


ADDRESS = re.compile(r"https://(doi\.org/10\.\d{4,9}/.+|(?!doi\.)[\w.-]+(/.*)?)$")


def unlinked(note: Any) -> bool:
    """Tell whether a reference cannot be followed; slides of two lectures have no address."""
    followed = [ADDRESS.match(a["href"]) for a in note("a", href=re.compile("^[^#]"))]
    known = followed or re.search("Mondal|Piastra", note.get_text())
    return note.name == "aside" and not (known and all(followed))


def loads_from_elsewhere(tag: Any) -> bool:
    """Tell whether a tag, which is no link, names an address on another site."""
    link = tag.name == "a" or "canonical" in tag.get("rel", ())
    return not link and any(re.search(rf"(^|,)\s*{ELSEWHERE}", tag.get(x, "")) for x in LOADS)


QUERIES: dict[str, Callable[[Page], Any]] = {
    "language": lambda page: page.soup.html.get("lang") != "en",
    "title": lambda page: len(set(parts := page.soup.title.text.split(" — "))) < len(parts),
    "headings": lambda page: jumps(page) or len(page.named["h1"]) != 1,
    "viewport": lambda page: len(page.meta["viewport"]) != 1,
    "description": lambda page: (  # of the page, not of an exercise, nor an answer
        not re.match(r"(?!\d+ min|.*Exercise \d).{20,200}$", text := page.meta["description"][0])
        or text[:60] in " ".join("".join(f.text for f in page.soup.select("main details")).split())
    ),
    "icon": lambda page: not any("icon" in tag.get("rel", ()) for tag in page.named["link"]),
    "pictures": lambda page: [str(image) for image in page.named["img"] if undescribed(image)],
    "controls": lambda page: [
        str(tag)
        for tag in page.named["button"] + page.named["summary"]
        if not (tag.get_text(strip=True) or tag.get("aria-label"))
    ],
    "elsewhere": lambda page: [str(tag) for tag in page.all if loads_from_elsewhere(tag)],
    "ids": lambda page: [name for name, count in page.ids.items() if count > 1],
    "formulas": lambda page: [
        str(tag)
        for tag in page.classed["math"]
        if len(tag("mjx-container")) != 1 or re.search(r"\\[(\[]", tag.get_text())
    ],
    "formulas_aloud": lambda page: (  # as MathML, none wrong or with a length that is not known
        page.text.count("<mjx-container") != page.text.count("<mjx-assistive-mml")
        or re.search("NaNem|mjx-merror", page.text)
    ),
    "formulas_style": lambda page: (
        any(link.endswith("math/math.css") for link in page.links) != bool(page.classed["math"])
        or [link for link in page.links if re.search("mathjax.*js", link, re.IGNORECASE)]
    ),
    "length": lambda page: (
        page.classed["lesson-line"] and (page.tags >= 8000 or page.file.stat().st_size >= 400_000)
    ),
    "references": lambda page: [str(note) for note in page.classed["footnote"] if unlinked(note)],
    "guesses": lambda page: [  # each is compared with something
        str(line) for line in page.classed["guess-line"] if re.search(r"is (“”)?[.\s]", line.text)
    ],
    "tables": lambda page: [  # the empty corner of one heads nothing
        str(tag.parent)
        for tag in page.named["th"]
        if not (tag.get_text(strip=True) or tag.find("img"))
    ],
    # to Colab, Binder and a report, which are off until the instructor switches them on
    "launches": lambda page: (
        [tag["href"] for tag in page.classed["chapter-tool"] if "//" in tag["href"]]
        or any(link.endswith("report.js") for link in page.links)
    ),
}


@pytest.mark.parametrize("query", QUERIES)
def test_each_page_meets_html_requirement(pages, query):
    found = {name: QUERIES[query](page) for name, page in pages.items()}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_contents_are_built_and_described_apart(pages):
    assert {*(f"{name}.html" for name in contents(ROOT)), "index.html", "search.html"} <= set(pages)
    described = Counter(
        text for name in pages if name != "index.html" for text in pages[name].meta["description"]
    )
    assert [text for text, count in described.items() if count > 1] == []


def test_links_lead_to_files_and_anchors(site, pages):
    files = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    broken = []
    for name, page in pages.items():
        for link in page.links:
            address, anchor = map(unquote, urldefrag(link))
            path = urlsplit(address).path or posixpath.basename(name)
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            known = pages[target].ids if target in pages else {anchor}
            there = target in files and (not anchor or anchor in known)
            if not there and not re.match(f"data:|mailto:|{ELSEWHERE}", link):
                broken.append((name, link))
    assert broken == []


# --- what is published ---


def test_style_sheets_are_whole_and_find_their_files(site):
    for sheet in (site / "_static").rglob("*.css"):
        text = sheet.read_text("utf-8")
        rules = tinycss2.parse_stylesheet(text)
        assert [rule.message for rule in rules if rule.type == "error"] == [], sheet
        named = re.findall(r"""(?:url\(\s*["']?|@import\s+["'])(?!data:|#)([^"')]+)""", text)
        assert [one for one in named if not (sheet.parent / urlsplit(one).path).is_file()] == []


def test_only_the_book_is_published(site):
    names = [path.relative_to(site).parts for path in site.rglob("*")]
    forbidden = {"solutions", "exams", "tests", ".venv", "src", "build", "tools", ".git"}
    assert [name for name in names if forbidden & set(name)] == []
    sources = {path.relative_to(site).parts[:2] for path in (site / "_sources").rglob("*.*")}
    assert sources <= {("_sources", "book")}


def test_no_file_holds_an_answer(site):
    secrets = re.compile(
        "BEGIN (SOLUTION|HIDDEN TESTS|MARK SCHEME)|Partial credit[.]|properties=True"
        '|class="exercise-solution'
    )
    files = [path for path in site.rglob("*") if path.suffix in TEXT]
    assert len(files) > 100
    assert [path for path in files if secrets.search(path.read_text("utf-8", "replace"))] == []


def test_chapters_hand_out_their_notebooks(site, pages):
    files = [ROOT / "exercises" / topic / f"{topic}.ipynb" for topic in TOPICS]
    for file in [*files, *(ROOT / "exercises").glob("*/lab.ipynb")]:
        page = pages[f"book/{file.parent.name}/index.html"]
        links = page.soup.article.select(f'a[href$="/{file.name}"]')
        assert links, f"book/{file.parent.name}/index.md lacks {{download}} of {file.name}"
        assert (page.file.parent / links[0]["href"]).read_bytes() == file.read_bytes()
    for topic in TOPICS:
        tools = [tag for page in of_chapter(pages, topic) for tag in page.classed["chapter-tool"]]
        names = {path.name for path in (site / "_notebooks").glob(f"chapter-{topic}*.ipynb")}
        assert {tag["href"] for tag in tools} <= {f"../../_notebooks/{name}" for name in names}
        assert tools, topic
    scripts = [path.with_name(f"{path.name}.js") for path in site.rglob("*.ipynb")]
    assert [script for script in scripts if not script.is_file()] == []


# --- each page in a browser: on a desk, then on a phone ---

KILOBYTES = 900
INSIDE, WRONG = {"", "data", "blob"}, {"error", "warning"}
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 320, "height": 844}
VISIT = """async (address) => {
  document.querySelector("iframe")?.remove();  // what that page has yet to do ends here
  const frame = document.createElement("iframe");
  frame.style.cssText = "border: 0; width: 1280px; height: 900px; opacity: 0";
  frame.src = address;
  await new Promise((loaded) => {
    frame.onload = () => frame.contentDocument.querySelector("[http-equiv=refresh]") || loaded();
    document.body.append(frame);
  });
  const { contentWindow: view, contentDocument: page } = frame;
  const sideways = () => Math.max(0, page.documentElement.scrollWidth - view.innerWidth);
  const unreachable = () => [
    ...page.querySelectorAll("article *:not(mjx-container, mjx-container *)"),
  ].filter((e) => e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1 && e.tabIndex < 0
    && /auto|scroll/.test(view.getComputedStyle(e).overflowX)
  ).map((e) => e.outerHTML.slice(0, 120));
  const desk = sideways(), stops = page.querySelectorAll("article span.math[tabindex]").length;
  Object.assign(frame.style, { width: "320px", height: "844px" });
  // the page's script answers the new width when it gets to it; only a defect lasts a minute
  const end = performance.now() + 60_000;
  let found;
  do {
    await new Promise((drawn) => view.requestAnimationFrame(drawn));
    found = unreachable();
  } while (found.length && performance.now() < end);
  await page.fonts.ready;  // one on its way when another page is opened would fail
  return { desk, stops, phone: sideways(), unreachable: found };
}"""
"""Opens a page in a frame, which costs half of what a tab does; nobody looks at it."""


@functools.cache
def weigh(path: Path) -> float:
    """Return the size of a file as a server would send it, in kilobytes."""
    data = path.read_bytes() if path.is_file() else b""
    return (len(gzip.compress(data, 6)) if path.suffix in TEXT else len(data)) / 1000


@pytest.fixture(scope="session")
def visits(
    site_server: Server, pages: Pages, browser: Any, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """Open every page once, half of them in the dark; return what the browser saw on each."""
    seen, own = list[Any](), site_server.address
    around = site_server.more["around.html"] = tmp_path_factory.mktemp("around") / "around.html"
    around.write_text('<!doctype html><link rel="icon" href="data:,"><body>', "utf-8")
    tab = browser.new_page(viewport=DESK, service_workers="block")
    tab.set_default_timeout(600_000)  # only a page that hangs takes so long, on any machine
    tab.goto(f"{own}around.html")
    tab.on("request", lambda request: seen[-1].requests.add(request.url.removeprefix(own)))
    tab.on("pageerror", lambda error: seen[-1].errors.append(str(error)))

    def says(line: Any) -> None:
        if line.type in WRONG and not line.text.endswith("blocked by Playwright"):
            seen[-1].errors.append(line.text)

    tab.on("console", says)  # of a file that is not there, too
    for number, name in enumerate(pages):
        seen.append(now := SimpleNamespace(requests=set(), errors=[]))
        tab.emulate_media(color_scheme=("light", "dark")[number % 2])
        vars(now).update(tab.evaluate(VISIT, own + name))
        files = (site_server.site / unquote(urlsplit(name).path) for name in now.requests)
        now.weight = sum(map(weigh, files))
    tab.close()
    return dict(zip(pages, seen, strict=True))


IN_THE_BROWSER: dict[str, Callable[[Any], Any]] = {
    "requests_outside": lambda v: [r for r in v.requests if urlsplit(r).scheme not in INSIDE],
    "errors": lambda visit: visit.errors,
    "formulas_that_stop_the_keyboard": lambda visit: visit.stops,
    "sideways_scrolling": lambda visit: visit.desk or visit.phone,
    "scrolling_out_of_reach": lambda visit: visit.unreachable,
    "weight": lambda visit: max(0, visit.weight - KILOBYTES),
}


@pytest.mark.parametrize("query", IN_THE_BROWSER)
def test_each_page_avoids_browser_problem(visits, query):
    found = {name: IN_THE_BROWSER[query](visit) for name, visit in visits.items()}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


# --- what a person does ---


@pytest.fixture
def tab(tabs: Callable[..., Any]) -> Any:
    """Return a tab on a desk; errors on its pages are refused."""
    return tabs(viewport=DESK, color_scheme="dark")


def test_contents_lead_to_a_section_and_mark_it(site, tab):
    tab.goto((site / "book" / "optimizers" / "reference.html").as_uri())
    marked = "document.querySelector('.bd-toc-nav a[aria-current]')?.hash"
    place = f"document.querySelector({marked}).getBoundingClientRect().top"
    links = tab.locator(".bd-toc-nav a").all()
    for link in (links[3], links[-2], links[1]):
        link.click()
        play(tab, ("", marked, link.get_attribute("href")), ("", f"Math.floor({place} / 120)", 0))


@pytest.mark.parametrize("prefix", ["/", "/course/"])
def test_page_404_leads_home_from_any_depth(site, tab, prefix):
    answers: list[int] = []
    tab.on("response", lambda answer: answers.append(answer.status))
    with Server(site, prefix) as server:
        for missing in ("none.html", "book/deep/er/none.html"):
            tab.goto("about:blank")  # nothing of the page before answers any more
            answers.clear()
            with tab.expect_response(lambda answer: answer.ok):
                tab.goto(server.address + missing)
            leads = "[document.querySelector('a').href, document.forms[0].action]"
            play(tab, ("", leads, [server.at("book/index"), server.at("search")]))
            assert answers == [404, 200], "only the page itself is missing"
            play(tab, ("click a", "document.querySelectorAll('article.bd-article').length", 1))


@pytest.mark.parametrize("name", ["quadratic/line-search", "review"])
def test_late_scripts_move_nothing_on_phones(site_server, tabs, name):
    tab = tabs(viewport=PHONE, script=SHIFT)
    slow = {"offline": False, "latency": 400, "downloadThroughput": -1, "uploadThroughput": -1}
    tab.context.new_cdp_session(tab).send("Network.emulateNetworkConditions", slow)
    tab.goto(site_server.at(f"book/{name}"), wait_until="networkidle")
    assert tab.evaluate("shift") <= 0.02


@pytest.mark.parametrize("name", ["chapter-dropout.ipynb", "dropout.ipynb"])
def test_notebook_is_saved_from_the_disk(site, tab, name):
    tab.goto((site / "book" / "dropout" / "index.html").as_uri())
    with tab.expect_download() as download:
        tab.click(f'a[href$="/{name}"] >> nth=0')
    assert download.value.suggested_filename == name
    (published,) = site.rglob(name)
    assert Path(download.value.path()).read_text("utf-8") == published.read_text("utf-8")


VISIBLE = """(selector) => [...document.querySelectorAll(selector)].filter(e => {
  const box = e.getBoundingClientRect();
  return box.width > 1 && box.height > 1 && getComputedStyle(e).visibility === "visible";
}).map(e => e.outerHTML.slice(0, 100))"""
WIDE = """() => [...document.querySelectorAll("article :is(pre, figure, img)")].filter(e =>
  e.getBoundingClientRect().right > innerWidth + 1
  || e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0).map(e => e.outerHTML.slice(0, 100))"""


@pytest.mark.parametrize("name", ["optimizers/momentum", "bnp/gain"])
def test_printed_page_has_its_title_and_is_light(site, tab, name):
    tab.set_viewport_size({"width": 665, "height": 940})  # between the margins of a sheet of A4
    tab.goto((site / "book" / f"{name}.html").as_uri())
    tab.emulate_media(media="print")
    tab.wait_for_function("document.documentElement.dataset.theme === 'light'")
    (title,) = tab.evaluate(VISIBLE, "article h1")
    assert "section-number" in title
    controls = "button, input, select, .bd-sidebar, .bd-header-article, .headerlink, .copybtn"
    assert tab.evaluate(VISIBLE, controls) == []
    for part in ("body", "article pre"):
        colors = tab.eval_on_selector(
            part, "e => [getComputedStyle(e).color, getComputedStyle(e).backgroundColor]"
        )
        ink, paper = (sum(map(int, re.findall(r"\d+", color)[:3])) for color in colors)
        assert ink < 200 < 600 < paper, (part, colors)
    assert tab.evaluate(WIDE) == []
    assert tab.evaluate(VISIBLE, ".tag_setup pre")


OVER = """count => {
  const press = key => document.body.dispatchEvent(
    new KeyboardEvent("keydown", { key, bubbles: true }));
  const root = document.documentElement;
  press("Home");
  return Array.from({ length: count }, () => {
    const over = Math.max(root.scrollHeight - innerHeight, root.scrollWidth - innerWidth);
    const seen = [document.querySelector(".slides-place").textContent, over > 0];
    press("ArrowRight");
    return seen;
  });
}"""
"""Of each slide, its number and whether it is larger than the window."""


def test_slides_fit_their_window(site, tab):
    tab.goto((site / "book" / "optimizers" / "race.html").as_uri() + "#slide=1")
    count = int(tab.locator(".slides-place").inner_text().split("/")[1])
    assert count > 10
    for width, height in ((1280, 720), (1920, 1080)):
        tab.set_viewport_size({"width": width, "height": height})
        numbers = [f"{number} / {count}" for number in range(1, count + 1)]
        assert tab.evaluate(OVER, count) == [[number, False] for number in numbers], width


# --- what readers look up ---


def test_glossary_is_sorted_and_terms_lead_to_chapters(pages):
    glossary = pages["book/glossary.html"]
    entries = glossary.soup.select("dl.glossary dt")
    terms = [term.get_text().rstrip("#") for term in entries]
    assert len(terms) >= 60
    assert terms == sorted(terms, key=str.lower)
    for term in entries:
        links = [urldefrag(a["href"]) for a in term.find_next_sibling("dd").select("a.internal")]
        assert links, f"{term.get_text()} leads nowhere"
        assert {address.split("/")[0] for address, _ in links} <= set(TOPICS), term.get_text()
    for topic in TOPICS:  # and chapters to the glossary; no link is broken, as said above
        assert select(pages, topic, 'a[href^="../glossary.html#term-"]'), topic


def test_name_of_a_row_leads_to_its_row(pages):
    for topic in TOPICS:
        (sources,) = select(pages, topic, "section#sources")
        linked = {link.get_text(): link["href"] for link in sources.select("a.internal")}
        named = set(re.findall(r"\b(?:L1|L2|P|F)-\d\d\b", sources.get_text()))
        assert named, topic
        assert linked == {name: f"../coverage.html#row-{name.lower()}" for name in named}


def test_list_of_lessons_says_what_each_needs(pages):
    """The line below a lesson's title has the same links."""

    def followed(name: str, link: Any) -> str:
        return posixpath.normpath(posixpath.join(name, "..", urldefrag(link["href"])[0]))

    lists = [(name, ol) for name, page in pages.items() for ol in page.classed["lessons"]]
    assert len(lists) > 5
    for name, listed in lists:
        items = listed("li", recursive=False)
        places = {followed(name, item.a): str(number) for number, item in enumerate(items, 1)}
        for lesson, item in zip(places, items, strict=True):
            line = str(pages[lesson].classed["lesson-line"][0])
            needed = re.search(" · needs (.*?)( · teaches |$)", line, re.DOTALL)
            links = BeautifulSoup(needed[1] if needed else "", "html.parser")("a")
            expected = [places.get(followed(lesson, link), link.get_text()) for link in links]
            assert item.get_text().partition(" · needs ")[2] == ", ".join(expected), lesson


def test_table_of_rows_leads_to_what_each_has(pages):
    row = pages["book/coverage.html"].soup.select_one("#row-l1-07").parent
    section, code, tests, exercise = row.select("td[data-label]")
    assert section.a["href"] == "erm/gradient-noise.html#l1-07"
    assert code.a["href"] == "api/optdl_erm.html#optdl.erm.standard_error"
    assert re.fullmatch(r"\d+ tests", tests.summary.text)
    assert exercise.a["href"] == "exercises/erm.html#exercise-erm-standard-error"


# --- the API ---

API = yaml.safe_load((ROOT / "book" / "api.yml").read_text("utf-8"))


def public(name: str) -> Iterator[tuple[str, Any]]:
    """Yield what a name stands for: an object, or all that a module offers."""
    value = pydoc.locate(name)
    if not inspect.ismodule(value):
        yield name, value
    for inner in getattr(value, "__all__", ()):
        yield from public(f"{name}.{inner}")


@pytest.fixture(scope="module")
def offered() -> list[tuple[str, str, Any]]:
    """Return the page, the name and the object of each public name, as Python tells them."""
    found = [(page, *one) for page, names in API.items() for name in names for one in public(name)]
    return [entry for entry in found if not entry[1].endswith("cli.parser")]


@pytest.fixture(scope="module")
def entries(pages: Pages) -> dict[str, Any]:
    """Return the entries of all pages of the API by their anchors."""
    tags = [tag for name in API for tag in pages[f"book/api/{name}.html"].classed["sig-object"]]
    return {tag["id"]: tag for tag in tags if tag.has_attr("id")}


def test_every_module_is_in_the_api():
    listed = {name.split(".")[1] for names in API.values() for name in names if "optdl" in name}
    assert listed == {module.name for module in pkgutil.iter_modules(optdl.__path__)}
    configured = (ROOT / "nbgrader_config.py").read_text("utf-8")
    used = set(re.findall(r"\b(gradebox\.[\w.]+)", configured))
    assert used >= {"gradebox.configure", "gradebox.configure_feedback", "gradebox.Submit"}
    assert {*used, *(f"gradebox.{name}" for name in gradebox.__all__)} <= set(API["gradebox"])


def test_every_public_name_has_an_entry(pages, offered, entries):
    index = {urldefrag(link)[1] for link in pages["book/api.html"].links}
    assert len(offered) > 400
    assert [name for _, name, _ in offered if name not in entries or name not in index] == []
    assert [n for page, n, _ in offered if n not in pages[f"book/api/{page}.html"].ids] == []
    options = [
        f"{name}.{option}"
        for _, name, value in offered
        if isinstance(value, type) and issubclass(value, HasTraits)
        for option in value.class_own_traits(config=True)
    ]
    assert options
    assert [name for name in options if name not in entries] == []
    commands = pages["book/api/gradebox.html"].soup.get_text()
    assert "--scheduler" in commands
    assert "gradebox check" in commands


def test_chapters_and_the_api_lead_to_each_other(pages, entries):
    for topic in TOPICS:
        links = select(pages, topic, 'a[href^="../api/"][href*="#optdl."]')
        names = {urldefrag(link["href"])[1]: link.get_text() for link in links}
        assert any(name.startswith(f"optdl.{topic}.") for name in names), topic
        for anchor, text in names.items():
            assert anchor.endswith(f".{text.removesuffix('()').split('.')[-1]}"), (topic, text)
    signature = entries["optdl.erm.standard_error"].get_text()
    assert "standard_error(sigma: float, n: int, population: int | None = None, )" in signature
    entry = entries["optdl.erm.empirical_risk"].find_next_sibling("dd")
    assert entry.select('a[href="../coverage.html#row-l1-01"]')
    assert entry.select("div.math")
