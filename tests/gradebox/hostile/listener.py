"""Hears whoever gets out of the barriers, on this machine only."""

import contextlib
import socketserver
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor


@contextlib.contextmanager
def listening(name: str) -> Iterator[tuple[int, list[str]]]:
    """Listen at a port of this machine and at an abstract socket; yield the port, and who came."""
    heard: list[str] = []

    class Hears(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            heard.append(str(self.server.server_address))

    with socketserver.TCPServer(("127.0.0.1", 0), Hears) as stream:
        address = stream.server_address
        with (
            socketserver.UDPServer(address, Hears) as packets,
            socketserver.UnixStreamServer(f"\0{name}", Hears) as abstract,
            ThreadPoolExecutor(3) as threads,
        ):
            servers = stream, packets, abstract
            try:
                for server in servers:
                    threads.submit(server.serve_forever, 0.1)
                yield address[1], heard
            finally:
                for server in servers:
                    server.shutdown()
