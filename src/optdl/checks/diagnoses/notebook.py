"""Tell a function that is older than its cell, and one that is called before it is written."""

import ast
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any


def _shell() -> Any:
    """Return the shell of the notebook, or None elsewhere."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def tell_unwritten_plainly() -> None:
    """Show one line, in a notebook, where a cell calls a function that is not written yet.

    Checks say so themselves; a cell that trains or draws would show a long traceback. The shell
    has room for one handler; an existing one stays.
    """
    shell = _shell()
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((NotImplementedError,), _show)


def _show(shell: Any, kind: Any, error: Any, trace: Any, tb_offset: Any = None) -> None:
    if line := unwritten(error):
        error._render_traceback_ = lambda: [line]
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


def unwritten(error: NotImplementedError) -> str:
    """Return in words which function of the notebook is not written yet, or an empty string."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    name = frame.f_code.co_qualname
    if error.args or frame.f_globals.get("__name__") != "__main__" or name == "<module>":
        return ""
    return f"✗ `{name}` is not written yet. Replace `raise NotImplementedError()`."


def stale(function: Callable[..., Any]) -> str:
    """Return that the newest cell of a function has a syntax error, or an empty string.

    Python kept the function of an earlier run then, and that is the one a check sees.
    """
    shell = _shell()
    name = getattr(function, "__name__", "")
    if shell is None or getattr(function, "__module__", "") != "__main__":
        return ""
    return error_of(shell.user_ns.get("In", ()), name, shell.transform_cell)


def error_of(cells: Sequence[str], name: str, transform: Callable[[str], str] = str) -> str:
    r"""Return in words the syntax error of the last cell that defines a function, if it has one.

    Examples
    --------
    >>> error_of(["def f(x):\n    return x", "def f(x)\n    return 2 * x"], "f")
    'the cell of `f` has a syntax error in line 1, so an earlier `f` was checked: fix ...'
    """
    own = [cell for cell in cells if re.search(rf"^def {re.escape(name)}\b", cell, re.M)]
    try:
        ast.parse(transform(own[-1]) if own else "")
    except SyntaxError as error:
        return (
            f"the cell of `{name}` has a syntax error in line {error.lineno}, so an earlier "
            f"`{name}` was checked: fix it, and run the cell again"
        )
    return ""
