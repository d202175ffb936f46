"""The system calls of WASI preview 1, on files in memory.

A Python that is compiled to WebAssembly asks its host for files, the time and random numbers. There
is no network, no process, and no file but those of the tree. A call answers with the number of an
error, or 0. An address outside the memory ends the instance. Numbers of 32 bits come with a sign.
"""

import os
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from gradebox_wasm.files import File, Folder, Node, Number, Refused, Tree, require_writable
from gradebox_wasm.memory import Memory

FOLDER, FILE = 3, 4
CREATE, DIRECTORY, EXCLUSIVE, TRUNCATE, APPEND = 1, 2, 4, 8, 1
WRITING = 2**6
"""The right to write to what is opened."""
MAX_PIECES, MAX_PATH, CHUNK = 1024, 4096, 2**16
"""So many pieces are written at once, so long may a path be, so much chance is there at once."""
ALL = 2**64 - 1


class Exit(Exception):
    """The program has called exit."""


@dataclass
class Opened:
    """An open file or folder."""

    node: Node
    path: str
    append: bool = False
    position: int = 0


class Wasi:
    """The system calls of one instance.

    Parameters
    ----------
    tree : Tree
        Its files.
    most : int
        So many files may be open.
    memory : Memory
        Its memory.
    sleep : callable
        Is given seconds to wait.
    """

    def __init__(
        self,
        tree: Tree,
        most: int,
        memory: Memory,
        sleep: Callable[[float], None],
    ) -> None:
        self.tree, self._sleep = tree, sleep
        self.read, self.write = memory.read, memory.write
        self.said = File()
        """What Python itself has printed, such as why it ended; cells print elsewhere."""
        streams = Opened(File(), ""), *(Opened(self.said, "", append=True) for _ in range(2))
        self._opened = {**dict(enumerate(streams)), 3: Opened(tree.root, "/")}
        self._most, self._inodes = most + 4, dict[int, int]()

    def open_files(self) -> list[tuple[int, str, bool, int]]:
        """Return of each open file number, path, whether it is added to, and position."""
        files = self._opened.items()
        return [(n, each.path, each.append, each.position) for n, each in files if n > 3]

    def reopen(self, files: Iterable[tuple[int, str, bool, int]]) -> None:
        """Open the files that another instance had open, under the same numbers."""
        for number, path, *more in files:
            self._opened[number] = Opened(self.tree.find(path), path, *more)  # type: ignore

    def call(self, name: str, *arguments: int) -> int:
        """Answer a call."""
        try:
            function = getattr(self, f"_{name}", None)
            if function is None:
                return Number.UNKNOWN
            function(*arguments)
            return Number.SUCCESS
        except Refused as refused:
            return int(refused.args[0])
        except KeyError:
            return Number.BAD_FILE
        except (ValueError, OverflowError):
            return Number.INVALID

    # --- Memory ---

    def _number(self, at: int, value: int, kind: str = "<I") -> None:
        self.write(at, struct.pack(kind, value))

    def _pieces(self, at: int, count: int) -> Iterator[tuple[int, int]]:
        if not 0 <= count <= MAX_PIECES:
            raise Refused(Number.INVALID)
        return struct.iter_unpack("<II", self.read(at, 8 * count))

    # --- Arguments and variables: there are none ---

    def _args_sizes_get(self, count: int, length: int) -> None:
        self._number(count, 0)
        self._number(length, 0)

    def _args_get(self, pointers: int, at: int) -> None:
        """Write nothing."""

    _environ_get, _environ_sizes_get = _args_get, _args_sizes_get

    # --- Time and chance ---

    def _clock_res_get(self, clock: int, at: int) -> None:
        self._number(at, 1000, "<Q")

    def _clock_time_get(self, clock: int, precision: int, at: int) -> None:
        self._number(at, _now(clock), "<Q")

    def _random_get(self, at: int, length: int) -> None:
        if not 0 <= length <= CHUNK:
            raise Refused(Number.TOO_LONG)
        self.write(at, os.urandom(length))

    def _sched_yield(self) -> None:
        """Nothing else runs."""

    def _proc_exit(self, code: int) -> None:
        raise Exit(f"ended with status {code}")

    def _poll_oneoff(self, asked: int, events: int, count: int, many: int) -> None:
        """Wait for the first of some events; but for time, all that is asked about is ready."""
        if not 0 < count <= MAX_PIECES:
            raise Refused(Number.INVALID)
        table = self.read(asked, 48 * count)
        waiting = [table[at : at + 48] for at in range(0, 48 * count, 48)]
        first = min(waiting, key=_wait)
        self._sleep(_wait(first))
        self.write(events, (first[:8] + struct.pack("<HB", 0, first[8])).ljust(32, b"\0"))
        self._number(many, 1)

    # --- Open files ---

    def _file(self, number: int, position: int = 0) -> File:
        node = self._opened[number].node
        if isinstance(node, Folder):
            raise Refused(Number.IS_FOLDER)
        if position < 0:
            raise Refused(Number.INVALID)
        return node

    def _fd_advise(self, number: int, *arguments: int) -> None:
        self._opened[number]

    _fd_sync = _fd_datasync = _fd_fdstat_set_flags = _fd_filestat_set_times = _fd_advise

    def _fd_close(self, number: int) -> None:
        del self._opened[number]

    def _fd_fdstat_get(self, number: int, at: int) -> None:
        opened = self._opened[number]
        flags = APPEND if opened.append else 0
        self.write(at, struct.pack("<BxHxxxxQQ", _type(opened.node), flags, ALL, ALL))

    def _fd_filestat_get(self, number: int, at: int) -> None:
        self._stat(at, self._opened[number].node)

    def _fd_filestat_set_size(self, number: int, size: int) -> None:
        self.tree.resize(self._file(number), size)

    def _fd_prestat_get(self, number: int, at: int) -> None:
        if number != 3:
            raise Refused(Number.BAD_FILE)
        self.write(at, struct.pack("<II", 0, 1))

    def _fd_prestat_dir_name(self, number: int, at: int, length: int) -> None:
        self.write(at, b"/")

    def _fd_read(self, number: int, at: int, count: int, done: int) -> None:
        opened = self._opened[number]
        opened.position += self._fd_pread(number, at, count, opened.position, done)

    def _fd_pread(self, number: int, at: int, count: int, position: int, done: int) -> int:
        file, end = self._file(number, position), position
        for start, size in self._pieces(at, count):
            part = bytes(file.content[end : end + size])
            self.write(start, part)
            end += len(part)
        self._number(done, end - position)
        return end - position

    def _fd_write(self, number: int, at: int, count: int, done: int) -> None:
        opened = self._opened[number]
        if opened.append:
            opened.position = len(self._file(number).content)
        opened.position += self._fd_pwrite(number, at, count, opened.position, done)

    def _fd_pwrite(self, number: int, at: int, count: int, position: int, done: int) -> int:
        file, pieces = self._file(number, position), [*self._pieces(at, count)]
        length = sum(size for _, size in pieces)
        self.tree.resize(file, max(len(file.content), position + length))
        for start, size in pieces:
            file.content[position : position + size] = self.read(start, size)
            position += size
        self._number(done, length)
        return length

    def _fd_seek(self, number: int, offset: int, whence: int, done: int) -> None:
        opened, size = self._opened[number], len(self._file(number).content)
        if not 0 <= whence <= 2 or (at := (0, opened.position, size)[whence] + offset) < 0:
            raise Refused(Number.INVALID)
        opened.position = at
        self._number(done, at, "<Q")

    def _fd_tell(self, number: int, done: int) -> None:
        self._number(done, self._opened[number].position, "<Q")

    def _fd_readdir(self, number: int, at: int, length: int, cookie: int, done: int) -> None:
        folder = self._opened[number].node
        if not isinstance(folder, Folder):
            raise Refused(Number.NO_FOLDER)
        content = b""
        for index, (name, node) in enumerate([*folder.entries.items()]):
            if index >= cookie and len(content) < length:
                label = name.encode(errors="surrogateescape")
                entry = index + 1, self._inode(node), len(label), _type(node)
                content += struct.pack("<QQIBxxx", *entry) + label
        self.write(at, content[:length])
        self._number(done, min(len(content), length))

    # --- Paths ---

    def _path(self, number: int, at: int, length: int) -> str:
        if not 0 <= length <= MAX_PATH:
            raise Refused(Number.TOO_LONG)
        text = self.read(at, length).decode(errors="surrogateescape")
        path = text if text.startswith("/") else f"{self._opened[number].path}/{text}"
        if len(path) > MAX_PATH:
            raise Refused(Number.TOO_LONG)
        return path

    def _inode(self, node: Node) -> int:
        return self._inodes.setdefault(id(node), len(self._inodes) + 1)

    def _stat(self, at: int, node: Node) -> None:
        size = len(node.content) if isinstance(node, File) else 0
        stat = struct.pack("<QQB7xQQQQQ", 1, self._inode(node), _type(node), 1, size, 0, 0, 0)
        self.write(at, stat)

    def _path_open(self, number: int, how: int, at: int, length: int, *more: int) -> None:
        flags, rights, _, mode, done = more
        path = self._path(number, at, length)
        folder, name = self.tree.parent(path)
        node = folder.entries.get(name) if name else folder
        if node is not None and flags & CREATE and flags & EXCLUSIVE:
            raise Refused(Number.EXISTS)
        if len(self._opened) >= self._most:
            raise Refused(Number.MANY_OPEN)
        if node is None:
            if not flags & CREATE:
                raise Refused(Number.MISSING)
            node = File()
            self.tree.make(folder, name, node)
        if isinstance(node, File):
            if flags & DIRECTORY:
                raise Refused(Number.NO_FOLDER)
            if rights & WRITING:
                require_writable(node)
            if flags & TRUNCATE:
                self.tree.resize(node, 0)
        new = next(each for each in range(len(self._opened) + 1) if each not in self._opened)
        self._opened[new] = Opened(node, path, bool(mode & APPEND))
        self._number(done, new)

    def _path_create_directory(self, number: int, at: int, length: int) -> None:
        folder, name = self.tree.parent(self._path(number, at, length))
        if not name or name in folder.entries:
            raise Refused(Number.EXISTS)
        self.tree.make(folder, name, Folder())

    def _path_filestat_get(self, number: int, flags: int, at: int, length: int, to: int) -> None:
        self._stat(to, self.tree.find(self._path(number, at, length)))

    def _path_filestat_set_times(self, number: int, flags: int, at: int, *more: int) -> None:
        """Files have no times, but ``Path.touch`` asks with this whether there is one."""
        self.tree.find(self._path(number, at, more[0]))

    def _path_remove_directory(self, number: int, at: int, length: int) -> None:
        self.tree.remove(self._path(number, at, length), Folder)

    def _path_unlink_file(self, number: int, at: int, length: int) -> None:
        node = self.tree.remove(self._path(number, at, length), File)
        if not any(each.node is node for each in self._opened.values()):
            self.tree.resize(node, 0)  # type: ignore[arg-type]  # gives its room back

    def _path_rename(self, number: int, at: int, length: int, *other: int) -> None:
        source, name = self.tree.parent(self._path(number, at, length))
        target, new = self.tree.parent(self._path(*other))
        if not new or name not in source.entries:
            raise Refused(Number.MISSING)
        require_writable(source)
        require_writable(target)
        target.entries[new] = source.entries.pop(name)


def _type(node: Node) -> int:
    return FOLDER if isinstance(node, Folder) else FILE


def _wait(subscription: bytes) -> float:
    """Return the seconds until an event that is asked about."""
    if subscription[8]:
        return 0.0
    clock, until, _, flags = struct.unpack_from("<I4xQQH", subscription, 16)
    return max(0, until - _now(clock) if flags & 1 else until) / 1e9


def _now(clock: int) -> int:
    return time.time_ns() if clock == 0 else time.monotonic_ns()
