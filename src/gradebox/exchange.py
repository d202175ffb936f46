"""Extend nbgrader's exchange: hand in what was saved last, release feedback to all who can get it.

Whatever differs from every release is somebody's work, and is copied to the place of work. Where
that is edited too, the file that was saved last stands there, and the other is kept beside.

nbgrader names a page of feedback by a secret, which JupyterLab submits beside the work. Work that
came as a folder has none, and nbgrader stops at the first such student.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from nbgrader.exchange.default import ExchangeReleaseFeedback
from nbgrader.exchange.default.submit import ExchangeSubmit
from traitlets import List, Unicode

from gradebox.files import atomic_write, folders_in, read_json, write

# in the folder of releases: the checksums of each of its files, of every release so far
MANIFEST = ".released.json"
# in the place of work: the checksums of what was gathered, and files saved earlier than the others
GATHERED, EARLIER_COPIES = ".gathered.json", "kept"
LEFT_ALONE = {"__pycache__", ".ipynb_checkpoints", "feedback"}
# the files beside a page without which it cannot be handed out
NEEDED = ("submission_secret.txt", "timestamp.txt")


class Releases:
    """The checksums of all files that a course ever released into a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        names = read_json(folder / MANIFEST).items()
        self._checksums = {name: sums for name, sums in names if isinstance(sums, list)}

    def remember(self, files: Iterable[Path]) -> None:
        """Add the files, as they are, to what was released."""
        before = json.dumps(self._checksums)
        for file in files:
            sums = self._checksums.setdefault(file.relative_to(self.folder).as_posix(), [])
            sums += {digest(file)}.difference(sums)
        if json.dumps(self._checksums) != before:
            text = json.dumps(self._checksums, indent=1, sort_keys=True)
            write(self.folder / MANIFEST, f"{text}\n")

    def knows(self, topic: str, name: str, file: Path) -> bool:
        """Tell whether a file is just what was released under this name at some time."""
        return digest(file) in self._checksums.get(f"{topic}/{name}", ())


def digest(file: Path) -> str:
    """Return the checksum of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def gather(
    work: Path, topic: str, places: Sequence[Path], releases: Releases, root: Path
) -> list[str]:
    """Copy what a student edited elsewhere to the place of work; return what became of it.

    Each of the ``places``, as ``work``, has a folder for the ``topic``. ``releases`` are no work.
    """

    def called(path: Path) -> str:
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)

    checksums: list[str] = read_json(work / GATHERED, list)
    before, sentences = len(checksums), []
    for name, source in chain.from_iterable(_files(folder / topic) for folder in places):
        checksum, target = digest(source), work / topic / name
        if checksum in checksums or releases.knows(topic, name, source):
            continue
        checksums.append(checksum)
        if target.exists() and digest(target) == checksum:
            continue
        counts, became = source, f"; it is {called(target)} now: go on there"
        if target.exists() and not releases.knows(topic, name, target):
            other, counts = sorted((source, target), key=lambda file: file.stat().st_mtime)
            moment = datetime.fromtimestamp(other.stat().st_mtime)
            # several files may have been saved in one second
            mark = f"of {moment:%Y-%m-%d %H.%M.%S} ({digest(other)[:4]})"
            kept = work / EARLIER_COPIES / topic / name
            copy(other, kept := kept.with_stem(f"{kept.stem} {mark}"))
            became += f". The file that was there is {called(kept)}"
            if counts == target:
                became = f", but {called(target)} was saved later and counts; {called(kept)} is"
                became += " the other"
        if counts == source:
            copy(source, target)
        sentences.append(f"{called(source)} was edited{became}")
    if len(checksums) > before:
        write(work / GATHERED, json.dumps(checksums, indent=1) + "\n")
    return sentences


def copy(source: Path, target: Path) -> None:
    """Copy a file whole or not at all, with the time of its last change."""
    with atomic_write(target) as scratch:
        shutil.copy2(source, scratch)
        scratch.chmod(0o644)


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        is_hidden = name.name.startswith(".") or LEFT_ALONE & set(name.parts)
        if path.is_file() and not path.is_symlink() and not is_hidden:
            yield name.as_posix(), path


class Submit(ExchangeSubmit):  # type: ignore[misc]
    """nbgrader's submission, from ``Exchange.assignment_dir``, where edits are gathered first."""

    places = List(
        Unicode(), help="Folders, beside assignment_dir, in which a student may have worked."
    ).tag(config=True)

    def init_src(self) -> None:
        """Gather what was edited elsewhere, then find the assignment."""
        root, work = Path(self.coursedir.root), Path(self.assignment_dir)
        releases = Releases(root / self.coursedir.release_directory)
        places = [root / folder for folder in self.places]
        for said in gather(work, self.coursedir.assignment_id, places, releases, root):
            self.log.warning(said)
        super().init_src()


class ReleaseFeedback(ExchangeReleaseFeedback):  # type: ignore[misc]
    """nbgrader's step that releases pages, for those that can be released."""

    def copy_files(self) -> None:
        """Release what can be; warn of the rest, with the place of each page."""
        excluded = self.coursedir.student_id_exclude
        without_secret = left_out(self.coursedir)
        self.coursedir.student_id_exclude = ",".join(filter(None, [excluded, *without_secret]))
        try:
            super().copy_files()
        finally:
            self.coursedir.student_id_exclude = excluded
        said = "Not released to '%s', who did not submit in JupyterLab: send the pages in %s"
        for who_and_where in without_secret.items():
            self.log.warning(said, *who_and_where)


def left_out(coursedir: Any) -> dict[str, Path]:
    """Return the folders of pages that cannot be released, by student, of one or of all."""
    step, student = coursedir.feedback_directory, coursedir.student_id or "*"
    folders = folders_in(coursedir, step, coursedir.assignment_id, student).items()
    pages = {name: folder for name, folder in folders if any(folder.glob("*.html"))}
    return {n: f for n, f in pages.items() if not all((f / file).is_file() for file in NEEDED)}
