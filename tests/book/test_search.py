"""The search leads to explanations first, forgives a misspelled word, and loses no key."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from serving import Server, results

pytestmark = pytest.mark.xdist_group("toy")

LESSON = ("methods.html#how-does-adam-combine-two-ideas", "How does Adam combine two ideas?")


@pytest.fixture
def page(tabs: Callable[..., Any], toy_server: Server) -> Any:
    """Return the page of the search, in a browser that keeps nothing of another test."""
    opened = tabs()
    opened.goto(toy_server.at("search"))
    return opened


def test_explanations_come_before_code(tabs: Callable[..., Any], toy_site: Path) -> None:
    page = tabs(viewport={"width": 320, "height": 844})
    page.goto((toy_site / "search.html").as_uri())  # it searches in a file on the disk, too
    addresses = [href for href, _ in results(page, "adam")[1]]
    assert addresses[0] == LESSON[0]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    # a page that has the word in its text only comes after the entry of that name
    entry = addresses.index("api.html#optdl.Adam")
    assert addresses.index("tasks.html#exercise-adam") < entry < addresses.index("index.html")
    # unless only code has the name
    assert results(page, "mask_rows")[1][0][0] == "api.html#optdl.mask_rows"


def test_misspelled_word_finds_its_neighbor(page: Any) -> None:
    words = {"momentm": "momentum", "Adma": "adam", "expecttaion": "expectation"}
    for typed, word in words.items():
        message, places = results(page, typed)
        shown = f"Nothing for “{typed.lower()}”; shown: {word}. "
        assert message.startswith(shown)
        assert results(page, word) == (message.removeprefix(shown), places)
    nothing = "Nothing was found. Check the spelling, or use fewer words."
    assert results(page, "eigenvalue") == (nothing, [])


def test_places_are_found_while_somebody_types(
    tabs: Callable[..., Any], toy_server: Server, page: Any
) -> None:
    over = tabs(viewport={"width": 390, "height": 700})
    over.goto(toy_server.at("book/methods"))
    for opened in (page, over):  # the page of the search, and what opens over another one
        places = opened.locator(".search-results li a:visible")
        opened.keyboard.press("Control+k")
        opened.keyboard.type("ada")
        places.first.wait_for()
        found = places.all_inner_texts()
        for key, number in (("ArrowDown", 0), ("ArrowDown", 1), ("ArrowUp", 0)):
            opened.keyboard.press(key)
            assert opened.evaluate("document.activeElement.textContent") == found[number]
        opened.keyboard.type("m")  # goes to the field
        assert opened.evaluate("document.activeElement.value") == "adam"
        for key in ("ArrowDown", "Control+k", "ArrowDown"):  # nothing is lost
            opened.keyboard.press(key)
        target = opened.evaluate("document.activeElement.href")
        with opened.expect_navigation():
            opened.keyboard.press("Enter")
        assert opened.url == target
    page.go_back()
    page.locator(".search-results li").first.wait_for()
    assert page.locator(".bd-search-container input").input_value() == "adam"


@pytest.mark.parametrize("typed", ["L1-26", "l1 26"])
def test_row_leads_to_its_lesson_and_exercise(page: Any, typed: str) -> None:
    exercise = ("tasks.html#exercise-adam", "Exercise 1 · Write Adam")
    row = ("rows.html#row-l1-26", "L1-26: Momentum and its speed")
    assert results(page, typed)[1] == [LESSON, exercise, row]


def test_results_tell_no_hint_and_formulas_as_text(page: Any) -> None:
    results(page, "bias")
    assert "Begin" not in page.inner_text("#search-results")
    (_, title), *_ = results(page, "divided")[1]
    assert re.fullmatch(r"Why are they divided by 1-p ?\?", title)


def test_keys_before_the_scripts_are_not_lost(tabs: Callable[..., Any], toy_server: Server) -> None:
    page, held = tabs(), []
    for name in ("course", "search"):
        page.route(f"**/{name}.js*", lambda route: held.append(route))
    page.goto(toy_server.at("book/methods"), wait_until="commit")
    page.wait_for_selector(".prev-next-footer", state="attached")
    page.keyboard.press("Control+k")
    page.keyboard.type("momentum helps")
    field = page.locator(".search-button__wrapper input")
    assert field.is_visible()
    assert page.evaluate("scrollY") == 0
    while held:
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
