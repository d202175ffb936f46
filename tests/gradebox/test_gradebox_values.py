"""Values arrive as they were; what is none is refused, and no method of its class is called."""

import contextlib
import itertools
import json
import tracemalloc
from collections import OrderedDict, namedtuple
from enum import IntEnum
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gradebox.values import codec
from gradebox.values.channel import HEADER
from gradebox.values.codec import Damaged, NotAValue, Reader, Writer

pytestmark = pytest.mark.filterwarnings("error::DeprecationWarning")


def crossed(value: Any) -> Any:
    """Return a value as it arrives, by way of JSON."""
    writer = Writer()
    tree = writer.write(value)
    return Reader([bytes(part) for part in writer.parts]).read(json.loads(json.dumps(tree)))


def ordered(value: Any) -> str:
    """Return a text that is the same for equal sets."""
    if isinstance(value, tuple | frozenset):
        inner = [*map(ordered, value)]
        return f"{type(value)}{inner if type(value) is tuple else sorted(inner)}"
    return repr(value)


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
scalars = hnp.from_dtype(np.dtype("f4")) | hnp.from_dtype(np.dtype("i2"))
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
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0))
)
values = st.recursive(
    leaves | arrays,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.sets(hashed, max_size=4)
        | st.dictionaries(hashed, inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=300)
@given(values)
def test_a_value_arrives_with_its_type_and_its_bits(value: Any) -> None:
    assert_same(crossed(value), value)


@given(st.lists(st.floats(), min_size=17, max_size=40))
def test_a_long_list_of_numbers_does_too(items: list[float]) -> None:
    for value in (items, tuple(items), [*items, 1]):
        assert_same(crossed(value), value)


OTHERS = {
    "tensor": (torch.arange(6, dtype=torch.bfloat16).reshape(2, 3).T, torch.Tensor),
    "empty tensor": (torch.zeros(0, 3), torch.Tensor),
    "with a graph": (2 * torch.ones(2, requires_grad=True), torch.Tensor),
    "parameter": (torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter),
    "dtype": (np.dtype("f4"), np.dtype("f4").__class__),
    "torch.dtype": (torch.float16, torch.dtype),
}


@pytest.mark.parametrize(("value", "kind"), OTHERS.values(), ids=OTHERS)
def test_tensors_and_types_arrive(value: Any, kind: type) -> None:
    got = crossed(value)
    assert type(got) is kind
    if isinstance(value, torch.Tensor):
        assert torch.equal(got, value)
        assert (got.dtype, got.requires_grad) == (value.dtype, value.requires_grad)
        assert got.grad_fn is None
    else:
        assert got == value


@pytest.mark.parametrize("name", codec._BIT_GENERATORS)
def test_a_generator_draws_the_same_there(name: str) -> None:
    ours = np.random.Generator(getattr(np.random, name)(5))
    ours.random(3)
    assert crossed(ours).random(9).tolist() == ours.random(9).tolist()


def test_a_generator_of_torch_draws_the_same_there() -> None:
    ours = torch.Generator().manual_seed(5)
    theirs = crossed(ours)
    assert torch.equal(torch.rand(3, generator=ours), torch.rand(3, generator=theirs))


ONCE = {
    "generator": lambda: (number for number in range(3)),
    "map": lambda: map(abs, (0, 1, 2)),
    "iterator": lambda: iter([0, 1, 2]),
}


@pytest.mark.parametrize("make", ONCE.values(), ids=ONCE)
def test_what_is_gone_through_once_arrives_as_an_iterator(make: Any) -> None:
    got = crossed(make())
    assert iter(got) is got
    assert [*got] == [0, 1, 2]


def test_views_of_a_dict_arrive() -> None:
    mapping = {"a": 1, "b": 2}
    for view in (mapping.keys(), mapping.items()):
        assert crossed(view) == view
    assert [*crossed(mapping.values())] == [1, 2]


def test_an_array_of_objects_arrives_with_its_values() -> None:
    value = np.array([[1, "a"], [None, (2.5,)]], object)
    got = crossed(value)
    assert (got.dtype, got.tolist()) == (value.dtype, value.tolist())


# --- classes of a student's -------------------------------------------------------------------


class Called(Exception):
    """A method of a student's class was called."""


def hostile(base: type, *arguments: Any, **namespace: Any) -> Any:
    """Return an instance of a class that derives from a base, and all of whose methods raise."""

    def method(*_: Any, **__: Any) -> Any:
        raise Called

    spared = {"__new__", "__init__", "__class__", "__init_subclass__", "__subclasshook__"}
    spared |= {"__array_finalize__", "__del__", "__dict__", "__getattribute__"}
    methods = {
        name: method for name in dir(base) if callable(getattr(base, name)) and name not in spared
    }
    more = ("__getattr__", "__array__", "__array_function__", "__array_ufunc__", "__iter__")
    methods |= dict.fromkeys(
        (*more, "__int__", "__index__", "__reduce__", "dtype", "shape"), method
    )
    value = base.__new__(type("Hostile", (base,), methods | namespace), *arguments)
    if base in (list, dict, set):
        base.__init__(value, *arguments)
    return value


HOSTILE = {
    "str": ("abc", "abc"),
    "int": (7, 7),
    "float": (2.5, 2.5),
    "list": ([1, 2], [1, 2]),
    "tuple": ((1, 2), (1, 2)),
    "dict": ({"a": 1}, {"a": 1}),
    "set": ({1, 2}, {1, 2}),
    "frozenset": (frozenset({3}), frozenset({3})),
    "float64": (np.float64(2.5), np.float64(2.5)),
}


@pytest.mark.parametrize(("content", "expected"), HOSTILE.values(), ids=HOSTILE)
def test_an_instance_of_a_derived_class_crosses_as_the_base(content: Any, expected: Any) -> None:
    assert_same(crossed(hostile(type(content), content)), expected)


def test_so_does_an_array_of_a_derived_class() -> None:
    names = ("view", "tobytes", "__getitem__", "__len__", "__eq__", "tolist", "astype", "flat")
    lies = {"shape": property(lambda self: (99,)), "dtype": property(lambda self: "O")}
    lies |= {"nbytes": property(lambda self: 0)}

    def method(*_: Any) -> Any:
        raise Called

    kind: Any = type("Hostile", (np.ndarray,), dict.fromkeys(names, method) | lies)
    assert_same(crossed(np.ndarray.view(np.arange(3.0), kind)), np.arange(3.0))


def test_a_masked_array_crosses_as_its_data() -> None:
    assert_same(crossed(np.ma.masked_array([1, 2, 3], [0, 1, 0])), np.array([1, 2, 3]))


def test_so_do_those_of_libraries() -> None:
    class Color(IntEnum):
        RED = 1

    pair = namedtuple("pair", "a b")(1, 2)
    got = [crossed(value) for value in (Color.RED, pair, OrderedDict(a=1), True)]
    assert [(type(value), value) for value in got] == [
        (int, 1),
        (tuple, (1, 2)),
        (dict, {"a": 1}),
        (bool, True),
    ]


# --- refusals ---------------------------------------------------------------------------------


class Plain:
    """An object of no built-in class."""


class Array:
    """An object that says it is an array."""

    __array_interface__ = {"data": (16, True), "shape": (8,), "typestr": "|u1", "version": 3}  # noqa: RUF012

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise Called

    def __getattr__(self, name: str) -> Any:
        raise Called


class Meta(type):
    """A class whose name is asked of nobody."""

    @property
    def __name__(cls) -> Any:  # type: ignore[override]
        raise Called


def nested(levels: int, make: Any = list) -> Any:
    value: Any = make()
    for _ in range(levels):
        value = make([value])
    return value


def circular() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


REFUSED = {
    "object": (Plain(), "a Plain"),
    "array-like": (Array(), "an Array"),
    "class of a class": (Meta("Own", (), {})(), "an Own"),
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
    "infinite generator": ((number for number in itertools.count()), "more than 1000000 items"),
    "cycle": (circular(), "nested more than 100 deep"),
    "deep list": (nested(10_000), "nested more than 100 deep"),
    "deep tuple": (nested(10_000, tuple), "nested more than 100 deep"),
    "inside": ([{"a": (1, {2: Plain()})}], "a Plain"),
    "key": ({(1, Plain()): 1}, "a Plain"),
    "derived generator": (
        type("Own", (np.random.Generator,), {})(np.random.PCG64(0)),
        "an Own",
    ),
    "many items": ([0] * codec.ITEMS, "more than 1000000 items"),
    "broadcast": (np.broadcast_to(np.float64(0), (2**15, 2**15)), "an array of 8192 MiB"),
}


@pytest.mark.parametrize(("value", "why"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_value_is_refused(value: Any, why: str) -> None:
    with pytest.raises(NotAValue, match=why):
        Writer().write(value)


def test_a_generator_that_raises_raises_that() -> None:
    with pytest.raises(ZeroDivisionError):
        Writer().write(1 // number for number in (1, 0))


@pytest.mark.parametrize(
    "value",
    [
        ["x" * 2**20] * (codec.BYTES // 2**20 + 1),
        [bytes(2**20)] * (codec.BYTES // 2**20 + 1),
        [1 << 2**23] * (codec.BYTES // 2**20 + 1),
    ],
    ids=["texts", "bytes", "integers"],
)
def test_what_is_too_much_together_is_refused_without_a_copy_of_it(
    value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codec, "BYTES", codec.BYTES // 64)
    tracemalloc.start()
    try:
        with pytest.raises(NotAValue, match="MiB at once"):
            Writer().write(value)
        assert tracemalloc.get_traced_memory()[1] < 2 * codec.BYTES + 3 * 2**22
    finally:
        tracemalloc.stop()


# --- what is read -----------------------------------------------------------------------------

N = 2**40
DAMAGED: dict[str, Any] = {
    "dict": {"a": 1},
    "empty": [],
    "no tag": [1],
    "unknown": ["exec", "print(1)"],
    "deep": nested(10_000, lambda inner=(): ["list", *inner]),
    "set of lists": ["set", ["list"]],
    "keys of lists": ["keys", ["list"]],
    "odd dict": ["dict", 1],
    "unhashable key": ["dict", ["list"], 1],
    "items of three": ["items", ["list", 1, 2, 3]],
    "int": ["int", "z"],
    "int without text": ["int"],
    "huge int": ["int", "-" * 10],
    "complex": ["complex", "a", 1],
    "range": ["range", 0, 1, 0],
    "endless range": ["range", 0.5],
    "part": ["bytes", 7],
    "negative part": ["bytes", -1],
    "true part": ["bytes", True],
    "text part": ["bytes", "0"],
    "object dtype": ["array", "|O", [1], 0],
    "structure": ["array", "V8", [1], 0],
    "list dtype": ["array", [["a", "<i8"]], [1], 0],
    "odd dtype": ["array", "<f3", [1], 0],
    "lying dtype": ["array", "<f8", [2], 0],
    "bytes left over": ["array", "<f4", [1], 0],
    "lying shape": ["array", "<f8", [N, N], 0],
    "negative shape": ["array", "<f8", [-1], 0],
    "huge empty": ["array", "<f8", [0, N], 0],
    "many axes": ["array", "|u1", [1] * 33, 0],
    "wide nothing": ["array", "<U0", [2**27] * 3, 0],
    "scalar of two": ["scalar", "<f8", 1],
    "scalar object": ["scalar", "|O", 0],
    "objects": ["objects", [3], ["list", 1]],
    "objects of text": ["objects", [3], "abc"],
    "doubles": ["list of d", 1],
    "bit generator": ["Generator", ["dict", "bit_generator", "BitGenerator"]],
    "no state": ["Generator", 3],
    "half a state": ["Generator", ["dict", "bit_generator", "PCG64", "state", 3]],
    "tensor": ["Tensor", "float64", [2], False, 0],
    "no tensor": ["Tensor", "load", [1], False, 0],
    "integers that learn": ["Tensor", "int64", [1], True, 0],
    "torch dtype": ["torch.dtype", "nn"],
    "torch generator": ["torch.Generator", 0],
}


@pytest.mark.parametrize("tree", DAMAGED.values(), ids=DAMAGED)
def test_a_tree_of_no_value_is_damaged(tree: Any) -> None:
    with pytest.raises(Damaged):
        Reader([bytes(8), bytes(7)]).read(tree)


def test_empty_texts_take_no_memory() -> None:
    array = Reader([b""]).read(["array", "<U0", [2**26], 0])
    assert (array.shape, array.nbytes) == ((2**26,), 0)


def test_a_generator_names_no_function_that_is_called() -> None:
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    with pytest.raises(Damaged):
        Reader([]).read(["Generator", ["dict", "bit_generator", "seed"]])
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_items_of_a_message_are_limited_in_all() -> None:
    rows = ["list", *(["list", *[0] * 999] for _ in range(1001))]
    with pytest.raises(Damaged, match="too many"):
        Reader([]).read(rows)
    rows = ["list", *(["list of d", 0] for _ in range(11))]
    with pytest.raises(Damaged, match="too many"):
        Reader([bytes(8 * 100_000)]).read(rows)


named = {
    tree[0] for tree in DAMAGED.values() if type(tree) is list and tree and type(tree[0]) is str
}
tags = st.sampled_from(sorted({*codec._SEQUENCES} | named))
dtype_texts = st.sampled_from(["<f8", "|O", "|V8", "<U3", "<M8[s]", "|S0", "PCG64", "float32"])
trees = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 9)
    | st.floats()
    | st.text(max_size=3)
    | dtype_texts,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.builds(lambda tag, rest: [tag, *rest], tags, st.lists(inner, max_size=4))
        | st.builds(
            lambda tag, dtype, shape, part: [tag, dtype, shape, part],
            *(st.sampled_from(["array", "Tensor", "scalar"]), dtype_texts),
            *(st.lists(st.integers(-1, 3), max_size=3), st.integers(0, 3)),
        )
    ),
    max_leaves=20,
)


@settings(max_examples=600)
@given(trees, st.lists(st.binary(max_size=24), max_size=3))
def test_whatever_comes_is_a_value_or_damaged(tree: Any, parts: list[bytes]) -> None:
    with contextlib.suppress(Damaged):
        Writer().write(Reader(parts).read(tree))


def test_a_line_is_read_that_is_as_long_as_any() -> None:
    assert len(Reader([]).read(["list", *[0] * (codec.ITEMS - 1)])) == codec.ITEMS - 1
    assert codec.ITEMS * len("0,") < HEADER
