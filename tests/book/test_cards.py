"""Cards come back by Leitner's boxes; progress is shown, and moves to another browser as a file."""

import csv
import json
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from serving import Server

from tools.site import cards

pytestmark = pytest.mark.xdist_group("toy")


class Reader:
    """A reader with a browser, a clock and a keyboard."""

    def __init__(self, page: Any, book: str) -> None:
        self.page, self.context, self.book = page, page.context, book

    def on(self, time: str) -> "Reader":
        self.context.clock.set_fixed_time(datetime.fromisoformat(f"{time}+00:00"))
        return self

    def open(self, name: str) -> "Reader":
        self.page.goto(f"{self.book}/{name}.html")
        return self

    def answer(self, keys: str) -> str:
        """Answer one card after the other by keyboard; return what is said then."""
        self.page.locator("details.card:visible summary").first.focus()
        for key in keys:
            self.page.keyboard.press("Enter")  # shows the answer
            self.page.keyboard.press(key)
        return self.message()

    def message(self) -> str:
        return str(self.page.locator(".card-said").first.inner_text())

    def review(self, time: str) -> str:
        return self.on(time).open("review").message()

    def keep(self, name: str, value: object) -> None:
        self.page.evaluate("e => localStorage.setItem(...e)", [f"optdl:{name}", json.dumps(value)])

    def kept(self, name: str) -> Any:
        text = self.page.evaluate("key => localStorage.getItem(key)", f"optdl:{name}")
        return json.loads(text or "null")

    def done(self) -> list[str]:
        """Return the titles in the contents that are marked as done."""
        links = self.page.locator("nav.bd-links a:has([role=img][aria-label=done])")
        return [re.search(r"Lesson \w+", text)[0] for text in links.all_text_contents()]  # type: ignore[index]

    def save(self) -> str:
        with self.open("review").page.expect_download() as download:
            self.page.get_by_role("button", name="Save my progress").click()
        return Path(download.value.path()).read_text("utf-8")

    def load(self, text: str) -> str:
        file = {"name": "progress.json", "mimeType": "application/json", "buffer": text.encode()}
        self.open("review").page.locator("input[type=file]").set_input_files(file)
        message = self.page.locator(".progress-file [role=status]:not(:empty)")
        message.wait_for()
        return str(message.inner_text())


@pytest.fixture
def reader(tabs: Callable[..., Any], toy_server: Server) -> Callable[..., Reader]:
    book = toy_server.at("book").removesuffix(".html")
    return lambda zone="UTC", **options: Reader(tabs(timezone_id=zone, **options), book)


FIRST, TODAY = "2026-01-10T12:00", 20463  # days since 1 January 1970
DAYS = [1, 3, 7, 14, 30, 90]
"""Days after which a card of each box is asked again."""
TOMORROW = "No card is due today. The next one is due in 1 day."


def test_known_card_waits_longer_in_each_box(reader):
    ada = reader().on(FIRST).open("more/many")
    cards = ada.page.locator("details.card")
    names = iter(cards.evaluate_all("all => all.map(({ id }) => id.slice(5))"))
    due, later = (
        {name: [box, TODAY - wait, 1] for (box, wait), name in zip(boxes, names, strict=False)}
        for boxes in (enumerate(DAYS, 1), enumerate((wait - 1 for wait in DAYS), 1))
    )
    ada.keep("cards", due | later)
    assert ada.open("review").message() == "6 cards to answer today."
    assert ada.answer("111112") == TOMORROW  # those that are due equally long in order of names
    known = {name: [min(box + 1, 6), TODAY, 2] for name, (box, *_) in due.items()}
    assert ada.kept("cards") == later | known | {max(due): [1, TODAY, 2]}


def test_card_is_due_by_the_readers_own_day(reader):
    ada = reader(zone="America/New_York").on("2026-01-11T04:30")  # 10 January, 23:30
    ada.open("toy/two").answer("1")
    assert ada.open("review").message() == TOMORROW
    assert ada.review("2026-01-11T05:30") == "1 card to answer today."
    # a clock that is set back neither loses nor repeats a card
    assert ada.review("2025-01-10T12:00") == TOMORROW
    assert ada.review("2025-01-11T12:00") == "1 card to answer today."


def test_at_most_twenty_cards_a_day(reader):
    ada = reader().on(FIRST).open("more/many")
    assert ada.answer("1" * 30) == "All answered. The cards come back on the page My course."
    first = "20 cards to answer today, and 10 more on the next days."
    assert ada.review("2026-01-11T12:00") == first
    end = "You have answered 20 cards today, which is enough. 10 cards will be asked on the next"
    assert ada.answer("12" * 10).startswith(end)
    assert ada.page.locator("details.card").count() == 0
    # the ten that have waited longest come before the ten that were not known
    assert ada.review("2026-01-12T12:00") == "20 cards to answer today."
    box, _, times = ada.kept("cards")[ada.page.locator("details.card").get_attribute("id")[5:]]
    assert (box, times) == (1, 1)


def test_lesson_is_done_with_its_exercises_and_cards(reader):
    ada = reader().open("toy/one")
    assert ada.page.locator(".cards-title").inner_text() == "To remember · card 1 of 2"
    assert ada.page.locator("details.card:visible").count() == 1
    ada.answer("12")
    assert ada.page.locator("details.card:visible").count() == 2
    assert ada.done() == []
    # as the exercise does it, when its check agrees
    ada.keep("answer:toy-double", {"text": "right", "passed": "right"})
    ada.page.locator("#cell-toy-double").evaluate("cell => cell.classList.add('exercise-passed')")
    ada.page.locator("nav [aria-label=done]").wait_for()
    assert ada.done() == ["Lesson one"]
    marked = ada.open("toy/index").page.locator("ol.lessons li:has([aria-label=done])")
    assert "Lesson one" in marked.inner_text()
    ada.open("exercises")
    titles = ada.page.locator(".exercise-list li").all_inner_texts()
    assert [title.split(" · ")[1] for title in titles] == ["Double✓", "Halve", "Explain"]


def test_my_course_tells_what_is_left(reader):
    ada = reader().on(FIRST).open("review")
    link, total = ada.page.locator(".go-on a"), ada.page.locator(".course-total")
    assert link.inner_text() == "Begin"
    ada.page.evaluate("localStorage['optdl:lesson'] = 'toy/renamed'")
    assert ada.open("review").page.locator(".go-on a").inner_text() == "Go on: Lesson one"
    assert total.inner_text().startswith("0 of 4 lessons · 0 of 1 exercise · 0 of 35 cards")
    ada.open("toy/two").answer("1")
    ada.open("toy/one").answer("11")
    ada.on("2026-01-11T12:00").open("review")
    assert link.inner_text() == "Go on: Lesson one"
    left = "1 of 4 lessons · 0 of 1 exercise · 3 of 35 cards, 3 due · 30 minutes left"
    assert total.inner_text() == f"{left}. Answer the cards that are due."
    ada.page.locator(".course-list summary").first.press("Enter")
    assert ada.page.locator(".course-list li:visible").all_inner_texts() == [
        "Lesson one 10 minutes · 0 of 1 exercise · 2 of 2 cards, 2 due",
        "Lesson two✓ 10 minutes · 1 of 1 card, 1 due",
    ]
    ada.answer("1")
    assert "2 due" in total.inner_text()
    ada.keep("answer:toy-double", {"text": "right", "passed": "right"})
    ada.open("review")
    assert total.inner_text().startswith("2 of 4 lessons · 1 of 1 exercise")
    link.press("Enter")
    ada.page.wait_for_url("**/more/many.html")


def test_guess_stands_beside_the_answer(reader):
    ada = reader().open("toy/two")
    lines = ada.page.locator(".guess-line")
    assert not any(line.is_visible() for line in lines.all())
    opening = ada.page.locator("section > p + .guess").first
    opening.get_by_label("Your guess", exact=False).focus()
    for key in ("2", ",", "5", "Enter"):
        ada.page.keyboard.press(key)
    ada.page.get_by_role("radio", name="smaller").press("Space")
    ada.page.get_by_role("slider", name="2").press("End")
    assert ada.page.get_by_role("status").first.inner_text() == "Kept for the answer."
    text = ada.save()
    ada.page.evaluate("localStorage.clear()")
    assert ada.load(text) == "The file is loaded."
    ada.open("toy/two").page.get_by_text("Answer", exact=True).press("Enter")
    first, second, _ = (" ".join(line.inner_text().split()) for line in lines.all())
    curve = ada.page.locator("#fig-toy path").first  # two points in the middle, one at the top
    assert curve.get_attribute("d") == "M20 50L50 50L80 10"
    assert first == "You guessed 2.5 cm; it is 3 cm."
    assert re.fullmatch("You chose “smaller” for .*; the answer is “smaller”.", second)


PLACES = """[...document.querySelectorAll("nav a, .minutes, ol.lessons li, h1, h1 ~ p")].map(
  (part) => part.getBoundingClientRect().toJSON())"""


def test_nothing_moves_when_progress_is_shown(reader):
    ada = reader().open("toy/one")
    ada.answer("11")
    ada.keep("answer:toy-double", {"text": "right", "passed": "right"})
    places, views = [], [(name, width) for name in ("index", "toy/index") for width in (1280, 390)]
    for script in ("shown", "replaced"):
        for name, width in views:
            ada.page.set_viewport_size({"width": width, "height": 800})
            places.append(ada.open(name).page.evaluate(PLACES))
            assert bool(ada.done()) == (script == "shown")
        ada.context.route("**/progress.js*", lambda route: route.fulfill(body=""))
    assert places[:4] == places[4:]


BLOCKED = "Object.defineProperty(window, 'localStorage', {get() { throw new Error('blocked') }})"
FULL = """const set = Storage.prototype.setItem;
Storage.prototype.setItem = function (...entry) {
  if (this === localStorage) throw new DOMException("full", "QuotaExceededError");
  set.apply(this, entry);
};"""


@pytest.mark.parametrize("script", [BLOCKED, FULL], ids=["blocked", "full"])
def test_page_without_storage_works_and_warns_once(reader, script):
    ada = reader(script=script).open("toy/one")
    assert "This browser keeps nothing" in ada.answer("1")
    assert ada.answer("1") == "All answered. The cards come back on the page My course."
    assert ada.open("review").message().startswith("There are no cards here yet.")


def test_two_tabs_agree(reader):
    ada = reader().on(FIRST).open("toy/two")
    ada.answer("1")
    ada.review("2026-01-11T12:00")
    other = Reader(ada.context.new_page(), ada.book).open("review")
    assert other.message() == "1 card to answer today."
    ada.answer("2")
    other.page.get_by_text("No card is due today.").wait_for()
    assert other.page.locator("details.card").count() == 0
    # both show a lesson's card, and the slower answer does not count twice
    ada.open("toy/one"), other.open("toy/one")
    ada.answer("1")
    other.page.get_by_text("card 2 of 2").wait_for()
    ada.answer("1")
    assert sorted(card[2] for card in other.kept("cards").values()) == [1, 1, 2]


def test_saved_progress_is_merged_and_newer_work_stays(reader):
    ada = reader().on(FIRST).open("toy/one")
    ada.keep("cards", {"damaged": "abc"})
    ada.open("toy/one").answer("11")
    for name, value in (("double", {"text": "right", "passed": "right"}), ("damaged", None)):
        ada.keep(f"answer:toy-{name}", value)
    ada.keep("answer:toy-half", {"text": "old"})
    ada.keep("page:toy-one", {"printed": "old"})
    text = ada.save()

    other = reader().on("2026-01-12T12:00").open("toy/one")
    other.answer("2")
    other.keep("answer:toy-double", {"text": 1})
    other.keep("answer:toy-half", {"text": "new"})
    other.keep("page:toy-one", {"printed": "new"})
    message = "In 2 places (exercises, guesses, cells of pages) the file has another answer"
    assert message in other.load(text)
    days = sorted(card[1] for card in other.kept("cards").values())
    assert days == [TODAY, TODAY + 2]
    assert other.kept("answer:toy-double") == {"text": "right", "passed": "right"}
    assert other.kept("answer:toy-half") == {"text": "new"}
    assert other.done() == ["Lesson one"]
    other.page.get_by_role("button", name="Take the answers of the file").click()
    assert other.kept("answer:toy-half") == {"text": "old"}
    assert other.load(other.save()) == "The file is loaded."


def test_foreign_progress_file_is_refused(reader):
    def progress(version: int, **kept: str) -> str:
        kept = {f"optdl:{name}": value for name, value in kept.items()}
        return json.dumps(
            {"progress": "Learning as Optimization", "version": version, "kept": kept}
        )

    ada = reader().open("review")
    before = ada.page.evaluate("localStorage.length")
    for text in (
        json.dumps({"cells": []}),
        "\x89PNG",
        progress(2),
        progress(1, cards='{"a": [7, 20463, 1]}'),  # there are six boxes
        progress(1, **{"answer:a": "{}"}),
    ):
        assert ada.load(text).startswith("Nothing was loaded: this is not a file of your"), text
    assert ada.page.evaluate("localStorage.length") == before


def test_cards_without_scripts_are_questions_that_unfold(reader):
    ada = reader(java_script_enabled=False, viewport={"width": 390, "height": 800}).open("toy/one")
    assert ada.page.locator("details.card:visible").count() == 2
    bar = "card => getComputedStyle(card).borderLeftWidth"
    assert ada.page.locator("details.card").first.evaluate(bar) == "4px"
    assert ada.page.get_by_role("button").count() == 0  # it would do nothing
    assert ada.page.locator(".bd-sidebar-primary").is_visible()
    ada.open("review").page.locator(".course-list summary").last.press("Enter")
    ada.page.get_by_role("link", name="Lesson many").last.click()
    ada.page.wait_for_url("**/more/many.html")


def test_cards_and_review_work_from_a_file(reader, toy_site):
    ada = reader().on(FIRST)
    ada.book = (toy_site / "book").as_uri()
    ada.open("toy/one").answer("11")
    for _ in range(20):  # each file has its own process, and Chromium tells it of the storage later
        if ada.review("2026-01-11T12:00").startswith("2 cards"):
            break
    assert ada.message() == "2 cards to answer today."
    assert ada.page.locator("#review-deck mjx-container").count() > 0
    ada.page.get_by_label("Cards of").select_option(label="More")
    assert ada.message().startswith("There are no cards here yet.")


def test_anki_gets_every_card_with_its_formulas(tmp_path):
    text = (
        '# One\n\n```{cards}\nIs $a<b$ "so"?\n: `f(x)` and *two*\n  lines.\n\nNext?\n: No.\n```\n'
    )
    for name, content in (
        ("_toc.yml", "root: book/toy/one\n"),
        ("_config.yml", "title: A course\n"),
        ("book/toy/one.md", text),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, "utf-8")
    assert cards.write(tmp_path / "cards.txt", tmp_path) == 2
    *header, first, second = (tmp_path / "cards.txt").read_text("utf-8").splitlines()
    # https://docs.ankiweb.net/importing/text-files.html#file-headers
    named = {"#separator:tab", "#html:true", "#guid column:1", "#tags column:4", "#deck:A course"}
    assert named <= {line for line in header if line.startswith("#")} == {*header}
    row, other = csv.reader([first, second], delimiter="\t")
    question, answer = r"Is \(a&lt;b\) &quot;so&quot;?", "<code>f(x)</code> and <em>two</em> lines."
    assert row[1:] == [question, answer, "toy::one"]
    assert other[1:3] == ["Next?", "No."]
    assert row[0] != other[0]


def test_cards_of_the_book_need_no_context():
    rows = [*cards.rows()]
    assert len({name for name, *_ in rows}) == len(rows) > 200
    # a role or a link would lead nowhere on the page My course and in Anki
    assert [row for row in rows if re.search(r"\{\w+\}<code>|<a ", row[1] + row[2])] == []
