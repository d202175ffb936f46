"""How long the course's own commands take, beside what they may take.

``python -m benchmarks.bench_budget [PART ...]`` clones the repository into a temporary folder and
runs commands there, as a stranger would: ``make course``, with the installation, then ``make test``
are the part ``course``; the builds of the book, with the packages of this environment, the part
``book``. The budget holds for two quiet processors; nothing fails when a figure is above it.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tools.site import pages

ROOT = Path(__file__).resolve().parent.parent
LESSON = "erm-risk"
"""The page in which a word is changed."""

Row = tuple[str, float, float]
"""What was measured, the seconds that it took, and the budget in seconds."""


class Clone:
    """A fresh clone of the repository, in which commands are timed.

    Parameters
    ----------
    root : Path
        The folder of the clone.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(root)], check=True)

    def time(self, *command: str) -> float:
        """Run a command; return the seconds until it has ended."""
        path = os.pathsep.join([str(self.root / "src"), str(self.root)])
        log = self.root.parent / f"{time.monotonic_ns()}.log"
        start = time.monotonic()
        with log.open("w") as output:
            done = subprocess.run(
                command,
                cwd=self.root,
                env=os.environ | {"PYTHONPATH": path},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        seconds = time.monotonic() - start
        if done.returncode:
            print(f"{' '.join(command)} exited with {done.returncode}; its last lines:")
            print("\n".join(log.read_text(errors="replace").splitlines()[-15:]))
        return seconds

    def processor_seconds(self) -> dict[str, float]:
        """Return the processor time of each page's last execution."""
        store, found = pages.Store(self.root), {}
        for page in pages.find(self.root):
            if kept := store.load(page):
                found[page.name] = sum(kept.seconds)
        return found


def book(clone: Clone) -> Iterator[Row]:
    """Time the builds of the book."""
    build = (sys.executable, "-m", "tools.site.book")
    yield "the book from clean", clone.time(*build), 100
    of_page = clone.processor_seconds()
    for name, seconds in sorted(of_page.items(), key=lambda item: -item[1]):
        yield f"  processor time of {name}", seconds, 6
    yield "no change", clone.time(*build), 2
    page = clone.root / "book" / f"{LESSON.replace('-', '/')}.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("```{cards}", "One sentence more.\n\n```{cards}"))
    # the page itself is executed again only when its code has changed
    yield f"a sentence more in {LESSON}", clone.time(*build), 10
    page.write_text(f"{text}\n```{{code-cell}}\n:tags: [remove-cell]\nassert True\n```\n")
    budget = 10 + of_page.get(LESSON, 0.0)
    yield f"a line of code more in {LESSON}", clone.time(*build), budget
    page.write_text(text)


def course(clone: Clone) -> Iterator[Row]:
    """Time the README's two commands, and the first of them with nothing to be done."""
    yield "make course, with the installation", clone.time("make", "course"), 240
    yield "make course, again", clone.time("make", "course"), 10
    yield "make test", clone.time("make", "test"), 540


PARTS = {"book": book, "course": course}


def main(arguments: Sequence[str] | None = None) -> None:
    """Time the parts named, each in a clone of its own, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_budget", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    chosen = parser.parse_args(arguments).parts or list(PARTS)
    if unknown := set(chosen) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    table = Table("what", "seconds", "budget", "", box=None)
    for name in chosen:
        with tempfile.TemporaryDirectory(prefix="budget-") as folder:
            for what, seconds, budget in PARTS[name](Clone(Path(folder, "course"))):
                print(f"{what}: {seconds:.1f} s", flush=True)
                table.add_row(what, f"{seconds:.1f}", f"{budget:.0f}", "above" * (seconds > budget))
    Console(highlight=False).print(table)


if __name__ == "__main__":
    main()
