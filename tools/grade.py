"""Grade what is new or changed, and write its feedback: ``python -m tools.grade TOPIC``.

A submission is graded again when it, the assignment, or the code that checks it has changed.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from gradebox.seal import survey
from tools import gradebook, release
from tools.backend import Backend, Failed, MissingEntry
from tools.layout import ROOT, Course
from tools.stamps import Stamps, code_digest, digest, files
from tools.terminal import ToolError, console, need_disk, progress, run

Tell = Callable[[int, int, str], None]
"""Called with the number done, the number of all, and what is done now."""


@dataclass
class Summary:
    """What became of the submissions of one or more assignments."""

    graded: list[tuple[str, str]] = field(default_factory=list)
    unchanged: list[tuple[str, str]] = field(default_factory=list)
    failed: list[tuple[str, str, str]] = field(default_factory=list)
    feedback: int = 0

    def add(self, other: "Summary") -> None:
        """Take over the results of another summary."""
        self.graded += other.graded
        self.unchanged += other.unchanged
        self.failed += other.failed
        self.feedback += other.feedback


def submitters(course: Course, topic: str) -> list[str]:
    """Return who handed in an assignment, sorted."""
    return sorted(path.parent.name for path in course.submitted.glob(f"*/{topic}") if path.is_dir())


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
    tell: Tell = lambda done, total, now: None,
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
    tell : callable
        Told about the progress.
    force : bool
        Grade every submission again.

    Returns
    -------
    Summary
        Who was graded, who was not touched, and who failed, with the reason.
    """
    backend = Backend(course, timeout)
    stamps = Stamps(course.build / "stamps.json")
    basis = _basis(course, topic)
    names, summary = submitters(course, topic), Summary()
    recorded = _recorded(backend, topic)
    for number, student in enumerate(names):
        tell(number, len(names), f"{topic} · {student}")
        checksum = digest([basis, *files(course.submitted / student / topic)])
        result = course.autograded / student / topic / f"{topic}.ipynb"
        name = f"grade/{student}/{topic}"
        known = student in recorded and result.exists() and stamps.fresh(name, checksum)
        if known and not force:
            summary.unchanged.append((student, topic))
        else:
            stamps.forget(name)
            try:
                _autograde(backend, topic, student)
            except Failed as error:
                summary.failed.append((student, topic, error.reason))
                continue
            stamps.record(name, checksum)
            summary.graded.append((student, topic))
        summary.feedback += _feedback(backend, stamps, topic, student)
    tell(len(names), len(names), "")
    return summary


def _basis(course: Course, topic: str) -> str:
    """Return the checksum of all that decides on the scores, besides the submission."""
    return digest(
        [*files(course.solutions / topic), code_digest(course.root, course.source(topic))]
    )


def _autograde(backend: Backend, topic: str, student: str) -> None:
    folder = backend.course.submitted / student / topic
    if not (folder / f"{topic}.ipynb").is_file():
        others = ", ".join(path.name for path in files(folder)) or "nothing"
        raise Failed("", f"Error: there is no {topic}.ipynb among what was handed in ({others})")
    log = backend.autograde(topic, student)
    result = backend.course.autograded / student / topic / f"{topic}.ipynb"
    if not result.exists():
        raise Failed(f"{student}'s {topic} fails", log)


def _feedback(backend: Backend, stamps: Stamps, topic: str, student: str) -> bool:
    """Write a feedback page where the work or its scores have changed."""
    course = backend.course
    work = course.autograded / student / topic / f"{topic}.ipynb"
    page = course.feedback / student / topic / f"{topic}.html"
    checksum = digest([work, json.dumps(_scores(backend, topic, student), sort_keys=True)])
    name = f"feedback/{student}/{topic}"
    if page.exists() and stamps.fresh(name, checksum):
        return False
    backend.make_feedback(topic, student)
    stamps.record(name, checksum)
    return True


def _scores(backend: Backend, topic: str, student: str) -> list[Any]:
    """Return the scores and comments that a feedback page shows."""
    with backend.gradebook() as book:
        entry = book.find_submission_notebook(topic, topic, student)
        grades = [
            [one.name, one.auto_score, one.manual_score, one.extra_credit] for one in entry.grades
        ]
        comments = [[one.name, one.auto_comment, one.manual_comment] for one in entry.comments]
    return [sorted(grades, key=repr), sorted(comments, key=repr)]


def _recorded(backend: Backend, topic: str) -> set[str]:
    """Return whose submissions the gradebook holds."""
    with backend.gradebook() as book:
        try:
            return {one.student.id for one in book.assignment_submissions(topic)}
        except MissingEntry:
            return set()


def show(course: Course, summary: Summary) -> None:
    """Print what was done, and what failed and why."""
    console.print(
        f"Graded {len(summary.graded)}, unchanged {len(summary.unchanged)}, "
        f"failed {len(summary.failed)}; {summary.feedback} feedback pages written."
    )
    if summary.graded:
        console.print(f"Notebooks ran {str(survey()).splitlines()[0]}.")
    if not summary.failed:
        return
    table = Table("student", "assignment", "why it could not be graded", box=None)
    for row in summary.failed:
        table.add_row(*row)
    console.print(table)
    where = course.submitted.relative_to(course.root)
    console.print(
        f"[bold]Mend:[/] repair or replace the notebook in {where}/STUDENT/ASSIGNMENT "
        "and grade again; the others are done."
    )


def command(arguments: argparse.Namespace, course: Course | None = None) -> int:
    """Grade the assignments named."""
    course = course or Course(ROOT)
    if not arguments.topics:
        known = course.choose([])
        raise ToolError(
            f"which assignment? There are {', '.join(known)}", f"make grade A={known[0]}"
        )
    topics = course.choose(arguments.topics)
    need_disk(course.root)
    for topic in topics:
        collect(course, topic)
        if not submitters(course, topic):
            where = (course.submitted / "STUDENT" / topic).relative_to(course.root)
            raise ToolError(
                f"nobody has handed in {topic} yet",
                f"put notebooks into {where}/, or let students submit in JupyterLab; "
                "`python -m tools.sample_class` makes a class to try",
            )
    total = Summary()
    with progress() as bar:
        for topic in topics:
            release.write(course, topic)
            release.record(course, topic)
            task = bar.add_task(f"Grade {topic}", total=None, now="")

            def tell(done: int, number: int, now: str, task: Any = task) -> None:
                bar.update(task, completed=done, total=number, now=now)

            total.add(grade(course, topic, arguments.timeout, tell, arguments.force))
    console.print(gradebook.table(gradebook.rows(course, topics)))
    show(course, total)
    return 1 if total.failed else 0


def parser() -> argparse.ArgumentParser:
    """Return the command line of this tool."""
    made = argparse.ArgumentParser(prog="python -m tools.grade", description=__doc__)
    made.add_argument("topics", nargs="*", metavar="TOPIC", help="an assignment")
    made.add_argument("--force", action="store_true", help="grade unchanged submissions too")
    made.add_argument("--timeout", type=int, metavar="S", help="seconds that a cell may run")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
