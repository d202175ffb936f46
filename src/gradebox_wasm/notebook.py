"""A notebook in two instances, that of the student's cells and that of the tests."""

import contextlib
import tempfile
from concurrent.futures import Future
from typing import Any

from gradebox.values.channel import Gone, packed
from gradebox.workers.client import Ended, Notebook
from gradebox.workers.protocol import Remember, RunTest, Tested, plain
from gradebox_wasm.clock import Clock
from gradebox_wasm.instance import Instance
from gradebox_wasm.memory import Image
from gradebox_wasm.template import say


class Exchange:
    """The line between the tests, who ask, and the student's side.

    Parameters
    ----------
    tests, student : Instance
        Both sides.
    """

    def __init__(self, tests: Instance, student: Instance) -> None:
        self._tests, self._student = tests, student
        self._tests_wait = self._student_waits = False
        tests.exchange, student.exchange = self._ask, self._call_back

    def _ask(self, message: bytes) -> bytes:
        """Take a question, or an answer to one of the student's side; wait for what it says."""
        self._tests_wait = True
        if self._student_waits:
            self._student_waits = False
            self._student.inbox.put(message)
        else:
            self._student.start("answer", message).add_done_callback(self._tell)
        said = self._tests.inbox.get()
        if not isinstance(said, Future):
            return bytes(said)
        return b"" if said.exception() else said.result()

    def _call_back(self, message: bytes) -> bytes:
        if not self._tests_wait:  # a function of a test that is over, or a student's own message
            return b""
        self._student_waits = True
        self._tell(message)
        return bytes(self._student.inbox.get())

    def _tell(self, said: Any) -> None:
        """Give the tests what they wait for, and nothing that comes after it."""
        if self._tests_wait:
            self._tests_wait = False
            self._tests.inbox.put(said)

    def end(self) -> None:
        """Wake the student's side if it waits: the test is over."""
        self._tests_wait = False
        if self._student_waits:
            self._student_waits = False
            self._student.inbox.put(b"")


class NotebookInInstances(Notebook):
    """A notebook in its instances; see :meth:`gradebox_wasm.sandbox.Wasm.running`.

    Parameters
    ----------
    student : Instance
        Runs the student's cells.
    tests : Instance, optional
        Runs the isolated tests; there is none where all run among the student's objects.
    **more : object
        As for :class:`gradebox.workers.client.Notebook`.
    """

    _student: Any
    _tests: Any

    def __init__(self, student: Instance, tests: Instance | None, **more: Any) -> None:
        super().__init__(student, tests, **more)
        self._images: dict[str, Image] = {}
        self._exchange = Exchange(tests, student) if tests else None

    def remember(self, test: str, fork: bool = False) -> None:
        """Remember the student's names, or the whole memory, for a test that runs later."""
        if self._ended is not None:
            return
        if fork:
            with tempfile.TemporaryFile() as file:
                self._images[test] = self._student.save(file)
            return
        with contextlib.suppress(Gone, TimeoutError):
            self._student.turn("obey", packed(plain(Remember(test))))

    def _ask(self, message: Any, kind: Any, seconds: float | None = None) -> tuple[Any, str]:
        self._require_time()
        clock = Clock(min(seconds or self._seconds, self._budget - self._spent))
        image = self._images.pop(message.test, None) if isinstance(message, RunTest) else None
        instance = self._student if image is None else self._student.twin(image)
        instance.clock = clock
        try:
            return say(instance, "obey", message, kind), clock.late
        except TimeoutError:
            raise self._lost(instance, f"{clock.says}, and could not be interrupted") from None
        except Gone:
            raise self._lost(instance, "the process ended while the cell ran") from None
        finally:
            self._spent += clock.spent
            if instance is not self._student:
                instance.close()

    def _lost(self, instance: Instance, why: str) -> Ended:
        return self._end(why) if instance is self._student else Ended(why)

    def _tested(self, message: RunTest, limit: float) -> Tested:
        # the student's side first: a test that is interrupted while it waits for an answer costs
        # that side, whose answer would be taken for the next one
        clock = Clock(limit, first=self._student)
        self._tests.clock = self._student.clock = clock
        try:
            return say(self._tests, "test", message, Tested)
        finally:
            assert self._exchange is not None
            self._exchange.end()
            self._spent += clock.spent
