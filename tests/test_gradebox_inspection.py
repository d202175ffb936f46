"""What tests ask about a student's functions, classes and objects, and how little that is believed.

The names are lent by a thread of this process, except where its memory is what is tested.
"""

import builtins
import collections.abc
import contextlib
import gc
import inspect
import linecache
import socket
import threading
import types
import typing
from collections.abc import Callable, Iterator
from textwrap import dedent
from typing import Any

import pytest
from test_gradebox_proxy import run_tests

from gradebox.codec.encoding import BadValue
from gradebox.line import annotations
from gradebox.line.classes import PYTHONS_OWN
from gradebox.line.lender import Lender
from gradebox.line.proxy import Proxy, Student
from gradebox.line.special_methods import ABILITIES, EVERY, abilities_of, names_of
from gradebox.line.wire import Line
from gradebox.process.shell import Shell
from gradebox.process.verdict import Verdict

pytestmark = pytest.mark.xdist_group("gradebox")

Lend = Callable[..., Student]


@pytest.fixture
def lend() -> Iterator[Lend]:
    """Return a function that lends the names of a cell from a thread."""
    with contextlib.ExitStack() as stack:

        def make(cell: str, **more: Any) -> Student:
            ours, theirs = socket.socketpair()
            file = f"<cell {len(cell)}>"
            linecache.cache[file] = (len(cell), None, dedent(cell).splitlines(True), file)
            names: dict[str, Any] = {"__name__": "__main__"}
            exec(compile(dedent(cell), file, "exec"), names)
            serves = threading.Thread(target=Lender(Line(theirs), names).serve)
            serves.start()
            stack.callback(theirs.close)
            stack.callback(serves.join)
            stack.callback(ours.close)
            return Student(Line(ours), seconds=10, **more)

        yield make
    if Shell.initialized():  # at the end it would look up names that nobody lends any more
        Shell.instance().user_ns = {}


def verdict(student: Student, cell: str) -> Verdict:
    return run_tests([dedent(cell)], student, [1])[0]


SHAPES = '''
import abc, asyncio, functools, types
from collections.abc import Sequence
from enum import Enum
from typing import Optional

class Shape(abc.ABC):
    """A shape."""
    sides: int = 0

    def __init__(self, size=1.5):
        self.size = size

    @abc.abstractmethod
    def area(self): ...

    @staticmethod
    def unit(): return "cm"

    @classmethod
    def make(cls): return cls()

class Square(Shape):
    def area(self):
        return self.size ** 2
    def __len__(self): return 4
    def __iadd__(self, more):
        self.size += more
        return self

class Row(Sequence):
    def __len__(self): return 2
    def __getitem__(self, i): return [5, 6][i]

class Stack(list):
    pass

class Color(Enum):
    RED = 1
    BLUE = 2

square = Square(3)
Hint = Optional[Square]
def double(x: "int | None", /, y: "list[float]" = (1, 2), *rest, by=2.5, **more) -> Hint:
    """Double it.

    >>> double(2)
    4
    """
    return 2 * x
def gives(): yield 1
async def waits(): return 1
async def gives_later(): yield 1
triple = lambda x: 3 * x
def show(x): return x
'''


@pytest.mark.parametrize(
    "claim",
    [
        "type(square) is Square and square.__class__ is Square and type(square) is not Shape",
        "isinstance(square, Shape) and not isinstance(square, Row)",
        "issubclass(Square, Shape) and not issubclass(Shape, Square)",
        "Square.__bases__ == (Shape,) and Square.__mro__[:2] == (Square, Shape)",
        "Square.__mro__[-1] is object and Row.__bases__ == (abcs.Sequence,)",
        "issubclass(Stack, list) and not issubclass(Square, list)",
        "issubclass(Row, abcs.Sequence) and not issubclass(Square, abcs.Sequence)",
        "isinstance(Row(), abcs.Sequence) and not isinstance(square, abcs.Sequence)",
        "isinstance(square, abcs.Sized) and not isinstance(square, abcs.Iterable)",
        "inspect.isabstract(Shape) and not inspect.isabstract(Square)",
        "issubclass(Shape, abc.ABC) and issubclass(Square, abc.ABC)",
        "not callable(square) and callable(double) and callable(Square)",
        "hasattr(square, '__len__') and not hasattr(square, '__iter__')",
        "hasattr(Square, '__len__') and not hasattr(Shape, '__len__')",
        "inspect.isclass(Square) and not inspect.isclass(double) and not inspect.isclass(square)",
        "inspect.isfunction(double) and inspect.isfunction(Square.area)",
        "inspect.ismethod(square.area) and square.area.__self__ is square",
        "inspect.isgeneratorfunction(gives) and not inspect.isgeneratorfunction(double)",
        "inspect.iscoroutinefunction(waits) and inspect.isasyncgenfunction(gives_later)",
        "inspect.isgenerator(gives()) and isinstance(gives(), abcs.Iterator)",
        "isinstance(vars(Shape)['unit'], staticmethod) and isinstance(Shape.unit(), str)",
        "isinstance(vars(Shape)['make'], classmethod) and type(Square.make()) is Square",
        "'area' in vars(Square) and 'unit' not in vars(Square)",
        "vars(square) == {'size': 3} and 'area' in dir(square) and 'area' in dir(Square)",
        "double.__module__ == Square.__module__ == square.__module__ == '__main__'",
        "double.__defaults__ == ((1, 2),) and double.__kwdefaults__ == {'by': 2.5}",
        "str(inspect.signature(show)) == '(x)'",
        "list(inspect.signature(Square).parameters) == ['size']",
        "inspect.signature(double).parameters['by'].default == 2.5",
        "inspect.signature(Square.area).parameters.keys() == {'self'}",
        "typing.get_type_hints(double)['x'] == int | None",
        "typing.get_type_hints(double)['y'] == list[float]",
        "typing.get_type_hints(double)['return'] == typing.Optional[Square]",
        "typing.get_type_hints(Shape) == {'sides': int} == Shape.__annotations__",
        "inspect.getdoc(Shape) == 'A shape.' and Square.__doc__ is None",
        "inspect.getsource(show) == 'def show(x): return x\\n'",
        "inspect.getsource(Square.area).strip().startswith('def area')",
        "show.__code__.co_name == 'show' and show.__code__.co_varnames == ('x',)",
        "double.__code__.co_argcount == 2 and double.__code__.co_kwonlyargcount == 1",
        "triple.__name__ == '<lambda>' and show.__qualname__ == 'show'",
        "Square.area.__qualname__ == 'Square.area' and Square.__qualname__ == 'Square'",
        "len(Color) == 2 and [c.name for c in Color] == ['RED', 'BLUE']",
        "Color['RED'] is Color(1) is Color.RED and Color.RED is not Color.BLUE",
        "isinstance(Color.RED, Color) and Color.RED in Color and 'RED' in Color.__members__",
        "'square' in globals() and 'circle' not in globals() and globals()['square'] is square",
        "'square' in dir() and globals().get('circle') is None and 'abs' not in globals()",
        "any(name == 'double' for name in globals())",
        "callable(dict(globals().items())['double'])",
    ],
)
def test_what_a_test_asks_is_answered_as_in_one_process(lend: Lend, claim: str) -> None:
    test = "import abc, collections.abc as abcs, inspect, typing\nassert {}"
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(SHAPES, names)
    if "getsource" not in claim:  # it needs the cells of a notebook
        exec(test.format(claim), names)
    found = verdict(lend(SHAPES), test.format(claim))
    assert (found.error, found.score) == ("", 1)
    assert verdict(lend(SHAPES), test.format(f"not ({claim})")).score == 0


def test_an_operator_in_place_changes_the_object(lend: Lend) -> None:
    test = "before = square\nsquare += 2\nassert square is before and square.size == 5"
    assert verdict(lend(SHAPES), test).score == 1


def test_a_stand_in_has_no_other_special_methods_than_its_class(lend: Lend) -> None:
    student = lend(
        "class None_: __iter__ = None\nclass Plain: pass\nplain, none = Plain(), None_()"
    )
    for name in names_of(EVERY):
        assert hasattr(student["plain"], name) == (name == "__hash__"), name
    assert not isinstance(student["none"], collections.abc.Iterable)
    assert abilities_of(list) != abilities_of(tuple) != 0
    assert len(set(ABILITIES)) == len(ABILITIES)


def test_a_class_that_was_forgotten_is_told_again(lend: Lend) -> None:
    student = lend(SHAPES + "class Small(Square): pass\nsmall = Small()")
    for name in ("square", "small", "small", "square"):
        assert [one.__name__ for one in type(student[name]).__mro__[-3:]] == [
            *("Square", "Shape", "object")
        ]
        gc.collect()
        assert student["show"](student[name]) is student[name]
    kept = student["Square"]
    gc.collect()
    assert type(student["small"]).__bases__ == (kept,)
    small = student["small"]
    student._imported.clear()  # as if an answer that told of the class had come too late
    assert type(student["small"]).__mro__[2].__name__ == "Shape"
    assert type(student["small"]) is not type(small)


def test_objects_of_one_class_cost_little(lend: Lend) -> None:
    student = lend(SHAPES)
    sent: list[int] = []
    receive = student.line.receive_parts

    def counted(*args: Any) -> Any:
        message, parts = receive(*args)
        sent.append(len(repr(message)))
        return message, parts

    student.line.receive_parts = counted  # type: ignore[method-assign]
    kept = [student["Square"]() for _ in range(3)]
    assert sent[-1] < 150 < max(sent)
    assert len({type(one) for one in kept}) == 1


def test_a_class_of_a_test_cannot_inherit_unnoticed(lend: Lend) -> None:
    with pytest.raises(TypeError, match="cannot inherit"):
        type(lend(SHAPES)["Square"])("Mine", (), {})


# --- what is claimed in vain ------------------------------------------------------------------

LIARS = """
import types

class Says(type):
    def __instancecheck__(cls, value): return True
    def __subclasscheck__(cls, value): return True
    def __eq__(cls, other): return True
    def __hash__(cls): return 1
    @property
    def __mro__(cls): return (cls, int, object)
    @property
    def __bases__(cls): return (int,)

class Int(metaclass=Says):
    @property
    def __class__(self): return int
    def __eq__(self, other): return True
    def __int__(self): return 3
    def __index__(self): return 3
    __module__ = "builtins"
    __hash__ = None

class Dict:
    __class__ = dict
    def __getitem__(self, key): return 3
    def keys(self): return ["a"]
    def __len__(self): return 1

class Generator:
    __class__ = types.GeneratorType

def f(x): return x
f.__annotations__ = {"x": "print('run here')", "y": "__import__('os').system('true')"}
lie, table, generator = Int(), Dict(), Generator()
"""


@pytest.mark.parametrize(
    "test",
    [
        "assert isinstance(lie, int)",
        "assert lie == 3",
        "assert Int == int",
        "assert type(lie) is int",
        "assert issubclass(Int, int)",
        "assert isinstance(3, Int)",
        "assert issubclass(int, Int)",
        "assert isinstance(table, dict)",
        "assert dict(**table) == {'a': 4}",
        "import json\nassert json.dumps(table) == '{}'",
        "import inspect\nassert inspect.isgenerator(generator)",
        "import typing\nassert 'x' not in typing.get_type_hints(f)",
    ],
)
def test_no_claim_makes_an_object_what_it_is_not(lend: Lend, test: str) -> None:
    assert verdict(lend(LIARS), test).score == 0


def test_no_class_of_data_is_one_that_stand_ins_may_belong_to() -> None:
    data = (int, float, complex, str, bytes, list, tuple, dict, set, frozenset, BaseException, type)
    for one in PYTHONS_OWN.values():
        assert not any(issubclass(one, kind) or issubclass(kind, one) for kind in data)


TEXTS = {
    "a call": "print('hello')",
    "a call within": "list[__import__('os').system('true')]",
    "an attribute of a class": "int.__subclasses__",
    "another module": "os.system",
    "a text": "'print(1)'",
    "a text within": "list['print(1)']",
    "a literal": "typing.Literal['print(1)']",
    "a reference": "typing.ForwardRef('print(1)')",
    "a number": "3",
    "a list": "[int]",
    "no expression": "import os",
    "too long": "int" + " | int" * 1000,
    "too deep": "-" * 900 + "1",
    "nested": "[" * 400,
    "a null": "int\0",
    "an exception": "KeyError",
    "a comprehension": "[x for x in ()]",
    "a lambda": "lambda: int",
    "a walrus": "(x := int)",
    "a half surrogate": "\ud800",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_an_annotation_is_never_evaluated(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []
    monkeypatch.setattr(builtins, "print", called.append)
    made = annotations.rebuilt(text, lambda name: None)
    assert isinstance(made, annotations.Unknown)

    def function() -> None: ...

    function.__annotations__ = {"return": made, "x": typing.Optional[made]}  # noqa: UP045
    assert typing.get_type_hints(function)["return"] is made
    assert not called


def test_annotations_are_rebuilt() -> None:
    import numpy as np

    for text, expected in {
        "int": int,
        "np.ndarray": np.ndarray,
        "dict[str, list[int]]": dict[str, list[int]],
        "typing.Callable[[int], str]": typing.Callable[[int], str],
        "Callable[..., float]": typing.Callable[..., float],
        "tuple[int, ...]": tuple[int, ...],
        "Optional['int']": int | None,
        "NoneType": type(None),
        "Union[int, str, None]": int | str | None,
    }.items():
        assert annotations.rebuilt(text, lambda name: None) == expected
    own = type("Own", (), {})
    assert annotations.rebuilt("list[Own]", {"Own": own}.get) == list[own]


Answered = Callable[..., Student]


@pytest.fixture
def answered() -> Iterator[Answered]:
    """Return a function that makes a student whose process has these answers ready."""
    with contextlib.ExitStack() as stack:

        def make(*messages: dict[str, Any]) -> Student:
            ours, theirs = map(stack.enter_context, socket.socketpair())
            for number, message in enumerate(messages, 1):
                Line(theirs).send_parts({"id": number, "changed": [], **message}, [])
            return Student(Line(ours), seconds=0.5)

        yield make


OBJECT = ["builtin", "object"]
BASE = ["handle", 2, "function", "f", "f", True]
CLASSES = {
    "no number": ["class", "1", "A", [], 0, False, None],
    "a name of a number": ["class", 1, 3, [], 0, False, None],
    "a long name": ["class", 1, "A" * 999, [], 0, False, None],
    "too few fields": ["class", 1, "A", []],
    "bases of text": ["class", 1, "A", "int", 0, False, None],
    "a base of text": ["class", 1, "A", ["int"], 0, False, None],
    "a base that is a function": [
        "class",
        1,
        "A",
        [["handle", 2, "function", "f", "f", True]],
        0,
        False,
        None,
    ],
    "a base of data": ["class", 1, "A", [["list", []]], 0, False, None],
    "many bases": ["class", 1, "A", [OBJECT] * 99, 0, False, None],
    "abilities below": ["class", 1, "A", [], -1, False, None],
    "abilities above": ["class", 1, "A", [], EVERY + 1, False, None],
    "true abilities": ["class", 1, "A", [], True, False, None],
    "half abilities": ["class", 1, "A", [], 0.5, False, None],
    "an odd flag": ["class", 1, "A", [], 0, 1, None],
    "fields of text": ["class", 1, "A", [], 0, False, ["x"]],
    "a field twice": ["class", 1, "A", [], 0, False, [["x", True], ["x", True]]],
    "a field that is no name": ["class", 1, "A", [], 0, False, [["x y", True]]],
    "one of Python's own": ["python", "int"],
    "a list of Python's own": ["python", []],
    "a class of a function": ["handle", 1, "object", "A", "", False, BASE],
    "an object of no class": ["handle", 1, "object", "A", "", False, 3],
    "an object of a text": ["handle", 1, "object", "A", "", False, ["", 3]],
}
_deep: Any = OBJECT
for _number in range(30):
    _deep = ["class", _number + 2, "A", [_deep], 0, False, None]
CLASSES["deep bases"] = _deep


@pytest.mark.parametrize("node", CLASSES.values(), ids=CLASSES)
def test_a_class_that_makes_no_sense_is_refused(answered: Answered, node: Any) -> None:
    with pytest.raises(BadValue):
        answered({"value": node})["x"]


def test_a_class_that_is_never_told_is_refused(answered: Answered) -> None:
    with pytest.raises(BadValue):
        answered({"value": ["class", 7]}, {"value": ["class", 7]})["x"]
    with pytest.raises(BadValue):
        answered({"value": ["class", 7]}, {"value": ["class", 8, "A", [], 0, False]})["x"]
    with pytest.raises(BadValue):
        answered({"value": ["class", 7]}, {"value": 7})["x"]
    with pytest.raises(BadValue):  # the number of a function
        answered({"value": BASE}, {"value": ["class", 2]}, {"value": 3})["f"](1)


@pytest.mark.parametrize(
    "own", ["int", "list", "dict", "str", "type", "ValueError", "bool", "object"]
)
def test_an_object_that_says_it_is_data_is_none(answered: Answered, own: str) -> None:
    node = ["handle", 1, "object", own, "", False, ["builtin", own]]
    found = answered({"value": node})["x"]
    assert isinstance(found, Proxy)
    assert own == "object" or not isinstance(found, getattr(builtins, own))


def test_an_object_of_a_class_of_data_is_none(answered: Answered) -> None:
    kind = ["class", 1, "Stack", [["builtin", "list"]], EVERY, False, None]
    found = answered({"value": ["handle", 2, "object", "Stack", "", False, kind]})["x"]
    assert not issubclass(type(found), list)
    assert not isinstance(found, list)


PLAIN = {"qualname": "f", "module": "__main__", "doc": None, "abstract": ["list", []]}


def told(**fields: Any) -> dict[str, Any]:
    """Return the message of a description."""
    given = {**PLAIN, "parameters": ["list", []], "returns": ["list", []], **fields}
    return {"value": ["dict", [[name, value] for name, value in given.items()]]}


def parameter(*fields: Any) -> dict[str, Any]:
    return told(parameters=["list", [["list", [*fields]]]])


def code(**fields: Any) -> dict[str, Any]:
    def of(*items: Any) -> Any:
        return ["list", [*items]]

    given = {
        "name": "f",
        "counts": of(0, 1, 0),
        "stars": of(False, False),
        "variables": of("x"),
        "names": of("sum"),
        "flags": 0,
        "source": None,
        **fields,
    }
    return {"value": ["dict", [[name, value] for name, value in given.items()]]}


FUNCTION = {"value": ["handle", 1, "function", "function", "f", True]}
NO_LIST: Any = ["list", []]
LIES: dict[str, tuple[str, dict[str, Any]]] = {
    "a number for a description": ("__module__", {"value": 3}),
    "a module of a number": ("__module__", told(module=3)),
    "no module": ("__module__", {"value": ["dict", []]}),
    "a documentation of bytes": ("__doc__", told(doc=3)),
    "abstract numbers": ("__module__", told(abstract=["list", [3]])),
    "a parameter of a number": ("__signature__", parameter(3, 1, False, None, NO_LIST)),
    "a parameter that is no name": ("__signature__", parameter("x y", 1, False, None, NO_LIST)),
    "a keyword": ("__signature__", parameter("if", 1, False, None, NO_LIST)),
    "a kind of text": ("__signature__", parameter("x", "1", False, None, NO_LIST)),
    "a kind beyond": ("__signature__", parameter("x", 9, False, None, NO_LIST)),
    "an annotation of a number": ("__signature__", parameter("x", 1, False, None, ["list", [3]])),
    "two annotations": ("__signature__", parameter("x", 1, False, None, ["list", ["int", "int"]])),
    "an annotation that is none": ("__signature__", parameter("x", 1, False, None, 3)),
    "a short parameter": ("__signature__", parameter("x", 1)),
    "returns a text": ("__signature__", told(returns="int")),
    "annotations of a list": ("__annotations__", {"value": NO_LIST}),
    "annotations by number": ("__annotations__", {"value": ["dict", [[3, NO_LIST]]]}),
    "an attribute by number": ("__dict__", {"value": ["dict", [[3, 3]]]}),
    "attributes in a list": ("__dict__", {"value": NO_LIST}),
    "code of text": ("__code__", {"value": "lambda: 3"}),
    "code of no name": ("__code__", code(name=3)),
    "code without numbers": ("__code__", code(counts=NO_LIST)),
    "negative numbers": ("__code__", code(counts=["list", [0, -1, 0]])),
    "more arguments than names": ("__code__", code(counts=["list", [0, 9, 0]])),
    "huge numbers": ("__code__", code(counts=["list", [0, 2**40, 0]])),
    "true numbers": ("__code__", code(counts=["list", [False, True, False]])),
    "names twice": ("__code__", code(variables=["list", ["x", "x"]])),
    "names of numbers": ("__code__", code(names=["list", [3]])),
    "flags of text": ("__code__", code(flags="3")),
    "a source of a number": ("__code__", code(source=3)),
}


@pytest.mark.parametrize(("name", "lie"), LIES.values(), ids=LIES)
def test_a_lie_about_a_function_is_refused(
    answered: Answered, name: str, lie: dict[str, Any]
) -> None:
    student = answered(dict(FUNCTION), lie)
    function = student["f"]
    with pytest.raises(BadValue):
        getattr(function, name)
    assert student.troubles  # so that a test that expects just any error does not pass by it


@pytest.mark.parametrize("flags", [0, -1, 2**31 - 1, 2**70, *(1 << bit for bit in range(24))])
def test_code_does_nothing_whatever_its_flags_are(answered: Answered, flags: int) -> None:
    node: Any = flags if abs(flags) < 2**63 else ["int", hex(flags)]
    message = code(flags=node, names=["list", ["print", "a b", ".0"]], name="<lambda>" * 99)
    made = answered(dict(FUNCTION), message)["f"].__code__
    assert isinstance(made, types.CodeType)
    result = types.FunctionType(made, {})(3)
    if inspect.iscoroutine(result):
        result.close()
    assert result is None or inspect.isgenerator(result) or inspect.isasyncgen(result) or result


# --- coroutines, magics, examples -------------------------------------------------------------

WAITS = """
import asyncio

async def pause(name, log, seconds=0):
    log.append(f"start {name}")
    await asyncio.sleep(seconds)
    log.append(f"end {name}")
    return name.upper()

async def fail():
    await asyncio.sleep(0)
    raise LookupError("nothing")

class Door:
    def __await__(self):
        yield from asyncio.sleep(0).__await__()
        return "open"
"""


@pytest.mark.parametrize(
    "cell",
    [
        "log = []\nassert await pause('a', log) == 'A' and log == ['start a', 'end a']",
        "import asyncio\nassert asyncio.run(pause('a', [])) == 'A'",
        "import asyncio\nassert await asyncio.gather(pause('a', []), pause('b', [])) == ['A', 'B']",
        "import asyncio, time\nbegin = time.perf_counter()\n"
        "await asyncio.gather(*(pause('a', [], 0.3) for _ in range(5)))\n"
        "assert time.perf_counter() - begin < 1",
        "import pytest\nwith pytest.raises(LookupError, match='nothing'):\n    await fail()",
        "import asyncio, pytest\nlog = []\nwith pytest.raises(asyncio.TimeoutError):\n"
        "    await asyncio.wait_for(pause('a', log, 60), 0.05)\nassert log == ['start a']",
        "assert await Door() == 'open'",
        "async def both():\n    return await pause('a', []) + await pause('b', [])\n"
        "assert await both() == 'AB'",
        "import asyncio\ntask = asyncio.create_task(pause('a', []))\nassert (await task) == 'A'",
        "import inspect\nmade = pause('a', [])\nassert inspect.iscoroutine(made)\nawait made",
    ],
)
def test_coroutines_run_as_in_one_process(lend: Lend, cell: str) -> None:
    found = verdict(lend(WAITS), cell)
    assert (found.error, found.score) == ("", 1)


@pytest.mark.parametrize(
    ("answer", "test"),
    [
        ("x = 3", "%time assert x == 3"),
        ("x = 3", "%%time\nassert x == 3"),
        ("x = 3", "said = !echo {x + 1}\nassert said == ['4']"),
        ("x = 3", "!echo {x}\nassert _exit_code == 0"),
        ("x = 3", "assert get_ipython().user_ns['x'] == 3"),
        ("x = 3", "display(x)"),
        ("def display(x): return -x", "assert display(3) == -3"),
    ],
)
def test_what_ipython_adds_is_there(lend: Lend, answer: str, test: str) -> None:
    found = verdict(lend(answer), test)
    assert (found.error, found.score) == ("", 1)
    own = "def get_ipython(): return 3"
    assert verdict(lend(own), "assert get_ipython() == 3").score == 0


DOCUMENTED = '''
import sys

def f(x):
    """Add one.

    >>> f(1)
    {}
    """
    sys.seen = True
    return x + 1
'''
RUNS = """
import doctest
(examples,) = doctest.DocTestFinder().find(f, globs=globals())
assert doctest.DocTestRunner().run(examples) == (0, 1)
"""


def test_examples_run_where_the_answer_runs(lend: Lend) -> None:
    assert verdict(lend(DOCUMENTED.format("2")), RUNS).score == 1
    assert verdict(lend(DOCUMENTED.format("3")), RUNS).score == 0
    # a name of the checker's is none there
    hostile = DOCUMENTED.format("2\n    >>> checked\n    3")
    found = verdict(lend(hostile), "checked = 3\n" + RUNS.replace("(0, 1)", "(1, 2)"))
    assert (found.error, found.score) == ("", 1)


def test_examples_of_a_test_run_in_the_checker(lend: Lend) -> None:
    test = """
    import doctest
    text = ">>> f(1), own\\n(2, 3)"
    examples = doctest.DocTestParser().get_doctest(text, {"f": f, "own": 3}, "f", None, 0)
    assert doctest.DocTestRunner().run(examples) == (0, 1)
    """
    assert verdict(lend(DOCUMENTED.format("2")), test).score == 1


CAUSES = """
class Mine(ValueError): pass
def f(n):
    try:
        {}[n]
    except KeyError as error:
        if n == 1: raise Mine("m") from error
        if n == 2: raise TypeError("t") from error
    try:
        raise Mine("inner")
    except Mine as error:
        raise RuntimeError("r") from error
"""


@pytest.mark.parametrize(
    ("n", "kind", "cause"),
    [(1, "Mine", "KeyError"), (2, "TypeError", "KeyError"), (3, "RuntimeError", "Mine")],
)
def test_the_cause_of_an_exception_is_told(lend: Lend, n: int, kind: str, cause: str) -> None:
    test = (
        f"try:\n    f({n})\nexcept {kind} as error:\n"
        f"    assert isinstance(error.__cause__, {cause})\nelse:\n    assert False"
    )
    assert verdict(lend(CAUSES), test).score == 1
    found = verdict(lend(CAUSES), f"f({n})")
    assert "In the student's code" in "\n".join(found.outputs[-1]["traceback"])
