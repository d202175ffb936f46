"""One submission's notebook while it runs: the student's process, that of the tests, and limits."""

import contextlib
import math
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from gradebox.sandbox.own_time import CAP, Deadline
from gradebox.values.channel import Gone
from gradebox.workers import protocol
from gradebox.workers.client import ForkServer, Process
from gradebox.workers.protocol import Given, M, Message, RunTest, Shown, Tested, failed, send


class Ended(Exception):
    """The student's process is gone; ``kind`` is that of the event: ended, or slow-notebook."""

    def __init__(self, message: str, kind: str = "ended") -> None:
        super().__init__(message)
        self.kind = kind


class Notebook:
    """A notebook in its processes; see :func:`running`.

    ``seconds`` for each cell and the ``budget`` of all are own time; ``given`` is what tests run of
    the instructor's other cells.
    """

    def __init__(
        self, student: Any, tests: Any, seconds: float, budget: float = math.inf, given: Any = ()
    ) -> None:
        self._student: Process = student
        self._tests: Process = tests  # None where none is isolated
        self._seconds, self._budget, self._spent = seconds, budget, 0.0
        self._until = time.monotonic() + CAP + 3 * budget
        self._ended: Ended | None = None
        self._without_tests = None if tests else ""
        self._given: Sequence[Given] = given
        self._failed_given = ""

    def run(self, source: str, helpers: Sequence[str] = ()) -> tuple[Shown, str]:
        """Run a cell in the student's process; return what it showed, and why it was interrupted.

        It raises :class:`Ended` if the process ended, or had to be ended.
        """
        return self._ask(protocol.RunCell(source, [*helpers]), Shown)

    def remember(self, test: str, fork: bool = False) -> None:
        """Have the student's process remember its names, for a test that runs in it later."""
        if self._ended is None:
            with contextlib.suppress(Gone):
                send(self._student.channel, protocol.Remember(test, fork))

    def test_in_process(self, message: RunTest, seconds: float | None = None) -> tuple[Tested, str]:
        """Run a test in the student's process; return as :meth:`run` does."""
        tested, late = self._ask(message, Tested, seconds)
        score = 0.0 if late or tested.error else protocol.bounded(tested.score, message.points)
        return replace(tested, score=score), late

    def _ask(self, message: Any, kind: Any, seconds: float | None = None) -> tuple[Any, str]:
        self._require_time()
        limit = min(seconds or self._seconds, self._budget - self._spent)
        try:
            return self._answer(self._student, message, kind, limit, self._student)
        except TimeoutError as error:
            raise self._end(f"{error}, and could not be interrupted") from None
        except Gone:
            raise self._end("the process ended while the cell ran") from None

    def _answer(
        self, process: Process, message: Message, kind: type[M], limit: float, *busy: Process
    ) -> tuple[M, str]:
        """Return the answer of a process, and why those that are busy were interrupted in turn."""
        deadline = first = Deadline(limit, *(each.pid for each in busy))
        late, waiting = "", [*busy]
        try:
            send(process.channel, message)
            while True:
                try:
                    return process.hear(deadline, kind), late
                except TimeoutError:
                    if not waiting:
                        raise TimeoutError(late) from None
                    late, deadline = first.says, waiting.pop(0).interrupt()
        finally:
            self._spent += first.spent()

    def _require_time(self) -> None:
        if self._ended is not None:
            raise self._ended
        said = "all cells together took longer than"
        if self._spent >= self._budget:
            raise self._end(f"{said} {self._budget:g} s", "slow-notebook")
        if time.monotonic() > self._until:
            minutes = f"{(CAP + 3 * self._budget) / 60:.0f} minutes of wall time"
            raise self._end(f"{said} {minutes}", "slow-notebook")

    def _end(self, why: str, kind: str = "ended") -> Ended:
        self._student.kill()
        self._ended = Ended(why, kind)
        return self._ended

    def test(self, message: RunTest, seconds: float | None = None) -> Tested:
        """Run an isolated test, or a locked cell worth nothing; return what it came to.

        What the tests run of the instructor's other cells before it is run first. Whatever the
        student's process does meanwhile, or the test itself, costs no more than this cell's points
        and those of the cells that need what is lost.
        """
        name, given = message.test, self._given
        last = max((n for n, part in enumerate(given, 1) if part.before == name), default=0)
        self._given = given[last:]
        for part in (part for part in given[:last] if part.source or part.answers):
            tested = self._test(RunTest(name, part.source, 0.0, answers=[*part.answers]))
            self._failed_given = self._failed_given or tested.error
        tested = self._test(message, seconds)
        if tested.error.startswith("NameError") and self._failed_given:
            why = f"{tested.error}; a cell that students were given ended with {self._failed_given}"
            return replace(tested, error=why)
        return tested

    def _test(self, message: RunTest, seconds: float | None = None) -> Tested:
        if self._without_tests is not None:
            return failed(self._without_tests)
        try:
            self._require_time()
        except Ended as ended:
            if ended.kind != "ended":  # a process that ended by itself may have left names behind
                return failed(str(ended))
        try:
            result = self._tested(message, seconds or self._seconds)
        except (Gone, TimeoutError) as error:
            how, lost = ("ended", "ended") if isinstance(error, Gone) else ("took too long", "slow")
            self._without_tests = f"the process of the tests {how}"
            self._tests.kill()
            return failed(self._without_tests, lost)
        if result.gone:
            self._end(result.gone)
        return result

    def _tested(self, message: RunTest, limit: float) -> Tested:
        # the student's first: a test that is interrupted while it waits for an answer costs the
        # student's process, whose answer would be taken for the next one
        return self._answer(self._tests, message, Tested, limit, self._student, self._tests)[0]


@contextlib.contextmanager
def running(
    server: ForkServer, begin: protocol.Begin, of_tests: protocol.Begin | None, **more: Any
) -> Iterator[Notebook]:
    """Fork the processes of one notebook, each sealed as it is told; then kill them.

    What cannot be sealed raises ``NotSealed``.
    """
    ours, theirs = socket.socketpair()
    with contextlib.ExitStack() as stack:
        with ours, theirs:  # closed here, or the end of a process would go unnoticed
            # it is sealed while the other one is forked
            student = stack.enter_context(server.forked(begin, theirs))
            tests = stack.enter_context(server.forked(of_tests, ours)) if of_tests else None
        for process in filter(None, (student, tests)):
            process.await_sealed(begin.level)
        yield Notebook(student, tests, **more)
