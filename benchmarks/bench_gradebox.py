"""Grade one class with nbgrader and with gradebox: ``python -m benchmarks.bench_gradebox``.

Both grade the same submissions of an assignment, each in a folder of its own that is removed at
the end and with a gradebook of its own, from the start of the command to its end, with nothing
kept from before. All that their gradebooks say of the students must be equal. A third of the
class hands in right answers, a third nothing, and a third one wrong answer.

``--only gradebox`` leaves nbgrader out, for large classes, and measures the memory: the largest
sum, over the command and all processes that it starts, of what each has for itself and its share
of what they have in common.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import psutil

from benchmarks.gradebooks import rows, url
from tools import answers, backend, sample_class
from tools.layout import ROOT, Course

CONFIG = """c = get_config()
c.CourseDirectory.course_id = "class"
c.Execute.extra_arguments = ["--log-level=ERROR"]
# cells import the checks when they run, so that gradebox cannot see it in them
c.WarmExecute.imports = {imports!r}
c.WarmExecute.banned = ["optdl.{{assignment}}"]
c.WarmExecute.stubbed = ["optdl.checks"]
"""

PAUSE = 0.5
"""Seconds between two looks at the memory."""


def make(folder: Path, topic: str, students: int) -> None:
    """Write a course with one assignment and what a class handed in."""
    course = Course(ROOT)
    source = folder / "source" / topic
    source.mkdir(parents=True)
    shutil.copy(course.source(topic), source)
    imports = [f"optdl.checks.{topic}"]
    (folder / "nbgrader_config.py").write_text(CONFIG.format(imports=imports))
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
    run(folder, "-m", "nbgrader", "generate_assignment", topic)


def environment() -> dict[str, str]:
    """Return the environment of the commands that are measured."""
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | backend.environment() | {"PYTHONPATH": path}


def run(folder: Path, *command: str, memory: bool = False) -> tuple[float, float]:
    """Run Python in a folder; return how many seconds it took, and the bytes of its memory.

    To look at the memory takes time of the processors: so only where it is asked for.
    """
    with (folder / "said.txt").open("w+") as said:
        start = time.perf_counter()
        began = subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        with watched(began.pid) if memory else contextlib.nullcontext([0.0]) as largest:
            status = began.wait()
            seconds = time.perf_counter() - start
        if status:
            said.seek(0)
            raise SystemExit(f"{' '.join(command)} ended with {status}:\n{said.read()[-2000:]}")
    return seconds, max(largest)


@contextlib.contextmanager
def watched(pid: int) -> Iterator[list[float]]:
    """Look at the memory of a process and its descendants until the end."""
    largest, over = [0.0], Event()

    def look() -> None:
        while not over.wait(PAUSE):
            with contextlib.suppress(psutil.NoSuchProcess):
                first = psutil.Process(pid)
                family = [first, *first.children(recursive=True)]
                largest[0] = max(largest[0], sum(map(taken, family)))

    thread = Thread(target=look)
    thread.start()
    try:
        yield largest
    finally:
        over.set()
        thread.join()


def taken(process: psutil.Process) -> float:
    """Return the bytes that a process has, of shared ones its part."""
    try:
        return float(process.memory_full_info().pss)
    except psutil.AccessDenied:  # of another user: all that it has counts
        return float(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0.0


def compare(topic: str, students: int, jobs: int) -> None:
    """Print a line with the times of both."""
    with tempfile.TemporaryDirectory() as folder:
        made, copy = Path(folder, "nbgrader"), Path(folder, "gradebox")
        make(made, topic, students)
        shutil.copytree(made, copy)
        theirs, _ = run(made, "-m", "nbgrader", "autograde", topic)
        ours, _ = run(copy, "-m", "gradebox", "grade", topic, "-j", str(jobs))
        expected, got = rows(url(made)), rows(url(copy))
    if not expected["grades"] or got != expected:
        differ = [sorted(set(expected[name]) ^ set(got[name]))[:10] for name in expected]
        raise SystemExit(f"the gradebooks differ: {differ}")
    print(
        f"| {topic} | {students} | {theirs / students:.3f} | {ours / students:.4f} "
        f"| {theirs / ours:.1f} |",
        flush=True,
    )


def alone(topic: str, students: int, jobs: int) -> None:
    """Print a line with the time and the memory of gradebox."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "gradebox")
        make(made, topic, students)
        grade = ["gradebox", "grade", topic, "-j", str(jobs)]
        seconds, most = run(made, "-m", *grade, memory=True)
        found = {row[0] for row in rows(url(made))["submissions"]}
    if len(found) != students:
        raise SystemExit(f"expected {students} submissions in the gradebook, got {len(found)}")
    print(f"| {topic} | {students} | {seconds:.1f} | {most / 2**20:.0f} |", flush=True)


def main() -> None:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assignment", nargs="+", default=["erm", "bnp"], metavar="NAME")
    parser.add_argument("--students", nargs="+", type=int, default=[30, 300], metavar="N")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", choices=["gradebox"])
    given = parser.parse_args()
    if given.only:
        print("| assignment | students | s | memory, MB |")
        print("|---|--:|--:|--:|")
    else:
        print("| assignment | students | nbgrader, s each | gradebox, s each | ratio |")
        print("|---|--:|--:|--:|--:|")
    for topic in given.assignment:
        for students in given.students:
            (alone if given.only else compare)(topic, students, given.jobs)


if __name__ == "__main__":
    main()
