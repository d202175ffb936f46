"""Take in a zip of submissions: ``python -m tools.collect TOPIC FILE``.

FILE is what Moodle's or Canvas's *download all submissions* gives, as it came or unpacked, or holds
a folder for each student's id. Zips inside of it are looked into. Nothing is entered of a file that
cannot be read whole, and whoever is not on the class list is named with the nearest names.

Neither platform's zip tells when something came. Moodle's grading worksheet does (``--sheet``).
Times are in UTC, except those of a worksheet, which are in the time zone of this machine.
"""

import argparse
import contextlib
import json
import re
import shutil
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any

from rich.table import Table
from rich.text import Text

from tools import class_state, roster, tables
from tools.backend import Backend, MissingEntry
from tools.class_state import HandIn
from tools.fingerprints import files, write_if_changed
from tools.layout import RECORD, ROOT, Course
from tools.student_matching import Member, class_members, find_members, name_keys, nearest
from tools.tables import plain
from tools.terminal import ToolError, console, need_disk, run

MOODLE = re.compile(
    r"(?P<name>.+)_(?P<number>\d+)_assign(submission|feedback)_(?P<kind>[a-z]+)(_.*)?"
)
"""The name of a student's folder, or the beginning of a file's, in a zip of Moodle's."""
CANVAS = re.compile(
    r"(?P<prefix>(?P<name>.+?)_((?P<late>LATE)_)?(?P<number>\d+)_(\d+_|(?=text\.|link\.)))(?P<file>.+)"
)
"""The name of a file in a zip of Canvas's."""
LARGEST = 100 * 2**20
"""So many bytes a file may have."""
MOST_BYTES = 2 * 2**30
"""So many bytes all files may have together, however small the zip is."""
DEEPEST = 4
"""So deep may zips lie in zips."""
UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError)
"""What goes wrong with a zip that is damaged, locked, or none."""
WANTED = (".ipynb", ".json")
"""How the names of files end whose content is of interest."""
TIME = "timestamp.txt"


@dataclass(frozen=True)
class Sender:
    """Who handed in, as the names in a zip tell it.

    Parameters
    ----------
    platform : str
        "Moodle", "Canvas", or an empty string for a folder that bears an id.
    name : str
        The name; Canvas runs last and first name together.
    number : str
        Moodle's number of the participant, or Canvas's of the user.
    prefix : str
        What Moodle wants before the names of files that go back.
    """

    platform: str
    name: str
    number: str = ""
    prefix: str = ""


@dataclass
class Parcel:
    """What one sender handed in.

    Parameters
    ----------
    late : bool
        Whether the platform calls it late.
    contents : dict
        The files, by their names in the zip.
    prefixes : dict
        What Canvas wants before the name of a file that goes back, by the file's name in the zip.
    """

    late: bool = False
    contents: dict[str, bytes] = field(default_factory=dict)
    prefixes: dict[str, str] = field(default_factory=dict)


@dataclass
class Intake:
    """What became of a zip.

    Parameters
    ----------
    ready : dict
        The files to enter, by student and name.
    hand_ins : dict
        What else is known of them.
    unmatched : dict
        Senders who are nobody on the class list, with the nearest students.
    refused : dict
        Students of whom nothing can be entered, with the reason.
    """

    ready: dict[str, dict[str, bytes]] = field(default_factory=dict)
    hand_ins: dict[str, HandIn] = field(default_factory=dict)
    unmatched: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def contents(source: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a zip or a folder, and of the zips inside, with their names.

    A zip inside that cannot be read is a file like others: it costs one student and not the class.

    Raises
    ------
    ToolError
        When the whole cannot be read, or is too much.
    """
    if not source.exists():
        raise ToolError(f"there is no file {source}", "give the zip that the platform made")
    bytes_left = [MOST_BYTES]
    for name, content in (_in_folder if source.is_dir() else _whole_zip)(source, bytes_left):
        if not any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(name).parts):
            yield name, content


def _whole_zip(source: Path, bytes_left: list[int]) -> Iterator[tuple[str, bytes]]:
    try:
        yield from _in_zip(source, "", bytes_left)
    except UNREADABLE as error:
        raise ToolError(
            f"{source} cannot be read as a zip: {error}; nothing was entered", "download it again"
        ) from None


def _in_folder(source: Path, bytes_left: list[int]) -> Iterator[tuple[str, bytes]]:
    for path in files(source):
        yield from _opened(path.relative_to(source).as_posix(), path.read_bytes(), bytes_left, 1)


def _in_zip(
    source: Path | BytesIO, before: str, bytes_left: list[int], depth: int = 0
) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(source) as archive:
        for entry in archive.infolist():
            name = before + entry.filename.replace("\\", "/")
            if entry.is_dir():
                continue
            if entry.file_size > LARGEST:
                yield f"{name} (more than {LARGEST >> 20} MB)", b""
                continue
            with archive.open(entry) as stream:
                content = stream.read()
            yield from _opened(name, content, bytes_left, depth)


def _opened(
    name: str, content: bytes, bytes_left: list[int], depth: int
) -> list[tuple[str, bytes]]:
    """Return a file, or what a zip holds."""
    bytes_left[0] -= len(content)
    if bytes_left[0] < 0:
        raise ToolError(f"{name}: all unpacks to more than {MOST_BYTES >> 30} GB", "split the zip")
    if name.lower().endswith(".zip") and depth < DEEPEST:
        with contextlib.suppress(*UNREADABLE):
            return list(_in_zip(BytesIO(content), f"{name}/", bytes_left, depth + 1))
    return [(name, content if name.lower().endswith(WANTED) else b"")]


def sort(source: Path, members: Mapping[str, Member]) -> tuple[dict[Sender, Parcel], list[str]]:
    """Return who handed in what, and the files that name no sender.

    Parameters
    ----------
    source : Path
        The zip, or a folder with what was in it.
    members : mapping
        The class, by id.

    Returns
    -------
    parcels : dict
        Senders to what they handed in.
    unclear : list of str
        Names of files in the zip.

    Raises
    ------
    ToolError
        If there is no such file, it is no zip, or it holds too much.
    """
    parcels: dict[Sender, Parcel] = {}
    unclear = []
    for name, content in contents(source):
        parts = PurePosixPath(name).parts
        senders = (_sender(part, part is parts[-1], members) for part in parts)
        recognized = next(filter(None, senders), None)
        if recognized is None:
            unclear.append(name)
            continue
        sender, fields = recognized
        parcel = parcels.setdefault(sender, Parcel())
        if sender.platform == "Moodle" and fields["kind"] != "file":
            continue
        if sender.platform == "Canvas":
            parcel.late |= bool(fields["late"])
            parcel.prefixes[name] = fields["prefix"]
        parcel.contents[name] = content
    return parcels, unclear


def _sender(part: str, is_file: bool, members: Mapping[str, Member]) -> tuple[Sender, Any] | None:
    """Return who sent a file, told from a part of its name, and what was found in it."""
    packed = part[:-4].rpartition("-")[0] if part.endswith(".zip") else ""  # by make submit
    if who := next((name for name in (part, packed) if name in members), None):
        return Sender("", who), {}
    if fields := MOODLE.fullmatch(part):
        prefix = f"{fields['name']}_{fields['number']}_assignsubmission_file_"
        return Sender("Moodle", fields["name"], fields["number"], prefix), fields
    if (fields := CANVAS.fullmatch(part)) and (is_file or part.lower().endswith(".zip")):
        return Sender("Canvas", fields["name"], fields["number"]), fields
    return None


def match(
    sender: Sender,
    members: Mapping[str, Member],
    worksheet: Mapping[str, Member],
    who: Mapping[str, str],
) -> list[Member]:
    """Return who a sender may be: by what the teacher says, by number, then by name.

    Parameters
    ----------
    sender : Sender
        As the names in the zip tell it.
    members : mapping
        The class, by id.
    worksheet : mapping
        The participants of Moodle's grading worksheet, by number; may be empty.
    who : mapping
        Names or numbers of senders to ids, as the teacher gave them.

    Returns
    -------
    list of Member
        One student where it is clear; none, or several, where it is not.
    """
    for key in (sender.name, sender.number):
        if key in who:
            return [members[who[key]]]
    if not sender.platform:
        return [members[sender.name]]
    row, keys = worksheet.get(sender.number), name_keys(sender.name)
    if row and row.keys & keys:
        return find_members([row.id, row.email], "", keys, members)
    number = sender.number if sender.platform == "Canvas" else ""
    return find_members([], number, keys, members)


# --- which file is which


def choose(course: Course, topic: str, parcel: Parcel) -> tuple[dict[str, str], str]:
    """Return which file of a parcel is which of the assignment, or why that cannot be told.

    A notebook is told by its cells, whatever it is called; one that breaks off, by its name.

    Returns
    -------
    chosen : dict
        Names of the assignment's files to names in the zip; empty where it cannot be told.
    reason : str
        Empty where it can.
    """
    names = course.notebooks(topic)
    of_cells = {name: _cells(course.source(topic, name).read_bytes()) for name in names}
    candidates: dict[str, list[str]] = {}
    for path, content in parcel.contents.items():
        file = _usual(_bare(path))
        if file == RECORD:
            candidates.setdefault(RECORD, []).append(path)
        if not file.endswith(".ipynb"):
            continue
        cells = _cells(content)
        shared = {name: len(cells & of_cells[name]) for name in names}
        best = max(names, key=lambda name: shared[name])
        if not shared[best]:
            best = file.removesuffix(".ipynb")
        if best in names:
            candidates.setdefault(f"{best}.ipynb", []).append(path)
    if not candidates.keys() - {RECORD}:
        listed = ", ".join(PurePosixPath(path).name for path in parcel.contents) or "no file"
        return {}, f"no notebook of {topic} among: {listed}"
    chosen = {}
    for file, paths in candidates.items():
        exact = [path for path in paths if _bare(path) == file]
        matching = exact if len(exact) == 1 else paths
        if len({parcel.contents[path] for path in matching}) > 1:
            return {}, f"several files are {file}: {', '.join(matching)}"
        chosen[file] = matching[0]
    return chosen, ""


def _bare(path: str) -> str:
    """Return a file's name without what platforms put before it."""
    name = PurePosixPath(path).name
    if fields := CANVAS.fullmatch(name):
        return fields["file"]
    return re.sub(r".*?_\d+_assignsubmission_file_", "", name)


def _usual(name: str) -> str:
    """Return a file's name without what browsers and platforms add to one that is there already."""
    stem, dot, suffix = name.casefold().rpartition(".")
    return re.sub(r"(-\d+|\s*\(\d+\)|_\d+)$", "", stem) + dot + suffix


def _cells(content: bytes) -> set[str]:
    """Return nbgrader's names of the cells of a notebook; none, if it cannot be read."""
    try:
        cells = json.loads(content)["cells"]
        return {
            cell["metadata"]["nbgrader"]["grade_id"]
            for cell in cells
            if "nbgrader" in cell["metadata"]
        }
    except (ValueError, KeyError, TypeError, RecursionError):
        return set()


# --- a worksheet of Moodle's


MONTHS = (
    *("jan jän ene gen", "feb fév fev", "mar mär mrt", "apr avr abr", "mai may maj mag mei"),
    *("jun juin giu", "jul juil lug", "aug aoû ago", "sep set", "oct okt ott out", "nov"),
    "dec dez déc dic",
)
"""How the names of months begin in some languages."""
MOMENTS = (
    r"(?P<day>\d{1,2})\.? (de )?(?P<month>[^\W\d_]+)\.? (de )?(?P<year>\d{4})",
    r"(?P<month>[^\W\d_]+)\.? (?P<day>\d{1,2}), (?P<year>\d{4})",
    r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)",
)


def parse_time(text: str) -> datetime | None:
    """Return the moment in UTC that Moodle writes in words, or None where it is not understood."""
    for pattern in MOMENTS:
        fields = re.search(
            pattern + r"\D+?(?P<hour>\d{1,2})[:.](?P<minute>\d\d)\s*(?P<half>[ap]m)?", text, re.I
        )
        if not fields:
            continue
        name = fields["month"].lower()
        months = [
            number
            for number, starts in enumerate(MONTHS, 1)
            if name.startswith(tuple(starts.split())) or name == f"{number:02}"
        ]
        hour = int(fields["hour"])
        if fields["half"]:
            hour = hour % 12 + 12 * (fields["half"].lower() == "pm")
        try:
            local = datetime(
                int(fields["year"]), months[-1], int(fields["day"]), hour, int(fields["minute"])
            )
        except (ValueError, IndexError):
            return None
        return local.astimezone(UTC).replace(tzinfo=None)
    return None


def read_worksheet(file: Path) -> tuple[dict[str, Member], dict[str, datetime]]:
    """Return who the participants of a worksheet of Moodle's are, and when each handed in.

    Both are by the participant's number.
    """
    sheet = tables.read(file)
    number = re.compile(r"\D*(\d+)")
    if not sheet.rows or not all(number.fullmatch(cells[0]) for _, cells in sheet.rows):
        raise ToolError(
            f"{file} is no grading worksheet: its first column holds no numbers of participants",
            "get it in Moodle's assignment: Submissions, Download grading worksheet",
        )
    names = [plain(header) for header in sheet.header]
    changed = _first_of_a_pair(sheet.header)

    def cell(cells: Sequence[str], headers: Iterable[str]) -> str:
        return next((cells[index] for index, name in enumerate(names) if name in headers), "")

    people, times = {}, {}
    for _, cells in sheet.rows:
        participant = number.sub(r"\1", cells[0])
        name = roster.names_of(cell(cells, roster.COLUMNS["name"]))
        email, ids = cell(cells, roster.COLUMNS["email"]), [cell(cells, of) for of in roster.IDS]
        institution = next(filter(None, ids), "")
        people[participant] = Member(institution, **name, email=email)
        moment = parse_time(cells[changed]) if changed is not None else None
        if moment:
            times[participant] = moment
    return people, times


def _first_of_a_pair(header: Sequence[str]) -> int | None:
    """Return the column of the submission's time: the grade's has the same name up to a bracket.

    So it is in every language: Last modified (submission), Last modified (grade).
    """
    begins = [name.partition("(")[0] if "(" in name else "" for name in header]
    return next(
        (index for index, name in enumerate(begins) if name and begins.count(name) > 1), None
    )


# --- into the folder of submissions


def take(
    course: Course, topic: str, source: Path, worksheet: Path | None, who: Mapping[str, str]
) -> Intake:
    """Read a zip, and say what of it is whose; nothing is written.

    Parameters
    ----------
    source : Path
        The zip, or a folder.
    worksheet : Path or None
        Moodle's grading worksheet, which has the times.
    who : mapping
        Names or numbers of senders to ids.

    Raises
    ------
    ToolError
        If there is no class list, an id is unknown, or a file cannot be read.
    """
    members = class_members(course)
    if not members:
        raise ToolError("there is no class list yet", "enter it: make class LIST=class.csv")
    if unknown := sorted({*who.values()} - {*members}):
        raise ToolError(f"there is no student {unknown[0]!r}", "the id stands after the sign =")
    people, times = read_worksheet(worksheet) if worksheet else ({}, {})
    parcels, unclear = sort(source, members)
    intake = Intake(unmatched=dict.fromkeys(unclear, "the name of the file tells no student"))
    for sender, parcel in parcels.items():
        matches = match(sender, members, people, who)
        if len(matches) != 1:
            several = "several have this name: " + ", ".join(map(str, matches))
            intake.unmatched[sender.name] = several if matches else nearest(sender.name, members)
            continue
        student = matches[0].id
        if student in intake.hand_ins:
            intake.refused[student] = "two senders are this student"
            continue
        chosen, why = choose(course, topic, parcel)
        if why:
            intake.refused[student] = why
            continue
        intake.ready[student] = {name: parcel.contents[path] for name, path in chosen.items()}
        prefixes = {
            name.removesuffix(".ipynb"): sender.prefix or parcel.prefixes.get(path, "")
            for name, path in chosen.items()
        }
        intake.hand_ins[student] = HandIn(sender.platform, prefixes, parcel.late)
        if sender.number in times:
            intake.ready[student][TIME] = _time_file(times[sender.number])
    for student in intake.refused:
        intake.ready.pop(student, None)
    return intake


def _time_file(moment: datetime) -> bytes:
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC\n").encode()


def _time(folder: Path) -> str:
    file = folder / TIME
    return file.read_text(encoding="utf-8").strip() if file.is_file() else ""


def enter(course: Course, topic: str, intake: Intake) -> dict[str, list[str]]:
    """Put submissions where grading looks for them, all or none; return whose are new.

    What lay there is kept in ``build/class/replaced``. Work that came later than what the zip holds
    stays.

    Returns
    -------
    dict
        ``new``, ``replaced``, ``as before`` and ``later work kept`` to lists of ids.
    """
    done: dict[str, list[str]] = {"new": [], "replaced": [], "as before": [], "later work kept": []}
    now = datetime.now(UTC).strftime("%Y-%m-%d-%H%M%S-%f")
    replaced, scratch = (
        course.build / "class" / "replaced" / now,
        course.build / "class" / "arriving",
    )
    shutil.rmtree(scratch, ignore_errors=True)
    moved: list[tuple[Path, Path]] = []
    try:
        with class_state.changed(course) as state:
            for student, contents_ in intake.ready.items():
                folder = course.submitted / student / topic
                kind = _kind(folder, contents_)
                done[kind].append(student)
                if kind != "later work kept":
                    state.collected.setdefault(topic, {})[student] = asdict(
                        intake.hand_ins[student]
                    )
                if kind in ("new", "replaced"):
                    for name, content in contents_.items():
                        write_if_changed(scratch / student / name, content)
            # from here on folders are only renamed
            for student in [*done["new"], *done["replaced"]]:
                folder = course.submitted / student / topic
                if folder.exists():
                    _move(folder, replaced / student / topic, moved)
                _move(scratch / student, folder, moved)
            _forget_times(
                course, topic, [who for who in done["replaced"] if TIME not in intake.ready[who]]
            )
    except BaseException:
        for source, target in reversed(moved):
            target.rename(source)
        raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return done


def _forget_times(course: Course, topic: str, students: Sequence[str]) -> None:
    """Forget when earlier work came: it says nothing of the work that replaced it."""
    with Backend(course).gradebook() as book:
        for student in students:
            with contextlib.suppress(MissingEntry):
                book.find_submission(topic, student).timestamp = None
        book.db.commit()


def _move(source: Path, target: Path, moved: list[tuple[Path, Path]]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    source.rename(target)
    moved.append((source, target))


def _kind(folder: Path, contents: Mapping[str, bytes]) -> str:
    """Return whether a submission is new, replaces another, is the same, or is out of date."""
    if not folder.exists():
        return "new"
    new, old = contents.get(TIME, b"").decode().strip(), _time(folder)
    if new and old > new:
        return "later work kept"
    there = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    if not new:  # the same work with a time is known better
        there.pop(TIME, None)
    return "as before" if there == contents else "replaced"


def set_times(course: Course, topic: str, times: Sequence[str]) -> None:
    """Write when submissions came, as the teacher knows it: ``ada=2027-03-02 08:00``, in UTC.

    Raises
    ------
    ToolError
        If a student has not handed in, or a moment cannot be read; no time is written then.
    """
    contents_ = {}
    for text in times:
        student, _, moment = text.partition("=")
        folder = course.submitted / student / topic
        if not student or not folder.is_dir():
            raise ToolError(
                f"{student!r} has not handed in {topic}", "write it as ada=2027-03-02 08:00"
            )
        contents_[folder / TIME] = _time_file(class_state.parse_moment(moment))
    for path, content in contents_.items():
        write_if_changed(path, content)


def show(course: Course, topic: str, intake: Intake, done: Mapping[str, Sequence[str]]) -> None:
    """Print who handed in, who could not be entered, and what is not known."""
    numbers = ", ".join(f"{len(who)} {kind}" for kind, who in done.items() if who) or "nobody"
    console.print(Text(f"Handed in {topic}: {numbers}."))
    if done["replaced"]:
        console.print("What lay there before is kept in build/class/replaced/.")
    if intake.unmatched:
        table = Table("nobody on the class list", "nearest", box=None)
        for name, near in intake.unmatched.items():
            table.add_row(Text(name), Text(near))
        console.print(table)
        console.print(
            'Not entered. Correct the name in the class list, or say who it is: WHO="NAME=ID".'
        )
    if intake.refused:
        table = Table("not entered", "why", box=None)
        for name, why in intake.refused.items():
            table.add_row(Text(name), Text(why))
        console.print(table)
    students = sorted(intake.ready)
    unknown = [who for who in students if not _time(course.submitted / who / topic)]
    late = [who for who in unknown if intake.hand_ins[who].late]
    for title, who in (
        ("Late, as the platform says, and the time unknown", late),
        ("Time unknown", [student for student in unknown if student not in late]),
        ("Nothing handed in by", sorted({*class_members(course)} - {*course.submitters(topic)})),
    ):
        if who:
            console.print(Text(f"{title}: {', '.join(who)}"))


def command(arguments: argparse.Namespace, course: Course | None = None) -> int:
    """Take in a zip, or set the times of submissions."""
    course = course or Course(ROOT)
    if not arguments.topic or not (arguments.file or arguments.time):
        raise ToolError(
            "which assignment, and which zip?", "make collect A=erm ZIP=submissions.zip"
        )
    [topic] = course.choose([arguments.topic])
    if arguments.time:
        set_times(course, topic, arguments.time)
        console.print(f"Set {len(arguments.time)} times. Grade again: make grade A={topic}")
        return 0
    need_disk(course.root)
    worksheet = Path(arguments.sheet) if arguments.sheet else None
    who = dict(text.rpartition("=")[::2] for text in arguments.who or ())
    intake = take(course, topic, Path(arguments.file), worksheet, who)
    show(course, topic, intake, enter(course, topic, intake))
    return 1 if intake.unmatched or intake.refused else 0


def parser() -> argparse.ArgumentParser:
    """Return the command line of this tool."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.collect",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("topic", nargs="?", metavar="TOPIC", help="the assignment")
    parser.add_argument("file", nargs="?", metavar="FILE", help="the zip, or a folder")
    parser.add_argument("--sheet", metavar="CSV", help="Moodle's grading worksheet, for the times")
    parser.add_argument(
        "--who", action="append", metavar="NAME=ID", help="who a sender is that nobody matches"
    )
    parser.add_argument(
        "--time", action="append", metavar="ID=WHEN", help="when a submission came, in UTC"
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
