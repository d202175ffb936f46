"""The grader's end of the fork server, and of the processes that it forks."""

import atexit
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from gradebox.sandbox.filesystem import TooMuch
from gradebox.sandbox.own_time import Deadline
from gradebox.sandbox.seal import PASSED, THREADS, Level, Limits, NotSealed
from gradebox.values.channel import Channel, Gone
from gradebox.workers.protocol import (
    Began,
    Begin,
    Fork,
    M,
    Message,
    Prepare,
    Refused,
    receive,
    send,
)

START = 1800.0
"""Seconds of wall time after which a server that is not ready hangs.

Imports of a large package take minutes on a slow machine. What ends is noticed at once.
"""

ANSWER = 60.0
"""Seconds in which a server that is ready forks, and a fork is sealed; it takes milliseconds."""

GRACE = 5.0
"""Seconds of own time that a process has to end what it does when it is interrupted."""

IMPORTING = (
    *("HOME", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "TMPDIR", "XDG_CACHE_HOME"),
    *("XDG_CONFIG_HOME", "MPLCONFIGDIR", "IPYTHONDIR", "SYSTEMROOT"),
    *("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE", "PYTHONUTF8"),
    *("PYTHONHASHSEED", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE", "PYTHONWARNINGS"),
)
"""Variables that imports may need, besides those that cells see."""


class ForkServer:
    """The grader's end of a fork server: see :mod:`gradebox.workers.server`.

    Parameters
    ----------
    imports : sequence of str
        The modules that it imports before the first notebook.
    banned, stubbed : sequence of str
        Modules that a student's process does not get: see :mod:`gradebox.sandbox.imports`.
    prepare : str
        Python that is run once where the processes of the tests are forked.
    """

    def __init__(
        self,
        imports: Sequence[str] = (),
        banned: Sequence[str] = (),
        stubbed: Sequence[str] = (),
        prepare: str = "",
    ) -> None:
        self._lock, self._is_ready = threading.Lock(), False
        barred = [f"--banned={name}" for name in banned]
        barred += [f"--stubbed={name}" for name in stubbed]
        self._arguments, self._prepare = [*barred, *imports], prepare
        self._control, end = socket.socketpair()
        # what is prepared may be answers: the students' processes are forked from another server
        self._control_of_tests = None if barred or prepare else self._control
        with end:
            self._process = subprocess.Popen(
                # -P: nothing is imported from the working folder, where a json.py may lie
                [sys.executable, "-P", "-m", "gradebox.workers.server", *self._arguments],
                stdin=end.fileno(),
                env=_environment(),
                # Ctrl-C then reaches the grader alone, and one signal ends both servers
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
                f"the fork server did not start; try: {sys.executable} -m gradebox.workers.server "
                f"{' '.join(self._arguments)}"
            )

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    @contextmanager
    def student(self, begin: Begin, tests: socket.socket) -> Iterator["Process"]:
        """Fork the process of a student's cells; at the end it is killed, with all it started.

        It is sealed as ``begin`` says, and given the end of its line to the tests.
        """
        self.wait_until_ready()
        with self._forked(self._control, begin, tests) as process:
            yield process

    @contextmanager
    def template(self, begin: Begin) -> Iterator["Template"]:
        """Fork the sealed process that forks those of a notebook's tests."""
        with self._forked(self.start_server_of_tests(), begin) as process:
            process.await_sealed(begin.level)
            yield Template(process)

    def start_server_of_tests(self) -> socket.socket:
        """Return the control of the server that has imported all, made when it is first needed."""
        self.wait_until_ready()
        with self._lock:
            if self._control_of_tests is None:
                self._control_of_tests, end = socket.socketpair()
                with end:
                    self._fork(self._control, Fork.SERVER, [end.fileno()])
                # no argument: a student's process knows those of the server that it is forked from
                self._control_of_tests.sendall(json.dumps(self._prepare).encode() + b"\n")
                self._await(self._control_of_tests)
            return self._control_of_tests

    @contextmanager
    def _forked(
        self, control: socket.socket, begin: Begin, *others: socket.socket
    ) -> Iterator["Process"]:
        ours, theirs = socket.socketpair()
        with ours:
            # one thread asks and gets its answer, or two would take each other's process id
            with theirs, self._lock:
                request = Fork.NAMESPACES if begin.level == Level.NAMESPACES else Fork.PLAIN
                pid = self._fork(control, request, [end.fileno() for end in (theirs, *others)])
            landlock = begin.level == Level.LANDLOCK
            scratch = tempfile.mkdtemp(prefix="gradebox-") if landlock else None
            try:
                with _told(ours, pid, replace(begin, scratch=scratch)) as process:
                    yield process
            finally:
                _remove(scratch)

    def _fork(self, control: socket.socket, request: Fork, ends: Sequence[int]) -> int:
        """Have a server fork, and return the process id; end the servers if it hangs."""
        try:
            control.settimeout(ANSWER)
            socket.send_fds(control, [request], ends)
            pid = int.from_bytes(control.recv(8), "big")
        except TimeoutError:
            self.close()
            raise RuntimeError(
                "the fork server did not answer and was ended; the next submission gets a new one"
            ) from None
        except OSError:
            pid = 0
        if not pid:
            raise RuntimeError("the fork server ended")
        return pid

    def close(self) -> None:
        """End it."""
        atexit.unregister(self.close)
        for control in (self._control, self._control_of_tests):
            if control is not None:
                control.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # the server of the tests with it
        self._process.wait()


class Process:
    """A forked process, as the grader sees it: the line to it, and its process id.

    The process id may be that of the first process in its namespace.
    """

    def __init__(self, channel: Channel, pid: int) -> None:
        self.channel, self.pid = channel, pid

    def await_sealed(self, level: str) -> None:
        """Wait until it is sealed by a level; nothing runs in it before.

        Raises
        ------
        NotSealed
            If it could not be sealed.
        """
        answer: Message
        try:
            answer = self.hear(Deadline(ANSWER, self.pid), Began, Refused)
        except (Gone, TimeoutError):
            answer = Refused("the process ended, or did not answer")
        if isinstance(answer, Refused) and answer.is_of_student:
            raise TooMuch(answer.why)
        if not isinstance(answer, Began) or answer.level != level:
            raise NotSealed(
                f"expected a process sealed by {level}, got: {getattr(answer, 'why', answer)}; "
                "see what this machine offers with: python -m gradebox.sandbox.probe"
            )

    def hear(self, deadline: Deadline, *kinds: type[M]) -> M:
        """Wait for a message of some kinds, until the limit is over."""
        return deadline.wait(lambda seconds: receive(self.channel, seconds, *kinds))

    def interrupt(self) -> Deadline:
        """Interrupt what it does, as Ctrl-C would; return the limit of what it does then."""
        self._signal(signal.SIGINT)
        return Deadline(GRACE, self.pid)

    def kill(self) -> None:
        """End the process and all that belong to its session."""
        # the group first: its number may be another's once its leader is gone
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, number)


@contextmanager
def _told(end: socket.socket, pid: int, message: Message) -> Iterator[Process]:
    """Tell a forked process its first message; at the end it is killed."""
    # no message to the grader has binary parts: a student's could fill its memory
    process = Process(Channel(end, most=0), pid)
    try:
        with contextlib.suppress(Gone):  # the answer will be missing
            send(process.channel, message)
        yield process
    finally:
        process.kill()


class Template:
    """The sealed process that forks those of a notebook's tests, for any thread."""

    def __init__(self, process: Process) -> None:
        self._process, self._lock = process, threading.Lock()
        self._control = process.channel.end
        self._control.setblocking(True)

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        return not poll.poll(0)  # it says nothing until it ends

    @contextmanager
    def tests(self, student: socket.socket, environment: Mapping[str, str]) -> Iterator[Process]:
        """Fork the process of the tests for one submission; at the end it is killed.

        It is given the end of its line to the student's process, and variables for the tests.
        """
        ours, theirs = socket.socketpair()
        with ours:
            # before there is a child: the kernel adds its process id when it sends
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            with theirs, self._lock:
                try:
                    socket.send_fds(self._control, [b"t"], [theirs.fileno(), student.fileno()])
                except OSError as error:
                    raise RuntimeError("the process that forks the tests has ended") from error
            try:
                pid = _sender(ours)
            except OSError as error:
                self._process.kill()
                with contextlib.suppress(OSError):  # known to be gone at once: another is made
                    self._control.shutdown(socket.SHUT_RDWR)
                raise RuntimeError("the process that forks the tests does not answer") from error
            with _told(ours, pid, Prepare(dict(environment))) as process:
                yield process


def _sender(end: socket.socket) -> int:
    """Return the process id of who sent the first byte; the kernel tells, in our own numbers."""
    size = struct.calcsize("3i")
    end.settimeout(ANSWER)
    _, messages, _, _ = end.recvmsg(1, socket.CMSG_SPACE(size))
    for level, kind, content in messages:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            pid = int(struct.unpack("3i", content[:size])[0])
            if pid > 0:  # of an end that was closed it is 0, which would stand for the grader
                return pid
    raise RuntimeError("the process of the tests ended before its first word")


def beginning(
    folder: Path,
    environment: Mapping[str, str],
    level: Level,
    limits: Limits,
    readable: Sequence[str] = (),
) -> Begin:
    """Return the message that says how to seal a process.

    It gets a copy of the folder without notebooks; cells get the variables of
    :data:`gradebox.sandbox.seal.PASSED` anyway.
    """
    return Begin(str(folder), dict(environment), level, asdict(limits), [*map(str, readable)])


def _environment() -> dict[str, str]:
    """Return the environment of the fork server.

    Cells can read what it was started with in /proc, so only variables that are named pass.
    """
    passed = {name: os.environ[name] for name in (*PASSED, *IMPORTING) if name in os.environ}
    inline = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    return {**passed, **dict.fromkeys(THREADS, "1"), **inline}


def _remove(scratch: str | None) -> None:
    """Remove a folder in which a killed process may be writing for another instant."""
    for _ in range(100):
        if scratch is None or not Path(scratch).exists():
            return
        shutil.rmtree(scratch, ignore_errors=True)
        if Path(scratch).exists():
            time.sleep(0.01)
