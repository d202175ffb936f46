"""The tests' end of the line to the student's process: names, and stubs of functions.

A test sees of the student's nothing but values and :class:`Stub` objects. To call a stub sends
values and a question; the answer is a value, an exception of a built-in class, or the question to
call a function that the test had passed. Whatever else arrives is as if the process had ended.
"""

import builtins
import dis
import functools
import random
import sys
import types
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from gradebox.values.channel import Channel, Gone, TooLong
from gradebox.values.codec import Damaged, NotAValue, Reader, Writer
from gradebox.workers.cells import MESSAGE, text_of

RAISED = 1000
"""So many exceptions of answers a test may see."""


class StudentGone(RuntimeError):
    """The student's process has ended; no question can be asked any more."""


class StudentTimeout(RuntimeError):
    """The student's code was interrupted because the test took too long."""


class Stub:
    """A function or a class of the student's, as a test sees it: it can be called with values.

    It has the name under which the test knows it, whatever the student calls it, and no other
    attribute; so nothing of a student's answers for it.
    """

    __slots__ = ("__name__", "__qualname__", "_call", "_tree")
    __name__: str
    _call: Callable[..., Any]
    _tree: list[Any]

    def __init__(self, name: str, tree: list[Any], call: Callable[..., Any]) -> None:
        object.__setattr__(self, "__name__", name)
        object.__setattr__(self, "__qualname__", name)
        object.__setattr__(self, "_tree", tree)
        object.__setattr__(self, "_call", call)

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
    """Asks the student's process.

    Parameters
    ----------
    channel : Channel
        The line to it.
    barred : collection of str
        Modules that it cannot import; their functions do not travel by name.
    """

    def __init__(self, channel: Channel, barred: Collection[str] = ()) -> None:
        self._channel, self._barred = channel, tuple(barred)
        self._callbacks: list[Any] = []
        self._stubs: dict[int, Stub] = {}
        self._raised_by: list[tuple[str, Exception]] = []
        self._seeded: dict[str, bytes] | None = None
        self._unseen = types.TracebackType(None, sys._getframe(), 0, 1)
        self.names: dict[str, Any] = {}
        """The tests' own names."""
        self.gone = ""
        """Why there is nobody to ask; empty while there is."""
        self.late = self.waits = False
        """Whether the student's code was interrupted during this test; whether it is running."""
        self.refused: list[str] = []
        """What could not cross during this test, or ended: no points, whatever the test caught."""

    def begin(self, seeds: bool) -> None:
        """Begin a test; its calls bring its random states along if it sets seeds."""
        self.late, self.waits, self.refused = False, False, []
        self._callbacks.clear()
        self._raised_by.clear()
        self._seeded = _states() if seeds else None

    # --- What is asked ---

    def look(self, name: str, default: Any = None) -> Any:
        """Return the value of a name, or a stub; the default if the student has no such name.

        Raises
        ------
        NotAValue
            If it is neither.
        """
        answer, parts = self._ask({"look": name})
        if answer.get("missing"):
            return default
        if "failed" in answer:
            raise self._refusal(f"`{name}` is {str(answer['failed'])[:200]}: only values cross")
        return self._read(answer, parts, name)

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
            why = f"the test passes `{name}` {error}: only values cross"
            raise self._refusal(why) from None
        answer, parts = self._ask(question, writer.parts)
        self._show(answer.get("out"))
        if "raised" in answer:
            raised = self._raised(answer["raised"])
            self._raised_by.append((name, raised))
            raise raised.with_traceback(self._unseen)
        if "failed" in answer:
            why = f"`{name}` returns {str(answer['failed'])[:200]}: only values cross"
            raise self._refusal(why)
        return self._read(answer, parts, name)

    def _refusal(self, why: str) -> NotAValue:
        self.refused.append(why)
        return NotAValue(why)

    def _seeds(self, writer: Writer) -> Any:
        """Return the states of the test's random generators that have changed since the last call.

        They go one way. A student who could set the test's generators could choose its inputs.
        """
        if self._seeded is None:
            return None
        states = _states()
        changed = {name: state for name, state in states.items() if self._seeded[name] != state}
        self._seeded = states
        return writer.write({name: _STATES[name]() for name in changed}) if changed else None

    def refuse_swallowed(self) -> None:
        """Refuse the test if Python took an exception of an answer for something else.

        ``IndexError`` from a ``__getitem__`` ends a loop, ``AttributeError`` from a property is
        "no" to ``hasattr``: a test that goes on then has not judged the answer. An exception that
        a handler has seen has passed the frame of that handler; one that Python itself takes ends
        in a frame without one, and before Python 3.12 keeps the traceback that it was given.
        """
        for name, error in self._raised_by:
            if error.__traceback__ is self._unseen or not _was_handled(error):
                why = f"`{name}` raised {type(error).__name__}, which ended a loop or a lookup"
                self.refused.append(why)
                return

    # --- How it is asked ---

    def _ask(
        self, question: Any, parts: Sequence[bytes] = ()
    ) -> tuple[dict[str, Any], list[bytes]]:
        if self.gone:
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
            raise self._refusal(f"the test passes {error}") from None
        except Gone as error:
            raise self._end(str(error) or "ended") from None
        except Exception:  # such as a test's own `max`; the next answer would be to this question
            if not self.gone:
                self._end("was left in the middle of an answer")
            raise
        self.waits = False
        if answer.get("late"):
            self.late = True
            self.refused.append("a call by the test took too long")
            raise StudentTimeout("took too long")
        return answer, parts

    def _end(self, why: str) -> StudentGone:
        self.waits = False
        self.gone = f"the student's process {why}" if why != "ended" else "the process ended"
        self.refused.append(self.gone)
        return StudentGone(self.gone)

    def _called_back(self, answer: dict[str, Any], parts: list[bytes]) -> tuple[Any, list[bytes]]:
        """Call a function of the test's for the student, and return what to send."""
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
            self._refusal(f"a function of the test returns {error}: only values cross")
            return {"raised": ["TypeError", str(error)]}, []
        except Exception as error:
            return {"raised": [builtin_class(error).__name__, argument_of(error)]}, []

    def _read(self, answer: dict[str, Any], parts: list[bytes], name: str) -> Any:
        try:
            functions = functools.partial(self._of_student, name=name)
            return Reader(parts, functions, self._class_of).read(answer["value"])
        except NotAValue as error:
            raise self._refusal(f"`{name}` gives {error}: only values cross") from None
        except (Damaged, KeyError) as error:
            raise self._end("sent what is no message") from error

    def _show(self, out: Any) -> None:
        """Write what a call printed as if the test had printed it."""
        if type(out) is list:
            for stream, text in zip(("stdout", "stderr"), out, strict=False):
                if type(text) is str and text:
                    getattr(sys, stream).write(text)

    def _raised(self, raised: Any) -> Exception:
        """Return the exception that a call raised, of a class of Python's own."""
        fields = raised if type(raised) is list else []
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

    # --- How functions cross ---

    def _function(self, function: Any, writer: Writer) -> Any:
        """Return the tree of a function of the test's."""
        if type(function) is Stub:
            return function._tree
        if type(function) is functools.partial:
            parts = function.func, function.args, function.keywords
            return ["partial", *map(writer.write, parts)]
        if name := self._name_of(function):
            return ["name", *name]
        if isinstance(function, type):
            raise NotAValue(f"the class {function.__name__}")
        self._callbacks.append(function)
        return ["callback", len(self._callbacks) - 1]

    def _name_of(self, function: Any) -> tuple[str, str] | None:
        """Return the module and the name by which the student's process finds a function."""
        module = getattr(function, "__module__", None) or getattr(type(function), "__module__", "")
        name = getattr(function, "__qualname__", None) or getattr(function, "__name__", "")
        if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
            return None
        if self._is_barred(module):
            return None
        return (module, name) if resolve(module, name) is function else None

    def _is_barred(self, module: str) -> bool:
        return any(module == name or module.startswith(f"{name}.") for name in self._barred)

    def _class_of(self, module: str, name: str) -> Any:
        """Return what the tests have by themselves under a name that the student gives."""
        if module == "__main__":
            return dict.get(self.names, name)
        kind = None if self._is_barred(module) else resolve(module, name)
        return kind if _is_plain(kind) else None

    def _of_student(self, tree: list[Any], reader: Reader, name: str = "") -> Any:
        """Return the stub of a function, or a function of the test's own that comes back."""
        if len(tree) == 2 and type(tree[1]) is int:
            if tree[0] == "handle":
                label = name or "a function"
                if tree[1] not in self._stubs:
                    self._stubs[tree[1]] = Stub(label, ["theirs", tree[1]], self._call)
                return self._stubs[tree[1]]
            if tree[0] == "yours" and 0 <= tree[1] < len(self._callbacks):
                return self._callbacks[tree[1]]
        raise Damaged(f"no value: {str(tree[0])[:40]}")


def _is_plain(kind: Any) -> bool:
    """Return whether something is a class that compares and counts as Python's own do.

    The student chooses the class, and one of them may be equal to everything.
    """
    special = ("__eq__", "__ne__", "__bool__", "__len__", "__iter__", "__getitem__", "__contains__")
    owners = (
        next((base for base in kind.__mro__ if name in vars(base)), object)
        for name in (special if isinstance(kind, type) else ())
    )
    return isinstance(kind, type) and {base.__module__ for base in owners} <= {"builtins", "enum"}


def _was_handled(error: Exception) -> bool:
    """Return whether a handler has seen an exception, so far as its traceback tells."""
    trace = error.__traceback__
    if trace is None:  # unittest takes it away
        return True
    code, position = trace.tb_frame.f_code, trace.tb_lasti
    if trace.tb_frame.f_globals.get("__name__") == "collections.abc":
        return False  # to a Mapping and a Sequence it is "not there"
    if code.co_name.startswith("__") and code.co_name.endswith("__"):
        # Python calls it, and a `with` in it has seen the exception and let it go on
        return code.co_name in ("__init__", "__call__", "__enter__", "__exit__")
    handlers = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
    return any(handler.start <= position < handler.end for handler in handlers)


def resolve(module: str, name: str) -> Any:
    """Return what a module that is imported already has under a dotted name; None if nothing."""
    value: Any = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def builtin_class(error: BaseException) -> type[BaseException]:
    """Return the nearest class of Python's own that an exception belongs to."""
    return next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")


def argument_of(error: BaseException) -> str:
    """Return what an exception of the same class takes to have the same message."""
    if isinstance(error, KeyError) and len(error.args) == 1 and type(error.args[0]) is str:
        return error.args[0][:MESSAGE]  # a KeyError's message is its argument in quotes
    return text_of(error)


def _torch_state() -> Any:
    return sys.modules["torch"].get_rng_state()


def _numpy_state() -> Any:
    return np.random.get_state(legacy=True)  # noqa: NPY002 tests may use it


_STATES: dict[str, Callable[[], Any]] = {
    "random": random.getstate,
    "numpy": _numpy_state,
    "torch": _torch_state,
}
"""What gives the state of each random generator that a whole process shares."""


def _states() -> dict[str, bytes]:
    """Return the states of the shared generators, to be compared."""
    states = {"random": repr(random.getstate()).encode()}
    kind, keys, *rest = _numpy_state()
    states["numpy"] = keys.tobytes() + repr((kind, rest)).encode()
    if "torch" in sys.modules:
        states["torch"] = _torch_state().numpy().tobytes()
    return states
