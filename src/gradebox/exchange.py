"""Extend nbgrader's exchange: hand in what was saved last, release feedback to all who can get it.

A course releases notebooks into a folder, and a student works on copies of them in another. Some
edit the released file itself. Nothing is lost: whatever differs from every release is somebody's
work. It is copied to the place of work; where that is edited too, the file that was saved last
stands there, and the other is kept beside.

nbgrader hands a page out under a name that it makes from a secret, which JupyterLab submits beside
the work. Work that came as a folder has none, and nbgrader stops at the first such student. In
``nbgrader_config.py`` this takes its place::

    c.ExchangeFactory.release_feedback = "gradebox.ReleaseFeedback"

"""

from __future__ import annotations

import glob
import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from nbgrader.exchange.default import ExchangeReleaseFeedback
from nbgrader.exchange.default.submit import ExchangeSubmit
from traitlets import List, Unicode

from gradebox.files import atomic_write, write

MANIFEST = ".released.json"
"""In the folder of releases: the checksums of each of its files, of every release so far."""
GATHERED = ".gathered.json"
"""In the place of work: the checksums of what was gathered from elsewhere."""
EARLIER_COPIES = "kept"
"""In the place of work: files that were saved earlier than those that took their place."""
LEFT_ALONE = {"__pycache__", ".ipynb_checkpoints", "feedback"}


@dataclass(frozen=True)
class Gathered:
    """A file that a student edited elsewhere.

    Parameters
    ----------
    source : Path
        Where it was edited.
    target : Path
        Its name in the place of work.
    is_newer : bool
        Whether it stands there now. If not, the file there was saved later, and stays.
    earlier_copy : Path, optional
        Where a copy of the file lies that was saved earlier, if both were edited.
    """

    source: Path
    target: Path
    is_newer: bool
    earlier_copy: Path | None = None


class Releases:
    """The checksums of all files that a course ever released.

    Parameters
    ----------
    folder : Path
        The folder of releases.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._file = folder, folder / MANIFEST
        manifest = _read(self._file, {})
        self._checksums: dict[str, list[str]] = {
            name: sums for name, sums in manifest.items() if isinstance(sums, list)
        }

    def remember(self, files: Iterable[Path]) -> None:
        """Add the files, as they are, to what was released."""
        checksums = json.loads(json.dumps(self._checksums))
        for file in files:
            sums = checksums.setdefault(file.relative_to(self.folder).as_posix(), [])
            if (checksum := digest(file)) not in sums:
                sums.append(checksum)
        if checksums != self._checksums:
            self._checksums = checksums
            write(self._file, json.dumps(checksums, indent=1, sort_keys=True) + "\n")

    def knows(self, topic: str, name: str, file: Path) -> bool:
        """Tell whether a file is just what was released under this name at some time."""
        return digest(file) in self._checksums.get(f"{topic}/{name}", ())


def digest(file: Path) -> str:
    """Return the checksum of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def gather(work: Path, topic: str, places: Sequence[Path], releases: Releases) -> list[Gathered]:
    """Copy what a student edited elsewhere to the place of work; return what was copied.

    Parameters
    ----------
    work : Path
        The place of work: a folder with a folder for each assignment.
    topic : str
        The assignment.
    places : sequence of Path
        Where else its folder may lie, and may have been edited.
    releases : Releases
        What is nobody's work.
    """
    log = work / GATHERED
    checksums: list[str] = _read(log, [])
    gathered: list[Gathered] = []
    for folder in places:
        for name, source in _files(folder / topic):
            checksum = digest(source)
            if checksum in checksums or releases.knows(topic, name, source):
                continue
            gathered += _take(source, work, topic, name, releases)
            checksums.append(checksum)
    if gathered:
        write(log, json.dumps(checksums, indent=1) + "\n")
    return gathered


def _take(source: Path, work: Path, topic: str, name: str, releases: Releases) -> list[Gathered]:
    target = work / topic / name
    if target.exists() and digest(target) == digest(source):
        return []
    is_edited = target.exists() and not releases.knows(topic, name, target)
    if is_edited and target.stat().st_mtime >= source.stat().st_mtime:
        return [Gathered(source, target, False, keep(source, work, topic, name))]
    earlier_copy = keep(target, work, topic, name) if is_edited else None
    copy(source, target)
    return [Gathered(source, target, True, earlier_copy)]


def keep(file: Path, work: Path, topic: str, name: str) -> Path:
    """Copy a file aside, with the moment of its last change in the name; return where it lies."""
    moment = datetime.fromtimestamp(file.stat().st_mtime)
    path = Path(name)
    stem = f"{path.stem} of {moment:%Y-%m-%d %H.%M.%S}"
    aside = work / EARLIER_COPIES / topic / path.parent / f"{stem}{path.suffix}"
    number = 1
    while aside.exists() and digest(aside) != digest(file):
        number += 1
        aside = aside.with_name(f"{stem} ({number}){path.suffix}")
    copy(file, aside)
    return aside


def copy(source: Path, target: Path) -> None:
    """Copy a file whole or not at all, with the time of its last change."""
    with atomic_write(target) as scratch:
        scratch.write_bytes(source.read_bytes())
        shutil.copystat(source, scratch)
        scratch.chmod(0o644)


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Give the files of an assignment's folder with their names in it."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        hidden = name.name.startswith(".") or LEFT_ALONE & set(name.parts)
        if path.is_file() and not path.is_symlink() and not hidden:
            yield name.as_posix(), path


def _read(file: Path, empty: Any) -> Any:
    """Return what a JSON file holds; what is empty where there is none, or a damaged one."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return empty
    return content if isinstance(content, type(empty)) else empty


class Submit(ExchangeSubmit):  # type: ignore[misc]
    """nbgrader's submission through the exchange, from one place of work.

    A student may have edited the released notebook itself, not the copy of it in
    ``Exchange.assignment_dir``. It is gathered there first; see
    :mod:`gradebox.exchange`.
    """

    places = List(
        Unicode(),
        help="Folders, beside assignment_dir, in which a student may have edited an assignment.",
    ).tag(config=True)

    def init_src(self) -> None:
        """Gather what was edited elsewhere, then find the assignment."""
        super_init: Any = super().init_src
        root = Path(self.coursedir.root)
        releases = Releases(root / self.coursedir.release_directory)
        work, places = Path(self.assignment_dir), [root / folder for folder in self.places]
        for gathered in gather(work, self.coursedir.assignment_id, places, releases):
            self.log.warning(describe(gathered, root))
        super_init()


def describe(file: Gathered, root: Path) -> str:
    """Return in words what became of a file that was edited elsewhere."""

    def name(path: Path) -> str:
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)

    if file.is_newer:
        text = f"{name(file.source)} was edited; it is {name(file.target)} now: go on there"
        return (
            f"{text}. The file that was there is kept as {name(file.earlier_copy)}"
            if file.earlier_copy
            else text
        )
    return (
        f"{name(file.source)} was edited, but {name(file.target)} was saved later and counts; "
        f"the other is kept as {name(file.earlier_copy or file.source)}"
    )


NEEDED = ("submission_secret.txt", "timestamp.txt")
"""The files beside a page without which it cannot be handed out."""


class ReleaseFeedback(ExchangeReleaseFeedback):  # type: ignore[misc]
    """nbgrader's step that releases pages, for those that can be released."""

    def copy_files(self) -> None:
        """Release what can be; warn of the rest, with the place of each page."""
        excluded = self.coursedir.student_id_exclude
        without_secret = left_out(self.coursedir)
        names = [*filter(None, excluded.split(",")), *without_secret]
        self.coursedir.student_id_exclude = ",".join(names)
        try:
            super().copy_files()
        finally:
            self.coursedir.student_id_exclude = excluded
        for student, folder in without_secret.items():
            self.log.warning(
                "Not released to '%s', who did not submit in JupyterLab: send the pages in %s",
                student,
                folder,
            )


def left_out(coursedir: Any) -> dict[str, Path]:
    """Return the folders of pages that cannot be released, by student.

    Parameters
    ----------
    coursedir : CourseDirectory
        nbgrader's, for an assignment, and for a student or all.
    """
    step, assignment = coursedir.feedback_directory, coursedir.assignment_id
    pattern = coursedir.format_path(step, "(?P<student>.*)", re.escape(assignment), escape=True)
    folders = coursedir.format_path(step, coursedir.student_id or "*", glob.escape(assignment))
    missing = {}
    # not Path.glob: the structure may be absolute
    for folder in map(Path, sorted(glob.glob(folders))):  # noqa: PTH207
        match = re.fullmatch(pattern, str(folder))
        complete = all((folder / file).is_file() for file in NEEDED)
        if match and not complete and any(folder.glob("*.html")):
            missing[match["student"]] = folder
    return missing
