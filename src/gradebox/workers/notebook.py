"""One submission's notebook while it runs: the student's process, that of the tests, and limits."""

import contextlib
import math
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from gradebox.sandbox.own_time import CAP, Deadline
from gradebox.values.channel import Gone
from gradebox.workers.client import ForkServer, Process, Template
from gradebox.workers.protocol import (
    Begin,
    Given,
    Remember,
    RunCell,
    RunInProcess,
    RunTest,
    Shown,
    Tested,
    bounded,
    receive,
    send,
)


class Ended(Exception):
    """The student's process is gone, with all that its cells had made.

    ``kind`` is that of the event: ``ended`` or ``slow-notebook``.
    """

    def __init__(self, message: str, kind: str = "ended") -> None:
        super().__init__(message)
        self.kind = kind


class Notebook:
    """A notebook in its processes; see :func:`running`.

    Parameters
    ----------
    student : Process
        Runs the student's cells.
    tests : Process, optional
        Runs the isolated tests; there is none where all run in-process.
    seconds : float
        The limit of each cell, in own time: see :mod:`gradebox.sandbox.own_time`.
    budget : float
        The limit of all cells together.
    given : sequence of Given
        What the tests run of the instructor's other cells.
    """

    def __init__(
        self,
        student: Process,
        tests: Process | None,
        seconds: float,
        budget: float = math.inf,
        given: Sequence[Given] = (),
    ) -> None:
        self._student, self._tests = student, tests
        self._seconds, self._budget, self._spent = seconds, budget, 0.0
        self._until = time.monotonic() + CAP + 3 * budget
        self._ended: Ended | None = None
        self._without_tests = ""
        self._given, self._failed_given = [*given], ""

    def run(self, source: str, helpers: Sequence[str] = ()) -> tuple[Shown, str]:
        """Run a cell in the student's process; return what it showed, and why it was interrupted.

        Parameters
        ----------
        source : str
            The cell.
        helpers : sequence of str
            Names that only this cell of the instructor's defines.

        Raises
        ------
        Ended
            If the process ended, or had to be ended.
        """
        shown, late = self._ask(RunCell(source, [*helpers]), Shown)
        return shown, late

    def remember(self, test: str, fork: bool = False) -> None:
        """Have the student's process remember its names, for a test that runs in it later.

        Parameters
        ----------
        test : str
            The name of the test.
        fork : bool
            Whether a fork of it is to wait for the test, with the objects as they are now, too.
        """
        if self._ended is None:
            with contextlib.suppress(Gone):
                send(self._student.channel, Remember(test, fork))

    def test_in_process(
        self,
        test: str,
        source: str,
        points: float,
        seconds: float | None = None,
        pythons: Sequence[str] = (),
        imports: Sequence[str] = (),
    ) -> tuple[Tested, str]:
        """Run a test in the student's process; return what it showed, and why it was interrupted.

        ``seconds`` is its limit, where it is not that of the other cells; see
        :class:`~gradebox.workers.protocol.RunInProcess`.

        Raises
        ------
        Ended
            If the process ended, or had to be ended.
        """
        message = RunInProcess(test, source, points, [*pythons], [*imports])
        tested, late = self._ask(message, Tested, seconds)
        score = 0.0 if late or tested.error else bounded(tested.score, points)
        return replace(tested, score=score), late

    def _ask(self, message: Any, kind: Any, seconds: float | None = None) -> tuple[Any, str]:
        self._require_time()
        student, limit = self._student, min(seconds or self._seconds, self._budget - self._spent)
        deadline = Deadline(limit, student.pid)
        try:
            try:
                return student.ask(message, kind, deadline), ""
            except TimeoutError:
                student.interrupt()
            try:
                return (
                    student.grace().wait(lambda s: receive(student.channel, s, kind)),
                    deadline.says,
                )
            except TimeoutError:
                raise self._end(f"{deadline.says}, and could not be interrupted") from None
        except Gone:
            raise self._end("the process ended while the cell ran") from None
        finally:
            self._spent += deadline.spent()

    def _require_time(self) -> None:
        """Raise if the student's process has ended, or all cells together took too long."""
        if self._ended is not None:
            raise self._ended
        if self._spent >= self._budget:
            text = f"all cells together took longer than {self._budget:g} s"
            raise self._end(text, "slow-notebook")
        if time.monotonic() > self._until:
            minutes = (CAP + 3 * self._budget) / 60
            text = f"all cells together took longer than {minutes:.0f} minutes of wall time"
            raise self._end(text, "slow-notebook")

    def _end(self, why: str, kind: str = "ended") -> Ended:
        self._student.kill()
        self._ended = Ended(why, kind)
        return self._ended

    def test(
        self,
        name: str,
        source: str,
        points: float,
        seconds: float | None = None,
        pythons: Iterable[str] = (),
    ) -> Tested:
        """Run an isolated test, or a locked cell worth nothing; return what it came to.

        What the tests run of the instructor's other cells before it is run first. Whatever the
        student's process does meanwhile, or the test itself, costs no more than this cell's points
        and those of the cells that need what is lost.

        Parameters
        ----------
        name, source, points : str, str and float
            The cell.
        seconds : float, optional
            Its limit, where it is not that of the other cells.
        pythons : iterable of str
            Names of Python's own that are the student's in it.
        """
        last = max((n for n, given in enumerate(self._given, 1) if given.before == name), default=0)
        given, self._given = self._given[:last], self._given[last:]
        for part in (part for part in given if part.source or part.answers):
            tested = self._test(RunTest(part.source, 0.0, [*part.answers]))
            self._failed_given = self._failed_given or tested.error
        tested = self._test(RunTest(source, points, pythons=[*pythons]), seconds)
        if tested.error.startswith("NameError") and self._failed_given:
            why = f"{tested.error}; a cell that students were given ended with {self._failed_given}"
            return replace(tested, error=why)
        return tested

    def _test(self, message: RunTest, seconds: float | None = None) -> Tested:
        if self._tests is None or self._without_tests:
            return _failed(self._without_tests)
        try:
            self._require_time()
        except Ended as ended:
            if ended.kind != "ended":  # a process that ended by itself may have left names behind
                return _failed(str(ended))
        try:
            result = self._tested(message, seconds or self._seconds)
        except (Gone, TimeoutError) as error:
            how = "took too long" if isinstance(error, TimeoutError) else "ended"
            self._without_tests = f"the process of the tests {how}"
            self._tests.kill()
            return _failed(
                self._without_tests, "slow" if isinstance(error, TimeoutError) else "ended"
            )
        if result.gone:
            self._end(result.gone)
        return result

    def _tested(self, message: RunTest, limit: float) -> Tested:
        assert self._tests is not None
        tests, student = self._tests, self._student
        deadline = Deadline(limit, tests.pid, student.pid)

        def tested(seconds: float) -> Tested:
            return receive(tests.channel, seconds, Tested)

        try:
            send(tests.channel, message)
            try:
                return deadline.wait(tested)
            except TimeoutError:
                return self._interrupted(tested)
        finally:
            self._spent += deadline.spent()

    def _interrupted(self, tested: Any) -> Tested:
        """Interrupt the student's code first, and then the test itself."""
        assert self._tests is not None
        # the student's first: a test that is interrupted while it waits for an answer costs the
        # student's process, whose answer would be taken for the next one
        self._student.interrupt()
        try:
            return self._student.grace().wait(tested)
        except TimeoutError:
            self._tests.interrupt()
        return self._tests.grace().wait(tested)


def _failed(why: str, lost: str = "") -> Tested:
    name = "RuntimeError"
    line = f"\x1b[0;31m{name}\x1b[0m: {why}"
    output = {"output_type": "error", "ename": name, "evalue": why, "traceback": [line]}
    return Tested(0.0, [output], why, lost=lost)


@contextmanager
def running(
    server: ForkServer,
    template: Template | None,
    begin: Begin,
    *,
    seconds: float,
    budget: float = math.inf,
    given: Sequence[Given] = (),
) -> Iterator[Notebook]:
    """Fork the processes of one notebook; at the end they are killed.

    Parameters
    ----------
    server : ForkServer
        Forks the student's.
    template : Template, optional
        Forks that of the tests; without one there are no isolated tests.
    begin : Begin
        How the student's process is sealed.
    seconds, budget : float
        The limits of each cell and of all together.
    given : sequence of Given
        What the tests run of the instructor's other cells.

    Raises
    ------
    NotSealed
        If the student's process could not be sealed.
    """
    ours, theirs = socket.socketpair()
    with contextlib.ExitStack() as stack:
        with ours, theirs:  # closed here, or the end of a process would go unnoticed
            # it is sealed while the other one is forked
            student = stack.enter_context(server.student(begin, theirs))
            tests = None
            if template is not None:
                tests = stack.enter_context(template.tests(ours, begin.environment))
        student.await_sealed()
        yield Notebook(student, tests, seconds, budget, given)
