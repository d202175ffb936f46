"""The student's side: it runs the student's cells, answers tests, and runs some in itself."""

import contextlib
import os
import select
import signal
import socket
from collections.abc import Iterator
from typing import Any, NoReturn

from gradebox.values.channel import Channel, Gone
from gradebox.workers.answering import Answering
from gradebox.workers.cells import Cell, error_output, reason, result
from gradebox.workers.imported import Imported
from gradebox.workers.protocol import (
    Message,
    Remember,
    RunCell,
    RunInProcess,
    Shown,
    Tested,
    receive,
    send,
)
from gradebox.workers.tampering import Builtins, Helpers


class Student:
    """Does what the grader asks for, one request at a time, and answers the tests.

    Parameters
    ----------
    tests : Channel
        The line to the tests.
    imported : Imported
        IPython and the modules, in a process in which no cell of the student's has run.
    """

    def __init__(self, tests: Channel, imported: Imported) -> None:
        self._shell, self._barrier = imported.shell, imported.barrier
        self._pristine = imported.pristine.changed
        self._builtins = Builtins()
        self._user_ns: dict[str, Any] = self._shell.user_ns
        self._helpers = Helpers(self._user_ns)
        self._cells = 0
        self._answering = Answering(tests, self._shell, self._builtins)
        self._names: dict[str, dict[str, Any]] = {}
        self._of_tests: dict[str, Any] = {}
        self._is_busy = False
        signal.signal(signal.SIGINT, self._interrupt)

    def answer(self) -> None:
        """Answer the next question of the tests.

        Raises
        ------
        Gone
            When they have ended.
        """
        with self.busy():
            self._answering.answer()

    def obey(self, message: Message) -> Message | None:
        """Do what the grader asks for, and return the answer, if there is one."""
        if isinstance(message, RunCell):
            return self._cell(message)
        if isinstance(message, RunInProcess):
            return self._test(message)
        assert isinstance(message, Remember)
        self._names[message.test] = dict(self._user_ns)
        return None

    def _interrupt(self, number: int, frame: Any) -> None:
        if self._answering.talks:
            self._answering.interrupted = True
        # when nothing runs it has come too late, and would hit the next cell
        elif self._is_busy:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """Let an interruption end what runs inside, and nothing else."""
        self._is_busy = True
        try:
            yield
        except KeyboardInterrupt:  # it came when all had just been done
            pass
        finally:
            self._is_busy = False

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

    def _test(self, message: RunInProcess) -> Tested:
        """Run a test with the names that there were where it stands, and those of earlier tests.

        The names are put into the dict that the student's functions look them up in, so that these
        see them, too. What an object has become since stays.
        """
        self._barrier.tests_begin()  # first: a stub that does nothing would give the points
        names = self._user_ns
        changed = self._changed()
        remembered = self._names.pop(message.test, None)
        if remembered is not None:
            # IPython's own, such as _ih and _oh: it goes on writing into the present ones
            hidden = {name: names[name] for name in names if name.startswith("_")}
            names.clear()
            names.update(remembered | hidden | self._of_tests)
        changed += self._helpers.put_back()  # after the names, which may hold another helper
        for name in message.pythons:
            names.pop(name, None)
        for statement in message.imports:
            with contextlib.suppress(Exception):  # the test that needs it will say so
                exec(statement, names)
        before, outputs = dict(names), self._shell.outputs
        self._cells += 1
        cell = Cell(message.source, self._cells)
        outputs.start()

        def run() -> Any:
            with self._builtins:
                return cell.run(names)

        score, error = result(run, message.points, outputs, lambda value: False)
        changed += self._changed()
        self._of_tests |= {
            name: value
            for name, value in names.items()
            if not name.startswith("_") and before.get(name, self) is not value
        }
        self._shell.events.trigger("post_execute")  # figures are shown then
        why = reason(error)
        return Tested(score, outputs.items, why, changed=sorted({*changed}))

    def _changed(self) -> list[str]:
        is_other = self._shell.user_ns is not self._user_ns
        changed = ["get_ipython().user_ns"] if is_other else []
        return changed + self._builtins.changed + self._pristine()


class StudentProcess(Student):
    """Serves the grader and the process of the tests.

    Parameters
    ----------
    grader, tests : Channel
        The lines to both.
    imported : Imported
        See :class:`Student`.
    """

    def __init__(self, grader: Channel, tests: Channel, imported: Imported) -> None:
        super().__init__(tests, imported)
        self._grader, self._tests = grader, tests
        self._forks: dict[str, tuple[int, Channel]] = {}

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
                        self.answer()
                    except Gone:  # the tests have ended; the student's cells go on
                        poll.unregister(descriptor)
                    break
            else:
                with self.busy():
                    message = receive(self._grader, None, RunCell, Remember, RunInProcess)
                    if (answer := self.obey(message)) is not None:
                        send(self._grader, answer)

    def obey(self, message: Message) -> Message | None:
        """Do what the grader asks for; a fork does what is to be done with the objects of now."""
        if isinstance(message, Remember) and message.fork:
            self._fork(message.test)
            return None
        if isinstance(message, RunInProcess) and message.test in self._forks:
            return self._ask_fork(message)
        return super().obey(message)

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
            with self.busy():
                send(channel, self._test(message))
        finally:
            os._exit(0)

    def _ask_fork(self, message: RunInProcess) -> Tested:
        """Have the fork that waits for a test run it, and interrupt it if this process is."""
        pid, channel = self._forks.pop(message.test)
        send(channel, message)
        while True:
            try:
                return receive(channel, None, Tested)
            except KeyboardInterrupt:
                os.kill(pid, signal.SIGINT)
            except Gone:
                why = "the process of this test ended"
                return Tested(
                    0.0, [{"output_type": "error", **error_output(RuntimeError(why))}], why
                )
