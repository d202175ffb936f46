"""The memory of an instance, and copies of it with which others begin."""

import ctypes
import mmap
import os
from collections.abc import Sequence
from typing import Any, BinaryIO

import wasmtime

from gradebox.values.channel import Gone

PAGE = 2**16
_FIXED = 0x10  # of Linux and macOS: Python has no name for it
_MAPS = hasattr(mmap, "MAP_PRIVATE")  # not on Windows


class Image:
    """An instance between two turns.

    Parameters
    ----------
    file : file
        It begins with all of the memory. Many instances have it in common, and each gets a copy of
        only what it writes to, when it does.
    size : int
        The size of the memory, in bytes.
    open_files : sequence
        See :meth:`gradebox_wasm.wasi.Wasi.open_files`.
    """

    def __init__(self, file: BinaryIO, size: int, open_files: Sequence[Any]) -> None:
        self.size, self.open_files = size, open_files
        file.seek(0)
        self._content = b"" if _MAPS else file.read(size)
        self._file = os.dup(file.fileno()) if _MAPS else None

    def __del__(self) -> None:
        if self._file is not None:
            os.close(self._file)

    def put(self, start: int) -> None:
        """Put the memory where it belongs in this process."""
        if not _MAPS:
            ctypes.memmove(start, self._content, self.size)
            return
        call = ctypes.CDLL(None).mmap
        call.restype = ctypes.c_void_p
        call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *3 * [ctypes.c_int], ctypes.c_long]
        protection, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | _FIXED
        if call(start, self.size, protection, flags, self._file, 0) != start:
            raise OSError("the memory of an instance could not be mapped")


class Memory:
    """The memory of an instance.

    It does not move: the room for the largest one is set aside at first.

    Parameters
    ----------
    exported : wasmtime.Memory
        That of the instance.
    store : wasmtime.Store
        The store of the instance.
    """

    def __init__(self, exported: wasmtime.Memory, store: wasmtime.Store) -> None:
        self._exported, self._store = exported, store
        self._begin = ctypes.addressof(exported.data_ptr(store).contents)
        self._size = exported.data_len(store)

    def address(self, at: int, length: int) -> int:
        """Return where so many bytes of it lie in this process.

        Raises
        ------
        Gone
            If they are not all inside.
        """
        begin = at & 0xFFFFFFFF
        if not 0 <= length <= self._size - begin:
            self._size = self._exported.data_len(self._store)  # it may have grown
            if not 0 <= length <= self._size - begin:
                raise Gone("used an address outside of its memory")
        return self._begin + begin

    def read(self, at: int, length: int) -> bytes:
        """Return so many bytes."""
        return ctypes.string_at(self.address(at, length), length)

    def write(self, at: int, content: bytes) -> None:
        """Put bytes there."""
        ctypes.memmove(self.address(at, len(content)), content, len(content))

    def save(self, file: BinaryIO) -> int:
        """Write all of it at the beginning of a file, go there to its end, and return its size."""
        size = self._exported.data_len(self._store)
        for begin in range(0, size, PAGE):
            page = self.read(begin, PAGE)
            if page.count(0) < PAGE:  # the others take no place on the disk
                file.seek(begin)
                file.write(page)
        file.truncate(size)
        file.flush()
        return file.seek(size)

    def restore(self, image: Image) -> None:
        """Be as an image says; no turn has been run."""
        self._exported.grow(self._store, (image.size - self._size) // PAGE)
        image.put(self.address(0, image.size))
