"""What an object can do: the special methods of its class, as one number on the line.

A stand-in has the special methods that the student's class has, and no others: ``callable``,
``hasattr(x, "__len__")`` and the abstract classes of ``collections.abc`` ask for them.
"""

from typing import Any

from gradebox.line.operations import BINARY

_SIDED = tuple(f"{side}{name.rstrip('_')}" for name in BINARY for side in ("", "r", "i"))

ABILITIES = (
    *("call", "len", "iter", "next", "getitem", "setitem", "delitem", "contains", "reversed"),
    *("bool", "int", "float", "complex", "index", "round", "enter", "exit"),
    *("neg", "pos", "abs", "invert", "await", "hash"),
    *_SIDED,
)
"""Special methods that a class has or has not, without their underscores; each is one bit.

What every class has, such as ``__repr__`` and ``__eq__``, is not among them.
"""

NONE, EVERY = 0, 2 ** len(ABILITIES) - 1


def abilities_of(kind: Any) -> int:
    """Return which special methods the objects of a class have.

    Examples
    --------
    >>> abilities_of(object) == 1 << ABILITIES.index("hash")
    True
    """
    abilities = NONE
    # past what a metaclass says of __mro__ and __dict__
    own = type.__dict__
    spaces = [own["__dict__"].__get__(ancestor) for ancestor in own["__mro__"].__get__(kind)]
    for bit, name in enumerate(ABILITIES):
        dunder = f"__{name}__"
        method = next((space[dunder] for space in spaces if dunder in space), None)
        abilities |= (method is not None) << bit  # None says that there is none, in spite of a base
    return abilities


def names_of(abilities: int) -> list[str]:
    """Return the special methods that a number stands for."""
    return [f"__{name}__" for bit, name in enumerate(ABILITIES) if abilities >> bit & 1]
