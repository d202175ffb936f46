"""A lesson is shown as slides, and a reference shows in place what it leads to."""

import io
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote

import pytest
from serving import play

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
LESSON, LAST = "book/more/slides.html", len(SLIDES)
SHOWN = """[...document.querySelectorAll("article .slide-on")]
  .filter((block) => block.checkVisibility())
  .map((block) => block.innerText.replace(/\\s+/g, " ").trim())"""
NUMBER = "parseInt(document.querySelector('.slides-place')?.textContent ?? 0)"
"""The number of the slide that is shown; 0 when the page is shown."""
REST = f"{SHOWN}[1].includes('count e.g. the words')"
ANSWER = "document.querySelector('#cell-toy-words textarea')?.value"
SEARCH = "(e => e.checkVisibility() && e.value)(document.querySelector('#search-input'))"
MOVES = (
    "PageDown 2 Space 3 Shift+Space 2 ArrowRight 3 PageUp 2 End 9 ArrowLeft 8 Home 1 ArrowLeft 1"
)
CARD = "#hover-card:popover-open"
PLAYS: dict[str, list[tuple[str, str, Any]]] = {
    "rest of a paragraph": [
        ("press p", f"{SHOWN}[1].endsWith('adds even more of it. Guess where each ends.')", True),
        ("press ArrowRight", REST, False),
        ("press n", REST, True),
        ("click role=button[name=/More of the text/]", REST, False),
    ],
    "keys and history": [
        ("click role=button[name='Show as slides']", NUMBER, 1),
        ("evaluate document.activeElement.blur()", NUMBER, 1),
        *(
            (f"press {key}", NUMBER, int(n))
            for key, n in zip(*[iter(MOVES.split())] * 2, strict=True)
        ),
        ("press ArrowRight", NUMBER, 2),
        ("reload", NUMBER, 2),
        ("go_back", "location.href.endsWith('/slides.html')", True),
        ("", NUMBER, 0),
        ("go_forward", NUMBER, 2),
        ("press Escape", "location.hash", ""),
    ],
    "place of the reader": [
        ("evaluate document.querySelector('.cards').scrollIntoView()", NUMBER, 0),
        ("press p", NUMBER, LAST),
        ("press ArrowLeft ArrowLeft", NUMBER, LAST - 2),
        ("click .slide-now a[href$='#equation-eq-sum']", "location.hash", "#slide=4"),
        ("", NUMBER, 4),
    ],
    "letters in fields": [
        # its button comes when it is near
        ("evaluate document.getElementById('cell-toy-words').scrollIntoView()", NUMBER, 0),
        ("click #cell-toy-words button >> nth=0", ANSWER, ""),
        ("type p n", ANSWER, "p n"),
        ("click article h1", NUMBER, 0),
        ("press p", NUMBER, 1),
        ("press Control+k", SEARCH, ""),
        ("type  pn", SEARCH, " pn"),
        ("press Escape", SEARCH, False),
        ("press End ArrowLeft", NUMBER, LAST - 1),
        # the answer has come along, and its arrows stay in it
        ("focus #cell-toy-words textarea", NUMBER, LAST - 1),
        ("press Home P ArrowRight", ANSWER, "Pp n"),
        ("click .slides-keys summary", NUMBER, LAST - 1),
        ("click .slides-keys label", NUMBER, LAST - 1),
        ("click role=button[name=/End the slides/]", ANSWER, "Pp n"),
        ("press p", NUMBER, 0),
        ("reload", NUMBER, 0),
        ("press p", NUMBER, 0),
    ],
    "keys of a figure": [
        ("press p", NUMBER, 1),
        ("press End ArrowLeft ArrowLeft", NUMBER, 7),
        ("focus .slide-now [role=slider]", NUMBER, 7),
        ("press ArrowRight p", NUMBER, 7),
        ("focus .slide-now input[type=range] >> nth=0", NUMBER, 7),
        ("press ArrowRight", NUMBER, 7),
    ],
}
"""What is done on the lesson, and what is seen then."""


@pytest.mark.parametrize("name", PLAYS)
def test_slides_follow_keys_and_links(visit, name):
    play(visit(LESSON), *PLAYS[name])


def test_lesson_is_cut_into_slides(visit):
    page = visit(f"{LESSON}#slide=1")
    page.wait_for_selector(".slides-bar")
    for place, (heading, begins) in enumerate(SLIDES, 1):
        assert page.evaluate("location.hash") == f"#slide={place}"
        title, *blocks = page.evaluate(SHOWN)
        assert title.endswith(heading), place
        assert len(blocks) == len(begins), (place, blocks)
        assert all(map(str.startswith, blocks, begins)), (place, blocks)
        page.keyboard.press("ArrowRight")
    # there is no other text than that of the page, and it is there again at the end
    left = "[document.querySelectorAll('[class*=slide-]').length, location.hash]"
    play(page, ("", NUMBER, LAST), ("press Escape", left, [0, ""]))


def test_point_follows_the_mouse_on_a_slide(visit):
    page = visit(f"{LESSON}#slide=7")
    page.wait_for_selector(".slides-bar")
    grip = page.locator(".slide-now .ex-grip")
    box = grip.bounding_box()
    grip.hover()
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + 100, box["y"] + box["height"] / 2 + 40)
    page.mouse.up()
    moved = grip.bounding_box()
    # its positions are rounded to a grid of some pixels
    assert [moved[side] - box[side] for side in "xy"] == pytest.approx([100, 40], abs=6)


def test_each_slide_is_a_sheet_on_paper(visit):
    pypdf = pytest.importorskip("pypdf")
    page = visit(f"{LESSON}#slide=6", color_scheme="dark")
    page.wait_for_selector(".slides-bar")

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
    assert len(opened) == LAST
    assert "It is three." in opened[5]
    play(page, ("", NUMBER, 6))


CENTER = "evaluate document.querySelector('.footnote-reference').scrollIntoView({block: 'center'})"
TERM = "article p a[href='far.html#term-gradient']"
SHOWS = f"document.querySelector('{CARD}')?.innerText.trim().split(/\\s+/)[0]"
REFERENCES = {
    "article p a[href='#equation-eq-sum']": "(1)",
    "article p a[href='far.html#equation-eq-far']": "(2)",
    TERM: "gradient",
    "article p a.footnote-reference": "Diederik",
}


@pytest.mark.parametrize(("selector", "text"), REFERENCES.items())
def test_reference_shows_what_it_leads_to(visit, selector, text):
    link = f"document.querySelector(`{selector}`)"
    described = f"[{SHOWS}, {link}.getAttribute('aria-describedby')]"
    parts = [
        f"document.querySelectorAll('{CARD} {x}').length" for x in ("mjx-container", ":is(a, [id])")
    ]
    play(
        visit(LESSON),
        (CENTER, SHOWS, None),
        (f"hover {selector}", described, [text, "hover-card"]),
        ("", f"[{', '.join(parts)}]", [int("equation" in selector), 0]),
        (f"hover {CARD}", SHOWS, text),  # it stays while the mouse is on it
        ("press Escape", described, [None, None]),
        # by keyboard, which the mouse does not disturb
        ("hover article h1", SHOWS, None),
        ("press Shift", SHOWS, None),
        (f"focus {selector}", SHOWS, text),
        (f"evaluate {link}.blur()", SHOWS, None),
    )


def test_tap_shows_and_a_second_one_follows(visit):
    touched = visit(LESSON, has_touch=True, viewport={"width": 390, "height": 800})
    play(
        touched,
        (CENTER, SHOWS, None),
        (f"tap {TERM}", SHOWS, "gradient"),
        ("tap article h1", SHOWS, None),
        (f"tap {TERM}", SHOWS, "gradient"),
        (
            f"tap {TERM}",
            "location.pathname.endsWith('far.html') && location.hash",
            "#term-gradient",
        ),
    )


def test_report_link_names_page_and_heading(visit):
    page = visit(LESSON)
    page.context.route("https://github.com/**", lambda route: route.fulfill(body="A form"))
    with page.expect_popup() as form:
        page.locator("h2").first.get_by_role("link", name="Something wrong here?").press("Enter")
    form.value.wait_for_url("https://github.com/**")
    title = "title=Something wrong in “Lesson slides — A small book”"
    body = f"What is wrong?\n\nPage: {page.url}#what-is-shown-first\nVersion: {optdl.__version__}"
    assert (
        unquote(form.value.url) == f"https://github.com/ada/course/issues/new?{title}&body={body}"
    )


def test_another_page_on_the_disk_is_not_read(tabs, toy_site):
    page, messages = tabs(), []
    page.on("console", lambda message: messages.append((message.type, message.text)))
    page.goto((toy_site / "book" / "more" / "slides.html").as_uri() + "#slide=7")
    page.wait_for_selector(".slides-bar")
    page.hover(".slide-now a[href='far.html#equation-eq-far']")
    page.hover(".slide-now a[href='#equation-eq-sum']")
    page.wait_for_selector(CARD)
    assert page.locator(CARD).inner_text().startswith("(1)")
    assert [text for kind, text in messages if kind == "error"] == []
