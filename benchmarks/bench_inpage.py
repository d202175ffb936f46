"""What an exercise on a page costs: bytes, seconds and memory, in Chromium on loopback.

Run it alone, on a quiet machine, after ``make book``::

    python -m benchmarks.bench_inpage

It opens the page of exercises of a topic in a new browser, presses the button, writes the solution
and runs it. It does the same once more in the same browser, whose store has Python by then. Each
figure is the median of some rounds.
"""

import argparse
import functools
import gzip
import http.server
import json
import re
import statistics
import threading
import time
from typing import Any

import psutil
from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.table import Table

from tools.classroom import sample_class
from tools.layout import ROOT, Course
from tools.site import pdf

SITE = ROOT / "_build" / "html"
CHECKS = 20


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the site without a word."""

    def log_message(self, *args: object) -> None:
        """Say nothing."""


def visit(page: Any, address: str, cell: str, source: str) -> float:
    """Open a page, solve an exercise; return the seconds from the first press to the ✓."""
    page.goto(address, wait_until="networkidle")
    box = page.locator(f"#cell-{cell}")
    opener = box.get_by_role("button", name=re.compile("here$"))
    opener.wait_for()
    begin = time.perf_counter()
    opener.click()
    box.locator(".exercise-editor").wait_for()
    page.wait_for_function("document.activeElement.closest('.exercise-editor')")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(source)
    page.keyboard.press("Control+Enter")
    box.get_by_text("✓ Your answer agrees").wait_for(timeout=120_000)
    return time.perf_counter() - begin


def check(page: Any, cell: str) -> float:
    """Return the milliseconds from a press of *Run and check* to its answer, in the page."""
    script = """async (cell) => {
        const box = document.getElementById(`cell-${cell}`);
        const button = box.querySelector(".exercise-run");
        const begin = performance.now();
        button.click();
        while (button.disabled) await new Promise((done) => setTimeout(done, 0));
        return performance.now() - begin;
    }"""
    return statistics.median(page.evaluate(script, cell) for _ in range(CHECKS))


def weight(page: str) -> tuple[float, float]:
    """Return the kB that a page has for its exercises before a reader is near: text, scripts."""
    text = (SITE / page).read_text(encoding="utf-8")
    boxes = re.sub(
        r'<div class="exercise (?:try )?docutils container".*?</noscript>\s*</div>',
        "",
        text,
        flags=re.S,
    )
    scripts = ["start.js", "exercise.css"]
    static = SITE / "_static" / "python"
    sizes = [len(gzip.compress((static / name).read_bytes())) for name in scripts]
    return (len(gzip.compress(text.encode())) - len(gzip.compress(boxes.encode()))) / 1e3, sum(
        sizes
    ) / 1e3


def measure(topic: str, rounds: int) -> dict[str, float]:
    """Return the medians of some rounds for the first exercise of a topic."""
    cell, source = next(iter(sample_class.sheet(Course(ROOT), topic).right.items()))
    handler = functools.partial(Handler, directory=str(SITE))
    first, second, checks, sizes = [], [], [], []
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        sync_playwright() as playwright,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/book/exercises/{topic}.html"
        for _ in range(rounds):
            known = set(psutil.pids())
            browser = playwright.chromium.launch(
                executable_path=pdf.find_chromium(), args=["--no-sandbox"]
            )
            context = browser.new_context()
            page = context.new_page()
            first.append(visit(page, address, cell, source))
            page.close()
            page = context.new_page()
            page.goto(address)
            page.evaluate("localStorage.clear()")
            second.append(visit(page, address, cell, source))
            checks.append(check(page, cell))
            started = [psutil.Process(pid) for pid in set(psutil.pids()) - known]
            sizes.append(max(process.memory_full_info().uss for process in started) / 1e6)
            browser.close()
        server.shutdown()
    parts = json.loads((SITE / "_static" / "python" / "parts.json").read_text(encoding="utf-8"))
    parts = {name: part["bytes"] for name, part in parts.items()}
    plots = parts.pop("plots", 0)
    editor = len(gzip.compress((SITE / "_static" / "python" / "editor.js").read_bytes()))
    lessons = (SITE / "book" / topic).glob("*.html")
    heaviest = max(sum(weight(str(lesson.relative_to(SITE)))) for lesson in lessons)
    return {
        "first press, MB": (sum(parts.values()) + editor) / 1e6,
        "first figure, MB": plots / 1e6,
        "press to ✓, s": statistics.median(first),
        "second visit, s": statistics.median(second),
        "a check, ms": statistics.median(checks),
        "memory of the page, MB": statistics.median(sizes),
        "heaviest lesson before the press, kB": heaviest,
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("topics", nargs="*", default=["erm", "optimizers", "bnp"])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    results = {topic: measure(topic, arguments.rounds) for topic in arguments.topics}
    table = Table("", *results)
    for name in next(iter(results.values())):
        table.add_row(name, *(f"{result[name]:.1f}" for result in results.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
