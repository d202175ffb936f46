"""The system calls of WASI preview 1, on files in memory.

A Python that is compiled to WebAssembly asks its host for files, the time and random numbers. There
is no network, no process, and no file but those of the tree. A call answers with the number of an
error, or 0. An address outside the memory ends the instance. Numbers of 32 bits come with a sign.
"""

import os
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from gradebox_wasm.files import File, Folder, Full, Node, Tree, writable

SUCCESS, DENIED, BAD_FILE, EXISTS, INVALID, IS_FOLDER, LONG = 0, 2, 8, 20, 28, 31, 37
MANY_OPEN, MISSING, NO_SPACE, UNKNOWN, NO_FOLDER, NOT_EMPTY, NO_SEEK = 33, 44, 51, 52, 54, 55, 70
CHARACTERS, FOLDER, FILE = 2, 3, 4
CREATE, DIRECTORY, EXCLUSIVE, TRUNCATE, APPEND = 1, 2, 4, 8, 1
WRITING = 2**6
"""The right to write to what is opened."""
MOST_PIECES, LONGEST, SAID, CHUNK = 1024, 4096, 2000, 2**16
"""So many pieces are written at once, so long may a path be, so much is kept of what is said."""

CALLS = {
    "args_get": "ii",
    "args_sizes_get": "ii",
    "environ_get": "ii",
    "environ_sizes_get": "ii",
    "clock_res_get": "ii",
    "clock_time_get": "ili",
    "fd_advise": "illi",
    "fd_close": "i",
    "fd_datasync": "i",
    "fd_fdstat_get": "ii",
    "fd_fdstat_set_flags": "ii",
    "fd_filestat_get": "ii",
    "fd_filestat_set_size": "il",
    "fd_filestat_set_times": "illi",
    "fd_pread": "iiili",
    "fd_prestat_get": "ii",
    "fd_prestat_dir_name": "iii",
    "fd_pwrite": "iiili",
    "fd_read": "iiii",
    "fd_readdir": "iiili",
    "fd_seek": "ilii",
    "fd_sync": "i",
    "fd_tell": "ii",
    "fd_write": "iiii",
    "path_create_directory": "iii",
    "path_filestat_get": "iiiii",
    "path_filestat_set_times": "iiiilli",
    "path_link": "iiiiiii",
    "path_open": "iiiiillii",
    "path_readlink": "iiiiii",
    "path_remove_directory": "iii",
    "path_rename": "iiiiii",
    "path_symlink": "iiiii",
    "path_unlink_file": "iii",
    "poll_oneoff": "iiii",
    "proc_exit": "i",
    "random_get": "ii",
    "sched_yield": "",
    "sock_accept": "iii",
    "sock_recv": "iiiiii",
    "sock_send": "iiiii",
    "sock_shutdown": "ii",
}
"""The calls that the interpreter imports, with the kinds of their arguments: 32 or 64 bits."""


class Exit(Exception):
    """The program has called exit."""


class TooLong(Exception):
    """A path, or what is asked for, is too long."""


class Opened:
    """An open file or folder."""

    def __init__(self, node: Node | None, path: str, append: bool = False) -> None:
        self.node, self.path, self.append, self.position = node, path, append, 0

    @property
    def type(self) -> int:
        """The kind of file, as WASI numbers them."""
        return _type(self.node)


class Wasi:
    """The system calls of one instance.

    Parameters
    ----------
    tree : Tree
        Its files.
    environment : sequence of str
        Its variables, ``NAME=value``.
    most : int
        So many files may be open.
    read, write : callable
        Read so many bytes at an address of the memory; write bytes there.
    sleep : callable
        Is given seconds to wait.
    """

    def __init__(
        self,
        tree: Tree,
        environment: Sequence[str],
        most: int,
        read: Callable[[int, int], bytes],
        write: Callable[[int, bytes], None],
        sleep: Callable[[float], None],
    ) -> None:
        self.tree, self._sleep = tree, sleep
        self.read, self.write = read, write
        self._lists = {"args": ["python"], "environ": [*environment]}
        self._opened = {number: Opened(None, "") for number in range(3)}
        self._opened[3] = Opened(tree.root, "/")
        self._most, self._numbers = most + 4, dict[int, int]()
        self.said = b""
        """The end of what Python itself has printed, such as why it ended."""

    def open_files(self) -> tuple[tuple[int, str, int, bool], ...]:
        """Return the number, path and position of each open file, and whether it is added to."""
        return tuple(
            (number, opened.path, opened.position, opened.append)
            for number, opened in self._opened.items()
            if number > 3
        )

    def reopen(self, files: Iterable[tuple[int, str, int, bool]]) -> None:
        """Open the files that another instance had open, under the same numbers."""
        for number, path, position, append in files:
            opened = self._opened[number] = Opened(self.tree.find(path), path, append)
            opened.position = position

    def call(self, name: str, *arguments: int) -> int:
        """Answer a call."""
        try:
            function = getattr(self, f"_{name}", None)
            answer = UNKNOWN if function is None else function(*arguments)
            return SUCCESS if answer is None else int(answer)
        except KeyError:
            return BAD_FILE
        except IsADirectoryError:
            return IS_FOLDER
        except PermissionError:
            return DENIED
        except Full:
            return NO_SPACE
        except TooLong:
            return LONG
        except (ValueError, OverflowError):
            return INVALID

    # --- Memory ---

    def _number(self, at: int, value: int, kind: str = "<I") -> None:
        self.write(at, struct.pack(kind, value))

    def _text(self, at: int, length: int) -> str:
        if not 0 <= length <= LONGEST:
            raise TooLong
        return self.read(at, length).decode(errors="surrogateescape")

    def _pieces(self, at: int, count: int) -> Iterator[tuple[int, int]]:
        if not 0 <= count <= MOST_PIECES:
            raise PermissionError
        return struct.iter_unpack("<II", self.read(at, 8 * count))

    # --- Arguments and variables ---

    def _args_get(self, pointers: int, at: int) -> None:
        self._strings("args", pointers, at)

    def _args_sizes_get(self, count: int, length: int) -> None:
        self._sizes("args", count, length)

    def _environ_get(self, pointers: int, at: int) -> None:
        self._strings("environ", pointers, at)

    def _environ_sizes_get(self, count: int, length: int) -> None:
        self._sizes("environ", count, length)

    def _strings(self, name: str, pointers: int, at: int) -> None:
        for text in self._lists[name]:
            content = text.encode() + b"\0"
            self._number(pointers, at)
            self.write(at, content)
            pointers, at = pointers + 4, at + len(content)

    def _sizes(self, name: str, count: int, length: int) -> None:
        texts = self._lists[name]
        self._number(count, len(texts))
        self._number(length, sum(len(text.encode()) + 1 for text in texts))

    # --- Time and chance ---

    def _clock_res_get(self, clock: int, at: int) -> None:
        self._number(at, 1000, "<Q")

    def _clock_time_get(self, clock: int, precision: int, at: int) -> None:
        self._number(at, _now(clock), "<Q")

    def _random_get(self, at: int, length: int) -> None:
        if not 0 <= length <= CHUNK:
            raise TooLong
        self.write(at, os.urandom(length))

    def _sched_yield(self) -> None:
        """Nothing else runs."""

    def _proc_exit(self, code: int) -> None:
        raise Exit(f"ended with status {code}")

    def _poll_oneoff(self, asked: int, events: int, count: int, many: int) -> int | None:
        """Wait for the first of some events; but for time, all that is asked about is ready."""
        if not 0 < count <= MOST_PIECES:
            return INVALID
        table, waits = self.read(asked, 48 * count), []
        for place in range(0, 48 * count, 48):
            user, kind = table[place : place + 8], table[place + 8]
            seconds = 0.0
            if kind == 0:
                clock, until, _, flags = struct.unpack_from("<I4xQQH", table, place + 16)
                seconds = max(0, until - _now(clock) if flags & 1 else until) / 1e9
            waits.append((seconds, user + struct.pack("<HB", 0, kind)))
        seconds, event = min(waits, key=lambda wait: wait[0])
        self._sleep(seconds)
        self.write(events, event.ljust(32, b"\0"))
        self._number(many, 1)
        return None

    # --- Open files ---

    def _file(self, number: int) -> File:
        node = self._opened[number].node
        if isinstance(node, Folder):
            raise IsADirectoryError
        if node is None:
            raise PermissionError
        return node

    def _fd_advise(self, number: int, *arguments: int) -> None:
        self._opened[number]

    _fd_sync = _fd_datasync = _fd_fdstat_set_flags = _fd_filestat_set_times = _fd_advise

    def _fd_close(self, number: int) -> None:
        del self._opened[number]

    def _fd_fdstat_get(self, number: int, at: int) -> None:
        opened = self._opened[number]
        every = 2**64 - 1
        flags = APPEND if opened.append else 0
        self.write(at, struct.pack("<BxHxxxxQQ", opened.type, flags, every, every))

    def _fd_filestat_get(self, number: int, at: int) -> None:
        self._stat(at, self._opened[number].node)

    def _fd_filestat_set_size(self, number: int, size: int) -> int | None:
        if size < 0:
            return INVALID
        self.tree.resize(self._file(number), size)
        return None

    def _fd_prestat_get(self, number: int, at: int) -> int | None:
        if number != 3:
            return BAD_FILE
        self.write(at, struct.pack("<II", 0, 1))
        return None

    def _fd_prestat_dir_name(self, number: int, at: int, length: int) -> None:
        self.write(at, b"/")

    def _fd_read(self, number: int, at: int, count: int, done: int) -> None:
        opened = self._opened[number]
        if opened.node is None:  # nobody writes on standard input
            self._number(done, 0)
            return
        opened.position += self._into(self._file(number), opened.position, at, count, done)

    def _fd_pread(self, number: int, at: int, count: int, offset: int, done: int) -> None:
        self._into(self._file(number), offset, at, count, done)

    def _into(self, file: File, position: int, at: int, count: int, done: int) -> int:
        if position < 0:
            raise PermissionError
        begin = position
        for start, length in self._pieces(at, count):
            part = bytes(file.content[position : position + length])
            self.write(start, part)
            position += len(part)
            if len(part) < length:
                break
        self._number(done, position - begin)
        return position - begin

    def _fd_write(self, number: int, at: int, count: int, done: int) -> None:
        opened = self._opened[number]
        if opened.node is None:  # what cells print is gathered elsewhere
            pieces = [*self._pieces(at, count)]
            said = b"".join(self.read(start, min(size, SAID)) for start, size in pieces)
            self.said = (self.said + said)[-SAID:]
            self._number(done, sum(size for _, size in pieces))
            return
        file = self._file(number)
        position = len(file.content) if opened.append else opened.position
        opened.position = position + self._from(file, position, at, count, done)

    def _fd_pwrite(self, number: int, at: int, count: int, offset: int, done: int) -> None:
        self._from(self._file(number), offset, at, count, done)

    def _from(self, file: File, position: int, at: int, count: int, done: int) -> int:
        if position < 0:
            raise PermissionError
        pieces = [*self._pieces(at, count)]
        length = sum(size for _, size in pieces)
        writable(file)
        if position < 0:
            raise ValueError
        if position + length > len(file.content):
            self.tree.resize(file, position + length)
        for start, size in pieces:
            file.content[position : position + size] = self.read(start, size)
            position += size
        self._number(done, length)
        return length

    def _fd_seek(self, number: int, offset: int, whence: int, done: int) -> int | None:
        opened = self._opened[number]
        if opened.node is None:
            return NO_SEEK
        size = len(self._file(number).content)
        if not 0 <= whence <= 2 or (at := (0, opened.position, size)[whence] + offset) < 0:
            return INVALID
        opened.position = at
        self._number(done, at, "<Q")
        return None

    def _fd_tell(self, number: int, done: int) -> None:
        self._number(done, self._opened[number].position, "<Q")

    def _fd_readdir(self, number: int, at: int, length: int, cookie: int, done: int) -> int | None:
        folder = self._opened[number].node
        if not isinstance(folder, Folder):
            return NO_FOLDER
        content = b""
        for index, (name, node) in enumerate([*folder.entries.items()]):
            if index >= cookie and len(content) < length:
                label = name.encode(errors="surrogateescape")
                entry = struct.pack(
                    "<QQIBxxx", index + 1, self._inode(node), len(label), _type(node)
                )
                content += entry + label
        self.write(at, content[:length])
        self._number(done, min(len(content), length))
        return None

    # --- Paths ---

    def _path(self, number: int, at: int, length: int) -> str:
        text = self._text(at, length)
        path = text if text.startswith("/") else f"{self._opened[number].path}/{text}"
        if len(path) > LONGEST:
            raise TooLong
        return path

    def _inode(self, node: Node | None) -> int:
        return self._numbers.setdefault(id(node), len(self._numbers) + 1)

    def _stat(self, at: int, node: Node | None) -> None:
        size = len(node.content) if isinstance(node, File) else 0
        stat = struct.pack("<QQB7xQQQQQ", 1, self._inode(node), _type(node), 1, size, 0, 0, 0)
        self.write(at, stat)

    def _path_open(
        self,
        number: int,
        how: int,
        at: int,
        length: int,
        flags: int,
        rights: int,
        inherited: int,
        mode: int,
        done: int,
    ) -> int | None:
        path = self._path(number, at, length)
        folder, name = self.tree.parent(path)
        if folder is None:
            return MISSING
        node: Node | None = folder.entries.get(name) if name else folder
        if node is not None and flags & CREATE and flags & EXCLUSIVE:
            return EXISTS
        if len(self._opened) >= self._most:
            return MANY_OPEN
        if node is None:
            if not flags & CREATE:
                return MISSING
            node = File()
            self.tree.make(folder, name, node)
        if flags & DIRECTORY and not isinstance(node, Folder):
            return NO_FOLDER
        if rights & WRITING and isinstance(node, File):
            writable(node)
        if isinstance(node, File) and flags & TRUNCATE:
            self.tree.resize(node, 0)
        new = next(each for each in range(len(self._opened) + 1) if each not in self._opened)
        self._opened[new] = Opened(node, path, bool(mode & APPEND))
        self._number(done, new)
        return None

    def _path_create_directory(self, number: int, at: int, length: int) -> int | None:
        folder, name = self.tree.parent(self._path(number, at, length))
        if folder is None:
            return MISSING
        if not name or name in folder.entries:
            return EXISTS
        self.tree.make(folder, name, Folder())
        return None

    def _path_filestat_get(
        self, number: int, flags: int, at: int, length: int, to: int
    ) -> int | None:
        node = self.tree.find(self._path(number, at, length))
        if node is None:
            return MISSING
        self._stat(to, node)
        return None

    def _path_filestat_set_times(
        self, number: int, flags: int, at: int, length: int, *times: int
    ) -> int | None:
        """Files have no times, but ``Path.touch`` asks with this whether there is one."""
        return MISSING if self.tree.find(self._path(number, at, length)) is None else None

    def _path_link(self, *arguments: int) -> int:
        return DENIED

    _path_symlink = _path_link

    def _path_readlink(self, *arguments: int) -> int:
        return INVALID

    def _path_remove_directory(self, number: int, at: int, length: int) -> int | None:
        return self._remove(self._path(number, at, length), Folder)

    def _path_unlink_file(self, number: int, at: int, length: int) -> int | None:
        return self._remove(self._path(number, at, length), File)

    def _remove(self, path: str, kind: type) -> int | None:
        folder, name = self.tree.parent(path)
        node = None if folder is None else folder.entries.get(name)
        if folder is None or node is None:
            return MISSING
        if not isinstance(node, kind):
            return IS_FOLDER if isinstance(node, Folder) else NO_FOLDER
        if isinstance(node, Folder) and node.entries:
            return NOT_EMPTY
        writable(folder)
        if isinstance(node, File) and not any(each.node is node for each in self._opened.values()):
            self.tree.resize(node, 0)  # gives its room back
        del folder.entries[name]
        return None

    def _path_rename(
        self, number: int, at: int, length: int, to: int, other: int, size: int
    ) -> int | None:
        source, name = self.tree.parent(self._path(number, at, length))
        target, new = self.tree.parent(self._path(to, other, size))
        if source is None or target is None or not new or name not in source.entries:
            return MISSING
        writable(source)
        writable(target)
        target.entries[new] = source.entries.pop(name)
        return None


def _type(node: Node | None) -> int:
    if node is None:
        return CHARACTERS
    return FOLDER if isinstance(node, Folder) else FILE


def _now(clock: int) -> int:
    return time.time_ns() if clock == 0 else time.monotonic_ns()


__all__ = ["CALLS", "Exit", "Wasi"]
