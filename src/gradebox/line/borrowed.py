"""The student's end of the objects of the tests: functions, classes, files, iterators.

What a student's code does with it is asked of the tests' process, which allows what
:mod:`gradebox.line.lent` says.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from gradebox.line.operations import BINARY, IN_PLACE, OPERATIONS
from gradebox.line.peer import Handle


def _ask(loan: "Loan", question: str, *value: Any) -> Any:
    handle = loan._gradebox
    if not getattr(handle.peer, "inside", True):
        name = handle.name or handle.type_name
        raise RuntimeError(f"{name} can be used only while it is being tested")
    return handle.peer.ask(question, value)


class Loan:
    """An object of the tests."""

    __slots__ = ("__weakref__", "_gradebox")
    _gradebox: Handle

    def __getattr__(self, name: str) -> Any:
        if name in ("__name__", "__qualname__") and self._gradebox.name:
            return self._gradebox.name
        if name.startswith("__"):
            raise AttributeError(name)
        return _ask(self, "getattr", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        _ask(self, "setattr", self, name, value)

    def __delattr__(self, name: str) -> None:
        _ask(self, "delattr", self, name)

    def __next__(self) -> Any:
        item = _ask(self, "next", self)
        if not item:
            raise StopIteration
        return item[0]

    def __exit__(self, *ended: Any) -> None:
        _ask(self, "exit", self)

    def __copy__(self) -> "Loan":
        return self

    def __deepcopy__(self, memo: Any) -> "Loan":
        return self


class CallableLoan(Loan):
    """A function, a class or another object of the tests that can be called."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with copies of the arguments."""
        return _ask(self, "call", self, args, kwargs)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, Loan) and _ask(self, "operate", "isinstance", value, self) is True


def _plain_repr(loan: Loan) -> str:
    return f"<{loan._gradebox.kind} {loan._gradebox.name or loan._gradebox.type_name}>"


_LOCAL: dict[str, Callable[..., Any]] = {
    "bool": lambda loan: True,
    "hash": lambda loan: hash(loan._gradebox.number),
    "eq": lambda loan, other: loan is other,
    "ne": lambda loan, other: loan is not other,
    "str": _plain_repr,
    "repr": _plain_repr,
}
"""What need not be asked of a function or a class."""


def _operator(name: str, *, reflected: bool = False) -> Callable[..., Any]:
    def operate(self: Loan, *others: Any) -> Any:
        if name in _LOCAL and self._gradebox.kind in ("function", "class"):
            return _LOCAL[name](self, *others)
        values = (*others, self) if reflected else (self, *others)
        return _ask(self, "operate", name, *values)

    return operate


_SPECIAL = frozenset(("isinstance", "issubclass", *IN_PLACE))

for _name in sorted(set(OPERATIONS) - _SPECIAL):
    _short = _name.rstrip("_")
    setattr(Loan, f"__{_short}__", _operator(_name))
    if _name in BINARY:
        setattr(Loan, f"__r{_short}__", _operator(_name, reflected=True))


@lru_cache(maxsize=1000)
def _kind(base: type, name: str) -> Any:
    """Return a kind of loan whose type has the name of the test's class."""
    return type(name, (base,), {"__slots__": ()})


def loan(handle: Handle, callable_: bool) -> Any:
    """Return what stands for an object of the tests."""
    base = CallableLoan if callable_ else Loan
    kind = _kind(base, handle.type_name) if handle.type_name.isidentifier() else base
    instance = object.__new__(kind)
    object.__setattr__(instance, "_gradebox", handle)
    return instance
