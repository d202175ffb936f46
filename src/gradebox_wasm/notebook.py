"""A notebook in two instances, that of the student's cells and that of the tests."""

import contextlib
import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gradebox.sandbox.seal import Limits
from gradebox.values.channel import Gone, packed, unpacked
from gradebox.workers.notebook import Ended, Notebook
from gradebox.workers.protocol import (
    Began,
    Begin,
    M,
    Message,
    Remember,
    RunInProcess,
    RunTest,
    Tested,
    plain,
    understood,
)
from gradebox_wasm import images, machine
from gradebox_wasm.clock import Clock
from gradebox_wasm.files import File, Folder, HostFile, HostFolder, Tree, handed_in
from gradebox_wasm.instance import PYTHON, SITE, TEMPORARY, WORK, Instance
from gradebox_wasm.memory import Image
from gradebox_wasm.modules import Modules


class Template:
    """Where the instances of one kind begin: modules that have been imported.

    Parameters
    ----------
    modules : Modules
        What they can import besides; it already has the modules that are asked for first.
    image : Image
        Their memory.
    """

    def __init__(self, modules: Modules, image: Image) -> None:
        self._modules, self._image = modules, image

    @classmethod
    def make(cls, modules: Modules, settings: dict[str, Any]) -> "Template":
        """Import modules in a new instance, and keep its memory, also for the next run.

        Parameters
        ----------
        settings : dict
            What :func:`gradebox_wasm.guest.prepare` is told.
        """
        made_from = json.dumps([machine.key(), settings, modules.made_of])
        key = hashlib.sha256(made_from.encode()).hexdigest()[:24]
        image = images.load(key, modules)
        if image is None:
            instance = Instance(_tree(modules, Limits()), Limits(), modules.fetch)
            try:
                instance.turn("prepare", packed(settings))
                image = instance.image()
            finally:
                instance.close()
            images.keep(key, image, modules, _library())
            image = images.load(key, modules) or image
        return cls(modules, image)

    @contextmanager
    def instance(self, begin: Begin) -> Iterator[Instance]:
        """Make an instance for one notebook, with copies of files.

        Raises
        ------
        TooMuch
            If there are more files, or larger ones, than the limits allow.
        """
        limits = Limits(**begin.limits)
        tree = _tree(self._modules, limits)
        for path in begin.readable:
            shown = HostFolder(path) if Path(path).is_dir() else HostFile(path)
            tree.put(Path(path).absolute().as_posix(), shown)
        for name, content in handed_in(Path(begin.folder), limits.disk):
            if name not in (begin.tests or {}).get("excluded", ()):
                tree.put(f"{WORK}/{name}", File(content))
        instance = Instance(tree, limits, self._modules.fetch, self._image)
        try:
            _say(instance, "begin", begin, Began)
            yield instance
        finally:
            instance.close()


@machine.once
def _library() -> HostFolder:
    """Return the modules of Python, which all instances read."""
    return HostFolder(str(machine.files()[1]))


def _tree(modules: Modules, limits: Limits) -> Tree:
    tree = Tree(limits.disk)
    tree.put(PYTHON, _library())
    tree.put(SITE, modules.folder)
    tree.put(WORK, Folder())
    tree.put(TEMPORARY, Folder())
    return tree


def _say(instance: Instance, turn: str, message: Message, kind: type[M]) -> M:
    """Have an instance take a message in one turn; return its answer, which may not be one."""
    content, _ = unpacked(instance.turn(turn, packed(plain(message))), most=0)
    return understood(content, kind)


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
    seconds, budget : float
        The limits of each cell and of all cells together.
    """

    _student: Any
    _tests: Any

    def __init__(
        self, student: Instance, tests: Instance | None, seconds: float, budget: float
    ) -> None:
        super().__init__(student, tests, seconds, budget)  # type: ignore[arg-type]
        self._images: dict[str, Image] = {}
        self._exchange = Exchange(tests, student) if tests else None

    def remember(self, test: str, fork: bool = False) -> None:
        """Remember the student's names, or the whole memory, for a test that runs later."""
        if self._ended is not None:
            return
        if fork:
            self._images[test] = self._student.image()
            return
        with contextlib.suppress(Gone, TimeoutError):
            self._student.turn("obey", packed(plain(Remember(test))))

    def _ask(self, message: Any, kind: Any, seconds: float | None = None) -> tuple[Any, str]:
        self._require_time()
        clock = Clock(min(seconds or self._seconds, self._budget - self._spent))
        image = self._images.pop(message.test, None) if isinstance(message, RunInProcess) else None
        instance = self._student if image is None else self._student.twin(image)
        instance.clock = clock
        try:
            answer = _say(instance, "obey", message, kind)
            return answer, clock.says if clock.late else ""
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
            return _say(self._tests, "test", message, Tested)
        finally:
            assert self._exchange is not None
            self._exchange.end()
            self._spent += clock.spent
