"""Tell what is the matter with a function of a notebook before it is called.

It is older than its cell, is not written yet, or takes the course's own answer.
"""

import ast
import dis
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from optdl.checks.exercise import Exercise


def shell() -> Any:
    """Return the shell of the notebook, or None elsewhere."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def is_notebook() -> bool:
    """Return whether a reader's cells run here, in Jupyter or in a page."""
    return shell() is not None or sys.platform in ("wasi", "emscripten")


def tell_unwritten_plainly() -> None:
    """Show one line, in a notebook, where a cell calls a function that is not written yet.

    Checks say so themselves; a cell that trains or draws would show a long traceback. The shell
    has room for one handler; an existing one stays.
    """
    own = shell()
    if own is not None and not own.custom_exceptions:
        own.set_custom_exc((NotImplementedError,), _show)


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
    own, name = shell(), getattr(function, "__name__", "")
    if own is None or getattr(function, "__module__", "") != "__main__":
        return ""
    defines = re.compile(rf"^def {re.escape(name)}\b", re.M)
    cells = [cell for cell in own.user_ns.get("In", ()) if defines.search(cell)]
    try:
        ast.parse(own.transform_cell(cells[-1]) if cells else "")
    except SyntaxError as error:
        return (
            f"the cell of `{name}` has a syntax error in line {error.lineno}, so an earlier "
            f"`{name}` was checked: fix it, and run the cell again"
        )
    return ""


IMPORTS = {"IMPORT_NAME", "LOAD_GLOBAL", "LOAD_NAME"}
"""Instructions that name what a function takes from elsewhere."""


def taken(exercise: Exercise, answer: Any) -> str:
    """Return the module with answers from which an answer takes something, or an empty text.

    A notebook of a class is graded without these modules. Here they are installed, and an answer
    that calls them would agree today and earn nothing later.
    """
    topic = str(exercise._draw.__module__).split(".")[2]
    modules = "optdl.checks", f"optdl.{topic}", exercise.reference.__module__
    for name in _reached(answer):
        for module in modules:
            if f"{name}.".startswith(f"{module}."):
                return module
    return ""


def _reached(answer: Any) -> Iterator[str]:
    """Yield the names of the modules of all that an answer of a notebook can reach by its code."""
    reached: list[Any] = [answer]
    seen: list[Any] = []
    for value in reached:  # it grows
        if any(value is other for other in seen):
            continue
        seen.append(value)
        yield _module(value)
        if isinstance(value, partial):
            reached += [value.func, *value.args, *value.keywords.values()]
        elif isinstance(value, type) and _module(value) == "__main__":
            reached += [*value.__bases__, *vars(value).values()]
        elif isinstance(value, FunctionType) and _module(value) == "__main__":
            cells = (cell for cell in value.__closure__ or () if cell != CellType())  # not empty
            reached += [cell.cell_contents for cell in cells]
            reached += _named(value.__code__, value.__globals__)


def _module(value: Any) -> str:
    named = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
    return str(named)


def _named(code: CodeType, names: dict[str, Any]) -> list[Any]:
    """Return what the code of a function names: global values, and what it takes from modules."""
    steps = [step for each in _codes(code) for step in dis.get_instructions(each)]
    found = [step.argval for step in steps if step.opname in IMPORTS]
    values = [names.get(name, sys.modules.get(name)) for name in found]
    attributes = {step.argval for step in steps if isinstance(step.argval, str)}
    for value in values:  # it grows
        if _module(value).split(".")[0] == "optdl" and isinstance(value, ModuleType):
            more = [getattr(value, name) for name in attributes if hasattr(value, name)]
            values += [each for each in more if not any(each is other for other in values)]
    return values


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)
