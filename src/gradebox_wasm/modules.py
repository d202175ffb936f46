"""The modules that instances import beside those of the interpreter, where this process has them.

A package has to be pure Python: what is compiled for this machine is of no use to another one.
"""

import importlib.util
import os
import sys
import threading
from collections.abc import Iterable, Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from gradebox.sandbox.filesystem import COURSE
from gradebox_wasm.files import Folder, HostFile, HostFolder


class Modules:
    """A folder of packages, for all instances of one kind.

    Parameters
    ----------
    substitutes : sequence of str
        Folders with modules that take the places of those that are installed.
    hidden : iterable of str
        Files and folders that no instance sees.
    """

    def __init__(self, substitutes: Sequence[str] = (), hidden: Iterable[str] = ()) -> None:
        self.folder, self._hidden = Folder(is_fixed=True), {str(Path(p).resolve()) for p in hidden}
        self.made_of = [*substitutes], sorted(self._hidden), sys.path
        # of this package, what runs inside
        inside = self.folder.entries["gradebox_wasm"] = Folder(is_fixed=True)
        for name in ("__init__.py", "fetching.py", "guest.py"):
            inside.entries[name] = HostFile(str(Path(__file__).with_name(name)))
        self._finding, self._answers = threading.Lock(), dict[str, str]({"gradebox_wasm": ""})
        for source in substitutes:
            self.folder.entries.update(HostFolder(source).entries)
        # what asks for the others, and what matplotlib looks for without an import
        for name in ("gradebox", "matplotlib_inline"):
            self.fetch(name)

    def fetch(self, name: str) -> str:
        """Put a module or a package into the folder if it is installed; return why not, or "".

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
        return [name for name, why in self._answers.items() if not why]

    def _put(self, name: str, found: Path) -> str:
        below = os.walk(found) if found.is_dir() else [("", [], [found.name])]
        names = (name for *_, each in below for name in each)
        if any(each.endswith(tuple(EXTENSION_SUFFIXES)) for each in names):
            return "compiled"  # fetching.py says more of it
        node = HostFile(str(found)) if found.is_file() else HostFolder(str(found), self._shows)
        self.folder.entries[found.name] = node
        # packages look up their own version in it, and plug-ins name what they plug into
        for metadata in found.parent.glob(f"{name}-*.dist-info"):
            self.folder.entries[metadata.name] = HostFolder(str(metadata))
        return ""

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
