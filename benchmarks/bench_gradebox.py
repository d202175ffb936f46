"""Grade one class with nbgrader and with gradebox: ``python -m benchmarks.bench_gradebox``.

Both grade the same submissions of an assignment, each in a folder of its own that is removed at
the end and with a gradebook of its own, from the start of the command to its end, with nothing
kept from before: the dry run of the tests is part of it. All that their gradebooks say of the
students must be equal. A third of the class hands in right answers, a third nothing, and a third
one wrong answer.

The courses are two assignments of this one, whose tests all run isolated; nbgrader's own
``quickstart``; and the same with all tests in the student's process, ``in-process``.

``--sandbox wasm`` has gradebox run the notebooks in WebAssembly; it is compiled before.

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
from typing import Any

import nbformat
import psutil

from benchmarks.gradebooks import rows, url
from gradebox_wasm import machine
from tools.classroom import answers, backend, sample_class
from tools.layout import ROOT, Course

CONFIG = """
c.Execute.extra_arguments = ["--log-level=ERROR"]
c.WarmExecute.imports = ["numpy", "optdl.observation"]
c.WarmExecute.banned = ["optdl.{assignment}"]
c.WarmExecute.stubbed = ["optdl.checks"]
c.WarmExecute.prepare = "from optdl.checks import prepare; prepare('{assignment}')"
c.Wasm.substitutes = [SUBSTITUTES]
"""
QUICKSTART = ("quickstart", "in-process")
COURSES = ("erm", "bnp", *QUICKSTART)

PAUSE = 0.5
"""Seconds between two looks at the memory."""


def write_course(folder: Path, name: str, students: int) -> str:
    """Write a course with one assignment and what a class handed in; return the assignment."""
    if name in QUICKSTART:
        return write_quickstart(folder, students, in_process=name == "in-process")
    course = Course(ROOT)
    source = folder / "source" / name
    source.mkdir(parents=True)
    shutil.copy(course.source(name), source)
    begin = 'c = get_config()\nc.CourseDirectory.course_id = "class"'
    (folder / "nbgrader_config.py").write_text(
        begin
        + CONFIG.replace("SUBSTITUTES", repr(str(ROOT / "tools" / "site" / "inpage" / "library")))
    )
    sheet = sample_class.sheet(course, name)
    wrong = next(iter(sheet.right))
    fillings = (
        sheet.right | sheet.written,
        {},
        sheet.right | {wrong: answers.with_body(sheet.right[wrong], "answer = None")},
    )
    for number in range(students):
        filling = fillings[number % len(fillings)]
        student = sample_class.Student(f"s{number}", "", "", lambda _, filling=filling: filling)
        submission = folder / "submitted" / f"s{number:04d}" / name
        submission.mkdir(parents=True)
        (submission / f"{name}.ipynb").write_bytes(sample_class.submission(sheet, student))
    run(folder, "-m", "nbgrader", "generate_assignment", name)
    return name


def write_quickstart(folder: Path, students: int, *, in_process: bool) -> str:
    """Write nbgrader's own example with a class; return the assignment."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    run(folder.parent, "-m", "nbgrader", "quickstart", folder.name)
    if in_process:
        with (folder / "nbgrader_config.py").open("a") as config:
            config.write('\nc.WarmExecute.way = "in-process"\n')
    run(folder, "-m", "nbgrader", "generate_assignment", "ps1")
    right = folder / "source" / "ps1" / "problem1.ipynb"
    for number in range(students):
        submission = folder / "submitted" / f"s{number:04d}" / "ps1"
        shutil.copytree(folder / "release" / "ps1", submission)
        if number % 3 != 1:
            nb: Any = nbformat.read(right, as_version=4)  # type: ignore[no-untyped-call]
            if number % 3 == 2:
                for cell in nb.cells:
                    cell.source = cell.source.replace("range(1, n + 1)", "range(n)")
            nbformat.write(nb, submission / "problem1.ipynb")  # type: ignore[no-untyped-call]
    return "ps1"


def environment() -> dict[str, str]:
    """Return the environment of the commands that are measured: they find compiled modules."""
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    own = os.environ | backend.environment() | {"PYTHONPATH": path}
    own.pop("PYTHONDONTWRITEBYTECODE", None)  # else each command would compile all that it imports
    return own


def run(folder: Path, *command: str, memory: bool = False) -> tuple[float, float]:
    """Run Python in a folder; return how many seconds it took, and the bytes of its memory.

    To look at the memory takes time of the processors: so only where it is asked for.
    """
    with tempfile.TemporaryFile("w+") as log:
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
        with watched(process.pid) if memory else contextlib.nullcontext([0.0]) as largest:
            status = process.wait()
            seconds = time.perf_counter() - start
        if status:
            log.seek(0)
            raise SystemExit(f"{' '.join(command)} ended with {status}:\n{log.read()[-2000:]}")
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
                largest[0] = max(largest[0], sum(map(proportional_memory, family)))

    thread = Thread(target=look)
    thread.start()
    try:
        yield largest
    finally:
        over.set()
        thread.join()


def proportional_memory(process: psutil.Process) -> float:
    """Return the bytes that a process has, of shared ones its part."""
    try:
        return float(process.memory_full_info().pss)
    except psutil.AccessDenied:  # of another user: all that it has counts
        return float(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0.0


def compare(name: str, students: int, grade: list[str]) -> None:
    """Print a line with the times of both."""
    with tempfile.TemporaryDirectory() as folder:
        of_nbgrader, of_gradebox = Path(folder, "nbgrader"), Path(folder, "gradebox")
        assignment = write_course(of_nbgrader, name, students)
        shutil.copytree(of_nbgrader, of_gradebox)
        theirs, _ = run(of_nbgrader, "-m", "nbgrader", "autograde", assignment)
        ours, _ = run(of_gradebox, "-m", *grade, assignment)
        expected, got = rows(url(of_nbgrader)), rows(url(of_gradebox))
    if not expected["grades"] or got != expected:
        differ = [sorted(set(expected[table]) ^ set(got[table]))[:10] for table in expected]
        raise SystemExit(f"the gradebooks differ: {differ}")
    print(
        f"| {name} | {students} | {theirs / students:.3f} | {ours / students:.4f} "
        f"| {theirs / ours:.1f} |",
        flush=True,
    )


def alone(name: str, students: int, grade: list[str]) -> None:
    """Print a line with the time and the memory of gradebox."""
    with tempfile.TemporaryDirectory() as folder:
        course = Path(folder, "gradebox")
        assignment = write_course(course, name, students)
        seconds, most = run(course, "-m", *grade, assignment, memory=True)
        graded = {row[0] for row in rows(url(course))["submissions"]}
    if len(graded) != students:
        raise SystemExit(f"expected {students} submissions in the gradebook, got {len(graded)}")
    print(f"| {name} | {students} | {seconds:.1f} | {most / 2**20:.0f} |", flush=True)


def main() -> None:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--course", nargs="+", default=COURSES, choices=COURSES, metavar="NAME")
    parser.add_argument("--students", nargs="+", type=int, default=[20, 100], metavar="N")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", choices=["gradebox"])
    parser.add_argument("--sandbox", default="auto", choices=["auto", "kernel", "wasm"])
    options = parser.parse_args()
    grade = ["gradebox", "grade", "-j", str(options.jobs), "--sandbox", options.sandbox]
    if options.sandbox == "wasm":
        machine.module()
    if options.only:
        print("| course | students | s | memory, MB |")
        print("|---|--:|--:|--:|")
    else:
        print("| course | students | nbgrader, s each | gradebox, s each | ratio |")
        print("|---|--:|--:|--:|--:|")
    for name in options.course:
        for students in options.students:
            (alone if options.only else compare)(name, students, grade)


if __name__ == "__main__":
    main()
