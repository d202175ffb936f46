"""The syllabus: each lesson once and in order, hours that are sums, outcomes that are examined."""

import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from test_exams import TEXTS, parts
from test_lessons import LESSONS, label

from tools.exams import QUESTION

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "syllabus.md").read_text("utf-8")
MINUTES_OF_AN_EXERCISE = 15
MAIN = {label(name): text for name, text in LESSONS.items() if ":appendix:" not in text}
LINK = re.compile(r"\{ref\}`[^`<]*<([\w-]+)>`")


class Week(NamedTuple):
    """A row of a plan."""

    lessons: list[str]
    exercises: int
    labs: list[str]
    hours: float
    due: list[str]


def tables() -> dict[str, list[list[str]]]:
    """Return the rows of each table by the heading above it."""
    found = {}
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        rows = [
            [cell.strip() for cell in line.strip("|").split(" |")]
            for line in section.splitlines()
            if line.startswith("| ")
        ]
        found[section.partition("\n")[0]] = rows
    return found


TABLES = tables()


def plan(heading: str) -> list[Week]:
    """Return the weeks of a plan."""
    return [
        Week(
            LINK.findall(row[1]), int(row[2]), LINK.findall(row[3]), float(row[4]),
            re.findall(r"[\w ]+", row[5]),
        )
        for row in TABLES[heading]
        if row[0].startswith("Week\N{NO-BREAK SPACE}")
    ]  # fmt: skip


PLANS = {
    weeks: plan(next(name for name in TABLES if f"in {weeks} weeks" in name)) for weeks in (14, 7)
}


def minutes(lesson: str) -> int:
    return int(re.search(r"^:minutes: (\d+)$", MAIN[lesson], re.MULTILINE)[1])


def exercises_of(lesson: str) -> list[str]:
    return re.findall(r"^```\{exercise\} (\S+)", MAIN[lesson], re.MULTILINE)


def lab_minutes(lab: str) -> int:
    """Return the time that the notebook of a lab names."""
    [topic] = [name.split("-")[0] for name, text in MAIN.items() if f"({lab})=" in text]
    text = (ROOT / "exercises" / topic / "lab.ipynb").read_text("utf-8")
    return int(re.search(r"Plan (\d+) minutes", text)[1])


def assignment(topic: str) -> dict[int, tuple[str, int]]:
    """Return the name and the points of each exercise by its number."""
    found: dict[int, tuple[str, int]] = {}
    number = 0
    for cell in json.loads((ROOT / "exercises" / topic / f"{topic}.ipynb").read_text())["cells"]:
        heading = re.match(r"## (\d+) · ", "".join(cell["source"]))
        marks = cell["metadata"].get("nbgrader", {})
        if heading:
            number = int(heading[1])
        if number:
            name, points = found.get(number, ("", 0))
            found[number] = (name or marks.get("grade_id", ""), points + marks.get("points", 0))
    return found


@pytest.mark.parametrize("weeks", PLANS)
def test_lessons_come_after_what_they_need(weeks: int) -> None:
    lessons = [lesson for week in PLANS[weeks] for lesson in week.lessons]
    assert len(PLANS[weeks]) == weeks
    assert len(set(lessons)) == len(lessons)
    for place, lesson in enumerate(lessons):
        needs = re.search(r"^:needs: (.+)$", MAIN[lesson], re.MULTILINE)
        assert {*re.findall(r"[\w-]+", needs[1] if needs else "")} <= {*lessons[:place]}, lesson


def test_the_long_plan_has_all_lessons_and_the_short_one_the_spine() -> None:
    long, short = ([x for week in PLANS[n] for x in week.lessons] for n in (14, 7))
    assert long == list(MAIN)
    assert {name for name, text in MAIN.items() if ":spine:" in text} <= {*short}


@pytest.mark.parametrize("weeks", PLANS)
def test_hours_are_sums_of_minutes(weeks: int) -> None:
    total, right = 0, []
    for number, week in enumerate(PLANS[weeks], start=1):
        count = sum(len(exercises_of(lesson)) for lesson in week.lessons)
        spent = sum(map(minutes, week.lessons)) + MINUTES_OF_AN_EXERCISE * count
        spent += sum(map(lab_minutes, week.labs))
        if week.exercises != count or week.hours != pytest.approx(spent / 60, abs=0.0501):
            right.append(f"week {number}: {count} exercises, {spent / 60:.1f} hours")
        total += spent
    if (sentence := f"take {total / 60:.1f} hours together") not in PAGE:
        right.append(sentence)
    assert not right, f"book/syllabus.md, in {weeks} weeks, should say: {'; '.join(right)}"


def test_exercises_beside_the_plan_are_counted() -> None:
    within = sum(len(exercises_of(lesson)) for lesson in MAIN)
    topics = {lesson.split("-")[0] for lesson in MAIN}
    beside = sum(len(assignment(topic)) for topic in topics) - within
    assert beside == 7, f"{beside} exercises stand in no lesson: put a new one into a lesson"
    assert "Seven exercises of the assignments are not counted" in PAGE


@pytest.mark.parametrize("weeks", PLANS)
def test_work_is_due_a_week_after_its_last_lesson_or_lab(weeks: int) -> None:
    last: dict[str, int] = {}
    for number, week in enumerate(PLANS[weeks], start=1):
        labs = [name for name, text in MAIN.items() for lab in week.labs if f"({lab})=" in text]
        last |= {lesson.split("-")[0]: number for lesson in [*week.lessons, *labs]}
    for number, week in enumerate(PLANS[weeks], start=1):
        due = {name.strip() for name in week.due} - {"", " "}
        assert {name for name in due if "exam" not in name} == {
            topic for topic, end in last.items() if end == number - 1
        }


def test_points_of_the_short_course_are_those_of_its_exercises() -> None:
    lessons = [lesson for week in PLANS[7] for lesson in week.lessons]
    rows = {row[0]: row for row in TABLES["A shorter course in 7 weeks"] if row[0] in
            {lesson.split("-")[0] for lesson in lessons}}  # fmt: skip
    for topic, (_, numbers, points) in rows.items():
        all_of_them = assignment(topic)
        names = [x for lesson in lessons if lesson.startswith(f"{topic}-")
                 for x in exercises_of(lesson)]  # fmt: skip
        named = [int(number) for number in numbers.split(",")]
        assert len(named) == len(names), f"book/syllabus.md, {topic}: a number for each of {names}"
        for number in named:
            assert any(all_of_them[number][0].startswith(name) for name in names), (topic, number)
        reached = sum(all_of_them[number][1] for number in named)
        right = f"{reached} of {sum(p for _, p in all_of_them.values())}"
        assert points == right, f"book/syllabus.md, points of {topic}: {right}"
    assert len(rows) == 8


def test_the_exam_of_the_short_course_asks_for_what_it_taught() -> None:
    taught = {lesson for week in PLANS[7] for lesson in week.lessons}
    chosen = [parts(3)[number] for number in (1, 2, 3, 4, 6, 7, 8)] + [parts(2)[7]]
    for _, solution in chosen:
        assert {*re.search(r"^Lessons: (.+)\.$", solution, re.M)[1].split(", ")} <= taught
    points = {n: {q[1]: q[3] for q in QUESTION.finditer(TEXTS[n])} for n in (2, 3)}
    assert points[2]["7"] == points[3]["5"]


def test_each_outcome_is_practiced_or_examined_and_each_question_has_one() -> None:
    rows = [row for row in TABLES["What can students do afterward?"] if row[0] != "Chapter"]
    examined = set()
    for chapter, outcome, practiced, asked in rows:
        [topic] = LINK.findall(chapter)
        assert practiced or asked, outcome
        numbers = [int(number) for number in re.findall(r"(?<!-)\b\d+", LINK.sub("", practiced))]
        assert {*numbers} <= {*assignment(topic)}, outcome
        assert all(f"({lab})=" in "".join(MAIN.values()) for lab in LINK.findall(practiced))
        examined |= {*re.findall(r"\d\.\d", asked)}
    topics = [LINK.findall(row[0])[0] for row in rows]
    assert all(topics.count(name) >= 2 for name in {lesson.split("-")[0] for lesson in MAIN})
    assert examined == {f"{exam}.{question}" for exam in TEXTS for question in parts(exam)}
