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

from gradebox.checker import Verdict
from gradebox.proxy import GRACE
from gradebox.seal import Level, Limits
from gradebox.warm import Died, Notebook, TooLong, Zygote
from gradebox.wire import Gone

PATIENCE = 4 * GRACE
"""Seconds beyond a test cell's own limit after which its process is given up."""


@dataclass(frozen=True)
class Given:
    """What the test cells of a notebook are given.

    Parameters
    ----------
    statements : sequence of str
        Executed before the first test: the imports of the instructor's own cells.
    answers : collection of str
        Names that the student is to define although Python has them.
    readable : sequence of str
        Folders that the tests may read, such as the instructor's.
    """

    statements: Sequence[str] = ()
    answers: Collection[str] = ()
    readable: Sequence[str] = ()


class Pair:
    """A notebook in two processes; see :func:`paired`."""

    def __init__(
        self, student: Notebook, examiner: Notebook, seconds: float, budget: float = math.inf
    ) -> None:
        self.student, self._examiner, self._seconds = student, examiner, seconds
        self._budget, self._until = budget, time.monotonic() + budget
        self._gone = ""

    def run(self, source: str) -> tuple[dict[str, Any], bool]:
        """Run one cell of the student's; see :meth:`gradebox.warm.Notebook.run`.

        Raises
        ------
        Died
            If the student's process ended, or had to be ended.
        """
        left = self._until - time.monotonic()
        if left <= 0:
            self._end()
            raise TooLong(self._spent)
        return self.student.run(source, min(self._seconds, left))

    @property
    def _spent(self) -> str:
        return f"all cells together took longer than {self._budget:g} s"

    def _end(self) -> None:
        self._examiner.kill()
        self.student.kill()

    def examine(self, source: str, points: float = 0.0) -> Verdict:
        """Run one test cell, and return what it came to.

        Whatever the student's process does meanwhile, or the test cell itself, costs no more than
        this cell's points and those of the cells that need what is lost.
        """
        if not self._gone and time.monotonic() > self._until:
            self._gone = self._spent
            self._end()
        if self._gone:
            name = TooLong.ename if self._gone == self._spent else Died.ename
            return _failed(points, self._gone, name)
        with contextlib.suppress(Gone):  # it ended: the test cell is told when it asks
            self.student.line.send({"lend": True})
        try:
            told = self._verdict({"source": source, "points": points})
        except (Gone, TimeoutError) as error:
            how = "took too long" if isinstance(error, TimeoutError) else "ended"
            self._gone = f"the process of the test cells {how}"
            self._end()
            return _failed(points, self._gone, Died.ename)
        try:
            if told["gone"]:
                raise Gone
            self.student.line.receive(GRACE)
        except (Gone, TimeoutError):
            self.student.kill()
        return Verdict(told["score"], points, told["outputs"], told["error"])

    def _verdict(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a test cell and wait; interrupt the student's process when asked to."""
        line, until = self._examiner.line, time.monotonic() + self._seconds + PATIENCE
        line.send(message)
        while "interrupt" in (told := line.receive(max(until - time.monotonic(), 0.01))):
            self.student.interrupt()
        return told


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
        Variables for the student's cells.
    given : Given
        What the test cells are given.
    seconds : float
        The limit of each cell.
    budget : float
        The limit of all cells together.
    level, limits, readable
        How both are sealed; see :meth:`gradebox.warm.Zygote.notebook`.

    Raises
    ------
    NotSealed
        If one of them could not be sealed.
    """
    wanted = {"seconds": seconds, "answers": [*given.answers], "given": [*given.statements]}
    ours, theirs = socket.socketpair()
    with contextlib.ExitStack() as stack:
        with ours, theirs:
            # first that of the tests: what its imports leave behind is then there to be hidden
            examiner = stack.enter_context(
                zygote.examiner(
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
