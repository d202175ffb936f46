"""The page about a class and its data, which answers are alike, and the page to mark answers."""

import csv
import io
import threading
from datetime import datetime, timedelta

import pytest
import requests
from bs4 import BeautifulSoup
from toy_course import answered

from tools.classroom import gradebook, marking, release, results, similarity
from tools.classroom.backend import Backend
from tools.classroom.results import NOT_HANDED_IN, Row
from tools.classroom.students import Person
from tools.terminal import ToolError

DUE = datetime(2020, 3, 1, 12)
SQUARE = "you square; doubling adds."
WORK = {
    "ada77": ("Ada", "Lovelace", 3, 3, 4, 30),
    "ben77": ("Ben", "Nevis", 0, 3, 1, 2),
    "cleo77": ("Cleo", "Berg", 0, 0, None, 0.1),
    "dora77": ("Dora", "Sayed", 3, 0, None, -24),
}
"""Names, the points of two exercises and of a written answer, and hours before the deadline."""


def row(student):
    first, last, double, triple, words, left = WORK[student]
    return Row(
        Person(student, first, last), "toy", 6, 4, graded=True, auto=double + triple,
        written=words or 0, pending=words is None, hours_late=max(0, -left),
        late_penalty=3 if left < 0 else 0, handed_in=DUE - timedelta(hours=left), due=DUE,
    )  # fmt: skip


@pytest.fixture
def toy():
    """Return what four students did, and two of the same name who did nothing."""
    rows = [row(student) for student in WORK]
    for who in ("finn77", "finn78"):
        rows.append(Row(Person(who, "Finn", "Ohm"), "toy", 6, 4, why=NOT_HANDED_IN))
    double, triple = (
        results.Exercise(
            "toy", title, [], 3, {student: work[place] for student, work in WORK.items()}
        )
        for place, title in ((2, "1 · Double"), (3, "2 · Triple"))
    )
    double.why.update(ben77=SQUARE, cleo77=SQUARE)
    double.named.add(SQUARE)
    triple.why.update(cleo77="fails with TypeError", dora77="=of another kind")
    return gradebook.Assignment("toy", rows, [double, triple])


def page(toy):
    groups = {("ben77", "dora77"): ["1 · Double"]}
    alike = {"toy": similarity.Similarity(groups, ["1 · Double"], ["2 · Triple"], [])}
    return BeautifulSoup(gradebook.page([toy], [toy, toy], alike), "html.parser")


def text(part):
    return " ".join(part.get_text(" ").split())


def below(page, heading):
    """Return the cells of the table below a heading, a list for each row of its body."""
    rows = page.find(["h3"], string=heading).find_next("table").select("tbody tr")
    return [[text(cell) for cell in row.find_all(["th", "td"])] for row in rows]


def test_report_page_counts_class_results(toy):
    made = page(toy)
    double, triple, words = below(made, "Points by exercise")
    assert double == ["1 · Double", "2 with all of the points 2 with none of the points",
                      "50 %", "1.5 of 3"]  # fmt: skip
    assert triple[2:] == ["50 %", "1.5 of 3"]
    assert words[1:] == ["1 with all of the points 1 with less than half of the points",
                         "50 %", "2.5 of 4"]  # fmt: skip
    assert ["2", SQUARE, "Ben Nevis, Cleo Berg"] in below(made, "What went wrong")
    assert made.find("q", string=SQUARE)

    rows = {row[0]: row[1:] for row in below(made, "Who is stuck where")}
    assert rows == {
        "Ada Lovelace": ["3", "3", "6", "4", "10", ""],
        "Ben Nevis": ["0", "3", "3", "1", "4", ""],
        "Cleo Berg": ["0", "0", "0", "✎", "0", ""],
        # all that she has is taken off for being late
        "Dora Sayed": ["3", "0", "3", "✎", "0", "24 h late, 3 points taken off"],
        "Finn Ohm (finn77)": ["not handed in"],
        "Finn Ohm (finn78)": ["not handed in"],
    }
    assert below(made, "Alike answers, to look at") == [
        ["Ben Nevis, Dora Sayed", "1", "1 · Double"]
    ]
    assert below(made, "Assignments")[0][2:] == ["50 %", "1", f"2 × {SQUARE}"]
    students = below(made, "Students")  # the fewest points come first
    assert students[0][1:] == ["0", "0"]
    assert [row[0] for row in students][-1] == "Ada Lovelace"
    assert ["Ben Nevis", "50", "50"] in students
    assert ["Finn Ohm (finn77)", "–", "–"] in students
    for hours, told in ((0, ""), (0.5, "0.5 h late"), (72, "3 d late")):
        assert Row(Person("ada"), "toy", 1, 0, hours_late=hours).late == told


def test_csv_report_has_points_and_reasons(toy):
    lines = list(csv.DictReader(io.StringIO(gradebook.to_csv([toy]))))
    of = {who: [line for line in lines if line["student"] == who] for who in [*WORK, "finn77"]}
    assert [(line["exercise"], line["points"], line["why_not"]) for line in of["cleo77"]] == [
        ("1 · Double", "0", SQUARE),
        ("2 · Triple", "0", "fails with TypeError"),
        ("answers in words", "", "not read yet"),
    ]
    assert {line["hours_before_deadline"] for line in lines} == {"30", "2", "0", "-24", ""}
    assert [line["notes"] for line in of["finn77"]] == ["not handed in"]
    for student, total in (("ada77", 10), ("ben77", 4), ("dora77", 0)):
        assert sum(float(line["points"] or 0) for line in of[student]) == total
    assert of["dora77"][1]["why_not"] == "'=of another kind"  # or a spreadsheet would compute it


STRANGERS = (
    *("x + x + x", "sum([x] * 3)", "x * (2 + 1) if x else 0", "max(3 * x, 3 * x)"),
    *("[x, x][0] * len('abc')", "x / (1 / 3)"),
)
"""What strangers might write who were told to triple a number."""


def test_copied_answers_are_found(small):
    release.write(small, "toy")
    copied = "(lambda half: 6 * half)(x / 2)"
    own = "(lambda h:  6*h)(x/2)" + "\n    # my own" * 9
    triples = [*STRANGERS, copied, copied, own]
    for number, triple in enumerate(triples):
        for folder in (small.submitted, small.autograded):
            file = folder / f"s{number}" / "toy" / "toy.ipynb"
            file.parent.mkdir(parents=True)
            why = "We wondered why, and then we saw it." if number in (0, 1, 2) else ""
            file.write_bytes(answered(small.released("toy"), "2 * x", triple, why))
    found = similarity.find(small, "toy")
    copied, why = "triple (toy-triple)", "triple (toy-why)"  # below one heading
    assert (found.natural, found.compared, found.few) == (["double"], [copied], [why])
    assert found.groups == {("s6", "s7", "s8"): [copied]}


def test_penalty_is_told_with_and_without_hours():
    told = [
        results.Row(Person("ada"), "toy", 6, 4, hours_late=hours, late_penalty=points).late
        for hours, points in ((0, 0), (3, 0), (0, 1), (3, 2.5))
    ]
    expected = ["", "3 h late", "1 point taken off", "3 h late, 2.5 points taken off"]
    assert told == expected


def test_a_page_fits_a_phone(toy, browser, tmp_path):
    file = tmp_path / "toy.html"
    file.write_text(str(page(toy)), encoding="utf-8")
    opened, asked = browser.new_page(viewport={"width": 390, "height": 800}), []
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(file.as_uri())
    assert asked == [file.as_uri()]
    assert opened.evaluate("document.documentElement.scrollWidth") == 390
    # half of the class: a bar is as long as its number
    parts = opened.locator("tbody tr").first.locator(".bar > [class^=level]")
    widths = [parts.nth(number).bounding_box()["width"] for number in range(2)]
    assert widths[0] == pytest.approx(widths[1], rel=0.02)
    opened.close()


def test_keys_give_points(copied, small, browser):
    with pytest.raises(ToolError, match="nothing of toy has been graded"):
        marking.server(small, "toy")
    made = copied()
    [question] = marking.questions(made, "toy")
    waiting = [each["student"] for each in marking.answers(made, "toy", question)]
    assert waiting[0] == "ada-all-correct"
    assert "ben-blank" not in waiting
    http, address = marking.server(made, "toy")
    threading.Thread(target=http.serve_forever, daemon=True).start()
    try:
        opened = browser.new_page()
        opened.goto(address)
        assert opened.locator("aside").inner_text().strip() == "4 points"
        assert opened.locator("article").count() == len(waiting)

        def press(key):
            with opened.expect_response(address):
                opened.keyboard.press(key)

        press("3")
        opened.keyboard.press("9")  # there are no 9 points
        # three keys of a quick hand, before any of them is saved
        opened.evaluate(
            "() => ['2', 'ArrowUp', '.'].forEach(key => document.activeElement.dispatchEvent("
            "new KeyboardEvent('keydown', {key})))"
        )
        opened.get_by_text("2.5").wait_for()
        opened.get_by_text(f"2 of {len(waiting)} answers have points.").wait_for()
        opened.get_by_label(f"Comment for {waiting[2]}").focus()  # who has no points
        opened.keyboard.type("1 word.")  # which gives no point
        press("Tab")
        opened.close()
        body = {"student": waiting[2], "points": 5, "comment": ""}
        assert requests.post(address, json=body, timeout=9).status_code == 400
        assert requests.get(address[:-1], timeout=9).status_code == 404
    finally:
        http.shutdown()
        http.server_close()
    with Backend(made).gradebook() as book:
        grades = [book.find_grade("toy-why", "toy", "toy", student) for student in waiting[:3]]
        assert [grade.manual_score for grade in grades] == [3, 2.5, None]
        assert [bool(grade.needs_manual_grade) for grade in grades] == [False, False, True]
        comment = book.find_comment("toy-why", "toy", "toy", waiting[2])
        assert comment.manual_comment == "1 word."
