"""Messages between the grader and the processes that run notebooks: one JSON object a line.

A message may bring binary parts: then the line is an envelope that tells their sizes, and the parts
follow it, byte for byte.
"""

import socket
import time
from collections.abc import Callable, Sequence
from json import dumps, loads  # a test may replace those of the module
from typing import Any

LONGEST = 64 * 2**20
"""No message is longer, in bytes: what one cell may answer at most."""

LONGEST_ENVELOPE = 16 * 2**20
"""No line that announces parts is longer, in bytes: as objects it takes many times its length."""

MOST_BYTES = 256 * 2**20
"""The parts of no message are longer together."""

LARGE = 2**20
"""Parts of so many bytes are not copied on their way."""

MOST_PARTS = 100_000
"""No message brings more binary parts."""


class TooLong(ValueError):
    """A message exceeds what the other side would accept; nothing of it was sent."""


class Gone(Exception):
    """The other side ended, or sent something that is no message."""


class Line:
    """One end of a connection.

    Parameters
    ----------
    end : socket
        A connected stream socket.
    """

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self._unread = bytearray()
        self._envelope: tuple[dict[str, Any], list[int]] | None = None
        self._arrived: list[Any] = []
        self._large: tuple[bytearray, int] | None = None

    def send(self, message: dict[str, Any]) -> None:
        """Send one message.

        Raises
        ------
        Gone
            If nobody listens any more.
        """
        try:
            self._wait_at_most(None)
            self.end.sendall(dumps(message).encode() + b"\n")
        except OSError as error:
            raise Gone from error

    def receive(self, seconds: float | None = None) -> dict[str, Any]:
        """Wait for one message.

        Raises
        ------
        TimeoutError
            If none has come whole within so many seconds; what came is kept for the next time.
            Without any seconds it takes what is there already.
        Gone
            If the other side ended, or what it sent is too long or no message.
        """
        return _message(self._line(_until(seconds), LONGEST))

    def send_parts(
        self,
        message: dict[str, Any],
        parts: Sequence[bytes],
        remaining: Callable[[], float] | None = None,
    ) -> None:
        """Send one message with binary parts.

        Parameters
        ----------
        message : dict
            The message.
        parts : sequence of bytes
            What goes with it.
        remaining : callable, optional
            Returns for how many seconds to wait before it is asked again; 0 when there are none.

        Raises
        ------
        TooLong
            If the other side would not accept it. Nothing was sent, and the line is as before.
        TimeoutError
            If the other side has not taken it when none is left; the line is of no use then.
        Gone
            If nobody listens any more.
        """
        sizes = [len(part) for part in parts]
        line = dumps({"message": message, "sizes": sizes}).encode() + b"\n"
        if len(line) > LONGEST_ENVELOPE or sum(sizes) > MOST_BYTES or len(sizes) > MOST_PARTS:
            raise TooLong(
                f"expected at most {LONGEST_ENVELOPE} bytes of text and {MOST_BYTES} bytes in "
                f"{MOST_PARTS} parts, got {len(line)} and {sum(sizes)} in {len(sizes)}; "
                "send less at once"
            )
        try:  # in one piece: each one more would wake the other side once more
            if sum(sizes) < LARGE:
                self._send(b"".join((line, *parts)), remaining)
                return
            for piece in (line, *parts):
                self._send(piece, remaining)
        except TimeoutError:
            raise
        except OSError as error:
            raise Gone from error

    def _send(self, content: Any, remaining: Callable[[], float] | None) -> None:
        if remaining is None:
            self._wait_at_most(None)
            return self.end.sendall(content)
        unsent = memoryview(content)
        while unsent:
            seconds = remaining()
            self.end.settimeout(seconds)
            try:
                unsent = unsent[self.end.send(unsent) :]
            except (TimeoutError, BlockingIOError):
                if seconds <= 0:
                    raise TimeoutError from None
        return None

    def receive_parts(self, seconds: float | None = None) -> tuple[dict[str, Any], list[bytes]]:
        """Wait for one message with its binary parts.

        Raises
        ------
        TimeoutError
            If it has not come whole within so many seconds; what came is kept for the next time.
        Gone
            If the other side ended, or what it sent is too long or no message.
        """
        until = _until(seconds)
        if self._envelope is None:
            self._envelope = self._announced(until)
        message, sizes = self._envelope
        for size in sizes[len(self._arrived) :]:
            part = self._exactly(size, until) if size < LARGE else self._whole(size, until)
            self._arrived.append(part)
        self._envelope, parts = None, self._arrived
        self._arrived = []
        return message, parts

    def _announced(self, until: float | None) -> tuple[dict[str, Any], list[int]]:
        """Return the next message, and the sizes of the parts that follow it."""
        envelope = _message(self._line(until, LONGEST_ENVELOPE))
        message, sizes = envelope.get("message"), envelope.get("sizes")
        if not isinstance(message, dict) or not isinstance(sizes, list):
            raise Gone("not a message")
        if len(sizes) > MOST_PARTS or not all(type(n) is int and n >= 0 for n in sizes):
            raise Gone("not the sizes of parts")
        if sum(sizes) > MOST_BYTES:
            raise Gone(f"parts of more than {MOST_BYTES} bytes")
        return message, sizes

    def _line(self, until: float | None, longest: int) -> bytes:
        searched = 0
        while (end := self._unread.find(b"\n", searched)) < 0:
            searched = len(self._unread)
            if searched > longest:
                raise Gone(f"a message of more than {longest} bytes")
            self._unread += self._more(until)
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return line

    def _exactly(self, size: int, until: float | None) -> bytes:
        while (missing := size - len(self._unread)) > 0:
            self._unread += self._more(until, missing)
        part = bytes(self._unread[:size])
        del self._unread[:size]
        return part

    def _whole(self, size: int, until: float | None) -> bytearray:
        """Receive a large part into its place, without a copy."""
        if self._large is None:
            buffer = bytearray(size)
            filled = min(size, len(self._unread))
            buffer[:filled] = self._unread[:filled]
            del self._unread[:filled]
            self._large = buffer, filled
        buffer, filled = self._large
        with memoryview(buffer) as view:
            while filled < size:
                self._wait_at_most(_remaining(until))
                try:
                    received = self.end.recv_into(view[filled:])
                except (TimeoutError, BlockingIOError):
                    raise TimeoutError from None
                except OSError as error:
                    raise Gone from error
                if not received:
                    raise Gone
                filled += received
                self._large = buffer, filled
        self._large = None
        return buffer

    def _more(self, until: float | None, missing: int = 0) -> bytes:
        self._wait_at_most(_remaining(until))
        try:
            more = self.end.recv(min(max(missing, 1 << 16), 1 << 22))
        except (TimeoutError, BlockingIOError):
            raise TimeoutError from None
        except OSError as error:
            raise Gone from error
        if not more:
            raise Gone
        return more

    def _wait_at_most(self, seconds: float | None) -> None:
        if seconds is not None or self.end.gettimeout() is not None:  # it is a call of the system
            self.end.settimeout(seconds)


def _until(seconds: float | None) -> float | None:
    return None if seconds is None else time.monotonic() + seconds


def _remaining(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - time.monotonic())


def _message(line: bytes) -> dict[str, Any]:
    try:
        message = loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise Gone("not a message") from error
    if not isinstance(message, dict):
        raise Gone("not a message")
    return message
