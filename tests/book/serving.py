"""Serve a folder of pages on loopback, as GitHub Pages does, and read the text of its fields."""

import contextlib
import http.server
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

TEXT = """field => field.value
    ?? [...field.querySelectorAll('.cm-line')].map(line => line.textContent).join('\\n')"""
"""The text of an input, of a text area, or of an editor of code."""


class Server:
    """Serves a site below a prefix; it can be stopped, and started at the same address.

    Further pages, by their paths below the prefix, may lie elsewhere.
    """

    def __init__(
        self, site: Path, prefix: str = "/", more: Mapping[str, Path] | None = None
    ) -> None:
        missing = site / "404.html"

        class Handler(http.server.SimpleHTTPRequestHandler):
            if missing.is_file():
                error_message_format = missing.read_text("utf-8").replace("%", "%%")

            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments, directory=str(site))

            def translate_path(self, path: str) -> str:
                name = path.partition("?")[0].removeprefix(prefix)
                if more and name in more:
                    return str(more[name])
                below = path.startswith(prefix)
                return super().translate_path(path[len(prefix) - 1 :] if below else "/outside")

            def log_message(self, *arguments: object) -> None:
                """Say nothing."""

        self.site, self.prefix, self.port, self.handler = site, prefix, 0, Handler
        self.start()

    def start(self) -> None:
        """Begin to answer."""
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), self.handler)
        self.port = self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """Refuse every connection."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def at(self, page: str) -> str:
        """Return the address of a page."""
        return f"http://127.0.0.1:{self.port}{self.prefix}{page}.html"


@contextlib.contextmanager
def served(site: Path, prefix: str = "/", more: Mapping[str, Path] | None = None) -> Iterator[str]:
    """Serve a site for a while; yield the address, without the prefix."""
    server = Server(site, prefix, more)
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.stop()
