"""The two processes of one notebook: one has the student's cells, the other the tests."""

import contextlib
import math
import socket
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradebox.line.proxy import GRACE
from gradebox.line.wire import Gone
from gradebox.process.client import Died, Notebook, TooLong, Zygote
from gradebox.process.verdict import Verdict
from gradebox.sandbox.deadline import CAP, Deadline, pace
from gradebox.sandbox.own_time import OwnTime
from gradebox.sandbox.seal import Level, Limits

PATIENCE = 4 * GRACE
"""Seconds of own time beyond a test cell's limit after which its process is given up."""


@dataclass(frozen=True)
class Given:
    """What the test cells of a notebook are given.

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
        self, student: Notebook, examiner: Notebook, seconds: float, budget: float = math.inf
    ) -> None:
        self.student, self._examiner, self._seconds = student, examiner, seconds
        self._budget, self._until = budget, time.monotonic() + CAP + 3 * budget
        self._examined, self._gone = 0.0, ""

    def run(self, source: str) -> tuple[dict[str, Any], str]:
        """Run one cell of the student's; see :meth:`gradebox.process.client.Notebook.run`.

        Raises
        ------
        Died
            If the student's process ended, or had to be ended.
        """
        if spent := self._spent:
            self._end()
            raise TooLong(spent)
        return self.student.run(source, min(self._seconds, self._left))

    @property
    def _left(self) -> float:
        """Seconds of own time that are left to all cells together."""
        return self._budget - self.student.spent - self._examined

    @property
    def _spent(self) -> str:
        """Why no further cell is run; empty while there is time."""
        if self._left <= 0:
            return f"all cells together took longer than {self._budget:g} s"
        if time.monotonic() > self._until:
            minutes = (CAP + 3 * self._budget) / 60
            return f"all cells together took longer than {minutes:.0f} minutes of wall time"
        return ""

    def _end(self) -> None:
        self._examiner.kill()
        self.student.kill()

    def examine(
        self, source: str, points: float = 0.0, mixed: Collection[str] | None = None
    ) -> Verdict:
        """Run one test cell, and return what it came to; see :meth:`.Checker.run`.

        Whatever the student's process does meanwhile, or the test cell itself, costs no more than
        this cell's points and those of the cells that need what is lost.
        """
        if not self._gone and (spent := self._spent):
            self._gone, self._name = spent, TooLong.trouble.error
            self._end()
        if self._gone:
            return _failed(points, self._gone, self._name)
        clock = OwnTime(self._examiner.pid, self.student.pid)
        with contextlib.suppress(Gone):  # it ended: the test cell is told when it asks
            self.student.line.send({"lend": True})
        try:
            allowed = None if mixed is None else sorted(mixed)
            message = {"source": source, "points": points, "mixed": allowed}
            told = self._verdict(message, clock)
        except (Gone, TimeoutError) as error:
            how = "took too long" if isinstance(error, TimeoutError) else "ended"
            self._gone, self._name = f"the process of the test cells {how}", Died.trouble.error
            self._end()
            return _failed(points, self._gone, Died.trouble.error)
        try:
            if told["gone"]:
                raise Gone
            self.student.acknowledged()
        except (Gone, TimeoutError):
            self.student.kill()
        del told["gone"]
        return Verdict(points=points, **told)

    def _verdict(self, message: dict[str, Any], clock: OwnTime) -> dict[str, Any]:
        """Send a test cell and wait; tell its process the time, interrupt the student's."""
        line, patience = self._examiner.line, self._seconds + PATIENCE
        deadline = Deadline(patience, clock.seconds, look=pace(self._seconds))
        try:
            line.send(message)
            while True:
                told = deadline.wait(line.receive)
                if "clock" in told:
                    line.send({"used": clock.seconds()})
                elif "interrupt" in told:
                    self.student.interrupt()
                else:
                    return told
        finally:
            self._examined += deadline.spent()


def _failed(points: float, why: str, name: str) -> Verdict:
    output = {"output_type": "error", "ename": name, "evalue": why}
    told = f"\x1b[0;31m{name}\x1b[0m: {why}"
    return Verdict(0.0, points, [{**output, "traceback": [told]}], why)


@contextmanager
def paired(
    zygote: Zygote,
    folder: Path,
    environment: Mapping[str, str],
    given: Given,
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
    zygote : Zygote
        Their parent.
    folder : Path
        What was handed in.
    environment : mapping
        Variables for the cells of both.
    given : Given
        What the test cells are given.
    seconds : float
        The limit of each cell.
    budget : float
        The limit of all cells together.
    level, limits, readable
        How both are sealed; see :meth:`gradebox.process.client.Zygote.notebook`.

    Raises
    ------
    NotSealed
        If one of them could not be sealed.
    """
    wanted = {"seconds": seconds, "answers": [*given.answers], "shared": [*given.shared]}
    wanted |= {"given": [*given.statements], "modules": [*given.modules]}
    ours, theirs = socket.socketpair()
    with contextlib.ExitStack() as stack:
        with ours, theirs:
            # first that of the tests: what its imports leave behind is then there to be hidden
            examiner = stack.enter_context(
                zygote.examiner(
                    folder,
                    environment,
                    theirs,
                    wanted,
                    level=level,
                    limits=limits,
                    readable=[*readable, *given.readable],
                )
            )
            student = stack.enter_context(
                zygote.notebook(
                    folder, environment, level=level, limits=limits, readable=readable, other=ours
                )
            )
        yield Pair(student, examiner, seconds, budget)
