"""Build the site strictly: a warning, a broken link or a raising cell is an error.

Run as ``python -m tools.book``; with ``--clean`` everything is made anew.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Pages show what this code computes; notebooks are cached by their own text alone.
CODE = ("src/optdl", "book/_ext", "book/_static", "_config.yml", "requirements.txt")
# A kernel is told five free ports and binds them a second later. Where another process has taken
# one by then, it dies before any cell has run, with these words; a fresh start mends it.
KERNEL_NOT_STARTED = "Kernel died before replying to kernel_info"
KERNEL_STARTS = 3


class BookError(RuntimeError):
    """The site could not be built; the message holds the end of the build's own output."""


def build(
    out: Path = ROOT, clean: bool = False, progress: Callable[[str], None] = lambda line: None
) -> Path:
    """Build the site below ``out`` and return the folder of its pages.

    A build after a failure, or after a change of the code that pages run, starts from
    clean: an incremental one would not see what is wrong. ``progress`` is called with
    each line that the build prints.

    Raises
    ------
    BookError
        When the build fails or warns.
    """
    target = out / "_build"
    stamp = target / "code.sha256"
    digest = _digest()
    if clean or not stamp.exists() or stamp.read_text() != digest:
        shutil.rmtree(target, ignore_errors=True)
    stamp.unlink(missing_ok=True)
    _run_jupyter_book(out, progress)
    stamp.write_text(digest)
    return target / "html"


def _digest() -> str:
    """Return one checksum of all the code that the pages depend on."""
    total = hashlib.sha256()
    for name in CODE:
        path = ROOT / name
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                total.update(file.relative_to(ROOT).as_posix().encode() + file.read_bytes())
    return total.hexdigest()


def _run_jupyter_book(out: Path, progress: Callable[[str], None]) -> None:
    for _ in range(KERNEL_STARTS):
        status, lines = _jupyter_book(out, progress)
        if not status or not any(KERNEL_NOT_STARTED in line for line in lines):
            break
        # The pages that were read already would not be checked again.
        shutil.rmtree(out / "_build" / ".doctrees", ignore_errors=True)
    log = out / "_build" / "build.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("".join(lines))
    if status:
        raise BookError(f"{_causes(lines)}\nThe book does not build; the whole log is {log}")


def _jupyter_book(out: Path, progress: Callable[[str], None]) -> tuple[int, list[str]]:
    """Run Jupyter Book once; return its exit status and the lines that it printed."""
    run = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", run, "build", str(ROOT)]
    command += ["-W", "-n", "--keep-going", "--path-output", str(out)]
    # One thread for each kernel: the pages' small arrays gain nothing from more.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    lines = []
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        for line in process.stdout or ():
            lines.append(line)
            progress(line.strip())
    return process.returncode, lines


def _causes(lines: list[str]) -> str:
    """Return what explains a failed build: its warnings and raising cells, and how it ended."""
    marks = ("WARNING", "ERROR", "CellExecutionError")
    marked = [
        number
        for number, line in enumerate(lines)
        # a kernel warns about its own transport; nothing is wrong with the book
        if any(mark in line for mark in marks) and "[IPKernelApp]" not in line
    ]
    shown = {near for number in marked for near in range(number, number + 30)}
    shown |= set(range(len(lines) - 30, len(lines)))
    return "".join(line for number, line in enumerate(lines) if number in shown)


def main() -> None:
    """Build the site and say where it is."""
    parser = argparse.ArgumentParser(prog="make book", description=build.__doc__)
    parser.add_argument("--clean", action="store_true", help="make everything anew")
    arguments = parser.parse_args()
    try:
        pages = build(clean=arguments.clean, progress=print)
    except BookError as error:
        sys.exit(str(error))
    print(f"The site is {(pages / 'index.html').as_uri()}")


if __name__ == "__main__":
    main()
