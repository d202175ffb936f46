"""The student's side: it runs the student's cells, answers tests, and runs some in itself."""

import builtins
import contextlib
import functools
import importlib
import os
import select
import signal
import socket
import sys
import traceback
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

import numpy as np

from gradebox.values.channel import Channel, Gone, TooLong
from gradebox.values.codec import Damaged, NotAValue, Reader, Writer, described
from gradebox.workers import protocol
from gradebox.workers.cells import Cell, Interrupts, result
from gradebox.workers.imported import Imported
from gradebox.workers.protocol import Message, Remember, RunCell, RunTest, Shown, Tested, failed
from gradebox.workers.stubs import GENERATORS, raised, resolve
from gradebox.workers.tampering import Builtins, Helpers, watch_calls, watch_folder

_FUNCTIONS = (  # what crosses as a handle: functions, and classes, which can be called too
    *(types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodDescriptorType),
    *(functools.partial, np.ufunc, np.vectorize, type(functools.lru_cache(abs)), type),
)


def _line(error: BaseException) -> str:
    """Return the number and the text of the student's last line in a traceback."""
    with contextlib.suppress(Exception):
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if "ipython-input" in frame.filename:
                return f"{frame.lineno}: {frame.line}"
    return ""


class Student:
    """Does what the grader asks for, one request at a time, and answers the tests on their line."""

    _grader: Channel

    def __init__(self, tests: Channel, imported: Imported, given: Iterable[str] = ()) -> None:
        self._tests, self._shell, self._barrier = tests, imported.shell, imported.barrier
        self._pristine, self._beside = imported.pristine.changed, watch_folder(given)
        self._user_ns: dict[str, Any] = self._shell.user_ns
        self._deciding, self._reached = imported.pristine.deciding, watch_calls(self._user_ns)
        self._builtins, self._helpers = Builtins(), Helpers(self._user_ns)
        self._interrupts = Interrupts(KeyboardInterrupt)
        self._names: dict[str, dict[str, Any]] = {}
        self._forks: dict[str, tuple[int, Channel]] = {}
        # what the last test left changed; None once code of the student's has run after it
        self._left: list[str] | None = None
        self._of_tests: dict[str, Any] = {}
        self._handles: list[Any] = []
        self._numbers: dict[int, int] = {}
        # no attribute of theirs: functools.wraps would give it to a function of the student's
        self._callbacks: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def serve(self, grader: Channel) -> NoReturn:
        """Do what is asked for on both lines, until the grader ends, which raises Gone."""
        self._grader, poll = grader, select.poll()
        for channel in (grader, self._tests):
            poll.register(channel.end, select.POLLIN)
        while True:
            # what has been read into a buffer is not announced
            ready = poll.poll(0 if grader.has_more else None)
            if self._tests.end.fileno() in dict(ready):
                try:
                    self.answer()
                except Gone:  # the tests have ended; the student's cells go on
                    poll.unregister(self._tests.end)
            else:
                answer = None
                with self.busy():
                    message = protocol.receive(grader, None, RunCell, Remember, RunTest)
                    answer = self.obey(message)
                if answer is not None:  # sent whole: the grader waits for it after an interruption
                    protocol.send(grader, answer)

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """Let an interruption end what runs inside, and nothing else."""
        # what is suppressed came when all had just been done
        with contextlib.suppress(KeyboardInterrupt), self._interrupts.busy():
            yield

    def answer(self) -> None:
        """Take the next question of the tests, and answer it."""
        with self.busy():
            self._left = None
            self._reply(*self._tests.receive())

    def _reply(self, question: dict[str, Any], parts: list[bytes]) -> None:
        try:
            answer, parts = self._answered(question, parts)
        except KeyboardInterrupt:  # the grader's, because the test takes too long
            answer, parts = {"late": True}, []
        with self._interrupts.whole():
            try:
                self._tests.send(answer, parts)
            except (TooLong, MemoryError) as error:  # before the first byte of it was sent
                self._tests.send({"failed": str(error) or "more than there is memory for"})

    def _answered(self, question: dict[str, Any], parts: list[bytes]) -> tuple[Any, list[Any]]:
        """Return what a name that a test looks up stands for, or what a call of the test's gave."""
        looked, names, outputs = question.get("look"), self._shell.user_ns, self._shell.outputs
        if looked is not None and looked not in names:
            return {"missing": True}, []
        outputs.start()
        try:
            if looked is None:
                read = Reader(parts, self._of_test, self._class_of).read
                function, args, kwargs = (read(question[n]) for n in ("call", "args", "kwargs"))
                for name, state in (read(question["seeds"]) or {}).items():
                    GENERATORS[name][1](state)
                with self._builtins:
                    value = function(*args, **kwargs)
            else:
                value = names[looked]
            # still inside: what is gone through once may raise, print and draw now
            writer = Writer(self._function)
            try:
                answer, parts = {"value": writer.write(value)}, writer.parts
            except NotAValue as error:
                answer, parts = {"failed": str(error)}, []
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if looked is not None:
                return {"failed": f"what raises {raised(error)[0]}"}, []
            answer, parts = {"raised": [*raised(error), _line(error)]}, []
        if printed := {item["name"]: item["text"] for item in outputs.items if "name" in item}:
            answer["out"] = [printed.get("stdout", ""), printed.get("stderr", "")]
        return answer, parts

    def _function(self, function: Any, writer: Writer) -> Any:
        if type(function) is types.FunctionType and function in self._callbacks:
            return ["yours", self._callbacks[function]]
        if not isinstance(function, _FUNCTIONS):
            raise NotAValue(described(type(function).__name__))
        number = self._numbers.setdefault(id(function), len(self._handles))
        if number == len(self._handles):
            self._handles.append(function)  # which also keeps its id from being given again
        return ["handle", number]

    def _of_test(self, tree: list[Any], reader: Reader) -> Any:
        match tree:
            case ["theirs", int(number)]:
                return self._handles[number]
            case ["name", str(module), str(name)]:
                importlib.import_module(module)
                return resolve(module, name)
            case ["partial", function, args, keywords]:
                function, args, keywords = map(reader.read, (function, args, keywords))
                return functools.partial(function, *args, **keywords)
            case ["callback", int(number)]:
                return self._callback(number)
        raise Damaged(f"no value: {tree[0]}")

    def _class_of(self, module: str, name: str) -> Any:
        return self._shell.user_ns.get(name) if module == "__main__" else resolve(module, name)

    def _callback(self, number: int) -> Callable[..., Any]:
        def callback(*args: Any, **kwargs: Any) -> Any:
            writer = Writer(self._function)
            question = {"callback": [number, writer.write(list(args)), writer.write(kwargs)]}
            # a function of the student's that is called meanwhile starts outputs of its own
            with self._shell.outputs.set_aside():
                with self._interrupts.whole():  # or the reply would be that to the next question
                    self._tests.send(question, writer.parts)
                    answer, parts = self._tests.receive()
                while not {"raised", "value"} & answer.keys():  # it calls the student's in its turn
                    self._reply(answer, parts)
                    with self._interrupts.whole():
                        answer, parts = self._tests.receive()
            if "raised" in answer:
                name, message = answer["raised"]
                raise getattr(sys.modules["builtins"], name)(message)
            return Reader(parts, self._of_test, self._class_of).read(answer["value"])

        self._callbacks[callback] = number
        return callback

    def obey(self, message: Message) -> Message | None:
        """Do what the grader asks for, and return the answer, if there is one."""
        match message:
            case RunCell():
                return self._cell(message)
            case RunTest(test) if test in self._forks:
                return self._ask_fork(message)
            case RunTest():
                return self._test(message)
            case Remember(test, fork):
                if fork:
                    self._fork(test)
                else:
                    self._names[test] = dict(self._user_ns)
        return None

    def _cell(self, message: RunCell) -> Shown:
        count = self._left = None
        # an interruption that comes when the cell has just ended
        with contextlib.suppress(KeyboardInterrupt), self._builtins:
            count, _ = self._shell.execute(message.source)
        self._helpers.keep(message.helpers)
        return Shown(self._shell.outputs.items, count)

    def _test(self, message: RunTest) -> Tested:
        """Run a test with the names that there were where it stands, and those of earlier tests."""
        self._barrier.tests_have_begun = True  # first: stubs that do nothing would give the points
        names = self._user_ns
        # thousands of objects are looked at, so between two tests once
        changed = [*(self._changed() if self._left is None else self._left)]
        remembered = self._names.pop(message.test, None)
        if remembered is not None:
            # into the dict where the student's functions look them up; but IPython's own, such as
            # _ih and _oh, stay: it goes on writing into the present ones
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

        score, why, _ = result(run, message.points, outputs)
        self._left = self._changed()
        changed += self._left + self._helpers.put_back()
        bound = [name for name in names if before.get(name, self) is not names[name]]
        self._of_tests |= {name: names[name] for name in bound if not name.startswith("_")}
        self._shell.events.trigger("post_execute")  # figures are shown then
        found: Any = {"reaches": sorted(self._reached | self._deciding())}
        return Tested(score, outputs.items, why, changed=sorted({*changed}), **found)

    def _changed(self) -> list[str]:
        changed = ["get_ipython().user_ns"] * (self._shell.user_ns is not self._user_ns)
        if self._user_ns.get("__builtins__") is not builtins:
            changed.append("__builtins__")
            self._user_ns["__builtins__"] = builtins
        return changed + self._builtins.changed + self._pristine() + self._beside()

    def _fork(self, test: str) -> None:
        ours, theirs = socket.socketpair()
        if pid := os.fork():
            theirs.close()
            self._forks[test] = pid, Channel(ours)
            return
        try:
            # an end that stays open here would hide that the student's process has ended
            for end in (ours, self._grader.end, self._tests.end):
                end.close()
            channel = Channel(theirs)
            message = protocol.receive(channel, None, RunTest)
            with self.busy():
                protocol.send(channel, self._test(message))
        finally:
            os._exit(0)

    def _ask_fork(self, message: RunTest) -> Tested:
        """Have the fork that waits for a test run it, and interrupt it if this process is."""
        pid, channel = self._forks.pop(message.test)
        protocol.send(channel, message)
        while True:
            try:
                return protocol.receive(channel, None, Tested)
            except KeyboardInterrupt:
                os.kill(pid, signal.SIGINT)
            except Gone:
                return failed("the process of this test ended")
