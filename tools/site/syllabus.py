"""Write what follows from the lessons of each week into ``book/syllabus.md``.

Run as ``python -m tools.site.syllabus``: exercises, hours and due dates, their totals, and the
points of the short course.
"""

import json
import re
from pathlib import Path
from typing import NamedTuple

from tools.fingerprints import write_if_changed
from tools.layout import ROOT, contents
from tools.terminal import ToolError, command

PAGE = ROOT / "book" / "syllabus.md"
MINUTES_OF_AN_EXERCISE = 15
LINK = re.compile(r"\{ref\}`[^`<]*<([\w-]+)>`")
PLAN = re.compile(r"^## [^\n]* in \d+ weeks\n.*?(?=^## )", re.MULTILINE | re.DOTALL)
WEEK = re.compile(
    r"^(\| Week.\d+ \|[^|\n]*\|)[ \d]*(\|[^|\n]*\|)[ \d.]*\|([^|\n]*)\|$", re.MULTILINE
)
WORDS = re.compile(r"[^;]*\w \w[^;]*\b")
"""What is due beside assignments, such as ``exam 1``."""
POINTS = re.compile(r"^\| (\w+) \| [\d, ]*\| \d+ of \d+ \|$", re.MULTILINE)


class Lesson(NamedTuple):
    """What the plans ask of a lesson."""

    topic: str
    minutes: int
    needs: list[str]
    exercises: list[str]
    labs: list[str]
    options: dict[str, str]


def lessons() -> dict[str, Lesson]:
    """Return the lessons by their labels, such as ``erm-risk``, in the order of the book."""
    found = {}
    for name in contents(ROOT):
        text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
        if line := re.search(r"^```\{lesson\}\n((?::.*\n)*)", text, re.MULTILINE):
            options = dict(re.findall(r"^:(\w+):[ \t]*(.*)", line[1], re.MULTILINE))
            exercises = re.findall(r"^```\{exercise\} (\S+)", text, re.MULTILINE)
            labs = re.findall(r"^\((LAB-\d+)\)=", text, re.MULTILINE)
            _, topic, *_ = parts = name.split("/")
            needs, minutes = options.get("needs", ""), int(options["minutes"])
            needed = re.findall(r"[\w-]+", needs)
            found["-".join(parts[1:])] = Lesson(topic, minutes, needed, exercises, labs, options)
    return found


def _notebook(topic: str) -> Path:
    return ROOT / "exercises" / topic / f"{topic}.ipynb"


def assignment(topic: str) -> dict[int, tuple[str, int]]:
    """Return the name and the points of each exercise of an assignment by its number."""
    found: dict[int, tuple[str, int]] = {}
    text, number = _notebook(topic).read_text(encoding="utf-8"), 0
    for cell in json.loads(text)["cells"]:
        if heading := re.match(r"## (\d+) · ", "".join(cell["source"])):
            number = int(heading[1])
        if number:
            marks = cell["metadata"].get("nbgrader", {})
            name, points = found.get(number, ("", 0))
            found[number] = (name or marks.get("grade_id", ""), points + marks.get("points", 0))
    return found


def planned(plan: str) -> str:
    """Return the section of a plan with all that can be computed."""
    every, weeks = lessons(), list(WEEK.finditer(plan))
    topic_of = {lab: lesson.topic for lesson in every.values() for lab in lesson.labs}
    chosen = [[every[label] for label in LINK.findall(week[1])] for week in weeks]
    labs = [[topic_of[lab] for lab in LINK.findall(week[2])] for week in weeks]
    last, total = dict[str, int](), 0
    for number, topics in enumerate(labs):
        last |= dict.fromkeys([*(lesson.topic for lesson in chosen[number]), *topics], number)
    for number, week in enumerate(weeks):
        # an assignment is due in the week after its last lesson
        ends = [t for t in last if last[t] == number - 1 and _notebook(t).is_file()]
        due = [", ".join(ends)] * bool(ends) + [word.strip() for word in WORDS.findall(week[3])]
        exercises = sum(len(lesson.exercises) for lesson in chosen[number])
        minutes = sum(lesson.minutes for lesson in chosen[number])
        minutes += MINUTES_OF_AN_EXERCISE * exercises
        for topic in labs[number]:
            text = _notebook(topic).with_name("lab.ipynb").read_text("utf-8")
            minutes += int(re.findall(r"Plan (\d+) minutes", text)[0])
        total += minutes
        row = f"{week[1]} {exercises} {week[2]} {minutes / 60:.1f} | {'; '.join(due)} |"
        plan = plan.replace(week[0], row.replace("|  |", "| |"))
    names = tuple(name for week in chosen for lesson in week for name in lesson.exercises)
    for line in POINTS.finditer(plan):
        asked = assignment(line[1])
        taken = {k: points for k, (name, points) in asked.items() if name.startswith(names)}
        whole = sum(points for _, points in asked.values())
        row = f"| {line[1]} | {', '.join(map(str, taken))} | {sum(taken.values())} of {whole} |"
        plan = plan.replace(line[0], row)
    plan = re.sub(r"take [\d.]+ hours together", f"take {total / 60:.1f} hours together", plan)
    # with the classes, three exams, and the hours to prepare for them
    hours = total / 60 + 1.5 * (len(weeks) + 3) + 20
    return re.sub(r"takes about \d+ hours", f"takes about {hours:.0f} hours", plan)


def written(text: str) -> str:
    """Return the page with what follows from its choice of lessons."""
    main = [lesson for lesson in lessons().values() if "appendix" not in lesson.options]
    within = sum(len(lesson.exercises) for lesson in main)
    topics = {x.topic for x in main if _notebook(x.topic).is_file()}
    beside = sum(len(assignment(topic)) for topic in topics) - within
    text = re.sub(r"\d+ exercises are not counted", f"{beside} exercises are not counted", text)
    try:
        return PLAN.sub(lambda plan: planned(plan[0]), text)
    except (KeyError, FileNotFoundError) as error:
        problem = f"a table of book/syllabus.md has what the course has not: {error}"
        raise ToolError(problem, "take it out of the table") from None


@command()
def main() -> None:
    """Write the page."""
    write_if_changed(PAGE, written(PAGE.read_text(encoding="utf-8")).encode())
