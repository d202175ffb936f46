"""Which modules a piece of code imports, and which of ``optdl`` it does through others."""

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PACKAGE = "optdl"


def needed(sources: Iterable[str], src: Path) -> list[Path]:
    """Return the files of the package below ``src`` that the sources import, sorted.

    They do so directly or through others. A subpackage counts whole, because it may look for its
    own files while it runs. An import inside a function counts as well: nobody knows whether the
    function is called. Lines that only IPython understands must be gone.
    """
    waiting, files = list(sources), set[Path]()
    while waiting:
        names = [name.split(".") for name in named(waiting.pop())]
        found = {file for name in names if name[0] == PACKAGE for file in _files(name, src)}
        waiting += [file.read_text(encoding="utf-8") for file in found - files]
        files |= found
    return sorted(files)


def _files(module: list[str], src: Path) -> list[Path]:
    """Return the files that an import of this dotted name runs."""
    package = src / PACKAGE
    single = [package / f"{name}.py" for name in ("__init__", *module[1:2])]
    below = (package / module[1]).rglob("*.py") if module[1:] else []
    return [*(file for file in single if file.is_file()), *below]


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
