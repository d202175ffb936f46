"""Messages between the grader and the processes that run notebooks: one JSON object a line."""

import json
import socket
import time
from typing import Any

LONGEST = 64 * 2**20
"""No message is longer, in bytes: what one cell may answer at most."""


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

    def send(self, message: dict[str, Any]) -> None:
        """Send one message.

        Raises
        ------
        Gone
            If nobody listens any more.
        """
        try:
            self.end.settimeout(None)
            self.end.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise Gone from error

    def receive(self, seconds: float | None = None) -> dict[str, Any]:
        """Wait for one message.

        Raises
        ------
        TimeoutError
            If none comes within so many seconds.
        Gone
            If the other side ended, or what it sent is too long or no message.
        """
        until = None if seconds is None else time.monotonic() + seconds
        while b"\n" not in self._unread:
            if len(self._unread) > LONGEST:
                raise Gone(f"a message of more than {LONGEST} bytes")
            self._unread += self._more(until)
        line, _, rest = self._unread.partition(b"\n")
        self._unread = bytearray(rest)
        try:
            message = json.loads(line)
        except ValueError as error:
            raise Gone("not a message") from error
        if not isinstance(message, dict):
            raise Gone("not a message")
        return message

    def _more(self, until: float | None) -> bytes:
        left = None if until is None else until - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError
        self.end.settimeout(left)
        try:
            more = self.end.recv(1 << 16)
        except TimeoutError:
            raise
        except OSError as error:
            raise Gone from error
        if not more:
            raise Gone
        return more
