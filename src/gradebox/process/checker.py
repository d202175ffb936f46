"""The process that runs test cells: it asks the student's process, and answers the grader."""

import contextlib
import signal
import sys
from collections.abc import Iterator
from typing import NoReturn

from gradebox.effects.folders import Files
from gradebox.line.proxy import Student
from gradebox.line.wire import Line
from gradebox.process.main_module import MainModule
from gradebox.process.pickles import bar_pickles
from gradebox.process.protocol import (
    AskTime,
    Checked,
    CheckerSettings,
    Interrupt,
    RunTest,
    TimeUsed,
    receive,
    send,
)
from gradebox.process.verdict import Checker


class CheckerProcess:
    """Runs the test cells that the grader sends.

    Parameters
    ----------
    line : Line
        The line to the grader.
    other : Line
        The line to the student's process.
    settings : CheckerSettings
        What the grader says.
    folders : list of str
        Those that are kept in step with the student's process.
    """

    def __init__(
        self, line: Line, other: Line, settings: CheckerSettings, folders: list[str]
    ) -> None:
        self._line = line
        seconds = float(settings.seconds)
        self._student = Student(other, seconds=seconds, clock=self._used, interrupt=self._interrupt)
        self._checker = Checker(
            self._student, answers=settings.answers, shared=settings.shared, seconds=seconds
        )
        sys.modules["__main__"] = MainModule(self._checker.names, self._student.shared)
        along = self._student.along
        along.files = self._files = files = Files(folders, guarded=True)
        along.patches.note_mocks()
        along.handlers.note_changes()
        bar_pickles(lambda: files.has_received)
        for statement in settings.statements:
            with contextlib.suppress(Exception):  # the test that needs it will say so
                exec(statement, self._checker.names)
        for statement in settings.modules:
            with contextlib.suppress(Exception):
                exec(statement, self._checker.names.modules)

    def serve(self) -> NoReturn:
        """Run the cells as they come.

        Raises
        ------
        Gone
            When the grader has enough.
        """
        while True:
            test = receive(self._line, None, RunTest)
            verdict = self._checker.run(test.source, test.points, test.mixed)
            if not test.points:  # it runs in both processes, and has drawn the same in both
                self._student.draws.forget()
                self._files.forget()
            self._student.end()
            checked = Checked(
                score=verdict.score,
                outputs=verdict.outputs,
                error=verdict.error,
                doubt=verdict.doubt,
                mixed=verdict.mixed,
                gone=self._student.gone,
            )
            send(self._line, checked)

    def _interrupt(self) -> None:
        """Have the grader interrupt the student's process, which this one cannot reach."""
        with _no_alarm():
            send(self._line, Interrupt())

    def _used(self) -> float:
        """Ask the grader, who sees both processes, how much own time this cell has used."""
        with _no_alarm():
            send(self._line, AskTime())
            return receive(self._line, None, TimeUsed).seconds


@contextlib.contextmanager
def _no_alarm() -> Iterator[None]:
    """Hold the alarm of the test cell back: it would leave half a message on the line."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
