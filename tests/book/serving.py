"""Serve a folder of pages on loopback, as GitHub Pages does, read its fields, and search in it."""

import contextlib
import http.server
import threading
from pathlib import Path
from typing import Any, Self

TEXT = """field => field.value
    ?? [...field.querySelectorAll('.cm-line')].map(line => line.textContent).join('\\n')"""
"""The text of an input, of a text area, or of an editor of code."""
SHIFT = """window.shift = 0;
new PerformanceObserver((list) => list.getEntries().forEach((entry) => (shift += entry.value)))
    .observe({ type: "layout-shift", buffered: true });"""
"""Counts how far what is seen moves, by itself, on a page."""
SAME = """([expression, value]) => {
  try {
    return JSON.stringify(eval(expression) ?? null) === JSON.stringify(value);
  } catch {
    return false;  // a part is not there yet
  }
}"""


class Server:
    """Serves a site below a prefix for a while; it can stop, and start at the same address."""

    def __init__(self, site: Path, prefix: str = "/", seconds: int = 0) -> None:
        missing, more = site / "404.html", {}

        class Handler(http.server.SimpleHTTPRequestHandler):
            if missing.is_file():
                error_message_format = missing.read_text("utf-8").replace("%", "%%")

            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments, directory=str(site))

            def translate_path(self, path: str) -> str:
                name = path.partition("?")[0].removeprefix(prefix)
                if name in more:
                    return str(more[name])
                below = path.startswith(prefix)
                return super().translate_path(path[len(prefix) - 1 :] if below else "/outside")

            def end_headers(self) -> None:
                if seconds:  # for which a browser keeps a file without asking
                    self.send_header("Cache-Control", f"max-age={seconds}")
                super().end_headers()

            def log_message(self, *arguments: object) -> None:
                """Say nothing."""

        self.site, self.prefix, self.port, self.handler = site, prefix, 0, Handler
        self.more: dict[str, Path] = more
        """Further pages, by their paths below the prefix, which lie elsewhere."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), self.handler)
        self.port = self.server.server_port
        self.address = f"http://127.0.0.1:{self.port}{self.prefix}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def at(self, page: str) -> str:
        return f"{self.address}{page}.html"


def play(page: Any, *rows: tuple[str, str, Any]) -> None:
    """Do what each row says, and wait until an expression of the page has its value.

    An action is the name of a method of the page and its argument, as ``click h1``; or ``press``
    with keys, ``type`` with a text, ``enter`` with what the key Enter presses. Where it is empty,
    nothing is done.
    """
    for action, expression, expected in rows:
        verb, _, what = action.partition(" ")
        if verb == "press":
            for key in what.split():
                page.keyboard.press(key)
        elif verb == "enter":
            page.locator(what).first.press("Enter")
        elif verb:
            act = page.keyboard.type if verb == "type" else getattr(page, verb)
            act(*[what] * bool(what))
        with contextlib.suppress(Exception):  # what is there instead is told below
            page.wait_for_function(SAME, arg=[expression, expected])
        assert page.evaluate(expression) == expected, f"after {action}: {expression}"


def results(page: Any, query: str) -> tuple[str, list[tuple[str, str]]]:
    """Search as a person does, by keys; return the message, the addresses and the titles."""
    page.keyboard.press("Control+k")
    page.keyboard.press("Control+a")
    page.keyboard.type(query)
    page.keyboard.press("Enter")
    page.wait_for_function(
        """query => new URLSearchParams(location.search).get("q") === query
          && /found/.test(document.querySelector("#search-results > p")?.textContent)""",
        arg=query,
    )
    links = page.eval_on_selector_all("#search-results li a", "a => a.map(a => [a.href, a.text])")
    message = page.inner_text("#search-results > p")
    return message, [(href.split("/book/")[1], title.split(" › ")[-1]) for href, title in links]
