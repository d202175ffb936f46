"""Memories of instances in which modules have been imported, kept for the next run.

To import takes seconds, to share such a memory nothing. It is used again only while every
file that was read for it is as it was.
"""

import json
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from gradebox_wasm import machine
from gradebox_wasm.files import Folder, HostFile, HostFolder
from gradebox_wasm.instance import Instance
from gradebox_wasm.memory import Image
from gradebox_wasm.modules import Modules

MOST = 20
"""So many are kept, of about 30 MB; the oldest go."""
_LENGTH = struct.Struct("<Q")


def load(key: str, modules: Modules) -> Image | None:
    """Return the memory that is kept under a key, if it may be used; its modules are found anew."""
    with suppress(OSError, ValueError, KeyError, struct.error), _path(key).open("rb") as file:
        header = _header(file)
        if all(_stamp(path) == stamp for path, stamp in header["stamps"]):
            for name in header["names"]:
                modules.fetch(name)
            return Image(file, header["size"], header["open_files"])
    return None  # none is there, or half of one


def keep(key: str, instance: Instance, modules: Modules, library: Folder) -> Image:
    """Keep the memory of an instance under a key, with the state of the files it was made from."""
    path = _path(key)
    partial = path.with_suffix(f".{os.getpid()}")
    with partial.open("w+b") as file:
        image = instance.save(file)
        header = {
            "stamps": [(path, _stamp(path)) for path in {*_read(library), *_read(modules.folder)}],
            "names": modules.names(),
            "size": image.size,
            "open_files": image.open_files,
        }
        text = json.dumps(header).encode()
        file.seek(image.size)
        file.write(text + _LENGTH.pack(len(text)))
    with suppress(OSError):  # Windows moves and removes no file that is open
        partial.replace(path)
        for old in sorted(path.parent.glob("*.image"), key=os.path.getmtime)[:-MOST]:
            old.unlink()
    return image


def _path(key: str) -> Path:
    return machine.folder() / f"{key}.image"


def _header(file: BinaryIO) -> dict[str, Any]:
    """Return what was kept beside a memory, or raise ValueError if not all of it is there."""
    end = file.seek(-_LENGTH.size, os.SEEK_END)
    [length] = _LENGTH.unpack(file.read())
    file.seek(end - length)
    header: dict[str, Any] = json.loads(file.read(length))
    if header["size"] != end - length:
        raise ValueError("part of it is missing")
    return header


def _read(node: Any) -> Iterator[str]:
    """Yield the files of this machine that were read, and the folders that were looked through."""
    was_read = not vars(node).keys().isdisjoint({"content", "entries"})
    if isinstance(node, HostFile | HostFolder) and was_read:
        yield node.path
    if isinstance(node, Folder) and was_read:
        for below in node.entries.values():
            yield from _read(below)


def _stamp(path: str) -> list[int] | None:
    """Return what changes when a file does, or a folder gets or loses one."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return [found.st_mtime_ns, found.st_size]
