"""The search leads to explanations first, forgives a misspelled word, and loses no key."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from serving import play, results

pytestmark = pytest.mark.xdist_group("toy")

LESSON = ("methods.html#how-does-adam-combine-two-ideas", "How does Adam combine two ideas?")


FOCUSED = "document.activeElement"
FIELD = "document.querySelector('.bd-search-container input').value"


@pytest.fixture
def page(visit: Callable[..., Any]) -> Any:
    """Return the page of the search, in a browser that keeps nothing of another test."""
    return visit("search.html")


def test_explanations_come_before_code(tabs, toy_site):
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


def test_misspelled_word_finds_its_neighbor(page):
    words = {"momentm": "momentum", "Adma": "adam", "expecttaion": "expectation"}
    for typed, word in words.items():
        message, places = results(page, typed)
        shown = f"Nothing for “{typed.lower()}”; shown: {word}. "
        assert message.startswith(shown)
        assert results(page, word) == (message.removeprefix(shown), places)
    nothing = "Nothing was found. Check the spelling, or use fewer words."
    assert results(page, "eigenvalue") == (nothing, [])


@pytest.mark.parametrize("name", ["search", "book/methods"])
def test_places_are_found_while_somebody_types(visit, name):
    """This holds on the page of the search, and where it opens over another page."""
    page = visit(f"{name}.html", viewport={"width": 390, "height": 700})
    page.keyboard.press("Control+k")
    play(page, ("type ada", "document.querySelectorAll('.search-results a').length > 1", True))
    first, second, *_ = page.locator(".search-results li a:visible").all_inner_texts()
    play(
        page,
        ("press ArrowDown", f"{FOCUSED}.textContent", first),
        ("press ArrowDown", f"{FOCUSED}.textContent", second),
        ("press ArrowUp", f"{FOCUSED}.textContent", first),
        ("type m", f"{FOCUSED}.value", "adam"),  # goes to the field
        ("press ArrowDown Control+k ArrowDown", f"{FOCUSED}.tagName", "A"),  # nothing is lost
    )
    play(page, ("press Enter", "location.href", page.evaluate(f"{FOCUSED}.href")))
    if name == "search":
        back = "document.querySelectorAll('.search-results li').length > 0"
        play(page, ("go_back", back, True), ("", FIELD, "adam"))


@pytest.mark.parametrize("typed", ["L1-26", "l1 26"])
def test_row_leads_to_its_lesson_and_exercise(page, typed):
    exercise = ("tasks.html#exercise-adam", "Exercise 1 · Write Adam")
    row = ("rows.html#row-l1-26", "L1-26: Momentum and its speed")
    assert results(page, typed)[1] == [LESSON, exercise, row]


def test_results_tell_no_hint_and_formulas_as_text(page):
    results(page, "bias")
    assert "Begin" not in page.inner_text("#search-results")
    (_, title), *_ = results(page, "divided")[1]
    assert re.fullmatch(r"Why are they divided by 1-p ?\?", title)


def test_keys_before_the_scripts_are_not_lost(tabs, toy_server):
    page, held = tabs(), []
    for name in ("course", "search"):
        page.route(f"**/{name}.js*", lambda route: held.append(route))

    def release() -> None:
        while held:
            held.pop().continue_()
        page.wait_for_load_state()

    page.goto(toy_server.at("book/methods"), wait_until="commit")
    page.wait_for_selector(".prev-next-footer", state="attached")
    page.keyboard.press("Control+k")
    typed = "[document.querySelector('.search-button__wrapper input').value, scrollY]"
    play(page, ("type momentum helps", typed, ["momentum helps", 0]))
    release()
    play(page, ("", typed, ["momentum helps", 0]))
    page.keyboard.press("Enter")
    # on the page of the search, whose script puts the last question into its field
    page.wait_for_url("**/search.html?q=momentum+helps", wait_until="commit")
    page.wait_for_selector(".prev-next-footer", state="attached")
    page.keyboard.type("mask")
    release()
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=mask*", wait_until="commit")
