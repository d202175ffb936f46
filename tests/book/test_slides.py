"""A lesson is shown as slides, and a reference shows in place what it leads to."""

import functools
import http.server
import io
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from test_book import ROOT, Toy

from tools import book
from tools.inpage import parts

pytestmark = pytest.mark.xdist_group("slides")

LESSON = """
```{lesson}
:minutes: 5
```

## What is shown first?

The first sentence is here. It is followed by another one, in which Bottou et al. (2018) count e.g.
the words of a paragraph that is long, so that not all of it is read aloud in class. **What is in
bold stays.** What is neither the first nor in bold comes later. Why is it so?

## How does a formula stand?

The sum is

$$
s = a + b,
$$ (eq-sum)

where $a$ is a number. It is short.

```{admonition} Your turn
What is the sum of 1 and 2?
```

```{admonition} Answer
:class: dropdown
It is three.
```

A {term}`gradient`, {eq}`eq-sum`, {eq}`eq-far` and a source {footcite:p}`kingma2015`.

```{explore} descent
:alt: Level curves of a long valley, and a path through it.
Drag the start.
```

```{exercise} erm-question
```

```{cards}
What is one?
: A number.

What is two?
: Another.
```

## References

```{footbibliography}
```
"""

FAR = """
$$
f = 1
$$ (eq-far)

```{glossary}
gradient
    The vector of the derivatives.
```
"""

SLIDES = [
    ("A title", ["Some words, and"]),
    ("What is shown first?", ["The first sentence is here. What is in bold stays. Why is it so?"]),
    ("How does a formula stand?", []),
    ("How does a formula stand?", ["The sum is", "(1)", "where"]),
    ("How does a formula stand?", ["It is short."]),
    ("How does a formula stand?", ["Your turn", "Answer"]),
    ("How does a formula stand?", ["A gradient,", "Learning rate"]),
    ("How does a formula stand?", ["Exercise"]),
    ("To remember", ["What is one? What is two?"]),
]
"""Of each slide its heading, and with what its blocks begin, as a reader of LESSON would cut it."""

SHOWN = """() => [...document.querySelectorAll("article .slide-on")]
  .filter((block) => block.checkVisibility())
  .map((block) => block.innerText.replace(/\\s+/g, " ").trim())"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Build a book of one lesson and one other page."""
    patch = pytest.MonkeyPatch()
    toy = Toy(tmp_path_factory.mktemp("slides") / "toy")
    (toy.root / "exercises").symlink_to(ROOT / "exercises")
    toy.write(index=LESSON, far=FAR)
    patch.setattr(book, "ROOT", toy.root)
    # that of the course, which is kept
    patch.setattr(book, "_hand_out_python", lambda site: parts.install(site, ROOT))
    yield book.build(out=toy.root)
    patch.undo()


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Serve the book; return the address of the lesson."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/book/index.html"
    server.shutdown()
    server.server_close()


Visit = Callable[..., Any]


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Visit]:
    """Return a function that opens the lesson, and refuses any error on it."""
    contexts, errors = [], []

    def opened(after: str = "", **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 720}} | options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address + after, wait_until="load")
        if after:
            page.wait_for_selector(".slides-bar")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert errors == []


def number(page: Any) -> int:
    """Return the number of the slide that is shown; 0 when the page is shown."""
    return page.evaluate("parseInt(document.querySelector('.slides-place')?.textContent ?? 0)")


# --- slides ---


def test_a_lesson_is_cut_into_slides(visit: Visit) -> None:
    page = visit()
    page.keyboard.press("p")
    page.wait_for_selector(".slides-bar")
    for place, (heading, begins) in enumerate(SLIDES, 1):
        assert page.url.endswith(f"#slide={place}")
        title, *blocks = page.evaluate(SHOWN)
        assert title.endswith(heading), place
        assert len(blocks) == len(begins), (place, blocks)
        for block, begin in zip(blocks, begins, strict=True):
            assert block.startswith(begin), place
        page.keyboard.press("ArrowRight")
    assert number(page) == len(SLIDES)
    # there is no other text than that of the page, and it is there again at the end
    page.keyboard.press("Escape")
    assert page.evaluate("document.querySelectorAll('[class*=slide-]').length") == 0
    assert "#" not in page.url


def test_the_rest_of_a_long_paragraph_is_asked_for(visit: Visit) -> None:
    page = visit("#slide=2")
    page.keyboard.press("n")
    assert "count e.g. the words" in page.evaluate(SHOWN)[1]
    page.get_by_role("button", name="More of the text").click()
    assert "count e.g. the words" not in page.evaluate(SHOWN)[1]


def test_keys_move_and_the_address_is_kept(visit: Visit) -> None:
    page = visit()
    page.get_by_role("button", name="Show as slides").click()
    page.wait_for_selector(".slides-bar")
    seen = []
    page.evaluate("document.activeElement.blur()")
    for key in (
        "PageDown",
        "Space",
        "Shift+Space",
        "ArrowRight",
        "PageUp",
        "End",
        "ArrowLeft",
        "Home",
        "ArrowLeft",
    ):
        page.keyboard.press(key)
        seen.append(number(page))
    last = len(SLIDES)
    assert seen == [2, 3, 2, 3, 2, last, last - 1, 1, 1]
    page.keyboard.press("ArrowRight")
    page.reload()
    page.wait_for_selector(".slides-bar")
    assert number(page) == 2
    # a visit is one entry of the history
    page.go_back()
    page.wait_for_selector(".slides-bar", state="detached")
    assert page.url.endswith("/index.html")
    page.go_forward()
    page.wait_for_selector(".slides-bar")
    assert number(page) == 2
    page.keyboard.press("Escape")
    # it begins where the reader is
    page.evaluate("document.querySelector('.cards').scrollIntoView()")
    page.keyboard.press("p")
    assert number(page) == last


def test_a_link_on_a_slide_leads_to_a_slide(visit: Visit) -> None:
    page = visit("#slide=7")
    page.click(".slide-now a[href$='#equation-eq-sum']")
    page.wait_for_function("location.hash === '#slide=4'")
    assert number(page) == 4


def test_letters_are_no_keys_where_somebody_types_or_has_switched_them_off(visit: Visit) -> None:
    page = visit()
    page.keyboard.press("Control+k")
    page.keyboard.type("pop")
    assert page.locator("#search-input").input_value() == "pop"
    page.keyboard.press("Escape")
    answer = page.locator("#cell-erm-question textarea")
    page.locator("#exercise-erm-question").scroll_into_view_if_needed()
    page.locator("#cell-erm-question button").first.click()
    answer.wait_for()
    answer.press_sequentially("p n")
    assert number(page) == 0
    page.click("article h1")
    page.keyboard.press("p")
    page.wait_for_selector(".slides-bar")
    page.keyboard.press("Control+k")
    page.keyboard.type(" pn")
    assert page.locator("#search-input").input_value() == " pn"
    page.keyboard.press("Escape")
    assert not page.locator("#search-input").is_visible()
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


def test_a_figure_is_explored_on_a_slide(visit: Visit) -> None:
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


def test_each_slide_is_a_page_on_paper(visit: Visit) -> None:
    pypdf = pytest.importorskip("pypdf")
    page = visit("#slide=6", color_scheme="dark")

    def printed() -> list[str]:
        pdf = page.pdf(prefer_css_page_size=True, print_background=True)
        pages = pypdf.PdfReader(io.BytesIO(pdf)).pages
        assert {(one.mediabox.width, one.mediabox.height) for one in pages} == {(960, 540)}
        return [" ".join(one.extract_text().split()) for one in pages]

    closed = printed()
    assert len(closed) == len(SLIDES)
    for text, (heading, begins) in zip(closed, SLIDES, strict=True):
        assert heading in text
        assert not begins or begins[0].split(" e.g.")[0] in text
    assert "three" not in "".join(closed)
    page.click(".slide-now summary")
    opened = printed()
    assert len(opened) == len(SLIDES)
    assert "It is three." in opened[5]
    assert number(page) == 6


def test_without_scripts_there_is_no_button(visit: Visit) -> None:
    page = visit(java_script_enabled=False)
    assert page.locator(".slides-button").count() == 1
    assert not page.locator(".slides-button").is_visible()


# --- references ---

CARD = "#hover-card:popover-open"
REFERENCES = {
    "a[href='#equation-eq-sum']": "(1)",
    "a[href='far.html#equation-eq-far']": "(2)",
    "a[href='far.html#term-gradient']": "gradient The vector of the derivatives.",
    "a.footnote-reference": "Diederik",
}


def test_a_reference_shows_what_it_leads_to(visit: Visit) -> None:
    page = visit()
    card = page.locator(CARD)
    page.evaluate("document.querySelector('article p a').scrollIntoView({ block: 'center' })")
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


def test_a_tap_shows_and_a_second_one_follows(visit: Visit) -> None:
    page = visit(has_touch=True, viewport={"width": 390, "height": 800})
    link = page.locator("article p a[href='far.html#term-gradient']")
    page.evaluate("document.querySelector('article p a').scrollIntoView({ block: 'center' })")
    link.tap()
    page.wait_for_selector(CARD)
    assert "index" in page.url
    page.touchscreen.tap(5, 790)
    page.wait_for_selector(CARD, state="hidden")
    link.tap()
    page.wait_for_selector(CARD)
    link.tap()
    page.wait_for_url("**/far.html#term-gradient")


def test_from_the_disk_another_page_is_not_read(browser: Any, site: Path) -> None:
    page = browser.new_page()
    said = []
    page.on("console", lambda message: said.append(message) if message.type == "error" else None)
    page.goto((site / "book" / "index.html").as_uri() + "#slide=7")
    page.wait_for_selector(".slides-bar")
    page.hover(".slide-now a[href='far.html#equation-eq-far']")
    page.hover(".slide-now a[href='#equation-eq-sum']")
    page.wait_for_selector(CARD)
    assert page.locator(CARD).inner_text().startswith("(1)")
    page.close()
    assert said == []
