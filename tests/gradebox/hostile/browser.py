"""Look at pages with a browser that reaches no other machine, and see what ran in them."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hang import HANG

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PROGRAM = next(filter(None, map(shutil.which, NAMES)), None)

_FLAGS = ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
_FLAGS.append("--host-resolver-rules=MAP * ~NOTFOUND")

# what waits for the mouse, too
_TOUCH = """() => {
  for (const one of document.querySelectorAll('body *')) {
    for (const kind of ['mouseover', 'focus', 'toggle', 'load', 'error'])
      one.dispatchEvent(new Event(kind));
    if (one.tagName === 'A' && /script:/i.test(one.href)) one.click();
  }
}"""
_RAN = "() => [...document.documentElement.classList].filter(name => name.startsWith('ran-'))"


def ran(pages: list[Path]) -> list[list[str]]:
    """Return for each page the names of the scripts of :mod:`hostile.pages` that ran in it."""
    with ThreadPoolExecutor(1) as thread:  # another test may have left a loop of events here
        return thread.submit(_ran, pages).result()


def _ran(pages: list[Path]) -> list[list[str]]:
    from playwright.sync_api import sync_playwright

    scripts = []
    with sync_playwright() as playwright:
        browser = _launch(playwright)
        for path in pages:
            page = browser.new_page()
            page.set_default_timeout(1000 * HANG)
            page.goto(path.as_uri(), wait_until="load")
            page.evaluate(_TOUCH)
            page.wait_for_timeout(100)
            names = page.evaluate(_RAN)
            scripts.append(sorted(name.removeprefix("ran-") for name in names))
            page.close()
        browser.close()
    return scripts


def look(path: Path, script: str) -> tuple[list[str], Any]:
    """Return what a page asks for without a network, and what a script finds in it."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_look, path, script).result()


def _look(path: Path, script: str) -> tuple[list[str], Any]:
    from playwright.sync_api import sync_playwright

    asked: list[str] = []
    with sync_playwright() as playwright:
        browser = _launch(playwright)
        page = browser.new_context(offline=True).new_page()
        page.set_default_timeout(1000 * HANG)
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri(), wait_until="load")
        result = page.evaluate(script)
        browser.close()
    return [url for url in asked if url != path.as_uri() and not url.startswith("data:")], result


def _launch(playwright: Any) -> Any:
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    flags = [*_FLAGS, *(["--no-sandbox"] if root else [])]
    return playwright.chromium.launch(executable_path=PROGRAM, args=flags, timeout=1000 * HANG)
