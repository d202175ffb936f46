"""The grader's end of the fork server, and of a notebook in the processes that it forks."""

import atexit
import contextlib
import json
import math
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gradebox.sandbox.filesystem import TooMuch
from gradebox.sandbox.own_time import CAP, Deadline
from gradebox.sandbox.seal import PASSED, THREADS, Level, NotSealed
from gradebox.values.channel import Channel, Gone
from gradebox.workers import protocol
from gradebox.workers.protocol import Began, Begin, Given, M, RunTest, Tested, failed, receive, send

# Seconds of wall time after which a server that is not ready hangs: imports of a large package take
# minutes on a slow machine; what ends is noticed at once
START = 1800.0
ANSWER = 60.0  # seconds in which a server that is ready forks, and a fork is sealed
GRACE = 5.0  # seconds of own time that a process has to end what it does when it is interrupted

Names = Sequence[str]
# variables that imports may need, besides those that cells see
IMPORTING = (
    *("HOME", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "TMPDIR", "XDG_CACHE_HOME"),
    *("XDG_CONFIG_HOME", "MPLCONFIGDIR", "IPYTHONDIR", "SYSTEMROOT"),
    *("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE", "PYTHONUTF8"),
    *("PYTHONHASHSEED", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE", "PYTHONWARNINGS"),
)


class ForkServer:
    """The grader's end of a fork server: see :mod:`gradebox.workers.server`."""

    def __init__(
        self, imports: Names = (), banned: Names = (), stubbed: Names = (), prepare: str = ""
    ) -> None:
        self._lock, self._is_ready, self._prepare = threading.RLock(), False, prepare
        modules = json.dumps([[*imports], [*banned], [*stubbed]])
        # -P: nothing is imported from the working folder, where a json.py may lie
        self._command = [sys.executable, "-P", "-m", "gradebox.workers.server", modules]
        self._control, end = socket.socketpair()
        # what is prepared may be answers: the students' processes are forked from another server
        self._control_of_tests, self._end_of_tests = socket.socketpair()
        # cells can read in /proc what it was started with, so only variables that are named pass
        environment = {n: os.environ[n] for n in (*PASSED, *IMPORTING) if n in os.environ}
        environment |= dict.fromkeys(THREADS, "1")
        environment["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
        # in a session of its own: Ctrl-C reaches the grader alone, one signal ends both servers
        options: Any = {"env": environment, "start_new_session": True}
        with end:
            self._process = subprocess.Popen(self._command, stdin=end.fileno(), **options)
        atexit.register(self.close)

    def wait_until_ready(self) -> None:
        """Wait until all is imported, as each fork does; what does not start is a RuntimeError."""
        with self._lock:
            if self._is_ready:
                return
            try:
                _await(self._control)
                with self._end_of_tests as end:
                    self._fork(self._control, protocol.Fork.SERVER, end)
                # no argument: a student's process knows those of the server that it is forked from
                self._control_of_tests.sendall(json.dumps(self._prepare).encode() + b"\n")
                _await(self._control_of_tests)
            except OSError as error:
                self.close()
                command = shlex.join(self._command)
                raise RuntimeError(f"the fork server did not start; try: {command}") from error
            self._is_ready = True

    def _fork(self, control: socket.socket, request: bytes, *ends: socket.socket) -> int:
        """Have a server fork a child that gets these ends; return its process id.

        After an error this server is closed: an answer that comes yet would be taken for the next.
        """
        with self._lock:  # threads share it, and each gets the answer to its own request
            try:
                control.settimeout(ANSWER)
                socket.send_fds(control, [request], [end.fileno() for end in ends])
                if not (answer := control.recv(4)):
                    raise ConnectionError  # as a process id it would stand for the grader
            except BaseException:
                self.close()
                raise
            return int.from_bytes(answer, "big")

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    @contextlib.contextmanager
    def forked(self, begin: Begin, other: socket.socket) -> Iterator["Process"]:
        """Fork the process of a student's cells, or of the tests, with a line to the other one.

        It is killed at the end, and the server closed if it does not answer.
        """
        self.wait_until_ready()
        control = self._control_of_tests if begin.of_tests else self._control
        request = protocol.Fork.NAMESPACES
        with contextlib.ExitStack() as stack:
            if begin.level != Level.NAMESPACES:
                request, scratch = protocol.Fork.PLAIN, tempfile.mkdtemp(prefix="gradebox-")
                stack.callback(_remove, Path(scratch))
                begin = replace(begin, scratch=scratch)
            ours, theirs = map(stack.enter_context, socket.socketpair())
            try:
                pid = self._fork(control, request, theirs, other)
                theirs.close()  # or its end would go unnoticed
            except TimeoutError:
                why = "did not answer and was ended; the next submission gets a new one"
                raise RuntimeError(f"the fork server {why}") from None
            except OSError as error:
                raise RuntimeError("the fork server ended") from error
            # no message to the grader has binary parts: a student's could fill its memory
            process = Process(Channel(ours, most=0), pid)
            stack.callback(process.kill)
            with contextlib.suppress(Gone):  # the answer will be missing
                send(process.channel, begin)
            yield process

    def close(self) -> None:
        """End it."""
        atexit.unregister(self.close)
        for end in (self._control, self._control_of_tests, self._end_of_tests):
            end.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # the server of the tests with it
        self._process.wait()


@dataclass
class Process:
    """A forked process: the line to it, and its id, or that of the first in its namespace."""

    channel: Channel
    pid: int

    def await_sealed(self, level: str) -> None:
        """Wait until it is sealed by a level, or raise ``NotSealed`` or ``TooMuch``."""
        try:
            answer = self.hear(Deadline(ANSWER, self.pid), Began)
        except (Gone, TimeoutError):
            answer = Began("the process ended, or did not answer")
        if answer.is_of_student:
            raise TooMuch(answer.refused)
        if answer.refused:
            why = f"expected a process sealed by {level}, got: {answer.refused}; see what this"
            raise NotSealed(f"{why} machine offers with: python -m gradebox.sandbox.probe")

    def hear(self, deadline: Deadline, kind: type[M]) -> M:
        """Wait for a message of a kind, until the limit is over."""
        return deadline.wait(lambda seconds: receive(self.channel, seconds, kind))

    def interrupt(self) -> Deadline:
        """Interrupt what it does, as Ctrl-C would; return the limit of what it does then."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, signal.SIGINT)
        return Deadline(GRACE, self.pid)

    def kill(self) -> None:
        """End the process and all that belong to its session."""
        # the group first: its number may be another's once its leader is gone
        for end in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                end(self.pid, signal.SIGKILL)


def _await(control: socket.socket) -> None:
    control.settimeout(START)
    if control.recv(5) != b"ready":
        raise ConnectionError


def _remove(folder: Path) -> None:
    for _ in range(100):  # a killed process may be writing in it for another instant
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.01)


class Ended(Exception):
    """The student's process is gone; ``kind`` is that of the event: ended, or slow-notebook."""

    def __init__(self, message: str, kind: str = "ended") -> None:
        super().__init__(message)
        self.kind = kind


class Notebook:
    """A notebook in its processes; see :func:`running`.

    ``seconds`` for each cell and the ``budget`` of all are own time; ``given`` is what tests run of
    the instructor's other cells.
    """

    def __init__(
        self, student: Any, tests: Any, seconds: float, budget: float = math.inf, given: Any = ()
    ) -> None:
        self._student: Process = student
        self._tests: Process = tests  # None where none is isolated
        self._seconds, self._budget, self._spent = seconds, budget, 0.0
        self._until = time.monotonic() + CAP + 3 * budget
        self._ended: Ended | None = None
        self._without_tests = None if tests else ""
        self._given: Sequence[Given] = given
        self._failed_given = ""

    def run(self, source: str, helpers: Sequence[str] = ()) -> tuple[protocol.Shown, str]:
        """Run a cell in the student's process; return what it showed, and why it was interrupted.

        It raises :class:`Ended` if the process ended, or had to be ended.
        """
        return self._ask(protocol.RunCell(source, [*helpers]), protocol.Shown)

    def remember(self, test: str, fork: bool = False) -> None:
        """Have the student's process remember its names, for a test that runs in it later."""
        if self._ended is None:
            with contextlib.suppress(Gone):
                send(self._student.channel, protocol.Remember(test, fork))

    def test_in_process(self, message: RunTest, seconds: float | None = None) -> tuple[Tested, str]:
        """Run a test in the student's process; return as :meth:`run` does."""
        tested, late = self._ask(message, Tested, seconds)
        score = 0.0 if late or tested.error else protocol.bounded(tested.score, message.points)
        return replace(tested, score=score), late

    def _ask(self, message: Any, kind: Any, seconds: float | None = None) -> tuple[Any, str]:
        self._require_time()
        limit = min(seconds or self._seconds, self._budget - self._spent)
        try:
            return self._answer(self._student, message, kind, limit, self._student)
        except TimeoutError as error:
            raise self._end(f"{error}, and could not be interrupted") from None
        except Gone:
            raise self._end("the process ended while the cell ran") from None

    def _answer(
        self, process: Process, message: Any, kind: type[M], limit: float, *busy: Process
    ) -> tuple[M, str]:
        """Return the answer of a process, and why those that are busy were interrupted in turn."""
        deadline = first = Deadline(limit, *(each.pid for each in busy))
        late, waiting = "", [*busy]
        try:
            send(process.channel, message)
            while True:
                try:
                    return process.hear(deadline, kind), late
                except TimeoutError:
                    if not waiting:
                        raise TimeoutError(late) from None
                    late, deadline = first.says, waiting.pop(0).interrupt()
        finally:
            self._spent += first.spent()

    def _require_time(self) -> None:
        if self._ended is not None:
            raise self._ended
        said = "all cells together took longer than"
        if self._spent >= self._budget:
            raise self._end(f"{said} {self._budget:g} s", "slow-notebook")
        if time.monotonic() > self._until:
            minutes = f"{(CAP + 3 * self._budget) / 60:.0f} minutes of wall time"
            raise self._end(f"{said} {minutes}", "slow-notebook")

    def _end(self, why: str, kind: str = "ended") -> Ended:
        self._student.kill()
        self._ended = Ended(why, kind)
        return self._ended

    def test(self, message: RunTest, seconds: float | None = None) -> Tested:
        """Run an isolated test, or a locked cell worth nothing; return what it came to.

        What the tests run of the instructor's other cells before it is run first. Whatever the
        student's process does meanwhile, or the test itself, costs no more than this cell's points
        and those of the cells that need what is lost.
        """
        name, given = message.test, self._given
        last = max((n for n, part in enumerate(given, 1) if part.before == name), default=0)
        self._given, answers = given[last:], list[str]()
        for part in given[:last]:
            answers += part.answers
            if part.source:
                tested = self._test(RunTest(name, part.source, 0.0, answers=answers))
                self._failed_given, answers = self._failed_given or tested.error, []
        tested = self._test(replace(message, answers=answers), seconds)
        if tested.error.startswith("NameError") and self._failed_given:
            why = f"{tested.error}; a cell that students were given ended with {self._failed_given}"
            return replace(tested, error=why)
        return tested

    def _test(self, message: RunTest, seconds: float | None = None) -> Tested:
        if self._without_tests is not None:
            return failed(self._without_tests)
        try:
            self._require_time()
        except Ended as ended:
            if ended.kind != "ended":  # a process that ended by itself may have left names behind
                return failed(str(ended))
        try:
            result = self._tested(message, seconds or self._seconds)
        except (Gone, TimeoutError) as error:
            how, lost = ("ended", "ended") if isinstance(error, Gone) else ("took too long", "slow")
            self._without_tests = f"the process of the tests {how}"
            self._tests.kill()
            return failed(self._without_tests, lost)
        if result.gone:
            self._end(result.gone)
        return result

    def _tested(self, message: RunTest, limit: float) -> Tested:
        # the student's first: a test that is interrupted while it waits for an answer costs the
        # student's process, whose answer would be taken for the next one
        return self._answer(self._tests, message, Tested, limit, self._student, self._tests)[0]


@contextlib.contextmanager
def running(
    server: ForkServer, begin: Begin, of_tests: Begin | None, **more: Any
) -> Iterator[Notebook]:
    """Fork the processes of one notebook, each sealed as it is told; then kill them.

    What cannot be sealed raises ``NotSealed``.
    """
    ours, theirs = socket.socketpair()
    with contextlib.ExitStack() as stack:
        with ours, theirs:  # closed here, or the end of a process would go unnoticed
            # it is sealed while the other one is forked
            student = stack.enter_context(server.forked(begin, theirs))
            tests = stack.enter_context(server.forked(of_tests, ours)) if of_tests else None
        for process in filter(None, (student, tests)):
            process.await_sealed(begin.level)
        yield Notebook(student, tests, **more)
        if not server.alive:  # its forks ended with it, which is no fault of the notebook's
            raise RuntimeError("the fork server ended while the notebook ran")
