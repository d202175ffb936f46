"""Messages between two processes: a line of JSON, and bytes beside it.

Either end may be hostile. Nothing is read beyond the limits below, every message ends its sending
or its reading within a time, and what is no message ends the connection.
"""

import json
import socket
import struct
import time
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

BYTES = 256 * 2**20  # of the texts and arrays of a message
HEADER = 16 * 2**20  # of its line, which takes many times its length as objects
PARTS = 100_000  # binary ones beside the line
# Seconds of wall time after which an end that has not read a message is given up. A process that
# is alive reads at once, since it is sent nothing while it computes; one that stopped does not.
STALLED = 120.0

_HEAD = struct.Struct("!IQ")  # the bytes of the line, and of the parts after it
MAX_MESSAGE = BYTES + HEADER + _HEAD.size  # of a message as a whole


class Gone(Exception):
    """The other end was closed, or sent what is no message."""


class TooLong(ValueError):
    """A message exceeds what the other end would accept; nothing of it was sent."""


class Channel:
    """One end of a connection; ``most`` bytes may come beside the line of a message."""

    def __init__(self, end: socket.socket, most: int = BYTES) -> None:
        self.end, self._most = end, most
        self._unread = bytearray()

    @property
    def has_more(self) -> bool:
        """Whether some of the next message has been read, of which no poll tells."""
        return bool(self._unread)

    def send(self, header: Any, parts: Sequence[bytes] = ()) -> None:
        """Send one message; it may be :class:`TooLong`, or the other end :class:`Gone`."""
        # one piece, for each further one wakes the other end once more
        content = packed(header, parts)
        try:
            # for all of it: an end that reads a little now and then would hold the grader for hours
            self.end.settimeout(STALLED)
            self.end.sendall(content)
        except TimeoutError:
            raise Gone("does not read what it is sent") from None
        except OSError as error:
            raise Gone from error

    def receive(self, seconds: float | None = None) -> tuple[Any, list[bytes]]:
        """Wait for one message; return what was JSON and the parts, or raise :class:`Gone`.

        It raises ``TimeoutError`` after so many seconds, and keeps what came for the next time.
        """
        until = None if seconds is None else time.monotonic() + seconds
        self._fill(_HEAD.size, until)
        # before anything is read: what is announced costs nothing yet
        end = sum(_sizes(self._unread, self._most), _HEAD.size)
        self._fill(end, until)
        content = bytes(self._unread[:end])
        del self._unread[:end]
        return unpacked(content, self._most)

    def _fill(self, size: int, until: float | None) -> None:
        while len(self._unread) < size:
            try:
                # a hostile end may stop in the middle of a message: each wait has the limit
                self.end.settimeout(until and max(0.0, until - time.monotonic()))
                content = self.end.recv(min(max(size - len(self._unread), 1 << 16), 1 << 24))
            except (TimeoutError, BlockingIOError):  # the latter where no time is left
                raise TimeoutError from None
            except OSError as error:
                raise Gone from error
            if not content:
                raise Gone
            self._unread += content


def packed(header: Any, parts: Sequence[bytes] = ()) -> bytes:
    """Return a message as the bytes that are sent; see :meth:`Channel.send`."""
    sizes = [*map(len, parts)]
    line = json.dumps([header, sizes], separators=(",", ":")).encode()
    if len(line) > HEADER or sum(sizes) > BYTES or len(sizes) > PARTS:
        raise TooLong(f"more than {HEADER >> 20} MiB of text or {BYTES >> 20} of arrays")
    return b"".join((_HEAD.pack(len(line), sum(sizes)), line, *parts))


def unpacked(content: bytes, most: int = BYTES) -> tuple[Any, list[bytes]]:
    """Return what was JSON in a message, and the parts; what is none raises :class:`Gone`."""
    try:
        length, rest = _sizes(content, most)
        position = _HEAD.size + length
        header, sizes = json.loads(content[_HEAD.size : position])
        are_sizes = all(type(size) is int and size >= 0 for size in sizes)
        if not are_sizes or len(sizes) > PARTS or not sum(sizes) == rest == len(content) - position:
            raise ValueError
    except (ValueError, TypeError, RecursionError, struct.error) as error:
        raise Gone("sent what is no message") from error
    ends = [*accumulate(sizes, initial=position)]
    return header, [content[start:end] for start, end in pairwise(ends)]


def _sizes(content: bytes | bytearray, most: int) -> tuple[int, int]:
    length, rest = _HEAD.unpack_from(content)
    if length > HEADER or rest > most:
        raise Gone("sent a message that is too long")
    return length, rest
