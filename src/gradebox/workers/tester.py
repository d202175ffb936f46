"""The process of the tests: it holds the instructor's cells, and of the student's only values.

One process for each notebook of the assignment is sealed at the start of a run. For each submission
it forks a child, which runs the locked cells and the isolated tests in one namespace.
"""

import ast
import asyncio
import contextlib
import inspect
import linecache
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any, NoReturn

import numpy as np

from gradebox.values.channel import Channel, Gone
from gradebox.workers.names import Names
from gradebox.workers.protocol import Prepare, RunTest, Tested, TestSettings, bounded, receive, send
from gradebox.workers.shell import Outputs, Stream
from gradebox.workers.stubs import MESSAGE, Answers, Stub, text_of
from gradebox.workers.syntax import parse, python_of

OWN = str(Path(__file__).parent.parent)
TRACEBACK = 200_000
"""So many characters of a test's own error are kept: it may begin with its cause and be long."""
HELLO = b"h"
"""A child's first byte to the grader, which learns from it what its process id is there."""


_SEEDS = re.compile(r"seed\w*\(")
"""Finds in a test that it sets the state of a random generator, which an answer may draw from."""


class Late(BaseException):
    """The grader has interrupted a test cell; no ``except Exception`` of a test holds it."""


def serve_template(control: socket.socket, settings: TestSettings, longest: int) -> NoReturn:
    """Fork a child for each submission, until the grader ends.

    Parameters
    ----------
    control : socket
        Each byte on it brings the ends of two lines: to the grader, and to the student's process.
    settings : TestSettings
        What the grader says of the notebook.
    longest : int
        So many bytes a cell may show.
    """
    control.setblocking(True)
    files = Path.cwd()
    folders: dict[int, str] = {}
    while True:
        request, ends, _, _ = socket.recv_fds(control, 1, 2)
        if not request:
            os._exit(0)
        # a folder is removed only when nobody writes to it any more
        for pid in [pid for pid in folders if os.waitpid(pid, os.WNOHANG)[0]]:
            shutil.rmtree(folders.pop(pid), ignore_errors=True)
        folder = tempfile.mkdtemp()
        pid = os.fork()
        if not pid:
            control.close()  # a test must not fork others
            _run_child(files, folder, ends, settings, longest)
        folders[pid] = folder
        for end in ends:
            os.close(end)


def _run_child(
    files: Path, folder: str, ends: list[int], settings: TestSettings, longest: int
) -> NoReturn:
    try:
        with contextlib.suppress(OSError):  # where a filter refuses it
            os.setsid()
        # a copy: what the tests of one submission write must not reach those of the next
        shutil.copytree(files, folder, dirs_exist_ok=True, ignore=_excluding(files, settings))
        os.chdir(folder)
        grader, student = (socket.socket(fileno=end) for end in ends)
        grader.sendall(HELLO)
        Tester(Channel(student), settings, longest).serve(Channel(grader))
    except Gone:
        pass
    finally:
        os._exit(0)


def _excluding(files: Path, settings: TestSettings) -> Callable[[str, list[str]], list[str]]:
    """Return what tells which files of a folder are not copied."""

    def excluded(folder: str, names: list[str]) -> list[str]:
        inside = Path(folder).relative_to(files)
        return [name for name in names if (inside / name).as_posix() in settings.excluded]

    return excluded


class Tester:
    """Runs the test cells of one submission.

    Parameters
    ----------
    student : Channel
        The line to the student's side.
    settings : TestSettings
        What the grader says of the notebook.
    longest : int
        So many bytes a cell may show.
    """

    def __init__(self, student: Channel, settings: TestSettings, longest: int) -> None:
        self._longest = longest
        self._answers = Answers(student, settings.barred)
        self._names = Names(self._answers, settings.answers)
        self._count, self._is_busy = 0, False
        self._names_are_main()
        signal.signal(signal.SIGINT, self._interrupt)
        for statement in settings.imports:
            with contextlib.suppress(Exception):  # the test that needs it will say so
                exec(statement, self._names)
        for statement in settings.modules:
            with contextlib.suppress(Exception):
                exec(statement, self._names.modules)

    def _names_are_main(self) -> None:
        """Let ``gradebox.observe`` find the student's names where it looks for them."""
        from gradebox import observation

        observation.names = self._names

    def serve(self, grader: Channel) -> NoReturn:
        """Run the cells as they come, until the grader has enough.

        Raises
        ------
        Gone
            Then.
        """
        while True:
            message = receive(grader, None, RunTest, Prepare)
            if isinstance(message, Prepare):
                os.environ.update(message.environment)
            elif isinstance(message, RunTest):
                send(grader, self.run(message.source, message.points))

    def _interrupt(self, number: int, frame: Any) -> None:
        if self._is_busy:
            raise Late("the test cell took too long")

    def run(self, source: str, points: float) -> Tested:
        """Run one cell, and return what it came to."""
        outputs = self._names.outputs = Outputs()
        outputs.longest = self._longest
        out, err = Stream("stdout", outputs), Stream("stderr", outputs)
        self._count += 1
        self._answers.begin(seeds=bool(_SEEDS.search(source)))
        score, error = 0.0, ""
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                with self._interruptible():
                    value = self._execute(source)
                score = _score(value, points)
            if value is not None:
                shown = repr(score) if _is_number(value) else _shown(value)
                content = {"data": {"text/plain": shown}, "metadata": {}}
                outputs.add("execute_result", execution_count=None, **content)
        except BaseException as raised:
            # the answer that is still to come would be taken for that to the next question
            if isinstance(raised, Late) and self._answers.waits:
                self._answers.gone = "a call by the test could not be interrupted"
            outputs.add("error", **_error_output(raised))
            error = f"{type(raised).__name__}: {text_of(raised)}".removesuffix(": ")
        refused = self._answers.refused
        if refused:  # even if the test caught it: it did not expect this
            score = 0.0
            if not error:
                error = refused[0]
                outputs.add("error", **_error_output(RuntimeError(error)))
        items = [
            output | {"name": "stdout"} if output["output_type"] == "stream" else output
            for output in outputs.items  # nbgrader gives no points to a cell with stderr
        ]
        gone = self._answers.gone
        late = self._answers.late or self._answers.waits
        return Tested(score, items, error, refused[:5], late, gone)

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        self._is_busy = True
        try:
            yield
        finally:
            self._is_busy = False

    def _execute(self, source: str) -> Any:
        """Run the statements and return the value of the last one, if it is an expression."""
        file, shows = f"<test cell {self._count}>", not source.rstrip().endswith(";")
        source = python_of(source)
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        tree = parse(source, file)
        last = tree.body[-1] if tree.body else None
        if not isinstance(last, ast.Expr):
            self._evaluate(_compiled(tree, file))
            return None
        tree.body.pop()
        self._evaluate(_compiled(tree, file))
        value = self._evaluate(_compiled(ast.Expression(last.value), file))
        return value if shows else None

    def _evaluate(self, code: CodeType) -> Any:
        value = eval(code, self._names)
        return asyncio.run(value) if code.co_flags & inspect.CO_COROUTINE else value


def _compiled(tree: ast.Module | ast.Expression, file: str) -> CodeType:
    mode = "exec" if isinstance(tree, ast.Module) else "eval"
    return compile(tree, file, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def _score(value: Any, points: float) -> float:
    """Return the points of a cell that raised nothing and ended with a value.

    A comparison with an array gives an array, not a truth value; a sum of those would be no number,
    and so be worth all points.
    """
    if type(value) is Stub or type(value).__name__ in ("ndarray", "Tensor"):
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
        return repr(value)[:MESSAGE]
    except Exception as error:
        return f"<{type(value).__name__}: {type(error).__name__}>"


def _error_output(error: BaseException) -> dict[str, Any]:
    """Return an exception as a notebook keeps it, with the line of the student's that raised."""
    own = getattr(error, "_render_traceback_", None)
    try:
        lines = list(own()) if own else _traceback(error)
    except Exception:
        lines = []
    if line := getattr(error, "student_line", ""):
        lines.append(f"\nIn the student's code:\n  line {line}")
    text = "".join(str(line) if str(line).endswith("\n") else f"{line}\n" for line in lines)
    return {
        "ename": type(error).__name__,
        "evalue": text_of(error),
        "traceback": text[-TRACEBACK:].splitlines(),
    }


def _traceback(error: BaseException) -> list[str]:
    """Return the lines of a traceback without the frames of gradebox, which help nobody."""
    trace = traceback.TracebackException.from_exception(error, limit=-20)
    trace.stack = traceback.StackSummary.from_list(
        [frame for frame in trace.stack if not frame.filename.startswith(OWN)]
    )
    return list(trace.format(chain=False))


_DATA = {
    "builtins": "bytearray complex frozenset object range set slice",
    "collections": "Counter OrderedDict defaultdict deque",
    "copyreg": "_reconstructor",
    "datetime": "date datetime time timedelta timezone",
    "decimal": "Decimal",
    "fractions": "Fraction",
    "numpy": "dtype ndarray",
    "numpy._core.multiarray": "_reconstruct scalar",
    "numpy._core.numeric": "_frombuffer",
    "numpy.core.multiarray": "_reconstruct scalar",
    "numpy.core.numeric": "_frombuffer",
}
"""What a pickle may name, by module: what makes data, and calls nothing that it is given."""


def bar_pickles() -> None:
    """Let pickles in this process name nothing but classes of data, for good."""
    # a test may unpickle what an answer returns, and a pickle calls whatever it names
    allowed = {(module, name) for module, names in _DATA.items() for name in names.split()}

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "pickle.find_class" and tuple(arguments) not in allowed:
            raise RuntimeError(
                f"expected a pickle of plain data, got one that names {'.'.join(arguments)}; a "
                "test that reads it cannot run isolated"
            )

    sys.addaudithook(audit)
