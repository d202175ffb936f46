"""Grade what is new or changed, and write its feedback: ``python -m tools.grade TOPIC``.

The scores are gradebox's: a submission is graded again when it, the assignment, or the code that
checks it has changed. The pages are nbgrader's, written again when the work or a mark has changed.
"""

import argparse
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table
from rich.text import Text

import gradebox.nbgrader.course
from gradebox.exchange import NEEDED
from gradebox.processors import cores
from gradebox.run import batch, report
from gradebox.run.store import Busy
from gradebox.sandbox.probe import survey
from tools import extend, gradebook, release, results
from tools.backend import Backend, Failed, submissions
from tools.class_state import read as read_register
from tools.fingerprints import Fingerprints, digest, files
from tools.layout import ROOT, Course
from tools.progress import OnProgress, Stages
from tools.student_matching import class_members, nearest
from tools.terminal import ToolError, console, need_disk, run

FEW = 6
"""So many pages are written sooner than other processes have started."""

PAGES = [Path(gradebox.__file__).parent / name for name in ("feedback", "nbgrader", "share")]
"""What pages are made by: when it changes, all are written anew."""

MOST = 10
"""How many of the submissions that failed are listed."""


@dataclass
class Summary:
    """What became of the submissions of one or more assignments."""

    graded: list[tuple[str, str]] = field(default_factory=list)
    unchanged: list[tuple[str, str]] = field(default_factory=list)
    to_look_at: list[tuple[str, str]] = field(default_factory=list)
    failed: list[tuple[str, str, str]] = field(default_factory=list)
    feedback: int = 0

    def add(self, other: "Summary") -> None:
        """Take over the results of another summary."""
        self.graded += other.graded
        self.unchanged += other.unchanged
        self.to_look_at += other.to_look_at
        self.failed += other.failed
        self.feedback += other.feedback

    def take(self, topic: str, outcome: batch.Outcome) -> None:
        """Take in what became of one submission."""
        if outcome.state == "failed":
            self.failed.append((outcome.student, topic, outcome.why))
            return
        submission = outcome.student, topic
        (self.graded if outcome.state == "graded" else self.unchanged).append(submission)
        if any(event.is_to_look_at for event in outcome.events):
            self.to_look_at.append(submission)


def collect(course: Course, topic: str) -> bool:
    """Take from the exchange what students submitted there; return whether there was any."""
    inbound = course.exchange / str(course.config.CourseDirectory.course_id) / "inbound"
    if not any(f"+{topic}+" in path.name for path in inbound.glob("*")):
        return False
    Backend(course).collect(topic)
    return True


def grade(
    course: Course,
    topic: str,
    timeout: int | None = None,
    on_progress: OnProgress = lambda done, total, now: None,
    force: bool = False,
) -> Summary:
    """Grade the submissions of one assignment that are new or changed.

    Parameters
    ----------
    course : Course
        The course.
    topic : str
        The assignment.
    timeout : int, optional
        Seconds that a cell may run.
    on_progress : callable
        Told about the progress: a submission counts when it is graded, and when its page is there.
    force : bool
        Grade every submission again.

    Returns
    -------
    Summary
        Who was graded, who was not touched, and who failed, with the reason.
    """
    total, summary = 2 * len(course.submitters(topic)), Summary()
    on_progress(0, total, topic)
    graded = _graded if FORKS else _one_by_one
    extend.apply(course, topic)
    for number, outcome in enumerate(graded(course, topic, timeout, force), 1):
        summary.take(topic, outcome)
        on_progress(number, total, f"{topic} · {outcome.student}")
    if extended := extend.apply(course, topic):  # whose submissions are new to the gradebook
        for _ in graded(course, topic, timeout, False, extended):
            pass
    fingerprints = Fingerprints(course.build / "fingerprints.json")
    stale = _stale(
        course, topic, fingerprints, [student for student, _ in summary.graded + summary.unchanged]
    )
    for done, (student, failure) in enumerate(_pages(course, topic, list(stale)), 1):
        if failure:
            summary.failed.append((student, topic, failure.problem))
        else:
            fingerprints.record(f"feedback/{student}/{topic}", stale[student])
            summary.feedback += 1
        on_progress(total - len(stale) + done, total, f"{topic} · {student} · feedback")
    on_progress(total, total, "")
    return summary


FORKS = sys.platform != "win32"
"""Whether the system can fork; without it nbgrader grades, one submission after another."""


def _graded(
    course: Course, topic: str, timeout: int | None, force: bool, students: Sequence[str] = ()
) -> Iterator[batch.Outcome]:
    """Grade side by side; yield what became of each submission."""
    Backend(course)  # makes the folders and the gradebook
    grader = gradebox.nbgrader.course.Course(course.root, topic, timeout)
    try:
        with batch.grading():
            run = batch.Batch(grader, cores(), resume=not force)
            tests = run.prepare()
            if not students:  # and not a second time
                report.warn(console, tests, topic)
            yield from report.recorded(grader, run.grade([*students] or grader.students()))
    except batch.Unready as error:
        raise ToolError(str(error), f"make release A={topic}") from error
    except Busy as error:
        raise ToolError(str(error), "wait for the end of the other run") from error


def _one_by_one(
    course: Course, topic: str, timeout: int | None, force: bool, students: Sequence[str] = ()
) -> Iterator[batch.Outcome]:
    """Have nbgrader grade all, in kernels that nothing seals; yield what became of each."""
    console.print("No fork on this system: nbgrader grades all, one after another, not sealed.")
    backend = Backend(course, timeout)
    for student in students or course.submitters(topic):
        try:
            log = backend.autograde(topic, student)
            if not course.executed(student, topic):
                raise Failed(f"{student}'s {topic} fails", log)
            yield batch.Outcome(student, "graded")
        except Failed as error:
            yield batch.Outcome(student, "failed", why=error.reason)


def _stale(
    course: Course, topic: str, fingerprints: Fingerprints, students: Sequence[str]
) -> dict[str, str]:
    """Return whose pages are to be written, with the checksums of what they are made from."""
    checksums = {}
    made_by = [course.root / "nbgrader_config.py", *files(*PAGES)]
    with Backend(course).gradebook() as book:
        scores = {
            submission.student.id: _scores(submission) for submission in submissions(book, [topic])
        }
    for student in sorted(students):
        work = course.executed(student, topic)
        folder = course.feedback / student / topic
        are_there = all((folder / f"{name}.html").exists() for name in work)
        # With the secret of a submission its page goes to the student: one who hands in the same
        # again fetches the page of the last submission.
        given = [course.autograded / student / topic / name for name in NEEDED]
        made_from = [*work.values(), *filter(Path.exists, given)]
        checksum = digest([*made_from, json.dumps(scores[student], sort_keys=True), *made_by])
        if not (are_there and fingerprints.matches(f"feedback/{student}/{topic}", checksum)):
            checksums[student] = checksum
    return checksums


def _scores(submission: Any) -> list[Any]:
    """Return the scores, penalties and comments that feedback pages show."""
    shown = []
    for entry in submission.notebooks:
        grades = [
            [grade.name, grade.auto_score, grade.manual_score, grade.extra_credit]
            for grade in entry.grades
        ]
        comments = [
            [grade.name, grade.auto_comment, grade.manual_comment] for grade in entry.comments
        ]
        penalty = entry.late_submission_penalty
        shown.append([entry.name, penalty, sorted(grades, key=repr), sorted(comments, key=repr)])
    return sorted(shown, key=repr)


def _pages(
    course: Course, topic: str, students: Sequence[str]
) -> Iterator[tuple[str, Failed | None]]:
    """Write feedback pages, many of them in other processes; yield whose are done, or fail."""
    if len(students) <= FEW:
        for student in students:
            yield _page(course.root, topic, student)
        return
    running = [_processes().submit(_page, course.root, topic, student) for student in students]
    try:
        for future in as_completed(running):
            yield future.result()
    finally:
        for future in running:
            future.cancel()


@cache
def _processes() -> ProcessPoolExecutor:
    """Return the processes that write pages; they start when first asked for."""
    return ProcessPoolExecutor(
        cores(),
        get_context("spawn"),  # a fork would take over half of what other threads are doing
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),  # Ctrl-C is for the one that called
    )


@cache
def _nbgrader(root: Path) -> Backend:
    return Backend(Course(root))


def _page(root: Path, topic: str, student: str) -> tuple[str, Failed | None]:
    try:
        _nbgrader(root).make_feedback(topic, student)
    except Failed as error:
        return student, error
    return student, None


def show_class(course: Course, topic: str) -> None:
    """Print who is not on the class list, and whose notebooks are the same file."""
    submitters, listed = course.submitters(topic), read_register(course).students
    for student in submitters if listed else []:
        if student not in listed:
            near = nearest(student, class_members(course))
            console.print(Text(f"Not on the class list: {student} (nearest: {near})"))
    for name in course.notebooks(topic):
        by_digest: dict[str, list[str]] = {}
        blank = digest([course.released(topic, name)])
        for student in submitters:
            file = course.submitted / student / topic / f"{name}.ipynb"
            if file.is_file():
                by_digest.setdefault(digest([file]), []).append(student)
        for checksum, students in by_digest.items():
            if len(students) > 1 and checksum != blank:
                console.print(Text(f"The same {name}.ipynb, byte for byte: {', '.join(students)}"))


def show(course: Course, summary: Summary) -> None:
    """Print how many submissions were graded, and which could not be graded and why."""
    console.print(
        f"Graded {len(summary.graded)}, unchanged {len(summary.unchanged)}, "
        f"to look at {len(summary.to_look_at)}, failed {len(summary.failed)}; "
        f"{summary.feedback} feedback pages written."
    )
    if summary.graded:
        console.print(f"Notebooks ran {str(survey()).splitlines()[0]}.")
    if not summary.failed:
        return
    table = Table("student", "assignment", "why it could not be graded", box=None, expand=True)
    for column in table.columns:
        column.no_wrap, column.overflow = True, "ellipsis"
    table.columns[-1].ratio = 1
    for row in summary.failed[:MOST]:
        table.add_row(*map(escape, row))
    console.print(table)
    if len(summary.failed) > MOST:
        console.print(f"and {len(summary.failed) - MOST} more; see build/gradebox/")
    where = course.submitted.relative_to(course.root)
    console.print(
        f"[bold]To fix:[/] repair or replace the notebook in {where}/STUDENT/ASSIGNMENT,\n"
        "then grade again; the others are done."
    )


def command(arguments: argparse.Namespace, course: Course | None = None) -> int:
    """Grade the assignments named."""
    course = course or Course(ROOT)
    if not arguments.topics:
        known_topics = course.choose([])
        raise ToolError(
            f"which assignment? There are {', '.join(known_topics)}",
            f"make grade A={known_topics[0]}",
        )
    topics = course.choose(arguments.topics)
    need_disk(course.root)
    for topic in topics:
        collect(course, topic)
        if not course.submitters(topic):
            where = (course.submitted / "STUDENT" / topic).relative_to(course.root)
            raise ToolError(
                f"nobody has handed in {topic} yet",
                f"take in a zip of Moodle's or Canvas's: make collect A={topic} "
                f"ZIP=submissions.zip; or put notebooks into {where}/, or let students submit in "
                "JupyterLab; `python -m tools.sample_class` makes a class to try",
            )
    total = Summary()
    with Stages() as stages:
        callbacks = {topic: stages.add(f"Grade {topic}") for topic in topics}
        for topic, on_progress in callbacks.items():
            release.write(course, topic)
            release.record(course, topic)
            total.add(grade(course, topic, arguments.timeout, on_progress, arguments.force))
    graded = results.rows(course, topics, everybody=True)
    results.write_sheet(course)
    console.print(gradebook.table(graded))
    gradebook.show_exercises(course, topics)
    gradebook.show_look(graded)
    for topic in topics:
        show_class(course, topic)
    show(course, total)
    return 1 if total.failed else 0


def parser() -> argparse.ArgumentParser:
    """Return the command line of this tool."""
    parser = argparse.ArgumentParser(prog="python -m tools.grade", description=__doc__)
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help="an assignment")
    parser.add_argument("--force", action="store_true", help="grade unchanged submissions too")
    parser.add_argument("--timeout", type=int, metavar="S", help="seconds that a cell may run")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
