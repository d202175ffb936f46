"""Issue the warnings of a student's code again where the tests run, under the filters of the tests.

As long as the tests have not changed how warnings are treated, those of the student's code are the
business of its process alone. Once a test records them, expects them or turns them into errors, its
filters are in force there too, during each call; what they let through comes with the answer, and
is issued again. Then the test's own filters decide, whatever the student's process made of them.
"""

import builtins
import contextlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from gradebox.codec.encoding import BadValue, Unsendable

MOST = 1000
"""So many warnings come with one message; the rest is dropped."""

LONGEST = 10_000
"""So many characters of a warning are passed on."""

LAST_LINE = 10**6
"""No line of code has a greater number."""

_LIBRARIES = {
    "numpy.exceptions": ("ComplexWarning", "RankWarning", "VisibleDeprecationWarning"),
    "torch.jit": ("TracerWarning",),
    "torch.errors": ("PrecompilationWarning",),
    "scipy.optimize": ("OptimizeWarning",),
    "scipy.integrate": ("IntegrationWarning",),
    "scipy.linalg": ("LinAlgWarning",),
    "scipy.sparse": ("SparseEfficiencyWarning", "SparseWarning"),
    "scipy.stats": ("ConstantInputWarning", "DegenerateDataWarning", "NearConstantInputWarning"),
    "pandas.errors": ("DtypeWarning", "ParserWarning", "PerformanceWarning"),
    "sklearn.exceptions": ("ConvergenceWarning", "DataConversionWarning", "UndefinedMetricWarning"),
}
"""The categories of libraries that are known, by the module in which to look for them."""

_warnings_names = vars(warnings)

Export = Callable[[Any], Any]


def _named(name: Any) -> type[Warning] | None:
    """Return the category of a name, if it is known and its module is imported."""
    module, _, last = name.rpartition(".") if type(name) is str else ("", "", "")
    if last not in _LIBRARIES.get(module, ()) and module:
        return None
    category = getattr(sys.modules.get(module) if module else builtins, last, None)
    return category if isinstance(category, type) and issubclass(category, Warning) else None


def _name(category: type) -> str:
    """Return the name of a category; empty if it is not known."""
    for module in ("", *_LIBRARIES):
        name = f"{module}.{category.__name__}" if module else category.__name__
        if _named(name) is category:
            return name
    return ""


class Watch:
    """The end of the tests.

    Parameters
    ----------
    find : callable
        Returns the class of a node that stands for one of the student's own.
    export : callable
        Returns the node of such a class.
    """

    def __init__(self, find: Callable[[Any], Any], export: Export) -> None:
        self._find, self._export = find, export
        self._before = self._last = self._present()
        self._received: list[tuple[type[Warning], str, int]] = []
        self._registry: dict[Any, Any] = {}

    def _present(self) -> tuple[Any, ...]:
        record = _warnings_names.get("_showwarnmsg_impl")
        return list(warnings.filters), warnings.showwarning, record

    def has_changed(self) -> bool:
        """Return whether warnings are treated in another way than when this was asked last."""
        filters, show, record = self._last
        if (
            warnings.filters == filters
            and warnings.showwarning is show
            and _warnings_names.get("_showwarnmsg_impl") is record
        ):
            return False
        self._last = self._present()
        return True

    def settings(self) -> dict[str, Any] | None:
        """Return how warnings are treated, as plain data; None if as at the beginning."""
        if self._last == self._before:
            return None
        filters, before = self._last[0], self._before[0]
        new = len(filters) - len(before)
        is_whole = new < 0 or filters[new:] != before
        descriptions = map(self._filter, filters if is_whole else filters[:new])
        return {
            "filters": [description for description in descriptions if description],
            "whole": is_whole,
        }

    def _filter(self, entry: tuple[Any, ...]) -> list[Any] | None:
        action, message, category, module, line = entry
        name: Any = _name(category)
        if not name and hasattr(category, "_gradebox"):
            with contextlib.suppress(Unsendable):
                name = self._export(category)
        texts = [getattr(pattern, "pattern", pattern) for pattern in (message, module)]
        return [action, texts[0] or "", name, texts[1] or "", line] if name else None

    def take(self, records: Any) -> None:
        """Keep the warnings that have come.

        Raises
        ------
        BadValue
            For what no honest process sends.
        """
        if type(records) is not list or len(records) > MOST:
            raise BadValue("expected a list of warnings")
        for record in records:
            if type(record) is not list or len(record) != 3:
                raise BadValue("expected a warning")
            category, text, line = record
            is_node = type(category) is list and category
            kind = self._find(category) if is_node else _named(category)
            if not isinstance(kind, type) or not issubclass(kind, Warning):
                raise BadValue("expected the category of a warning")
            if type(text) is not str or len(text) > LONGEST:
                raise BadValue("expected the text of a warning")
            if type(line) is not int or not 0 <= line <= LAST_LINE:
                raise BadValue("expected the line of a warning")
            if len(self._received) < MOST:
                self._received.append((kind, text, line))

    def issue(self) -> None:
        """Issue the warnings that have come; a filter of the tests may make one an error."""
        received, self._received = self._received, []
        for category, text, line in received:
            # no file of the student's choice: what stands there would be shown with the warning
            location = ("<the student's code>", line, "__main__", self._registry)
            warnings.warn_explicit(text, category, *location)


class Recorder:
    """The student's end.

    Parameters
    ----------
    find : callable
        Returns the class of a node.
    export : callable
        Returns the node of a class of the student's.
    """

    def __init__(self, find: Callable[[Any], Any], export: Export) -> None:
        self._find, self._export = find, export
        self._caught: list[list[Any]] = []
        self.wanted: dict[str, Any] | None = None
        """How the tests treat warnings, if not as at the beginning."""

    def caught(self) -> list[list[Any]]:
        """Return the warnings since this was asked last, as plain data."""
        caught, self._caught = self._caught, []
        return caught

    @contextlib.contextmanager
    def during(self) -> Iterator[None]:
        """Treat warnings as the tests do, and keep those that come through."""
        wanted = self.wanted or {}
        with warnings.catch_warnings():
            if wanted["whole"]:
                warnings.resetwarnings()
            for action, message, category, module, line in reversed(wanted["filters"]):
                kind = self._find(category) if type(category) is list else _named(category)
                if kind is not None:
                    with contextlib.suppress(re.error, ValueError):
                        warnings.filterwarnings(action, message, kind, module, line)
            warnings.showwarning = self._record  # type: ignore[assignment]
            yield

    def _record(self, message: Any, category: type, name: str, line: int, *more: Any) -> None:
        if len(self._caught) < MOST:
            text = str(message)[:LONGEST]
            line = line if 0 <= line <= LAST_LINE else 0
            self._caught.append([self._encode_category(category), text, line])

    def _encode_category(self, category: type) -> Any:
        """Return what stands for a category: its nearest known base, or the class itself."""
        names = (_name(base) for base in category.__mro__)
        nearest = next(filter(None, names), "Warning")
        if nearest == _name(category):
            return nearest
        try:
            return self._export(category)
        except (Unsendable, RecursionError):
            return nearest
