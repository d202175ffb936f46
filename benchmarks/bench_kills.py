"""Kill runs of ``gradebox grade``, and see that no score is lost or doubled.

``python -m benchmarks.bench_kills`` starts a run over 30 submissions a hundred times, ends it with
SIGKILL at instants that are spread over the whole run, and lets the same command go on. After
each kill the gradebook must hold whole submissions only, each once; at the end it must equal, row
by row, that of a run that nothing stopped.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.bench_gradebox import environment, write_course
from benchmarks.gradebooks import Rows, rows, url

LIMIT = 1800.0
"""Seconds after which a run is taken for stuck."""


@dataclass(frozen=True)
class Class:
    """A class to be graded, and what its grading must lead to.

    Parameters
    ----------
    folder : Path
        The course as it is before it is graded.
    assignment : str
        The assignment.
    expected : dict
        What the gradebook holds after a run that nothing stopped.
    told : dict
        What that run said of each student.
    seconds : float
        How long it took.
    """

    folder: Path
    assignment: str
    expected: Rows
    told: dict[str, object]
    seconds: float


def start(course: Path, assignment: str, jobs: int) -> subprocess.Popen[bytes]:
    """Start a run."""
    command = [sys.executable, "-m", "gradebox", "grade", assignment, "-j", str(jobs)]
    return subprocess.Popen(
        command,
        cwd=course,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def whole(folder: Path, assignment: str, place: Path, jobs: int) -> Class:
    """Grade a copy of a class without a stop."""
    shutil.copytree(folder, place)
    began = time.monotonic()
    if start(place, assignment, jobs).wait(LIMIT):
        raise SystemExit(f"the run that nothing stopped failed; see {place}")
    seconds = time.monotonic() - began
    return Class(folder, assignment, rows(url(place)), _told(place, assignment), seconds)


def _told(course: Path, assignment: str) -> dict[str, object]:
    """Return what a run said of each student, without whether it was this run that graded."""
    told = json.loads((course / ".gradebox" / f"{assignment}.json").read_text())
    return {student: (one["events"], one["why"]) for student, one in told.items()}


def instants(kills: int, seconds: float, seed: int) -> list[float]:
    """Return instants at random, one in each of as many equal parts of a run."""
    draw = random.Random(seed)
    return [seconds * (part + draw.random()) / kills for part in range(kills)]


def kill(course: Path, assignment: str, instant: float, jobs: int) -> bool:
    """Start a run and kill it after so many seconds; return whether it was still running.

    Raises
    ------
    AssertionError
        If a process that the run started outlives it.
    """
    run = start(course, assignment, jobs)
    time.sleep(instant)
    family = psutil.Process(run.pid).children(recursive=True)
    running = run.poll() is None
    run.kill()
    run.wait(LIMIT)
    _, alive = psutil.wait_procs(family, timeout=LIMIT)
    assert not alive, f"still running after the run was killed: {alive}"
    return running


def committed(course: Path, of: Class) -> int:
    """Return how many submissions are in a gradebook.

    Raises
    ------
    AssertionError
        If one of them is not whole, is there twice, or has another score.
    """
    found = rows(url(course))
    students = {row[0] for row in found["submissions"]}
    for name in ("submissions", "notebooks", "grades", "comments"):
        expected = [row for row in of.expected[name] if row[0] in students]
        assert found[name] == expected, (name, set(found[name]) ^ set(expected))
    return len(students)


def trials(of: Class, moments: list[float], jobs: int, place: Path) -> Iterator[tuple[bool, int]]:
    """Kill and resume; yield whether the run was still running, and what was committed by then.

    Where a run had come to its end before, another one is killed sooner.
    """
    for moment in moments:
        instant, running = moment, False
        while not running:
            running, done = trial(of, instant, jobs, place)
            yield running, done
            instant *= 0.9


def trial(of: Class, instant: float, jobs: int, place: Path) -> tuple[bool, int]:
    """Kill a run, see what it left, let it go on, and see that nothing is lost or doubled."""
    course = place / "killed"
    shutil.copytree(of.folder, course)
    running = kill(course, of.assignment, instant, jobs)
    done = committed(course, of)
    assert start(course, of.assignment, jobs).wait(LIMIT) == 0
    assert rows(url(course)) == of.expected
    assert _told(course, of.assignment) == of.told
    assert not list((course / ".gradebox" / "work").glob("*"))
    shutil.rmtree(course)
    return running, done


def summary(found: list[tuple[bool, int]], students: int) -> str:
    """Return what the kills hit."""
    hits = Counter("after the end" if not running else _when(n, students) for running, n in found)
    return ", ".join(f"{number} {when}" for when, number in sorted(hits.items()))


def _when(done: int, students: int) -> str:
    if not done:
        return "before the first commit"
    return "after the last commit" if done == students else "between two commits"


def main() -> None:
    """Kill, resume, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assignment", default="erm")
    parser.add_argument("--students", type=int, default=30)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made, place = Path(folder, "made"), Path(folder, "place")
        write_course(made, given.assignment, given.students)
        of = whole(made, given.assignment, Path(folder, "whole"), given.jobs)
        print(f"{given.students} submissions of {given.assignment}: {of.seconds:.1f} s in one go")
        found: list[tuple[bool, int]] = []
        moments = instants(given.kills, of.seconds, given.seed)
        for one in trials(of, moments, given.jobs, place):
            found.append(one)
            print(f"\r{len(found)} kills", end="", flush=True)
    print(f"\r{given.kills} kills: {summary(found, given.students)}")
    grades = len(of.expected["grades"])
    print(f"after each: whole submissions only; at the end all {grades} scores, each once, as ever")


if __name__ == "__main__":
    main()
