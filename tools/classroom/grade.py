"""Grade what is new or changed, and write its feedback: ``python -m tools.classroom.grade TOPIC``.

The scores are gradebox's: a submission is graded again when it, the assignment, or the code that
checks it has changed. The pages are nbgrader's, written again when the work or a mark has changed.
"""

import contextlib
import signal
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.text import Text

import gradebox.nbgrader.course
from gradebox.exchange import NEEDED
from gradebox.run import batch
from gradebox.run.report import recorded, warn
from gradebox.sandbox.probe import survey
from gradebox.workers.pool import cores
from tools import notebooks
from tools.classroom import gradebook, release, students
from tools.classroom.backend import Backend, submissions, write_page
from tools.classroom.students import Person, class_members, everybody, nearest
from tools.fingerprints import Fingerprints, digest, files
from tools.layout import HERE, Course
from tools.progress import OnProgress, Stages
from tools.terminal import ToolError, argument, command, console, cut

MAX_ALONE = 6  # so many pages are written sooner than other processes have started
PAGES = [Path(gradebox.__file__).parent / name for name in ("feedback", "nbgrader", "share")]
"""What pages are made by: when it changes, all are written anew."""
MAX_FAILURES = 10  # how many of the submissions that failed are listed


@dataclass
class Summary:
    """What became of submissions: students with their assignments, and why some failed."""

    graded: list[tuple[str, str]] = field(default_factory=list)
    unchanged: list[tuple[str, str]] = field(default_factory=list)
    refused: list[tuple[str, str, str]] = field(default_factory=list)
    lost: list[tuple[str, str, str]] = field(default_factory=list)  # graded, but without a page
    pages: int = 0

    def add(self, other: "Summary") -> None:
        """Take over the results of another summary."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def grade(
    course: Course,
    topic: str,
    timeout: int | None = None,
    on_progress: OnProgress = lambda done, total, now: None,
) -> Summary:
    """Grade the submissions of one assignment that are new or changed.

    A submission counts twice in the progress: when it is graded, and when its page is there.
    ``timeout`` is how many seconds a cell may run.
    """
    total, summary = 2 * len(course.submitters(topic)), Summary()
    on_progress(0, total, topic)
    release.apply_extensions(course, topic)
    with _marks_kept(course, topic):
        for number, outcome in enumerate(_graded(course, topic, timeout), 1):
            if outcome.state == "failed":
                summary.refused.append((outcome.student, topic, outcome.why))
            else:
                state = summary.graded if outcome.state == "graded" else summary.unchanged
                state.append((outcome.student, topic))
            on_progress(number, total, f"{topic} · {outcome.student}")
        # of those whose submissions are new to the gradebook
        if extended := release.apply_extensions(course, topic):
            list(_graded(course, topic, timeout, extended))
    fingerprints = Fingerprints(course.build / "fingerprints.json")
    done = [student for student, _ in summary.graded + summary.unchanged]
    stale = _stale(course, topic, fingerprints, done)
    for number, (student, failure) in enumerate(_pages(course, topic, list(stale)), 1):
        if failure:
            summary.lost.append((student, topic, failure))
        else:
            fingerprints.record(f"feedback/{student}/{topic}", stale[student])
            summary.pages += 1
        on_progress(total - len(stale) + number, total, f"{topic} · {student} · feedback")
    on_progress(total, total, "")
    return summary


@contextlib.contextmanager
def _marks_kept(course: Course, topic: str) -> Iterator[None]:
    """Let marked answers in words stay marked whose text is the same after grading.

    nbgrader by itself has all marks of a submission looked at again that it grades again.
    """

    def marked(book: Any) -> Iterator[tuple[tuple[str, str, str], str, Any]]:
        for submission in submissions(book, [topic]):
            work = course.executed(submission.student.id, topic)
            for notebook in submission.notebooks:
                written = (each for each in notebook.grades if each.auto_score is None)
                by_hand = {each.name: each for each in written if each.manual_score is not None}
                if by_hand and notebook.name in work:
                    cells = notebooks.named(notebooks.read(work[notebook.name]))
                    for name in by_hand.keys() & cells:
                        place = submission.student.id, notebook.name, name
                        yield place, cells[name].source, by_hand[name]

    with Backend(course).gradebook() as book:
        before = {place: text for place, text, mark in marked(book) if not mark.needs_manual_grade}
    yield
    with Backend(course).gradebook() as book:
        for place, text, mark in marked(book) if before else ():
            mark.needs_manual_grade &= before.get(place) != text
        book.db.commit()


def _graded(
    course: Course, topic: str, timeout: int | None, students: Sequence[str] = ()
) -> Iterator[batch.Outcome]:
    """Grade side by side; yield what became of each submission."""
    Backend(course)  # makes the folders and the gradebook
    grader = gradebox.nbgrader.course.Course(course.root, topic, timeout)
    try:
        with batch.grading():
            run = batch.Batch(grader, cores())
            tests = run.tests
            if not students:  # and not a second time
                warn(console, tests, topic)
            yield from recorded(grader, run.grade([*students] or grader.students()))
    except batch.Busy as error:
        raise ToolError(str(error), "grade again when it has ended") from error
    except batch.Unready as error:
        raise ToolError(str(error), f"make release A={topic}") from error


def _stale(
    course: Course, topic: str, fingerprints: Fingerprints, students: Sequence[str]
) -> dict[str, str]:
    """Return whose pages are to be written, with the checksums of what they are made from."""
    checksums = {}
    made_by = [course.root / "nbgrader_config.py", *files(*PAGES)]
    shown = defaultdict[str, list[str]](list)  # the scores, penalties and comments on a page
    with Backend(course).gradebook() as book:
        for submission in submissions(book, [topic]):
            said: list[tuple[Any, ...]] = []
            for notebook in submission.notebooks:
                said.append((notebook.name, notebook.late_submission_penalty))
                for one in notebook.grades:
                    scores = one.auto_score, one.manual_score, one.extra_credit
                    said.append((notebook.name, one.name, *scores))
                for one in notebook.comments:
                    said.append((notebook.name, one.name, one.auto_comment, one.manual_comment))
            shown[submission.student.id] = sorted(map(str, said))
    for student in sorted(students):
        work, folder = course.executed(student, topic), course.feedback / student / topic
        # With the secret of a submission its page goes to the student: one who hands in the same
        # again fetches the page of the last submission.
        given = [course.autograded / student / topic / name for name in NEEDED]
        present = filter(Path.exists, given)
        checksum = digest([*work.values(), *present, *shown[student], *made_by])
        are_there = all((folder / f"{name}.html").exists() for name in work)
        if not (are_there and fingerprints.matches(f"feedback/{student}/{topic}", checksum)):
            checksums[student] = checksum
    return checksums


def _pages(course: Course, topic: str, students: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Write feedback pages, many of them in other processes; yield whose are done, or why not."""
    work = repeat(course.root), repeat(topic), students
    if len(students) <= MAX_ALONE:
        yield from map(write_page, *work)
        return
    # a fork would take over half of what other threads are doing; Ctrl-C is for the one that called
    ignored = (signal.SIGINT, signal.SIG_IGN)
    with ProcessPoolExecutor(cores(), get_context("spawn"), signal.signal, ignored) as pool:
        yield from pool.map(write_page, *work)


def _show_class(course: Course, topic: str, people: Mapping[str, Person]) -> None:
    """Print who is not on the class list, and whose notebooks are the same file."""
    submitters, listed = course.submitters(topic), students.state(course).students
    for student in [who for who in submitters if listed and who not in listed]:
        near = nearest(student, class_members(course))
        console.print(Text(f"Not on the class list: {student} (nearest: {near})"))
    for path in sorted(course.submitted.glob(f"*/{topic}*.ipynb")):
        here, there = path.relative_to(course.root), f"{path.parent.name}/{topic}/"
        console.print(Text(f"Not graded, as it lies outside of {there}: {here}"))
    for name in course.notebooks(topic):
        by_digest = defaultdict[str, list[str]](list)
        for student in submitters:
            file = course.submitted / student / topic / f"{name}.ipynb"
            if file.is_file():
                by_digest[digest([file])].append(str(people.get(student, student)))
        by_digest.pop(digest([course.released(topic, name)]), None)  # nothing is written in it
        for same in by_digest.values():
            if len(same) > 1:
                console.print(Text(f"The same {name}.ipynb, byte for byte: {', '.join(same)}"))


def show(course: Course, summary: Summary, people: Mapping[str, Person]) -> None:
    """Print how many submissions were graded, and which could not be graded and why."""
    console.print(
        f"Graded {len(summary.graded)}, unchanged {len(summary.unchanged)}, "
        f"cannot be graded {len(summary.refused)}; {summary.pages} feedback pages written."
    )
    if summary.graded:
        console.print(f"Notebooks ran {str(survey()).splitlines()[0]}.")
    for title, failed in (("Not graded", summary.refused), ("No page", summary.lost)):
        for student, topic, why in failed[:MAX_FAILURES]:
            cut(f"{title}: {people.get(student, student)}, {topic}: {why}")
        if len(failed) > MAX_FAILURES:
            console.print(f"and {len(failed) - MAX_FAILURES} more; see build/gradebox/")
    if summary.refused:
        where = f"{course.submitted.relative_to(course.root)}/STUDENT/ASSIGNMENT"
        console.print(f"[bold]To fix:[/] repair or replace the notebook in {where},")
        console.print("then grade again; the others are done.")


@command(argument("topics", nargs="*", metavar="TOPIC", help="an assignment"))
def main(topics: list[str], course: Course = HERE) -> int:
    """Grade the assignments named."""
    topics, total = course.choose(topics, needed_by="make grade"), Summary()
    inbound = course.exchange / str(course.config.CourseDirectory.course_id) / "inbound"
    for topic in topics:
        if any(f"+{topic}+" in path.name for path in inbound.glob("*")):
            Backend(course).do("collect", topic)
        if not course.submitters(topic):
            where = (course.submitted / "STUDENT" / topic).relative_to(course.root)
            remedy = f"take in a zip of Moodle's or Canvas's: make collect A={topic} ZIP="
            remedy += f"submissions.zip; or put notebooks into {where}/; or wait for the exchange"
            raise ToolError(f"nobody has handed in {topic} yet", remedy)
    with Stages() as stages:
        callbacks = {topic: stages.add(f"Grade {topic}") for topic in topics}
        for topic, on_progress in callbacks.items():
            release.update(course, [topic])
            total.add(grade(course, topic, None, on_progress))
    class_, people = gradebook.gather(course), everybody(course)
    gradebook.show(course, class_, topics)
    for topic in topics:
        _show_class(course, topic, people)
    show(course, total, people)
    return 1 if total.lost else 0
