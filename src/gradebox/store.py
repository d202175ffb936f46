"""Keep what executions gave: whole or not at all, under a key of all that they were made from.

Below the folder of the store lie ``work`` (what is being made, of no worth after the run), and
``results/ASSIGNMENT/STUDENT/KEY``. A result is written to ``work``, brought to the disk, and
only then renamed, so that a run killed at any instant leaves no half of one.
"""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

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


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write files to their places in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def copy_files(files: Mapping[str, Path], folder: Path) -> None:
    """Copy files to their places in a folder."""
    for name, path in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copy(path, target)


def read_files(
    folder: Path, largest: int, without: Collection[str] = ()
) -> tuple[dict[str, bytes], list[str]]:
    """Return the plain files in a folder by their place, and the places of those too large.

    What a notebook left may be a trap: links, pipes and the like are not followed or opened.
    """
    contents, large = {}, []
    for path in _below(folder):
        name = path.relative_to(folder).as_posix()
        if name in without or path.is_symlink() or not path.is_file():
            continue
        if path.stat().st_size > largest:
            large.append(name)
        else:
            contents[name] = path.read_bytes()
    return contents, large


def sync(paths: Iterable[Path]) -> None:
    """Bring files and folders to the disk."""
    for path in paths:
        with contextlib.suppress(PermissionError):  # Windows opens no folder
            # Windows flushes what was opened for writing alone
            handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def remove(folder: Path) -> None:
    """Remove a folder with all that it holds, protected files too; it may be missing."""
    if folder.exists():
        for _ in _below(folder):
            pass
        shutil.rmtree(folder)


def _below(folder: Path) -> Iterator[Path]:
    """Yield what lies below a folder; folders that were closed are opened on the way."""
    _open(folder)
    for here, folders, files in os.walk(folder):
        for name in folders:
            path = Path(here, name)
            if not path.is_symlink():
                _open(path)
        yield from (Path(here, name) for name in [*folders, *files])


def _open(folder: Path) -> None:
    mode = folder.stat().st_mode
    if mode & 0o700 != 0o700:
        folder.chmod(mode | 0o700)


def read_json(path: Path) -> dict[str, Any]:
    """Return what a file tells as JSON; nothing if it is missing or damaged."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give the path of a file to write, which then takes the place of another in one step.

    After an error the other one stays. What has taken its place is on the disk.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        yield scratch
        sync([scratch])
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    with written_whole(path) as scratch:
        scratch.write_text(text, encoding="utf-8")


def digest(parts: Iterable[str | bytes]) -> str:
    """Return one checksum of several texts, each told apart from the next."""
    total = hashlib.sha256()
    for part in parts:
        content = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        total.update(len(content).to_bytes(8, "big") + content)
    return total.hexdigest()
