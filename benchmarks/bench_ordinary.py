"""Count the ordinary tests that work apart: ``python -m benchmarks.bench_ordinary``.

The cases of ``tests/ordinary``, by kind, and the courses of ``tests/courses`` are graded in three
ways: *stock*, in one IPython, scored as nbgrader does it; *apart*, each test cell in a process of
its own; and *graded*, as ``gradebox grade`` does it, where the tests that fail apart on the
instructor's own answers run *beside* the student's code.

The table has, for each kind, the number of tests of right answers, and how many of them give what
stock nbgrader gives; how many tests run beside; the number of tests of wrong answers, and how many
of them give more than stock nbgrader. In a course ``solution`` and ``another`` have the right
answers, all others are among the wrong ones. All scores that differ are listed below the table.
"""

import argparse
import itertools
import multiprocessing
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_notebook
from traitlets.config import Config

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import courses  # noqa: E402
import ordinary  # noqa: E402
from ordinary import one_process  # noqa: E402

from gradebox.bridge import trial  # noqa: E402
from gradebox.bridge.execute import WarmExecute  # noqa: E402
from gradebox.process import pool  # noqa: E402

RIGHT = ("solution", "another")
WAYS = ("stock", "apart", "graded")
IMPORTS = (
    "networkx",
    "numpy",
    "pytest",
    "scipy.optimize",
    "scipy.sparse",
    "torch",
    "torch._dynamo",
)

Scores = dict[str, float]


@dataclass(frozen=True)
class Exercise:
    """A notebook, and what is handed in.

    Parameters
    ----------
    name, kind : str
        What it is called, and in which row it counts.
    source : notebook
        The instructor's version.
    submissions : mapping of str to notebook
        By the student's name.
    files : mapping of str to str
        The texts of the files beside the notebook.
    counted : sequence of str
        The tests that count.
    """

    name: str
    kind: str
    source: Any
    submissions: Mapping[str, Any]
    counted: Sequence[str]
    files: Mapping[str, str] = field(default_factory=dict)


def of_corpus(kinds: Sequence[str]) -> Iterator[Exercise]:
    """Yield the cases of ``tests/ordinary``."""
    for case in ordinary.cases():
        if case.kind in kinds:
            tests = [courses.test("earlier", 1, case.earlier)] if case.earlier else []
            tests.append(courses.test("test", 1, case.test))
            answers = {"solution": case.answer} | ({"wrong": case.wrong} if case.wrong else {})
            made = {
                student: new_notebook(cells=[courses.answer("answer", text), *tests])
                for student, text in answers.items()
            }
            yield Exercise(case.name, case.kind, made["solution"], made, ["test"])


def of_courses(kinds: Sequence[str]) -> Iterator[Exercise]:
    """Yield the courses of ``tests/courses``."""
    for name, course in courses.courses().items():
        if name in kinds:
            made = {student: course.submission(student) for student in courses.STUDENTS}
            counted = [test for test, points in course.points().items() if points]
            yield Exercise(name, name, course.source(), made, counted, course.files)


def fill(folder: str, exercise: Exercise) -> Path:
    """Write the files beside the notebook into a new folder."""
    made = Path(tempfile.mkdtemp(dir=folder))
    for name, text in exercise.files.items():
        (made / name).write_text(text)
    return made


def stock(process: ProcessPoolExecutor, folder: str, exercise: Exercise) -> dict[str, Scores]:
    """Return what stock nbgrader gives to each student, by test."""
    found = {}
    for student, nb in exercise.submissions.items():
        cells, sources, worth = courses.code(nb)
        ran = process.submit(one_process.run, sources, fill(folder, exercise), worth).result()
        found[student] = {name: one.points for name, one in zip(cells, ran, strict=True)}
    return found


def ours(folder: str, exercise: Exercise, timeout: int) -> tuple[dict[str, dict[str, Scores]], int]:
    """Return what gradebox gives apart and as graded, and how many tests the trial has moved."""
    root = Path(tempfile.mkdtemp(dir=folder))
    source = root / "source" / "bench"
    source.mkdir(parents=True)
    nbformat.write(exercise.source, source / "notebook.ipynb")
    for name, text in exercise.files.items():
        (source / name).write_text(text)
    config = Config()
    config.CourseDirectory.root = str(root)
    step = WarmExecute(config=config, timeout=timeout, imports=list(IMPORTS))
    moved = trial.moved(trial.try_out(step, source, "bench")).get("notebook", [])
    about = {"assignment": "bench", "notebook": "notebook"}
    found: dict[str, dict[str, Scores]] = {}
    for way, beside in {"apart": [], "graded": moved}.items():
        found[way] = {
            student: step.run(deepcopy(nb), fill(folder, exercise), about, beside).scores
            for student, nb in exercise.submissions.items()
        }
    return found, len(set(moved) & set(exercise.counted))


def measure(exercises: Sequence[Exercise], jobs: int, timeout: int) -> None:
    """Print a row for each kind, and where the ways differ."""
    counts: dict[str, Counter[tuple[str, bool]]] = {}
    differ = []
    with (
        tempfile.TemporaryDirectory(prefix="bench-ordinary-") as folder,
        ProcessPoolExecutor(
            max_workers=1,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=one_process.start,
            initargs=(Path(folder, "profile"), ("matplotlib.figure", *IMPORTS)),
        ) as process,
        ThreadPoolExecutor(jobs) as threads,
    ):
        results = threads.map(partial(ours, folder, timeout=timeout), exercises)
        for exercise, (found, moved) in zip(exercises, results, strict=True):
            found["stock"] = stock(process, folder, exercise)
            row = counts.setdefault(exercise.kind, Counter())
            row["beside", True] += moved
            for student, test in itertools.product(exercise.submissions, exercise.counted):
                right = student in RIGHT
                scores = {way: found[way][student][test] for way in WAYS}
                row["tests", right] += 1
                for way, score in scores.items():
                    row[way, right] += gets(score, scores["stock"], right)
                if len(set(scores.values())) > 1:
                    differ.append([exercise.name, student, test, *scores.values()])
    show(counts)
    print("\n| case | student | test | stock | apart | graded |")
    print("|---|---|---|--:|--:|--:|")
    for cells in differ:
        print(f"| {' | '.join(map(str, cells))} |")


def gets(score: float, expected: float, right: bool) -> bool:
    """Return whether a right answer gets what stock nbgrader gives, or a wrong one more."""
    return score == expected if right else score > expected


def show(counts: Mapping[str, Counter[tuple[str, bool]]]) -> None:
    """Print a row for each kind, and their sum."""
    print("| kind | right | stock | apart | graded | beside | wrong | stock | apart | graded |")
    print(f"|---{'|--:' * 9}|")
    total = sum(counts.values(), Counter())
    for kind, row in [*counts.items(), ("all", total)]:
        columns = [
            *(row[name, True] for name in ("tests", *WAYS, "beside")),
            *(row[name, False] for name in ("tests", *WAYS)),
        ]
        print(f"| {kind} | {' | '.join(map(str, columns))} |")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="*", default=list(ordinary.KINDS), metavar="NAME")
    parser.add_argument("--courses", nargs="*", default=list(courses.NAMES), metavar="NAME")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=int, default=60, help="seconds that a cell may have")
    given = parser.parse_args()
    os.environ["PYTHONPATH"] = str(ROOT / "src")
    try:
        for title, exercises in (
            ("ordinary", list(of_corpus(given.kinds))),
            ("courses", list(of_courses(given.courses))),
        ):
            if exercises:
                print(f"\n{title}\n")
                measure(exercises, given.jobs, given.timeout)
    finally:
        pool.close()


if __name__ == "__main__":
    main()
