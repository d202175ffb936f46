"""Hears whoever gets out of the barriers, on this machine only."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Listener:
    """Hears whoever gets out: at a port of this machine, and at an abstract socket."""

    name: str
    heard: list[bytes] = field(default_factory=list)

    @contextlib.contextmanager
    def open(self) -> Iterator[int]:
        with socket.create_server(("127.0.0.1", 0)) as stream, contextlib.ExitStack() as stack:
            port = stream.getsockname()[1]
            packets = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            packets.bind(("127.0.0.1", port))
            abstract = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            abstract.bind(f"\0{self.name}")
            abstract.listen()
            done = threading.Event()
            ends = [stream, packets, abstract]
            threads = [threading.Thread(target=self._hear, args=(e, done)) for e in ends]
            for end, thread in zip(ends, threads, strict=True):
                end.settimeout(0.1)
                thread.start()
            yield port
            done.set()
            for thread in threads:
                thread.join()

    def _hear(self, end: socket.socket, done: threading.Event) -> None:
        while not done.is_set():
            with contextlib.suppress(TimeoutError):
                if end.type == socket.SOCK_DGRAM:
                    self.heard.append(end.recv(100))
                else:
                    came, _ = end.accept()
                    self.heard.append(repr(end).encode())
                    came.close()
