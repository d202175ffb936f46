"""Remember by content what was made from what, so that only changes are made again."""

import json
from collections.abc import Iterable
from pathlib import Path

import gradebox.files
from optdl.files import atomic_write


def digest(parts: Iterable[Path | bytes | str]) -> str:
    """Return one checksum of files, bytes and texts; a missing file counts as empty."""
    return gradebox.files.digest(
        part if not isinstance(part, Path) else part.read_bytes() if part.is_file() else b""
        for part in parts
    )


def files(*roots: Path) -> list[Path]:
    """Return the files below the roots, sorted, without what Python and Jupyter leave behind."""
    hidden = {"__pycache__", ".ipynb_checkpoints"}
    paths = (path for root in roots for path in ([root] if root.is_file() else root.rglob("*")))
    return sorted(path for path in paths if path.is_file() and not hidden & {*path.parts})


def write_if_changed(path: Path, content: bytes) -> bool:
    """Write a file whole or not at all; return whether its content changed."""
    if path.is_file() and path.read_bytes() == content:
        return False
    with atomic_write(path) as scratch:
        scratch.write_bytes(content)
    return True


class Fingerprints:
    """A file of checksums: what each result was last made from.

    An unreadable one counts as empty, so that all is made again.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._checksums = path, gradebox.files.read_json(path)

    def matches(self, name: str, checksum: str) -> bool:
        """Return whether a result was made from exactly this."""
        return bool(self._checksums.get(name) == checksum)

    def record(self, name: str, checksum: str) -> None:
        """Remember that a result has been made, at once, for an interruption may follow."""
        self._checksums[name] = checksum
        text = json.dumps(self._checksums, indent=1, sort_keys=True)
        write_if_changed(self.path, text.encode())
