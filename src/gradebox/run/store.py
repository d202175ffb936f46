"""Keep results of executions, whole or not at all, under a key of all that they depend on.

Below its folder lie ``work``, what is being made, and ``results/ASSIGNMENT/STUDENT/KEY``. A run
killed at any instant leaves no half of a result; its checksum tells of any other damage.
"""

import contextlib
import json
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from gradebox.files import digest, remove
from gradebox.nbgrader.cells import Unready


class Result(NamedTuple):
    """What the execution of a submission gave, as plain data."""

    notebooks: str  # the executed notebooks with their scores, and what happened, as JSON
    files: dict[str, bytes]  # those beside the notebooks, by their place, but the instructor's


class Busy(Unready):
    """Another run works with the same store."""


class Store:
    """The results of one assignment, in a folder that is made when it is missing."""

    def __init__(self, folder: Path, assignment: str) -> None:
        self.folder, self._work = folder, folder / "work"
        self._results = folder / "results" / assignment

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs away, until this process ends, and clear what a killed run was making."""
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
        """Make a folder that is gone at the end."""
        self._work.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=self._work))
        try:
            yield folder
        finally:
            remove(folder)

    def find(self, student: str, key: str) -> Result | None:
        """Return a result; None if there is none, or a damaged one."""
        with contextlib.suppress(OSError, ValueError):
            file = self._results / student / key
            checksum, text = file.read_text(encoding="utf-8").split("\n", 1)
            if checksum == digest([text]):
                notebooks, files = json.loads(text)
                return Result(notebooks, {name: b64decode(code) for name, code in files.items()})
        return None

    def keep(self, student: str, key: str, result: Result) -> None:
        """Keep a result under a key; its checksum would tell of a half one."""
        codes = {name: b64encode(content).decode() for name, content in result.files.items()}
        text = json.dumps([result.notebooks, codes])
        with self.workplace() as scratch:
            (scratch / key).write_text(f"{digest([text])}\n{text}", encoding="utf-8")
            (self._results / student).mkdir(parents=True, exist_ok=True)
            (scratch / key).replace(self._results / student / key)

    def drop_others(self, student: str, key: str) -> None:
        """Remove the results of earlier submissions of a student."""
        for other in (self._results / student).iterdir():
            if other.name != key:
                other.unlink()
