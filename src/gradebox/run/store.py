"""Keep what executions gave: whole or not at all, under a key of all that they were made from.

Below the folder of the store lie ``work`` (what is being made, of no worth after the run), and
``results/ASSIGNMENT/STUDENT/KEY``. A result is written to ``work``, brought to the disk, and
only then renamed, so that a run killed at any instant leaves no half of one.
"""

import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gradebox.files import remove, sync

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FILES = "files"
RESULT = "result.json"


class Busy(Exception):
    """Another run works with the same store."""


class Store:
    """The results of one assignment.

    Parameters
    ----------
    folder : Path
        The folder of the store; it is made when it is missing.
    assignment : str
        The assignment.
    """

    def __init__(self, folder: Path, assignment: str) -> None:
        self.folder = folder
        self._work = folder / "work"
        self._results = folder / "results" / assignment

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs away, and clear what a killed run was making.

        The lock ends with the process that holds it, however that ends. Where the system has no
        such locks (Windows), two runs at once are not told from one.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("a") as lock:
            if fcntl is not None:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    raise Busy(
                        f"another run grades with {self.folder}; wait for its end"
                    ) from error
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
        """Return the folder of a result, or None."""
        folder = self._results / student / key
        return folder if folder.is_dir() else None

    def keep(self, student: str, key: str, folder: Path, result: str) -> Path:
        """Keep a folder as the result under a key, and return where it lies now."""
        (folder / RESULT).write_text(result, encoding="utf-8")
        sync([folder / RESULT, *(path for path in folder.rglob("*") if path.is_dir()), folder])
        target = self._results / student / key
        target.parent.mkdir(parents=True, exist_ok=True)
        remove(target)
        folder.rename(target)
        sync([target.parent])
        return target

    def drop_others(self, student: str, key: str) -> None:
        """Remove the results of earlier submissions of a student."""
        with contextlib.suppress(FileNotFoundError):
            for other in (self._results / student).iterdir():
                if other.name != key:
                    remove(other)


def read(folder: Path) -> dict[str, Any]:
    """Return what was kept with a result."""
    result: dict[str, Any] = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    return result
