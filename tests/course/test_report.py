"""The page about a class: what it counts, and which answers are alike."""

import csv
import io
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from toy_course import MARKS, answered

from tools.classroom import release, report, results, similarity
from tools.classroom.results import NOT_HANDED_IN, Row
from tools.classroom.student_matching import Person
from tools.layout import Course

pytestmark = MARKS

DUE = datetime(2020, 3, 1, 12)
SQUARE = "you square; doubling adds."
WORK = {
    "ada77": ("Ada", "Lovelace", 3, 3, 4, 30),
    "ben77": ("Ben", "Nevis", 0, 3, 1, 2),
    "cleo77": ("Cleo", "Berg", 0, 0, None, 0.1),
    "dora77": ("Dora", "Sayed", 3, 0, None, -24),
}
"""Names, the points of two exercises and of a written answer, and hours before the deadline."""


def row(student: str) -> Row:
    first, last, double, triple, words, left = WORK[student]
    return Row(
        Person(student, first, last), "toy", 6, 4, graded=True, auto=double + triple,
        written=words or 0, pending=words is None, hours_late=max(0, -left),
        late_penalty=3 if left < 0 else 0, handed_in=DUE - timedelta(hours=left), due=DUE,
    )  # fmt: skip


@pytest.fixture
def toy() -> report.Assignment:
    """Return what four students did, and one who did nothing."""
    rows = [row(student) for student in WORK]
    rows.append(Row(Person("finn77", "Finn", "Ohm"), "toy", 6, 4, why=NOT_HANDED_IN))
    double, triple = (
        results.Report(
            "toy", title, [], 3, {student: work[place] for student, work in WORK.items()}
        )
        for place, title in ((2, "1 · Double"), (3, "2 · Triple"))
    )
    double.why.update(ben77=SQUARE, cleo77=SQUARE)
    double.named.add(SQUARE)
    triple.why.update(cleo77="fails with TypeError", dora77="of another kind")
    return report.Assignment("toy", rows, [double, triple])


def page(toy: report.Assignment) -> BeautifulSoup:
    groups = {("ben77", "dora77"): ["1 · Double"]}
    alike = {"toy": similarity.Similarity(groups, ["1 · Double"], ["2 · Triple"], [])}
    return BeautifulSoup(report.page([toy], [toy, toy], alike), "html.parser")


def text(part: Any) -> str:
    return " ".join(part.get_text(" ").split())


def below(page: BeautifulSoup, heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading, a list for each row of its body."""
    table = page.find(["h3"], string=heading).find_next("table")
    return [
        [text(cell) for cell in row.find_all(["th", "td"])]
        for body in table.find_all("tbody")
        for row in body.find_all("tr")
    ]


def test_report_page_counts_class_results(toy: report.Assignment) -> None:
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
        "Finn Ohm": ["not handed in"],
    }
    assert below(made, "Alike answers, to look at") == [
        ["Ben Nevis, Dora Sayed", "1", "1 · Double"]
    ]
    assert below(made, "Assignments")[0][2:] == ["50 %", "1", f"2 × {SQUARE}"]
    assert ["Ben Nevis", "50", "50"] in below(made, "Students")
    assert ["Finn Ohm", "–", "–"] in below(made, "Students")


def test_namesakes_are_told_apart_by_id() -> None:
    points = (("a1", 2), ("a2", 1))
    rows = [Row(Person(who, "Ana", "Reis"), "toy", 6, 4, auto=auto) for who, auto in points]
    people = report.people([report.Assignment("toy", rows, [])])
    assert [*people.items()] == [("a2", "Ana Reis (a2)"), ("a1", "Ana Reis (a1)")]


def test_csv_report_has_points_and_reasons(toy: report.Assignment) -> None:
    lines = list(csv.DictReader(io.StringIO(report.to_csv([toy]))))
    cleo = [line for line in lines if line["student"] == "cleo77"]
    assert [(line["exercise"], line["points"], line["why_not"]) for line in cleo] == [
        ("1 · Double", "0", SQUARE),
        ("2 · Triple", "0", "fails with TypeError"),
        ("answers in words", "", "not read yet"),
    ]
    assert {line["hours_before_deadline"] for line in lines} == {"30", "2", "0", "-24", ""}
    assert [line["notes"] for line in lines if line["student"] == "finn77"] == ["not handed in"]
    for student, total in (("ada77", 10), ("ben77", 4), ("dora77", 0)):
        points = [line["points"] for line in lines if line["student"] == student]
        assert sum(map(float, filter(None, points))) == total


def test_a_spreadsheet_computes_no_text_of_a_student() -> None:
    text = results.comma_separated(["name"], [["=1+1"], ["@x"], [-1.0]])
    assert text == "name\n'=1+1\n'@x\n-1\n"


@pytest.mark.parametrize(("hours", "told"), [(0, ""), (0.5, "0.5 h late"), (72, "3 d late")])
def test_lateness_is_shown_in_hours_or_days(hours: float, told: str) -> None:
    assert Row(Person("ada"), "toy", 1, 0, hours_late=hours).late == told


STRANGERS = (
    *("x + x + x", "sum([x] * 3)", "x * (2 + 1) if x else 0", "max(3 * x, 3 * x)"),
    *("[x, x][0] * len('abc')", "x / (1 / 3)"),
)
"""What strangers might write who were told to triple a number."""


def test_copied_answers_are_found(small: Course) -> None:
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


def test_a_page_fits_a_phone(toy: report.Assignment, browser: Any, tmp_path: Path) -> None:
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
