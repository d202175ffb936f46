"""Tell a function that is older than the cell in which it stands."""

import ast
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any


def stale(function: Callable[..., Any]) -> str:
    """Return that the newest cell of a function has a syntax error, or an empty string.

    Python kept the function of an earlier run then, and that is the one a check sees.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    name = getattr(function, "__name__", "")
    if shell is None or getattr(function, "__module__", "") != "__main__":
        return ""
    return error_of(shell.user_ns.get("In", ()), name, shell.transform_cell)


def error_of(cells: Sequence[str], name: str, transform: Callable[[str], str] = str) -> str:
    r"""Return in words the syntax error of the last cell that defines a function, if it has one.

    Examples
    --------
    >>> error_of(["def f(x):\n    return x", "def f(x)\n    return 2 * x"], "f")
    'the cell of `f` has a syntax error in line 1, so that an earlier `f` was checked: mend ...'
    """
    own = [cell for cell in cells if re.search(rf"^def {re.escape(name)}\b", cell, re.M)]
    try:
        ast.parse(transform(own[-1]) if own else "")
    except SyntaxError as error:
        return (
            f"the cell of `{name}` has a syntax error in line {error.lineno}, so that an earlier "
            f"`{name}` was checked: mend it, and run the cell again"
        )
    return ""
