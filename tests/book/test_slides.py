"""A lesson is shown as slides, and a reference shows in place what it leads to."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote

import pytest
from serving import Server

import optdl

pytestmark = pytest.mark.xdist_group("toy")

QUESTION, FORMULA = "What is shown first?", "How does a formula stand?"
SLIDES = [
    ("Lesson slides", ["Some words, and"]),
    (QUESTION, ["The first sentence is here. What is in bold stays. Why is it so?"]),
    (FORMULA, []),
    (FORMULA, ["The sum is", "(1)", "where"]),
    (FORMULA, ["It is short."]),
    (FORMULA, ["Your turn", "Answer"]),
    (FORMULA, ["A gradient,", "Learning rate"]),
    (FORMULA, ["Exercise"]),
    ("To remember", ["What is one? What is another?"]),
]
"""Of each slide its heading, and with what its blocks begin, as a reader of the lesson cuts it."""
SHOWN = """() => [...document.querySelectorAll("article .slide-on")]
  .filter((block) => block.checkVisibility())
  .map((block) => block.innerText.replace(/\\s+/g, " ").trim())"""
CARD = "#hover-card:popover-open"


@pytest.fixture
def visit(tabs: Callable[..., Any], toy_server: Server) -> Callable[..., Any]:

    def opened(slide: str = "", **options: Any) -> Any:
        page = tabs(**options)
        page.goto(toy_server.at("book/more/slides") + slide)
        if slide:
            page.wait_for_selector(".slides-bar")
        return page

    return opened


def number(page: Any) -> int:
    """Return the number of the slide that is shown; 0 when the page is shown."""
    return page.evaluate("parseInt(document.querySelector('.slides-place')?.textContent ?? 0)")


def test_lesson_is_cut_into_slides(visit: Any) -> None:
    page = visit()
    page.keyboard.press("p")
    page.wait_for_selector(".slides-bar")
    for place, (heading, begins) in enumerate(SLIDES, 1):
        assert page.evaluate("location.hash") == f"#slide={place}"
        title, *blocks = page.evaluate(SHOWN)
        assert title.endswith(heading), place
        assert len(blocks) == len(begins), (place, blocks)
        assert all(map(str.startswith, blocks, begins)), (place, blocks)
        page.keyboard.press("ArrowRight")
    assert number(page) == len(SLIDES)
    # there is no other text than that of the page, and it is there again at the end
    page.keyboard.press("Escape")
    assert page.evaluate("document.querySelectorAll('[class*=slide-]').length") == 0
    assert page.evaluate("location.hash") == ""


def test_rest_of_a_long_paragraph_is_asked_for(visit: Any) -> None:
    page = visit("#slide=1")
    assert page.evaluate(SHOWN)[1].endswith("adds even more of it. Guess where each ends.")
    page.keyboard.press("ArrowRight")
    assert "count e.g. the words" not in page.evaluate(SHOWN)[1]
    page.keyboard.press("n")
    assert "count e.g. the words" in page.evaluate(SHOWN)[1]
    page.get_by_role("button", name="More of the text").click()
    assert "count e.g. the words" not in page.evaluate(SHOWN)[1]


def test_keys_and_links_move_and_keep_the_address(visit: Any) -> None:
    page, last = visit(), len(SLIDES)
    page.get_by_role("button", name="Show as slides").click()
    page.wait_for_selector(".slides-bar")
    page.evaluate("document.activeElement.blur()")
    keys = ["PageDown", "Space", "Shift+Space", "ArrowRight", "PageUp"]
    keys += ["End", "ArrowLeft", "Home", "ArrowLeft"]
    seen = [(page.keyboard.press(key), number(page))[1] for key in keys]
    assert seen == [2, 3, 2, 3, 2, last, last - 1, 1, 1]
    page.keyboard.press("ArrowRight")
    page.reload()
    page.wait_for_selector(".slides-bar")
    assert number(page) == 2
    # a visit is one entry of the history
    page.go_back()
    page.wait_for_selector(".slides-bar", state="detached")
    assert page.url.endswith("/slides.html")
    page.go_forward()
    page.wait_for_selector(".slides-bar")
    assert number(page) == 2
    page.keyboard.press("Escape")
    # it begins where the reader is
    page.evaluate("document.querySelector('.cards').scrollIntoView()")
    page.keyboard.press("p")
    assert number(page) == last
    # a link leads to the slide of its target
    for key in ("ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
    page.click(".slide-now a[href$='#equation-eq-sum']")
    page.wait_for_function("location.hash === '#slide=4'")
    assert number(page) == 4


def test_letters_are_no_keys_in_fields_or_off(visit: Any) -> None:
    page = visit()
    search = page.locator("#search-input")
    answer = page.locator("#cell-toy-words textarea")
    page.locator("#exercise-toy-words-question").scroll_into_view_if_needed()
    page.locator("#cell-toy-words button").first.click()
    answer.press_sequentially("p n")
    assert number(page) == 0
    page.click("article h1")
    page.keyboard.press("p")
    page.wait_for_selector(".slides-bar")
    page.keyboard.press("Control+k")
    page.keyboard.type(" pn")
    assert search.input_value() == " pn"
    page.keyboard.press("Escape")
    assert not search.is_visible()
    assert number(page) == 1
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    # the answer has come along, and its arrows stay in it
    answer.press("Home")
    answer.press_sequentially("P")
    answer.press("ArrowRight")
    assert answer.input_value() == "Pp n"
    assert number(page) == len(SLIDES) - 1
    page.click(".slides-keys summary")
    page.click(".slides-keys label")
    page.get_by_role("button", name="End the slides").click()
    assert answer.input_value() == "Pp n"
    for _ in range(2):
        page.keyboard.press("p")
        assert number(page) == 0
        page.reload()


def test_figure_is_explored_on_a_slide(visit: Any) -> None:
    page = visit("#slide=7")
    handle = page.locator(".ex-grip")
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 100, y + 40)
    page.mouse.up()
    moved = handle.bounding_box()
    # its positions are rounded to a grid of some pixels
    assert moved["x"] - box["x"] == pytest.approx(100, abs=6)
    assert moved["y"] - box["y"] == pytest.approx(40, abs=6)
    for key in ("ArrowRight", "p"):
        page.keyboard.press(key)
        assert number(page) == 7, "the key is the point's"


def test_each_slide_is_a_sheet_on_paper(visit: Any) -> None:
    pypdf = pytest.importorskip("pypdf")
    page = visit("#slide=6", color_scheme="dark")

    def printed() -> list[str]:
        pdf = page.pdf(prefer_css_page_size=True, print_background=True)
        sheets = pypdf.PdfReader(io.BytesIO(pdf)).pages
        assert {(sheet.mediabox.width, sheet.mediabox.height) for sheet in sheets} == {(960, 540)}
        # some fonts have one letter for fi
        texts = (normalize("NFKC", sheet.extract_text()) for sheet in sheets)
        return [" ".join(text.split()) for text in texts]

    closed = printed()
    for text, (heading, begins) in zip(closed, SLIDES, strict=True):
        assert heading in text
        assert not begins or begins[0].split(" e.g.")[0] in text
    assert "three" not in "".join(closed)
    page.click(".slide-now summary")
    opened = printed()
    assert len(opened) == len(SLIDES)
    assert "It is three." in opened[5]
    assert number(page) == 6


REFERENCES = {
    "a[href='#equation-eq-sum']": "(1)",
    "a[href='far.html#equation-eq-far']": "(2)",
    "a[href='far.html#term-gradient']": "gradient The vector of the derivatives.",
    "a.footnote-reference": "Diederik",
}
CENTER = "document.querySelector('.footnote-reference').scrollIntoView({block: 'center'})"


def test_reference_shows_what_it_leads_to(visit: Any) -> None:
    page = visit()
    card = page.locator(CARD)
    page.evaluate(CENTER)
    for selector, text in REFERENCES.items():
        link = page.locator(f"article p {selector}")
        link.hover()
        card.wait_for()
        assert " ".join(card.inner_text().split()).startswith(text)
        assert card.locator("mjx-container").count() == ("equation" in selector)
        assert link.get_attribute("aria-describedby") == "hover-card"
        assert card.locator("[id], a").count() == 0
        # it stays while the mouse is on it, and goes with Escape
        card.hover()
        page.keyboard.press("Escape")
        assert not card.is_visible()
        assert link.get_attribute("aria-describedby") is None
        # by keyboard, which the mouse does not disturb
        page.mouse.move(0, 0)
        page.keyboard.press("Shift")
        link.focus()
        card.wait_for()
        link.blur()
        card.wait_for(state="hidden")


def test_report_link_names_page_and_heading(visit: Any) -> None:
    page = visit()
    page.context.route("https://github.com/**", lambda route: route.fulfill(body="A form"))
    with page.expect_popup() as form:
        page.locator("h2").first.get_by_role("link", name="Something wrong here?").press("Enter")
    form.value.wait_for_url("https://github.com/**")
    title = "title=Something wrong in “Lesson slides — A small book”"
    body = f"What is wrong?\n\nPage: {page.url}#what-is-shown-first\nVersion: {optdl.__version__}"
    assert (
        unquote(form.value.url) == f"https://github.com/ada/course/issues/new?{title}&body={body}"
    )


def test_tap_shows_and_a_second_one_follows(visit: Any) -> None:
    page = visit(has_touch=True, viewport={"width": 390, "height": 800})
    link = page.locator("article p a[href='far.html#term-gradient']")
    page.evaluate(CENTER)
    link.tap()
    page.wait_for_selector(CARD)
    assert "slides" in page.url
    page.touchscreen.tap(5, 790)
    page.wait_for_selector(CARD, state="hidden")
    link.tap()
    page.wait_for_selector(CARD)
    link.tap()
    page.wait_for_url("**/far.html#term-gradient")


def test_another_page_on_the_disk_is_not_read(tabs: Callable[..., Any], toy_site: Path) -> None:
    page, messages = tabs(), []
    page.on("console", lambda message: messages.append((message.type, message.text)))
    page.goto((toy_site / "book" / "more" / "slides.html").as_uri() + "#slide=7")
    page.wait_for_selector(".slides-bar")
    page.hover(".slide-now a[href='far.html#equation-eq-far']")
    page.hover(".slide-now a[href='#equation-eq-sum']")
    page.wait_for_selector(CARD)
    assert page.locator(CARD).inner_text().startswith("(1)")
    assert [text for kind, text in messages if kind == "error"] == []
