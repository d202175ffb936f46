"""Write files whole or not at all, and read what may be a trap."""

import contextlib
import glob
import hashlib
import json
import os
import re
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any


def write_files(files: Mapping[str, bytes | Path], folder: Path) -> None:
    """Write files to their places in a folder: their bytes, or copies of others."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        if isinstance(content, bytes):
            target.write_bytes(content)
        else:
            shutil.copy(content, target)


def folders_in(coursedir: Any, step: str, assignment: str, student: str = "*") -> dict[str, Path]:
    """Return the folders of an assignment in a step of nbgrader's, by student."""
    pattern = coursedir.format_path(step, "(?P<student>.*)", re.escape(assignment), escape=True)
    place = {"student_id": student, "assignment_id": glob.escape(assignment)}
    wild = coursedir.directory_structure.format(nbgrader_step=step, **place)
    # not Path.glob: the structure may be absolute
    folders = glob.glob(os.path.join(glob.escape(str(coursedir.root)), wild))  # noqa: PTH118, PTH207
    matches = ((re.fullmatch(pattern, folder), folder) for folder in sorted(folders))
    return {match["student"]: Path(folder) for match, folder in matches if match}


def remove(folder: Path) -> None:
    """Remove a folder with all that it holds, protected files too; it may be missing."""
    if folder.exists():
        for here, *inside in os.walk(folder):  # each folder is opened before it is listed
            for path in (Path(here, name) for name in chain(*inside)):
                if not path.is_symlink():  # Windows removes no file that is read-only
                    path.chmod(0o700)
        shutil.rmtree(folder)


def read_json(path: Path, kind: type = dict) -> Any:
    """Return what a file tells as JSON; an empty dict, or list, if it is missing or damaged."""
    with contextlib.suppress(OSError, ValueError):
        if isinstance(found := json.loads(path.read_text(encoding="utf-8")), kind):
            return found
    return kind()


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Write to a scratch file, whose path this gives, and let it replace another in one step.

    After an error the other one stays. What has taken its place is on the disk.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        yield scratch
        with scratch.open("rb+") as file:  # Windows flushes what was opened for writing alone
            os.fsync(file.fileno())
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all; half a character becomes a question mark."""
    with atomic_write(path) as scratch:
        scratch.write_text(text, encoding="utf-8", errors="replace")


def digest(parts: Iterable[str | bytes]) -> str:
    """Return one checksum of several texts, each told apart from the next."""
    total = hashlib.sha256()
    for part in parts:
        content = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        total.update(len(content).to_bytes(8, "big") + content)
    return total.hexdigest()
