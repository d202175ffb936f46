"""The syllabus: its numbers follow from the lessons; their order, and its exams, can be wrong."""

import json
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


def test_a_plan_is_computed_from_its_lessons(tmp_path: Path) -> None:
    (tmp_path / "_toc.yml").write_text("root: book/erm/risk\nchapters: [file: book/erm/more]\n")
    (tmp_path / "book/erm").mkdir(parents=True)
    lesson = "```{lesson}\n:minutes: 20\n:needs: erm-more\n```\n```{exercise} erm-gain\n```\n"
    (tmp_path / "book/erm/risk.md").write_text(lesson)
    (tmp_path / "book/erm/more.md").write_text(
        "```{lesson}\n:minutes: 10\n```\n(LAB-1)=\n# A lab\n"
    )
    (tmp_path / "exercises/erm").mkdir(parents=True)
    (tmp_path / "exercises/erm/lab.ipynb").write_text("Plan 90 minutes")
    cells = [
        {"source": [f"## {number} · A task"], "metadata": {"nbgrader": {"grade_id": name}}}
        for number, name in enumerate(("erm-gain", "erm-loss", "erm-more"), start=1)
    ] + [{"source": [], "metadata": {"nbgrader": {"points": 4}}}]
    cells[0]["metadata"]["nbgrader"]["points"] = 3
    (tmp_path / "exercises/erm/erm.ipynb").write_text(json.dumps({"cells": cells}))
    page = """9 exercises are not counted.

## A course in 2 weeks
| Week 1 | {ref}`risk <erm-risk>` | 9 | | 9.9 | |
| Week 2 | {ref}`more <erm-more>` | 9 | {ref}`1 <LAB-1>` | 9.9 | exam 1 |
| Week 3 | | 9 | | 9.9 | exam 2 |
They take 9.9 hours together, and the course takes about 9 hours.
| erm | 2, 3 | 9 of 9 |
## End
"""
    right = ["2 exercises", "| 1 | | 0.6 | |", "| 1.7 | exam 1 |", "| 0 | | 0.0 | erm; exam 2 |"]
    right += ["take 2.2 hours", "about 31 hours", "| erm | 1 | 3 of 7 |"]
    text = syllabus.written(page, tmp_path)
    assert [part for part in right if part not in text] == []
