"""What a person types arrives: each key that is pressed in a field is the field's alone."""

from collections.abc import Iterator
from typing import Any

import pytest
from serving import TEXT, Server

pytestmark = pytest.mark.xdist_group("live")

KEYS = "".join(map(chr, range(32, 127))) + "éüΩ"
OUTLINE = "getComputedStyle(document.activeElement).outlineStyle"
PAGE = "book/bnp_cnn/statistics"
"""A lesson with an exercise."""


WIDE, NARROW = ({"width": width, "height": 800} for width in (1280, 390))


@pytest.fixture(scope="module")
def page(browser: Any, site_server: Server) -> Iterator[Any]:
    page = browser.new_page(viewport=NARROW, reduced_motion="reduce", service_workers="block")
    page.goto(site_server.at(PAGE))
    yield page
    page.close()


def edit(page: Any, field: Any) -> None:
    """Press every key that a person may press to change a text, and compare what is there."""
    page.keyboard.press("Control+a")
    page.keyboard.type(KEYS)
    assert field.evaluate(TEXT) == KEYS
    page.keyboard.press("Backspace")
    page.keyboard.type(KEYS[-1])
    for keys, text in (
        (["Control+a", "Delete"], ""),
        (["Control+z"], KEYS),
        (["Control+y"], ""),
        (["Control+z", "Control+a", "Control+c", "End", "Control+v"], 2 * KEYS),
        (["Control+k"], 2 * KEYS),
    ):
        for key in keys:
            page.keyboard.press(key)
        assert field.evaluate(TEXT) == text


def test_an_answer_gets_every_key(page):
    box = page.locator("#cell-bnp_cnn-channel-statistics")
    box.scroll_into_view_if_needed()  # the page begins with exercises when one comes near
    box.locator(".exercise-bar button").first.press("Enter")
    field = box.locator("[role=textbox]")
    page.wait_for_function("document.activeElement.closest('.exercise-editor')")
    edit(page, field)
    page.keyboard.press("Control+a")
    for line in ("if a:", "b = [1]"):
        page.keyboard.type(line)
        page.keyboard.press("Enter")
    text = "if a:\n    b = [1]\n    "
    assert field.evaluate(TEXT) == text
    page.keyboard.press("Tab")
    assert field.evaluate(TEXT) == f"{text}    "
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.exercise-bar')") is not None
    assert field.evaluate(TEXT) == text
    assert page.url.endswith(f"{PAGE}.html")


def test_the_search_gets_every_key(page):
    page.locator("h1").click()
    page.keyboard.press("Control+k")
    field = page.locator(".search-button__wrapper input")
    edit(page, field)
    page.keyboard.press("Escape")
    assert not field.is_visible()
    page.keyboard.press("Control+k")
    assert field.input_value() == 2 * KEYS
    page.keyboard.type(KEYS)
    page.keyboard.press("Control+Enter")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    field = page.locator(".bd-search-container input")
    assert field.input_value() == KEYS


def test_the_contents_come_and_go_by_keyboard(page, site_server):
    contents = page.locator(".bd-sidebar-primary")
    button = page.get_by_role("button", name="Contents of the course")
    for key in ("Escape", "Shift+Tab", "Control+k", "p"):  # over the page, they go with the focus
        page.goto(site_server.at(PAGE))
        button.press("Enter")
        page.wait_for_function("document.activeElement.closest('.bd-sidebar-primary')")
        page.keyboard.press(key)
        if key == "p":
            page.wait_for_selector(".slides-bar")
            page.keyboard.press(key)
        contents.wait_for(state="hidden")
    # beside the page, the button hides them, and keeps the focus
    page.emulate_media(reduced_motion="no-preference")  # they take their time to go
    for size in (WIDE | {"width": 975}, WIDE):
        page.set_viewport_size(size)
        page.goto(site_server.at(PAGE))
        button.press("Enter")
        contents.wait_for(state="hidden")
        assert page.evaluate(OUTLINE) == "solid"
        page.keyboard.press("Enter")
        contents.wait_for(state="visible")
    page.emulate_media(forced_colors="active")  # no shadow is drawn
    page.locator(".bd-sidebar-primary li a").first.focus()
    assert page.evaluate(OUTLINE) == "solid"
