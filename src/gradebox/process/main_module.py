"""``__main__`` of the tests: ``patch("__main__.fetch")`` replaces what the student's code calls."""

import types
from typing import Any

from gradebox.line.shared_names import SharedNames


class MainModule(types.ModuleType):
    """The module that the cells of a notebook are, in one process.

    What a test puts there by itself, as ``unittest.mock.patch`` does, it means for the student's
    code, which sees it until it is taken away.

    Parameters
    ----------
    names : dict
        The names of the tests, with the student's behind them.
    shared : SharedNames
        Those that the student's code sees.
    """

    _names: dict[str, Any]
    _shared: SharedNames

    def __init__(self, names: dict[str, Any], shared: SharedNames) -> None:
        super().__init__("__main__")
        vars(self).update(_names=names, _shared=shared)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._names[name]
        except KeyError:
            raise AttributeError(f"module '__main__' has no attribute {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self._shared.put(name, value)
        vars(self)[name] = value  # where patch looks for what it gives back

    def __delattr__(self, name: str) -> None:
        vars(self).pop(name, None)
        if not self._shared.take_away(name):
            raise AttributeError(f"module '__main__' has no attribute {name!r}")
