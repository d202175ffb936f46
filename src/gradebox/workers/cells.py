"""Run a test cell, in the process of the tests or in the student's, and say what it came to.

Neither IPython nor what a student puts into it takes part: no transformer, hook or display decides
what a test does, and the score is that of its last value, not of what was shown.
"""

import ast
import asyncio
import inspect
import itertools
import linecache
import numbers
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from types import CodeType
from typing import Any

from gradebox.workers.protocol import bounded
from gradebox.workers.shell import Outputs, text_of
from gradebox.workers.syntax import parse, python_of

OWN = str(Path(__file__).parent.parent)
MESSAGE = 10_000  # characters of what an exception says
TRACEBACK = 200_000  # characters of a test's own error, which may begin with its cause and be long

_numbers = itertools.count(1)
_compile, _evaluate = compile, eval  # a student may have put others in their place


class Cell:
    """A cell, compiled; what is no Python raises when it runs."""

    def __init__(self, source: str) -> None:
        self._file = f"<test cell {next(_numbers)}>"
        self._shows = not source.rstrip().endswith(";")
        self._error: BaseException | None = None
        self.parts: list[CodeType] = []  # its statements, and apart the last if it is an expression
        self.texts = set[str]()  # the texts in it
        self.statements: list[ast.stmt] = []
        try:
            source = python_of(source)
            linecache.cache[self._file] = len(source), None, source.splitlines(True), self._file
            trees: list[Any] = [parse(source, self._file)]
            values = (getattr(node, "value", None) for node in ast.walk(trees[0]))
            self.texts = {value.strip() for value in values if isinstance(value, str)}
            self.statements = [*trees[0].body]
            if trees[0].body and isinstance(trees[0].body[-1], ast.Expr):
                trees.append(ast.Expression(trees[0].body.pop().value))
            modes = zip(trees, ("exec", "eval"), strict=False)
            flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
            self.parts = [_compile(tree, self._file, mode, flags) for tree, mode in modes]
        except Exception as error:
            self._error = error

    def line(self, error: BaseException | None) -> int:
        """Return the line that raised an error; 0 where none is known."""
        frames = traceback.walk_tb(getattr(error, "__traceback__", None))
        return sum(line for frame, line in frames if frame.f_code in self.parts)

    def run(self, names: dict[str, Any]) -> Any:
        """Run the statements and return the value of the last one, if it is an expression."""
        if self._error is not None:
            raise self._error
        value = None
        for code in self.parts:
            value = _evaluate(code, names)
            if code.co_flags & inspect.CO_COROUTINE:
                value = asyncio.run(value)
        return value if self._shows and len(self.parts) > 1 else None


class Interrupts:
    """What becomes of the interruptions of a process by the grader: an ``error``, or nothing."""

    def __init__(self, error: Callable[[], BaseException]) -> None:
        self._error, self._is_busy, self._came = error, False, False
        signal.signal(signal.SIGINT, self._interrupt)

    def _interrupt(self, number: int, frame: Any) -> None:
        if self._is_busy:  # else it has come too late, and would hit the next cell
            raise self._error()
        self._came = True

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Let one end what runs inside."""
        self._is_busy = True
        try:
            yield
        finally:
            self._is_busy = False

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Put one off until nothing is on a line in part."""
        was_busy, self._came, self._is_busy = self._is_busy, False, False
        try:
            yield
        finally:
            self._is_busy = was_busy
        if self._came:
            raise self._error()


def result(
    run: Callable[[], Any], points: float, outputs: Outputs, refuses: Any = lambda value: False
) -> tuple[float, str, BaseException | None]:
    """Run a cell, which returns its last value, and show it; return its score, or why it has none.

    ``refuses`` says of a value whether no test may end with it.
    """
    try:
        value = run()
        if outputs.error:  # a magic such as %%capture shows it and goes on
            return 0.0, f"RuntimeError: {outputs.error}", RuntimeError(outputs.error)
        if refuses(value):
            # a comparison with an array gives an array, not a truth value; a sum of those would
            # be no number, and so be worth all points
            why = f"expected a number as the value of this cell, got {text_of(value, repr)[:100]}"
            raise TypeError(f"{why}; an answer may have another type than the test expects")
        score, shown = points, text_of(value, repr)[:MESSAGE]
        is_number = isinstance(value, numbers.Real | Decimal)
        if is_number and not isinstance(value, bool):
            try:
                score = bounded(float(value), points)
            except OverflowError:
                score = points if value > 0 else 0.0
            shown = repr(score)
        if value is not None:
            data = {"text/plain": shown}
            outputs.add("execute_result", data=data, metadata={}, execution_count=None)
    except BaseException as error:
        outputs.add("error", **error_output(error))
        why = f"{type(error).__name__}: {text_of(error)[:MESSAGE]}".removesuffix(": ")
        return 0.0, why, error
    return score, "", None


def error_output(error: BaseException) -> dict[str, Any]:
    """Return an exception as a notebook keeps it, with the line of the student's that raised."""
    own = getattr(error, "_render_traceback_", None)
    try:
        trace = traceback.TracebackException.from_exception(error, limit=-20)
        trace.stack = traceback.StackSummary.from_list(  # no frame of gradebox, which helps nobody
            [frame for frame in trace.stack if not frame.filename.startswith(OWN)]
        )
        lines = list(own() if own else trace.format(chain=False))
    except Exception:
        lines = []
    if line := getattr(error, "student_line", ""):
        lines.append(f"\nIn the student's code:\n  line {line}")
    text = "".join(str(line) if str(line).endswith("\n") else f"{line}\n" for line in lines)
    return {
        "ename": type(error).__name__,
        "evalue": text_of(error)[:MESSAGE],
        "traceback": text[-TRACEBACK:].splitlines(),
    }
