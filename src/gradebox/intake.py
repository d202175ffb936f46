"""Take a submission in: read it once, without being led anywhere else, or say why not."""

import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from gradebox.store import digest

_HALF = re.compile(r"\\ud[89a-f]", re.IGNORECASE)

LARGEST = 50 * 2**20
"""So many bytes a file that is handed in may have."""


class Refused(Exception):
    """A submission cannot be graded; the text says why."""


@dataclass(frozen=True)
class Submission:
    """What a student handed in.

    Parameters
    ----------
    student : str
        The student.
    notebooks : dict
        The bytes of the notebooks of the assignment, by name.
    files : dict
        The bytes of the files beside them, by their place.
    unknown : tuple of str
        Notebooks that do not belong to the assignment; they are left out.
    """

    student: str
    notebooks: dict[str, bytes]
    files: dict[str, bytes]
    unknown: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Return the checksum of all of it."""
        parts: list[str | bytes] = [self.student]
        for kind in (self.notebooks, self.files):
            parts.append(str(len(kind)))
            for name, content in sorted(kind.items()):
                parts += [name, content]
        return digest(parts)


def take(student: str, folder: Path, names: list[str], other_files: dict[str, Path]) -> Submission:
    """Read a submission.

    Parameters
    ----------
    student : str
        The student.
    folder : Path
        What the student handed in.
    names : list of str
        The notebooks of the assignment.
    other_files : dict
        The files beside the notebooks.

    Raises
    ------
    Refused
        If there is no notebook of the assignment, or something is no plain file or too large.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise Refused(f"expected a folder, got {_kind(folder)}: {folder.name}")
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            raise Refused(f"{path.relative_to(folder)} is a link; hand in the file itself")
    paths = sorted(folder.glob("*.ipynb"))
    notebooks = {path.stem: _read(path) for path in paths if path.stem in names}
    unknown = tuple(path.name for path in paths if path.stem not in names)
    if not notebooks:
        handed_in = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
        expected = " or ".join(f"{name}.ipynb" for name in names)
        raise Refused(f"expected {expected}, got {handed_in[:200]}; rename or replace the notebook")
    files = {name: _read(path) for name, path in other_files.items()}
    return Submission(student, notebooks, files, unknown)


def _read(path: Path) -> bytes:
    """Return the bytes of a plain file; nothing else is even opened."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise Refused(f"{path.name} is {_kind(path)}; hand in a plain file")
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | flags)
    except OSError as error:
        raise Refused(f"{path.name} cannot be read: {error.strerror}") from error
    with os.fdopen(handle, "rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise Refused(f"{path.name} has more than {LARGEST // 2**20} MB; clear its outputs")
    return content


def _kind(path: Path) -> str:
    kinds = {
        stat.S_IFLNK: "a link",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
        stat.S_IFREG: "a plain file",
    }
    try:
        return kinds.get(stat.S_IFMT(path.lstat().st_mode), "something else")
    except FileNotFoundError:
        return "nothing"


def parse(name: str, content: bytes) -> Any:
    """Return a notebook in the present format.

    Raises
    ------
    Refused
        If it is none.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(f"{name}.ipynb is not UTF-8 text: {error.reason}; save it anew") from error
    try:
        nb = nbformat.convert(nbformat.reader.reads(_whole(text)), 4)  # type: ignore[no-untyped-call]
        nb = normal(nb)
        nbformat.validate(nb, relax_add_props=True)
    except nbformat.reader.NotJSONError as error:
        raise Refused(f"{name}.ipynb is no JSON; save it anew in Jupyter") from error
    except Exception as error:  # whatever a strange notebook brings nbformat to raise
        why = (str(error).splitlines() or [""])[0][:200]
        raise Refused(f"{name}.ipynb is no notebook: {type(error).__name__} {why}") from error
    return nb


def _whole(text: str) -> str:
    r"""Return JSON in which no text has half a character (``\ud800`` alone), as no file can."""
    if not _HALF.search(text):
        return text
    plain = json.dumps(json.loads(text), ensure_ascii=False)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def normal(nb: Any) -> Any:
    """Give each cell an id of its own, the same in every run, where the format knows ids."""
    if (nb.nbformat, nb.nbformat_minor) >= (4, 5):
        ids: set[Any] = set()
        for index, cell in enumerate(nb.cells):
            while not cell.get("id") or cell.id in ids:
                cell.id = f"{cell.get('id') or 'cell'}-{index}"
            ids.add(cell.id)
    return nb
