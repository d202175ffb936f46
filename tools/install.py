"""Make .venv with the pinned packages; run as ``python -P tools/install.py`` by any Python 3.11.

It needs no package itself. Where uv is installed, uv does it; else pip.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parent.parent
FREE_GIGABYTES = 6
"""What must be free on the disk: the packages take about 5 GB, and pip unpacks them beside it."""
PACKAGES = 25
"""After how many packages a line is printed where there is no terminal."""


class InstallError(RuntimeError):
    """The environment could not be made; the message says what to do."""


def report(lines: Iterable[str], screen: TextIO) -> None:
    """Say how far pip is: in one line that changes, or, without a terminal, now and then."""
    terminal, number = screen.isatty(), 0
    for line in lines:
        if match := re.match(r"(?:Collecting|Processing) (?:\S*[/\\])?(\S+)", line):
            number += 1
            text, due = f"  package {number}: {match[1]}", number % PACKAGES == 0
        elif match := re.match(r"Installing collected packages: (.*)", line):
            names = match[1].split(",")
            text, due = f"  putting {len(names)} packages in place: a minute or two", True
        else:
            continue
        if terminal:
            screen.write(f"\r\033[K{text[: shutil.get_terminal_size().columns - 1]}")
        elif due:
            screen.write(f"{text}\n")
        screen.flush()
    screen.write("\r\033[K" if terminal else "")


def install(python: Path, what: list[str], screen: TextIO) -> bool:
    """Install packages for a Python; return whether that succeeded. Errors are the tool's own."""
    if uv := shutil.which("uv"):
        command = [uv, "pip", "install", "--python", str(python), *what]
        return subprocess.run(command, check=False).returncode == 0
    command = [str(python), "-m", "pip", "install", "--progress-bar", "off", *what]
    quiet = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        env=os.environ | quiet,
        encoding="utf-8",
        errors="replace",
    ) as pip:
        report(pip.stdout or (), screen)
    return pip.returncode == 0


def create(root: Path, screen: TextIO) -> None:
    """Make ``.venv`` below ``root`` and install the packages and the project in it.

    Raises
    ------
    InstallError
        If the disk is full, or Python, uv or pip fails.
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
    environment = root / ".venv"
    if subprocess.run([sys.executable, "-m", "venv", str(environment)], check=False).returncode:
        raise InstallError(
            "Python cannot make a virtual environment. "
            "On Debian or Ubuntu: apt install python3-venv"
        )
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    # the packages of this repository as they stand here; a student's copy lacks the third
    folders = [root / "src" / "gradebox", root, root / "src" / "gradebox_wasm"]
    own = [part for folder in folders if folder.is_dir() for part in ("-e", str(folder))]
    packages = ["--no-deps", "-q", *own]
    for what in (["-r", str(root / "requirements.txt")], packages):
        if not install(python, what, screen):
            raise InstallError(
                "The packages could not be installed: see the message above (no network, or no "
                "disk?). Then run the same command again: what was downloaded is kept."
            )
    built = [str(python), "-m", "tools.wasm_wheel"]
    if folders[-1].is_dir() and subprocess.run(built, cwd=root, check=False).returncode:
        raise InstallError("src/gradebox_wasm could not be made: see the message above.")


if __name__ == "__main__":
    try:
        create(ROOT, sys.stdout)
    except InstallError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("\nStopped. Run the same command again: what was downloaded is kept.")
