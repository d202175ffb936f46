"""Names that the tests give another value, of those that the assignment itself defines.

In one process ``gravity = 2`` in a test changes what the student's functions see. Which names may
be changed so is the instructor's to say: those that a cell of the source notebook defines that is
no test. All other names of the tests, such as the results that they expect, stay with the tests.
"""

import contextlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from gradebox.codec.encoding import BadValue, Decoder, Encoder, Unsendable

_NOTHING = object()


class SharedNames:
    """What the tests have bound of the names that they share with the student's cells.

    Parameters
    ----------
    names : mapping
        The names of the tests.
    shared : collection of str
        The names that may go to the student's process.
    """

    def __init__(self, names: dict[str, Any], shared: Collection[str]) -> None:
        self._names, self._shared = names, sorted(shared)
        self._common: dict[str, Any] = {}
        self._sent: dict[str, Any] = {}
        self._put: dict[str, Any] = {}
        self._taken_away: list[str] = []

    @contextlib.contextmanager
    def defined(self) -> Iterator[None]:
        """Take what is bound meanwhile as bound in both processes: a locked cell runs in both."""
        before = {name: self._value(name) for name in self._shared}
        yield
        for name, value in before.items():
            if self._value(name) is not value:
                self._common[name] = self._value(name)

    def put(self, name: str, value: Any) -> None:
        """Bind a name that the student's code is to see, whoever defines it."""
        self._put.setdefault(name, self._value(name))
        self._names[name] = value

    def take_away(self, name: str) -> bool:
        """Give a name back the value that it had before it was put there; return whether it was."""
        if name not in self._put:
            return False
        before = self._put.pop(name)
        self._sent.pop(name, None)
        self._taken_away.append(name)
        self._names.pop(name, None)
        if before is not _NOTHING:
            self._names[name] = before
        return True

    def taken_away(self) -> list[str]:
        """Return the names that were taken away since this was asked last."""
        names, self._taken_away = self._taken_away, []
        return names

    def _value(self, name: str) -> Any:
        return dict.get(self._names, name, _NOTHING)

    def bound(self) -> list[str]:
        """Return the names that tests have bound."""
        names = [
            name
            for name in self._shared
            if self._value(name) is not self._common.get(name, _NOTHING)
        ]
        return [*names, *sorted({*self._put} - {*names})]

    def news(self, encoder: Encoder) -> dict[str, Any]:
        """Return the nodes of what tests have bound, where it is new or has changed."""
        nodes = {}
        for name in self.bound():
            value = self._value(name)
            scratch = Encoder(lambda other: ["object", id(other)])
            try:
                mark = repr(scratch.encode(value)), scratch.parts
                if self._sent.get(name) == mark:
                    continue
                nodes[name] = encoder.encode(value)
            except Unsendable:  # a module, say: the student's cells have their own
                continue
            self._sent[name] = mark
        return nodes

    def forget(self, rebound: Any) -> None:
        """Forget the names that a later cell of the student's has bound anew."""
        if type(rebound) is not list:
            raise BadValue("expected the names that were bound anew")
        for name in self.bound():
            if name in rebound:
                self._names.pop(name, None)
                self._sent.pop(name, None)
                self._common.pop(name, None)


class Bound:
    """The student's end: what the tests have bound here."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._before: dict[str, Any] = {}

    def hear(self, nodes: Mapping[str, Any], decoder: Decoder, namespace: Any) -> None:
        """Bind names as the tests have."""
        for name, node in nodes.items():
            self._before.setdefault(name, namespace.get(name, _NOTHING))
            namespace[name] = self._values[name] = decoder.decode(node)

    def unbind(self, names: list[str], namespace: Any) -> None:
        """Give names the values that they had before the tests bound them."""
        for name in names:
            self._values.pop(name, None)
            value = self._before.pop(name, namespace.get(name, _NOTHING))
            if value is _NOTHING:
                namespace.pop(name, None)
            else:
                namespace[name] = value

    def rebound(self, namespace: Mapping[str, Any]) -> list[str]:
        """Return which of them the student's cells have bound anew since."""
        return [
            name
            for name, value in self._values.items()
            if namespace.get(name, _NOTHING) is not value
        ]
