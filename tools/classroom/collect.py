"""Take in a zip of submissions: ``python -m tools.classroom.collect TOPIC FILE``.

FILE is what Moodle's or Canvas's *download all submissions* gives, as it came or unpacked, or holds
a folder for each student's id. Zips inside of it are looked into. Nothing is entered of a file that
cannot be read whole, and whoever is not on the class list is named with the nearest names.

Neither platform's zip tells when something came. Moodle's grading worksheet does (``--sheet``), and
its numbers tell who is who; its times are in the time zone of this machine. A STUDENT is an id, a
number or a name; several pairs are divided by commas.
"""

import json
import re
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rich.table import Table
from rich.text import Text

from gradebox import moments
from tools.classroom import layouts, students
from tools.classroom.backend import Backend, MissingEntry
from tools.classroom.students import Person, class_members, described, find, match
from tools.fingerprints import files, write_if_changed
from tools.layout import HERE, RECORD, Course
from tools.terminal import ToolError, argument, command, console, tell

MOODLE = re.compile(
    r"(?P<name>.*)_(?P<number>\d+)_assign(submission|feedback)_(?P<kind>[a-z]+)(_(?P<file>.*))?"
)
"""The name of a student's folder, or the beginning of a file's, in a zip of Moodle's."""
CANVAS = re.compile(
    r"(?P<prefix>(?P<name>.+?)_((?P<late>LATE)_)?(?P<number>\d+|(?<=anon_|LATE_)[^\W_]+)_"
    r"((?P<attachment>\d+)_|(?=text\.|link\.)))(?P<file>.+)"
)
"""The name of a file in a zip of Canvas's; *anon* and no number where it grades anonymously."""
WANTED = re.compile(r"(?P<stem>.+?)(-\d+|\s*\(\d+\)|_\d+)?\.(ipynb|json)([-_. (].*)?(?<!\.zip)")
"""How files are named whose content is of interest.

Browsers, editors and platforms add a number to a name that is there already, or a suffix.
"""
MAX_FILE = 100 * 2**20  # bytes of a file
MAX_TOTAL = 2 * 2**30  # bytes of all files together, however small the zip is
MAX_DEPTH = 4  # of zips in zips
UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError)
"""What goes wrong with a zip that is damaged, locked, or none."""
TIME = "timestamp.txt"
KINDS = ("new", "replaced", "time now known", "as before", "later work kept")
"""What may become of a submission."""


class File(NamedTuple):
    """What was handed in: what goes before the name of a reply, and Canvas's growing number."""

    content: bytes
    prefix: str
    attachment: int


@dataclass
class Parcel:
    """What one sender handed in: files by their names in the zip, and whether it is called late."""

    platform: str  # "Moodle", "Canvas", or nothing for a folder that bears an id
    files: dict[str, File] = field(default_factory=dict)
    late: bool = False


ANONYMOUS = "anon"  # what Canvas calls everybody where it grades anonymously
HIDDEN = "Canvas hides the names: switch anonymous grading off there, and get the zip again"
UNMATCHED, REFUSED, SEVERAL = "nobody on the class list", "not entered", "several files"


class Intake(NamedTuple):
    """What became of a zip.

    ``ready`` are the files to enter by student and name, ``hand_ins`` what else is known of them.
    ``notes`` say why: of senders who are nobody on the class list, of students of whom nothing can
    be entered, and which of several files of a student was taken.
    """

    ready: dict[str, dict[str, bytes]]
    hand_ins: dict[str, dict[str, Any]]
    notes: dict[str, dict[str, str]]


# --- what is in a zip


def contents(source: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a zip or a folder, and of the zips inside, with their names.

    A zip inside that cannot be read is a file like others: it costs one student and not the class.
    """
    source = source.expanduser()  # of ZIP=~/all.zip, zsh leaves the tilde as it is
    if not source.exists():
        raise ToolError(f"there is no file {source}", "give the zip that the platform made")
    left = MAX_TOTAL

    def unpacked(archive: Path | BytesIO, before: str, depth: int) -> Iterator[tuple[str, bytes]]:
        with zipfile.ZipFile(archive) as opened:
            for entry in opened.infolist():
                name = before + entry.filename.replace("\\", "/")
                if entry.file_size > MAX_FILE:
                    yield f"{name} (more than {MAX_FILE >> 20} MB)", b""
                elif not entry.is_dir():
                    yield from looked_into(name, opened.read(entry), depth)

    def looked_into(name: str, content: bytes, depth: int) -> list[tuple[str, bytes]]:
        nonlocal left
        left -= len(content)
        if left < 0:
            raise ToolError(f"{name}: all unpacks to more than {MAX_TOTAL >> 30} GB", "split it")
        if name.lower().endswith(".zip") and depth < MAX_DEPTH:
            with suppress(*UNREADABLE):
                return list(unpacked(BytesIO(content), f"{name}/", depth + 1))
        is_wanted = WANTED.fullmatch(_bare(name))
        name += " (empty)" if is_wanted and not content else ""
        return [(name, content if is_wanted else b"")]

    try:
        in_folder = (
            file
            for path in files(source)
            for file in looked_into(path.relative_to(source).as_posix(), path.read_bytes(), 1)
        )
        for name, content in in_folder if source.is_dir() else unpacked(source, "", 0):
            if not any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(name).parts):
                yield name, content
    except UNREADABLE as error:
        problem = f"{source} cannot be read as a zip: {error}; nothing was entered"
        raise ToolError(problem, "download it again") from None


def sort(source: Path, members: Mapping[str, Person]) -> tuple[dict[Person, Parcel], list[str]]:
    """Return who handed in what, and the files that name no sender.

    A sender has an id, or else the name and the number in the zip: Moodle's of the participant, or
    Canvas's of the user.
    """
    parcels, unclear = dict[Person, Parcel](), []
    for name, content in contents(source):
        parts = PurePosixPath(name).parts
        senders = (_sender(part, part is parts[-1], members) for part in parts)
        if not (recognized := next(filter(None, senders), None)):
            unclear.append(name)
            continue
        sender, platform, fields = recognized
        parcel = parcels.setdefault(sender, Parcel(platform))
        parcel.late |= bool(fields.get("late"))
        if fields.get("kind", "file") == "file":  # and not what else Moodle has
            attachment = int(fields.get("attachment") or 0)
            parcel.files[name] = File(content, fields.get("prefix") or "", attachment)
    return parcels, unclear


def _sender(
    part: str, is_file: bool, members: Mapping[str, Person]
) -> tuple[Person, str, dict[str, str]] | None:
    """Return who sent a file by which platform, told from a part of its name, and what it says."""
    packed = part[:-4].rpartition("-")[0] if part.endswith(".zip") else ""  # by make submit
    if who := [who for who in members if who.casefold() in (part.casefold(), packed.casefold())]:
        return Person(who[0]), "", {}
    is_file |= part.lower().endswith(".zip")
    for platform, pattern in ({"Moodle": MOODLE} | ({"Canvas": CANVAS} if is_file else {})).items():
        if match := pattern.fullmatch(part):
            fields = match.groupdict()
            prefix = f"{match['name']}_{match['number']}_assignsubmission_file_"
            person = Person(last_name=match["name"], number=match["number"])
            return person, platform, {"prefix": prefix} | fields  # Canvas's own
    return None


def _bare(path: str) -> str:
    """Return a file's name without what platforms put before it, in small letters."""
    name = PurePosixPath(path).name
    match = CANVAS.fullmatch(name) or MOODLE.fullmatch(name)
    return ((match["file"] if match else "") or name).casefold()


# --- who a sender is


def read_worksheet(file: Path) -> tuple[dict[str, Person], dict[str, datetime]]:
    """Return by number who the participants of Moodle's worksheet are, and when each handed in."""
    layout = layouts.read(file)
    if layout.platform != "Moodle":
        problem = "is no grading worksheet: its first column holds no numbers of participants"
        remedy = "get it in Moodle's assignment: Submissions, Download grading worksheet"
        raise ToolError(f"{file} {problem}", remedy)
    people, times, changed = {}, {}, layout.submitted
    for _, cells, _ in layout.rows:
        number = layouts.PARTICIPANT.sub(r"\2", cells[0])
        people[number] = layout.person(cells)
        if changed and (moment := layouts.moment(cells[changed])):
            times[number] = moment
    return people, times


def pairs(texts: Iterable[str]) -> dict[str, str]:
    """Return what ``A=1, B=2`` says; a comma within a name divides nothing."""
    given: dict[str, str] = {}
    for text in texts:
        if not re.fullmatch(r"[^=]+=[^=,;]+([,;][^=]+=[^=,;]+)*[,;]?\s*", text):
            raise ToolError(f"{text!r} is no pair", "write NAME=STUDENT, or several: A=1, B=2")
        found = re.findall(r"([^=]+)=([^=,;]+)(?:[,;]|$)", text)
        given |= {name.strip(): value.strip() for name, value in found}
    return given


# --- which file is which


def choose(course: Course, topic: str, parcel: Parcel) -> tuple[dict[str, str], str]:
    """Return which file of the assignment is which of a parcel, and what there is to say of it.

    A notebook is told by its cells, whatever it is called; one that breaks off, by its name. Where
    it cannot be told there is no file, and the reason.
    """
    of_cells = {
        name: _cells(course.source(topic, name).read_bytes()) for name in course.notebooks(topic)
    }
    releases = [course.released(topic, name) for name in of_cells]
    blank = [_cells(release.read_bytes()) for release in releases if release.exists()]
    by_name = {name: f"{name}.ipynb" for name in of_cells} | {Path(RECORD).stem: RECORD}
    known = {name for cells in of_cells.values() for name in cells}
    candidates, unknown = defaultdict[str, list[str]](list), []
    for path, (content, *_) in parcel.files.items():
        wanted, cells = WANTED.fullmatch(_bare(path)), _cells(content, known)
        best = max(of_cells, key=lambda name: len(cells.keys() & of_cells[name]))
        if cells.keys() & of_cells[best]:
            candidates[by_name[best]].append(path)
        elif wanted and content and not cells and wanted["stem"] in by_name:
            candidates[by_name[wanted["stem"]]].append(path)
        elif content and not cells and ".ipynb" in _bare(path):
            unknown.append(PurePosixPath(path).name)
    if not candidates.keys() - {RECORD}:
        listed = ", ".join(PurePosixPath(path).name for path in parcel.files)
        return {}, f"no notebook of {topic} among: {listed}" if listed else "handed in no file"
    chosen: dict[str, str] = {}
    notes = [f"{name} has no cells of {topic} and is left" for name in unknown]
    for file, paths in candidates.items():
        latest = max(parcel.files[path].attachment for path in paths)
        last = [path for path in paths if parcel.files[path].attachment == latest]
        chosen[file], content = last[0], parcel.files[last[0]].content
        left = [path for path in paths if parcel.files[path].content != content]
        # a blank notebook that comes last may be a mistake
        if {*last} & {*left} or (left and _cells(content) in blank):
            return {}, f"several files are {file}, keep one of: {', '.join(paths)}"
        if left:
            notes.append(f"{last[0]} came last and is taken, not {', '.join(left)}")
    return chosen, "; ".join(notes)


def _cells(content: bytes, known: Collection[str] = ()) -> dict[str, str]:
    """Return the cells of a notebook by nbgrader's names; none, if it cannot be read.

    Where a program has dropped the names, the ids of cells remain, which are the same.
    """
    try:
        cells = [(cell, "".join(cell["source"])) for cell in json.loads(content)["cells"]]
        named = {
            cell["metadata"]["nbgrader"]["grade_id"]: source
            for cell, source in cells
            if "nbgrader" in cell["metadata"]
        }
        return named or {cell["id"]: source for cell, source in cells if cell.get("id") in known}
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}


# --- into the folder of submissions


def take(
    course: Course, topic: str, source: Path, worksheet: Path | None, who: Mapping[str, str]
) -> Intake:
    """Read a zip or a folder, and say what of it is whose; nothing is written.

    What the teacher says in ``who`` of a name or a number comes first, then the number that
    Moodle's worksheet has, which also has the times.
    """
    members = class_members(course)
    if not members:
        raise ToolError("there is no class list yet", "enter it: make class LIST=class.csv")
    for text in who.values():
        find(text, members)
    people, times = read_worksheet(worksheet) if worksheet else ({}, {})
    if people and not who and not any(row.logins or row.name for row in people.values()):
        remedy = "reveal the student identities in Moodle, and get the worksheet again"
        raise ToolError(f"{worksheet} has numbers and no names, for the marking is blind", remedy)
    parcels, nobodys = sort(source, members)
    names, claims = Counter(sender.name for sender in parcels), dict[Person, Person]()
    for sender, parcel in parcels.items():
        keys = [sender.number, str(sender), *([sender.name] if names[sender.name] == 1 else [])]
        row = people.get(sender.number)
        if given := next((who[key] for key in keys if key in who), ""):
            claims[sender] = Person(find(given, members).id)
        elif row and (row.logins or row.name) and not sender.id:
            claims[sender] = row  # for in a team's submission the name is the group's as well
        else:  # Moodle's number is of its own worksheet only
            claims[sender] = replace(sender, number="") if parcel.platform == "Moodle" else sender
    matched, unclear = match(claims, members)
    nobody = {
        str(sender): HIDDEN if sender.name == ANONYMOUS else reason
        for sender, reason in unclear.items()
    }
    nobody |= dict.fromkeys(nobodys, "the name of the file tells no student")
    intake = Intake({}, {}, {UNMATCHED: nobody, REFUSED: {}, SEVERAL: {}})
    for sender, person in matched.items():
        parcel, student = parcels[sender], person.id
        chosen, note = choose(course, topic, parcel)
        if note:
            intake.notes[SEVERAL if chosen else REFUSED][student] = note
        if not chosen:
            continue
        intake.ready[student] = {name: parcel.files[path].content for name, path in chosen.items()}
        prefixes = {Path(name).stem: parcel.files[path].prefix for name, path in chosen.items()}
        known = {"platform": parcel.platform, "names": prefixes, "late": parcel.late}
        last = max(parcel.files[path].attachment for path in chosen.values())
        intake.hand_ins[student] = known | {"attachment": last}
        if moment := times.get(sender.number):
            intake.ready[student][TIME] = moment.strftime("%Y-%m-%d %H:%M:%S UTC\n").encode()
    return intake


def enter(course: Course, topic: str, intake: Intake) -> dict[str, list[str]]:
    """Put submissions where grading looks for them, all or none; return whose is of which kind.

    What lay there is kept in ``build/class/replaced``. Work that came later than what the zip holds
    stays.
    """
    done: dict[str, list[str]] = {kind: [] for kind in KINDS}
    now = datetime.now(UTC).strftime("%Y-%m-%d-%H%M%S-%f")
    place = course.build / "class"
    place.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=place) as scratch, ExitStack() as moved_back:
        with students.changed(course) as state:
            collected = state.collected.setdefault(topic, {})
            for student, work in intake.ready.items():
                kind = _kind(course.submitted / student / topic, work)
                before = collected.get(student, {}).get("attachment", 0)
                # Canvas's numbers grow: the zip is an older one
                if kind == "replaced" and 0 < intake.hand_ins[student]["attachment"] < before:
                    kind = "later work kept"
                done[kind].append(student)
                if kind != "later work kept":
                    collected[student] = intake.hand_ins[student]
                for name, content in work.items() if kind in ("new", "replaced") else ():
                    write_if_changed(Path(scratch, student, name), content)
            # from here on folders are only renamed
            for student in [*done["new"], *done["replaced"]]:
                folder = course.submitted / student / topic
                if folder.exists():
                    _move(folder, place / "replaced" / now / student / topic, moved_back)
                _move(Path(scratch, student), folder, moved_back)
            with Backend(course).gradebook() as book:
                # when earlier work came says nothing of the work that replaced it
                for student in done["replaced"]:
                    if TIME not in intake.ready[student]:
                        with suppress(MissingEntry):
                            book.find_submission(topic, student).timestamp = None
                book.db.commit()
        moved_back.pop_all()
    for student in done["time now known"]:
        write_if_changed(course.submitted / student / topic / TIME, intake.ready[student][TIME])
    return done


def _move(source: Path, target: Path, moved_back: ExitStack) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    source.rename(target)
    moved_back.callback(target.rename, source)


def _kind(folder: Path, contents: Mapping[str, bytes]) -> str:
    """Return which of ``KINDS`` a submission is."""
    if not folder.exists():
        return "new"
    work = {name: content for name, content in contents.items() if name != TIME}
    there = [path for path in folder.iterdir() if path.suffix in (".ipynb", ".json")]
    is_same = {path.name: path.read_bytes() for path in there} == work
    new = contents.get(TIME) and moments.parse(contents[TIME].decode())
    old = moments.read(folder / TIME)
    if new and old and old > new:
        return "as before" if is_same else "later work kept"
    if not is_same:
        return "replaced"
    return "time now known" if new and new != old else "as before"


def show(course: Course, topic: str, intake: Intake, done: Mapping[str, Sequence[str]]) -> None:
    """Print who handed in, who could not be entered, and what is not known."""
    members = class_members(course)
    numbers = ", ".join(f"{len(who)} {kind}" for kind, who in done.items() if who) or "nobody"
    console.print(Text(f"Handed in {topic}: {numbers}."))
    if done["replaced"]:
        console.print("What lay there before is kept in build/class/replaced/.")
        tell("Replaced", described(done["replaced"], members))
    for title, reasons in intake.notes.items():
        table = Table(title, "why", box=None)
        for who, why in reasons.items():
            table.add_row(Text(str(members.get(who, who))), Text(why))
        if reasons:
            console.print(table)
    if intake.notes[UNMATCHED]:
        console.print(
            "Not entered. Correct the name in the class list, or say who it is, by name or number: "
            'WHO="NAME=STUDENT, 501=STUDENT". Moodle\'s worksheet tells it, too: SHEET=FILE.',
            soft_wrap=True,
        )
    times = {who: course.submitted / who / topic / TIME for who in intake.ready}
    unknown = {who for who, file in times.items() if not moments.read(file)}
    late = {who for who in unknown if intake.hand_ins[who]["late"]}
    absent = {*members} - {*course.submitters(topic), *intake.notes[REFUSED]}
    tell("Late, as the platform says", described(late, members))
    tell("Time unknown", described(unknown - late, members))
    tell("No work from", described(absent, members))


@command(
    argument("topic", nargs="?", metavar="TOPIC", help="the assignment"),
    argument("file", nargs="?", metavar="FILE", help="the zip, or a folder"),
    argument("--sheet", metavar="CSV", help="Moodle's grading worksheet, for the times"),
    argument("--who", action="append", metavar="NAME=STUDENT", help="who an unknown sender is"),
)
def main(topic: str, file: str, sheet: str, who: list[str], course: Course = HERE) -> int:
    """Take in a zip."""
    if not topic or not file:
        remedy = "make collect A=erm ZIP=submissions.zip"
        raise ToolError("which assignment, and which zip?", remedy)
    [topic] = course.choose([topic])
    intake = take(course, topic, Path(file), Path(sheet) if sheet else None, pairs(who or ()))
    show(course, topic, intake, enter(course, topic, intake))
    return 1 if (intake.notes[UNMATCHED] or intake.notes[REFUSED]) and not intake.ready else 0
