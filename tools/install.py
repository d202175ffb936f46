"""Make .venv with the pinned packages; run as ``python -P tools/install.py`` by any Python 3.11.

It needs no package itself. In a terminal it rewrites a single line, elsewhere it prints a line
every few seconds. pip's errors and warnings are shown whole, but for those that never matter here.
"""

import os
import queue
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parent.parent
FREE_GIGABYTES = 6
"""What must be free on the disk: the packages take about 5 GB, and pip unpacks them beside it."""
SECONDS = 5.0
"""How long no news of pip may stay unprinted."""
PATIENCE = 30.0
"""How long nothing is printed where there is no news."""
PACKAGES = 10
"""After how many packages a line is printed where there is no terminal."""

QUIET = {
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_WARN_SCRIPT_LOCATION": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
}
"""The notices that pip itself can leave out."""

HARMLESS = re.compile(
    "|".join(
        [
            # a second folder of packages that lacks this package; another source has it
            r"Location '.*' is ignored: it is neither a file nor a directory",
            r"The directory '.*' or its parent directory is not owned or is not writable",
            r"Cache entry deserialization failed, entry ignored",
            # for the authors of a package
            r"DEPRECATION: ",
        ]
    )
)

Line = tuple[str, str]
"""The stream that a line came from, and the line."""


class InstallError(RuntimeError):
    """The environment could not be made; the message says what to do."""


class Report:
    """Shows how far pip is: one line that changes in a terminal, a line now and then elsewhere.

    Parameters
    ----------
    screen : TextIO
        Where to print.
    stage : str
        What is being done until pip says more.
    clock : callable
        Returns the time in seconds.
    packages : Path, optional
        The folder into which pip puts the packages; it does so without a word.
    """

    def __init__(
        self,
        screen: TextIO,
        stage: str,
        clock: Callable[[], float] = time.monotonic,
        packages: Path | None = None,
    ) -> None:
        self._screen, self._stage, self._clock = screen, stage, clock
        self._folder, self._to_place = packages, 0
        self._terminal = screen.isatty()
        self._began = self._printed = clock()
        self._printed_stage = stage
        self._packages, self._package = 0, ""

    def take(self, stream: str, line: str) -> None:
        """Take in a line of pip's output; a warning or an error is printed whole."""
        if stream == "stderr":
            if not HARMLESS.search(line):
                self._print_whole(line)
        elif found := re.match(r"(?:Collecting|Processing) (?:\S*[/\\])?(\S+)", line):
            self._packages += 1
            self._package = f"package {self._packages}: {found[1]}"
            self._show(self._package, due=self._packages % PACKAGES == 0)
        elif found := re.match(r"\s*Downloading .*\((.* [kMG]B)\)", line):
            self._show(f"{self._package}, {found[1]}")
        elif found := re.match(r"Installing collected packages: (.*)", line):
            self._to_place = len(found[1].split(","))
            self._show(f"putting {self._to_place} packages in place", due=True)

    def wait(self) -> None:
        """Show that the work goes on, though pip says nothing."""
        if self._folder and self._to_place:
            placed = min(len(list(self._folder.glob("*.dist-info"))), self._to_place)
            self._stage = f"{placed} of {self._to_place} packages are in place"
        self._show(self._stage)

    def finish(self) -> None:
        """Clear the line that changes."""
        if self._terminal:
            self._screen.write("\r\033[K")
            self._screen.flush()

    def _show(self, stage: str, due: bool = False) -> None:
        self._stage, now = stage, self._clock()
        text = f"  {stage} ({now - self._began:.0f} s)"
        patience = PATIENCE if stage == self._printed_stage else SECONDS
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1
            self._screen.write(f"\r\033[K{text[:width]}")
        elif due or now - self._printed >= patience:
            self._printed, self._printed_stage = now, stage
            self._screen.write(f"{text}\n")
        self._screen.flush()

    def _print_whole(self, line: str) -> None:
        self.finish()
        self._screen.write(f"{line}\n")
        self._screen.flush()


def _lines(process: subprocess.Popen[str]) -> Iterator[Line | None]:
    """Yield both streams' lines as they come, and None after each while without any."""
    lines: queue.Queue[Line | None] = queue.Queue()

    def read(name: str, stream: TextIO) -> None:
        for line in stream:
            lines.put((name, line.rstrip()))
        lines.put(None)

    assert process.stdout is not None
    assert process.stderr is not None
    streams = {"stdout": process.stdout, "stderr": process.stderr}
    for name, stream in streams.items():
        threading.Thread(target=read, args=(name, stream), daemon=True).start()
    ended = 0
    while ended < len(streams):
        try:
            line = lines.get(timeout=SECONDS)
        except queue.Empty:
            yield None
            continue
        if line is None:
            ended += 1
        else:
            yield line


def pip(command: Sequence[str], report: Report) -> bool:
    """Run ``pip install`` with a report of its progress; return whether it succeeded."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | QUIET,
        encoding="utf-8",
        errors="replace",
    ) as process:
        for line in _lines(process):
            if line is None:
                report.wait()
            else:
                report.take(*line)
    report.finish()
    return process.returncode == 0


def _editable(root: Path) -> list[str]:
    """Return what makes pip add the two packages of this repository as they stand here."""
    return ["-e", str(root / "src" / "gradebox"), "-e", str(root)]


def make(root: Path, screen: TextIO) -> None:
    """Make ``.venv`` below ``root`` and install the packages and the project in it.

    Raises
    ------
    InstallError
        If the disk is full, or Python or pip fails.
    """
    if shutil.disk_usage(root).free < FREE_GIGABYTES * 2**30:
        raise InstallError(
            f"Less than {FREE_GIGABYTES} GB of disk are free here; the packages need about 5. "
            "Free some space, then run the same command again."
        )
    version = ".".join(str(part) for part in sys.version_info[:3])
    screen.write(
        f"Making .venv with Python {version} and installing the pinned packages "
        "(a few minutes, most of it the download) ...\n"
    )
    screen.flush()
    made = root / ".venv"
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(made)}))
    if subprocess.run([sys.executable, "-m", "venv", str(made)], check=False).returncode:
        raise InstallError(
            "Python cannot make a virtual environment. "
            "On Debian or Ubuntu: apt install python3-venv"
        )
    python = made / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    install = [str(python), "-m", "pip", "install", "--progress-bar", "off"]
    steps = {
        "waiting for pip": ["-r", str(root / "requirements.txt")],
        "adding the course itself": ["--no-deps", "-q", *_editable(root)],
    }
    for stage, what in steps.items():
        if not pip([*install, *what], Report(screen, stage, packages=packages)):
            raise InstallError(
                "The packages could not be installed: see pip's message above (no network, or "
                "no disk?). Then run the same command again."
            )


def main() -> None:
    """Make the environment, or say in a sentence why not."""
    try:
        make(ROOT, sys.stdout)
    except InstallError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("\nStopped. Run the same command again: pip keeps what was downloaded.")


if __name__ == "__main__":
    main()
