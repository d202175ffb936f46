"""Modules that a student's process does not get: the answers, and the tests.

A *banned* module cannot be imported; the error says so. A *stubbed* one can, but whatever is taken
from it does nothing: a notebook that imports its tests goes on, and the tests run elsewhere. The
files are hidden by :mod:`gradebox.sandbox.filesystem`, so that no other way leads to them.
"""

import importlib.util
import types
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from itertools import chain
from pathlib import Path
from typing import Any


class Barrier(MetaPathFinder, Loader):
    """Stands before Python's own finders, with the names of modules and packages."""

    def __init__(self, banned: Sequence[str], stubbed: Sequence[str]) -> None:
        self.banned, self.stubbed = tuple(banned), tuple(stubbed)
        # then stubs raise: a test that they do nothing for would give its points
        self.tests_have_begun = False
        # now, as find_spec would be refused once this stands before the other finders
        self._origins = [origin for name in (*banned, *stubbed) for origin in _origins(name)]

    def bars(self, name: str) -> bool:
        """Return whether a module is banned or stubbed."""
        return within(name, (*self.banned, *self.stubbed))

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Refuse a banned module, and find a stubbed one."""
        if within(name, self.banned):
            # returning None would leave the module to Python's own finders
            why = "while your work is graded: it holds the answers; use the functions that you have"
            message = f"{name} cannot be imported {why} written"
            error: Any = ImportError(message, name=name)
            error._render_traceback_ = lambda: [f"ImportError: {message}"]  # none of our own lines
            raise error
        return ModuleSpec(name, self, is_package=True) if within(name, self.stubbed) else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Return a module from which everything can be taken, and nothing does anything."""
        module = types.ModuleType(spec.name)

        def taken(name: str) -> Any:
            # Python itself asks a module for such names, as for __all__, and would use the stub
            if name.startswith("__"):
                raise AttributeError(name)

            def stub(*args: Any, **kwargs: Any) -> None:
                if self.tests_have_begun:
                    raise RuntimeError(f"{spec.name} is not there in the student's process")
                print(f"{name}: the tests do not run in this process")

            stub.__name__ = stub.__qualname__ = name
            return stub

        module.__dict__["__getattr__"] = taken
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing."""

    def files(self) -> list[str]:
        """Return where the modules lie now, with what Python has compiled of them."""
        compiled = [(o.parent / "__pycache__").glob(f"{o.stem}.*") for o in self._origins]
        return sorted({str(path) for path in (*self._origins, *chain.from_iterable(compiled))})


def within(name: str, packages: Iterable[str]) -> bool:
    """Return whether a module is one of some packages, or in one."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def _origins(name: str) -> list[Path]:
    """Return the folders of a package, or the file of a module; nothing where there is none."""
    with suppress(ImportError, ValueError, AttributeError):
        if spec := importlib.util.find_spec(name):
            own = [spec.origin] if spec.has_location and spec.origin else []
            return [Path(place).absolute() for place in spec.submodule_search_locations or own]
    return []
