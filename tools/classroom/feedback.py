"""Give pages back to students: ``python -m tools.classroom.feedback TOPIC``.

A page goes through the exchange to each student who submitted in JupyterLab. Pages of those whose
work came in a zip of Moodle's or Canvas's are packed as that platform takes them. The others, whose
work came by mail or in a folder, are named with the places of their pages.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from rich.text import Text

from optdl.files import atomic_write
from tools.classroom import class_state, results
from tools.classroom.backend import Backend
from tools.layout import HERE, Course
from tools.terminal import ToolError, argument, command, console, tell


def pack(course: Course, topic: str, folders: Mapping[str, Path]) -> dict[Path, list[str]]:
    """Pack pages for the platforms from which the work came; return whose are in which zip."""
    state, packed = class_state.read(course), {}
    for platform in ("Moodle", "Canvas"):
        came = [(who, hand_in) for who in folders if (hand_in := state.hand_in(topic, who))]
        names = {who: hand_in.names for who, hand_in in came if hand_in.platform == platform}
        pages = {
            # Moodle wants a folder for each student, Canvas the name of what it replies to
            f"{prefix}{'/' * (platform == 'Moodle')}{page.name}": page
            for student in names
            for page in sorted(folders[student].glob("*.html"))
            if (prefix := names[student].get(page.stem))
        }
        if pages:
            target = course.feedback / f"{topic}-{platform.lower()}.zip"
            with atomic_write(target) as scratch, ZipFile(scratch, "w", ZIP_DEFLATED) as archive:
                for name, page in pages.items():
                    archive.write(page, name)
            packed[target] = [*names]
    return packed


UPLOAD = {
    "moodle": "In the assignment: Submissions, Upload multiple feedback files in a zip.",
    "canvas": "In the gradebook, at the assignment: Re-Upload Submissions. Canvas shows a page "
    "under the name of the notebook; students save it as .html.",
}
"""Where the zips go."""


@command(argument("topics", nargs="*", metavar="TOPIC", help="an assignment"))
def main(topics: list[str], course: Course = HERE) -> None:
    """Release the pages of the assignments named, and say who gets none."""
    for topic in course.named(topics, "make feedback A="):
        pages = course.feedback.glob(f"*/{topic}/*.html")
        if not (students := {page.parent.parent.name for page in pages}):
            raise ToolError(f"there is no page of {topic} yet", f"make grade A={topic}")
        rest = Backend(course).release_feedback(topic)
        rows = results.rows(course, [topic])
        names = {row.student: row.who for row in rows}
        missing = {*course.submitters(topic)} - students

        def number(students: Collection[str]) -> str:
            return "1 student" if len(students) == 1 else f"{len(students)} students"

        if released := students - {*rest}:
            console.print(f"Released the pages of {topic} to {number(released)}.")
        for target, packed in pack(course, topic, rest).items():
            where = target.relative_to(course.root)
            console.print(Text(f"Packed the pages of {number(packed)}: {where}"))
            console.print(UPLOAD[target.stem.rpartition("-")[2]])
            rest = {student: folder for student, folder in rest.items() if student not in packed}
        unread = ", ".join(row.who for row in rows if row.pending)
        not_graded = ", ".join(names[student] for student in sorted(missing))
        tell({"Written answers still to be read": unread, "Handed in, and not graded": not_graded})
        if rest:
            console.print("Not released, as the exchange does not know them. Send their pages:")
        for student, folder in rest.items():
            where = folder.relative_to(course.root)
            console.print(Text(f" {names.get(student, student)}  {where}"), soft_wrap=True)
