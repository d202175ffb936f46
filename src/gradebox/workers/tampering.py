"""Evidence of tampering: what tests in a student's process use, compared with what it was at first.

A fork begins with the objects of its clean parent, before any cell of the student's. Whatever is
another object when the tests run was put there since. It is evidence, not proof that nothing else
was done: who owns the process can also deceive who compares.
"""

import builtins
import operator
import sys
from collections.abc import Iterable
from typing import Any


class Builtins:
    """Python's own names; a student's code may replace them for itself, not for this process.

    As a context manager it lets what the student's code put there be in force, and takes it out
    again, so that what gradebox says and compares depends on none of it.
    """

    def __init__(self) -> None:
        self._names = vars(builtins)
        self._first = self._names.copy()
        # all in C, and kept here: this is done after each call of a function of the student's
        self._all, self._map, self._is = all, map, operator.is_
        self._of_student: dict[str, Any] = {}
        self._depth = 0
        self.changed: list[str] = []
        """The names that had lost their meaning."""

    def __enter__(self) -> None:
        self._depth += 1
        self._names.update(self._of_student)

    def __exit__(self, *exception: object) -> None:
        self._depth -= 1
        if self._depth:  # a function of the test's, called by the student's, has called another
            return
        # here any of Python's own names may be another's, so that none is used
        names, first = self._names, self._first
        if self._all(self._map(self._is, self._map(names.get, first), first.values())):
            self.changed, self._of_student = [], {}
            return
        self.changed = [name for name in first if names.get(name) is not first[name]]
        self._of_student = {name: names[name] for name in self.changed if name in names}
        names.update(first)


class Pristine:
    """The functions and classes of modules, as they are now.

    Parameters
    ----------
    modules : iterable of str
        The modules; those that are not imported yet are left out.
    """

    def __init__(self, modules: Iterable[str]) -> None:
        found = {name: sys.modules[name] for name in modules if name in sys.modules}
        self._parts = {
            (module, name): (value, _code(value))
            for module, content in found.items()
            for name, value in vars(content).items()
            if callable(value)  # those of NumPy are of classes of its own
        }
        self._modules = found

    def changed(self) -> list[str]:
        """Return what is not as it was, such as ``numpy.allclose``."""
        return [
            f"{module}.{name}"
            for (module, name), part in self._parts.items()
            if _differs(vars(self._modules[module]).get(name), part)
        ] + [name for name, module in self._modules.items() if sys.modules.get(name) is not module]


class Helpers:
    """The functions of the instructor's locked cells, as they were when those had run.

    Parameters
    ----------
    names : dict
        The names of the notebook.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._parts: dict[str, tuple[Any, Any]] = {}

    def keep(self, names: Iterable[str]) -> None:
        """Keep what these names mean now."""
        for name in names:
            if name in self._names:
                value = self._names[name]
                self._parts[name] = value, _code(value)

    def put_back(self) -> list[str]:
        """Give the names their meaning back; return those that had lost it."""
        changed = [n for n, part in self._parts.items() if _differs(self._names.get(n), part)]
        for name in changed:
            value, code = self._parts[name]
            if code is not None:
                value.__code__ = code
            self._names[name] = value
        return changed


def _differs(value: Any, part: tuple[Any, Any]) -> bool:
    # the same function can be made to run other code: f.__code__ = g.__code__
    original, code = part
    return value is not original or _code(value) is not code


def _code(value: Any) -> Any:
    """Return what a function runs, or the Python function behind one of NumPy's."""
    return getattr(getattr(value, "_implementation", value), "__code__", None)
