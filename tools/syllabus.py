"""Write what can be computed into the tables of ``book/syllabus.md``: ``python -m tools.syllabus``.

The lessons and labs of a week are chosen by hand. Its exercises, its hours and what is due follow
from them, and so do the totals and the points of the short course. With ``--check`` nothing is
written, and a page that differs is an error.
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.fingerprints import write_if_changed
from tools.layout import ROOT, contents
from tools.terminal import ToolError, run

MINUTES_OF_AN_EXERCISE = 15
LINK = re.compile(r"\{ref\}`[^`<]*<([\w-]+)>`")
PLAN = re.compile(r"^## [^\n]* in \d+ weeks\n.*?(?=^## )", re.MULTILINE | re.DOTALL)
WEEK = re.compile(r"^\| Week.(\d+) \|(.*?)\|.*?\|(.*?)\|.*?\|(.*?)\|$", re.MULTILINE)
POINTS = re.compile(r"^\| (\w+) \| [\d, ]*\| \d+ of \d+ \|$", re.MULTILINE)


@dataclass(frozen=True)
class Lesson:
    """What the plans ask of a lesson."""

    label: str
    minutes: int
    needs: tuple[str, ...]
    exercises: tuple[str, ...]
    labs: tuple[str, ...]
    spine: bool
    appendix: bool

    @property
    def topic(self) -> str:
        """Return the chapter, such as ``erm``."""
        return self.label.partition("-")[0]


def lessons(root: Path = ROOT) -> dict[str, Lesson]:
    """Return the lessons by their labels, such as ``erm-risk``, in the order of the book."""
    found = {}
    for name in contents(root):
        text = (root / f"{name}.md").read_text(encoding="utf-8")
        if minutes := re.search(r"^```\{lesson\}\n(?::.*\n)*?:minutes: (\d+)$", text, re.MULTILINE):
            needs = re.search(r"^:needs: (.+)$", text, re.MULTILINE)
            label = "-".join(name.split("/")[1:])
            found[label] = Lesson(
                label,
                int(minutes[1]),
                tuple(re.findall(r"[\w-]+", needs[1] if needs else "")),
                tuple(re.findall(r"^```\{exercise\} (\S+)", text, re.MULTILINE)),
                tuple(re.findall(r"^\((LAB-\d+)\)=", text, re.MULTILINE)),
                ":spine:" in text,
                ":appendix:" in text,
            )
    return found


def assignment(topic: str, root: Path = ROOT) -> dict[int, tuple[str, int]]:
    """Return the name and the points of each exercise of an assignment by its number."""
    found: dict[int, tuple[str, int]] = {}
    file, number = root / "exercises" / topic / f"{topic}.ipynb", 0
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        if heading := re.match(r"## (\d+) · ", "".join(cell["source"])):
            number = int(heading[1])
        if number:
            marks = cell["metadata"].get("nbgrader", {})
            name, points = found.get(number, ("", 0))
            found[number] = (name or marks.get("grade_id", ""), points + marks.get("points", 0))
    return found


class Plan:
    """The weeks of a course, as the page has them."""

    def __init__(self, text: str, root: Path = ROOT) -> None:
        self.root = root
        every = lessons(root)
        self.weeks = {
            int(number): ([every[x] for x in LINK.findall(read)], LINK.findall(labs), due)
            for number, read, labs, due in WEEK.findall(text)
        }
        self.topic_of = {lab: lesson.topic for lesson in every.values() for lab in lesson.labs}
        self.lessons = [lesson for week, _, _ in self.weeks.values() for lesson in week]
        self.minutes = sum(map(self.minutes_of, self.weeks))

    def minutes_of(self, week: int) -> int:
        """Return how long the work of a week takes."""
        read, labs, _ = self.weeks[week]
        files = [self.root / "exercises" / self.topic_of[lab] / "lab.ipynb" for lab in labs]
        planned = [re.search(r"Plan (\d+) minutes", file.read_text("utf-8")) for file in files]
        exercises = MINUTES_OF_AN_EXERCISE * sum(len(lesson.exercises) for lesson in read)
        return sum(x.minutes for x in read) + exercises + sum(int(x[1]) for x in planned if x)

    def due(self, week: int) -> str:
        """Return the assignments whose last lesson or lab was a week ago, and the exams."""
        last: dict[str, int] = {}
        for number, (read, labs, _) in self.weeks.items():
            last |= {lesson.topic: number for lesson in read}
            last |= {self.topic_of[lab]: number for lab in labs}
        exams = re.findall(r"exam \d", self.weeks[week][2])
        return "; ".join(filter(None, [", ".join(t for t in last if last[t] == week - 1), *exams]))

    def row(self, match: re.Match[str]) -> str:
        """Return the row of a week."""
        week = int(match[1])
        exercises = sum(len(lesson.exercises) for lesson in self.weeks[week][0])
        hours, due = self.minutes_of(week) / 60, self.due(week)
        cells = f"{match[2]}| {exercises} |{match[3]}| {hours:.1f} | {due}{' ' if due else ''}|"
        return f"| Week\N{NO-BREAK SPACE}{week} |{cells}"

    def points(self, match: re.Match[str]) -> str:
        """Return the row of an assignment, with the exercises of the plan's lessons."""
        every = assignment(match[1], self.root)
        names = [name for lesson in self.lessons for name in lesson.exercises]
        chosen = {n: points for n, (name, points) in every.items() if name.startswith(tuple(names))}
        total = sum(points for _, points in every.values())
        return f"| {match[1]} | {', '.join(map(str, chosen))} | {sum(chosen.values())} of {total} |"


def written(text: str, root: Path = ROOT) -> str:
    """Return the page with what follows from its choice of lessons."""

    def section(match: re.Match[str]) -> str:
        plan = Plan(match[0], root)
        hours = plan.minutes / 60
        # with the classes, three exams, and the hours to prepare for them
        whole = hours + 1.5 * (len(plan.weeks) + 3) + 20
        new = POINTS.sub(plan.points, WEEK.sub(plan.row, match[0]))
        new = re.sub(r"take [\d.]+ hours together", f"take {hours:.1f} hours together", new)
        return re.sub(r"takes about \d+ hours", f"takes about {whole:.0f} hours", new)

    every = lessons(root).values()
    main = [lesson for lesson in every if not lesson.appendix]
    within = sum(len(lesson.exercises) for lesson in main)
    beside = sum(len(assignment(topic, root)) for topic in {x.topic for x in main}) - within
    text = re.sub(r"\d+ exercises are not counted", f"{beside} exercises are not counted", text)
    return PLAN.sub(section, text)


def command(arguments: argparse.Namespace) -> None:
    """Write the page, or compare it."""
    page = ROOT / "book" / "syllabus.md"
    before = page.read_text(encoding="utf-8")
    after = written(before)
    if not arguments.check:
        write_if_changed(page, after.encode())
    elif before != after:
        lines = zip(before.splitlines(), after.splitlines(), strict=True)
        different = "\n".join(new for old, new in lines if old != new)
        raise ToolError(f"book/syllabus.md should say\n{different}", "python -m tools.syllabus")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.syllabus", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, say what differs")
    return run(command, parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
