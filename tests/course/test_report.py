"""The pages about a class: what they count, which answers are alike, and a copy without names."""

import csv
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from toy_course import MARKS, answered, make_course, use

from tools import grade, release, report, roster, similarity
from tools.backend import Backend
from tools.layout import Course
from tools.terminal import ToolError

pytestmark = MARKS

LIST = (
    "Username;First name;Last name\nada77;Ada;Lovelace\nben77;Ben;Nevis\ncleo77;Cleo;Berg\n"
    "dora77;Dora;Sayed\nfinn77;Finn;Ohm\n"
)
WORK = {
    "ada77": ("2 * x", "3 * x", timedelta(hours=30)),
    "ben77": ("x * x", "3 * x", timedelta(hours=2)),
    "cleo77": ("x * x", "x / 'ben77'", timedelta(minutes=5)),
    "dora77": ("2 * x", "x", -timedelta(1)),
}
"""What each student writes, and how long before the deadline; finn hands in nothing."""


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """Return a course in which an assignment was graded."""
    course = make_course(tmp_path_factory.mktemp("report"))
    (course.root / "class.csv").write_text(LIST)
    use(roster, course, str(course.root / "class.csv"), "--yes")
    due = datetime(2020, 3, 1, 12)
    use(release, course, "toy", "--due", "2020-03-01 12:00")
    for student, (double, triple, before) in WORK.items():
        folder = course.submitted / student / "toy"
        folder.mkdir(parents=True)
        folder.joinpath("toy.ipynb").write_bytes(
            answered(course.released("toy"), double, triple, "Because.")
        )
        folder.joinpath("timestamp.txt").write_text(f"{due - before:%Y-%m-%d %H:%M:%S} UTC")
    use(grade, course, "toy")
    with Backend(course).gradebook() as book:
        for student, points in (("ada77", 4), ("ben77", 1)):
            entry = book.find_grade("toy-why", "toy", "toy", student)
            entry.manual_score, entry.needs_manual_grade = points, False
        book.db.commit()
    use(report, course, "toy")
    return course


def text(part: Any) -> str:
    return " ".join(part.get_text(" ").split())


def page(course: Course, suffix: str = "") -> BeautifulSoup:
    file = course.build / "report" / f"toy{suffix}.html"
    return BeautifulSoup(file.read_text("utf-8"), "html.parser")


def below(page: BeautifulSoup, heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading, a list for each row of its body."""
    table = page.find(["h3"], string=heading).find_next("table")
    return [
        [text(cell) for cell in row.find_all(["th", "td"])]
        for body in table.find_all("tbody")
        for row in body.find_all("tr")
    ]


def test_a_page_counts_what_the_class_did(graded: Course) -> None:
    made = page(graded)
    # double has 3 points: ada and dora have all; in triple ada and ben do
    double, triple, words = below(made, "Points by exercise")
    assert double == ["double", "2 with all of the points 2 with none of the points",
                      "50 %", "1.5 of 3"]  # fmt: skip
    assert triple[2:] == ["50 %", "1.5 of 3"]
    assert words[1:] == ["1 with all of the points 1 with less than half of the points",
                         "50 %", "2.5 of 4"]  # fmt: skip

    wrong = below(made, "What went wrong")
    assert ["2", "you square; doubling adds.", "Ben Nevis, Cleo Berg"] in wrong
    assert made.find("q", string="you square; doubling adds.")

    rows = {row[0]: row[1:] for row in below(made, "Who is stuck where")}
    assert rows == {
        "Ada Lovelace": ["3", "3", "6"],
        "Ben Nevis": ["0", "3", "3"],
        "Cleo Berg": ["0", "0", "0"],
        "Dora Sayed": ["3", "0", "3"],
        "Finn Ohm": ["not handed in"],
    }
    times = [(row[0], row[2], row[3]) for row in below(made, "Time of hand-in and points")]
    assert (
        times
        == [
            ("late", "1", "3.0"),
            ("in the last hour", "1", "0.0"),
            ("1 to 6 hours before", "1", "3.0"),
            ("1 to 3 days before", "1", "6.0"),
        ][::-1]
    )


def test_the_copy_without_names_names_nobody(graded: Course) -> None:
    names = re.compile("|".join(re.findall(r"\w{3,}", LIST.split("\n", 1)[1])), re.IGNORECASE)
    for kind in ("html", "csv"):
        content = (graded.build / "report" / f"toy-without-names.{kind}").read_text("utf-8")
        assert names.findall(content) == []
    with_names, without = page(graded), page(graded, "-without-names")
    for heading in ("Points by exercise", "Time of hand-in and points"):
        assert below(with_names, heading) == below(without, heading)
    students = below(without, "Who is stuck where")
    assert [row[0] for row in students] == [f"Student {number}" for number in range(1, 6)]
    assert sorted(row[1:] for row in students) == sorted(
        row[1:] for row in below(with_names, "Who is stuck where")
    )


def test_causes_with_names_are_left_out(graded: Course) -> None:
    [toy] = report.gather(graded, ["toy"])
    double, triple = toy.reports
    double.why["ada77"] = "expected the seed of ben77"
    triple.why["ada77"] = "ask ben77"
    triple.named.add("ask ben77")  # a student's function can raise such a text
    nobody = report.without_names([toy])
    assert "ben77" not in report.page(nobody, nobody) + report.to_csv(nobody)
    assert nobody[0].reports[0].causes == {"you square; doubling adds.": 2, report.OTHER: 1}
    assert nobody[0].reports[1].causes["fails with TypeError"] == 1


def test_numbers_are_drawn_anew(graded: Course) -> None:
    class_ = report.gather(graded, ["toy"])
    orders = {tuple(row.auto for row in report.without_names(class_)[0].rows) for _ in range(40)}
    assert len(orders) > 1


def test_the_file_holds_the_same(graded: Course) -> None:
    with (graded.build / "report" / "toy.csv").open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.DictReader(file))
    cleo = [line for line in lines if line["student"] == "cleo77"]
    assert [(line["exercise"], line["points"], line["why_not"]) for line in cleo] == [
        ("double", "0", "you square; doubling adds."),
        ("triple", "0", "fails with TypeError"),
        ("answers in words", "", "not read yet"),
    ]
    assert {line["hours_before_deadline"] for line in lines} == {"30", "2", "0", "-24", ""}
    assert [line["why_not"] for line in lines if line["student"] == "finn77"] == ["not handed in"]


def test_the_term_has_every_assignment(graded: Course) -> None:
    [toy] = report.gather(graded, ["toy"])
    made = BeautifulSoup(report.page([], [toy, toy], {}), "html.parser")
    assert [row[0] for row in below(made, "Assignments")] == ["toy", "toy"]
    assert below(made, "Assignments")[0][2:] == ["50 %", "1", "2 × you square; doubling adds."]
    assert ["Ben Nevis", "50", "50"] in below(made, "Students")
    assert ["Finn Ohm", "–", "–"] in below(made, "Students")


def test_what_was_not_graded_has_no_page(tmp_path: Path) -> None:
    course = make_course(tmp_path)
    Backend(course)
    with pytest.raises(ToolError, match="nothing of toy has been graded"):
        use(report, course, "toy")


STRANGERS = (
    *("x + x + x", "sum([x] * 3)", "x * (2 + 1) if x else 0", "max(3 * x, 3 * x)"),
    *("[x, x][0] * len('abc')", "x / (1 / 3)"),
)
"""What strangers might write who were told to triple a number."""


def test_copied_answers_are_found(tmp_path: Path) -> None:
    course = make_course(tmp_path)
    release.write(course, "toy")
    copied = "(lambda half: 6 * half)(x / 2)"
    triples = [*STRANGERS, copied, copied, "(lambda h:  6*h)(x/2)  # my own"]
    for number, triple in enumerate(triples):
        for folder in (course.submitted, course.autograded):
            file = folder / f"s{number}" / "toy" / "toy.ipynb"
            file.parent.mkdir(parents=True)
            why = "We wondered why, and then we saw it." if number in (0, 1, 2) else ""
            file.write_bytes(answered(course.released("toy"), "2 * x", triple, why))
    found = similarity.find(course, "toy")
    assert (found.natural, found.compared, found.few) == (
        ["toy-double"],
        ["toy-triple"],
        ["toy-why"],
    )
    assert {pair.students: (pair.same, pair.near) for pair in found.pairs} == {
        ("s6", "s7"): (["toy-triple"], []),
        ("s6", "s8"): ([], ["toy-triple"]),
        ("s7", "s8"): ([], ["toy-triple"]),
    }
    assert similarity.to_csv({"toy": found}).splitlines()[1] == "toy,s6,s7,toy-triple,"


def test_words_are_compared_as_words() -> None:
    said = "The risk is an expected value, so the sample mean estimates it without bias."
    other = "A mean over more examples has a smaller variance, and its bias stays zero."
    again = similarity.runs(said.upper().replace(",", ";"), is_code=False)
    assert similarity.likeness(similarity.runs(said, is_code=False), again) == 1
    assert similarity.likeness(similarity.runs(other, is_code=False), again) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_loads_nothing_and_fits_a_phone(graded: Course, browser: Any, scheme: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme=scheme)
    opened, asked = context.new_page(), []
    opened.on("request", lambda request: asked.append(request.url))
    file = graded.build / "report" / "toy.html"
    opened.goto(file.as_uri())
    assert asked == [file.as_uri()]
    assert opened.evaluate("document.documentElement.scrollWidth") == 390
    # half of the class: a bar is as long as its number
    parts = opened.locator("tbody tr").first.locator(".bar > [class^=level]")
    widths = [parts.nth(number).bounding_box()["width"] for number in range(2)]
    assert widths[0] == pytest.approx(widths[1], rel=0.02)
    context.close()
