"""Objects that both processes know: the tests' in the student's hands, and the other way round."""

import io
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import MagicMock, Mock

import numpy as np
import pytest
import torch
from test_gradebox_proxy import Lend, bad_kind, lend, server, verdict
from torch import nn

from gradebox.codec.encoding import BadValue, Decoder, Encoder, Unsendable
from gradebox.line import lent
from gradebox.line.derived import plan
from gradebox.line.proxy import Student
from gradebox.line.twins import MOST, Twins

__all__ = ["lend", "server"]  # fixtures

pytestmark = pytest.mark.xdist_group("gradebox")

# --- objects of the tests' ---------------------------------------------------------------------


class Ship:
    """What a test cell may define."""

    flag = "white"

    def __init__(self, crew: list[str]) -> None:
        self.crew, self._secret, self.speed = crew, "expected", 3

    def sail(self, n: int) -> int:
        return n * self.speed

    @property
    def size(self) -> int:
        return len(self.crew)

    def __len__(self) -> int:
        return len(self.crew)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ship) and other.crew == self.crew

    def __hash__(self) -> int:
        return hash(tuple(self.crew))


Ship.__module__ = "__main__"  # as in a test cell

ASK = """
def sail(ship, n):
    ship.speed += 1
    return ship.sail(n), ship.size, ship.flag, len(ship)

def first(items):
    return next(iter(items))

def tries(what, *args):
    try:
        return what(*args)
    except Exception as error:
        return type(error).__name__

def read(x, name):
    return tries(getattr, x, name)

def write(x, name, value):
    return tries(setattr, x, name, value)

def do(x, how, *args):
    import operator
    return tries(getattr(operator, how), x, *args)

def same(x, y):
    return x == y, x is y, hash(x) == hash(y), bool(x)

def copy_lines(source, target):
    with source:
        for line in source:
            target.write(line.upper())

def made(kind, *args):
    box = kind(*args)
    return box, isinstance(box, kind), isinstance(3, kind)
"""


def test_an_object_of_a_test_is_used_as_in_one_process(lend: Lend) -> None:
    student = lend(ASK)
    ship = Ship(["Ann", "Bo"])
    assert student["sail"](ship, 2) == (8, 2, "white", 2)
    assert ship.speed == 4
    assert student["same"](ship, ship) == (True, True, True, True)
    assert student["same"](ship, Ship(["Ann", "Bo"])) == (True, False, True, True)
    made, is_one, is_other = student["made"](Ship, ["Cy"])
    assert type(made) is Ship
    assert (made.crew, is_one, is_other) == (["Cy"], True, False)
    assert student["first"](item for item in "xyz") == "x"
    source, target = io.StringIO("a\nb\n"), io.StringIO()
    student["copy_lines"](source, target)
    assert target.getvalue() == "A\nB\n"
    assert source.closed
    mock = MagicMock()
    mock.total.return_value = 5
    mock.__getitem__.return_value = "item"
    assert student["read"](mock, "total")(1) == 5
    assert student["do"](mock, "getitem", "key") == "item"
    mock.total.assert_called_once_with(1)
    mock.__getitem__.assert_called_once_with("key")


def secret_generator() -> Iterator[int]:
    yield 1


def closure() -> Callable[[], int]:
    expected = 42
    return lambda: expected


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (secret_generator(), "gi_frame"),
        (secret_generator(), "gi_code"),
        (closure(), "__globals__"),
        (closure(), "__closure__"),
        (Ship([]).sail, "__self__"),
        (Ship([]).sail, "func"),
        (Ship([]), "_secret"),
        (Ship, "mro"),
        (io.StringIO(), "detach"),
        (io.BufferedReader(io.BytesIO()), "raw"),
        (Mock(), "call_count"),
        (Mock(), "mock_calls"),
        (Mock(), "assert_called"),
        (torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=1).step, "__self__"),
        (np.add, "reduce"),
        (print, "__self__"),
    ],
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)
def test_what_leads_to_the_tests_is_not_told(lend: Lend, value: Any, name: str) -> None:
    student = lend(ASK)
    assert student["read"](value, name) in ("Unsendable", "AttributeError")
    assert student["write"](value, name, 3) in ("Unsendable", "AttributeError")


def test_what_a_test_asks_afterwards_is_not_changed(lend: Lend) -> None:
    student = lend(ASK)
    mock, ship = Mock(), Ship(["Ann"])
    for name in ("call_count", "called", "return_value", "side_effect", "assert_called"):
        assert student["write"](mock, name, 3) == "Unsendable"
    for name in ("sail", "_secret", "__class__"):
        assert student["write"](ship, name, 3) in ("Unsendable", "AttributeError")
    assert student["write"](Ship, "flag", "black") == "Unsendable"
    assert student["do"](ship, "add", 1) == "TypeError"
    assert student["do"](secret_generator(), "getitem", 0) == "TypeError"
    with pytest.raises(AssertionError):
        mock.assert_called()
    assert (ship.sail(1), Ship.flag) == (3, "white")


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("getattr", ()),
        ("getattr", (Ship([]), 3)),
        ("getattr", (Ship([]), "speed", 0)),
        ("operate", ("eval", "1")),
        ("operate", (3, 4)),
        ("operate", ("add",)),
        ("next", ()),
        ("exit", (1, 2)),
    ],
)
def test_a_question_of_another_form_is_refused(question: str, value: Any) -> None:
    with pytest.raises(BadValue):
        lent.answer(question, value)


@pytest.mark.parametrize("value", [object(), io, [object()], torch.Generator, {1: io}])
def test_what_is_lent_is_chosen(value: Any) -> None:
    assert lent.may_lend(value) is (value is torch.Generator)  # a class may be called


def test_an_iterator_of_a_library_is_not_advanced() -> None:
    for value in (np.nditer(np.arange(3)), iter(torch.utils.data.DataLoader([1, 2]))):
        with pytest.raises(Unsendable):
            lent.answer("next", (value,))


# --- objects of classes that derive from data --------------------------------------------------

DERIVED = """
import enum
import typing

class Title(str):
    def initials(self): return "".join(word[0] for word in self.split())
    def upper(self): return "UP"
    def __eq__(self, other): return True
    __hash__ = str.__hash__

class Vector(tuple):
    def __add__(self, other): return Vector(a + b for a, b in zip(self, other))
    def __radd__(self, other): return "reflected"
    def __repr__(self): return f"Vector{tuple(self)}"

class Stack(list):
    def push(self, x): self.append(x)
    def __getitem__(self, key): return list.__getitem__(self, key) * 10

class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2

class Point(typing.NamedTuple):
    x: float
    y: float
    def norm(self): return (self.x**2 + self.y**2) ** 0.5

class Plain(typing.NamedTuple):
    x: int

class Bare(dict): pass

class Tagged(float):
    def __new__(cls, x, unit):
        made = super().__new__(cls, x)
        made.unit = unit
        return made

class Sly(float):
    def __sub__(self, other): return 0.0
    def __rsub__(self, other): return 0.0
    def __abs__(self): return 0.0

def give(kind, *args): return kind(*args)
sly = Sly(1.0)
def size(x): return type(x).__name__, len(x)
title, vector, level = Title("war and peace"), Vector((1, 2)), Level.HIGH
"""


def test_objects_that_derive_from_data_are_both(lend: Lend) -> None:
    student = lend(DERIVED)
    title = student["title"]
    assert isinstance(title, str)
    assert (title.initials(), title.upper(), title.lower()) == ("wap", "UP", "war and peace")
    assert title == "war and peace"
    assert title != "another"  # whatever its class says
    vector = student["vector"]
    other: Any = (3, 4)
    assert vector + other == (4, 6)
    assert other + vector == "reflected"
    assert (repr(vector), vector[0]) == ("Vector(1, 2)", 1)
    stack = student["give"](student["Stack"], [1, 2])
    stack.push(3)
    assert stack == [1, 2, 3]
    stack.append(4)
    assert student["size"](stack) == ("Stack", 4)
    assert stack[0] == 10
    level = student["level"]
    assert (level, level.name, level + 1, str(level)) == (2, "HIGH", 3, "2")
    assert level is student["Level"].HIGH
    point = student["give"](student["Point"], 3.0, 4.0)
    assert (point, point.x, point.norm()) == ((3, 4), 3, 5)
    plain = student["give"](student["Plain"], 1)
    assert (type(plain).__name__, plain.x, plain) == ("Plain", 1, (1,))
    assert type(student["give"](student["Bare"], {1: 2})) is dict
    tagged = student["give"](student["Tagged"], 2.5, "m")
    assert (tagged * 2, tagged.unit) == (5.0, "m")


def test_what_adds_nothing_is_data() -> None:
    for kind in (int, bool, np.float64, np.str_, torch.Size, list, np.matrix, type(None)):
        assert plan(kind) is None


@pytest.mark.parametrize(
    "node",
    [
        ["derived"],
        ["derived", 1, 1, "int", []],
        ["derived", 1, 0, "A", [], False],
        ["derived", 1, 1, "a b", [], False],
        ["derived", 1, 1, "A", ["x y"], False],
        ["derived", 1, 1, "A", 3, False],
        ["derived", 1, 1, "A", [], 1],
        ["derived", None, 1, "A", [], False],
        ["derived", True, 1, "A", [], False],
        ["derived", ["array", "<f8", [0], True], 1, "A", [], False],
        ["derived", ["held", 1], 1, "A", [], False],
        ["derived", ["twin", 1, ["list", []]], 1, "A", [], False],
    ],
    ids=str,
)
def test_an_object_that_is_no_data_is_refused(lend: Lend, node: Any) -> None:
    student = lend("x = [1]")
    student.twins._hold(1, [])
    with pytest.raises(BadValue):
        student._decoder([b""]).decode(node)


# --- containers that both hold -----------------------------------------------------------------

KEEPS = """
import numpy as np
board = [[0, 0], [0, 0]]
weights = np.zeros(3)

class Bag:
    def __init__(self, items): self.items = items
    def total(self): return sum(self.items)
    def put(self, x): self.items.append(x)

def play(): board[1][1] += 1
def state(): return board, board[1]
def size(): return weights.sum()
def fresh(): return [[1], [2]]
def shrink(): weights.resize(2, refcheck=False)
"""


def held(student: Student) -> int:
    """Return how many containers are held, after the student has heard of those that are not."""
    student.names()
    return len(student.twins._held)


def test_a_container_that_both_hold_is_one(lend: Lend) -> None:
    student = lend(KEEPS)
    board = student["board"]
    board[0][0] = "X"
    student["play"]()
    assert board == [["X", 0], [0, 1]]
    assert student["state"]()[0] is board
    assert student["state"]()[1] is board[1]
    row = board[1]
    del board
    assert held(student) == 1
    student["play"]()
    assert row == [0, 2]
    del row
    assert held(student) == 0
    weights = student["weights"]
    weights += 1
    assert student["size"]() == 3
    student["fresh"]()
    assert student["fresh"]() == [[1], [2]]
    del weights
    assert held(student) == 0


TAKES = """
def takes(*values, **named): return 1
def keeps(*values): bag.extend(values)
def forgets(): bag.clear()
bag = []
"""


@pytest.mark.parametrize(
    "value",
    [
        [1, 2],
        [[1], [2, [3]]],
        {"a": {"b": []}},
        np.ones(3),
        torch.ones(3),
        nn.Parameter(torch.ones(3)),
        nn.Sequential(nn.Linear(2, 3), nn.ReLU()),
    ],
    ids=["list", "nested", "dict", "array", "tensor", "parameter", "network"],
)
def test_what_an_answer_does_not_keep_is_held_by_nobody(lend: Lend, value: Any) -> None:
    student = lend(TAKES)
    for call in (lambda: student["takes"](value), lambda: student["takes"](0, more=value)):
        call()
        assert len(student.twins._held) == 0
    student["keeps"](value)
    assert len(student.twins._held) > 0
    student["forgets"]()
    assert held(student) == 0


PARTS = """
bag = []
def keep(value): bag.append(value)
def inner(): return bag[0][0]["a"][0]
def weight(): return float(bag[0][0].weight[0, 0])
def same_list(value): return value[0]["a"] is bag[0][0]["a"]
def same_weight(layer): return layer.weight is bag[0][0].weight
"""


ALIASES = """
state = {}
def save(network): state.update(network.state_dict())
def look(network): pass
def saved(): return float(state["0.weight"][0, 0])
def forget(): state.clear()
"""


def test_a_part_of_what_an_answer_keeps_is_kept(lend: Lend) -> None:
    student, value = lend(PARTS), [{"a": ["before"]}]
    student["keep"](value)
    value[0]["a"][0] = "after"
    assert student["inner"]() == "after"
    assert student["same_list"](value)
    student, network = lend(PARTS), nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    student["keep"](network)
    with torch.no_grad():
        network[0].weight.fill_(7)
    assert student["weight"]() == 7
    assert student["same_weight"](network[0])
    student = lend(ALIASES)
    student["save"](network)
    with torch.no_grad():
        network[0].weight.fill_(8)
    student["look"](network)
    assert student["saved"]() == 8, "state_dict() gives no copies"
    student["forget"]()
    assert held(student) == 0
    student, value = lend("def loop(x): x.append((x,)); kept.append(x)\nkept = []"), [0]
    student["loop"](value)  # it ends


def test_a_container_of_a_test_that_the_answer_keeps_is_one(lend: Lend) -> None:
    student = lend(KEEPS)
    given = [1, 2]
    bag = student["Bag"](given)
    given.append(3)
    assert bag.total() == 6
    bag.put(4)
    assert given == [1, 2, 3, 4]
    assert bag.items is given
    assert held(student) == 1
    del bag
    student.names()
    assert held(student) == 0


def test_an_array_of_another_shape_is_another_one(lend: Lend) -> None:
    student = lend(KEEPS)
    before = student["weights"]
    student["shrink"]()
    assert before.shape == (3,)
    assert student["weights"].shape == (2,)


@pytest.mark.parametrize("number", [0, -1, 2, None, "1", True, 1.0, 2**70])
def test_a_number_that_nobody_gave_is_refused(number: Any) -> None:
    twins = Twins(of_student=False)
    twins._hold(1, [])
    decoder = Decoder([], bad_kind, twins=twins)
    with pytest.raises(BadValue):
        decoder.decode(["held", number])
    with pytest.raises(BadValue):
        twins.hear([[number, ["list", []]]], decoder)


@pytest.mark.parametrize(
    "news", [3, [3], [[1]], [[1, ["dict", []]]], [[1, ["list", []], 0]], [[1, ["held", 9]]]]
)
def test_news_that_make_no_sense_are_refused(news: Any) -> None:
    twins = Twins(of_student=False)
    twins._hold(1, ["kept"])
    with pytest.raises(BadValue):
        twins.hear(news, Decoder([], bad_kind, twins=twins))
    assert twins.find(1) == ["kept"]


@pytest.mark.parametrize("number", [1, 0, "x", None, -(2**64)])
def test_what_is_said_to_be_kept_has_a_new_number(number: Any) -> None:
    with pytest.raises(BadValue):
        Twins(of_student=False).lent([], number)


def test_so_many_are_held_at_once() -> None:
    twins = Twins(of_student=True)
    kept = [[n] for n in range(MOST + 9)]
    nodes = [Encoder(lambda value: None, twins=twins, lends=True).encode(one) for one in kept]
    assert [node[0] for node in nodes] == ["twin"] * MOST + ["list"] * 9
    tests = Twins(of_student=False)
    told = ["list", [["twin", number, ["list", []]] for number in range(1, 3 * MOST)]]
    with pytest.raises(BadValue):
        Decoder([], bad_kind, twins=tests).decode(told)


def test_a_value_that_nobody_keeps_is_a_copy() -> None:
    def node(make: Callable[[], Any]) -> Any:
        result = make()
        return Encoder(lambda value: None, twins=Twins(of_student=True), lends=True).encode(result)

    kept, whole = [1], np.arange(6)
    assert "twin" not in str(node(lambda: [[1], {"a": [2]}, ([3], {4}), np.zeros(2)]))
    assert node(lambda: [kept])[1][0][:2] == ["twin", 1]
    assert node(lambda: {"a": kept})[1][0][1][:2] == ["twin", 1]
    assert node(lambda: kept)[0] == "twin"
    assert "twin" not in str(node(lambda: {"a": 1}.keys()))
    assert node(lambda: np.arange(6).reshape(2, 3))[0] == "array"
    assert node(lambda: whole[:3])[0] == "twin"


def test_a_test_of_an_object_that_derives_from_data_may_be_doubted(lend: Lend) -> None:
    found = verdict(lend(DERIVED), "assert title == 'another'")
    assert (found.score, found.doubt) == (0, "a stand-in for a Title")


@pytest.mark.parametrize("test", ["abs(sly - 3.0) < 1e-9", "abs(3.0 - sly) < 1e-9", "sly == 3"])
def test_a_number_that_subtracts_as_it_likes_is_the_number_that_it_is(
    lend: Lend, test: str
) -> None:
    assert verdict(lend(DERIVED), f"assert {test}").score == 0
    assert verdict(lend(DERIVED), "assert sly - 3 == -2 and sly - sly == 0").score > 0
