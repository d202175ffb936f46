"""The names of a student's notebook, in a process that the student's code cannot reach.

Two processes share a line. One has run the cells of a notebook and lends their names, see
:mod:`gradebox.line.lender`. The other, the checker, makes a :class:`Student` of its end: plain
values arrive as copies, functions and objects as a :class:`Proxy`. A function of the checker's own
that is passed as an argument is called back through the same line, to any moderate depth. What a
function does to lists, dicts, sets, arrays, tensors and random generators that it is given is done
to the checker's own too, as in one process.

The checker believes nothing that comes in: :mod:`gradebox.codec.encoding` builds exact types of
Python, NumPy and torch, and what NumPy, torch or ``copy`` look for on their own in a proxy does not
go to the student's process. ``==`` between a proxy and anything else is identity.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from types import CoroutineType
from typing import Any

from gradebox.codec.encoding import BadValue, Decoder, Encoder
from gradebox.effects.attachments import OfTests
from gradebox.line import coroutines, inspection, lent
from gradebox.line.classes import PYTHONS_OWN, Standing, student_class
from gradebox.line.inspection import described as _described
from gradebox.line.inspection import documentation_of, signature_of
from gradebox.line.mixed_operations import Mixed
from gradebox.line.operations import BINARY, ORDER
from gradebox.line.peer import (
    MOST_PRINTED,
    Handle,
    Peer,
    StudentError,
    StudentGone,
    StudentTimeout,
    caused,
    described,
    rebuilt,
)
from gradebox.line.shared_names import SharedNames
from gradebox.line.special_methods import ABILITIES, abilities_of, names_of
from gradebox.line.wire import Gone, Line, TooLong
from gradebox.sandbox.deadline import Deadline

GRACE = 3.0
"""Seconds, by the clock of the limits, that a call has to end when it is interrupted."""


_PLAIN_NAMES = frozenset(("__name__", "__qualname__"))


class Proxy(metaclass=Standing):
    """A function, class or object of the student's process."""

    _all_kinds = True
    __slots__ = ("__weakref__", "_gradebox")
    __array_ufunc__ = None  # NumPy leaves the operator to the proxy
    _gradebox: Handle

    def __getattr__(self, name: str) -> Any:
        handle = self._gradebox
        if name in _PLAIN_NAMES and (handle.name or name == "__qualname__"):
            return handle.name if name == "__name__" else _described(self)["qualname"]
        if name in inspection.ATTRIBUTES:
            return inspection.ATTRIBUTES[name](self)
        if name.startswith("__"):  # what NumPy, torch, copy … look for without being asked
            raise AttributeError(
                f"{_plain_repr(self)} has no attribute {name!r} that a test may see"
            )
        return handle.peer.ask("getattr", (self, name))

    def __setattr__(self, name: str, value: Any) -> None:
        self._gradebox.peer.ask("setattr", (self, name, value))

    def __delattr__(self, name: str) -> None:
        self._gradebox.peer.ask("delattr", (self, name))

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return hash((id(self._gradebox.peer), self._gradebox.number))

    def __repr__(self) -> str:
        return _plain_repr(self)

    def __dir__(self) -> list[str]:
        return inspection.names_of(self)

    def __copy__(self) -> Any:
        return self._copied(False)

    def __deepcopy__(self, memo: Any) -> Any:
        return self._copied(True)

    def _copied(self, deep: bool) -> Any:
        if self._gradebox.kind != "object":
            return self
        return self._gradebox.peer.ask("copy", (self, deep))

    def __reduce_ex__(self, protocol: Any) -> Any:
        peer = self._gradebox.peer
        pickled = peer.ask("pickle", (self, protocol))
        if type(pickled) is not bytes:
            raise BadValue("expected what pickle makes of an object")
        _PICKLING[:] = [peer]  # there is one in a process of the tests
        return unpickled, (pickled,)


_PICKLING: list[Peer] = []


def unpickled(pickled: bytes) -> Any:
    """Have the student's process make an object of what it pickled."""
    return _PICKLING[0].ask("unpickle", (pickled,))


class _Callable(Proxy):
    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._gradebox.peer.ask("call", (self, args, kwargs))
        except StudentError as error:
            # no other call ends so: within ``all(map(...))`` it would end the test as well
            if error.name == "StopIteration" and self._gradebox.name in ("send", "throw"):
                raise StopIteration from error
            raise

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # none of these is data: see gradebox.line.classes
        return PYTHONS_OWN.get(self._gradebox.type_name, type(self))


class _Object(Proxy):
    __slots__ = ()

    def _operate(self, name: str, *values: Any) -> Any:
        return self._gradebox.peer.ask("operate", (name, *values))

    def __len__(self) -> int:
        return self._operate("len", self)

    def __iter__(self) -> Iterator[Any]:
        iterator = self._operate("iter", self)
        while item := self._gradebox.peer.ask("next", (iterator,)):
            yield _only_item(item)

    def __next__(self) -> Any:
        item = self._gradebox.peer.ask("next", (self,))
        if not item:
            raise StopIteration
        return _only_item(item)

    def __getitem__(self, key: Any) -> Any:
        return self._operate("getitem", self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._operate("setitem", self, key, value)

    def __delitem__(self, key: Any) -> None:
        self._operate("delitem", self, key)

    def __contains__(self, item: Any) -> bool:
        return self._operate("contains", self, item) is True

    def __bool__(self) -> bool:
        return self._operate("bool", self) is True

    def __int__(self) -> int:
        return self._operate("int", self)

    def __float__(self) -> float:
        return self._operate("float", self)

    def __complex__(self) -> complex:
        return self._operate("complex", self)

    def __index__(self) -> int:
        return self._operate("index", self)

    def __round__(self, digits: int | None = None) -> Any:
        return self._operate("round", self, digits)

    def __reversed__(self) -> Any:
        return self._operate("reversed", self)

    def __str__(self) -> str:
        return self._operate("str", self)

    def __repr__(self) -> str:
        return self._operate("repr", self)

    def __format__(self, how: str) -> str:
        return self._operate("format", self, how)

    def __hash__(self) -> int:
        return self._operate("hash", self)

    def __enter__(self) -> Any:
        return self._operate("enter", self)

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        description = described(error) if isinstance(error, Exception) else None
        ended = self._gradebox.peer.ask("exit", (self, description))
        # what a test asserts within is not for the student's code to suppress, nor its end in time;
        # what pytest raises where nothing was raised is no Exception
        return (
            ended is True and isinstance(error, Exception) and not isinstance(error, AssertionError)
        )

    def __await__(self) -> Any:
        return coroutines.steps(self)

    def __neg__(self) -> Any:
        return self._operate("neg", self)

    def __pos__(self) -> Any:
        return self._operate("pos", self)

    def __abs__(self) -> Any:
        return self._operate("abs", self)

    def __invert__(self) -> Any:
        return self._operate("invert", self)


class _Coroutine(_Object):
    """A coroutine of the student's, which a loop of events of a test's may run."""

    __slots__ = ("_steps",)
    _steps: Any

    def __await__(self) -> Any:
        if self._steps is None:
            object.__setattr__(self, "_steps", coroutines.steps(self))
        return self._steps

    def send(self, value: Any) -> Any:
        """Go on until the coroutine waits, or ends by ``StopIteration``."""
        return self.__await__().send(value)

    def throw(self, *error: Any) -> Any:
        """Go on with an exception."""
        return self.__await__().throw(*error)

    def close(self) -> None:
        """End what has begun."""
        self.__await__().close()


def _binary(name: str) -> None:
    def forward(self: Any, other: Any) -> Any:
        return self._operate(name, self, other)

    def backward(self: Any, other: Any) -> Any:
        return self._operate(name, other, self)

    short = name.rstrip("_")
    setattr(_Object, f"__{short}__", forward)
    setattr(_Object, f"__r{short}__", backward)
    setattr(_Object, f"__i{short}__", lambda self, other: self._operate(f"i{short}", self, other))


for _name in BINARY:
    _binary(_name)


def _comparison(name: str) -> None:
    def compare(self: Any, other: Any) -> Any:
        if isinstance(other, _Object):
            return self._operate(name, self, other)
        # nobody but the test says whether a student's object equals what it expects
        return NotImplemented

    setattr(_Object, f"__{name}__", compare)


for _name in ORDER:
    _comparison(_name)


def _plain_repr(proxy: Proxy) -> str:
    """Return what a proxy stands for."""
    handle = proxy._gradebox
    return f"<the student's {handle.kind} {handle.name or handle.type_name}>"


def _extract_methods(kind: type) -> dict[str, Callable[..., Any]]:
    """Take the methods out of a class that not all classes of the student's have."""
    methods = {"__call__": _Callable.__call__}
    for dunder in (f"__{name}__" for name in ABILITIES):
        if dunder in vars(kind) and dunder != "__hash__":
            methods[dunder] = vars(kind)[dunder]
            type.__delattr__(kind, dunder)
    return methods


_METHODS = _extract_methods(_Object)


@lru_cache(maxsize=1000)
def _kind_called(name: str, own: Any) -> type:
    """Return the kind of stand-ins for objects of a class that has none here itself.

    Parameters
    ----------
    name : str
        The name of the class.
    own : type
        Its class if that is Python's own, ``object`` otherwise.
    """
    able = names_of(abilities_of(own))
    space: dict[str, Any] = {dunder: _METHODS[dunder] for dunder in able if dunder in _METHODS}
    space |= {"__slots__": (), "__module__": "builtins", "__doc__": property(documentation_of)}
    if own in PYTHONS_OWN.values():  # none of them is data: see gradebox.line.classes
        space["__class__"] = property(lambda self: own)
    base = _Object
    if own is CoroutineType:
        base = _Coroutine
        del space["__await__"]
    return Standing(name, (base,), space)


def _only_item(item: Any) -> Any:
    if type(item) is not tuple or len(item) != 1:
        raise BadValue("expected one item of an iterator")
    return item[0]


for _class in (Proxy, _Callable, _Object, _Coroutine):
    type.__setattr__(_class, "__doc__", property(documentation_of))
    type.__setattr__(_class, "__module__", property(inspection.ATTRIBUTES["__module__"]))
    type.__setattr__(_class, "__annotations__", property(inspection.annotations_of))
    type.__setattr__(_class, "__signature__", property(signature_of))


_PLAIN_QUESTIONS = ("cell", "names", "get", "call", "class", "rebound")
"""Questions whose answers are the same in one process."""


def _called(value: Any) -> str:
    """Return what a question is about, in words."""
    first = value[0] if type(value) is tuple and value else None
    proxies = [argument for argument in value or () if isinstance(argument, Proxy)]
    handle = (first if isinstance(first, Proxy) else proxies[0])._gradebox if proxies else None
    if handle is None:
        return "an object"
    return handle.name or f"a {handle.type_name}"


class Late(BaseException):
    """A test cell has used up its time; no ``except Exception`` of a test holds it."""


class Student(Peer):
    """The names of a student's notebook, in the checker.

    Parameters
    ----------
    line : Line
        The line to a process that runs :func:`serve_names`.
    seconds : float
        The limit of one call, with all that it calls back.
    clock : callable, optional
        Returns the own time that both processes have used since the present test cell began: see
        :mod:`gradebox.sandbox.own_time`. Without it limits are in wall time.
    interrupt : callable, optional
        Interrupts the student's process, say by SIGINT, when a call takes too long. Without it, or
        when the call still does not end, nothing more is asked of that process.
    writes_back : bool
        Whether a function may change lists, arrays … that it is given, as in one process.

    Raises
    ------
    StudentError
        And what is derived from it, in every method and every proxy.
    """

    def __init__(
        self,
        line: Line,
        *,
        seconds: float = 30.0,
        clock: Callable[[], float] | None = None,
        interrupt: Callable[[], None] | None = None,
        writes_back: bool = True,
    ) -> None:
        super().__init__(line)
        self.seconds, self.writes_back, self._interrupt = seconds, writes_back, interrupt
        self.clock = clock
        self.cell: Deadline | None = None
        """No call lasts longer than the test cell may."""
        self.troubles: list[str] = []
        """What no honest function does, in the order in which it happened."""
        self.stand_ins: set[str] = set()
        """What was asked about objects and classes of the student's since this was cleared."""
        self.mixed = Mixed(self._handle)
        """In which operations objects of the student's met values of the tests."""
        self.along = OfTests(self._import, self._export)
        """What goes along with messages."""
        self.gone = ""
        """Why nothing can be asked any more; empty while something can."""
        self.shared = SharedNames({}, ())
        """The names that tests may bind for the student's code."""
        self._call = self._deadline = Deadline(seconds)
        self._late, self._printed_left = False, MOST_PRINTED

    def names(self) -> list[str]:
        """Return the names that the student's cells have defined."""
        names = self.ask("names", ())
        if type(names) is not list or not all(type(name) is str for name in names):
            raise BadValue("expected a list of names")
        return names

    def __getitem__(self, name: str) -> Any:
        """Return a copy of a plain value, or the proxy of a function or object."""
        return self.ask("get", (name,))

    def begin(self) -> None:
        """Take note that a test begins.

        What the student's cells have bound anew is theirs, and the files that they have written
        come here, where files are kept in step.
        """
        if self.shared.bound():
            self.shared.forget(self.ask("rebound", ()))
        if self.along.files is not None:
            self.along.files.begin()
            with contextlib.suppress(StudentError):
                self.ask("cell", ())

    def before(self, encoder: Encoder) -> dict[str, Any]:
        """Return what a message tells before its value."""
        header = super().before(encoder)
        if taken_away := self.shared.taken_away():
            header["taken away"] = taken_away
        if names := self.shared.news(encoder):
            header["names"] = names
        return header

    def end(self) -> None:
        """Let the student's process go on with its cells."""
        if not self.gone and self.shared.bound():
            with contextlib.suppress(Exception):  # the next test is told
                self.ask("names", ())
        if not self.gone:
            if not self._deadline.remaining():
                self._deadline = self._begun(GRACE)
            if self.along.files is not None:
                self.along.files.begin()
            with contextlib.suppress(StudentError):
                self.send({"ask": "end", "id": 0}, [])

    def ask(self, question: str, value: Any = None, **more: Any) -> Any:
        """Ask, within the limits of time."""
        if self.gone:
            raise StudentGone("StudentGone", self.gone)
        if question not in _PLAIN_QUESTIONS:
            self.stand_ins.add(_called(value))
        self.mixed.note(question, value)
        if not self._depth:
            self._call, self._late = self._soonest(), False
            self._deadline = self._call
        if self._late or not self._deadline.remaining():
            raise self._timeout()
        try:
            result = super().ask(question, value, **more)
        except BadValue as error:
            self.troubles.append(f"the student's process sent what is no value: {error}")
            raise
        self.mixed.name(question, value, result)
        return result

    def _soonest(self) -> Deadline:
        """Return the limit of a call that begins."""
        if self.cell is not None and self.cell.remaining() <= self.seconds:
            return self.cell
        return self._begun(self.seconds)

    def _begun(self, seconds: float) -> Deadline:
        return Deadline(seconds, self.clock, since=self.clock() if self.clock else 0.0)

    def derive(self, decoder: Decoder, node: list[Any], depth: int) -> Any:
        """Return what stands for an object of a class that derives from data."""
        instance = super().derive(decoder, node, depth)
        self.stand_ins.add(f"a {type(instance).__name__}")
        return instance

    def make(self, handle: Handle, callable_: bool) -> Any:
        """Return what stands for an object of the other process."""
        is_object = handle.kind == "object"
        if is_object:
            self.stand_ins.add(f"a {handle.type_name}")
        if handle.kind == "class":
            if not isinstance(handle.of, tuple):
                raise BadValue("expected what a class is")
            return student_class(handle, _Object, _METHODS, property(documentation_of))
        kind: type = _Callable if callable_ else Proxy
        if is_object:
            of: Any = handle.of
            if issubclass(of, _Object):
                kind = of
            else:
                name = handle.type_name if handle.type_name.isidentifier() else "object"
                kind = _kind_called(name, of)
        proxy: Any = object.__new__(kind)
        object.__setattr__(proxy, "_gradebox", handle)
        if isinstance(proxy, _Coroutine):
            object.__setattr__(proxy, "_steps", None)
        return proxy

    def handle_of(self, value: Any) -> Handle | None:
        """Return the handle of what stands for an object of the other process."""
        return value._gradebox if isinstance(value, Proxy) else None

    def may_export(self, value: Any) -> bool:
        """Return whether the other process may have a handle of it."""
        return lent.may_lend(value)

    def failed(self, error: dict[str, Any]) -> Exception:
        """Return the exception for what the other process says has failed."""
        if self._late:
            return self._timeout()
        trace = error.get("trace", "") if type(error) is dict else ""
        failure = rebuilt(error, trace, self.error_class_of(error))
        cause = error.get("cause")
        return (
            failure
            if cause is None
            else caused(failure, rebuilt(cause, "", self.error_class_of(cause)))
        )

    def lost(self, error: BaseException) -> bool:
        """Return whether the line is of no use any more."""
        return bool(self.gone)

    def spoil(self, error: BaseException) -> None:
        """Take note that the line is of no use any more."""
        if not self.gone:
            late = isinstance(error, StudentTimeout | Late)
            self.gone = "it took too long" if late else "it ended, or makes no sense any more"
            self.troubles.append(f"nothing more can be asked of the student's process: {self.gone}")

    def send(self, message: dict[str, Any], parts: Sequence[bytes]) -> None:
        """Send a message, with what goes with it."""
        if states := self.draws.states():
            message["draws"] = states
        self.along.tell(message)
        try:
            self.line.send_parts(message, parts, self._deadline.remaining)
        except TooLong:
            self.along.take_back(message)
            raise
        except TimeoutError:
            error = self._timeout()
            self.spoil(error)
            raise error from None
        except Gone as error:
            self.spoil(error)
            raise StudentGone("StudentGone", self.gone) from None

    def receive(self) -> tuple[dict[str, Any], list[bytes]]:
        """Wait for a message, within the limits of time."""
        try:
            try:
                return self._deadline.wait(self.line.receive_parts)
            except TimeoutError:
                if self._interrupt is None or self._late:
                    raise self._timeout() from None
                self._late = True
                self._interrupt()
                self._deadline = self._begun(GRACE)
                return self._deadline.wait(self.line.receive_parts)
        except StudentTimeout:
            raise
        except TimeoutError:
            raise self._timeout() from None
        except Gone as error:
            self.spoil(error)
            raise StudentGone("StudentGone", self.gone) from None

    def hear(self, message: dict[str, Any]) -> None:
        """Take in what a message tells by the way."""
        super().hear(message)
        self.draws.go_elsewhere(message.get("drawn"))
        self.along.take(message)
        if "printed" not in message:
            return
        printed = message["printed"]
        if type(printed) is not list or not all(_is_printed(entry) for entry in printed):
            raise BadValue("expected what was printed")
        for name, text in printed:
            text = text[: self._printed_left]
            self._printed_left -= len(text)
            getattr(sys, name).write(text)

    def do(self, question: str, message: dict[str, Any], value: Any) -> Any:
        """Answer a question."""
        if self._late:
            raise self._timeout()
        if type(value) is not tuple:
            raise BadValue("expected what is asked about")
        self.along.issue()
        if question in lent.QUESTIONS:
            return self._lend(question, value)
        if question != "call" or len(value) != 3:
            raise BadValue("expected a call")
        function, args, kwargs = value
        if not callable(function) or type(args) is not tuple or type(kwargs) is not dict:
            raise BadValue("expected a function and its arguments")
        if not all(type(name) is str for name in kwargs):
            raise BadValue("expected the names of arguments")
        return function(*args, **kwargs)

    def _lend(self, question: str, value: tuple[Any, ...]) -> Any:
        """Answer what the student's code asks about an object of the tests."""
        self.stand_ins.add("an object of the tests")
        return lent.answer(question, value)

    def _read(
        self, number: int, message: dict[str, Any], parts: list[bytes], encoder: Encoder
    ) -> Any:
        if not self._late:
            self.along.issue()
        try:
            value = super()._read(number, message, parts, encoder)
        except Gone as error:
            self.spoil(error)
            raise StudentGone("StudentGone", self.gone) from None
        if self._late:  # what has become of containers is taken in all the same
            raise self._timeout()
        return value

    def _timeout(self) -> StudentTimeout:
        self.troubles.append("a call took too long")
        return StudentTimeout("StudentTimeout", f"{self._call.says}, or than is left")


def _is_printed(entry: Any) -> bool:
    if type(entry) is not list or len(entry) != 2 or entry[0] not in ("stdout", "stderr"):
        return False
    return type(entry[1]) is str
