"""The files of an instance: in memory, but for modules, which are read where they lie."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from gradebox.sandbox.filesystem import MOST_FILES, require_room


class Full(Exception):
    """There is no room for more."""


class File:
    """A file in memory."""

    def __init__(self, content: bytes = b"") -> None:
        self._content = bytearray(content)

    @property
    def content(self) -> bytearray:
        """What it holds."""
        return self._content


class HostFile(File):
    """A file of this machine, which can be read only."""

    def __init__(self, path: str) -> None:
        self.path, self.was_read = path, False

    @property
    def content(self) -> bytearray:
        """What it holds, read when it is first asked for."""
        if not self.was_read:
            self._content = bytearray(Path(self.path).read_bytes())
            self.was_read = True
        return self._content


class Folder:
    """A folder in memory."""

    def __init__(self) -> None:
        self._entries: dict[str, Node] = {}

    @property
    def entries(self) -> "dict[str, Node]":
        """What it holds, by name."""
        return self._entries


class Fixed(Folder):
    """A folder that the host fills, for several instances, and that none of them changes."""


class HostFolder(Fixed):
    """A folder of this machine, which can be read only.

    Parameters
    ----------
    path : str
        Where it lies.
    shows : callable
        Is given the path of what lies in it, and returns whether it is there for an instance.
    """

    def __init__(self, path: str, shows: Callable[[str], bool] = lambda path: True) -> None:
        self.path, self._shows, self.was_read = path, shows, False

    @property
    def entries(self) -> "dict[str, Node]":
        """What it holds, looked up when it is first asked for."""
        if not self.was_read:
            with os.scandir(self.path) as found:
                self._entries = {
                    each.name: HostFolder(each.path, self._shows)
                    if each.is_dir()
                    else HostFile(each.path)
                    for each in found
                    if self._shows(each.path)
                }
            self.was_read = True
        return self._entries


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
        self._room, self._many = room, MOST_FILES

    def put(self, path: str, node: Node) -> None:
        """Put something in place, and make the folders above it."""
        *above, name = path.strip("/").split("/")
        folder = self.root
        for part in above:
            folder = folder.entries.setdefault(part, Folder())  # type: ignore[assignment]
        folder.entries[name] = node

    def find(self, path: str) -> Node | None:
        """Return what lies at a path."""
        folder, name = self.parent(path)
        if name == "":
            return folder
        return None if folder is None else folder.entries.get(name)

    def parent(self, path: str) -> tuple[Folder | None, str]:
        """Return the folder that holds a path's last name, and this name."""
        parts: list[str] = []
        for part in path.split("/"):
            if part == "..":
                del parts[-1:]
            elif part not in ("", "."):
                parts.append(part)
        name = parts.pop() if parts else ""
        folder: Node | None = self.root
        for part in parts:
            folder = folder.entries.get(part) if isinstance(folder, Folder) else None
        return (folder if isinstance(folder, Folder) else None), name

    def make(self, folder: Folder, name: str, node: Node) -> None:
        """Put a new file or folder into a folder.

        Raises
        ------
        Full
            If too many were made.
        PermissionError
            If nothing can be written there.
        """
        writable(folder)
        self._many -= 1
        if self._many < 0:
            raise Full
        folder.entries[name] = node

    def resize(self, file: File, size: int) -> None:
        """Give a file another size.

        Raises
        ------
        Full
            If there is no room.
        PermissionError
            If it cannot be written.
        ValueError
            If the size is none.
        """
        writable(file)
        if size < 0:
            raise ValueError
        more = size - len(file.content)
        if more > self._room:
            raise Full
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
                if isinstance(node, HostFile | Fixed):
                    copied.entries[name] = node
                elif isinstance(node, Folder):
                    copied.entries[name] = inner = Folder()
                    waiting.append((node, inner))
                else:
                    copied.entries[name] = File(bytes(node.content))
        return made


def writable(node: Node) -> None:
    """Raise PermissionError if a file or a folder can be read only."""
    if isinstance(node, HostFile | Fixed):
        raise PermissionError


def handed_in(folder: Path, most: int) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the content of each file in a folder but notebooks, and no links.

    Raises
    ------
    TooMuch
        If there are more than some bytes, or too many files.
    """
    many = size = 0
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.suffix != ".ipynb":
            many, size = many + 1, size + path.stat().st_size
            require_room(many, size, most)
            yield path.relative_to(folder).as_posix(), path.read_bytes()
