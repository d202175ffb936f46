"""Values arrive as they were; what is none is refused, and no method of its class is called."""

import contextlib
import datetime
import itertools
import json
import random
import tracemalloc
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from http import HTTPStatus
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import SplitResult, urlsplit
from zoneinfo import ZoneInfo

import numpy as np
import pytest
import torch
from hostile.texts import lines, sections
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gradebox.values import codec
from gradebox.values.channel import HEADER
from gradebox.values.codec import Damaged, NotAValue, Reader, Writer
from gradebox.workers import stubs


def crossed(value: Any, classes: Any = lambda module, name: None) -> Any:
    """Return a value as it arrives, by way of JSON."""
    writer = Writer()
    tree = json.loads(json.dumps(writer.write(value)))
    return Reader([bytes(part) for part in writer.parts], classes=classes).read(tree)


def ordered(value: Any) -> str:
    """Return a text that is the same for equal sets."""
    if isinstance(value, frozenset):
        return f"frozenset({sorted(map(ordered, value))})"
    return str([*map(ordered, value)]) if isinstance(value, tuple) else repr(value)


def assert_same(got: Any, expected: Any) -> None:
    """Compare types, and values to the bit."""
    assert type(got) is type(expected)
    if isinstance(expected, list | tuple):
        assert len(got) == len(expected)
        for pair in zip(got, expected, strict=True):
            assert_same(*pair)
    elif isinstance(expected, dict):
        assert_same([*got.items()], [*expected.items()])
    elif isinstance(expected, set | frozenset):
        assert_same(sorted(got, key=ordered), sorted(expected, key=ordered))
    elif isinstance(expected, np.ndarray | np.generic):
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
        assert got.tobytes() == expected.tobytes()
    else:
        assert repr(got) == repr(expected)


numbers = st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers()
scalars = hnp.from_dtype(np.dtype("f4"), allow_infinity=False) | hnp.from_dtype(np.dtype("i2"))
scalars |= hnp.from_dtype(np.dtype("M8[s]")) | st.just(np.bool_(True))
texts = st.text() | st.binary(max_size=20) | st.binary(max_size=20).map(bytearray)
leaves = numbers | texts | scalars | st.builds(slice, st.integers() | st.none())
leaves |= st.builds(range, st.integers(-99, 99)) | st.just(...)
hashed = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)
dtypes = hnp.scalar_dtypes() | hnp.unicode_string_dtypes() | hnp.byte_string_dtypes()
arrays = dtypes.flatmap(
    lambda dtype: hnp.arrays(
        dtype,
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0),
        elements=hnp.from_dtype(dtype, allow_infinity=False),
    )
)
many = st.lists(st.floats(), min_size=17, max_size=40)  # these cross as an array
values = st.recursive(
    leaves | arrays,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | many
        | many.map(tuple)
        | st.sets(hashed, max_size=4)
        | st.dictionaries(hashed, inner, max_size=4)
    ),
    max_leaves=12,
)


@given(values)
def test_value_arrives_with_its_type_and_bits(value):
    assert_same(crossed(value), value)


EAST = datetime.timezone(datetime.timedelta(hours=2), "EAST")
DAY = datetime.datetime(2026, 3, 1, 12, 30, 5, 7)
OTHERS = {
    "dtype": np.dtype("f4"),
    "torch.dtype": torch.float16,
    "Counter": Counter("hello"),
    "OrderedDict": OrderedDict(b=1, a=[2]),
    "defaultdict": defaultdict(list, {"a": [1]}),
    "defaultdict of a function": defaultdict(None, {"a": {1}}),
    "deque": deque([1, 2, 3], maxlen=4),
    "SimpleNamespace": SimpleNamespace(a=1, b=(2,)),
    "Fraction": Fraction(-2, 6),
    "Decimal": Decimal("1.10"),
    "no Decimal": Decimal("nan"),
    "Path": Path("a/../b"),
    "date": DAY.date(),
    "datetime": DAY.replace(tzinfo=EAST, fold=1),
    "time": DAY.time(),
    "time zone": DAY.replace(tzinfo=ZoneInfo("Europe/Berlin")),
    "timedelta": datetime.timedelta(-1, 3, 5),
    "timezone": datetime.UTC,
    "keys": {"a": 1, "b": 2}.keys(),
    "items": {"a": 1, "b": 2}.items(),
    "objects": np.array([[1, "a"], [None, (2.5,)]], object),
    "tensor": torch.arange(6, dtype=torch.bfloat16).reshape(2, 3).T,
    "empty tensor": torch.zeros(0, 3),
    "conjugate and negative views": torch.ones(2, dtype=torch.complex64).mul(1j).conj().imag,
    "tensor with a graph": 2 * torch.ones(2, requires_grad=True),
    "parameter": torch.nn.Parameter(torch.ones(2)),
}


def content(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.tolist(), value.shape, value.dtype, value.requires_grad
    names = ("maxlen", "default_factory", "fold", "dtype")
    return repr(value), [getattr(value, name, None) for name in names]


@pytest.mark.parametrize("value", OTHERS.values(), ids=OTHERS)
def test_values_of_the_library_arrive(value):
    got = crossed(value)
    assert type(got) is type(value)
    assert content(got) == content(value)
    assert getattr(got, "grad_fn", None) is None


@pytest.mark.parametrize(
    "coarse",
    [
        *(np.float16(2048), np.float16("inf"), np.float32("inf"), np.float16([np.inf])),
        torch.tensor([torch.inf], dtype=torch.float16),
    ],
)
def test_coarse_number_is_compared_exactly(coarse):
    """Else one that is compared with it is rounded: to infinity, or 2049 to 2048."""
    assert crossed(coarse) != 2049
    assert crossed(coarse) != 1e39


DRAWS: dict[str, Any] = {
    **{
        name: (np.random.Generator(getattr(np.random, name)(5)), lambda rng: rng.random(9).tolist())
        for name in codec._BIT_GENERATORS
    },
    "RandomState": (np.random.RandomState(5), lambda rng: rng.normal(size=9).tolist()),
    "Random": (random.Random(5), lambda rng: [rng.gauss(0, 1) for _ in range(9)]),
    "torch": (torch.Generator().manual_seed(5), lambda rng: torch.rand(9, generator=rng).tolist()),
}


@pytest.mark.parametrize(("ours", "draw"), DRAWS.values(), ids=DRAWS)
def test_random_generator_crosses_with_its_state(ours, draw):
    draw(ours)
    theirs = crossed(ours)
    assert type(theirs) is type(ours)
    assert draw(theirs) == draw(ours)


SHARED = {"random": random.random, "numpy": np.random.rand, "torch": lambda: torch.rand(1).item()}


def test_shared_generators_go_on_where_others_were():
    assert SHARED.keys() == stubs.GENERATORS.keys()
    for name, draw in SHARED.items():
        get_state, set_state = stubs.GENERATORS[name]
        state = crossed(get_state())
        drawn = draw()
        assert draw() != drawn
        set_state(state)
        assert draw() == drawn


ITEMS = {"a": 0, "b": 1, "c": 2}
ONCE = [(n for n in range(3)), map(abs, (0, 1, 2)), iter([0, 1, 2]), ITEMS.values()]


@pytest.mark.parametrize("items", ONCE, ids=lambda items: type(items).__name__)
def test_one_pass_iterable_arrives_as_an_iterator(items):
    got = crossed(items)
    assert type(items) is type(ITEMS.values()) or iter(got) is got
    assert [*got] == [0, 1, 2]


Color, Number = Enum("Color", "RED"), IntEnum("Number", "ONE")
Pair = namedtuple("Pair", "a b")


def test_known_enums_and_named_tuples_keep_their_class():
    known = {kind.__name__: kind for kind in (Color, Number, Pair, SplitResult, HTTPStatus)}
    for value in (Color.RED, Number.ONE, Pair(1, 2), urlsplit("http://a.org/b"), HTTPStatus.OK):
        got = crossed(value, lambda module, name: known[name])
        assert (type(got), got) == (type(value), value)


def test_unknown_class_becomes_plain_or_is_refused():
    for value, plain in ((Number.ONE, 1), (Pair(1, 2), (1, 2))):
        assert (type(crossed(value)), crossed(value)) == (type(plain), plain)
    with pytest.raises(NotAValue, match="a Color"):
        crossed(Color.RED)


LIES = {
    "a member of no Enum": (["member", "m", "n", "RED", 5], dict, 5),
    "no member": (["member", "m", "n", "BLUE", None], Color, Damaged),
    "no named tuple": (["named", "m", "n", ["tuple", 1]], SimpleNamespace, (1,)),
    "too many fields": (["named", "m", "n", ["tuple", 1, 2, 3]], Pair, (1, 2, 3)),
    "a method": (["named", "m", "n", ["tuple", ["handle", 0], 2]], Pair, (print, 2)),
}


@pytest.mark.parametrize(("tree", "kind", "expected"), LIES.values(), ids=LIES)
def test_false_class_becomes_plain_or_is_refused(tree, kind, expected):
    reader = Reader([], lambda *tree: print, lambda module, name: kind)
    if expected is Damaged:
        with pytest.raises(Damaged):
            reader.read(tree)
    else:
        got = reader.read(tree)
        assert (type(got), got) == (type(expected), expected)


def called(*_: Any, **__: Any) -> Any:
    pytest.fail("a method of a student's class was called")


def hostile(base: type, *arguments: Any) -> Any:
    """Return an instance of a class that derives from a base, and all of whose methods fail."""
    spared = {"__new__", "__init__", "__class__", "__init_subclass__", "__subclasshook__"}
    spared |= {"__array_finalize__", "__del__", "__dict__", "__getattribute__"}
    names = {name for name in dir(base) if callable(getattr(base, name))} - spared
    names |= {"__getattr__", "__array__", "__array_function__", "__array_ufunc__", "__iter__"}
    names |= {"__int__", "__index__", "__reduce__", "dtype", "shape"}
    value = base.__new__(type("Hostile", (base,), dict.fromkeys(names, called)), *arguments)
    if base in (list, dict, set):
        base.__init__(value, *arguments)
    return value


ARRAY = ("view", "tobytes", "__getitem__", "__len__", "__eq__", "tolist", "astype", "flat")
LIES_OF_AN_ARRAY = {"shape": (99,), "dtype": "O", "nbytes": 0}
HOSTILE_ARRAY: Any = type("Hostile", (np.ndarray,), dict.fromkeys(ARRAY, called) | LIES_OF_AN_ARRAY)
PLAIN = ["abc", 7, 2.5, [1, 2], (1, 2), {"a": 1}, {1, 2}, frozenset({3}), np.float64(2.5)]
DERIVED = [(hostile(type(content), content), content) for content in PLAIN]
DERIVED.append((np.ndarray.view(np.arange(3.0), HOSTILE_ARRAY), np.arange(3.0)))
DERIVED.append((np.ma.masked_array([1, 2, 3], [0, 1, 0]), np.array([1, 2, 3])))


@pytest.mark.parametrize("number", range(len(DERIVED)))
def test_instance_of_subclass_crosses_as_its_base(number):
    assert_same(crossed(DERIVED[number][0]), DERIVED[number][1])


class Plain:
    """An object of no built-in class."""


class Array:
    """An object that says it is an array."""

    __array_interface__ = {"data": (16, True), "shape": (8,), "typestr": "|u1", "version": 3}  # noqa: RUF012

    __array__ = __getattr__ = called


def nested(levels: int, make: Any = list, inner: Any = None) -> Any:
    value: Any = make() if inner is None else inner
    for _ in range(levels):
        value = make([value])
    return value


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
OWN_GENERATOR: Any = type("Own", (np.random.Generator,), {})
OWN_BITS: Any = type("Own", (np.random.PCG64,), {})
REFUSED = {
    "object": (Plain(), "a Plain"),
    "array-like": (Array(), "an Array"),
    "long name": (type("x" * 999, (), {})(), f"a {'x' * 80}$"),
    "function": (len, "a builtin_function_or_method"),
    "class": (Plain, "a type"),
    "exception": (ValueError("x"), "a ValueError"),
    "module": (json, "a module"),
    "memory": (memoryview(b"x"), "a memoryview"),
    "record": (np.zeros(1, [("a", int)]), "an array of"),
    "objects": (np.array([Plain()], object), "a Plain"),
    "sparse tensor": (torch.eye(2).to_sparse(), "a tensor"),
    "infinite": (itertools.repeat(1), "a repeat"),
    "infinite generator": ((number for number in itertools.count()), "more than 1000 items"),
    "cycle": (CIRCLE, "nested more than 100 deep"),
    "deep list": (nested(10_000), "nested more than 100 deep"),
    "deep tuple": (nested(10_000, tuple), "nested more than 100 deep"),
    "inside": ([{"a": (1, {2: Plain()})}], "a Plain"),
    "key": ({(1, Plain()): 1}, "a Plain"),
    "derived generator": (OWN_GENERATOR(np.random.PCG64(0)), "an Own"),
    "derived bits": (np.random.Generator(OWN_BITS(0)), "a random generator of a class of its own"),
    "many items": ([0] * 1000, "more than 1000 items"),
    "broadcast": (np.broadcast_to(np.float64(0), (2**15, 2**15)), "an array of 8192 MiB"),
}


@pytest.mark.parametrize(("value", "why"), REFUSED.values(), ids=REFUSED)
def test_unsupported_value_is_refused(value, why, monkeypatch):
    monkeypatch.setattr(codec, "ITEMS", 1000)
    with pytest.raises(NotAValue, match=why):
        Writer().write(value)


DEEPEST: dict[str, Any] = {
    "bytes": (100, list, lambda: b"x"),
    "an iterator": (98, list, lambda: iter([b"x"])),
    "a number": (100, tuple, lambda: 2**70),
    "an array": (97, list, lambda: np.arange(3)),
    "named tuples": (50, lambda items: Pair(*items, 2**70), lambda: b"x"),
    "a member": (99, list, lambda: Color.RED),
}


@pytest.mark.parametrize(("levels", "make", "inner"), DEEPEST.values(), ids=DEEPEST)
def test_deepest_value_that_is_written_is_read(levels, make, inner):
    writer = Writer()
    tree = writer.write(nested(levels, make, inner()))
    known = {"Pair": Pair, "Color": Color}
    Reader(writer.parts, classes=lambda module, name: known[name]).read(tree)
    with pytest.raises(NotAValue, match="nested more than 100 deep"):
        Writer().write(nested(levels + 1, make, inner() if levels < 100 else []))


@pytest.mark.parametrize("item", ["x" * 2**20, bytes(2**20), 1 << 2**23], ids=type)
def test_oversized_list_is_refused_without_copying(item, monkeypatch):
    monkeypatch.setattr(codec, "BYTES", codec.BYTES // 64)
    Writer().write([item] * (codec.BYTES // 2**20 - 1))
    tracemalloc.start()
    try:
        with pytest.raises(NotAValue, match="MiB at once"):
            Writer().write([item] * (codec.BYTES // 2**20 + 1))
        assert tracemalloc.get_traced_memory()[1] < 2 * codec.BYTES + 3 * 2**22
    finally:
        tracemalloc.stop()


BYTES = ["bytes", 0]
BEYOND = ["dict", *("key", ["list", *[1] * 624]), "pos", 10**9]
COUNTS = ["dict", "counter", ["list", *[1] * 4], "key", ["list", 1, 1]]
PHILOX = ["dict", *("bit_generator", "Philox", "state", COUNTS, "buffer", ["list", *[1] * 4])]
PHILOX += ["buffer_pos", -64, "has_uint32", 0, "uinteger", 0]
MESSAGES = lines(sections("tables/messages.txt")["damaged values"])
DAMAGED: dict[str, Any] = {
    **{name: json.loads(text) for name, text in MESSAGES.items()},
    "deep": nested(10_000, lambda inner=(): ["list", *inner]),
    "before its state": ["Generator", PHILOX],
    "long dtype": ["dtype", "<f8" + " " * 50],
    **{
        f"{kind} beyond its state": [kind, ["dict", "bit_generator", "MT19937", "state", BEYOND]]
        for kind in ("RandomState", "Generator")
    },
}


@pytest.mark.parametrize("tree", DAMAGED.values(), ids=DAMAGED)
def test_malformed_tree_raises_damaged_and_calls_nothing(tree):
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    with pytest.raises(Damaged):
        Reader([bytes(8), bytes(7), b"", b"x"]).read(tree)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_empty_texts_take_no_memory():
    array = Reader([b""]).read(["array", ["tuple", "<U0", ["tuple", 2**26], BYTES]])
    assert (array.shape, array.nbytes) == ((2**26,), 0)


def test_total_items_of_a_message_are_limited():
    for row, count in (["list", *[0] * 999], 1001), (["list of d", BYTES], 11):
        with pytest.raises(Damaged, match="too many"):
            Reader([bytes(8 * 100_000)]).read(["list", *[row] * count])


named = {
    tree[0] for tree in DAMAGED.values() if type(tree) is list and tree and type(tree[0]) is str
}
tags = st.sampled_from(sorted({*codec.KINDS} | named))
dtype_texts = st.sampled_from(["<f8", "|O", "|V8", "<U3", "<M8[s]", "|S0", "PCG64", "float32"])
arraylike = st.builds(
    lambda tag, dtype, shape, part: [tag, ["tuple", dtype, ["tuple", *shape], ["bytes", part]]],
    *(st.sampled_from(["array", "Tensor", "scalar"]), dtype_texts),
    *(st.lists(st.integers(-1, 3), max_size=3), st.integers(0, 3)),
)
plain = st.none() | st.booleans() | st.integers(-2, 9) | st.floats() | st.text(max_size=3)
trees = st.recursive(
    plain | dtype_texts,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.builds(lambda tag, rest: [tag, *rest], tags, st.lists(inner, max_size=4))
        | arraylike
    ),
    max_leaves=20,
)


@settings(max_examples=300)
@example(["iterator", "\x80"], [])
@given(trees, st.lists(st.binary(max_size=24), max_size=3))
def test_arbitrary_tree_is_a_value_or_damaged(tree, parts):
    with contextlib.suppress(Damaged):
        Writer().write(Reader(parts).read(tree))


def test_limits_are_exact(monkeypatch):
    assert len(Reader([]).read(["list", *[0] * codec.ITEMS])) == codec.ITEMS
    with pytest.raises(Damaged):
        Reader([]).read(["list", *[0] * (codec.ITEMS + 1)])
    assert codec.ITEMS * len("0,") < HEADER  # as a line it can come
    for number in (2**63 - 1, -(2**63)):
        assert Writer().write(number) == number
        assert Writer().write(number + (1 if number > 0 else -1))[0] == "int"
    for make, levels in ((list, codec.DEPTH), (frozenset, codec.DEPTH // 2)):
        value = nested(levels - 1, make)
        assert crossed(value) == value
        with pytest.raises(NotAValue, match="nested"):
            Writer().write(nested(levels, make))
    tree = nested(codec.DEPTH, lambda inner=(): ["list", *inner])
    Reader([]).read(tree)
    with pytest.raises(Damaged):
        Reader([]).read(["list", tree])
    monkeypatch.setattr(codec, "BYTES", 10)
    Writer().write(["x" * 9, b"x"])
    with pytest.raises(NotAValue, match="at once"):
        Writer().write(["x" * 9, b"xx"])
