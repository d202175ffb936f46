"""The student's end of the line to the tests: it answers with values, and keeps nothing secret."""

import contextlib
import functools
import importlib
import sys
import traceback
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from gradebox.values.channel import Channel, TooLong
from gradebox.values.codec import Damaged, NotAValue, Reader, Writer, described
from gradebox.workers.cells import Interrupts
from gradebox.workers.shell import Shell
from gradebox.workers.stubs import GENERATORS, raised, resolve
from gradebox.workers.tampering import Builtins

_FUNCTIONS = (
    *(types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial),
    *(np.ufunc, np.vectorize, type(functools.lru_cache(abs)), type),
)
"""What crosses as a handle: functions, and classes, which can be called too."""


class Answering:
    """Answers the questions of the tests, with ``builtins`` of the student's while they run."""

    def __init__(
        self, channel: Channel, shell: Shell, builtins: Builtins, interrupts: Interrupts
    ) -> None:
        self._channel, self._shell, self._builtins = channel, shell, builtins
        self._whole = interrupts.whole
        self._handles: list[Any] = []
        self._numbers: dict[int, int] = {}
        # no attribute of theirs: functools.wraps would give it to a function of the student's
        self._callbacks: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def answer(self) -> None:
        """Take the next question, and answer it."""
        self._reply(*self._channel.receive())

    def _reply(self, question: dict[str, Any], parts: list[bytes]) -> None:
        try:
            if "look" in question:
                answer, parts = self._look(question["look"])
            else:
                answer, parts = self._call(question, parts)
        except KeyboardInterrupt:  # the grader's, because the test takes too long
            answer, parts = {"late": True}, []
        with self._whole():
            try:
                self._channel.send(answer, parts)
            except (TooLong, MemoryError) as error:  # before the first byte of it was sent
                self._channel.send({"failed": str(error) or "more than there is memory for"})

    def _look(self, name: str) -> tuple[Any, list[Any]]:
        try:
            value = self._shell.user_ns[name]
        except KeyError:
            return {"missing": True}, []
        try:
            return self._written(value)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a generator is gone through, and may raise
            return {"failed": f"what raises {raised(error)[0]}"}, []

    def _written(self, value: Any) -> tuple[Any, list[Any]]:
        writer = Writer(self._function)
        try:
            return {"value": writer.write(value)}, writer.parts
        except NotAValue as error:
            return {"failed": str(error)}, []

    def _call(self, question: dict[str, Any], parts: list[bytes]) -> tuple[Any, list[Any]]:
        outputs = self._shell.outputs
        outputs.start()
        try:
            reader = Reader(parts, self._of_test, self._class_of)
            function = reader.read(question["call"])
            args, kwargs = reader.read(question["args"]), reader.read(question["kwargs"])
            for name, state in (reader.read(question["seeds"]) or {}).items():
                GENERATORS[name][1](state)
            with self._builtins:
                value = function(*args, **kwargs)
            # still inside: what is gone through once may raise, print and draw now
            answer, parts = self._written(value)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            answer, parts = {"raised": [*raised(error), _line(error)]}, []
        printed = {item["name"]: item["text"] for item in outputs.items if "name" in item}
        if printed:
            answer["out"] = [printed.get("stdout", ""), printed.get("stderr", "")]
        return answer, parts

    def _function(self, function: Any, writer: Writer) -> Any:
        """Return the tree of a function of the student's, or of the test's that goes back."""
        if type(function) is types.FunctionType and function in self._callbacks:
            return ["yours", self._callbacks[function]]
        if not isinstance(function, _FUNCTIONS):
            raise NotAValue(described(type(function).__name__))
        number = self._numbers.get(id(function))
        if number is None:
            number = self._numbers[id(function)] = len(self._handles)
            self._handles.append(function)  # which also keeps its id from being given again
        return ["handle", number]

    def _of_test(self, tree: list[Any], reader: Reader) -> Any:
        """Return the function that a tree from the tests stands for."""
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
        names = self._shell.user_ns
        return names.get(name) if module == "__main__" else resolve(module, name)

    def _callback(self, number: int) -> Callable[..., Any]:
        def callback(*args: Any, **kwargs: Any) -> Any:
            writer = Writer(self._function)
            question = {"callback": [number, writer.write(list(args)), writer.write(kwargs)]}
            # a function of the student's that is called meanwhile starts outputs of its own
            with self._shell.outputs.set_aside():
                with self._whole():  # else the reply would be taken for the next question
                    self._channel.send(question, writer.parts)
                    answer, parts = self._channel.receive()
                while not {"raised", "value"} & answer.keys():  # it calls the student's in its turn
                    self._reply(answer, parts)
                    with self._whole():
                        answer, parts = self._channel.receive()
            if "raised" in answer:
                name, message = answer["raised"]
                raise getattr(sys.modules["builtins"], name)(message)
            return Reader(parts, self._of_test, self._class_of).read(answer["value"])

        self._callbacks[callback] = number
        return callback


def _line(error: BaseException) -> str:
    """Return the number and the text of the student's last line in a traceback."""
    with contextlib.suppress(Exception):
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if "ipython-input" in frame.filename:
                return f"{frame.lineno}: {frame.line}"
    return ""
