"""The page about a class and its data, which answers are alike, and the page to mark answers."""

import csv
import io
import shutil
import threading
from dataclasses import replace

import pytest
import requests
from bs4 import BeautifulSoup
from toy_course import answered, hand_in

from tools.classroom import gradebook, marking, release, results, similarity
from tools.classroom.backend import Backend
from tools.classroom.results import Row
from tools.classroom.students import Person

SQUARE = "you square; doubling adds."


@pytest.fixture
def toy(graded_term):
    """Return what the class did, and a penalty, a name that is there twice, a strange reason."""
    [made] = gradebook.gather(graded_term.course)
    costs = {"cleo": 7}
    rows = [replace(row, late_penalty=costs.get(row.student, 0)) for row in made.rows]
    rows.append(Row(Person("finn", "Emil", "Ohm"), "toy", 6, 4, why=results.NOT_HANDED_IN))
    double, triple = made.exercises
    double.points.update(dora=0)
    del double.points["zed"]
    triple.why.update(dora="=of another kind")
    return gradebook.Assignment("toy", rows, made.exercises)


def page(toy):
    groups = {("ben", "dora"): ["double"]}
    alike = {"toy": similarity.Similarity(groups, ["double"], ["triple"], [])}
    return BeautifulSoup(gradebook.page([toy], [toy, toy], alike), "html.parser")


def below(page, heading):
    """Return the cells of the table below a heading, a list for each row of its body."""
    rows = page.find(["h3"], string=heading).find_next("table").select("tbody tr")
    return [[" ".join(cell.get_text(" ").split()) for cell in row(["th", "td"])] for row in rows]


def test_report_page_counts_class_results(toy):
    made = page(toy)
    assert below(made, "Points by exercise") == [
        ["double", "2 with all of the points 2 with none of the points", "75 %", "1.5 of 3"],
        ["triple", "5 with all of the points", "80 %", "3.0 of 3"],
        ["answers in words", "3 with none of the points", "0 %", "0.0 of 4"],
    ]
    assert ["1", SQUARE, "Ben O'Nevis"] in below(made, "What went wrong")
    assert made.find("q", string=SQUARE)
    rows = {row[0]: row[1:-1] if row[6:] else row[1:] for row in below(made, "Who is stuck where")}
    assert rows == {
        "Ada Lovelace": ["3", "3", "6", "0", "6"],
        "Ben O'Nevis": ["0", "3", "3", "✎", "3"],
        "Cléo van der Berg": ["3", "3", "6", "0", "0"],
        "Dora Al-Sayed": ["0", "3", "6", "✎", "6"],
        "Emil Ohm (emil)": ["not handed in"],
        "Emil Ohm (finn)": ["not handed in"],
        "zed": ["–", "3", "6", "0", "6"],
    }
    told = [row[-1] for row in below(made, "Who is stuck where")]
    assert "6 h late, 7 points taken off" in told
    assert below(made, "Alike answers, to look at") == [
        ["Ben O'Nevis, Dora Al-Sayed", "1", "double"]
    ]
    assert below(made, "Assignments")[0][2:] == ["90 %", "3", f"1 × {SQUARE}"]
    students = below(made, "Students")  # the fewest points come first
    assert students[2] == ["Ben O'Nevis", "50", "50"]
    assert ["Emil Ohm (finn)", "–", "–"] in students


def test_csv_report_has_points_and_reasons(toy):
    lines = list(csv.DictReader(io.StringIO(gradebook.to_csv([toy]))))
    of = {who: [line for line in lines if line["student"] == who] for who in toy.by_student}
    assert [(line["exercise"], line["points"], line["why_not"]) for line in of["ben"]] == [
        ("double", "0", SQUARE),
        ("triple", "3", ""),
        ("answers in words", "", "not read yet"),
    ]
    assert {line["hours_before_deadline"] for line in of["cleo"] + of["ada"]} == {"-6", ""}
    assert [line["notes"] for line in of["finn"]] == ["not handed in"]
    for student, total in (("ada", 6), ("ben", 3), ("cleo", 0)):
        assert sum(float(line["points"] or 0) for line in of[student]) == total
    assert of["dora"][1]["why_not"] == "'=of another kind"  # or a spreadsheet would compute it


def test_late_work_is_told_with_its_cost():
    for hours, cost, told in (
        (0, 0, ""), (0.5, 0, "0.5 h late"), (72, 0, "3 d late"), (0, 1, "1 point taken off"),
        (3, 2.5, "3 h late, 2.5 points taken off"),
    ):  # fmt: skip
        assert Row(Person("ada"), "toy", 6, 4, hours_late=hours, late_penalty=cost).late == told


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
        why = "We wondered why, and then we saw it." if number in (0, 1, 2) else ""
        work = answered(small.released("toy"), "2 * x", triple, why)
        hand_in(small, f"s{number}", toy=work)
    shutil.copytree(small.submitted, small.autograded, dirs_exist_ok=True)
    found = similarity.find(small, "toy")
    copied, why = "triple (toy-triple)", "triple (toy-why)"  # below one heading
    assert (found.natural, found.compared, found.few) == (["double"], [copied], [why])
    assert found.groups == {("s6", "s7", "s8"): [copied]}


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


def test_keys_give_points(copied, browser):
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
