"""Give one student more time: ``python -m tools.extend TOPIC STUDENT WHEN``.

WHEN is a moment in UTC, such as "2027-03-08 23:59", or none to take the extension away. It counts
from the next grading on; a submission that is graded already is then looked at again.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import timedelta

from rich.text import Text

from tools import class_state
from tools.backend import Backend, MissingEntry
from tools.layout import ROOT, Course
from tools.release import NO_DEADLINE
from tools.terminal import ToolError, console, run


def extend(course: Course, topic: str, student: str, until: str) -> str:
    """Note until when a student may hand in; return the deadline of the others.

    Raises
    ------
    ToolError
        When there is no such student, no deadline, or nothing would be gained.
    """
    with Backend(course).gradebook() as book:
        if student not in {entry.id for entry in book.students}:
            raise ToolError(
                f"there is no student {student!r}", "python -m tools.gradebook lists them"
            )
        try:
            due = book.find_assignment(topic).duedate
        except MissingEntry:
            due = None
    if due is None:
        raise ToolError(
            f"{topic} has no deadline yet",
            f'python -m tools.release {topic} --due "2027-03-01 23:59"',
        )
    moment = None if until == NO_DEADLINE else class_state.parse_moment(until)
    if moment and moment <= due:
        raise ToolError(
            f"{until} is not after the deadline, {due:{class_state.MOMENT}}", "give a later one"
        )
    with class_state.changed(course) as state:
        state.extensions.setdefault(topic, {})[student] = until
    return f"{due:{class_state.MOMENT}}"


def apply(course: Course, topic: str) -> list[str]:
    """Enter the extensions into the gradebook; return whose submission this changed.

    The gradebook keeps an extension with a submission, so one without waits.
    """
    moments = class_state.read(course).extensions.get(topic, {})
    changed = []
    with Backend(course).gradebook() as book:
        due = book.find_assignment(topic).duedate
        for submission in book.assignment_submissions(topic):
            if submission.student.id not in moments:
                continue  # whose extension may come from elsewhere
            until, longer = moments[submission.student.id], None
            if until != NO_DEADLINE and due:
                # the deadline may have been moved beyond it
                longer = max(class_state.parse_moment(until) - due, timedelta(0)) or None
            if submission.extension != longer:
                submission.extension = longer
                changed.append(submission.student.id)
        book.db.commit()
    return changed


def command(arguments: argparse.Namespace, course: Course | None = None) -> None:
    """Give a student more time, or take it away."""
    course = course or Course(ROOT)
    if not (arguments.topic and arguments.student and arguments.until):
        raise ToolError(
            "which assignment, which student, until when?",
            'make extend A=erm STUDENT=ada UNTIL="2027-03-08 23:59"',
        )
    [topic] = course.choose([arguments.topic])
    due = extend(course, topic, arguments.student, arguments.until)
    given = (
        f"until {arguments.until} UTC"
        if arguments.until != NO_DEADLINE
        else "no longer than the others"
    )
    console.print(Text(f"{arguments.student} may hand in {topic} {given}; it is due {due} UTC."))
    if (course.submitted / arguments.student / topic).is_dir():
        console.print(f"Grade again, so that it counts: make grade A={topic}")


def parser() -> argparse.ArgumentParser:
    """Return the command line of this tool."""
    parser = argparse.ArgumentParser(prog="python -m tools.extend", description=__doc__)
    parser.add_argument("topic", nargs="?", metavar="TOPIC", help="the assignment")
    parser.add_argument("student", nargs="?", metavar="STUDENT", help="the student's id")
    parser.add_argument("until", nargs="?", metavar="WHEN", help="the moment, in UTC; or none")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
