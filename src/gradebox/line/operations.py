"""What one process may do with an object of the other besides to call it, by name."""

import operator
from collections.abc import Callable
from typing import Any

BINARY = (
    *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow"),
    *("and_", "or_", "xor", "lshift", "rshift"),
)
"""The operators with two sides that an object may have, as ``operator`` calls them."""

IN_PLACE = tuple(f"i{name.rstrip('_')}" for name in BINARY)
"""The same, changing the object on the left."""

ORDER = ("eq", "ne", "lt", "le", "gt", "ge")
"""The comparisons of two objects.

With anything else than another object of the student's a student's object is never compared: one
that says it equals whatever it is compared with would pass each test.
"""

_ITEMS = ("contains", "getitem", "setitem", "delitem")
_ALONE = ("neg", "pos", "abs", "invert", "index")
_FUNCTIONS: tuple[Any, ...] = (
    *(len, iter, reversed, bool, int, float, complex, round),
    *(str, repr, format, hash, isinstance, issubclass),
)

OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(operator, name) for name in (*BINARY, *ORDER, *_ALONE, *_ITEMS)},
    **{name: getattr(operator, name) for name in IN_PLACE},
    **{function.__name__: function for function in _FUNCTIONS},
    "enter": lambda value: type(value).__enter__(value),
}
