"""The process that runs test cells: it asks the student's process, and answers the grader."""

import contextlib
import signal
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

from gradebox.effects.folders import Files
from gradebox.line.proxy import Student
from gradebox.line.wire import Line
from gradebox.process.main_module import MainModule
from gradebox.process.pickles import bar_pickles
from gradebox.process.verdict import Checker


class Examiner:
    """Runs the test cells that the grader sends.

    Parameters
    ----------
    line : Line
        The line to the grader.
    other : Line
        The line to the student's process.
    wanted : dict
        ``seconds``, the limit of a cell; ``answers``, the names that the student is to define
        although Python has them; ``shared``, those of the student's that a test may give another
        value; ``given``, statements to execute before the first test; ``modules``, statements that
        import the modules of the instructor's solutions; ``folders``, those that are kept in step
        with the student's process.
    """

    def __init__(self, line: Line, other: Line, wanted: dict[str, Any]) -> None:
        self._line = line
        seconds = float(wanted["seconds"])
        self._student = Student(other, seconds=seconds, clock=self._used, interrupt=self._interrupt)
        self._checker = Checker(
            self._student, answers=wanted["answers"], shared=wanted["shared"], seconds=seconds
        )
        sys.modules["__main__"] = MainModule(self._checker.names, self._student.shared)
        along = self._student.along
        along.files = self._files = files = Files(wanted["folders"], guarded=True)
        along.patches.note_mocks()
        along.handlers.note_changes()
        bar_pickles(lambda: files.taken)
        for statement in wanted["given"]:
            with contextlib.suppress(Exception):  # the test that needs it will say so
                exec(statement, self._checker.names)
        for statement in wanted.get("modules", ()):
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
            message = self._line.receive()
            verdict = self._checker.run(message["source"], message["points"], message["mixed"])
            if not message["points"]:  # it runs in both processes, and has drawn the same in both
                self._student.draws.forget()
                self._files.forget()
            self._student.end()
            self._line.send(
                {
                    "score": verdict.score,
                    "outputs": verdict.outputs,
                    "error": verdict.error,
                    "doubt": verdict.doubt,
                    "mixed": verdict.mixed,
                    "gone": self._student.gone,
                }
            )

    def _interrupt(self) -> None:
        """Have the grader interrupt the student's process, which this one cannot reach."""
        with _no_alarm():
            self._line.send({"interrupt": True})

    def _used(self) -> float:
        """Ask the grader, who sees both processes, how much own time this cell has used."""
        with _no_alarm():
            self._line.send({"clock": True})
            return float(self._line.receive()["used"])


@contextlib.contextmanager
def _no_alarm() -> Iterator[None]:
    """Hold the alarm of the test cell back: it would leave half a message on the line."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
