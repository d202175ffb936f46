"""The modules that instances import beside those of the interpreter, where this process has them.

A package has to be pure Python: what is compiled for this machine is of no use to another one.
"""

import ast
import importlib.util
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from gradebox.sandbox.filesystem import COURSE
from gradebox.sandbox.imports import Barrier
from gradebox.workers.syntax import parse
from gradebox_wasm import machine
from gradebox_wasm.files import Fixed, HostFile, HostFolder

_looking = threading.Lock()


class Modules:
    """A folder of packages, for all instances of one kind.

    Parameters
    ----------
    substitutes : sequence of Path
        Folders with modules that take the places of those that are installed.
    hidden : iterable of str
        Files and folders that no instance sees.
    """

    def __init__(self, substitutes: Sequence[Path] = (), hidden: Iterable[str] = ()) -> None:
        self.folder, self._hidden = Fixed(), {*hidden}
        self.made_of = [*map(str, substitutes)], sorted(self._hidden), sys.path
        self._finding, self._answers = threading.Lock(), dict[str, str | None]()
        for source in substitutes:
            self.folder.entries.update(HostFolder(str(source)).entries)
        # what asks for the others, and what matplotlib looks for without an import
        for name in ("gradebox", "matplotlib_inline"):
            self.fetch(name)
        self._answers["gradebox_wasm"] = None
        inside = self.folder.entries["gradebox_wasm"] = Fixed()
        for name in ("__init__.py", "fetching.py", "guest.py"):
            inside.entries[name] = HostFile(str(Path(__file__).with_name(name)))

    def fetch(self, name: str) -> str | None:
        """Put a module or a package into the folder if it is installed; return why not, or None.

        Parameters
        ----------
        name : str
            The first part of its name. An instance asks, in which a student's code may run.
        """
        with self._finding:
            if name not in self._answers:
                none = not name.isidentifier() or name in {*sys.stdlib_module_names, "__main__"}
                found = None if none else origin(name)
                if found is None:  # not remembered: a student's code may ask for ever more names
                    return "not installed"
                self._answers[name] = self._put(name, found)
            return self._answers[name]

    def names(self) -> list[str]:
        """Return the names of those that were found."""
        return [name for name, why in self._answers.items() if why is None]

    def _put(self, name: str, found: Path) -> str | None:
        if compiled(found):
            return "compiled"  # fetching.py says more of it
        node = HostFile(str(found)) if found.is_file() else HostFolder(str(found), self._shows)
        self.folder.entries[found.name] = node
        # packages look up their own version in it, and plug-ins name what they plug into
        for metadata in found.parent.glob(f"{name}-*.dist-info"):
            self.folder.entries[metadata.name] = HostFolder(str(metadata))
        return None

    def _shows(self, path: str) -> bool:
        return path not in self._hidden and not path.endswith(("__pycache__", ".pyc"))


def origin(name: str) -> Path | None:
    """Return the folder of a package that is installed, or the file of a module, if there is one.

    A folder that only happens to be on the path is none, nor is what lies in the folder of a
    course or in the working folder: the answers may.

    Parameters
    ----------
    name : str
        The first part of its name.
    """
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.has_location or spec.origin is None:
        return None
    found = Path(spec.origin).resolve()
    found = found.parent if spec.submodule_search_locations else found
    private = found.parent == Path.cwd() or any((found.parent / each).exists() for each in COURSE)
    return None if private else found


def obstacle(names: tuple[str, ...], substitutes: tuple[str, ...] = ()) -> str:
    """Return a module that is compiled for this machine and that others import, if there is one.

    What they import in their turn is looked for at the top level of their files.

    Parameters
    ----------
    names : tuple of str
        Modules, ``module`` or ``module:name``.
    substitutes : tuple of str
        Folders: see :class:`Modules`.
    """
    with _looking:  # else all threads look for it at first
        return _obstacle(names, substitutes)


@cache
def _obstacle(names: tuple[str, ...], substitutes: tuple[str, ...]) -> str:
    _, library = machine.files()
    there = {path.name.partition(".")[0] for path in library.iterdir()} | sys.stdlib_module_names
    there |= {path.stem for each in substitutes for path in Path(each).iterdir()} | {"gradebox"}
    waiting, seen = [name.replace(":", ".") for name in names], set[str]()
    while waiting:
        name = waiting.pop()
        top = name.partition(".")[0]
        found = None if name in seen or top in there else origin(top)
        seen.add(name)
        if found is None:
            continue
        if compiled(found):
            return top
        waiting += _imported_by(found, name)
    return ""


def _imported_by(found: Path, name: str) -> Iterator[str]:
    """Yield what the files of a module, and of the packages above it, import at their top level."""
    path, package = found, name.partition(".")[0]
    for part in [*name.split(".")[1:], ""]:
        file = path / "__init__.py" if path.is_dir() else path
        if file.suffix == ".py" and file.is_file():
            yield from _imports(parse(file.read_text("utf-8")), package, path.is_dir())
        if not path.is_dir():
            return
        path = path / part if (path / part).is_dir() else path / f"{part}.py"
        package = f"{package}.{part}"


def _imports(tree: ast.Module, module: str, is_package: bool) -> Iterator[str]:
    for node in _at_top_level(tree.body):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: None if is_package else -1]
            above = above[: len(above) - node.level + 1] if node.level else []
            name = ".".join([*above, *filter(None, [node.module])])
            yield from (f"{name}.{alias.name}" for alias in node.names)


def _at_top_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _at_top_level(
                child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)
            )


@cache
def compiled(found: Path) -> bool:
    """Return whether a module or a package is, or holds, code for this machine."""
    names = [found.name] if found.is_file() else (n for *_, each in os.walk(found) for n in each)
    return any(name.endswith(tuple(EXTENSION_SUFFIXES)) for name in names)


def hidden(banned: Sequence[str], stubbed: Sequence[str]) -> list[str]:
    """Return the files of barred modules."""
    return [str(Path(path).resolve()) for path in Barrier(banned, stubbed).files()]
