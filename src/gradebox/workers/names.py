"""The names that test cells see: those of the tests, then Python's own, then the student's."""

import builtins
import contextlib
import types
from collections.abc import Collection, Iterator
from typing import Any

from IPython.display import display

from gradebox.workers.shell import Outputs, Shell
from gradebox.workers.stubs import Answers

# IPython adds its own; a student may define another display
_PYTHONS = frozenset(dir(builtins)) - {"display", "get_ipython"}


class Names(dict[str, Any]):
    """A namespace with the student's names behind it, which are looked up as they are used.

    Parameters
    ----------
    answers : Answers
        Looks up what is the student's.
    own : collection of str
        Names that the student is to define although Python has them, such as ``sum``. Every other
        name that Python has is Python's own in a test, whatever the student calls so.
    """

    def __init__(self, answers: Answers, own: Collection[str]) -> None:
        super().__init__(__name__="__main__", __builtins__=builtins)
        self._answers, self._own = answers, frozenset(own)
        self.modules: dict[str, Any] = {}
        """The modules that the instructor's solutions import, by their names there."""
        self.outputs = Outputs()
        self._of_ipython = {"get_ipython": self._shell, "display": self._display}

    def _is_students(self, name: Any) -> bool:
        if not isinstance(name, str) or name.startswith("__"):
            return False
        return name not in _PYTHONS or name in self._own

    def __missing__(self, name: str) -> Any:
        if not self._is_students(name):
            raise KeyError(name)
        if name == "get_ipython":  # the student has another one
            return self._of_ipython[name]
        with contextlib.suppress(KeyError):
            value = self._answers.look(name)
            # only its name has crossed: the test uses the module that the instructor imports
            if type(value) is types.ModuleType:
                return self.modules[name]
            return value
        return self._of_ipython[name]

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name):
            return True
        return self._is_students(name) and name in (*self._answers.names(), *self._of_ipython)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a name."""
        return self[name] if name in self else default  # noqa: SIM401 it is this method

    def keys(self) -> Any:
        """Return all names, as ``dir()`` asks for them."""
        return dict.fromkeys(
            [*super().keys(), *filter(self._is_students, self._answers.names())]
        ).keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def _shell(self) -> Any:
        """Return IPython, with the names of the tests as those of its user."""
        shell = Shell.instance() if Shell.initialized() else Shell.make()
        shell.user_ns = self
        parts: tuple[Any, ...] = (shell, shell.display_pub, shell.displayhook)
        parts[0].get_local_scope = _no_names  # a magic would ask for all names, to copy them
        for part in parts:
            part.outputs = self.outputs
        return shell

    def _display(self, *values: Any, **more: Any) -> Any:
        self._shell()
        show: Any = display
        return show(*values, **more)


def _no_names(depth: int) -> dict[str, Any]:
    return {}
