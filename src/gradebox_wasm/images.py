"""Memories of instances in which modules have been imported, kept for the next run.

To import takes seconds, to share such a memory nothing. It is used again only while every
file that was read for it is as it was.
"""

import json
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from gradebox_wasm import machine
from gradebox_wasm.files import Folder, HostFile, HostFolder
from gradebox_wasm.instance import blank
from gradebox_wasm.memory import ZERO, Image, pages
from gradebox_wasm.modules import Modules

MOST = 20
"""So many are kept, of about 30 MB; the oldest go."""
_LENGTH = struct.Struct("<Q")


def load(key: str, modules: Modules) -> Image | None:
    """Return the memory that is kept under a key, if it may be used; its modules are found anew."""
    with suppress(OSError, ValueError, KeyError, struct.error), _path(key).open("rb") as file:
        end = file.seek(-_LENGTH.size, os.SEEK_END)
        [length] = _LENGTH.unpack(file.read())
        file.seek(end - length)
        header = json.loads(file.read(length))
        if end - length != header["size"] or any(_stamp(path) != s for path, s in header["stamps"]):
            return None
        for name in header["names"]:
            modules.fetch(name)
        open_files = tuple(map(tuple, header["open_files"]))
        if hasattr(mmap, "MAP_PRIVATE"):
            return Image(header["size"], (), open_files, os.dup(file.fileno()))
        file.seek(0)  # on Windows
        return Image.of(file.read(header["size"]), blank(), open_files)
    return None  # none is there, or half of one


def keep(key: str, image: Image, modules: Modules, library: Folder) -> None:
    """Keep a memory under a key, with what tells whether the files that it was made from change."""
    header = {
        "stamps": [(path, _stamp(path)) for path in {*_read(library), *_read(modules.folder)}],
        "names": modules.names(),
        "size": image.size,
        "open_files": image.open_files,
    }
    text = json.dumps(header).encode()
    content = dict(pages(blank())) | dict(image.parts)
    path = _path(key)
    partial = path.with_suffix(f".{os.getpid()}")
    with suppress(OSError):  # a full disk: the next run imports again
        with partial.open("wb") as file:
            for begin, page in content.items():
                if page != ZERO:  # the others take no place on the disk
                    file.seek(begin)
                    file.write(page)
            file.seek(image.size)
            file.write(text + _LENGTH.pack(len(text)))
        partial.replace(path)
        for old in sorted(path.parent.glob("*.image"), key=os.path.getmtime)[:-MOST]:
            old.unlink()


def _path(key: str) -> Path:
    return machine.folder() / f"{key}.image"


def _read(node: Any) -> Iterator[str]:
    """Yield the files of this machine that were read, and the folders that were looked through."""
    if isinstance(node, HostFile | HostFolder) and node.was_read:
        yield node.path
    if isinstance(node, Folder) and not (isinstance(node, HostFolder) and not node.was_read):
        for below in node.entries.values():
            yield from _read(below)


def _stamp(path: str) -> list[int] | None:
    """Return what changes when a file does, or a folder gets or loses one."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return [found.st_mtime_ns, found.st_size]
