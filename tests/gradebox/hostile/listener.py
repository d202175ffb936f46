"""Hears whoever gets out of the barriers, on this machine only."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from select import select
from typing import Any


class Listener:
    """Hears whoever gets out: at a port of this machine, and at an abstract socket."""

    def __init__(self, name: str) -> None:
        self.name, self.heard, self._over = name, list[str](), False

    @contextlib.contextmanager
    def open(self) -> Iterator[int]:
        with (
            socket.create_server(("127.0.0.1", 0)) as stream,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as packets,
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as abstract,
        ):
            port = stream.getsockname()[1]
            packets.bind(("127.0.0.1", port))
            abstract.bind(f"\0{self.name}")
            abstract.listen()
            thread = threading.Thread(target=self._hear, args=(stream, abstract, packets))
            thread.start()
            yield port
            self._over = True
            thread.join()

    def _hear(self, *ends: Any) -> None:
        while not self._over:
            for end in select(ends, (), (), 0.1)[0]:
                self.heard.append(str(end))
                if end.type == socket.SOCK_DGRAM:
                    end.recv(100)
                else:
                    end.accept()[0].close()
