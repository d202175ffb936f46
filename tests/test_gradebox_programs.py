"""Programs of tests have the same outcome beside the student's code and across the line.

A program is a list of steps over variables: it makes values, calls a student's functions with them,
passes callbacks whose bodies are steps again, changes containers in place, raises and catches. One
interpreter runs it twice, with the names of the student's module in this process and with those
that a process of its own lends. All that a test could see has to be the same after each step: what
the variables hold, which of them are one object, and what was raised.
"""

import collections
import contextlib
import copy
import random
import socket
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_gradebox_proxy import Lend, lend, server

from gradebox.codec.encoding import BadValue, Unsendable
from gradebox.line.lender import Lender
from gradebox.line.peer import StudentError, source_of_error
from gradebox.line.proxy import Student
from gradebox.line.wire import Gone, Line

__all__ = ["lend", "server"]  # fixtures

pytestmark = pytest.mark.xdist_group("gradebox")

# --- the student's module ----------------------------------------------------------------------

MODULE = '''
import collections
import copy
import dataclasses
import enum
import typing
import numpy as np

class Broken(Exception):
    def __init__(self, what, code=0):
        super().__init__(what, code)
        self.code = code

class Worse(Broken, KeyError): pass

class Bent(LookupError): pass

def error_of(n):
    made = [ValueError("value"), KeyError("key"), IndexError("index", 3), TypeError(),
            Broken("broken", 7), Worse("worse"), ZeroDivisionError("none", None, 2.5, True)]
    return made[n % len(made)]

class Box:
    seen = []
    def __init__(self, items=None):
        self.items = [] if items is None else items
        self.other = None
    def put(self, x):
        self.items.append(x)
        return len(self.items)
    def get(self): return self.items
    def copied(self): return list(self.items)
    def both(self): return self.items, list(self.items), self
    def twice(self): return [self.items, self.items]
    def keep(self, items): self.items = items
    def exchange(self, items):
        old, self.items = self.items, items
        return old
    def hold(self, x):
        self.other = x
        return x
    def held(self): return self.other
    def drop(self): self.other = None
    def merge(self, box):
        self.items.extend(box.items)
        return self
    def each(self, f): return [f(x) for x in list(self.items)]
    def give(self, f): return f(self.items)
    def give_itself(self, f): return f(self, self.items)
    def give_and_take(self, f, x):
        self.items.append("before")
        result = f(x)
        self.items.append("after")
        return result
    def guarded(self, f):
        try:
            return f(self.items)
        except KeyError as error:
            self.items.append("key")
            return ["key", *map(str, error.args)]
        except Exception as error:
            self.items.append(type(error).__name__)
            return [type(error).__name__, *map(str, error.args)]
        finally:
            self.items.append("finally")
    def fails(self, n):
        self.items.append("fails")
        raise error_of(n)
    def note(self):
        type(self).seen.append(len(self.items))
        return type(self).seen
    def walk(self):
        for item in self.items[:3]:
            yield item
    def __len__(self): return len(self.items)
    def __getitem__(self, key): return self.items[key]
    def __setitem__(self, key, value): self.items[key] = value
    def __contains__(self, item): return item in self.items
    def __iter__(self): return iter(self.items[:3])

class Money:
    def __init__(self, n): self.n = n
    def __add__(self, other):
        return Money(self.n + (other.n if isinstance(other, Money) else other))
    __radd__ = __add__
    def __iadd__(self, other):
        self.n += other.n if isinstance(other, Money) else other
        return self
    def __neg__(self): return Money(-self.n)
    def __eq__(self, other): return isinstance(other, Money) and self.n == other.n
    def __hash__(self): return hash(self.n)
    def __lt__(self, other): return self.n < other.n
    def __le__(self, other): return self.n <= other.n

class Stack(list):
    def push(self, x):
        self.append(x)
        return self
    def top(self): return self[-1] if self else None

class Table(dict):
    def add(self, key, x):
        self[key] = x
        return self
    def __missing__(self, key): return "missing"

class Title(str):
    def shout(self): return Title(self.upper())

class Level(int):
    def up(self): return Level(self + 1)

class Pair(tuple):
    def swapped(self): return Pair(reversed(self))

Point = collections.namedtuple("Point", "x y")

@dataclasses.dataclass
class Record:
    name: str
    items: list = dataclasses.field(default_factory=list)

class Color(enum.Enum):
    RED = 1
    BLUE = "b"

def reset():
    global board, table, names, weights, raw, line, stack, words, box, record, point, money, cycle
    board = [[0, 1], [2], []]
    table = {"a": [1], "b": 2}
    names = {"x", "y"}
    weights = np.arange(3.0)
    raw = bytearray(b"raw")
    line = collections.deque([1, [2]])
    stack = Stack([1, [2]])
    words = Table(k=[1])
    box = Box([1, [2]])
    record = Record("r", [1])
    point = Point(1, [2])
    money = Money(3)
    cycle = [0]
    cycle.append(cycle)
    Box.seen = []

reset()

def play():
    board[0].append("p")
    table["a"].append("p")
    table["n"] = len(board)
    names.add("p")
    weights[0] += 1
    raw.append(33)
    line.append("p")
    stack.append("p")
    words["p"] = 1
    box.items.append("p")
    record.items.append("p")
    money.n += 1
    cycle.append("p")

def swap():
    board[0], board[-1] = board[-1], board[0]
    return board

def rebind():
    global board, weights
    board, old = [board[0], ["new"]], board
    weights = weights * 2
    return old

def all_of_them(): return board, table, names, weights, raw, line

def rows():
    for row in board[:3]:
        yield row

def fresh(): return [[1], {"f": 2}]

def same(x): return x

def is_same(x, y): return x is y

def equal(x, y): return x == y

def pack(x, y): return [x, y, {"x": x}]

def spread(*args, **kwargs): return args, kwargs

def change(x):
    """Change any container in place."""
    if isinstance(x, (list, collections.deque)):
        x.append("changed")
    elif isinstance(x, dict):
        x["changed"] = len(x)
    elif isinstance(x, set):
        x.add("changed")
    elif isinstance(x, np.ndarray):
        x *= 2
    elif isinstance(x, bytearray):
        x.append(42)
    else:
        x.speed = x.speed + 1

def change_and_fail(x, n):
    change(x)
    raise error_of(n)

def fail(n): raise error_of(n)

def chained(n):
    try:
        fail(n)
    except Exception as error:
        raise RuntimeError("chained", n) from error

def change_inner(x):
    for item in [*(x.values() if isinstance(x, dict) else x)]:
        if isinstance(item, (list, dict, set, collections.deque)):
            change(item)

def changing(x, f):
    change(x)
    result = f(x)
    change(x)
    return result

def calls(f, x, y): return f(x, y)

def calls_twice(f, x): return [f(x), f(x)]

def catches(f, *args):
    try:
        return f(*args)
    except Broken as error:
        return ["broken", error.code]
    except (ValueError, LookupError) as error:
        return [type(error).__name__, *error.args]

def passes_on(f, x):
    try:
        return f(x)
    except Exception:
        change(x)
        raise

def make_adder(x):
    def add(y):
        x.append(y)
        return x
    return add

def keep_in_board(x): board.append(x)

def sail(ship, n):
    ship.speed += n
    ship.crew.append(n)
    return ship.sail(2), ship.size

def crew_of(ship): return ship.crew

def board_ship(ship, crew): ship.crew = crew

def ordered(*all): return sorted(all)
'''


class Ship:
    """What a test cell may define."""

    def __init__(self) -> None:
        self.crew: Any = ["Ann"]
        self.speed = 3

    def sail(self, n: int) -> int:
        """Return how far it comes."""
        return n * self.speed

    @property
    def size(self) -> int:
        """Return how many there are."""
        return len(self.crew)


Ship.__module__ = "__main__"  # as in a test cell


class Stranded(ValueError):
    """An exception of the tests'."""


Stranded.__module__ = "__main__"

# --- the interpreter ---------------------------------------------------------------------------

Step = tuple[Any, ...]

MOST_VARIABLES = 8

LITERALS: tuple[Callable[[], Any], ...] = (
    lambda: [1, [2, 3]],
    lambda: {"a": [1], "b": {}},
    lambda: {1, "s"},
    lambda: np.arange(4).reshape(2, 2),
    lambda: bytearray(b"ab"),
    lambda: collections.deque([1, []]),
    lambda: ([1], 2),
    lambda: "text",
    lambda: 3,
    Ship,
    list,
    lambda: collections.defaultdict(list, k=[1]),
)

NAMES = (
    *("board", "table", "names", "weights", "raw", "line", "stack", "words", "box", "record"),
    *("point", "money", "cycle"),
)

CONTAINERS = (list, dict, set, np.ndarray, bytearray, collections.deque)


def is_container(value: Any) -> bool:
    return isinstance(value, CONTAINERS)


def is_list(value: Any) -> bool:
    return type(value) is list


def is_nested(value: Any) -> bool:
    return isinstance(value, list | dict | collections.deque)


def of_class(name: str) -> Callable[[Any], bool]:
    return lambda value: type(value).__name__ == name


def is_changed(value: Any) -> bool:
    return is_container(value) or isinstance(value, Ship)


def is_any(value: Any) -> bool:
    return True


def is_hashed(value: Any) -> bool:
    return isinstance(value, int | str)


BOX, MONEY, SHIP, NUMBER, CALLBACK = of_class("Box"), of_class("Money"), "ship", "number", "call"

CALLS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    *((f".{name}", (BOX,)) for name in ("get", "copied", "both", "twice", "held", "drop", "note")),
    *((f".{name}", (BOX, is_any)) for name in ("put", "hold")),
    *((f".{name}", (BOX, is_list)) for name in ("keep", "exchange")),
    (".merge", (BOX, BOX)),
    *((f".{name}", (BOX, CALLBACK)) for name in ("each", "give", "give_itself", "guarded")),
    (".give_and_take", (BOX, CALLBACK, is_any)),
    (".fails", (BOX, NUMBER)),
    (".walk", (BOX,)),
    *((f".{name}", (of_class("Stack"), is_any)) for name in ("push",)),
    (".top", (of_class("Stack"),)),
    (".add", (of_class("Table"), NUMBER, is_any)),
    ("Box", (is_list,)),
    ("Box", ()),
    ("Money", (NUMBER,)),
    ("Stack", (is_list,)),
    ("Record", (NUMBER, is_list)),
    ("Point", (is_any, is_any)),
    *((name, ()) for name in ("play", "swap", "rebind", "all_of_them", "rows", "fresh")),
    *((name, (is_any,)) for name in ("same", "keep_in_board")),
    *((name, (is_any, is_any)) for name in ("pack", "spread")),
    ("is_same", (is_changed, is_changed)),  # tuples and numbers are copies
    ("equal", (is_container, is_container)),
    ("change", (is_changed,)),
    ("change_and_fail", (is_changed, NUMBER)),
    ("fail", (NUMBER,)),
    ("chained", (NUMBER,)),
    ("change_inner", (is_nested,)),
    ("changing", (is_changed, CALLBACK)),
    ("calls", (CALLBACK, is_any, is_any)),
    ("calls_twice", (CALLBACK, is_any)),
    ("catches", (CALLBACK, is_any)),
    ("passes_on", (CALLBACK, is_changed)),
    ("make_adder", (is_list,)),
    ("sail", (lambda value: isinstance(value, Ship) and is_list(value.crew), NUMBER)),
    ("crew_of", (lambda value: isinstance(value, Ship),)),
    ("board_ship", (lambda value: isinstance(value, Ship), is_list)),
    ("ordered", (MONEY, MONEY)),
)

ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "Box": ("items", "other", "seen"),
    "Money": ("n",),
    "Record": ("name", "items"),
}


class Machine:
    """Runs one program on the end of the tests.

    Parameters
    ----------
    names : Student or dict
        The names of the student's module.
    """

    def __init__(self, names: Any) -> None:
        self.names, self.log, self.values = names, list[Any](), list[Any]()

    def pick(self, fits: Any, n: int) -> Any:
        """Return the n-th of the variables that fit, or raise ``LookupError``."""
        found = [place for place, value in enumerate(self.values) if fits(value)]
        if not found:
            raise _Nothing
        return self.values[found[n % len(found)]]

    def bind(self, value: Any) -> None:
        """Make a new variable."""
        self.values.append(value)
        if len(self.values) > MOST_VARIABLES:
            del self.values[0]

    def run(self, steps: list[Step]) -> None:
        """Run steps, until one raises."""
        for step in steps:
            try:
                self.log.append((step[0], getattr(self, f"do_{step[0]}")(*step[1:])))
            except _Nothing:
                continue
            self.log.append(shown(self.values))

    def run_all(self, steps: list[Step]) -> list[Any]:
        """Run steps, whatever they raise, and return the log."""
        for step in steps:
            try:
                self.run([step])
            except Exception as error:
                self.raised(error)
        self.do_look()
        return self.log

    def raised(self, error: Exception) -> None:
        """Log an exception."""
        kinds = ["Broken", "Worse", "Bent"]
        self.log.append(
            (
                "raised",
                type(error).__name__,
                error.args,
                [isinstance(error, self.names[one]) for one in kinds],
                [isinstance(error, one) for one in (Stranded, LookupError, ValueError)],
                getattr(error, "code", None),
            )
        )
        self.log.append(shown(self.values))

    # steps

    def do_make(self, n: int) -> None:
        self.bind(LITERALS[n % len(LITERALS)]())

    def do_name(self, n: int) -> None:
        self.bind(self.names[NAMES[n % len(NAMES)]])

    def do_call(self, n: int, places: tuple[int, ...], callback: list[Step]) -> Any:
        name, kinds = CALLS[n % len(CALLS)]
        args = [self.argument(*pair, callback) for pair in zip(kinds, places, strict=False)]
        if name.startswith("."):
            called = getattr(args[0], name[1:])
            del args[0]
        else:
            called = self.names[name]
        result = called(*args)
        if type(result).__name__ == "generator":
            result = list(result)
        self.bind(result)
        return name

    def argument(self, kind: Any, n: int, callback: list[Step]) -> Any:
        if kind is NUMBER:
            return n
        if kind is not CALLBACK:
            return self.pick(kind, n)

        def call(*args: Any) -> Any:
            for arg in args:
                self.bind(arg)
            self.log.append(("called", shown(self.values)))
            self.run(callback)
            return self.values[n % len(self.values)] if self.values else None

        return call

    def do_change(self, n: int, how: int) -> None:
        change(self.pick(is_container, n), how)

    def do_put(self, n: int, m: int) -> None:
        target, value = self.pick(is_nested, n), self.pick(is_any, m)
        if isinstance(target, dict):
            target[f"k{m}"] = value
        else:
            target.append(value)

    def do_index(self, n: int, m: int) -> None:
        target = self.pick(lambda value: is_nested(value) or isinstance(value, tuple), n)
        items = list(target.values() if isinstance(target, dict) else target)
        if items:
            self.bind(items[m % len(items)])

    def do_get(self, n: int, m: int) -> None:
        target = self.pick(lambda value: type(value).__name__ in ATTRIBUTES, n)
        names = ATTRIBUTES[type(target).__name__]
        self.bind(getattr(target, names[m % len(names)]))

    def do_set(self, n: int, m: int) -> None:
        target = self.pick(of_class("Box"), n)
        if m % 2:
            target.other = self.pick(is_any, m)
        else:
            target.items = self.pick(is_list, m)

    def do_item(self, n: int, m: int) -> Any:
        target = self.pick(BOX, n)
        if m % 3 == 0:
            target[0] = self.pick(is_any, m)
        elif m % 3 == 1:
            self.bind(list(target))
        else:
            self.bind(target[m - 3])
        return len(target), 1 in target

    def do_operate(self, n: int, m: int) -> Any:
        one, other = self.pick(MONEY, n), self.pick(MONEY, m)
        before = one
        if m % 2:
            one += other
        self.bind(one + 1 if n % 2 else -(2 + other))
        return one is before, one == other, one < other, one != other, one >= other

    def do_compare(self, n: int, m: int) -> Any:
        one, other = self.pick(is_data, n), self.pick(is_data, m)
        return one == other, one != other

    def do_delete(self, n: int) -> None:
        if self.values:
            del self.values[n % len(self.values)]

    def do_raise(self, n: int) -> None:
        kinds = (ValueError, KeyError, Stranded, RuntimeError)
        if n % 6 < 4:
            raise kinds[n % 4]("raised", n)
        # not one with an __init__ of its own: that is done only where the student's code raises it
        raise self.names["Bent"]("raised", n)

    def do_attempt(self, body: list[Step]) -> None:
        try:
            self.run(body)
        except Exception as error:
            self.raised(error)

    def do_loop(self, body: list[Step]) -> None:
        for row in self.names["rows"]():
            self.bind(row)
            self.run(body)

    def do_adder(self, n: int, m: int) -> None:
        add = self.names["make_adder"](self.pick(is_list, n))
        self.bind(add(m))
        self.bind(add(self.pick(is_any, m)))

    def do_look(self) -> None:
        """Log what objects of the student's have."""
        for value in self.values:
            if (kind := type(value).__name__) in ATTRIBUTES:
                self.log.append((kind, shown([getattr(value, one) for one in ATTRIBUTES[kind]])))
        self.log.append(shown([*self.values, *(self.names[name] for name in NAMES)]))


class _Nothing(BaseException):
    """There is no variable for a step, which is passed by."""


def is_data(value: Any) -> bool:
    """Return whether two such values compare as the same data in both processes."""
    return isinstance(value, list | dict | set | bytearray | str | int) and not holds(
        value, lambda one: not isinstance(one, list | dict | set | bytearray | str | int), []
    )


def holds(value: Any, what: Callable[[Any], bool], within: list[Any]) -> bool:
    """Return whether a container holds such a value, or itself."""
    if what(value) or any(value is one for one in within):
        return True
    items = value.values() if isinstance(value, dict) else value
    deeper = [*within, value]
    return isinstance(value, list | dict) and any(holds(one, what, deeper) for one in items)


def change(value: Any, how: int) -> None:
    """Change a container in one of several ways."""
    if isinstance(value, np.ndarray):
        value[...] = value + how
    elif isinstance(value, dict):
        if how % 3 == 0 and value:
            value.pop(next(iter(value)))
        else:
            value[f"c{how}"] = [how]
    elif isinstance(value, set):
        value.add(how) if how % 3 else value.clear()
    elif isinstance(value, bytearray):
        value.append(how % 256) if how % 3 else value.reverse()
    elif how % 4 == 0 and value:
        value.pop()
    elif how % 4 == 1:
        value.append([how])
    elif how % 4 == 2:
        value.append(how)
    else:
        value.reverse()


def shown(values: list[Any]) -> Any:
    """Return what values hold and which of them are one object, to be compared."""
    met: dict[int, int] = {}
    alive: list[Any] = []

    def show(value: Any) -> Any:
        kind = type(value)
        name = kind.__name__
        if value is None or kind in (bool, int, float, str, bytes):
            return value
        if callable(value):
            return "callable"
        if isinstance(value, str | int) and name in ("Title", "Level"):
            return name, kind.__mro__[1](value)
        if not isinstance(value, tuple):
            if id(value) in met:
                return f"#{met[id(value)]}"
            met[id(value)] = len(met)
            alive.append(value)
        number = met.get(id(value))
        if isinstance(value, np.ndarray):
            return number, name, str(value.dtype), value.tolist()
        if isinstance(value, dict):
            return number, name, [(key, show(item)) for key, item in value.items()]
        if isinstance(value, set):
            return number, name, sorted(value, key=repr)
        if isinstance(value, bytearray):
            return number, name, bytes(value)
        if isinstance(value, list | tuple | collections.deque):
            return number, name, [show(item) for item in value]
        if isinstance(value, Ship):
            return number, name, value.speed, show(value.crew)
        return number, name

    return [show(value) for value in values]


# --- programs ----------------------------------------------------------------------------------

SMALL = st.integers(0, 11)


def steps_with(inner: st.SearchStrategy[list[Step]]) -> st.SearchStrategy[list[Step]]:
    """Return a strategy for steps whose callbacks and blocks are of an inner strategy."""
    places = st.tuples(SMALL, SMALL, SMALL)
    calls = st.tuples(st.just("call"), st.integers(0, len(CALLS) - 1), places, inner)
    short = [st.tuples(st.just(name)) for name in ("look",)]
    one = [st.tuples(st.just(name), SMALL) for name in ("make", "name", "name", "delete", "raise")]
    two = [
        st.tuples(st.just(name), SMALL, SMALL)
        for name in (
            *("change", "change", "put", "index", "get", "set", "item"),
            *("operate", "compare", "adder"),
        )
    ]
    blocks = [st.tuples(st.just(name), inner) for name in ("attempt", "loop")]
    step = st.one_of(calls, calls, calls, *two, *one, *blocks, *short, calls, calls, calls)
    return st.lists(step, max_size=10)


def call(name: str, *places: int, callback: Sequence[Step] = ()) -> Step:
    """Return the step that calls a function."""
    number = [one for one, _ in CALLS].index(name)
    return "call", number, (*places, 0, 0, 0)[:3], list(callback)


LEAVES = st.just(list[Step]())
PROGRAMS = steps_with(steps_with(steps_with(LEAVES)))


def log_of(names: Any, program: list[Step]) -> list[Any]:
    """Return what a program shows."""
    names["reset"]()
    machine = Machine(names)
    try:
        return machine.run_all(program)
    finally:
        empty([*machine.values, *(names[name] for name in NAMES)])


def empty(values: list[Any]) -> None:
    """Empty containers and those within: one that holds itself is never forgotten otherwise."""
    met: dict[int, Any] = {}
    while values:
        value = values.pop()
        if is_nested(value) and id(value) not in met:
            met[id(value)] = value
            values += value.values() if isinstance(value, dict) else value
    for value in met.values():
        kind = next(one for one in (list, dict, collections.deque) if isinstance(value, one))
        kind.clear(value)


def oracle() -> dict[str, Any]:
    """Return the names of the student's module in this process."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(MODULE, "<module>", "exec"), names)
    return names


def test_a_program_of_tests_has_the_same_outcome_in_two_processes(lend: Lend) -> None:
    names, students = oracle(), [lend(MODULE)]

    @settings(max_examples=200, deadline=None, derandomize=True)
    @given(PROGRAMS)
    @example([call("swap"), ("put", 0, 0)])
    @example([("make", 0), call("calls_twice", 0)])
    @example([("make", 0), call("change_and_fail", 0, 2)])
    @example([("make", 9), call("sail", 0, 7), call("crew_of", 0)])
    @example([("name", 8), call(".give_itself", 0, callback=[call(".twice", 0)])])
    @example([("name", 8), call(".give", 0, 9, callback=[call("Record", 9, 0)])])
    def check(program: list[Step]) -> None:
        expected = log_of(names, program)
        try:
            assert log_of(students[0], program) == expected
        except BaseException:
            students[0] = lend(MODULE)  # what is left of it says nothing about others
            raise

    check()


# --- messages that no honest process sends -----------------------------------------------------

ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 3, 2**70, 1.5, "x", [], {}, ["ref", 0], ["held", 1], ["yours", 1]),
    *(["twin", 1, ["list", []]], ["derived", ["list", []], 1, "A", ["b"], False]),
    *(["class", 1], ["handle", 1, "class", "type", "A", True], ["numbers", "<f8"], ["graph", 1]),
    *(["handle", 1, "object", "A", "", False, ["class", 9]], [[0, -1]], [[1, ["set", [1]]]]),
)


class ForgedLine(Line):
    """The student's end of a line, on which one message is changed.

    Parameters
    ----------
    end : socket
        The end.
    which : int
        The number of the message.
    draws : random.Random
        What is changed, and how.
    """

    def __init__(self, end: socket.socket, which: int, draws: random.Random) -> None:
        super().__init__(end)
        self.left, self.draws = which, draws

    def send_parts(self, message: Any, parts: Any, left: Any = None) -> None:
        """Send a message, the right one changed."""
        if self.left == 0:
            message = copy.deepcopy(message)
            self.forge(message)
        self.left -= 1
        super().send_parts(message, parts, left)

    def forge(self, message: Any) -> None:
        """Change a message in one place: drop, repeat, swap or replace."""
        places = [*places_of(message)]
        for _ in range(self.draws.choice((1, 1, 2))):
            holder, key = self.draws.choice(places)
            how = self.draws.randrange(5)
            with contextlib.suppress(LookupError):
                if how == 0:
                    del holder[key]
                elif how == 1 and isinstance(holder, list):
                    holder.insert(key, copy.deepcopy(holder[key]))
                elif how == 2:
                    other, place = self.draws.choice(places)
                    taken = copy.deepcopy((holder[key], other[place]))
                    other[place], holder[key] = taken
                else:
                    holder[key] = copy.deepcopy(self.draws.choice(ODD))


def places_of(node: Any) -> Iterator[tuple[Any, Any]]:
    """Return each place in a message, with what holds it."""
    pairs = [*node.items()] if isinstance(node, dict) else [*enumerate(node)]
    for key, item in pairs:
        yield node, key
        if isinstance(item, dict | list):
            yield from places_of(item)


@contextlib.contextmanager
def forged_student(which: int, draws: random.Random) -> Iterator[Student]:
    """Yield a student one of whose messages is forged."""
    ours, theirs = socket.socketpair()
    lender = Lender(ForgedLine(theirs, which, draws), oracle())

    def serve() -> None:
        with contextlib.suppress(Exception), theirs:
            while lender._serve_one():
                pass

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield Student(Line(ours), seconds=1)
    finally:
        ours.close()
        thread.join()


MEANT = (BadValue, StudentError, Gone, Unsendable)


def is_meant(error: BaseException) -> bool:
    """Return whether an exception is the student's, the test's own, or says what is wrong."""
    if isinstance(error, MEANT) or source_of_error(error) is not None:
        return True
    place = traceback.extract_tb(error.__traceback__)[-1].filename
    parts = ("peer", "values", "twins", "derived", "classes", "tensors", "gradients", "library")
    return not place.endswith(tuple(f"gradebox/{part}.py" for part in parts))


class Wary(Machine):
    """Runs a program, and keeps what is raised in it."""

    def __init__(self, names: Any) -> None:
        super().__init__(names)
        self.met = list[BaseException]()

    def raised(self, error: Exception) -> None:
        """Keep an exception."""
        self.met.append(error)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(PROGRAMS, st.integers(0, 12), st.integers(0, 2**32))
def test_a_message_that_is_forged_does_no_more_than_to_be_refused(
    program: list[Step], which: int, seed: int
) -> None:
    unsent: Any = [[1], {"a": [2]}, np.arange(3)]
    before = copy.deepcopy(unsent)
    with forged_student(which, random.Random(seed)) as student:
        machine = Wary(student)
        try:
            machine.run_all([("name", 0), ("name", 6), ("name", 8), ("make", 0), *program])
        except Exception as error:
            machine.met.append(error)
    for error in machine.met:
        if not is_meant(error):
            raise error
    assert shown(unsent) == shown(before)
