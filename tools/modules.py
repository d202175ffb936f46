"""Which modules of ``optdl`` a piece of code imports, followed transitively."""

import ast
from collections.abc import Iterable, Iterator
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
    waiting = [file for source in sources for file in _imported(ast.parse(source), src)]
    found: set[Path] = set()
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        found.add(file)
        waiting += _imported(ast.parse(file.read_text(encoding="utf-8")), src)
    return sorted(found)


def _imported(tree: ast.Module, src: Path) -> Iterator[Path]:
    """Yield the files of the package that the statements of a tree name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files(alias.name, src)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from _files(node.module, src)
            for alias in node.names:
                yield from _files(f"{node.module}.{alias.name}", src)


def _files(module: str, src: Path) -> Iterator[Path]:
    """Yield the files that an import of this dotted name runs."""
    parts = module.split(".")
    if parts[0] != PACKAGE:
        return
    yield src / PACKAGE / "__init__.py"
    if len(parts) == 1:
        return
    single = src / PACKAGE / f"{parts[1]}.py"
    if single.is_file():
        yield single
    yield from (src / PACKAGE / parts[1]).rglob("*.py")
