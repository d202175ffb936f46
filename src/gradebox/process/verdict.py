"""The verdict: test cells run in the checker, where the student's names are proxies.

What differs from a test cell that runs beside the student's code:

- A container that the student's code keeps, or is given and keeps, is in both processes, and both
  are kept alike: see :mod:`gradebox.line.twins`. One that nobody keeps is a copy; numbers, text and
  tuples are equal, but not identical.
- While a call is under way, a function that is called back meets the lists of the test that the
  call was given if they are small, and copies if they have more than 16 KiB: then what the call has
  changed shows when it is over.
- Two objects of the student's compare as their class says; with anything else such an object is
  never equal, nor less or more. Methods, operators and attributes are those of its class.
- Arithmetic with an object of the student's is that of its class, also with a value of a test's, if
  the instructor's answers need that; otherwise such an object is refused: see
  :mod:`gradebox.line.mixed_operations`. Numbers of classes that derive from ``int`` and ``float``
  are reckoned with here.
- Of objects of the tests an answer may use what :mod:`gradebox.line.lent` says.
- A test that gives a name another value changes what the student's code sees, if the instructor's
  own cells define that name: see :mod:`gradebox.line.shared_names`.
- ``backward`` goes back through the student's code once, not twice, as second derivatives need it;
  arrays that share memory do not share it any more; objects of other libraries stay objects.
- A class of a test cannot inherit from one of the student's.
- An exception class of the student's can be caught and raised; what its ``__init__`` does is done
  only where the student's own code raises it.
- Files in the working folder, and in ``/tmp`` where that is private, are kept in step within the
  limits of :mod:`gradebox.effects.folders`. What Python could run or unpickle does not come to the
  tests.
- Where a test replaces a function of a module, the student's code meets it only as
  :mod:`gradebox.effects.patches` says, and gets from it plain data or functions.
- A cell whose value is an array, a tensor or a student's object gives no points: a sum of
  comparisons becomes one when a student returns an array. End it with ``;`` to show nothing.
- IPython's magic commands work, with the names of the tests; what they change in IPython they
  change for the test cells alone.

A cell that cannot do without has to run beside the student's code, where its score can be forged.
"""

import ast
import builtins
import contextlib
import linecache
import signal
import sys
import threading
import traceback
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from gradebox.line.doctests import teach_doctest
from gradebox.line.peer import (
    MOST_TEXT,
    StudentError,
    StudentGone,
    message_of,
    source_of_error,
)
from gradebox.line.proxy import GRACE, Late, Proxy, Student
from gradebox.line.shared_names import SharedNames
from gradebox.process.magics import Runner, Tools, python_of
from gradebox.process.namespace import SeenNames
from gradebox.process.scoring import bounded
from gradebox.process.syntax import parse
from gradebox.sandbox.deadline import Deadline

MODULES: Mapping[str, str] = {
    "np": "numpy",
    "pd": "pandas",
    "sp": "scipy",
    "plt": "matplotlib.pyplot",
    "sns": "seaborn",
    "nn": "torch.nn",
    "F": "torch.nn.functional",
}
"""What a module's usual other name means in a test cell that does not import it itself."""


@dataclass
class Verdict:
    """What one test cell came to: the checker's own result.

    Parameters
    ----------
    score, points : float
        A number from 0 to points.
    outputs : list of dict
        What the cell showed, as a notebook keeps it.
    error : str
        Why the score is 0; empty if the cell ran to its end.
    doubt : str
        Why points that are missing may be gradebox's own fault: something could not travel, or an
        object of the student's was represented by a stand-in. Empty where that cannot be.
    mixed : list of str
        The operators and methods of objects of the student's that were given values of the test:
        see :mod:`gradebox.line.mixed_operations`.
    """

    score: float
    points: float
    outputs: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""
    doubt: str = ""
    mixed: list[str] = field(default_factory=list)


class _Names(SeenNames):
    """The names of the test cells, then Python's own, then IPython's, then the student's."""

    def __init__(self, student: Student, answers: Collection[str]) -> None:
        super().__init__(
            self._students, self._look_up, answers, __name__="__main__", __builtins__=builtins
        )
        self._student, self.tools = student, Tools(self)
        self.modules: dict[str, Any] = {}
        """The modules that the instructor's solutions import, by their names there."""

    def _students(self) -> Collection[str]:
        return [*self._student.names(), *self.tools.functions]

    def _look_up(self, name: str) -> Any:
        if name == "get_ipython":  # the student has another one
            return self.tools.functions[name]
        try:
            value = self._student[name]
        except KeyError:
            if name not in self.tools.functions:
                raise
            return self.tools.functions[name]
        if isinstance(value, Proxy) and value._gradebox.kind == "module":
            return self.modules.get(name) or _module(name)
        return value


def _module(name: str) -> Any:
    """Return a module of the checker for a name that is a module in the student's process."""
    module = sys.modules.get(MODULES.get(name, name))
    if module is None:
        raise KeyError(name)
    return module


class Checker:
    """Runs test cells in one namespace, in which a student's names are looked up as they are used.

    Parameters
    ----------
    student : Student
        The student's names.
    answers : collection of str
        Names that the student is to define although Python has them, such as ``sum``. Every other
        name that Python has is Python's own in a test cell, whatever the student calls so.
    shared : collection of str
        Names of the student's that a test may give another value, which the student's code then
        sees.
    seconds : float
        The limit of one cell, by the student's clock. It needs the main thread and a system with
        alarms; elsewhere it limits what the cell asks of the student's process, but not the cell's
        own loops.
    """

    def __init__(
        self,
        student: Student,
        *,
        answers: Collection[str] = (),
        shared: Collection[str] = (),
        seconds: float = 60.0,
    ) -> None:
        self.student, self.seconds = student, seconds
        self.names = _Names(student, answers)
        student.shared = SharedNames(self.names, shared)
        self._count = 0
        teach_doctest()

    def run(
        self, source: str, points: float = 0.0, mixed: Collection[str] | None = None
    ) -> Verdict:
        """Run one cell.

        Parameters
        ----------
        source : str
            Its text.
        points : float
            What it is worth at most.
        mixed : collection of str or None
            The operators and methods of objects that may be given values of this test, because the
            instructor's answers need them; None allows all.
        """
        from gradebox.process.shell import Outputs, Stream

        outputs = self.names.tools.outputs = Outputs()
        self._count += 1
        verdict = Verdict(0.0, float(points), outputs.items)
        if self.student.gone:
            verdict.error = f"not executed: the student's process is gone; {self.student.gone}"
            outputs.add("error", **_error_output(StudentGone("StudentGone", verdict.error)))
            return verdict
        self.student.troubles.clear()
        self.student.stand_ins.clear()
        self.student.mixed.begin(mixed)
        self.student.along.patches.lost.clear()
        out, err = Stream("stdout", outputs), Stream("stderr", outputs)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                shared = contextlib.nullcontext() if points else self.student.shared.defined()
                with self._limited(), shared:
                    self.student.begin()
                    value = self._execute(source)
                verdict.score = _score(value, verdict.points)
                if value is not None:
                    shown = repr(verdict.score) if _is_number(value) else _shown(value)
                    content = {"data": {"text/plain": shown}, "metadata": {}}
                    outputs.add("execute_result", execution_count=None, **content)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and not _of_student(error):
                raise
            outputs.add("error", **_error_output(error))
            verdict.error = f"{type(error).__name__}: {message_of(error)}"
            verdict.doubt = verdict.error if _is_limit(error) else ""
        if self.student.troubles:  # even if the test expected an error, it did not expect this one
            verdict.score, why = 0.0, self.student.troubles[0]
            if not verdict.error:
                verdict.error = why
                outputs.add("error", **_error_output(StudentError("StudentError", why)))
        verdict.mixed = sorted(self.student.mixed.operations)
        if why := self.student.mixed.refused:  # even if the test caught that
            verdict.score, verdict.error, verdict.doubt = 0.0, verdict.error or why, why
        if verdict.score < verdict.points and not self.student.troubles and not verdict.doubt:
            verdict.doubt = self._doubt(source, verdict.error)
        return verdict

    def _doubt(self, source: str, error: str) -> str:
        """Return why a test that ran to its end, or failed, may have failed only here."""
        along = self.student.along
        if stand_ins := sorted(self.student.stand_ins | along.patches.lost):
            return f"a stand-in for {', '.join(stand_ins[:3])}"
        return along.files.doubt(source, error) if along.files is not None else ""

    def _execute(self, source: str) -> Any:
        """Run the statements and return the value of the last one, if it is an expression."""
        file, shows = f"<test cell {self._count}>", not source.rstrip().endswith(";")
        source = python_of(source)
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        tree = parse(source, file)
        last = tree.body[-1] if tree.body else None
        with Runner() as runner:
            if not isinstance(last, ast.Expr):
                runner.run(_compiled(tree, file), self.names)
                return None
            tree.body.pop()
            runner.run(_compiled(tree, file), self.names)
            value = runner.run(_compiled(ast.Expression(last.value), file), self.names)
        return value if shows else None

    @contextlib.contextmanager
    def _limited(self) -> Iterator[None]:
        self.student.cell = Deadline(self.seconds, self.student.clock)
        try:
            with self._alarmed():
                yield
        finally:
            self.student.cell = None

    @contextlib.contextmanager
    def _alarmed(self) -> Iterator[None]:
        alarms = hasattr(signal, "setitimer")
        if not alarms or threading.current_thread() is not threading.main_thread():
            yield
            return

        # later than what the student's process is given
        deadline = Deadline(self.seconds + GRACE + 1, self.student.clock)

        def ring(number: int, frame: Any) -> None:
            if remaining := deadline.remaining():
                signal.setitimer(signal.ITIMER_REAL, remaining, 1.0)
                return
            self.student.troubles.append("the test cell took too long")
            raise Late(f"longer than {self.seconds:g} s")

        before = signal.signal(signal.SIGALRM, ring)
        # it rings again if an except held it
        signal.setitimer(signal.ITIMER_REAL, deadline.seconds, 1.0)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def _compiled(tree: ast.Module | ast.Expression, file: str) -> CodeType:
    mode = "exec" if isinstance(tree, ast.Module) else "eval"
    return compile(tree, file, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def _score(value: Any, points: float) -> float:
    """Return the points of a cell that raised nothing and ended with a value.

    A comparison with a student's array gives an array, not a truth value; a sum of those would be
    no number, and so be worth all points.
    """
    if isinstance(value, Proxy) or type(value).__name__ in ("ndarray", "Tensor"):
        raise TypeError(
            f"expected a number as the value of this cell, got {_shown(value)[:100]}; "
            "an answer may have another type than the test expects"
        )
    if not _is_number(value):
        return points
    try:
        return bounded(float(value), points)
    except OverflowError:
        return points if value > 0 else 0.0


def _is_number(value: Any) -> bool:
    kinds = int | float | np.integer | np.floating
    return isinstance(value, kinds) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    try:
        return repr(value)[:MOST_TEXT]
    except Exception as error:
        return f"<{type(value).__name__}: {type(error).__name__}>"


LIMITS = ("Unsendable", "TooLong", "BadValue")
"""The errors by which gradebox says that something cannot travel."""


def _is_limit(error: BaseException) -> bool:
    """Return whether an error is gradebox's own, here or in the student's process."""
    source = source_of_error(error)
    names = [type(error).__name__, getattr(source, "name", "")]
    return any(name in LIMITS for name in names) or (
        isinstance(error, RecursionError) and "between the two processes" in message_of(error)
    )


def _of_student(error: BaseException) -> bool:
    return source_of_error(error) is not None


OWN = str(Path(__file__).parent.parent)


def _traceback(error: BaseException) -> list[str]:
    """Return the lines of a traceback without the frames of gradebox, which help nobody."""
    trace = traceback.TracebackException.from_exception(error, limit=-20)
    trace.stack = traceback.StackSummary.from_list(
        [frame for frame in trace.stack if not frame.filename.startswith(OWN)]
    )
    return list(trace.format(chain=False))


def _error_output(error: BaseException) -> dict[str, Any]:
    """Return an exception as a notebook keeps it, with the student's own traceback if any."""
    own = getattr(error, "_render_traceback_", None)
    try:
        lines = list(own()) if own else _traceback(error)
    except Exception:
        lines = []
    source = source_of_error(error)
    if source is not None and source.trace:
        lines.append(f"\nIn the student's code:\n{source.trace}")
    text = "".join(str(line) if str(line).endswith("\n") else f"{line}\n" for line in lines)
    return {
        "ename": type(error).__name__,
        "evalue": message_of(error),
        "traceback": text[-MOST_TEXT:].splitlines(),
    }
