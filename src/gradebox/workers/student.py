"""The student's process: it runs the student's cells, answers tests, and runs some in itself."""

import contextlib
import os
import select
import signal
import socket
from collections.abc import Iterator
from typing import Any, NoReturn

from gradebox.sandbox.imports import Barrier
from gradebox.values.channel import Channel, Gone
from gradebox.workers.answering import Answering
from gradebox.workers.protocol import (
    Remember,
    RunCell,
    RunInProcess,
    Shown,
    Tampered,
    receive,
    send,
)
from gradebox.workers.shell import Shell
from gradebox.workers.tampering import Builtins, Helpers, Pristine


class StudentProcess:
    """Serves the grader and the process of the tests.

    Parameters
    ----------
    grader, tests : Channel
        The lines to both.
    shell : Shell
        IPython, in which no cell of the student's has run.
    barrier : Barrier
        What the student's cells cannot import.
    watched : list of str
        The modules that tests in this process use.
    """

    def __init__(
        self, grader: Channel, tests: Channel, shell: Shell, barrier: Barrier, watched: list[str]
    ) -> None:
        self._grader, self._tests, self._shell, self._barrier = grader, tests, shell, barrier
        self._pristine = Pristine(watched)
        self._builtins = Builtins()
        self._helpers = Helpers(shell.user_ns)
        self._answering = Answering(tests, shell, self._builtins)
        self._names: dict[str, dict[str, Any]] = {}
        self._forks: dict[str, tuple[int, Channel]] = {}
        self._of_tests: dict[str, Any] = {}
        self._is_busy = False
        signal.signal(signal.SIGINT, self._interrupt)

    def serve(self) -> NoReturn:
        """Do what is asked for, until the grader ends.

        Raises
        ------
        Gone
            Then.
        """
        poll = select.poll()
        for channel in (self._grader, self._tests):
            poll.register(channel, select.POLLIN)
        while True:
            # what has been read into a buffer is not announced
            for descriptor, _ in poll.poll(0 if self._grader.has_more else None):
                if descriptor == self._tests.fileno():
                    try:
                        with self._busy():
                            self._answering.answer()
                    except Gone:  # the tests have ended; the student's cells go on
                        poll.unregister(descriptor)
                    break
            else:
                with self._busy():
                    self._obey()

    def _interrupt(self, number: int, frame: Any) -> None:
        if self._answering.talks:
            self._answering.interrupted = True
        # when nothing runs it has come too late, and would hit the next cell
        elif self._is_busy:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def _busy(self) -> Iterator[None]:
        self._is_busy = True
        try:
            yield
        except KeyboardInterrupt:  # it came when all had just been done
            pass
        finally:
            self._is_busy = False

    def _obey(self) -> None:
        message = receive(self._grader, None, RunCell, Remember, RunInProcess)
        if isinstance(message, RunCell):
            send(self._grader, self._cell(message))
        elif isinstance(message, Remember) and message.fork:
            self._fork(message.test)
        elif isinstance(message, Remember):
            self._names[message.test] = dict(self._shell.user_ns)
        elif isinstance(message, RunInProcess):
            in_fork = message.test in self._forks
            send(self._grader, (self._ask_fork if in_fork else self._test)(message))

    def _fork(self, test: str) -> None:
        """Fork a process that waits for a test, with all objects as they are now."""
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid:
            theirs.close()
            self._forks[test] = pid, Channel(ours)
            return
        try:
            # an end that stays open here would hide that the student's process has ended
            for end in (ours, self._grader.end, self._tests.end):
                end.close()
            channel = Channel(theirs)
            message = receive(channel, None, RunInProcess)
            with self._busy():
                send(channel, self._test(message))
        finally:
            os._exit(0)

    def _ask_fork(self, message: RunInProcess) -> Tampered:
        """Have the fork that waits for a test run it, and interrupt it if this process is."""
        pid, channel = self._forks.pop(message.test)
        send(channel, message)
        while True:
            try:
                return receive(channel, None, Tampered)
            except KeyboardInterrupt:
                os.kill(pid, signal.SIGINT)
            except Gone:
                why = {"output_type": "error", "ename": "DeadKernelError", "traceback": []}
                why["evalue"] = "the process of this test ended"
                return Tampered([why], None, [])

    def _run(self, source: str) -> tuple[int | None, bool]:
        try:
            with self._builtins:
                return self._shell.execute(source)
        except KeyboardInterrupt:  # it came when the cell had just ended
            return None, False

    def _cell(self, message: RunCell) -> Shown:
        count, ok = self._run(message.source)
        self._helpers.keep(message.helpers)
        return Shown(self._shell.outputs.items, count, ok)

    def _test(self, message: RunInProcess) -> Tampered:
        """Run a test with the names that there were where it stands, and those of earlier tests.

        The names are put into the dict that the student's functions look them up in, so that these
        see them, too. What an object has become since stays.
        """
        self._barrier.tests_begin()  # first: a stub that does nothing would give the points
        names = self._shell.user_ns
        changed = self._changed()
        remembered = self._names.pop(message.test, None)
        if remembered is not None:
            # IPython's own, such as _ih and _oh: it goes on writing into the present ones
            hidden = {name: names[name] for name in names if name.startswith("_")}
            names.clear()
            names.update(remembered | hidden | self._of_tests)
        changed += self._helpers.put_back()  # after the names, which may hold another helper
        before = dict(names)
        count, _ = self._run(message.source)
        outputs = self._shell.outputs.items
        self._of_tests |= {
            name: value
            for name, value in names.items()
            if not name.startswith("_") and before.get(name, self) is not value
        }
        changed += self._changed()
        return Tampered(outputs, count, sorted(set(changed)))

    def _changed(self) -> list[str]:
        return self._builtins.changed + self._pristine.changed()
