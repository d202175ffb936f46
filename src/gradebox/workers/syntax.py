"""The Python of a cell: its syntax tree, and IPython's own syntax replaced by calls."""

import ast
import builtins
import threading
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

# the names that Python has by itself; IPython adds its own, and a student may define a display
PYTHONS = frozenset(dir(builtins)) - {"display", "get_ipython"}

_one_at_a_time = threading.Lock()


def parse(source: str, file: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of Python code, like ``ast.parse``; threads take turns."""
    # CPython before 3.11.8 and 3.12.2 counts the depth of the tree that it builds in one place for
    # all threads: "SystemError: AST constructor recursion depth mismatch"
    with _one_at_a_time:
        return ast.parse(source, file)


def python_of(source: str) -> str:
    r"""Return the source of a cell as Python, with IPython's own syntax replaced by calls.

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


def body_of(source: str) -> str:
    """Return the Python in the source of a cell that may begin with a magic for the whole cell."""
    if source.lstrip().startswith("%%"):
        line, _, source = source.lstrip().partition("\n")
        if line.startswith("%%capture ") and line.split()[-1].isidentifier():
            source += f"\n{line.split()[-1]} = None"
    return python_of(source)
