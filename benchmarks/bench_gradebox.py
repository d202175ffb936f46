"""Grade one class with nbgrader and with gradebox: ``python benchmarks/bench_gradebox.py erm``.

Both grade the same submissions of an assignment, each in a folder of its own that is removed at
the end and with a gradebook of its own, from the start of the command to its end. Their scores
must be equal. A third of the class hands in right answers, a third nothing, and a third one wrong
answer.
"""

import argparse
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools import answers, backend, sample_class
from tools.layout import ROOT, Course

CONFIG = """c = get_config()
c.CourseDirectory.course_id = "class"
c.Execute.extra_arguments = ["--log-level=ERROR"]
# cells import this when they run, so that gradebox cannot see it in them
c.WarmExecute.imports = ["numpy", "optdl.checks.{topic}"]
"""

SCORES = """
SELECT submitted_assignment.student_id, base_cell.name,
       grade.auto_score, grade.manual_score, grade.needs_manual_grade
FROM grade
JOIN base_cell ON base_cell.id = grade.cell_id
JOIN submitted_notebook ON submitted_notebook.id = grade.notebook_id
JOIN submitted_assignment ON submitted_assignment.id = submitted_notebook.assignment_id
ORDER BY 1, 2
"""


def make(folder: Path, topic: str, students: int) -> None:
    """Write a course with one assignment and what a class handed in."""
    course = Course(ROOT)
    source = folder / "source" / topic
    source.mkdir(parents=True)
    shutil.copy(course.source(topic), source)
    (folder / "nbgrader_config.py").write_text(CONFIG.format(topic=topic))
    sheet = sample_class.sheet(course, topic)
    wrong = next(iter(sheet.right))
    fillings = (
        sheet.right | sheet.written,
        {},
        sheet.right | {wrong: answers.forgets_return(sheet.right[wrong])},
    )
    for number in range(students):
        filling = fillings[number % len(fillings)]
        student = sample_class.Student(f"s{number}", "", lambda _, filling=filling: filling)
        place = folder / "submitted" / f"s{number:04d}" / topic
        place.mkdir(parents=True)
        (place / f"{topic}.ipynb").write_bytes(sample_class.submission(sheet, student))
    run(folder, "nbgrader", "generate_assignment", topic)


def run(folder: Path, *command: str) -> float:
    """Run a command in a folder and return how many seconds it took."""
    environment = os.environ | backend.environment()
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(
            f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}"
        )
    return seconds


def scores(folder: Path) -> list[tuple[object, ...]]:
    """Return every score in a gradebook."""
    with sqlite3.connect(folder / "gradebook.db") as book:
        return book.execute(SCORES).fetchall()


def main() -> None:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("topics", nargs="+", metavar="TOPIC")
    parser.add_argument("--students", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    print("| assignment | students | nbgrader, s each | gradebox, s each | ratio |")
    print("|---|--:|--:|--:|--:|")
    for topic in given.topics:
        with tempfile.TemporaryDirectory() as folder:
            made, copy = Path(folder, "nbgrader"), Path(folder, "gradebox")
            make(made, topic, given.students)
            shutil.copytree(made, copy)
            theirs = run(made, "nbgrader", "autograde", topic)
            ours = run(copy, "gradebox", "grade", topic, "-j", str(given.jobs))
            expected, got = scores(made), scores(copy)
            if not expected or got != expected:
                raise SystemExit(f"the scores differ: {sorted(set(expected) ^ set(got))[:10]}")
            print(
                f"| {topic} | {given.students} | {theirs / given.students:.3f} "
                f"| {ours / given.students:.4f} | {theirs / ours:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
