"""The files of an instance: in memory, but for modules, which are read where they lie."""

import os
import posixpath
from collections.abc import Callable
from enum import IntEnum
from functools import cached_property
from pathlib import Path

from gradebox.sandbox.filesystem import MAX_FILES


class Number(IntEnum):
    """The errors of WASI."""

    SUCCESS, DENIED, BAD_FILE, EXISTS, INVALID, IS_FOLDER = 0, 2, 8, 20, 28, 31
    MANY_OPEN, TOO_LONG, MISSING, NO_SPACE, UNKNOWN, NO_FOLDER = 33, 37, 44, 51, 52, 54
    NOT_EMPTY = 55


class Refused(Exception):
    """Something cannot be done with files; the argument is the :class:`Number` that says why."""


class File:
    """A file in memory."""

    is_fixed = False

    def __init__(self, content: bytes = b"") -> None:
        self.content = bytearray(content)


class HostFile(File):
    """A file of this machine, which can be read only."""

    is_fixed = True

    def __init__(self, path: str) -> None:
        self.path = path

    @cached_property
    def content(self) -> bytearray:  # type: ignore[override]
        """What it holds, read when it is first asked for."""
        return bytearray(Path(self.path).read_bytes())


class Folder:
    """A folder in memory; one that is fixed the host fills, for several instances."""

    def __init__(self, is_fixed: bool = False) -> None:
        self.is_fixed = is_fixed
        self.entries: dict[str, Node] = {}


class HostFolder(Folder):
    """A folder of this machine, which can be read only.

    Parameters
    ----------
    path : str
        Where it lies.
    shows : callable
        Is given the path of what lies in it, and returns whether it is there for an instance.
    """

    is_fixed = True

    def __init__(self, path: str, shows: Callable[[str], bool] = lambda path: True) -> None:
        self.path, self._shows = path, shows

    @cached_property
    def entries(self) -> "dict[str, Node]":  # type: ignore[override]
        """What it holds, looked up when it is first asked for."""
        with os.scandir(self.path) as found:
            return {
                each.name: HostFolder(each.path, self._shows)
                if each.is_dir()
                else HostFile(each.path)
                for each in found
                if self._shows(each.path)
            }


Node = File | Folder


class Tree:
    """All files of one instance, with limits on what is made.

    Parameters
    ----------
    room : int
        So many bytes may be written.
    """

    def __init__(self, room: int) -> None:
        self.root = Folder()
        self._room, self._many = room, MAX_FILES

    def put(self, path: str, node: Node) -> None:
        """Put something in place, and make the folders above it."""
        *above, name = path.strip("/").split("/")
        folder = self.root
        for part in above:
            folder = folder.entries.setdefault(part, Folder())  # type: ignore[assignment]
        folder.entries[name] = node

    def find(self, path: str) -> Node:
        """Return what lies at a path, or raise Refused."""
        folder, name = self.parent(path)
        if name and name not in folder.entries:
            raise Refused(Number.MISSING)
        return folder.entries[name] if name else folder

    def parent(self, path: str) -> tuple[Folder, str]:
        """Return the folder that holds a path's last name, and this name; or raise Refused."""
        *above, name = posixpath.normpath(f"/{path}").strip("/").split("/")
        folder: Node | None = self.root
        for part in above:
            folder = folder.entries.get(part) if isinstance(folder, Folder) else None
        if not isinstance(folder, Folder):
            raise Refused(Number.MISSING)
        return folder, name

    def make(self, folder: Folder, name: str, node: Node) -> None:
        """Put a new file or folder into a folder, or raise Refused."""
        require_writable(folder)
        self._many -= 1
        if self._many < 0:
            raise Refused(Number.NO_SPACE)
        folder.entries[name] = node

    def remove(self, path: str, kind: type[Node]) -> Node:
        """Take a file or an empty folder away and return it, or raise Refused."""
        folder, name = self.parent(path)
        node = folder.entries.get(name)
        if node is None:
            raise Refused(Number.MISSING)
        if not isinstance(node, kind):
            raise Refused(Number.IS_FOLDER if kind is File else Number.NO_FOLDER)
        if isinstance(node, Folder) and node.entries:
            raise Refused(Number.NOT_EMPTY)
        require_writable(folder)
        require_writable(node)
        return folder.entries.pop(name)

    def resize(self, file: File, size: int) -> None:
        """Give a file another size, or raise Refused."""
        require_writable(file)
        if size < 0:
            raise Refused(Number.INVALID)
        more = size - len(file.content)
        if more > self._room:
            raise Refused(Number.NO_SPACE)
        self._room -= more
        if more > 0:
            file.content.extend(bytes(more))
        else:
            del file.content[size:]

    def copy(self) -> "Tree":
        """Return a tree of its own with the same files."""
        made = Tree(self._room)
        made._many = self._many
        waiting = [(self.root, made.root)]  # folders may lie deeper than functions may be nested
        while waiting:
            folder, copied = waiting.pop()
            for name, node in folder.entries.items():
                if node.is_fixed:
                    copied.entries[name] = node
                elif isinstance(node, Folder):
                    copied.entries[name] = inner = Folder()
                    waiting.append((node, inner))
                else:
                    copied.entries[name] = File(bytes(node.content))
        return made


def require_writable(node: Node) -> None:
    """Raise Refused if a file or a folder can be read only."""
    if node.is_fixed:
        raise Refused(Number.DENIED)
