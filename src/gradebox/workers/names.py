"""The names that test cells see: those of the tests, and those that the student is to define."""

import builtins
from collections.abc import Iterable, Iterator
from typing import Any

from IPython.display import display

from gradebox.workers.stubs import Answers
from gradebox.workers.syntax import PYTHONS

_NOTHING = object()


class Names(dict[str, Any]):
    """The names of the tests and of IPython's user, with those behind them that are the student's.

    A test sees a name of the student's as it was when the test first asked for it.
    """

    def __init__(self, answers: Answers, shell: Any) -> None:
        super().__init__(__name__="__main__", __builtins__=builtins)
        self._answers, self._looked, self._pythons = answers, dict[str, Any](), frozenset[str]()
        answers.names = self
        self.of_student: set[str] = set()
        """The names that the student is to define, as far as the notebook has come."""
        self._of_ipython = {"get_ipython": lambda: shell, "display": display}
        shell.user_ns = self
        shell.get_local_scope = lambda depth: {}  # a magic would ask for all names, to copy them

    def begin(self, pythons: Iterable[str]) -> None:
        """Begin a test: names of Python's own are the student's only where it needs them."""
        self._looked, self._pythons = {}, PYTHONS - {*pythons}

    def _look(self, name: Any) -> Any:
        """Return what a name of the student's means in this test."""
        if name not in self.of_student or name in self._pythons:
            return _NOTHING
        if name not in self._looked:
            self._looked[name] = self._answers.look(name, _NOTHING)
        return self._looked[name]

    def __missing__(self, name: str) -> Any:
        value = self._look(name)
        if value is not _NOTHING:
            return value
        return self._of_ipython[name]

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name) or name in self._of_ipython:
            return True
        return self._look(name) is not _NOTHING

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a name."""
        return self[name] if name in self else default  # noqa: SIM401 it is this method

    def keys(self) -> Any:
        """Return all names, as ``dir()`` asks for them."""
        return dict.fromkeys([*super().keys(), *filter(self.__contains__, self.of_student)]).keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())
