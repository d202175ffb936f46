"""Memories of instances in which modules have been imported, kept for the next run.

To import takes seconds, to read such a memory a tenth of one. It is used again only while every
file that was read for it is as it was.
"""

import json
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from gradebox.wasm import machine
from gradebox.wasm.files import Folder, HostFile, HostFolder
from gradebox.wasm.instance import PAGE, Image
from gradebox.wasm.modules import Modules

MOST = 20
"""So many are kept, of up to 20 MB; the oldest go."""
_LENGTH = struct.Struct("<Q")


def load(key: str, modules: Modules) -> Image | None:
    """Return the memory that is kept under a key, if it may be used; its modules are found anew."""
    try:
        content = _path(key).read_bytes()
        [length] = _LENGTH.unpack_from(content)
        header = json.loads(content[_LENGTH.size : _LENGTH.size + length])
        if any(_stamp(path) != stamp for path, stamp in header["stamps"]):
            return None
        memory = zlib.decompress(content[_LENGTH.size + length :])
    except (OSError, ValueError, KeyError, struct.error, zlib.error):  # none, or half of one
        return None
    for name in header["names"]:
        modules.fetch(name)
    pages = enumerate(header["pages"])
    parts = tuple((begin, memory[PAGE * i : PAGE * (i + 1)]) for i, begin in pages)
    return Image(header["size"], parts, tuple(map(tuple, header["open_files"])))


def keep(key: str, image: Image, modules: Modules, library: Folder) -> None:
    """Keep a memory under a key, with what tells whether the files that it was made from change."""
    header = {
        "stamps": [(path, _stamp(path)) for path in {*_read(library), *_read(modules.folder)}],
        "names": modules.names(),
        "size": image.size,
        "pages": [begin for begin, _ in image.parts],
        "open_files": image.open_files,
    }
    text = json.dumps(header).encode()
    memory = zlib.compress(b"".join(content for _, content in image.parts), 1)
    path = _path(key)
    partial = path.with_suffix(f".{os.getpid()}")
    with suppress(OSError):  # a full disk: the next run imports again
        partial.write_bytes(_LENGTH.pack(len(text)) + text + memory)
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
