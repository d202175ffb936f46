"""Make students' notebooks from the instructor's: ``python -m tools.classroom.release [TOPIC …]``.

The same source gives the same bytes, on every machine and at any time. With ``--student``, it gives
one student more time: the deadline counts from the next grading on, which looks at a submission
again that is graded already.
"""

import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from nbformat import NotebookNode
from rich.text import Text

from gradebox import moments
from gradebox.events import Event
from gradebox.exchange import Releases, gather
from gradebox.files import read_json
from gradebox.nbgrader.cells import headings, of
from tools import notebooks
from tools.classroom import students
from tools.classroom.backend import Backend
from tools.classroom.students import everybody, find
from tools.fingerprints import Fingerprints, digest, files, write_if_changed
from tools.layout import HERE, LAB, Course, is_result
from tools.progress import Stages, each
from tools.terminal import ToolError, argument, command, console

SECRETS = ("BEGIN SOLUTION", "END SOLUTION", "HIDDEN TESTS", "MARK SCHEME")
REGION = re.compile(r"^[^\n]*### BEGIN SOLUTION\n(.*?)^[^\n]*### END SOLUTION", re.M | re.S)
NO_DEADLINE, MOMENT = "none", "%Y-%m-%d %H:%M"  # how a deadline is written, in UTC
GO_ON = "raises-exception"
"""With this tag, JupyterLab's Run All goes on to the next exercise after a check has failed."""
REFUSALS = ("Cannot add or remove cells", "because there are submissions associated with it")
"""What nbgrader says when an assignment no longer fits its graded submissions."""


def render(course: Course, topic: str) -> dict[str, bytes]:
    """Return the students' notebooks of a topic by name; nothing of the course is changed."""
    with TemporaryDirectory() as folder:
        database = f"sqlite:///{folder}/gradebook.db"
        backend = Backend(course, release_directory=f"{folder}/release", db_url=database)
        # most of the time goes into a gradebook, which nobody would read
        backend.api.config.SaveCells.enabled = False
        backend.api.config.GenerateAssignment.no_database = True
        backend.do("generate_assignment", topic)
        made = Path(folder, "release", topic)
        released = {
            name: notebooks.read(made / f"{name}.ipynb") for name in course.notebooks(topic)
        }
    for name, notebook in released.items():
        notebook.metadata = notebooks.node(notebooks.METADATA)
        for cell in notebook.cells:
            # in a lab, a cell that is not nbgrader's shows what the record holds, if there is one
            metadata = cell.metadata.get("nbgrader", {"locked": name == LAB})
            if cell.cell_type == "code" and metadata.get("locked"):
                cell.metadata.tags = [*cell.metadata.get("tags", []), GO_ON]
        if problems := faults(notebooks.read(course.source(topic, name)), notebook):
            problem = f"{topic}/{name} would be wrong to hand out: {'; '.join(problems)}"
            source = f"solutions/{topic}/{name}.ipynb"
            raise ToolError(problem, f"correct {source}; the exercise in place stays as it was")
    return {name: notebooks.to_bytes(notebook) for name, notebook in released.items()}


def faults(source: NotebookNode, released: NotebookNode) -> list[str]:
    """Return what is wrong with what students would get of a notebook, in words."""
    ids = {name: cell.get("id") for name, cell in notebooks.named(released).items()}
    lines = {line.strip() for cell in released.cells for line in cell.source.splitlines()}
    text = "\n".join(lines)
    return [
        *(f"cell {i!r} has the grade id {n!r}; make them equal" for n, i in ids.items() if i != n),
        *(f"it still holds {secret!r}" for secret in SECRETS if secret in text),
        *(f"it gives away {line!r}" for line in _secret_lines(source) if line in lines),
    ]


def _secret_lines(source: NotebookNode) -> list[str]:
    """Return the lines of the solutions that are long enough to be recognized."""
    written = (c for c in source.cells if c.cell_type == "markdown" and of(c).get("solution"))
    texts = [text for cell in source.cells for text in REGION.findall(cell.source)]
    texts += [cell.source for cell in written]
    lines = (line.strip() for text in texts for line in text.splitlines())
    return [line for line in lines if len(line) >= 16]


def write(course: Course, topic: str) -> bool:
    """Write the students' notebooks and their data files; return whether anything changed.

    What somebody edited there is copied to the place of work before. What the instructor's runs
    left is no data: it would solve the students' own.
    """
    fingerprints = Fingerprints(course.build / "fingerprints.json")
    if fingerprints.matches(f"release/{topic}", _fingerprint(course, topic)):
        return False
    rendered, releases = render(course, topic), Releases(course.exercises)
    for said in gather(course.work, topic, [course.exercises], releases, course.root):
        console.print(f"[yellow]{said}[/]")
    contents = {course.released(topic, name): content for name, content in rendered.items()}
    for path in files(course.solutions / topic):
        if path.suffix != ".ipynb" and not is_result(path):
            target = course.exercises / topic / path.relative_to(course.solutions / topic)
            contents[target] = path.read_bytes()
    for path in {*files(course.exercises / topic)} - contents.keys():  # whose source is no more
        if releases.knows(topic, path.relative_to(course.exercises / topic).as_posix(), path):
            path.unlink()
    changed = [write_if_changed(target, content) for target, content in contents.items()]
    releases.remember(contents)  # and not what somebody else put there
    fingerprints.record(f"release/{topic}", _fingerprint(course, topic))
    return any(changed)


def _fingerprint(course: Course, topic: str) -> str:
    """Return the checksum of what a release is made from, and of the release itself."""
    sources = [Path(__file__), course.root / "nbgrader_config.py"]
    return digest([*sources, *files(course.solutions / topic), *files(course.exercises / topic)])


def record(course: Course, topic: str, due: datetime | str | None = None) -> bool:
    """Record the cells of an assignment in the gradebook, and publish it to the exchange.

    The deadline, in UTC, stays as it was when none is given; ``"none"`` takes it away. Returns
    whether there was anything to do.
    """
    fingerprints = Fingerprints(course.build / "fingerprints.json")
    checksum = digest(
        version(topic, name)
        for name in course.notebooks(topic)
        for version in (course.source, course.released)
    )
    outbound = course.exchange / str(course.config.CourseDirectory.course_id) / "outbound"
    done = fingerprints.matches(f"record/{topic}", checksum)
    with Backend(course).gradebook() as book:  # which somebody may have removed
        done &= any(entry.name == topic and entry.notebooks for entry in book.assignments)
    if done and due is None and (sys.platform == "win32" or (outbound / topic).is_dir()):
        return False
    with TemporaryDirectory() as folder:
        backend = Backend(course, release_directory=folder)
        try:
            backend.do("generate_assignment", topic)
        except ToolError as error:
            if not any(text in error.log for text in REFUSALS):
                raise
            problem = f"{topic} has other cells or notebooks than when its submissions were graded"
            remedy = "keep them; or first remove a class that was made to try: "
            remedy += "python -m tools.classroom.sample_class --remove"
            raise ToolError(problem, remedy) from None
    if due is not None:
        with backend.gradebook() as book:
            book.update_or_create_assignment(topic, duedate=None if due == NO_DEADLINE else due)
    if sys.platform != "win32":
        Backend(course).do("release_assignment", topic)
    # gradebox takes note of the release, or work for it would be told as changed once there is
    # another; here, as students have no part of it that grades
    from gradebox.nbgrader.course import Course as Grader
    from gradebox.run.batch import Batch

    Batch(Grader(course.root, topic, config=course.config))
    fingerprints.record(f"record/{topic}", checksum)
    return True


def update(course: Course, topics: Iterable[str]) -> None:
    """Release the assignments whose source has changed."""
    for topic in topics:
        write(course, topic)
        record(course, topic)


def older(course: Course, topic: str, events: list[Event]) -> tuple[list[str], list[Event]]:
    """Return the exercises that came after the release of a hand-in, and what else happened to it.

    What such a hand-in misses, its student has not deleted.
    """
    lacks: list[str] = []
    seen = course.root / str(course.config.Gradebox.folder) / "releases" / f"{topic}.json"
    for name in {event.notebook for event in events if event.kind == "missing"}:
        of_notebook = [e for e in events if (e.kind, e.notebook) == ("missing", name)]
        missing = {event.cell for event in of_notebook}
        if any(missing.isdisjoint(cells) for cells in read_json(seen).get(name, [])):
            titles = headings(notebooks.read(course.source(topic, name)))
            lacks += dict.fromkeys(f"exercise {titles[cell]}" for cell in titles if cell in missing)
            events = [event for event in events if event not in of_notebook]
    return lacks, events


# --- deadlines


def moment(text: str) -> datetime | str:
    """Return the moment, in UTC, that a text such as ``2027-03-08 23:59`` names; or none."""
    if named := NO_DEADLINE if text == NO_DEADLINE else moments.parse(text):
        return named
    raise ToolError(f"{text!r} is no moment", "write it as 2027-03-08 23:59, in UTC")


def extend(course: Course, topic: str, student: str, until: str) -> None:
    """Give a student more time, or take it away, and say so."""
    person, moved = find(student, everybody(course)), moment(until)
    with Backend(course).gradebook() as book:
        due = {entry.name: entry.duedate for entry in book.assignments}.get(topic)
    if due is None:
        remedy = f'python -m tools.classroom.release {topic} --due "2027-03-01 23:59"'
        raise ToolError(f"{topic} has no deadline yet", remedy)
    given = "no longer than the others"
    if isinstance(moved, datetime):
        until = f"{moved:{MOMENT}}"
        given = f"until {until} UTC"
        if moved <= due:
            problem = f"{until} is not after the deadline, {due:{MOMENT}}"
            raise ToolError(problem, "give a later one")
    with students.changed(course) as state:
        state.extensions.setdefault(topic, {})[person.id] = until
    console.print(Text(f"{person} may hand in {topic} {given}; it is due {due:{MOMENT}} UTC."))
    if (course.submitted / person.id / topic).is_dir():
        console.print(f"Grade again, so that it counts: make grade A={topic}")


def apply_extensions(course: Course, topic: str) -> list[str]:
    """Enter the extensions into the gradebook; return whose submission this changed.

    The gradebook keeps an extension with a submission, so one without waits.
    """
    changed = []
    with Backend(course).gradebook() as book:
        due = book.find_assignment(topic).duedate
        submissions = {entry.student.id: entry for entry in book.assignment_submissions(topic)}
        for student, until in students.state(course).extensions.get(topic, {}).items():
            longer, moved = None, moment(until)
            if due and isinstance(moved, datetime):
                # the deadline may have been moved beyond it
                longer = max(moved - due, timedelta(0)) or None
            if (submission := submissions.get(student)) and submission.extension != longer:
                submission.extension = longer
                changed.append(student)
        book.db.commit()
    return changed


@command(
    argument("topics", nargs="*", metavar="TOPIC", help="an assignment; all when none"),
    argument("--due", metavar="WHEN", help="a moment in UTC, '2026-03-01 23:59', or none"),
    argument("--student", metavar="STUDENT", help="who alone has until then: an id or a name"),
)
def main(topics: list[str], due: str | None, student: str | None, course: Course = HERE) -> None:
    """Release the assignments named, or all; or give a student more time."""
    course.need_solutions()
    if student is not None and not (student and due and [*filter(None, topics)]):
        remedy = 'make extend A=erm STUDENT=ada UNTIL="2027-03-08 23:59"'
        raise ToolError("which assignment, which student, until when?", remedy)
    topics = course.choose(topics)
    if student and due:
        for topic in topics:
            extend(course, topic, student, due)
        return
    until = moment(due) if due else None
    with Stages() as stages:
        for topic in each(topics, stages.add("Release")):
            changed = "[green]new[/]" if write(course, topic) else "as it was"
            published = ", published" if record(course, topic, until) else ""
            names = ", ".join(f"{name}.ipynb" for name in course.notebooks(topic))
            where = course.exercises.relative_to(course.root) / topic
            console.print(f"{topic}: {names} in {where}/: {changed}{published}", soft_wrap=True)
    for topic in topics if until else ():
        said = "has no deadline"
        if isinstance(until, datetime):
            here = f"{until.replace(tzinfo=UTC).astimezone():%a %d %b %Y, %H:%M %Z}"
            said = f"is due {until:{MOMENT}} UTC (here: {here})"
        console.print(f"{topic} {said}")
