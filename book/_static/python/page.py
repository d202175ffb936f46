"""Run the code cells of a page, in order and from any of them on, with what its text says of them.

A cell begins with the names as they were before it, whatever later cells have done: what comes out
is what a run of the whole page would give.
"""

import ast
import builtins
import contextlib
import copy
import io
import os
from pathlib import Path

import session
from page_text import stated, statements, typeset

NAMES = {"__name__": "__main__", "__builtins__": builtins}
"""The names of the page's cells; those of exercises are others."""

before = []
"""The names as they were before each cell that has been run."""

# paths are relative to the folder of the pages, as when the build runs them
Path("/page/book").mkdir(parents=True, exist_ok=True)
os.chdir("/page/book")


def cell(number, source, numbers, verdict):
    """Run a cell, and return its figures, the numbers in the text below it, and what holds."""
    if number < len(before):
        NAMES.clear()
        NAMES.update(before[number])
        del before[number:]
    before.append(copied(NAMES))
    answer = verdicts(source) if verdict else session.run([(f"cell {number + 1}", source)], NAMES)
    return answer | {"numbers": {text: printed(text) for text in numbers}}


def copied(names):
    """Return names with values of their own; what cannot be copied is shared, as modules are."""
    memo = {id(names): names}
    return {name: own(value, memo) for name, value in names.items()}


def own(value, memo):
    """Return a copy of a value, if it can be copied."""
    try:
        return copy.deepcopy(value, memo)
    except Exception:
        return value


def printed(text):
    """Return a number of the text, a field of an f-string, as it is set there."""
    try:
        return typeset(eval(f"f'''{{{text}}}'''", NAMES))
    except Exception:
        return "?"


def verdicts(source):
    """Return which sentences of the page hold; those that cannot be computed do not."""
    made = [node.msg for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.suppress(Exception):
        exec(compile(stated(source), "<verdict>", "exec"), NAMES)
    lost = {text.value: False for text in made if isinstance(text, ast.Constant)}
    return {"status": "ok", "holds": lost | statements(output.getvalue())}
