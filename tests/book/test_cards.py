"""Cards come back by Leitner's boxes; progress is shown, and moves to another browser as a file."""

import csv
import functools
import http.server
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tools import cards

pytestmark = pytest.mark.xdist_group("cards")

ROOT = Path(__file__).resolve().parents[2]

# --- a small book, built as the site is ---

LESSON = "(toy-{name})=\n# Lesson {name}\n\n```{{lesson}}\n:minutes: 10\n```\n\n{body}\n"
QUESTIONS = "\n\n".join(f"Question {k}?\n: Answer {k}." for k in range(1, 31))
PAGES = {
    "index": "# Course\n\n```{container} go-on\n{doc}`Begin <toy/one>`\n```\n",
    "toy/index": "# Toys\n\n```{lessons}\n```\n",
    "toy/one": LESSON.format(
        name="one",
        body="```{exercise} toy-double\n```\n\n"
        "```{cards}\nWhat is $x^2$ for $x = 3$?\n: $9$.\n\nIs it odd?\n: Yes.\n```",
    ),
    "toy/two": LESSON.format(name="two", body="```{cards}\nWhat is two?\n: A number.\n```"),
    "more/index": "# More\n\n```{lessons}\n```\n",
    "more/many": LESSON.format(name="many", body=f"```{{cards}}\n{QUESTIONS}\n```"),
    "exercises": "# Exercises\n\n```{exercise-list}\n```\n\n```{exercises} toy\n```\n",
    "review": "# Review\n\nA $k$.\n\n```{review}\n```\n\n"
    '<div class="progress-file"></div>\n\n```{card-list}\n```\n',
}
CONTENTS = """format: jb-book
root: book/index
chapters:
- file: book/toy/index
  sections:
  - file: book/toy/one
  - file: book/toy/two
- file: book/more/index
  sections:
  - file: book/more/many
- file: book/exercises
- file: book/review
"""
CELLS = (
    ("markdown", "toy-double-task", "## 1 · Double\n\nDouble it.", {}),
    ("code", "toy-double", "def double(x):\n    raise NotImplementedError()", {"solution": True}),
    ("markdown", "toy-half-task", "## 2 · Halve\n\nHalve it.", {}),
    ("code", "toy-half", "def half(x):\n    raise NotImplementedError()", {"solution": True}),
    ("markdown", "toy-words-question", "## 3 · Explain\n\nWhy?", {}),
    ("markdown", "toy-words", "", {"solution": True}),
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the small book with the settings and extensions of this one."""
    root = tmp_path_factory.mktemp("toy")
    for name in (
        "book/_ext",
        "book/_static",
        "book/_templates",
        "book/references.bib",
        "_config.yml",
    ):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).symlink_to(ROOT / name)
    for name, text in PAGES.items():
        (root / "book" / name).parent.mkdir(exist_ok=True)
        (root / "book" / f"{name}.md").write_text(text, "utf-8")
    (root / "_toc.yml").write_text(CONTENTS, "utf-8")
    notebook = [
        {"cell_type": kind, "id": name, "source": text, "metadata": {"nbgrader": marks}}
        for kind, name, text, marks in CELLS
    ]
    (root / "exercises" / "toy").mkdir(parents=True)
    (root / "exercises" / "toy" / "toy.ipynb").write_text(json.dumps({"cells": notebook}), "utf-8")
    subprocess.run(
        [sys.executable, "-m", "tools.sphinx_build", str(root), str(root), "1"],
        input="build",
        text=True,
        check=True,
        capture_output=True,
        cwd=ROOT,
    )
    return root / "_build" / "html"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder without a word."""

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Serve the site on loopback, below a sub-path."""
    handler = functools.partial(Handler, directory=str(site.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/html/book"
        server.shutdown()


class Reader:
    """A reader with a browser, a clock and a keyboard."""

    def __init__(self, context: Any, address: str) -> None:
        self.context, self.address = context, address
        self.page = context.new_page()

    def on(self, day: str) -> "Reader":
        """Set the clock."""
        self.context.clock.set_fixed_time(datetime.fromisoformat(f"{day}+00:00"))
        return self

    def open(self, name: str) -> "Reader":
        """Open a page."""
        self.page.goto(f"{self.address}/{name}.html")
        return self

    def answer(self, *keys: str) -> None:
        """Answer one card after the other by keyboard; Enter shows the answer."""
        self.page.locator("details.card:visible summary").first.focus()
        for key in keys:
            self.page.keyboard.press("Enter")
            self.page.keyboard.press(key)

    def said(self) -> str:
        """Return what is said about the cards."""
        return str(self.page.locator(".card-said").first.inner_text())

    def review(self, day: str) -> str:
        """Look at the review on a day, and return what it says."""
        self.on(f"{day}T12:00")
        if not self.page.url.endswith("/review.html"):
            self.open("review")
        self.page.evaluate("dispatchEvent(new Event('progress'))")
        return self.said()

    def solve(self, name: str) -> None:
        """Keep a right answer, as the exercise does when its check agrees."""
        self.keep(f"optdl:answer:{name}", {"text": "right", "passed": "right"})

    def keep(self, key: str, value: object) -> None:
        """Put something into the storage of the browser."""
        self.page.evaluate("entry => localStorage.setItem(...entry)", [key, json.dumps(value)])

    def kept(self, key: str) -> Any:
        """Return what the storage of the browser has."""
        return json.loads(self.page.evaluate("key => localStorage.getItem(key)", key) or "null")

    def done(self) -> list[str]:
        """Return the titles in the sidebar that are marked as done."""
        links = self.page.locator("nav.bd-links a:has([role=img][aria-label=done])")
        return [
            re.sub(r"^[\d.]+ |\d+ min✓", "", text).strip() for text in links.all_text_contents()
        ]


OWN = re.compile(r"/_static/(progress|review)\.js")


@pytest.fixture
def reader(browser: Any, address: str) -> Iterator[Callable[..., Reader]]:
    """Return a function that gives a new browser to a reader; any error on a page is refused."""
    contexts, errors = [], []

    def made(script: str = "", at: str = address, **options: Any) -> Reader:
        context = browser.new_context(**options)
        contexts.append(context)
        # scripts of Sphinx and of the theme cannot do without storage
        context.on(
            "weberror", lambda e: errors.append(e.error.stack) if OWN.search(e.error.stack) else 0
        )
        if script:
            context.add_init_script(script)
        return Reader(context, at)

    yield made
    for context in contexts:
        context.close()
    assert errors == []


# --- Leitner's boxes, against dates that were counted by hand ---

DUE = {
    "01-10": "01-11",
    "01-13": "01-14",
    "01-20": "01-21",
    "02-03": "02-04",
    "03-05": "03-06",
    "06-03": "06-04",
    "09-01": "09-02",
}
"""Days of 2026 on which a card is due, by the day before.

It is answered on 10 January and always known.
"""


def test_a_known_card_comes_back_after_1_3_7_14_30_and_90_days(
    reader: Callable[..., Reader],
) -> None:
    ada = reader(timezone_id="UTC").on("2026-01-10T12:00").open("toy/two")
    ada.answer("1")
    for before, day in DUE.items():
        assert ada.review(f"2026-{before}") == "No card is due today. The next one is due in 1 day."
        assert ada.review(f"2026-{day}") == "1 card to answer today."
        ada.answer("1" if day != "09-02" else "2")
    assert ada.said() == "No card is due today. The next one is due in 1 day."
    assert ada.review("2026-09-03") == "1 card to answer today."
    ada.answer("1")
    assert ada.said() == "No card is due today. The next one is due in 3 days."


def test_a_day_ends_at_midnight_where_the_reader_is(reader: Callable[..., Reader]) -> None:
    ada = reader(timezone_id="America/New_York")
    ada.on("2026-01-11T04:30").open("toy/two").answer("1")  # 10 January, 23:30 in New York
    assert ada.open("review").said().startswith("No card is due")
    assert ada.on("2026-01-11T05:30").open("review").said() == "1 card to answer today."


def test_at_most_twenty_cards_a_day(reader: Callable[..., Reader]) -> None:
    ada = reader(timezone_id="UTC").on("2026-01-10T12:00").open("more/many")
    ada.answer(*["1"] * 30)
    assert ada.said() == "All answered. The cards come back on the page Review."
    assert ada.review("2026-01-11") == "20 cards to answer today, and 10 more on the next days."
    ada.answer(*"12" * 10)
    end = "You have answered 20 cards today, which is enough. 10 cards will be asked on the next"
    assert ada.said().startswith(end)
    assert ada.page.locator("details.card").count() == 0
    # the ten that have waited longest come before the ten that were not known
    assert ada.review("2026-01-12") == "20 cards to answer today."
    waiting = {f"Question {k}?" for k in range(1, 31)}
    boxes = ada.kept("optdl:cards")
    first = ada.page.locator("details.card").get_attribute("id").removeprefix("card-")
    assert boxes[first] == [1, boxes[first][1], 1]
    assert ada.page.locator("details.card summary").inner_text() in waiting


def test_a_clock_set_back_neither_loses_nor_repeats_a_card(reader: Callable[..., Reader]) -> None:
    ada = reader(timezone_id="UTC").on("2030-05-01T12:00").open("toy/two")
    ada.answer("1")
    assert ada.review("2026-01-10") == "No card is due today. The next one is due in 1 day."
    assert ada.review("2026-01-11") == "1 card to answer today."


# --- what is shown of a reader's progress ---


def test_a_lesson_is_done_with_its_exercises_and_its_cards(reader: Callable[..., Reader]) -> None:
    ada = reader().open("toy/one")
    assert ada.page.locator(".cards-title").inner_text() == "To remember · card 1 of 2"
    assert ada.page.locator("details.card:visible").count() == 1
    ada.answer("1", "2")
    assert ada.page.locator("details.card:visible").count() == 2
    assert ada.done() == []
    ada.solve("toy-double")
    # as the exercise of a page does it
    ada.page.locator("#cell-toy-double").evaluate("cell => cell.classList.add('exercise-passed')")
    ada.page.locator("nav [aria-label=done]").wait_for()
    assert ada.done() == ["Lesson one"]
    assert "2 lessons, 20 minutes · 1 of 2 done" in ada.open("toy/index").page.inner_text("article")
    marked = ada.page.locator("ol.lessons li:has([aria-label=done])")
    assert "Lesson one" in marked.inner_text()
    text = ada.open("exercises").page.inner_text("article")
    assert "2 exercises with a check · 1 of 2 done" in text
    listed = ada.page.locator(".exercise-list li")
    titles = [line.split(" · ")[1] for line in listed.all_inner_texts()]
    assert titles == ["Double✓", "Halve", "Explain"]


def test_the_front_page_leads_on(reader: Callable[..., Reader]) -> None:
    ada = reader().open("index")
    link = ada.page.locator(".go-on a")
    assert link.inner_text() == "Begin"
    ada.open("toy/two").open("index")
    assert link.inner_text() == "Go on with: Lesson two"
    ada.open("toy/two").answer("1")
    ada.open("index")
    link.click()
    ada.page.wait_for_url("**/more/many.html")


PLACES = """() => {
  const parts = document.querySelectorAll("nav a, .minutes, ol.lessons li, .go-on, h1, h1 ~ p");
  return [...parts].map((part) => part.getBoundingClientRect().toJSON());
}"""


def test_nothing_moves_when_progress_is_shown(reader: Callable[..., Reader]) -> None:
    ada = reader().open("toy/one")
    ada.answer("1", "1")
    ada.solve("toy-double")
    places: list[Any] = []
    for script in ("empty", "real"):
        if script == "empty":
            ada.context.route("**/progress.js*", lambda route: route.fulfill(body=""))
        else:
            ada.context.unroute("**/progress.js*")
        places.append([])
        for width in (1280, 390):
            ada.page.set_viewport_size({"width": width, "height": 800})
            for name in ("index", "toy/index"):
                places[-1].append(ada.open(name).page.evaluate(PLACES))
    assert places[0] == places[1]
    assert ada.page.locator("[aria-label=done]").count() == 2


# --- storage ---

BLOCKED = "Object.defineProperty(window, 'localStorage', {get() { throw new Error('blocked') }})"
FULL = "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') }"


@pytest.mark.parametrize("script", [BLOCKED, FULL], ids=["blocked", "full"])
def test_without_storage_the_page_works_and_says_once_that_nothing_is_kept(
    reader: Callable[..., Reader], script: str
) -> None:
    ada = reader(script).open("toy/one")
    ada.answer("1")
    assert "This browser keeps nothing" in ada.said()
    ada.answer("1")
    assert ada.said() == "All answered. The cards come back on the page Review."
    assert "Go on" not in ada.open("index").page.inner_text("article")
    assert ada.open("review").said().startswith("There are no cards here yet.")


def test_two_tabs_agree(reader: Callable[..., Reader]) -> None:
    ada = reader(timezone_id="UTC").on("2026-01-10T12:00").open("toy/two")
    ada.answer("1")
    ada.on("2026-01-11T12:00").open("review")
    other = Reader(ada.context, ada.address).open("review")
    assert other.said() == "1 card to answer today."
    ada.answer("2")
    other.page.get_by_text("No card is due today.").wait_for()
    assert other.page.locator("details.card").count() == 0
    # both show a lesson's card, and the slower answer does not count twice
    ada.open("toy/one"), other.open("toy/one")
    ada.answer("1")
    other.page.get_by_text("card 2 of 2").wait_for()
    ada.answer("1")
    assert sorted(card[2] for card in other.kept("optdl:cards").values()) == [1, 1, 2]


# --- the file ---


def save(reader: Reader) -> str:
    """Press the button that saves, and return the text of the file."""
    with reader.open("review").page.expect_download() as download:
        reader.page.get_by_role("button", name="Save my progress").click()
    return Path(download.value.path()).read_text("utf-8")


def load(reader: Reader, text: str) -> str:
    """Load a file with this text, and return what the page says."""
    reader.open("review")
    file = {"name": "progress.json", "mimeType": "application/json", "buffer": text.encode()}
    reader.page.locator("input[type=file]").set_input_files(file)
    said = reader.page.locator(".progress-file [role=status]:not(:empty)")
    said.wait_for()
    return str(said.inner_text())


def test_progress_moves_to_another_browser_and_newer_work_stays(
    reader: Callable[..., Reader],
) -> None:
    ada = reader(timezone_id="UTC").on("2026-01-10T12:00").open("toy/one")
    ada.answer("1", "1")
    ada.solve("toy-double")
    ada.keep("optdl:answer:toy-half", {"text": "old"})
    text = save(ada)

    other = reader(timezone_id="UTC").on("2026-01-12T12:00").open("toy/one")
    other.answer("2")
    other.keep("optdl:answer:toy-half", {"text": "new"})
    assert "In 1 exercise the file has another answer" in load(other, text)
    days = sorted(card[1] for card in other.kept("optdl:cards").values())
    assert days == [20463, 20465]  # 10 and 12 January 2026 since 1 January 1970
    assert other.kept("optdl:answer:toy-double") == {"text": "right", "passed": "right"}
    assert other.kept("optdl:answer:toy-half") == {"text": "new"}
    assert other.done() == ["Lesson one"]
    other.page.get_by_role("button", name="Take the answers of the file").click()
    assert other.kept("optdl:answer:toy-half") == {"text": "old"}
    assert load(other, save(other)) == "The file is loaded."


def progress(version: int, **kept: str) -> str:
    """Return the text of a file as the page writes it."""
    kept = {f"optdl:{name}": value for name, value in kept.items()}
    return json.dumps({"progress": "Learning as Optimization", "version": version, "kept": kept})


WRONG = {
    "a notebook": json.dumps({"cells": []}),
    "a picture": "\x89PNG",
    "another version": progress(2),
    "a box that is not there": progress(1, cards='{"a": [7, 20463, 1]}'),
    "an answer without text": progress(1, **{"answer:a": "{}"}),
}


def test_a_wrong_file_is_refused(reader: Callable[..., Reader]) -> None:
    ada = reader().open("review")
    before = ada.page.evaluate("localStorage.length")
    for kind, text in WRONG.items():
        assert load(ada, text).startswith("Nothing was loaded: this is not a file of your"), kind
    assert ada.page.evaluate("localStorage.length") == before


# --- pages without scripts, and from a file ---


def test_without_scripts_cards_are_questions_that_unfold(reader: Callable[..., Reader]) -> None:
    ada = reader(java_script_enabled=False).open("toy/one")
    assert ada.page.locator("details.card:visible").count() == 2
    assert ada.page.get_by_role("button", name="Knew it").count() == 0
    ada.open("review").page.get_by_role("link", name="Lesson many").last.click()
    ada.page.wait_for_url("**/more/many.html#cards")


def test_cards_and_review_work_from_a_file(reader: Callable[..., Reader], site: Path) -> None:
    ada = reader(at=(site / "book").as_uri(), timezone_id="UTC")
    ada.on("2026-01-10T12:00").open("toy/one").answer("1", "1")
    assert ada.review("2026-01-11") == "2 cards to answer today."
    assert ada.page.locator("#review-deck mjx-container").count() > 0
    ada.page.get_by_label("Cards of").select_option(label="More")
    assert ada.said().startswith("There are no cards here yet.")


# --- Anki ---


def test_anki_gets_every_card_with_its_formulas(tmp_path: Path) -> None:
    (tmp_path / "book" / "toy").mkdir(parents=True)
    (tmp_path / "_toc.yml").write_text("root: book/toy/one\n", "utf-8")
    (tmp_path / "book" / "toy" / "one.md").write_text(
        '# One\n\n```{cards}\nIs $a<b$ "so"?\n: `f(x)` and *two*\n  lines.\n\nNext?\n: No.\n```\n',
        "utf-8",
    )
    assert cards.write(tmp_path / "cards.txt", tmp_path) == 2
    *header, first, second = (tmp_path / "cards.txt").read_text("utf-8").splitlines()
    # https://docs.ankiweb.net/importing/text-files.html#file-headers
    assert {"#separator:tab", "#html:true", "#guid column:1", "#tags column:4"} <= set(header)
    assert all(line.startswith("#") for line in header)
    (row, other) = csv.reader([first, second], delimiter="\t")
    question, answer = r"Is \(a&lt;b\) &quot;so&quot;?", "<code>f(x)</code> and <em>two</em> lines."
    assert row[1:] == [question, answer, "toy::one"]
    assert other[1:3] == ["Next?", "No."]
    assert row[0] != other[0]


def test_the_cards_of_the_book_are_their_own_context() -> None:
    found = list(cards.rows())
    assert len({name for name, *_ in found}) == len(found) > 200
    for page, question, answer in cards.cards():
        # a role or a link would lead nowhere on the page Review and in Anki
        assert not re.search(r"\{\w+\}`|\]\(", question + answer), (page, question)
        assert len(answer) < 180, (page, question, "two lines")
