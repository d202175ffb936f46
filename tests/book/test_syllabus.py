"""Exams agree with simulations, and only instructors get them; the syllabus fits the lessons."""

import re
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from oracles import slopes

from optdl.bnp import precondition_dense
from optdl.optimizers import AdaGrad, Adam, Momentum, Nesterov, RMSProp, momentum_rate, run
from tools.classroom import handout
from tools.layout import ROOT, Course, contents
from tools.site import exams, syllabus
from tools.site.syllabus import LINK, assignment

FILES = sorted((ROOT / "exams").glob("exam-*.md"))
TEXTS = {int(file.stem[-1]): exams.computed(file.read_text("utf-8")) for file in FILES}


class Question(NamedTuple):
    points: int
    text: str
    solution: str


QUESTIONS = {
    (exam, int(number)): Question(int(points), *body.split("### Solution\n"))
    for exam, text in TEXTS.items()
    for number, _, points, body in zip(*[iter(exams.QUESTION.split(text)[1:])] * 4, strict=True)
}


def lessons_of(exam: int, question: int) -> list[str]:
    [line] = re.findall(r"^Lessons: (.+)\.$", QUESTIONS[exam, question].solution, re.MULTILINE)
    return line.split(", ")


def count(hessian: list[list[int]], lr: float, ratio: float) -> int:
    """Return after how many steps a coefficient along (1, −1) is so much longer, or shorter."""
    w, steps = np.array([1, -1]) / np.sqrt(2), 0
    while (np.linalg.norm(w) - ratio) * (ratio - 1) < 0:
        w, steps = w - lr * np.array(hessian) @ w, steps + 1
    return steps


def floor(lr: float, curvature: float, variance: float) -> float:
    """Return the variance at which noisy descent settles, by iterating it."""
    value = 0.0
    for _ in range(20_000):
        value = (1 - lr * curvature) ** 2 * value + lr**2 * variance
    return value


def velocity() -> list[float]:
    methods = Momentum(0.25, alpha=0.5), Nesterov(0.25, alpha=0.5)
    paths = [run(method, lambda theta: 4 * theta, np.array([16.0]), 3)[1:] for method in methods]
    return [*np.ravel(paths), 1 - 0.6 * 4, momentum_rate(0.6, 0.5, np.array([4.0]))]


def divisors() -> list[float]:
    methods = AdaGrad(1, delta=0.0), RMSProp(1, 0.75, delta=0.0), Adam(1, 0.5, 0.75, delta=0.0)
    paths, gradients = [], np.array([[4.0], [3.0], [0.0]])
    for method in methods:
        given = iter(gradients)
        paths.append(run(method, lambda _, g=given: next(g), np.zeros(1), 3))
    return [*np.ravel(-np.diff(paths, axis=1))]


def normalization() -> list[float]:
    def loss(x):
        return np.array([3, 1, 0, 0]) @ (6 * (x - x.mean()) / x.std() + 2)

    return [*slopes(loss, np.array([2.0, 2, 8, 8]), 1e-5)]


def bnp_step() -> list[float]:
    h, delta = np.array([[0.0, 2], [4, 6]]), np.array([1.0, -2])
    gradients = (h.T @ delta)[None], delta.sum(keepdims=True)
    [w], b = precondition_dense(*gradients, h.mean(axis=0), h.var(axis=0), 2, eps1=0, eps2=0)
    return [*w, *b, *(-h @ w - b)]


def noisy_step() -> list[float]:
    lr, noise = np.linspace(0, 1, 100_001), np.array(list(product((-2, 2), repeat=2)))
    results = []
    for scale in (1, np.sqrt(1 / 8), 0):
        steps = np.array([2, 1]) + scale * noise  # each of the four with the same chance
        bend = np.mean(steps**2 @ [1, 9])
        change = -lr * np.mean(steps @ [2, 1]) + lr**2 * bend / 2
        results += [lr[np.argmin(change)], -change.min()]
    return results


# question → which of its bold numbers, and what computes them in another way
ORACLES = {
    (1, 4): ([10], lambda: [count([[5, 3], [3, 5]], 0.2, 1e-3)]),
    (1, 7): ([3, 4], lambda: [count([[1, 2], [2, 1]], 0.25, 2**0.5 / x) for x in (2e-3, 2e-4)]),
    (1, 8): (
        [2, 3, 4],
        lambda: [floor(0.1, 0.1, 0.04), floor(0.1, 4, 0.04), floor(0.025, 0.1, 0.04)],
    ),
    (2, 1): ([0], lambda: [floor(0.1, 2, 4)]),
    (2, 2): ([*range(8)], velocity),
    (2, 3): ([3], lambda: [momentum_rate(4 / 121, 0.9, np.arange(1.0, 101))]),
    (2, 4): ([*range(9)], divisors),
    (2, 7): ([8, 9, 10, 11], normalization),
    (3, 3): ([5, 6, 7, 8, 9], bnp_step),
    (3, 7): ([*range(6)], noisy_step),
}


@pytest.mark.parametrize("question", ORACLES)
def test_numbers_agree_with_simulations(question):
    places, oracle = ORACLES[question]
    bold = re.findall(r"\*\*([−\d.]+)\*\*", QUESTIONS[question].solution)
    printed = [float(bold[place].replace("−", "-")) for place in places]
    np.testing.assert_allclose(printed, oracle(), rtol=0.006, atol=1e-6)


def test_points_are_minutes_and_lessons_exist():
    lessons = syllabus.lessons()
    for exam in TEXTS:
        assert sum(q.points for (e, _), q in QUESTIONS.items() if e == exam) == 90, exam
    for (exam, number), question in QUESTIONS.items():
        inner = [int(points) for points in re.findall(r"\*\((\d+) points?\)\*", question.text)]
        assert sum(inner) in (0, question.points), (exam, number)
        assert question.solution.count("*Partial credit.*") == 1, (exam, number)
        assert {*lessons_of(exam, number)} <= {*lessons}, (exam, number)


def test_sheets_have_no_solutions_and_students_none(tmp_path, capsys):
    (tmp_path / "exams").symlink_to(ROOT / "exams")
    exams.main(course=Course(tmp_path))
    pages = [(tmp_path / name).read_text("utf-8") for name in capsys.readouterr().out.split()]
    for sheet, full in zip(pages[::2], pages[1::2], strict=True):
        assert not re.search("Solution|Partial credit|{number}", sheet)
        assert full.count("Partial credit") == sheet.count("<h2") == 8
        assert "<code>" not in full  # a formula that could not be typeset, or a number
        assert "http" not in re.sub(r"http://www.w3.org/\S+", "", full)
    names = handout.pack(Course(ROOT), tmp_path / "course.zip") + contents(ROOT)
    assert not [name for name in names if "exam-" in name or name.startswith("exams")]


# --- the syllabus, and what each lesson has ---

BOOK = ROOT / "book"
PAGE = (BOOK / "syllabus.md").read_text("utf-8")
MAIN = {name: x for name, x in syllabus.lessons().items() if "appendix" not in x.options}
LONG, SHORT = (
    [label for week in syllabus.WEEK.finditer(plan[0]) for label in LINK.findall(week[1])]
    for plan in syllabus.PLAN.finditer(PAGE)
)


def test_lesson_has_label_minutes_needs_and_cards():
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


def test_numbers_follow_from_the_lessons():
    assert syllabus.written(PAGE) == PAGE, "run python -m tools.site.syllabus"


def test_own_weeks_are_filled_and_keep_words():
    own = PAGE.replace("exam 1 |", "exam 1; a plan |")
    blank = re.sub(r"(\| Week[^|]*\|[^|]*\|) \d+ (\|[^|]*\|) [\d.]+ \|", r"\1 \2 |", own)
    assert syllabus.written(blank) == own


def test_lessons_come_once_and_after_what_they_need():
    assert list(MAIN) == LONG, "in book/syllabus.md, name each lesson in its week, as in _toc.yml"
    spine = {name: {*x.needs} for name, x in MAIN.items() if "spine" in x.options}
    assert {"optimizers-today", *spine}.union(*spine.values()) == {*spine} <= {*SHORT}
    assert sum(MAIN[label].minutes for label in spine) <= 500  # for three evenings
    assert len({*SHORT}) == len(SHORT)
    for place, label in enumerate(SHORT):
        assert {*MAIN[label].needs} <= {*SHORT[:place]}, label


def test_outcomes_name_exercises_and_all_exam_questions():
    outcomes = [line.split(" |") for line in PAGE.splitlines() if line.startswith("| {ref}")]
    asked = {(int(e), int(q)) for row in outcomes for e, q in re.findall(r"(\d)\.(\d)", row[3])}
    assert asked == {*QUESTIONS}, "in book/syllabus.md, name each exam question in an outcome"
    for chapter, _, practiced, exam, *_ in outcomes:
        [topic] = LINK.findall(chapter)
        numbers = {int(number) for number in re.findall(r"(?<!-)\b\d+", LINK.sub("", practiced))}
        assert numbers <= {*assignment(topic)}
        assert practiced.strip() or exam.strip()


def test_short_course_exam_covers_only_taught_lessons():
    chosen = [(3, question) for question in (1, 2, 3, 4, 6, 7, 8)] + [(2, 7)]
    assert {lesson for question in chosen for lesson in lessons_of(*question)} <= {*SHORT}
    assert QUESTIONS[2, 7].points == QUESTIONS[3, 5].points
