"""The search leads to explanations first, forgives a misspelled word, and loses no key."""

import functools
import http.server
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from test_book import Toy

from tools import book

# the browser is started once, and the small book is built once
pytestmark = pytest.mark.xdist_group("search")

TEXTS = {
    "index": "Momentum helps. Momentum and the momentum of Adam.\n",
    "methods": "## How does Adam combine two ideas?\n\nIt averages the gradient, a momentum.\n\n"
    "## Why are they divided by $1-p$?\n\nBecause of the expectation of the mask.\n",
    "api": "```{py:class} optdl.Adam\nAdam, with the averages of Adam.\n```\n\n"
    "```{py:function} optdl.mask_rows\nThe mask of the rows.\n```\n",
    "exercises": "````{container} exercise\n:name: exercise-adam\n\n```{container} exercise-title\n"
    "**Exercise 1** · Write Adam\n```\n\nAdam in two lines.\n\n"
    "```{container} exercise-hints\nBegin with the bias.\n```\n````\n",
    "rows": '```{raw} html\n<table><tr><th id="row-l1-26">L1-26</th>'
    '<td class="coverage-what">Momentum and its speed</td><td data-label="Section">'
    '<a href="methods.html#how-does-adam-combine-two-ideas">How does Adam combine two ideas?</a>'
    '</td><td data-label="Exercise"><a href="exercises.html#exercise-adam">adam</a></td></tr>'
    "</table>\n```\n",
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Build a small book and serve it; return the address of its folder."""
    toy = Toy(tmp_path_factory.mktemp("search"))
    toy.write(**TEXTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(book, "ROOT", toy.root)
        patch.setattr(book, "_hand_out_python", lambda site: None)
        site = book.build(out=toy.root)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    handler = functools.partial(Handler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """Return a page of a new browser that keeps nothing of another test."""
    context, errors = browser.new_context(), []
    opened = context.new_page()
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    context.close()
    assert errors == []


def found(page: Any) -> tuple[str, list[tuple[str, str]]]:
    """Return what the search says, and the addresses and titles that it has found."""
    page.wait_for_function("/found/.test(document.querySelector('.search-summary')?.textContent)")
    links = page.eval_on_selector_all("#search-results li a", "a => a.map(a => [a.href, a.text])")
    said = page.inner_text("#search-results .search-summary")
    return said, [(href.split("/book/")[1], title) for href, title in links]


def test_explanations_come_before_code_unless_only_code_has_the_name(
    page: Any, address: str
) -> None:
    page.goto(f"{address}/search.html?q=adam")
    _, places = found(page)
    addresses = [href for href, _ in places]
    assert addresses[0] == "methods.html#how-does-adam-combine-two-ideas"
    # a page that has the word in its text only comes after the entry of that name
    entry = addresses.index("api.html#optdl.Adam")
    assert addresses.index("exercises.html#exercise-adam") < entry < addresses.index("index.html")
    page.goto(f"{address}/search.html?q=mask_rows")
    assert found(page)[1][0][0] == "api.html#optdl.mask_rows"


@pytest.mark.parametrize(
    ("typed", "word"),
    [("momentm", "momentum"), ("Adma", "adam"), ("expecttaion", "expectation")],
)
def test_a_misspelled_word_finds_its_neighbor(
    page: Any, address: str, typed: str, word: str
) -> None:
    page.goto(f"{address}/search.html?q={typed}")
    said, places = found(page)
    assert said.startswith(f"Nothing for “{typed.lower()}”; shown: {word}. ")
    page.goto(f"{address}/search.html?q={word}")
    assert found(page) == (said.split("; shown: ")[1].split(". ")[1], places)


def test_a_word_without_a_neighbor_is_not_replaced(page: Any, address: str) -> None:
    page.goto(f"{address}/search.html?q=eigenvalue")
    assert found(page) == ("Nothing was found. Check the spelling, or use fewer words.", [])


@pytest.mark.parametrize("typed", ["L1-26", "l1 26"])
def test_a_row_leads_to_its_lesson_and_its_exercise(page: Any, address: str, typed: str) -> None:
    page.goto(f"{address}/search.html?q={typed}")
    assert found(page)[1] == [
        (
            "methods.html#how-does-adam-combine-two-ideas",
            "A title › How does Adam combine two ideas?",
        ),
        ("exercises.html#exercise-adam", "A title › Exercise 1 · Write Adam"),
        ("rows.html#row-l1-26", "A title › L1-26: Momentum and its speed"),
    ]


def test_a_hint_is_not_told_by_the_search(page: Any, address: str) -> None:
    page.goto(f"{address}/search.html?q=bias")
    found(page)
    assert "Begin" not in page.inner_text("#search-results")


def test_a_title_has_its_formula_as_plain_text(page: Any, address: str) -> None:
    page.goto(f"{address}/search.html?q=divided")
    (_, title), *_ = found(page)[1]
    assert re.fullmatch(r"A title › Why are they divided by 1-p ?\?", title)


def test_keys_before_the_scripts_are_not_lost(page: Any, address: str) -> None:
    held: list[Any] = []
    for name in ("course", "searchtools"):
        page.route(f"**/{name}.js*", lambda route: held.append(route))
    page.goto(f"{address}/book/methods.html", wait_until="commit")
    page.wait_for_selector(".prev-next-footer", state="attached")
    page.keyboard.press("Control+k")
    page.keyboard.type("momentum helps")
    field = page.locator(".search-button__wrapper input")
    assert field.is_visible()
    assert page.evaluate("scrollY") == 0
    held.pop().continue_()
    page.wait_for_load_state()
    assert field.input_value() == "momentum helps"
    page.keyboard.press("Enter")
    # on the page of the search, whose script puts the last question into its field
    page.wait_for_url("**/search.html?q=momentum+helps", wait_until="commit")
    page.wait_for_selector(".prev-next-footer", state="attached")
    page.keyboard.type("mask")
    for route in held:
        route.continue_()
    page.wait_for_load_state()
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=mask*", wait_until="commit")
    page.unroute_all()
