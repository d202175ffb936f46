"""Read a submission once, without following a link, or refuse it with a reason."""

import json
import os
import re
import stat
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import nbformat

from gradebox.files import digest
from gradebox.nbgrader.cells import is_bundle
from gradebox.sandbox import filesystem

MAX_FILE_BYTES = 50 * 2**20  # of a file that is handed in
MAX_BYTES = 200 * 2**20  # of all of them together
MAX_FILES = filesystem.MAX_FILES  # so many files and folders may be handed in
MAX_FOLDERS = 50  # in so many folders, one in the other, a file may be handed in
MAX_CELLS = 5000  # so many cells a notebook may have
MAX_VALUES = 10**6  # lists and objects in the JSON of a notebook: each takes many bytes

_USED = ("deletable", "editable")  # of a cell's metadata, besides its tags and nbgrader's
_VALID_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_HALF = re.compile(r"\\ud[89a-f]", re.IGNORECASE)


class Refused(Exception):
    """A submission cannot be graded; the text says why."""


@dataclass(frozen=True)
class Submission:
    """What a student handed in."""

    student: str
    notebooks: dict[str, bytes]  # the notebooks of the assignment, by name
    files: dict[str, bytes]  # the files beside them, by their place
    unknown: tuple[str, ...]  # notebooks that do not belong to the assignment; they are left out

    @property
    def digest(self) -> str:
        """Return the checksum of all of it."""
        contents: Any = sorted(self.notebooks.items()) + sorted(self.files.items())
        return digest([self.student, str(len(self.notebooks)), *chain.from_iterable(contents)])


def take(
    student: str, folder: Path, names: Collection[str], files_in: Callable[[Path], dict[str, Path]]
) -> Submission:
    """Read what a student handed in of the notebooks with these names, or raise ``Refused``.

    ``files_in`` returns the files beside them, by their place, once there are not too many.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise Refused(f"expected a folder, got something else: {folder.name}")
    _require_little(folder)
    paths = sorted(folder.glob("[!.]*.ipynb"))
    notebooks = {path.stem: _read(path) for path in paths if path.stem in names}
    unknown = tuple(path.name for path in paths if path.stem not in names)
    if not notebooks:
        handed_in = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
        expected = " or ".join(f"{name}.ipynb" for name in names)
        raise Refused(f"expected {expected}, got {handed_in[:200]}; rename or replace the notebook")
    files = {name: _read(path) for name, path in files_in(folder).items()}
    return Submission(student, notebooks, files, unknown)


def _require_little(folder: Path) -> None:
    """Raise unless a folder holds a bounded number of plain files, before anything lists them."""
    size = many = 0
    waiting = [(str(folder), 1)]
    for here, depth in waiting:  # which grows meanwhile
        try:
            with os.scandir(here) as found:
                entries = list(islice(found, MAX_FILES + 1))
        except OSError as error:  # closed, or so deep that its name is too long
            why = f"a folder that was handed in cannot be read: {error.strerror}"
            raise Refused(why) from error
        many += len(entries)
        for entry in entries:
            if entry.is_symlink():
                place = os.path.relpath(entry.path, folder)
                raise Refused(f"{place} is a link; hand in the file itself")
            waiting += [(entry.path, depth + 1)] if entry.is_dir() else []
            size += entry.stat().st_size if entry.is_file() else 0
        limits = {
            f"{MAX_FILES} files": many > MAX_FILES,
            f"{MAX_FOLDERS} folders in one another": bool(entries) and depth > MAX_FOLDERS,
            f"{MAX_BYTES // 2**20} MB in all files together": size > MAX_BYTES,
        }
        if over := [most for most, is_over in limits.items() if is_over]:
            advice = "hand in only what the notebook needs"
            raise Refused(f"expected at most {over[0]}, got more; {advice}")


def _read(path: Path) -> bytes:
    """Return the bytes of a plain file; nothing else is even opened."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise Refused(f"{path.name} is no plain file; hand in a plain file")
    # what was a plain file a moment ago may be a link by now, or a pipe, whose opening waits
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | flags)
    except OSError as error:
        raise Refused(f"{path.name} cannot be read: {error.strerror}") from error
    with os.fdopen(handle, "rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise Refused(f"{path.name} has more than {MAX_FILE_BYTES // 2**20} MB; clear its outputs")
    return content


def parse(name: str, content: bytes) -> Any:
    """Return a notebook in the present format, or raise ``Refused``.

    What grading does not use, such as outputs, is left out: whatever it holds is no fault.
    """
    try:
        text = content.decode("utf-8-sig")
        # before it is parsed: as objects a small text can take a hundred times its bytes
        if text.count("[") + text.count("{") > MAX_VALUES:
            raise Refused(f"{name}.ipynb holds more than {MAX_VALUES} values; clear its outputs")
        plain = json.loads(text, object_hook=_without_outputs)
        if _HALF.search(text):  # half a character, alone, as no file can hold it
            whole = json.dumps(plain, ensure_ascii=False).encode("utf-16", "surrogatepass")
            plain = json.loads(whole.decode("utf-16", "replace"))
        major, minor = nbformat.reader.get_version(plain)  # type: ignore[no-untyped-call]
        if major != 4:
            nb = nbformat.versions[major].to_notebook_json(plain, minor=minor)
            plain = nbformat.convert(nb, 4)  # type: ignore[no-untyped-call]
        cells = [*map(_cell, plain["cells"])]
        if len(cells) > MAX_CELLS:
            raise Refused(f"expected at most {MAX_CELLS} cells in {name}.ipynb, got {len(cells)}")
        fields = {"metadata": {}, "nbformat": 4, "nbformat_minor": 5, "cells": cells}
        return normal(nbformat.from_dict(fields))  # type: ignore[no-untyped-call]
    except Refused:
        raise
    except UnicodeDecodeError:
        what = "not UTF-8 text"
    except json.JSONDecodeError:
        what = "no JSON"
    except RecursionError:
        what = "no notebook: it is nested too deeply"
    except Exception:  # whatever a strange notebook brings nbformat to raise
        what = "no notebook: its JSON is not built as the format says"
    raise Refused(f"{name}.ipynb is {what}; save it anew in Jupyter")


def _without_outputs(parts: dict[str, Any]) -> Any:
    """Drop outputs as soon as they are read: they are made anew, and may be most of the bytes."""
    if "output_type" in parts:
        return None
    return parts | {"outputs": []} if "outputs" in parts else parts


def _cell(plain: dict[str, Any]) -> dict[str, Any]:
    """Return a valid cell with all that grading and pages use of another."""
    kind, metadata = plain["cell_type"], plain.get("metadata") or {}
    kept: dict[str, Any] = {n: metadata[n] for n in _USED if isinstance(metadata.get(n), bool)}
    if isinstance(own := metadata.get("nbgrader"), dict):
        kept["nbgrader"] = {k: v for k, v in own.items() if not isinstance(v, dict | list)}
    if isinstance(tags := metadata.get("tags"), list):
        valid = (tag for tag in tags if isinstance(tag, str) and tag and "," not in tag)
        kept["tags"] = list(dict.fromkeys(valid))
    kind = kind if kind in ("code", "markdown") else "raw"
    source = "".join(plain.get("source") or "")  # a text, or its lines
    cell = {"id": plain.get("id"), "cell_type": kind, "metadata": kept, "source": source}
    attached = plain.get("attachments")
    if kind == "code":
        cell |= {"outputs": [], "execution_count": None}
    elif isinstance(attached, dict):  # pictures in written answers
        cell["attachments"] = {name: data for name, data in attached.items() if is_bundle(data)}
    return cell


def normal(nb: Any) -> Any:
    """Give each cell a valid id of its own, the same in every run."""
    ids: set[str] = set()
    for index, cell in enumerate(nb.cells):
        # extensions of JupyterLab write ids with blanks, and long ones
        is_valid = isinstance(old := cell.get("id"), str) and _VALID_ID.fullmatch(old)
        valid = str(old) if is_valid else f"cell-{index}"
        new = chain([valid], (f"{valid[:50]}-{number}" for number in count(index)))
        cell.id = next(candidate for candidate in new if candidate not in ids)
        ids.add(cell.id)
    return nb
