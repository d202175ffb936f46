"""A lesson can be finished in one sitting, and the syllabus follows from the lessons."""

import re

from test_exams import QUESTIONS, lessons_of

from tools.layout import ROOT
from tools.site import syllabus
from tools.site.syllabus import LINK, assignment

BOOK = ROOT / "book"
PAGE = (BOOK / "syllabus.md").read_text("utf-8")
MAIN = {name: x for name, x in syllabus.lessons().items() if ":appendix:" not in x.options}
LONG, SHORT = (
    [label for week in syllabus.WEEK.finditer(plan[0]) for label in LINK.findall(week[1])]
    for plan in syllabus.PLAN.finditer(PAGE)
)


def test_lesson_has_label_minutes_needs_and_cards() -> None:
    wrong, before = [], set()
    for label, lesson in syllabus.lessons().items():
        text = (BOOK / f"{label.replace('-', '/', 1)}.md").read_text("utf-8")
        parts = re.findall(r"(?s)\n```\{cards\}(.*?)\n```\n", text)
        cards = [part.count("\n: ") for part in parts]
        facts = {
            "label before its title": re.search(rf"(?m)^\({label}\)=\n(\([\w-]+\)=\n)*# ", text),
            "5 to 25 minutes": 5 <= lesson.minutes <= 25,
            "lessons that it needs before it": {*lesson.needs} <= before,
            "three to five cards, once": len(cards) == 1 and 3 <= cards[0] <= 5,
        }
        wrong += [f"{label}: {fact}" for fact, true in facts.items() if not true]
        before.add(label)
    assert wrong == []


def test_numbers_follow_from_the_lessons() -> None:
    assert syllabus.written(PAGE) == PAGE, "run python -m tools.site.syllabus"


def test_own_weeks_are_filled_and_keep_words() -> None:
    own = PAGE.replace("exam 1 |", "exam 1; a plan |")
    blank = re.sub(r"(\| Week[^|]*\|[^|]*\|) \d+ (\|[^|]*\|) [\d.]+ \|", r"\1 \2 |", own)
    assert syllabus.written(blank) == own


def test_lessons_come_once_and_after_what_they_need() -> None:
    assert list(MAIN) == LONG, "in book/syllabus.md, name each lesson in its week, as in _toc.yml"
    spine = {name: {*x.needs} for name, x in MAIN.items() if ":spine:" in x.options}
    assert {"optimizers-today", *spine}.union(*spine.values()) == {*spine} <= {*SHORT}
    assert sum(MAIN[label].minutes for label in spine) <= 500  # for three evenings
    assert len({*SHORT}) == len(SHORT)
    for place, label in enumerate(SHORT):
        assert {*MAIN[label].needs} <= {*SHORT[:place]}, label


def test_outcomes_name_exercises_and_all_exam_questions() -> None:
    outcomes = [line.split(" |") for line in PAGE.splitlines() if line.startswith("| {ref}")]
    asked = {(int(e), int(q)) for row in outcomes for e, q in re.findall(r"(\d)\.(\d)", row[3])}
    assert asked == {*QUESTIONS}, "in book/syllabus.md, name each exam question in an outcome"
    for chapter, _, practiced, exam, *_ in outcomes:
        [topic] = LINK.findall(chapter)
        numbers = {int(number) for number in re.findall(r"(?<!-)\b\d+", LINK.sub("", practiced))}
        assert numbers <= {*assignment(topic)}
        assert practiced.strip() or exam.strip()


def test_short_course_exam_covers_only_taught_lessons() -> None:
    chosen = [(3, question) for question in (1, 2, 3, 4, 6, 7, 8)] + [(2, 7)]
    assert {lesson for question in chosen for lesson in lessons_of(*question)} <= {*SHORT}
    assert QUESTIONS[2, 7].points == QUESTIONS[3, 5].points
