"""Let a student's code meet what a test has put in the place of a function of a module.

``input`` and ``print`` are found replaced however that was done, and so are the functions of
``random`` and ``time`` that tests replace most often, and ``sys.stdin``; any other attribute of a
module when ``unittest.mock`` has replaced it. In the student's process a callback stands in its
place during each call, as long as the replacement lasts; it can do nothing but call it.
"""

import builtins
import importlib
import io
import random
import sys
import time
import types
import unittest.mock
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from operator import is_
from typing import Any

from gradebox.codec.encoding import Unsendable

_WATCHED: tuple[tuple[Any, str], ...] = (
    *((builtins, "print"), (builtins, "input"), (sys, "stdin")),
    *((time, name) for name in ("sleep", "time", "perf_counter")),
    *((random, name) for name in ("random", "randint", "choice", "randrange", "uniform")),
)
"""What is looked at before each message."""


def _present() -> tuple[Any, ...]:
    """Return what stands there now; in one expression, for it is done before each message."""
    return (
        *(builtins.print, builtins.input, sys.stdin),
        *(time.sleep, time.time, time.perf_counter),
        *(random.random, random.randint, random.choice, random.randrange, random.uniform),
    )


Export = Callable[[Any], Any]

_AttributePath = tuple[str, str]


class Patches:
    """The end of the tests.

    Parameters
    ----------
    export : callable
        Returns the node of a function.
    """

    def __init__(self, export: Export) -> None:
        self._export = export
        self._before = self._last = _present()
        self._mocked: dict[Any, tuple[_AttributePath, Any]] = {}
        self._is_new = False
        self.lost: set[str] = set()
        """What was replaced so that the student's code may not meet it as in one process."""

    def note_mocks(self) -> None:
        """Take note from now on of each attribute that ``unittest.mock`` replaces."""
        kind: Any = unittest.mock._patch
        enter, leave = kind.__enter__, kind.__exit__

        def entered(patch: Any) -> Any:
            result = enter(patch)
            self._note(patch)
            return result

        def exited(patch: Any, *exception_info: Any) -> Any:
            if self._mocked.pop(id(patch), None):
                self._is_new = True
            return leave(patch, *exception_info)

        kind.__enter__, kind.__exit__ = entered, exited

    def _note(self, patch: Any) -> None:
        target, name = patch.target, patch.attribute
        value = getattr(target, name, None)
        if isinstance(target, type):
            self.lost.add(f"what replaces {target.__name__}.{name}")
        if not isinstance(target, types.ModuleType):
            return
        module = target.__name__
        if sys.modules.get(module) is target and (target, name) not in _WATCHED:
            self._mocked[id(patch)] = (module, name), value
            self._is_new = True

    def has_changed(self) -> bool:
        """Return whether something else is replaced than when this was asked last."""
        present = _present()
        # to ask a mock whether it equals something is a call that it counts
        if all(map(is_, present, self._last)) and not self._is_new:
            return False
        self._last, self._is_new = present, False
        return True

    def replacements(self) -> list[list[Any]]:
        """Return what is replaced by what, as plain data."""
        now = {
            (module.__name__, name): value
            for (module, name), value, before in zip(
                _WATCHED, self._last, self._before, strict=True
            )
            if value is not before
        }
        now |= dict(self._mocked.values())
        replacements = []
        for (module, name), value in now.items():
            if module.partition(".")[0] in ("gradebox", "__main__"):
                continue
            if name not in ("print", "input", "stdin"):
                self.lost.add(f"what replaces {module}.{name}")
            if value is sys.stdin:
                value = getattr(value, "readline", None)
            if value is None or type(value) in (bool, int, float, str):
                replacements.append([module, name, ["plain", value]])
            elif callable(value):
                with suppress(Unsendable):
                    replacements.append([module, name, self._export(value)])
        return replacements


class _Typed(io.TextIOBase):
    """Standard input, line by line from that of the tests."""

    def __init__(self, readline: Callable[[], Any]) -> None:
        self._readline = readline

    def readable(self) -> bool:
        """Return True."""
        return True

    def readline(self, size: int | None = -1) -> str:  # type: ignore[override]
        """Return the next line."""
        return str(self._readline())

    def read(self, size: int | None = -1) -> str:
        """Return all lines that are left."""
        return "".join(self)


class Stage:
    """The student's end.

    Parameters
    ----------
    find : callable
        Returns what stands for a function of the tests.
    """

    def __init__(self, find: Callable[[Any], Any]) -> None:
        self._find = find
        self.wanted: list[tuple[Any, str, Any]] = []
        """What is to stand where."""
        self._set: list[tuple[Any, str, Any, Any]] = []

    def follow(self, replacements: list[list[Any]]) -> None:
        """Keep what is to stand where during calls."""
        self.wanted = []
        for module, name, node in replacements:
            value = node[1] if node[0] == "plain" else self._find(node)
            if (module, name) == ("sys", "stdin"):
                value = _Typed(value)
            with suppress(Exception):  # there is none, or it fails
                self.wanted.append((importlib.import_module(module), name, value))

    @contextmanager
    def during(self) -> Iterator[None]:
        """Put everything where it is to be."""
        self._on()
        try:
            yield
        finally:
            self._off()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Put everything back while the line is used, which needs modules as they are."""
        if not self._set:
            yield
            return
        self._off()
        try:
            yield
        finally:
            self._on()

    def _on(self) -> None:
        for module, name, value in self.wanted:
            if hasattr(module, name):
                self._set.append((module, name, value, getattr(module, name)))
                setattr(module, name, value)

    def _off(self) -> None:
        while self._set:
            module, name, value, before = self._set.pop()
            if getattr(module, name, None) is value:  # else the student's code has replaced it
                setattr(module, name, before)
