"""Give one student more time: ``python -m tools.classroom.extend TOPIC STUDENT WHEN``.

STUDENT is an id, a number, or a name that only one has.
WHEN is a moment in UTC, such as "2027-03-08 23:59", or none to take the extension away. It counts
from the next grading on; a submission that is graded already is then looked at again.
"""

from datetime import timedelta

from rich.text import Text

from tools.classroom import class_state, moments
from tools.classroom.backend import Backend
from tools.classroom.moments import MOMENT
from tools.classroom.release import NO_DEADLINE
from tools.classroom.student_matching import everybody, find
from tools.layout import HERE, Course
from tools.terminal import ToolError, argument, command, console


def apply(course: Course, topic: str) -> list[str]:
    """Enter the extensions into the gradebook; return whose submission this changed.

    The gradebook keeps an extension with a submission, so one without waits.
    """
    changed = []
    with Backend(course).gradebook() as book:
        due = book.find_assignment(topic).duedate
        submissions = {entry.student.id: entry for entry in book.assignment_submissions(topic)}
        for student, until in class_state.read(course).extensions.get(topic, {}).items():
            longer = None
            if until != NO_DEADLINE and due:
                # the deadline may have been moved beyond it
                longer = max(moments.parse(until) - due, timedelta(0)) or None
            if (submission := submissions.get(student)) and submission.extension != longer:
                submission.extension = longer
                changed.append(student)
        book.db.commit()
    return changed


@command(
    argument("topic", nargs="?", metavar="TOPIC", help="the assignment"),
    argument("student", nargs="?", metavar="STUDENT", help="an id, a number or a name"),
    argument("until", nargs="?", metavar="WHEN", help="the moment, in UTC; or none"),
)
def main(topic: str, student: str, until: str, course: Course = HERE) -> None:
    """Give a student more time, or take it away."""
    if not (topic and student and until):
        remedy = 'make extend A=erm STUDENT=ada UNTIL="2027-03-08 23:59"'
        raise ToolError("which assignment, which student, until when?", remedy)
    [topic] = course.choose([topic])
    person = find(student, everybody(course))
    with Backend(course).gradebook() as book:
        due = {entry.name: entry.duedate for entry in book.assignments}.get(topic)
    if due is None:
        remedy = f'python -m tools.classroom.release {topic} --due "2027-03-01 23:59"'
        raise ToolError(f"{topic} has no deadline yet", remedy)
    given = "no longer than the others"
    if until != NO_DEADLINE:
        moment = moments.parse(until)
        until = f"{moment:{MOMENT}}"
        given = f"until {until} UTC"
        if moment <= due:
            problem = f"{until} is not after the deadline, {due:{MOMENT}}"
            raise ToolError(problem, "give a later one")
    with class_state.changed(course) as state:
        state.extensions.setdefault(topic, {})[person.id] = until
    console.print(Text(f"{person} may hand in {topic} {given}; it is due {due:{MOMENT}} UTC."))
    if (course.submitted / person.id / topic).is_dir():
        console.print(f"Grade again, so that it counts: make grade A={topic}")
