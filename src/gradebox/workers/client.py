"""The grader's end of the fork server, and of the processes that it forks."""

import atexit
import contextlib
import json
import os
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gradebox.sandbox.filesystem import TooMuch
from gradebox.sandbox.own_time import Deadline
from gradebox.sandbox.seal import PASSED, THREADS, Level, NotSealed
from gradebox.values.channel import Channel, Gone
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
        self._lock, self._is_ready, self._prepare = threading.Lock(), False, prepare
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
                    socket.send_fds(self._control, [Fork.SERVER], [end.fileno()])
                # no argument: a student's process knows those of the server that it is forked from
                self._control_of_tests.sendall(json.dumps(self._prepare).encode() + b"\n")
                _await(self._control_of_tests)
            except OSError as error:
                self.close()
                command = shlex.join(self._command)
                raise RuntimeError(f"the fork server did not start; try: {command}") from error
            self._is_ready = True

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
        request = Fork.NAMESPACES if begin.level == Level.NAMESPACES else Fork.PLAIN
        with contextlib.ExitStack() as stack:
            if begin.level != Level.NAMESPACES:
                scratch = tempfile.mkdtemp(prefix="gradebox-")
                stack.callback(_remove, Path(scratch))
                begin = replace(begin, scratch=scratch)
            ours, theirs = map(stack.enter_context, socket.socketpair())
            # before there is a child: the kernel adds its process id when it sends
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            try:
                socket.send_fds(control, [request], [theirs.fileno(), other.fileno()])
                theirs.close()  # or its end would go unnoticed
                pid = _sender(ours)
            except TimeoutError:
                self.close()
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
    control.settimeout(ANSWER)


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


def _remove(folder: Path) -> None:
    for _ in range(100):  # a killed process may be writing in it for another instant
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.01)
