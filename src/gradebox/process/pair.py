"""The two processes of one notebook: one has the student's cells, the other the tests."""

import contextlib
import math
import socket
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gradebox.line.proxy import GRACE
from gradebox.line.wire import Gone
from gradebox.process.client import Died, ForkServer, NotebookProcess, NotebookTimeout
from gradebox.process.protocol import (
    AskTime,
    Checked,
    CheckerSettings,
    Interrupt,
    LendNames,
    RunTest,
    Shown,
    TimeUsed,
    receive,
    send,
)
from gradebox.process.verdict import Verdict
from gradebox.sandbox.deadline import CAP, Deadline, pace
from gradebox.sandbox.own_time import OwnTime
from gradebox.sandbox.seal import Level, Limits

PATIENCE = 4 * GRACE
"""Seconds of own time beyond a test cell's limit after which its process is given up."""


@dataclass(frozen=True)
class CheckerInputs:
    """What the test cells of a notebook need of the instructor's version.

    Parameters
    ----------
    statements : sequence of str
        Executed before the first test: the imports of the instructor's own cells.
    modules : sequence of str
        The imports of modules by the instructor's solutions. A test sees such a module where the
        student has a module of the same name.
    answers : collection of str
        Names that the student is to define although Python has them.
    shared : collection of str
        Names of the student's that a test may give another value.
    readable : sequence of str
        Folders that the tests may read, such as the instructor's.
    """

    statements: Sequence[str] = ()
    modules: Sequence[str] = ()
    answers: Collection[str] = ()
    shared: Collection[str] = ()
    readable: Sequence[str] = ()


class Pair:
    """A notebook in two processes; see :func:`paired`."""

    def __init__(
        self,
        student: NotebookProcess,
        checker: NotebookProcess,
        seconds: float,
        budget: float = math.inf,
    ) -> None:
        self.student, self._checker, self._seconds = student, checker, seconds
        self._budget, self._until = budget, time.monotonic() + CAP + 3 * budget
        self._seconds_of_tests, self._gone = 0.0, ""

    def run(self, source: str) -> tuple[Shown, str]:
        """Run one cell of the student's; see :meth:`.NotebookProcess.run`.

        Raises
        ------
        Died
            If the student's process ended, or had to be ended.
        """
        if spent := self._spent:
            self._end()
            raise NotebookTimeout(spent)
        return self.student.run(source, min(self._seconds, self._remaining))

    @property
    def _remaining(self) -> float:
        """Seconds of own time that are left to all cells together."""
        return self._budget - self.student.spent - self._seconds_of_tests

    @property
    def _spent(self) -> str:
        """Why no further cell is run; empty while there is time."""
        if self._remaining <= 0:
            return f"all cells together took longer than {self._budget:g} s"
        if time.monotonic() > self._until:
            minutes = (CAP + 3 * self._budget) / 60
            return f"all cells together took longer than {minutes:.0f} minutes of wall time"
        return ""

    def _end(self) -> None:
        self._checker.kill()
        self.student.kill()

    def check(
        self, source: str, points: float = 0.0, mixed: Collection[str] | None = None
    ) -> Verdict:
        """Run one test cell, and return what it came to; see :meth:`.Checker.run`.

        Whatever the student's process does meanwhile, or the test cell itself, costs no more than
        this cell's points and those of the cells that need what is lost.
        """
        if not self._gone and (spent := self._spent):
            self._gone, self._error = spent, NotebookTimeout.trouble.error
            self._end()
        if self._gone:
            return _failed(points, self._gone, self._error)
        clock = OwnTime(self._checker.pid, self.student.pid)
        with contextlib.suppress(Gone):  # it ended: the test cell is told when it asks
            send(self.student.line, LendNames())
        try:
            allowed = None if mixed is None else sorted(mixed)
            checked = self._checked(RunTest(source, points, allowed), clock)
        except (Gone, TimeoutError) as error:
            how = "took too long" if isinstance(error, TimeoutError) else "ended"
            self._gone, self._error = f"the process of the test cells {how}", Died.trouble.error
            self._end()
            return _failed(points, self._gone, Died.trouble.error)
        try:
            if checked.gone:
                raise Gone
            self.student.lent()
        except (Gone, TimeoutError):
            self.student.kill()
        return Verdict(
            checked.score, points, checked.outputs, checked.error, checked.doubt, checked.mixed
        )

    def _checked(self, test: RunTest, clock: OwnTime) -> Checked:
        """Send a test cell and wait; tell its process the time, interrupt the student's."""
        line, patience = self._checker.line, self._seconds + PATIENCE
        deadline = Deadline(patience, clock.seconds, look=pace(self._seconds))
        try:
            send(line, test)
            while True:
                answer = deadline.wait(
                    lambda seconds: receive(line, seconds, Checked, AskTime, Interrupt)
                )
                if isinstance(answer, Checked):
                    return answer
                if isinstance(answer, AskTime):
                    send(line, TimeUsed(clock.seconds()))
                else:
                    self.student.interrupt()
        finally:
            self._seconds_of_tests += deadline.spent()


def _failed(points: float, why: str, name: str) -> Verdict:
    output = {"output_type": "error", "ename": name, "evalue": why}
    line = f"\x1b[0;31m{name}\x1b[0m: {why}"
    return Verdict(0.0, points, [{**output, "traceback": [line]}], why)


@contextmanager
def paired(
    server: ForkServer,
    folder: Path,
    environment: Mapping[str, str],
    inputs: CheckerInputs,
    *,
    seconds: float,
    budget: float = math.inf,
    level: Level,
    limits: Limits,
    readable: Sequence[str] = (),
) -> Iterator[Pair]:
    """Fork the two processes of one notebook; at the end both are killed.

    Parameters
    ----------
    server : ForkServer
        The warm process that forks them.
    folder : Path
        What was handed in.
    environment : mapping
        Variables for the cells of both.
    inputs : CheckerInputs
        What the test cells need.
    seconds : float
        The limit of each cell.
    budget : float
        The limit of all cells together.
    level, limits, readable
        How both are sealed; see :meth:`.ForkServer.notebook`.

    Raises
    ------
    NotSealed
        If one of them could not be sealed.
    """
    settings = CheckerSettings(
        seconds, [*inputs.answers], [*inputs.shared], [*inputs.statements], [*inputs.modules]
    )
    ours, theirs = socket.socketpair()
    with contextlib.ExitStack() as stack:
        with ours, theirs:
            # first that of the tests: what its imports leave behind is then there to be hidden
            checker = stack.enter_context(
                server.checker(
                    folder,
                    environment,
                    theirs,
                    settings,
                    level=level,
                    limits=limits,
                    readable=[*readable, *inputs.readable],
                )
            )
            student = stack.enter_context(
                server.notebook(
                    folder, environment, level=level, limits=limits, readable=readable, other=ours
                )
            )
        yield Pair(student, checker, seconds, budget)
