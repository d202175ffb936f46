"""The grader's end of the fork server, and of the processes that it forks."""

import atexit
import contextlib
import json
import os
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from gradebox.sandbox.filesystem import TooMuch
from gradebox.sandbox.own_time import Deadline
from gradebox.sandbox.seal import PASSED, THREADS, Level, Limits, NotSealed
from gradebox.values.channel import Channel, Gone, ready
from gradebox.workers.protocol import Began, Begin, Fork, M, receive, send

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
        self._lock, self._is_ready = threading.Lock(), False
        modules = json.dumps([[*imports], [*banned], [*stubbed]])
        # -P: nothing is imported from the working folder, where a json.py may lie
        self._command = [sys.executable, "-P", "-m", "gradebox.workers.server", modules]
        self._prepare = prepare
        self._control, end = socket.socketpair()
        # what is prepared may be answers: the students' processes are forked from another server
        self._control_of_tests = None if banned or stubbed or prepare else self._control
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
            if not self._is_ready:
                self._await(self._control)
                self._is_ready = True

    def _await(self, control: socket.socket) -> None:
        control.settimeout(START)
        with contextlib.suppress(TimeoutError, ConnectionError):
            if control.recv(5) == b"ready":
                return control.settimeout(ANSWER)
        self.close()
        raise RuntimeError(f"the fork server did not start; try: {shlex.join(self._command)}")

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def student(self, begin: Begin, tests: socket.socket) -> AbstractContextManager["Process"]:
        """Fork the process of a student's cells, and give it the end of its line to the tests."""
        self.wait_until_ready()
        return self._forked(self._control, begin, tests)

    @contextlib.contextmanager
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
                    socket.send_fds(self._control, [Fork.SERVER], [end.fileno()])
                # no argument: a student's process knows those of the server that it is forked from
                self._control_of_tests.sendall(json.dumps(self._prepare).encode() + b"\n")
                self._await(self._control_of_tests)
            return self._control_of_tests

    @contextlib.contextmanager
    def _forked(
        self, control: socket.socket, begin: Begin, *others: socket.socket
    ) -> Iterator["Process"]:
        with contextlib.ExitStack() as stack:
            if begin.level == Level.LANDLOCK:
                scratch = tempfile.mkdtemp(prefix="gradebox-")
                stack.callback(_remove, Path(scratch))
                begin = replace(begin, scratch=scratch)
            yield stack.enter_context(_forked(control, begin, others, self.close))

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
    """A forked process: the line to it, and its id, or that of the first in its namespace."""

    def __init__(self, channel: Channel, pid: int) -> None:
        self.channel, self.pid = channel, pid

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


class Template:
    """The sealed process that forks those of a notebook's tests, for any thread."""

    def __init__(self, process: Process) -> None:
        self._process, self._control = process, process.channel.end
        self._control.settimeout(ANSWER)

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return not ready(self._control, select.POLLIN, 0)  # it says nothing until it ends

    def tests(self, begin: Begin, student: socket.socket) -> AbstractContextManager[Process]:
        """Fork the process of the tests for one submission, with its line to the student's."""
        return _forked(self._control, begin, [student], self._close)

    def _close(self) -> None:
        self._process.kill()
        with contextlib.suppress(OSError):  # known to be gone at once: another is made
            self._control.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def _forked(
    control: socket.socket, begin: Begin, others: Sequence[Any], close: Callable[[], None]
) -> Iterator[Process]:
    """Have a process forked, and closed what forks if it does not answer; kill it at the end."""
    # a template, which is in namespaces already, makes none for the processes that it forks
    request = Fork.NAMESPACES if begin.level == Level.NAMESPACES else Fork.PLAIN
    ours, theirs = socket.socketpair()
    with ours:
        # before there is a child: the kernel adds its process id when it sends
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        try:
            with theirs:
                socket.send_fds(control, [request], [end.fileno() for end in (theirs, *others)])
            pid = _sender(ours)
        except TimeoutError:
            close()
            why = "did not answer and was ended; the next submission gets a new one"
            raise RuntimeError(f"the fork server {why}") from None
        except OSError as error:
            raise RuntimeError("the fork server ended") from error
        # no message to the grader has binary parts: a student's could fill its memory
        process = Process(Channel(ours, most=0), pid)
        try:
            with contextlib.suppress(Gone):  # the answer will be missing
                send(process.channel, begin)
            yield process
        finally:
            process.kill()


def _sender(end: socket.socket) -> int:
    """Return the process id of who sent the first byte; the kernel tells, in our own numbers."""
    size = struct.calcsize("3i")
    end.settimeout(ANSWER)
    _, messages, _, _ = end.recvmsg(1, socket.CMSG_SPACE(size))
    told = [content for _, kind, content in messages if kind == socket.SCM_CREDENTIALS]
    pid = int(struct.unpack("3i", told[0][:size])[0]) if told else 0
    if pid <= 0:  # of an end that was closed it is 0, which would stand for the grader
        raise RuntimeError("the process ended before its first word")
    return pid


def beginning(
    folder: Path, environment: dict[str, str], level: Level, limits: Limits, readable: Any = ()
) -> Begin:
    """Return the message that says how to seal a process."""
    return Begin(str(folder), environment, level, asdict(limits), [*map(str, readable)])


def _remove(folder: Path) -> None:
    for _ in range(100):  # a killed process may be writing in it for another instant
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.01)
