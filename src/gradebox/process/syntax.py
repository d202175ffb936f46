"""The syntax tree of a cell, also where several threads ask for one."""

import ast
import threading

_one_at_a_time = threading.Lock()


def parse(source: str, file: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of Python code, like ``ast.parse``.

    Threads take turns. CPython before 3.11.8 and 3.12.2 counts the depth of the tree that it builds
    in one place for all threads. Two that parse at once, one of them interrupted by the garbage
    collector, could end with ``SystemError: AST constructor recursion depth mismatch``.

    Raises
    ------
    SyntaxError, ValueError
        Where the code is no Python.
    """
    with _one_at_a_time:
        return ast.parse(source, file)
