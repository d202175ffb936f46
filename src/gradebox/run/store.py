"""Keep results of executions, whole or not at all, under a key of all that they depend on.

Below the folder of the store lie ``work`` (what is being made, of no worth after the run), and
``results/ASSIGNMENT/STUDENT/KEY``. A result is written to ``work`` and only then renamed, so
that a run killed at any instant leaves no half of one; its checksum tells of any other damage.
"""

import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from gradebox.files import digest, remove
from gradebox.nbgrader.cells import Unready

FILES = "files"
RESULT = "result.json"


class Busy(Unready):
    """Another run works with the same store."""


class Store:
    """The results of one assignment, in a folder that is made when it is missing."""

    def __init__(self, folder: Path, assignment: str) -> None:
        self.folder = folder
        self._work = folder / "work"
        self._results = folder / "results" / assignment

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs away, and clear what a killed run was making.

        The lock ends with the process that holds it, however that ends.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            lock = FileLock(self.folder / "lock").acquire(blocking=False)
        except Timeout as error:
            raise Busy(f"another run grades with {self.folder}; wait for its end") from error
        with lock:
            remove(self._work)
            yield

    @contextlib.contextmanager
    def workplace(self) -> Iterator[Path]:
        """Make a folder that is gone at the end, unless it was renamed."""
        self._work.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=self._work))
        try:
            yield folder
        finally:
            remove(folder)

    def find(self, student: str, key: str) -> Path | None:
        """Return the folder of a result; None if there is none, or a damaged one."""
        folder = self._results / student / key
        with contextlib.suppress(OSError, ValueError):
            checksum, text = _parts(folder)
            if checksum == _checksum(folder, text):
                return folder
        return None

    def keep(self, student: str, key: str, folder: Path, result: str) -> Path:
        """Keep a folder as the result under a key, and return where it lies now.

        It need not be on the disk: a machine that stops leaves a result that is executed again.
        """
        checksum = _checksum(folder, result)
        (folder / RESULT).write_text(f"{checksum}\n{result}", encoding="utf-8")
        target = self._results / student / key
        target.parent.mkdir(parents=True, exist_ok=True)
        remove(target)
        folder.rename(target)
        return target

    def drop_others(self, student: str, key: str) -> None:
        """Remove the results of earlier submissions of a student."""
        with contextlib.suppress(FileNotFoundError):
            for other in (self._results / student).iterdir():
                if other.name != key:
                    remove(other)


def read(folder: Path) -> dict[str, Any]:
    """Return what was kept with a result."""
    result: dict[str, Any] = json.loads(_parts(folder)[1])
    return result


def _parts(folder: Path) -> list[str]:
    """Return the checksum that was written with a result, and its text."""
    return (folder / RESULT).read_text(encoding="utf-8").split("\n", 1)


def _checksum(folder: Path, text: str) -> str:
    """Return the checksum of a result and the files beside it."""
    paths = sorted(path for path in (folder / FILES).rglob("*") if path.is_file())
    contents = (part for path in paths for part in (path.name, path.read_bytes()))
    return digest([text, *contents])
