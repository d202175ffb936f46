"""The memory of an instance, and copies of it with which others begin."""

import ctypes
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import wasmtime

from gradebox.values.channel import Gone

PAGE = 2**16
ZERO = bytes(PAGE)
_FIXED = 0x10  # of Linux and macOS: Python has no name for it


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
        self._exported = exported
        self._begin = ctypes.addressof(exported.data_ptr(store).contents)
        self._size = exported.data_len(store)

    def address(self, context: Any, at: int, length: int) -> int:
        """Return where so many bytes of it lie in this process.

        Raises
        ------
        Gone
            If they are not all inside.
        """
        begin = at & 0xFFFFFFFF
        if not 0 <= length <= self._size - begin:
            self._size = self._exported.data_len(context)  # it may have grown
            if not 0 <= length <= self._size - begin:
                raise Gone("used an address outside of its memory")
        return self._begin + begin

    def read(self, context: Any, at: int, length: int) -> bytes:
        """Return so many bytes."""
        return ctypes.string_at(self.address(context, at, length), length)

    def write(self, context: Any, at: int, content: bytes) -> None:
        """Put bytes there."""
        ctypes.memmove(self.address(context, at, len(content)), content, len(content))

    def content(self, store: wasmtime.Store) -> bytes:
        """Return all of it."""
        return self.read(store, 0, self._exported.data_len(store))

    def restore(self, image: "Image", store: wasmtime.Store) -> None:
        """Be as an image says; no turn has been run."""
        self._exported.grow(store, (image.size - self._size) // PAGE)
        start = self.address(store, 0, image.size)
        if image.file is not None:
            _map_copy(start, image.size, image.file)
        for begin, content in image.parts:
            ctypes.memmove(start + begin, content, len(content))


@dataclass(frozen=True)
class Image:
    """An instance between two turns.

    Parameters
    ----------
    size : int
        The size of its memory, in bytes.
    parts : tuple of (int, bytes)
        What differs there from a new one.
    open_files : tuple
        See :meth:`gradebox_wasm.wasi.Wasi.open_files`.
    file : int, optional
        A file that begins with all of the memory, in place of the parts: many instances have it in
        common, and each gets a copy of only what it writes to, when it does. It stays open.
    """

    size: int
    parts: tuple[tuple[int, bytes], ...]
    open_files: tuple[tuple[int, str, int, bool], ...]
    file: int | None = None

    @classmethod
    def of(cls, content: bytes, blank: bytes, open_files: Any) -> "Image":
        """Return what differs in a memory from a new one."""
        before = dict(pages(blank))
        parts = ((at, page) for at, page in pages(content) if page != before.get(at, ZERO))
        return cls(len(content), tuple(parts), open_files)


def pages(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the pages of a memory, each after its address."""
    for begin in range(0, len(content), PAGE):
        yield begin, content[begin : begin + PAGE]


def _map_copy(start: int, size: int, file: int) -> None:
    """Put a copy of a file, made page by page as it is written to, in place of memory."""
    call = ctypes.CDLL(None).mmap
    call.restype = ctypes.c_void_p
    call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *3 * [ctypes.c_int], ctypes.c_long]
    protection, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | _FIXED
    if call(start, size, protection, flags, file, 0) != start:
        raise OSError("the memory of an instance could not be mapped")
