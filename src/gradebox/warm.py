"""Run notebooks in forks of a warm process, cell by cell, with a time limit for each."""

import atexit
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gradebox.wire import Gone, Line

START = 120.0
"""Seconds that the imports may take."""

GRACE = 5.0
"""Seconds that a cell has to end when it is interrupted."""


class Died(Exception):
    """The process that runs the notebook is gone, with all that its cells had made."""


class Zygote:
    """The warm parent: see :mod:`gradebox.zygote`.

    Parameters
    ----------
    imports : sequence of str
        The modules that it imports before the first notebook.

    Raises
    ------
    RuntimeError
        If it does not start.
    """

    def __init__(self, imports: tuple[str, ...] = ()) -> None:
        self._lock = threading.Lock()
        self._control, end = socket.socketpair()
        with end:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gradebox.zygote", *imports],
                stdin=end.fileno(),
                env=os.environ | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"},
                start_new_session=True,
            )
        self._control.settimeout(START)
        try:
            ready = self._control.recv(5)
        except TimeoutError:
            ready = b""
        if ready != b"ready":
            self.close()
            raise RuntimeError(
                f"the warm process did not start; try: {sys.executable} -m gradebox.zygote "
                f"{' '.join(imports)}"
            )
        self._control.settimeout(None)
        atexit.register(self.close)

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    @contextmanager
    def notebook(self, folder: Path, environment: Mapping[str, str]) -> Iterator["Notebook"]:
        """Fork a process for one notebook; at the end it is killed, with all that it started."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs, self._lock:
                socket.send_fds(self._control, [b"f"], [theirs.fileno()])
                pid = int.from_bytes(self._control.recv(8), "big")
            if not pid:
                raise RuntimeError("the warm process ended")
            notebook = Notebook(Line(ours), pid)
            try:
                notebook.line.send({"folder": str(folder), "environment": dict(environment)})
                yield notebook
            finally:
                notebook.kill()

    def close(self) -> None:
        """End it."""
        atexit.unregister(self.close)
        self._control.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()


class Notebook:
    """A process that runs the cells of one notebook."""

    def __init__(self, line: Line, pid: int) -> None:
        self.line, self.pid = line, pid

    def run(self, source: str, seconds: float | None) -> tuple[dict[str, Any], bool]:
        """Run one cell; return what it showed, and whether it had to be interrupted.

        Raises
        ------
        Died
            If the process ended, or had to be ended because it could not be interrupted.
        """
        try:
            self.line.send({"source": source})
            try:
                return self.line.receive(seconds), False
            except TimeoutError:
                self._signal(signal.SIGINT)
            try:
                return self.line.receive(GRACE), True
            except TimeoutError:
                self.kill()
                raise Died(f"longer than {seconds:g} s, and could not be interrupted") from None
        except Gone:
            raise Died("the process ended while the cell ran") from None

    def kill(self) -> None:
        """End the process and all that belong to its session."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, number)
