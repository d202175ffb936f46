"""Make .venv with the pinned packages; run as ``python -P tools/install.py`` by any Python 3.11.

This file needs no package itself.
"""

import argparse
import ast
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PIPS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
}
"""Settings of pip that uv does not read, and the variables that it reads in their place."""


def settings(listed: str) -> dict[str, str]:
    """Return what ``pip config list`` printed as uv's variables."""
    lines = re.findall(r"^(?:global|:env:)\.([\w-]+)=(.*)$", listed, re.MULTILINE)
    values = {name: ast.literal_eval(text) for name, text in reversed(lines) if name in PIPS}
    # uv would take a package from the first index that knows it, whatever the version
    best = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    return best | {PIPS[name]: " ".join(text.split()) for name, text in values.items()}


def install(python: str, *parts: list[str]) -> bool:
    """Install each part by uv, in a fifth of the time, or all by pip; return whether it worked."""

    def each(*command: str, **env: str) -> bool:
        commands = ([*command, *part] for part in parts)
        return all(not subprocess.run(line, env=env | os.environ).returncode for line in commands)

    pip = (python, "-m", "pip", "--disable-pip-version-check")
    pins = str(ROOT / "requirements.txt")
    if not subprocess.run([*pip, "install", "-q", "-c", pins, "uv"]).returncode:
        listed = subprocess.run([*pip, "config", "list"], stdout=subprocess.PIPE, text=True).stdout
        if each(python, "-m", "uv", "pip", "install", "--python", python, **settings(listed)):
            return True
    print("Without uv: pip installs the packages, which takes some minutes.", flush=True)
    return each(*pip, "install", "--progress-bar", "off")


def main(dev: bool) -> str | None:
    """Make the environment; return what went wrong, and what to do about it."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    what = "what tests and lint need" if dev else "the pinned packages, most of it torch"
    print(f"Python {version}: .venv gets {what} ...", flush=True)
    environment = ROOT / ".venv"
    if not os.access(ROOT, os.W_OK):
        return f"{ROOT} cannot be written: copy the folder of the course to where you may write."
    if not dev and subprocess.run([sys.executable, "-m", "venv", str(environment)]).returncode:
        return "Python cannot make a virtual environment. Debian, Ubuntu: apt install python3-venv"
    python = str(environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    # the packages of this repository as they stand here; a student's copy lacks the third
    folders = [ROOT / "src" / "gradebox", ROOT, ROOT / "src" / "gradebox_wasm"]
    own = [part for folder in folders if folder.is_dir() for part in ("-e", str(folder))]
    pinned = ["-r", str(ROOT / ("requirements-dev.txt" if dev else "requirements.txt"))]
    if not install(python, pinned, *([] if dev else [["-q", "--no-deps", *own]])):
        return (
            "The packages could not be installed: see the message above (no network, or less "
            "than 6 GB of disk?). Then run the same command again: what was downloaded is kept."
        )
    built = [python, "-m", "tools.site.wasm_wheel"]
    if not dev and folders[-1].is_dir() and subprocess.run(built, cwd=ROOT).returncode:
        return "src/gradebox_wasm could not be made: see the message above."
    return None


if __name__ == "__main__":
    try:
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("--dev", action="store_true", help="add what only tests and lint need")
        sys.exit(main(parser.parse_args().dev))
    except KeyboardInterrupt:
        sys.exit("\nStopped. Run the same command again: what was downloaded is kept.")
