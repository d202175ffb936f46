"""The names that a test cell sees: those of the tests, then Python's own, then the student's."""

import builtins
from collections.abc import Callable, Collection, Iterator
from typing import Any

# IPython adds its own; a student may define another display
_PYTHONS = frozenset(dir(builtins)) - {"display", "get_ipython"}


class SeenNames(dict[str, Any]):
    """A namespace with names behind it that are looked up as they are used.

    ``globals()`` and ``dir()`` tell of them as of others.

    Parameters
    ----------
    behind : callable
        Returns the names of the student's.
    look : callable
        Returns the value of such a name, or raises ``KeyError``.
    answers : collection of str
        Names that the student is to define although Python has them.
    """

    def __init__(
        self,
        behind: Callable[[], Collection[str]],
        look: Callable[[str], Any],
        answers: Collection[str],
        **names: Any,
    ) -> None:
        super().__init__(**names)
        self._behind, self._look, self._answers = behind, look, frozenset(answers)

    def _is_behind(self, name: Any) -> bool:
        if not isinstance(name, str) or name.startswith("__"):
            return False
        return name not in _PYTHONS or name in self._answers

    def __missing__(self, name: str) -> Any:
        if not self._is_behind(name):
            raise KeyError(name)
        return self._look(name)

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name):
            return True
        return self._is_behind(name) and name in self._behind()

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a name."""
        return self[name] if name in self else default  # noqa: SIM401 it is this method

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self) -> Any:
        """Return all names."""
        visible = filter(self._is_behind, self._behind())
        return dict.fromkeys([*super().keys(), *visible]).keys()

    def values(self) -> Any:
        """Return all values."""
        return dict(self.items()).values()

    def items(self) -> Any:
        """Return all names with their values."""
        return {name: self[name] for name in self.keys()}.items()

    def copy(self) -> "SeenNames":
        """Return a namespace beside this one, with the same names behind it."""
        beside = SeenNames(self._behind, self._look, self._answers)
        dict.update(beside, [*super().items()])
        return beside

    def update(self, *others: Any, **more: Any) -> None:
        """Set names; of another such namespace only what is set there."""
        for other in others:
            dict.update(self, [*dict.items(other)] if isinstance(other, SeenNames) else other)
        dict.update(self, more)
