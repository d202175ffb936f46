"""Which modules a piece of code imports, and which of ``optdl`` it does through others."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGE = "optdl"


def needed(sources: Iterable[str], src: Path) -> list[Path]:
    """Return the files of the package that the sources import, directly or through others.

    A subpackage counts whole, because it may look for its own files while it runs. An import
    inside a function counts as well: nobody knows whether the function is called.

    Parameters
    ----------
    sources : iterable of str
        Python code; lines that only IPython understands must be gone.
    src : Path
        The folder that holds the package.

    Returns
    -------
    list of Path
        The files, sorted.
    """
    waiting = [file for source in sources for file in _imported(source, src)]
    files: set[Path] = set()
    while waiting:
        file = waiting.pop()
        if file in files:
            continue
        files.add(file)
        waiting += _imported(file.read_text(encoding="utf-8"), src)
    return sorted(files)


def _imported(source: str, src: Path) -> Iterator[Path]:
    """Yield the files of the package that the statements of a source name."""
    for module in named(source):
        if module.partition(".")[0] == PACKAGE:
            yield from _files(module, src)


@cache  # many pages import the same modules
def named(source: str) -> list[str]:
    """Return the modules, and what may be modules, that the statements of a source import."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return list(dict.fromkeys(names))


def _files(module: str, src: Path) -> Iterator[Path]:
    """Yield the files that an import of this dotted name runs."""
    parts = module.split(".")
    yield src / PACKAGE / "__init__.py"
    if len(parts) == 1:
        return
    single = src / PACKAGE / f"{parts[1]}.py"
    if single.is_file():
        yield single
    yield from (src / PACKAGE / parts[1]).rglob("*.py")
