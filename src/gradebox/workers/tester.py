"""The process of the tests: it holds the instructor's cells, and of the student's only values.

One process for each notebook of the assignment is sealed at the start of a run. For each submission
it forks a child, which runs the locked cells and the isolated tests in one namespace.
"""

import contextlib
import dis
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any, NoReturn

from gradebox.values.channel import Channel, Gone
from gradebox.workers.cells import Cell, error_output, reason, result
from gradebox.workers.names import Names
from gradebox.workers.protocol import Prepare, RunTest, Tested, TestSettings, receive, send
from gradebox.workers.shell import Outputs, Stream
from gradebox.workers.stubs import Answers, Stub

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
        self._names = Names(self._answers)
        self._count, self._is_busy = 0, False
        self._names_are_main()
        signal.signal(signal.SIGINT, self._interrupt)

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
                send(grader, self.run(message))

    def _interrupt(self, number: int, frame: Any) -> None:
        if self._is_busy:
            raise Late("the test cell took too long")

    def run(self, message: RunTest) -> Tested:
        """Run one cell, and return what it came to."""
        self._names.begin(message.pythons)
        outputs = self._names.outputs = Outputs()
        outputs.longest = self._longest
        out, err = Stream("stdout", outputs), Stream("stderr", outputs)
        self._count += 1
        cell = Cell(message.source, self._count)
        if cell.code is not None:
            self._names.of_student -= own_names(cell.code)
        answers = self._answers
        answers.begin(seeds=bool(_SEEDS.search(message.source)))

        def run() -> Any:
            with self._interruptible():
                return cell.run(self._names)

        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            score, error = result(run, message.points, outputs, _is_no_number)
        why = reason(error)
        # the answer that is still to come would be taken for that to the next question
        if isinstance(error, Late) and answers.waits:
            answers.gone = "a call by the test could not be interrupted"
        for name in message.answers:  # whatever a test calls so is the student's again
            self._names.pop(name, None)
        self._names.of_student |= {*message.answers}
        answers.refuse_swallowed()
        if answers.refused:  # even if the test caught it: it did not expect this
            score = 0.0
            if not why:
                why = answers.refused[0]
                outputs.add("error", **error_output(RuntimeError(why)))
        items = [
            output | {"name": "stdout"} if output["output_type"] == "stream" else output
            for output in outputs.items  # nbgrader gives no points to a cell with stderr
        ]
        late = answers.late or answers.waits
        return Tested(score, items, why, answers.refused[:5], late, answers.gone)

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        self._is_busy = True
        try:
            yield
        finally:
            self._is_busy = False


def own_names(code: CodeType) -> set[str]:
    """Return the names that a cell gives a meaning before it asks for one.

    They are never the student's, also where the cell does not come to give it: an answer that
    raises would choose what they mean.
    """
    first: dict[str, str] = {}
    for instruction in dis.get_instructions(code):
        if instruction.opname.endswith("_NAME") and instruction.opname != "IMPORT_NAME":
            first.setdefault(instruction.argval, instruction.opname)
    return {name for name, operation in first.items() if operation == "STORE_NAME"}


def _is_no_number(value: Any) -> bool:
    return type(value) is Stub or type(value).__name__ in ("ndarray", "Tensor")


def bar_pickles() -> None:
    """Let pickles in this process name nothing, for good: they call, and change, what they name."""

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "pickle.find_class":
            raise RuntimeError(
                f"expected a pickle of plain data, got one that names {'.'.join(arguments)}; a "
                "test that reads it cannot run isolated"
            )

    sys.addaudithook(audit)
