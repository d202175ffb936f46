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
from gradebox.workers.cells import Cell, Interrupts, reason, result
from gradebox.workers.imported import Imported
from gradebox.workers.protocol import (
    Message,
    Remember,
    RunCell,
    RunInProcess,
    Shown,
    Tested,
    failed,
    receive,
    send,
)
from gradebox.workers.tampering import Builtins, Helpers


class Student:
    """Does what the grader asks for, one request at a time, and answers the tests on their line.

    What is ``imported`` has been so in a process in which no cell of the student's has run.
    """

    def __init__(self, tests: Channel, imported: Imported) -> None:
        self._shell, self._barrier = imported.shell, imported.barrier
        self._pristine = imported.pristine.changed
        self._builtins = Builtins()
        self._user_ns: dict[str, Any] = self._shell.user_ns
        self._helpers = Helpers(self._user_ns)
        self._interrupts = Interrupts(KeyboardInterrupt)
        self._answering = Answering(tests, self._shell, self._builtins, self._interrupts)
        self._names: dict[str, dict[str, Any]] = {}
        self._of_tests: dict[str, Any] = {}

    def answer(self) -> None:
        """Answer the next question of the tests."""
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

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """Let an interruption end what runs inside, and nothing else."""
        # what is suppressed came when all had just been done
        with contextlib.suppress(KeyboardInterrupt), self._interrupts.busy():
            yield

    def _cell(self, message: RunCell) -> Shown:
        try:
            with self._builtins:
                count, ok = self._shell.execute(message.source)
        except KeyboardInterrupt:  # it came when the cell had just ended
            count, ok = None, False
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
        cell = Cell(message.source)
        outputs.start()

        def run() -> Any:
            with self._builtins:
                return cell.run(names)

        score, error = result(run, message.points, outputs)
        changed += self._changed()
        self._of_tests |= {
            name: value
            for name, value in names.items()
            if not name.startswith("_") and before.get(name, self) is not value
        }
        self._shell.events.trigger("post_execute")  # figures are shown then
        return Tested(score, outputs.items, reason(error), changed=sorted({*changed}))

    def _changed(self) -> list[str]:
        is_other = self._shell.user_ns is not self._user_ns
        changed = ["get_ipython().user_ns"] if is_other else []
        return changed + self._builtins.changed + self._pristine()


class StudentProcess(Student):
    """Serves the grader and the process of the tests, each on its line."""

    def __init__(self, grader: Channel, tests: Channel, imported: Imported) -> None:
        super().__init__(tests, imported)
        self._grader, self._tests = grader, tests
        self._forks: dict[str, tuple[int, Channel]] = {}

    def serve(self) -> NoReturn:
        """Do what is asked for, until the grader ends, which raises Gone."""
        poll = select.poll()
        for channel in (self._grader, self._tests):
            poll.register(channel, select.POLLIN)
        while True:
            # what has been read into a buffer is not announced
            ready = poll.poll(0 if self._grader.has_more else None)
            if self._tests.fileno() in dict(ready):
                try:
                    self.answer()
                except Gone:  # the tests have ended; the student's cells go on
                    poll.unregister(self._tests)
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
                return failed("the process of this test ended")
