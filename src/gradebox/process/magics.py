"""IPython in a test cell: magic commands, commands of the system, and ``await`` at its top.

The student's cells have an IPython of their own in another process. That of the test cells sees
the names of the tests, and the student's as they are looked up.
"""

import asyncio
import inspect
from types import CodeType
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from gradebox.process.shell import Outputs, Shell
from gradebox.process.syntax import parse


def python_of(source: str) -> str:
    r"""Return the source of a cell as Python, with IPython's own syntax replaced by calls.

    Examples
    --------
    >>> python_of("x = 3")
    'x = 3'
    >>> python_of("%matplotlib inline")
    "get_ipython().run_line_magic('matplotlib', 'inline')\n"
    """
    try:
        parse(source)
    except (SyntaxError, ValueError):  # a line of text in it may begin with %, too
        transform: Any = TransformerManager  # which has no types
        return str(transform().transform_cell(source))
    return source


class Tools:
    """What IPython adds to the names of test cells.

    Parameters
    ----------
    names : dict
        The names of the test cells.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        self._names, self.outputs = names, Outputs()
        self.functions = {"get_ipython": self._shell, "display": self._display}

    def _shell(self) -> InteractiveShell:
        """Return IPython, with the names of the tests as those of its user."""
        shell = Shell.instance() if Shell.initialized() else Shell.make()
        shell.user_ns = self._names
        parts: tuple[Any, ...] = (shell, shell.display_pub, shell.displayhook)
        for part in parts:
            part.outputs = self.outputs
        return shell

    def _display(self, *values: Any, **more: Any) -> Any:
        self._shell()
        show: Any = display
        return show(*values, **more)


class Runner:
    """Runs the code of one cell, of which parts may wait for one another."""

    def __init__(self) -> None:
        self._loop: asyncio.Runner | None = None

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *exception_info: object) -> None:
        if self._loop is not None:
            self._loop.close()

    def run(self, code: CodeType, names: dict[str, Any]) -> Any:
        """Run code, in a loop of events if there is an ``await`` at its top."""
        value = eval(code, names)
        if not code.co_flags & inspect.CO_COROUTINE:
            return value
        if self._loop is None:
            self._loop = asyncio.Runner()
        return self._loop.run(value)
