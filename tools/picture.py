"""Take the picture of an exercise in the page, for the README: ``python -m tools.picture``.

It opens the front page of the built site in Chromium, presses *Run and check*, and waits for the
named mistake. Run ``make book`` first.
"""

import argparse
import functools
import http.server
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from tools.pdf import find_chromium
from tools.terminal import ToolError, console, run

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"
PICTURE = ROOT / "book" / "_static" / "exercise.png"
EXERCISE = "erm-standard-error"
LARGEST = 150_000
"""Bytes that the picture may have."""


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the site without a word."""

    def log_message(self, *args: object) -> None:
        """Say nothing."""


def take(site: Path = SITE, target: Path = PICTURE) -> None:
    """Write the picture.

    Raises
    ------
    ToolError
        When there is no site or no Chromium, or when the picture is too large.
    """
    from playwright.sync_api import sync_playwright

    chromium = find_chromium()
    if not (site / "index.html").is_file() or chromium is None:
        raise ToolError("the picture needs the built site and Chromium", "run make book")
    handler = functools.partial(Handler, directory=str(site))
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        sync_playwright() as playwright,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 900, "height": 1200}, color_scheme="light")
        page.goto(f"http://127.0.0.1:{server.server_port}/book/index.html")
        box = page.locator(f"#exercise-{EXERCISE}")
        box.get_by_role("button", name="Run and check").click()
        box.get_by_text("Likely cause").first.wait_for(timeout=120_000)
        page.evaluate("document.activeElement.blur()")
        box.screenshot(path=target)
        browser.close()
        server.shutdown()
    if target.stat().st_size > LARGEST:
        raise ToolError(f"{target.name} has more than {LARGEST} bytes", "make its window smaller")


def command(arguments: argparse.Namespace) -> None:
    """Take the picture and say how large it is."""
    take()
    console.print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size / 1000:.0f} kB")


def parser() -> argparse.ArgumentParser:
    """Return the command line of this tool."""
    return argparse.ArgumentParser(prog="python -m tools.picture", description=__doc__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
