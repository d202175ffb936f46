"""The tests' end of the line to the student's process: names, and stubs of functions.

A test sees of the student's nothing but values and :class:`Stub` objects. To call a stub sends
values and a question; the answer is a value, an exception of a built-in class, or the question to
call a function that the test had passed. Whatever else arrives is as if the process had ended.
"""

import builtins
import dis
import functools
import random
import re
import sys
import threading
import types
from collections.abc import Callable, Collection, Sequence
from itertools import chain
from traceback import walk_stack
from typing import Any

import numpy as np

from gradebox.sandbox.imports import within
from gradebox.values.channel import Channel, Gone, TooLong
from gradebox.values.codec import Damaged, NotAValue, Reader, Writer
from gradebox.workers.cells import MESSAGE
from gradebox.workers.shell import text_of
from gradebox.workers.syntax import DECIDES

Received = tuple[dict[str, Any], list[bytes]]
RAISED = 1000  # exceptions of answers that a test may see
_SPECIAL = re.compile(rf"{DECIDES}|__(?:len|iter|next|getitem|r?add|r?mul|pow|neg|round)__")


class StudentGone(RuntimeError):
    """The student's process has ended; no question can be asked any more."""


class StudentTimeout(RuntimeError):
    """The student's code was interrupted because the test took too long."""


class Late(BaseException):
    """The grader has interrupted a test cell; no ``except Exception`` of a test holds it."""


class Stub:
    """A function or a class of the student's: its only attribute is the name that the test uses."""

    __slots__ = ("__name__", "__qualname__", "_call", "_tree")
    __name__: str
    _call: Callable[..., Any]
    _tree: list[Any]

    def __init__(self, name: str, tree: list[Any], call: Callable[..., Any]) -> None:
        for slot, value in zip(self.__slots__, (name, name, call, tree), strict=True):
            object.__setattr__(self, slot, value)

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        raise AttributeError("a test that runs isolated sees no __doc__ of an answer")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a test that runs isolated cannot set {name} of an answer")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the student's function with copies of the arguments."""
        return self._call(self, args, kwargs)

    def __observe__(self, driver: Callable[..., Any], *values: Any) -> Any:
        """Return ``driver(answer, *values)``, called in the student's process."""
        return self._call(driver, (self, *values), {})

    def __deepcopy__(self, memo: Any) -> "Stub":
        return self

    def __repr__(self) -> str:
        return f"<{self.__name__} of the student's>"


class Answers:
    """Asks the student's process; the functions of modules that it cannot import have no name."""

    def __init__(self, channel: Channel, barred: Collection[str] = ()) -> None:
        self._channel, self._barred = channel, tuple(barred)
        self._turn = threading.RLock()  # threads of a test take turns
        self._stubs: dict[int, Stub] = {}
        self._unseen = types.TracebackType(None, sys._getframe(), 0, 1)
        self.names: dict[str, Any] = {}  # the tests' own
        self.cell: list[Any] = []  # the code of the one that runs
        self.gone = ""  # why there is nobody to ask; empty while there is
        self.begin(False)

    def begin(self, seeds: bool) -> None:
        """Begin a test; its calls bring its random states along if it sets seeds."""
        self._callbacks: list[Any] = []
        self._raised_by: list[tuple[str, Exception]] = []
        self._seeded = _states() if seeds else None
        # whether the student's code was interrupted during this test; whether it is running
        self.late = self.waits = False
        # what could not cross during this test, or ended: no points, whatever the test caught
        self.refused: list[str] = []
        self.failed_in = 0  # the line of the cell in which an answer first failed

    def look(self, name: str, default: Any = None) -> Any:
        """Return the value of a name, or a stub; the default if the student has no such name."""
        with self._turn:
            answer, parts = self._ask({"look": name})
        return default if answer.get("missing") else self._read(answer, parts, name, "is")

    def _call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = getattr(function, "__name__", "the function")
        writer = Writer(self._function)
        try:
            question = {
                "call": writer.write(function),
                "args": writer.write(list(args)),
                "kwargs": writer.write(kwargs),
                "seeds": self._seeds(writer),
            }
        except NotAValue as error:
            raise self._refuse(f"the test passes `{name}` {error}: only values cross") from None
        with self._turn:
            answer, parts = self._ask(question, writer.parts)
        if type(out := answer.get("out")) is list:  # as if the test had printed it
            for stream, text in zip((sys.stdout, sys.stderr), out, strict=False):
                stream.write(text if type(text) is str else "")
        if "raised" in answer:
            exception = self._raised(answer["raised"])
            self._fails()
            self._raised_by.append((name, exception))
            raise exception.with_traceback(self._unseen)
        return self._read(answer, parts, name, "returns")

    def _refuse(self, why: str) -> NotAValue:
        self._fails()
        self.refused.append(why)
        return NotAValue(why)

    def _fails(self) -> None:
        frames = walk_stack(None) if not self.failed_in else ()
        self.failed_in += sum(line for frame, line in frames if frame.f_code in self.cell)

    def _seeds(self, writer: Writer) -> Any:
        """Write the states of the test's random generators that have changed since the last call.

        They go one way. A student who could set the test's generators could choose its inputs.
        """
        if self._seeded is None:
            return None
        last, self._seeded = self._seeded, _states()
        changed = [name for name, state in self._seeded.items() if last.get(name) != state]
        return writer.write({name: GENERATORS[name][0]() for name in changed})

    def refuse_swallowed(self) -> None:
        """Refuse the test if Python took an exception of an answer for something else.

        ``IndexError`` from a ``__getitem__`` ends a loop, ``AttributeError`` from a property is
        "no" to ``hasattr``: a test that goes on then has not judged the answer.
        """
        # the traceback of an exception begins in the frame of the last handler that has seen it;
        # one that no handler has seen keeps the traceback that it was given, or ends, from Python
        # 3.12 on, in the last frame that it has left
        for name, error in self._raised_by:
            is_end = isinstance(error, StopIteration | StopAsyncIteration)  # to whoever catches it
            if is_end or error.__traceback__ is self._unseen or not _was_handled(error):
                why = f"`{name}` raised {type(error).__name__}, which ended a loop or a lookup"
                return self.refused.append(why)
        return None

    def _ask(self, question: Any, parts: Sequence[bytes] = ()) -> Received:
        if self.gone:
            self._refuse(self.gone)
            raise StudentGone(self.gone)
        if self.late:
            raise StudentTimeout("no further call, because an earlier one took too long")
        self.waits = True
        try:
            self._channel.send(question, parts)
            while True:
                answer, parts = self._channel.receive()
                if type(answer) is not dict:
                    raise self._end("sent what is no message")
                if "callback" not in answer:
                    break
                self._channel.send(*self._called_back(answer, parts))
                self.waits = True  # again, if that function has called the student's
        except TooLong as error:
            self.waits = False
            raise self._refuse(f"the test passes {error}") from None
        except Gone as error:
            raise self._end(str(error) or "ended") from None
        except BaseException as error:  # a test's own `max`; the next answer would be to this
            if not self.gone and not isinstance(error, Late):
                self._end("was left in the middle of an answer")
            raise
        self.waits = False
        if answer.get("late"):
            self.late = True
            self._refuse("a call by the test took too long")
            raise StudentTimeout("took too long")
        return answer, parts

    def _end(self, why: str) -> StudentGone:
        self.waits = False
        self.gone = f"the student's process {why}" if why != "ended" else "the process ended"
        self._refuse(self.gone)
        return StudentGone(self.gone)

    def _called_back(self, answer: dict[str, Any], parts: list[bytes]) -> Received:
        writer, reader = Writer(self._function), Reader(parts, self._of_student, self._class_of)
        try:
            number, args, kwargs = answer["callback"]
            # a negative number would count from the end of the list
            function = self._callbacks[number] if type(number) is int and number >= 0 else None
            args, kwargs = reader.read(args), reader.read(kwargs)
            if function is None or type(args) is not list or type(kwargs) is not dict:
                raise Damaged
        except (Damaged, NotAValue, ValueError, TypeError, IndexError) as error:
            raise Gone("sent what is no message") from error
        try:
            return {"value": writer.write(function(*args, **kwargs))}, writer.parts
        except NotAValue as error:
            self._refuse(f"a function of the test returns {error}: only values cross")
            return {"raised": ["TypeError", str(error)]}, []
        except Late:
            raise
        except BaseException as error:
            # the answer may go on as if nothing was; pytest.fail raises what is no Exception
            if isinstance(error, AssertionError) or not isinstance(error, Exception):
                self._refuse(f"a function of the test failed when it was called: {error}")
            return {"raised": raised(error)}, []

    def _read(self, answer: dict[str, Any], parts: list[bytes], name: str, verb: str) -> Any:
        if "failed" in answer:
            what = str(answer["failed"])[:200]
            raise self._refuse(f"`{name}` {verb} {what}: only values cross")
        functions = functools.partial(self._of_student, name=name)
        try:
            return Reader(parts, functions, self._class_of).read(answer["value"])
        except NotAValue as error:
            raise self._refuse(f"`{name}` gives {error}: only values cross") from None
        except (Damaged, KeyError) as error:
            raise self._end("sent what is no message") from error

    def _raised(self, fields: Any) -> Exception:
        """Return the exception that a call raised, of a class of Python's own."""
        fields = fields if type(fields) is list else []
        name, message, line = (str(field)[:MESSAGE] for field in (*fields, "", "", "")[:3])
        kind: Any = getattr(builtins, name, None)
        is_expected = isinstance(kind, type) and issubclass(kind, Exception)
        if not is_expected or len(self._raised_by) >= RAISED:
            kind, message = RuntimeError, f"{name}: {message}"
        try:
            error = kind(message)
        except TypeError:  # UnicodeDecodeError and the like want more
            error = ValueError(message)
        vars(error)["student_line"] = line
        return error

    def _function(self, function: Any, writer: Writer) -> Any:
        if type(function) is Stub:
            return function._tree
        if type(function) is functools.partial:
            parts = function.func, function.args, function.keywords
            return ["partial", *map(writer.write, parts)]
        module: Any = getattr(function, "__module__", None) or type(function).__module__
        name: Any = getattr(function, "__qualname__", None) or getattr(function, "__name__", "")
        is_named = isinstance(module, str) and isinstance(name, str)
        is_there = is_named and not within(module, ("__main__", *self._barred))
        if is_there and resolve(module, name) is function:
            return ["name", module, name]
        if isinstance(function, type):
            raise NotAValue(f"the class {function.__name__}")
        self._callbacks.append(function)
        return ["callback", len(self._callbacks) - 1]

    def _class_of(self, module: str, name: str) -> Any:
        kind: Any = dict.get(self.names, name) if module == "__main__" else resolve(module, name)
        if within(module, self._barred) or not isinstance(kind, type):
            return None
        # one that compares and counts as Python's own do: others may be equal to everything
        own = [each for each in kind.__mro__ if each.__module__ not in ("builtins", "enum")]
        return None if any(map(_SPECIAL.fullmatch, chain.from_iterable(map(vars, own)))) else kind

    def _of_student(self, tree: list[Any], reader: Reader, name: str = "a function") -> Any:
        """Return the stub of a function, or a function of the test's own that comes back."""
        match tree:
            case ["handle", int(number)]:
                return self._stubs.setdefault(number, Stub(name, ["theirs", number], self._call))
            case ["yours", int(number)] if 0 <= number < len(self._callbacks):
                return self._callbacks[number]
        raise Damaged(f"no value: {str(tree[0])[:40]}")


def _was_handled(error: Exception) -> bool:
    """Return whether a handler has ended an exception, so far as its traceback tells."""
    trace = error.__traceback__
    if trace is None:  # unittest takes it away
        return True
    frame = trace.tb_frame
    code, last = frame.f_code, frame.f_lasti
    module = str(frame.f_globals.get("__name__"))
    package = module.partition(".")[0]
    gives_on = package in ("unittest", "doctest", "concurrent", "asyncio")
    # a future keeps it for who asks: then this is the last that has seen it
    gives_on &= code.co_name not in ("_invoke_callbacks", "_run", "run")
    swallows = package in sys.stdlib_module_names or module == "IPython.core.formatters"
    swallows |= package == "numpy" and not module.startswith("numpy.testing")
    if swallows and not gives_on:
        return False  # to a Mapping it is "not there", to heapq.merge the end
    called = ("__init__", "__call__", "__enter__", "__exit__")
    if re.fullmatch("__.*__", code.co_name) and code.co_name not in called:
        return False  # Python calls it, also where a handler in it gives what means "not there"
    # it left the frame if that ended where it came, or in a `with`, an `except` or a `finally`
    # that lets what it has seen go on
    operation, argument = code.co_code[last : last + 2]
    is_raised_again = (dis.opname[operation], argument) == ("RAISE_VARARGS", 0)
    is_raised_again |= dis.opname[operation] == "RERAISE"
    return last != trace.tb_lasti and not is_raised_again


def resolve(module: str, name: str) -> Any:
    """Return what a module that is imported already has under a dotted name; None if nothing."""
    value: Any = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def raised(error: BaseException) -> list[str]:
    """Return an exception as it crosses: the nearest class of Python's own, and its argument."""
    kind = next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")
    # a KeyError's message is its argument in quotes
    is_key = isinstance(error, KeyError) and len(error.args) == 1 and type(error.args[0]) is str
    return [kind.__name__, (error.args[0] if is_key else text_of(error))[:MESSAGE]]


# what gives and what sets the state of each random generator that a whole process shares
GENERATORS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "random": (random.getstate, random.setstate),
    "numpy": (np.random.get_state, np.random.set_state),
    "torch": (
        lambda: sys.modules["torch"].get_rng_state(),
        lambda state: sys.modules["torch"].set_rng_state(state),
    ),
}


def _states() -> dict[str, Any]:
    states = {}
    for name in GENERATORS.keys() & sys.modules.keys():
        writer = Writer()
        states[name] = writer.write(GENERATORS[name][0]()), writer.parts
    return states
