"""Run notebooks in forks of a warm process, cell by cell, with a time limit for each."""

import atexit
import contextlib
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from gradebox.line.wire import Gone, Line
from gradebox.process.protocol import (
    Began,
    Begin,
    CheckerSettings,
    Fork,
    Lent,
    Refused,
    RunCell,
    Shown,
    receive,
    send,
)
from gradebox.sandbox.deadline import Deadline, pace
from gradebox.sandbox.own_time import OwnTime
from gradebox.sandbox.seal import PASSED, THREADS, Level, Limits, NotSealed, Sealed
from gradebox.troubles import Trouble

START = 1800.0
"""Seconds of wall time after which a process that says nothing hangs.

Imports of a large package take minutes on a slow machine. What ends is noticed at once.
"""

IMPORTING = (
    "HOME",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "MPLCONFIGDIR",
    "IPYTHONDIR",
    "SYSTEMROOT",
)
"""Variables that imports may need, besides Python's own and those that cells see."""

INTERRUPT_GRACE = 5.0
"""Seconds of own time that a cell has to end when it is interrupted."""


class Died(Exception):
    """The process that runs the notebook is gone, with all that its cells had made."""

    trouble = Trouble.CELL_ENDED_PYTHON
    """What an instructor is told."""


class NotebookTimeout(Died):
    """The process was ended because all cells of its notebook had taken too long together."""

    trouble = Trouble.SLOW_NOTEBOOK


class ForkServer:
    """The grader's end of a warm process that forks: see :mod:`gradebox.process.server`.

    Parameters
    ----------
    imports : sequence of str
        The modules that it imports before the first notebook.
    banned, hollow : sequence of str
        Modules that a student's process does not get: see :mod:`gradebox.sandbox.imports`.
    """

    def __init__(
        self,
        imports: Sequence[str] = (),
        banned: Sequence[str] = (),
        hollow: Sequence[str] = (),
    ) -> None:
        self._lock, self._is_ready = threading.Lock(), False
        self._barred = bool(banned or hollow)
        barred = [f"--banned={name}" for name in banned] + [f"--hollow={name}" for name in hollow]
        self._arguments = [*barred, *imports]
        self._control, end = socket.socketpair()
        self._control_of_tests: socket.socket | None = None
        with end:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "gradebox.process.server", *self._arguments],
                stdin=end.fileno(),
                env=_environment(),
                start_new_session=True,
            )
        atexit.register(self.close)

    def wait_until_ready(self) -> None:
        """Wait until all is imported; each fork waits for that itself.

        Raises
        ------
        RuntimeError
            If it does not start.
        """
        with self._lock:
            if not self._is_ready:
                self._await(self._control)
                self._is_ready = True

    def _await(self, control: socket.socket) -> None:
        control.settimeout(START)
        try:
            ready = control.recv(5)
        except (TimeoutError, ConnectionError):
            ready = b""
        if ready != b"ready":
            self.close()
            raise RuntimeError(
                f"the warm process did not start; try: {sys.executable} -m gradebox.process.server "
                f"{' '.join(self._arguments)}"
            )
        control.settimeout(None)

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    @contextmanager
    def notebook(
        self,
        folder: Path,
        environment: Mapping[str, str],
        *,
        level: Level,
        limits: Limits | None = None,
        readable: Sequence[str] = (),
        other: socket.socket | None = None,
    ) -> Iterator["NotebookProcess"]:
        """Fork a process for one notebook; at the end it is killed, with all that it started.

        Parameters
        ----------
        folder : Path
            What was handed in.
        environment : mapping
            Variables for the cells; see :data:`gradebox.sandbox.seal.PASSED` for those they get
            anyway.
        level : Level
            How the process is sealed, before the first cell.
        limits : Limits, optional
            What it may use.
        readable : sequence of str
            Folders that it may read besides Python and the system's programs.
        other : socket, optional
            The end of a line to the process that runs the test cells.

        Raises
        ------
        NotSealed
            If the process could not be sealed.
        """
        self.wait_until_ready()
        begin = _begin(str(folder), environment, level, limits, readable)
        with self._forked(self._control, begin, other) as process:
            yield process

    @contextmanager
    def checker(
        self,
        folder: Path,
        environment: Mapping[str, str],
        other: socket.socket,
        settings: CheckerSettings,
        *,
        level: Level,
        limits: Limits | None = None,
        readable: Sequence[str] = (),
    ) -> Iterator["NotebookProcess"]:
        """Fork a process that runs test cells, see :mod:`gradebox.process.checker`.

        It is sealed as the student's is, and sees nothing of what was handed in but what the
        student's process sends.

        Parameters
        ----------
        folder : Path
            What was handed in. Where the process has a view of its own, it is given an empty folder
            of the same name.
        environment : mapping
            Variables for the tests; see :meth:`notebook`.
        other : socket
            The end of a line to the student's process.
        settings : CheckerSettings
            What it is told at its start.
        level, limits, readable
            As for :meth:`notebook`.
        """
        with tempfile.TemporaryDirectory(prefix="gradebox-") as empty:
            own = str(folder) if level is Level.NAMESPACES else empty
            begin = _begin(own, environment, level, limits, readable)
            begin = replace(begin, tests=asdict(settings))
            with self._forked(self.start_server_of_tests(), begin, other) as process:
                yield process

    def start_server_of_tests(self) -> socket.socket:
        """Return the control of the server that has imported all, made when it is first needed."""
        self.wait_until_ready()
        with self._lock:
            if not self._barred:
                return self._control
            if self._control_of_tests is None:
                self._control_of_tests, end = socket.socketpair()
                with end:
                    socket.send_fds(self._control, [Fork.SERVER], [end.fileno()])
                    self._control.recv(8)
                self._await(self._control_of_tests)
            return self._control_of_tests

    @contextmanager
    def _forked(
        self, control: socket.socket, begin: Begin, other: socket.socket | None
    ) -> Iterator["NotebookProcess"]:
        ours, theirs = socket.socketpair()
        with ours:
            with theirs, self._lock:
                ends = [theirs.fileno(), *([] if other is None else [other.fileno()])]
                request = Fork.NAMESPACES if begin.level == Level.NAMESPACES else Fork.PLAIN
                socket.send_fds(control, [request], ends)
                pid = int.from_bytes(control.recv(8), "big")
            if not pid:
                raise RuntimeError("the warm process ended")
            process = NotebookProcess(Line(ours), pid)
            landlock = begin.level == Level.LANDLOCK
            scratch = tempfile.mkdtemp(prefix="gradebox-") if landlock else None
            try:
                process.sealed = _sealed(process.line, replace(begin, scratch=scratch))
                yield process
            finally:
                process.kill()
                _remove(scratch)

    def close(self) -> None:
        """End it."""
        atexit.unregister(self.close)
        for control in (self._control, self._control_of_tests):
            if control is not None:
                control.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()


def _environment() -> dict[str, str]:
    """Return the environment of the warm process.

    Cells can read what it was started with in /proc, so nothing of the grader's is among it.
    """
    names = {*PASSED, *IMPORTING, *(name for name in os.environ if name.startswith("PYTHON"))}
    passed = {name: os.environ[name] for name in names if name in os.environ}
    inline = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    return {**passed, **dict.fromkeys(THREADS, "1"), **inline}


def _begin(
    folder: str,
    environment: Mapping[str, str],
    level: Level,
    limits: Limits | None,
    readable: Sequence[str],
) -> Begin:
    readable = [str(path) for path in readable]
    return Begin(folder, dict(environment), level, asdict(limits or Limits()), readable)


def _sealed(line: Line, begin: Begin) -> Sealed:
    """Have the process sealed, and return what is in force."""
    try:
        send(line, begin)
        answer = receive(line, START, Began, Refused)
    except (Gone, TimeoutError):
        answer = Refused("the process ended, or did not answer")
    if isinstance(answer, Began) and answer.level == begin.level:
        return Sealed(Level(answer.level), tuple(answer.lacks), answer.folder)
    raise NotSealed(
        f"expected a process sealed by {begin.level}, got: {getattr(answer, 'why', answer)}; "
        "see what this machine offers with: python -m gradebox.sandbox.probe"
    )


def _remove(scratch: str | None) -> None:
    """Remove a folder in which a killed process may be writing for another instant."""
    for _ in range(100):
        if scratch is None or not Path(scratch).exists():
            return
        shutil.rmtree(scratch, ignore_errors=True)
        time.sleep(0.01)


class NotebookProcess:
    """A process that runs the cells of one notebook, as the grader sees it."""

    def __init__(self, line: Line, pid: int) -> None:
        self.line, self.pid = line, pid
        self.sealed = Sealed(Level.NONE)
        self.spent = 0.0
        """Seconds of own time that its cells have used."""

    def run(self, source: str, seconds: float | None) -> tuple[Shown, str]:
        """Run one cell; return what it showed, and why it had to be interrupted, if it had to.

        Parameters
        ----------
        source : str
            The cell.
        seconds : float, optional
            Its limit, in own time: see :mod:`gradebox.sandbox.own_time`.

        Raises
        ------
        Died
            If the process ended, or had to be ended because it could not be interrupted.
        """
        limit, clock = math.inf if seconds is None else seconds, OwnTime(self.pid)
        deadline = Deadline(limit, clock.seconds, look=pace(limit))
        try:
            send(self.line, RunCell(source))
            try:
                return deadline.wait(self._shown), ""
            except TimeoutError:
                self.interrupt()
            try:
                return self._grace().wait(self._shown), deadline.says
            except TimeoutError:
                self.kill()
                raise Died(f"{deadline.says}, and could not be interrupted") from None
        except Gone:
            raise Died("the process ended while the cell ran") from None
        finally:
            self.spent += deadline.spent()

    def _shown(self, seconds: float) -> Shown:
        return receive(self.line, seconds, Shown)

    def lent(self) -> None:
        """Wait until the process says that the test cells have enough of it.

        Raises
        ------
        TimeoutError
            If it says nothing in the seconds of grace.
        Gone
            If it ended, or said something else.
        """
        self._grace().wait(lambda seconds: receive(self.line, seconds, Lent))

    def _grace(self) -> Deadline:
        # a clock of its own: to look at another one would cost each test cell milliseconds
        return Deadline(INTERRUPT_GRACE, OwnTime(self.pid).seconds, look=pace(INTERRUPT_GRACE))

    def interrupt(self) -> None:
        """Interrupt what it does, as Ctrl-C would."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """End the process and all that belong to its session."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, number)
