"""The syllabus: its numbers follow from the lessons; their order, and its exams, can be wrong."""

import re
from pathlib import Path

import pytest
from test_exams import QUESTIONS, lessons_of

from tools import syllabus
from tools.syllabus import LINK, assignment

PAGE = (Path(__file__).resolve().parents[2] / "book" / "syllabus.md").read_text("utf-8")
MAIN = {name: x for name, x in syllabus.lessons().items() if ":appendix:" not in x.options}
LONG, SHORT = (
    [label for week in syllabus.WEEK.finditer(plan[0]) for label in LINK.findall(week[1])]
    for plan in syllabus.PLAN.finditer(PAGE)
)


def test_numbers_follow_from_the_lessons(capsys: pytest.CaptureFixture[str]) -> None:
    assert syllabus.main(["--check"]) == 0, capsys.readouterr().out


def test_lessons_come_once_and_after_what_they_need() -> None:
    assert list(MAIN) == LONG
    assert {name for name, lesson in MAIN.items() if ":spine:" in lesson.options} <= {*SHORT}
    assert len({*SHORT}) == len(SHORT)
    for plan in (LONG, SHORT):
        for place, label in enumerate(plan):
            assert {*MAIN[label].needs} <= {*plan[:place]}, label


def test_outcomes_name_exercises_and_all_exam_questions() -> None:
    outcomes = [line.split(" |") for line in PAGE.splitlines() if line.startswith("| {ref}")]
    asked = {(int(e), int(q)) for row in outcomes for e, q in re.findall(r"(\d)\.(\d)", row[3])}
    assert asked == {*QUESTIONS}
    for chapter, _, practiced, exam, *_ in outcomes:
        [topic] = LINK.findall(chapter)
        numbers = {int(number) for number in re.findall(r"(?<!-)\b\d+", LINK.sub("", practiced))}
        assert numbers <= {*assignment(topic)}
        assert practiced.strip() or exam.strip()


def test_the_short_course_is_asked_what_it_taught() -> None:
    chosen = [(3, question) for question in (1, 2, 3, 4, 6, 7, 8)] + [(2, 7)]
    assert {lesson for question in chosen for lesson in lessons_of(*question)} <= {*SHORT}
    assert QUESTIONS[2, 7].points == QUESTIONS[3, 5].points
