"""What a person types arrives: each key that is pressed in a field is the field's alone."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from keyboard import TEXT
from test_site import served

# the site is built once
pytestmark = pytest.mark.xdist_group("site")

ASCII = "".join(map(chr, range(32, 127)))
KEYS = f"{ASCII}éüΩ"
PAGE = "book/bnp_cnn/statistics.html"
"""A lesson with an exercise, a free cell and a question to be answered in words."""

CELLS = {
    "exercise": "bnp_cnn-channel-statistics",
    "free cell": "try-bnp_cnn-border",
    "answer in words": "bnp_cnn-question",
}


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Serve the site on loopback."""
    with served(site, "/") as address:
        yield f"{address}/{PAGE}"


@pytest.fixture(scope="module", params=[1280, 390], ids=["wide", "narrow"])
def page(request: pytest.FixtureRequest, browser: Any, address: str) -> Iterator[Any]:
    """Open the lesson in a window."""
    size = {"width": request.param, "height": 800}
    context = browser.new_context(viewport=size, reduced_motion="reduce")
    page = context.new_page()
    page.goto(address)
    yield page
    context.close()


def press(page: Any, keys: str) -> None:
    """Press keys one after the other, also those that only other keyboards have."""
    session = page.context.new_cdp_session(page)
    for key in keys:
        if key in ASCII:
            page.keyboard.press(key)
        else:
            for kind in ({"type": "keyDown", "text": key}, {"type": "keyUp"}):
                session.send("Input.dispatchKeyEvent", {"key": key, **kind})
    session.detach()


def edit(page: Any, field: Any) -> None:
    """Press every key that a person may press to change a text, and compare what is there."""
    keyboard = page.keyboard
    text = lambda: field.evaluate(TEXT)  # noqa: E731
    keyboard.press("Control+a")
    press(page, KEYS)
    assert text() == KEYS
    keyboard.press("Backspace")
    assert text() == KEYS[:-1]
    press(page, KEYS[-1])
    keyboard.press("Control+a")
    keyboard.press("Delete")
    assert text() == ""
    keyboard.press("Control+z")
    assert text() == KEYS
    keyboard.press("Control+y")
    assert text() == ""
    keyboard.press("Control+z")
    keyboard.press("Control+a")
    keyboard.press("Control+c")
    keyboard.press("End")
    keyboard.press("Control+v")
    assert text() == 2 * KEYS
    keyboard.press("Control+k")
    assert text() == 2 * KEYS


@pytest.mark.parametrize("kind", CELLS)
def test_an_editor_gets_every_key(page: Any, kind: str) -> None:
    cell = page.locator(f"#cell-{CELLS[kind]}")
    cell.scroll_into_view_if_needed()
    cell.locator(".exercise-bar button").first.press("Enter")
    field = cell.locator("textarea" if kind == "answer in words" else "[role=textbox]")
    page.wait_for_function("document.activeElement.closest('.exercise-editor')")
    edit(page, field)
    page.keyboard.press("Control+a")
    page.keyboard.type("if a:")
    page.keyboard.press("Enter")
    if kind == "answer in words":
        assert field.evaluate(TEXT) == "if a:\n"
    else:
        assert field.evaluate(TEXT) == "if a:\n    "
        page.keyboard.press("Tab")
        assert field.evaluate(TEXT) == "if a:\n        "
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Escape")
    before = field.evaluate(TEXT)
    page.keyboard.press("Control+Enter")
    if kind != "answer in words":
        cell.get_by_text(re.compile(r"Error in line \d\.")).wait_for()
    assert field.evaluate(TEXT) == before
    field.focus()
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.exercise-bar')") is not None
    assert field.evaluate(TEXT) == before
    assert page.url.endswith(PAGE)
    assert not page.locator(".search-button__wrapper input").is_visible()


def test_the_search_gets_every_key(page: Any, address: str) -> None:
    page.locator("h1").click()
    page.keyboard.press("Control+k")
    field = page.locator(".search-button__wrapper input")
    edit(page, field)
    page.keyboard.press("Escape")
    assert not field.is_visible()
    page.keyboard.press("Control+k")
    assert field.input_value() == 2 * KEYS
    press(page, KEYS)
    page.keyboard.press("Control+Enter")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    field = page.locator(".bd-search-container input")
    assert field.input_value() == KEYS
    page.locator("h1").click()
    page.keyboard.press("Control+k")
    press(page, "mean")
    page.keyboard.press("Control+k")
    assert field.input_value() == "mean"
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=mean*")


def test_the_contents_come_and_go_by_keyboard(page: Any, address: str) -> None:
    contents = page.locator(".bd-sidebar-primary")
    button = page.get_by_role("button", name="Contents of the course")
    if page.viewport_size["width"] == 1280:  # the button hides them, and keeps the focus
        page.emulate_media(reduced_motion="no-preference")  # they take their time to go
        page.goto(address)
        button.press("Enter")
        contents.wait_for(state="hidden")
        page.keyboard.press("Enter")
        contents.wait_for(state="visible")
        return
    for key in ("Escape", "Shift+Tab", "Control+k", "p"):  # over the page, they go with the focus
        page.goto(address)
        button.press("Enter")
        page.wait_for_function("document.activeElement.closest('.bd-sidebar-primary')")
        page.keyboard.press(key)
        if key == "p":
            page.wait_for_selector(".slides-bar")
            page.keyboard.press(key)
        contents.wait_for(state="hidden")
