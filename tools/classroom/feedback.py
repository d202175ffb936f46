"""Give pages back to students: ``python -m tools.classroom.feedback TOPIC``.

A page goes through the exchange to each student who submitted in JupyterLab. Pages of those whose
work came in a zip of Moodle's or Canvas's are packed as that platform takes them. The others, whose
work came by mail or in a folder, are named with the places of their pages.
"""

from collections.abc import Mapping
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from rich.text import Text

from gradebox.exchange import left_out
from optdl.files import atomic_write
from tools.classroom import results, students
from tools.classroom.backend import Backend
from tools.layout import HERE, Course
from tools.terminal import ToolError, argument, command, console, tell

UPLOAD = {
    "Moodle": "In the assignment: Submissions, Upload multiple feedback files in a zip.",
    "Canvas": "In the gradebook, at the assignment: Re-Upload Submissions. Canvas shows a page "
    "under the name of the notebook; students save it as .html.",
}
"""Where the zips go."""


def pack(course: Course, topic: str, platform: str, folders: Mapping[str, Path]) -> list[str]:
    """Pack the pages of those whose work came from a platform; return whose they are."""
    known, pages = students.state(course).collected.get(topic, {}), dict[str, Path]()
    theirs = [who for who in folders if who in known and known[who]["platform"] == platform]
    for student in theirs:
        for page in sorted(folders[student].glob("*.html")):
            if prefix := known[student]["names"].get(page.stem):
                # Moodle wants a folder for each student, Canvas the name of what it replies to
                pages[f"{prefix}{'/' * (platform == 'Moodle')}{page.name}"] = page
    if pages:
        target = course.feedback / f"{topic}-{platform.lower()}.zip"
        with atomic_write(target) as scratch, ZipFile(scratch, "w", ZIP_DEFLATED) as archive:
            for name, page in pages.items():
                archive.write(page, name)
        where = target.relative_to(course.root)
        console.print(Text(f"Students whose pages were packed: {len(theirs)}, {where}"))
        console.print(UPLOAD[platform])
    return theirs if pages else []


@command(argument("topics", nargs="*", metavar="TOPIC", help="an assignment"))
def main(topics: list[str], course: Course = HERE) -> None:
    """Release the pages of the assignments named, and say who gets none."""
    for topic in course.choose(topics, needed_by="make feedback"):
        pages = course.feedback.glob(f"*/{topic}/*.html")
        if not (graded := {page.parent.parent.name for page in pages}):
            raise ToolError(f"there is no page of {topic} yet", f"make grade A={topic}")
        backend = Backend(course)
        backend.do("release_feedback", topic)
        directory = backend.api.coursedir
        directory.assignment_id, directory.student_id = topic, "*"
        rest = left_out(directory)
        if released := len(graded - {*rest}):
            console.print(f"Pages of {topic} released: {released}.")
        packed = {who for platform in UPLOAD for who in pack(course, topic, platform, rest)}
        people, rows = students.everybody(course), results.rows(course, [topic])
        tell("Written answers still to be read", [row.person for row in rows if row.pending])
        waiting = [row.person for row in rows if row.student not in graded]
        tell("Handed in, and not graded", waiting)
        if mailed := [who for who in rest if who not in packed]:
            console.print("Not released, as the exchange does not know them. Send their pages:")
        for who in mailed:
            where = rest[who].relative_to(course.root)
            console.print(Text(f" {people.get(who, who)}  {where}"), soft_wrap=True)
