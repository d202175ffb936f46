"""Test cells run in a checker; the student's process lends names, and is not believed."""

import contextlib
import copy
import inspect
import io
import json
import math
import os
import random
import signal
import socket
import threading
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hang import HANG
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gradebox.codec import encoding, generators, tensors
from gradebox.codec.draws import Draws
from gradebox.codec.encoding import BadValue, Decoder, Encoder, Limits, Unsendable
from gradebox.line.inspection import documentation_of
from gradebox.line.lender import Lender
from gradebox.line.peer import MOST_PRINTED, StudentError, StudentGone, StudentTimeout
from gradebox.line.proxy import Proxy, Student
from gradebox.line.wire import Gone, Line, TooLong
from gradebox.process.client import ForkServer, NotebookProcess
from gradebox.process.verdict import Checker, Verdict
from gradebox.sandbox.deadline import Deadline
from gradebox.sandbox.own_time import OwnTime
from gradebox.sandbox.seal import Level

pytestmark = pytest.mark.xdist_group("gradebox")

NOTEBOOK = Path(__file__).parents[1] / "solutions" / "erm" / "erm.ipynb"

LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
resource.setrlimit(resource.RLIMIT_AS, (16 * 2**30, 16 * 2**30))
"""

LEND = """
def _lend(path):
    import socket
    from gradebox.line.lender import serve_names
    from gradebox.line.wire import Line
    with socket.socket(socket.AF_UNIX) as end:
        end.connect(path)
        serve_names(Line(end), globals())
_lend({!r})
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    warm = ForkServer(("numpy", "torch"))
    yield warm
    warm.close()


Lend = Callable[..., Student]


@pytest.fixture
def lend(server: ForkServer, tmp_path: Path) -> Iterator[Lend]:
    """Return a function that runs cells in a process of their own and lends their names."""
    with contextlib.ExitStack() as stack:

        def make(*cells: str, **more: Any) -> Student:
            process = stack.enter_context(server.notebook(tmp_path, {}, level=Level.NONE))
            for cell in (LIMITED, *cells):
                assert process.run(cell, HANG)[0].ok, cell
            path = str(tmp_path / f"line{process.pid}")
            with socket.socket(socket.AF_UNIX) as door:
                door.bind(path)
                door.listen()
                door.settimeout(HANG)
                waits = threading.Thread(target=_run, args=(process, LEND.format(path)))
                waits.start()
                stack.callback(waits.join)
                stack.callback(process.kill)
                end, _ = door.accept()
            stack.enter_context(end)
            more.setdefault("interrupt", lambda: os.kill(process.pid, signal.SIGINT))
            # own time, so that honest answers are in time on a busy machine
            more.setdefault("clock", OwnTime(os.getpid(), process.pid).seconds)
            return Student(Line(end), **more)

        yield make


def run_tests(
    cells: Sequence[str], student: Student, points: Sequence[float], **settings: Any
) -> list[Verdict]:
    """Run test cells one after another with one checker."""
    checker = Checker(student, **settings)
    return [checker.run(cell, worth) for cell, worth in zip(cells, points, strict=True)]


def _run(process: NotebookProcess, cell: str) -> None:
    with contextlib.suppress(Exception):  # the process may be killed meanwhile
        process.run(cell, HANG)


def verdict(student: Student, *cells: str, points: float = 4, **more: Any) -> Verdict:
    """Return the verdict of the last cell."""
    return run_tests(cells, student, [points] * len(cells), **more)[-1]


# --- plain data -------------------------------------------------------------------------------


def no_handle(value: Any) -> Any:
    raise Unsendable(f"no plain data: {type(value).__name__}")


def bad_kind(node: Any) -> Any:
    raise BadValue(f"unknown kind {node[0]!r}")


def there(value: Any, limits: Limits = encoding.LIMITS) -> Any:
    """Return what arrives: through JSON text, as on the wire."""
    encoder = Encoder(no_handle, limits=limits)
    node = json.loads(json.dumps(encoder.encode(value)))
    decoder = Decoder(encoder.parts, bad_kind, limits=limits)
    arrived = decoder.decode(node)
    decoder.finish()
    assert len(decoder.numbered) == len(encoder.numbered)
    return arrived


def same(left: Any, right: Any) -> bool:
    """Return whether two values are equal in type, content and bits."""
    if type(left) is not type(right):
        return hasattr(left, "_fields") and same(tuple(left), tuple(right))
    if isinstance(left, np.ndarray | np.generic):
        if left.dtype != right.dtype or left.shape != right.shape:
            return False
        return left.tobytes() == right.tobytes()
    if isinstance(left, torch.Tensor):
        if left.dtype != right.dtype or left.requires_grad != right.requires_grad:
            return False
        return (
            left.shape == right.shape
            and torch.equal(left.isnan(), right.isnan())
            and bool(torch.where(left.isnan(), True, left == right).all())
        )
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, np.random.Generator):
        return same(left.bit_generator.state, right.bit_generator.state)
    if isinstance(left, float | complex):
        return repr(left) == repr(right)
    return bool(left == right)


KEYS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.binary(max_size=5)
)
SCALARS = st.one_of(
    KEYS,
    st.floats(),
    st.complex_numbers(allow_nan=True),
    st.integers(-(2**4000), 2**4000),
    st.builds(slice, st.none() | st.integers(), st.integers(), st.none()),
    st.builds(range, st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 3)),
    st.just(...),
    st.binary().map(bytearray),
    st.frozensets(KEYS, max_size=3),
)
DTYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
    hnp.complex_number_dtypes(endianness="?", sizes=(64, 128)),
    hnp.datetime64_dtypes(),
    hnp.timedelta64_dtypes(),
    hnp.unicode_string_dtypes(),
    hnp.byte_string_dtypes(),
)
ARRAYS = hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, min_side=0, max_side=3))
TENSORS = st.builds(
    lambda data, dtype: torch.tensor(data).to(getattr(torch, dtype)),
    st.lists(st.integers(0, 100)) | st.integers(0, 100),
    st.sampled_from(sorted(tensors.DTYPES)),
)
VALUES = st.recursive(
    SCALARS | ARRAYS | ARRAYS.map(lambda array: array.flat[0] if array.size else 0) | TENSORS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(KEYS, inner, max_size=4),
        st.sets(KEYS, max_size=4),
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(VALUES)
def test_what_arrives_is_what_was_sent(value: Any) -> None:
    assert same(there(value), value)


Point = namedtuple("Point", "x y")


class Odd(float):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = float.__hash__


def test_subclasses_arrive_as_their_base() -> None:
    class Rows(list):  # type: ignore[type-arg]
        pass

    assert there(Point(1, [2])) == (1, [2])
    assert there(Point(1, 2)).y == 2
    assert type(there(Point(1, 2))) is not Point
    assert type(there(Odd(2))) is float
    assert type(there(Rows([1]))) is list
    assert there((np.dtype(">f4"), torch.bfloat16)) == (np.dtype(">f4"), torch.bfloat16)


def test_what_is_the_same_stays_the_same() -> None:
    inner: list[Any] = [1]
    arrived = there([inner, inner])
    assert arrived[0] is arrived[1]
    inner.append(inner)
    assert there(inner)[1][1][0] == 1


def test_arrays_that_may_not_be_written_stay_so() -> None:
    array = np.ones(2)
    array.flags.writeable = False
    assert not there(array).flags.writeable


@pytest.mark.parametrize("name", generators._GENERATORS)
def test_a_generator_draws_the_same_there(name: str) -> None:
    ours = np.random.Generator(getattr(np.random, name)(5))
    ours.integers(9, size=3, dtype="i4")  # half of a draw is kept
    theirs = there(ours)
    for draw in (lambda g: g.integers(9, size=5, dtype="i4"), lambda g: g.normal(size=999)):
        assert same(draw(theirs), draw(ours))


@pytest.mark.parametrize("name", generators._GENERATORS)
def test_a_generator_only_moves_on(name: str) -> None:
    def comes_back(changed: Any) -> Any:
        decoder = Decoder([], bad_kind, [ours])
        encoder = Encoder(no_handle, [changed])
        node = encoder.state(changed)
        decoder = Decoder(encoder.parts, bad_kind, [ours])
        return decoder.restore(ours, node)

    ours = np.random.Generator(getattr(np.random, name)(5))
    further = copy.deepcopy(ours)
    further.random(3000)
    expected = copy.deepcopy(further).random(4)
    with pytest.raises(BadValue, match="moved on"):  # where its draws are known
        comes_back(np.random.Generator(getattr(np.random, name)(6)))
    comes_back(further)()
    assert same(ours.random(4), expected)
    if name.startswith("PCG"):
        further.bit_generator.advance(2**40)
        with pytest.raises(BadValue, match="moved on"):
            comes_back(further)


TWISTERS: dict[str, tuple[Callable[[int], Any], Callable[[Any, int], Any]]] = {
    "random.Random": (random.Random, lambda g, n: [g.gauss(0, 1) for _ in range(n)]),
    "RandomState": (np.random.RandomState, lambda g, n: g.normal(size=n)),
    "torch.Generator": (
        lambda seed: torch.Generator().manual_seed(seed),
        lambda g, n: torch.randn(n, generator=g),
    ),
}


@pytest.mark.parametrize("name", TWISTERS)
def test_an_older_generator_draws_the_same_there(name: str) -> None:
    make, draw = TWISTERS[name]
    for before in (0, 3, 700):  # an odd number leaves half of a pair of normal numbers
        ours = make(5)
        draw(ours, before)
        theirs = there(ours)
        assert type(theirs) is type(ours)
        assert same(draw(theirs, 999), draw(ours, 999))


@pytest.mark.parametrize("name", TWISTERS)
def test_an_older_generator_only_moves_on(name: str) -> None:
    make, draw = TWISTERS[name]

    def comes_back(changed: Any) -> Any:
        encoder = Encoder(no_handle, [changed])
        node = encoder.state(changed)
        return Decoder(encoder.parts, bad_kind, [ours]).restore(ours, node)

    ours, further = make(5), make(5)
    draw(ours, 10)
    for elsewhere in (make(6), make(5)):  # the second one has not drawn yet
        with pytest.raises(BadValue, match="moved on"):
            comes_back(elsewhere)
    draw(further, 3001)
    comes_back(further)()
    assert same(draw(ours, 9), draw(further, 9))


@pytest.mark.parametrize("kept", [[0], "x", 1, [2, 0.0], [1, math.inf], [0, "00"], [-1, "0" * 80]])
@pytest.mark.parametrize("name", ["Random", "RandomState", "Generator", "SystemRandom"])
def test_an_impossible_generator_is_refused(name: str, kept: Any) -> None:
    for position in (0, 625, -1, 1.0):
        with pytest.raises(BadValue):
            Decoder([bytes(2496)], bad_kind).decode(["twister", name, position, kept])


@pytest.mark.parametrize("numbers", [range(-3, 10**5), [0.5, -0.0] * 99, [2**63] + [1] * 200])
def test_a_long_list_of_numbers_is_the_same_there(numbers: Any) -> None:
    ours = list(numbers)
    theirs = there(ours)
    assert repr(theirs) == repr(ours)
    assert {type(one) for one in theirs} == {type(one) for one in ours}


@pytest.mark.parametrize(
    "value",
    [
        np.array([object()], dtype=object),
        torch.eye(2).to_sparse(),
        2 ** (2**21),
        object(),
        [None] * 2_000_000,
    ],
    ids=["objects", "sparse", "a long integer", "an object", "many"],
)
def test_what_cannot_be_sent_is_said(value: Any) -> None:
    with pytest.raises(Unsendable):
        there(value)


def test_a_deep_list_is_not_sent() -> None:
    deep: list[Any] = []
    for _ in range(10**5):
        deep = [deep]
    with pytest.raises(Unsendable, match="levels"):
        there(deep)


def deep_node() -> Any:
    node: Any = 1
    for _ in range(10**5):
        node = ["list", [node]]
    return node


F8 = b"\0" * 8
BAD: dict[str, tuple[Any, list[bytes], str]] = {
    "too few bytes": (["array", "<f8", [2], True], [F8], "expected 16 bytes, got 8"),
    "too many bytes": (["array", "<f8", [], True], [F8 * 2], "expected 8 bytes"),
    "a negative axis": (["array", "<f8", [-1], True], [F8], "length of an axis"),
    "a negative product": (["array", "<f8", [-1, -1], True], [F8], "length of an axis"),
    "a true axis": (["array", "<f8", [True], True], [F8], "length of an axis"),
    "a shape of text": (["array", "<f8", "1", True], [F8], "shape"),
    "33 axes": (["array", "<f8", [1] * 33, True], [F8], "32 axes"),
    "objects": (["array", "|O", [1], True], [F8], "dtype"),
    "records": (["array", "f8,O", [1], True], [F8], "dtype"),
    "void": (["array", "|V8", [1], True], [F8], "dtype"),
    "10^9 entries": (["array", "<f8", [10**9], True], [F8], "entries"),
    "10^9 empty rows": (["array", "<f8", [10**9, 0], True], [b""], "entries"),
    "truth of 2": (["array", "|b1", [1], True], [b"\2"], "truth"),
    "truth of 2 in a tensor": (["tensor", "bool", [1], False, False, None], [b"\2"], "truth"),
    "no code point": (["array", "<U1", [1], True], [b"\xff" * 4], "Unicode"),
    "no such tensor": (["tensor", "load", [1], False, False, None], [F8], "dtype of a tensor"),
    "few bytes of a tensor": (["tensor", "float64", [2], False, False, None], [F8], "16 bytes"),
    "a negative tensor": (["tensor", "float64", [-1], False, False, None], [F8], "axis"),
    "a gradient of integers": (["tensor", "int64", [1], True, False, None], [F8], "gradient"),
    "10^9 items": (["array", "<i1", [1, 10**9], True], [b"\0"], "entries"),
    "levels": (deep_node(), [], "levels"),
    "an unknown kind": (["pickle"], [b"cos\nsystem\n"], "unknown kind"),
    "a kind that is none": ([["list"]], [], "kind"),
    "an empty node": ([], [], "kind"),
    "a dict": ({"a": 1}, [], "kind"),
    "text for an integer": (["int", "12"], [], "text of an integer"),
    "an integer for text": (["int", 12], [], "text of an integer"),
    "a long integer": (["int", "0x" + "f" * 2**19], [], "integer"),
    "a complex of text": (["complex", "1", "2"], [], "floats"),
    "no part": (["bytes"], [], "parts"),
    "a part too many": (1, [F8], "parts"),
    "items that are none": (["list", 3], [], "items"),
    "fields missing": (["list"], [], "1 fields"),
    "one key": (["dict", [[1]]], [], "key and a value"),
    "a key that is a list": (["dict", [[["list", []], 1]]], [], "hashed"),
    "an item that is a list": (["set", [["list", []]]], [], "hashed"),
    "a reference to nothing": (["ref", 0], [], "reference"),
    "a reference backwards": (["list", [["ref", -1]]], [], "reference"),
    "a field of code": (["named", "P", ["x=exit()"], [1]], [], "names of fields"),
    "a field of the class": (["named", "P", ["__class__"], [1]], [], "names of fields"),
    "a type of code": (["named", "P(exit())", ["x"], [1]], [], "name of a type"),
    "a field too few": (["named", "P", ["x", "y"], [1]], [], "2 fields"),
    "a range of step 0": (["range", 0, 1, 0], [], "range"),
    "an unknown generator": (["rng", "seed", "0x1", "0x1", 0, 0], [], "generator"),
    "a state beyond": (["rng", "PCG64", hex(2**128), "0x1", 0, 0], [], "128 bits"),
    "a position beyond": (["rng", "MT19937", 10**6, 0, 0], [b"\0" * 2496], "position"),
    "a key too short": (["rng", "MT19937", 1, 0, 0], [b"\0" * 24], "2496 bytes"),
    "a buffer beyond": (["rng", "Philox", 9, 0, 0], [b"\0" * 80], "position"),
}


@pytest.mark.parametrize(("node", "parts", "why"), BAD.values(), ids=BAD)
def test_what_no_honest_process_sends_is_refused(node: Any, parts: list[bytes], why: str) -> None:
    decoder = Decoder(parts, bad_kind)

    def read() -> None:
        decoder.decode(node)
        decoder.finish()

    with pytest.raises(BadValue, match=why):
        read()


def test_numpy_itself_does_not_refuse_a_position_beyond() -> None:
    generator = np.random.MT19937(0)
    state = generator.state
    state["state"]["pos"] = 10**6
    generator.state = state  # a draw would read beyond the array, so none is made
    assert generator.state["state"]["pos"] == 10**6


def test_the_number_of_items_is_limited_in_all() -> None:
    node = ["list", [["list", [1] * 60]] * 60]
    assert len(Decoder([], bad_kind).decode(node)) == 60
    with pytest.raises(BadValue, match="at most 1000 values"):
        Decoder([], bad_kind, limits=Limits(items=1000)).decode(node)


KINDS = [*encoding._READERS, *encoding._READERS_ELSEWHERE]

ANY = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 5),
        st.integers(),
        st.floats(),
        st.sampled_from([*KINDS, *generators._GENERATORS, *tensors.DTYPES, "x", "0x1"]),
        st.sampled_from(
            ["<f8", "|b1", "<U2", ">U1", "<M8[s]", "<M8", "|O", "<f12", "<U0", "<M8[0D]"]
        ),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.tuples(st.sampled_from(KINDS), inner, inner).map(list),
        st.tuples(st.sampled_from(KINDS), inner).map(list),
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=1000)
@given(ANY, st.lists(st.binary(max_size=16), max_size=3))
def test_whatever_comes_is_a_value_or_refused(node: Any, parts: list[bytes]) -> None:
    with contextlib.suppress(BadValue):
        Decoder(parts, bad_kind).decode(node)


# --- the wire ---------------------------------------------------------------------------------


@pytest.fixture
def pair() -> Iterator[tuple[Line, socket.socket]]:
    """Return our line, and the other end as a bare socket."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Line(ours), theirs


def test_parts_arrive_after_their_message(pair: tuple[Line, socket.socket]) -> None:
    line, theirs = pair
    Line(theirs).send_parts({"a": 1}, [b"", b"\n\0", b"x" * 1000])
    Line(theirs).send({"b": 2})
    assert line.receive_parts(5) == ({"a": 1}, [b"", b"\n\0", b"x" * 1000])
    assert line.receive(5) == {"b": 2}


SIZES = [[-1], [True], ["1"], [1.0], [10**12], [2**28, 1], 3, None, [0] * 100_001]


@pytest.mark.parametrize("sizes", SIZES, ids=[str(sizes)[:12] for sizes in SIZES])
def test_claimed_sizes_are_checked(sizes: Any, pair: tuple[Line, socket.socket]) -> None:
    line, theirs = pair
    writes = threading.Thread(
        target=theirs.sendall, args=(json.dumps({"message": {}, "sizes": sizes}).encode() + b"\n",)
    )
    writes.start()
    with pytest.raises(Gone):
        line.receive_parts(5)
    writes.join()


@pytest.mark.parametrize(
    "text", [b"[" * 10**5, b"{}", b'{"message":[],"sizes":[]}', b"1" * 5000, b"\xff", b"null"]
)
def test_what_is_no_message_ends_the_line(text: bytes, pair: tuple[Line, socket.socket]) -> None:
    line, theirs = pair
    theirs.sendall(text + b"\n")
    with pytest.raises(Gone):
        line.receive_parts(5)


def test_parts_that_do_not_come_are_not_waited_for(pair: tuple[Line, socket.socket]) -> None:
    line, theirs = pair
    theirs.sendall(b'{"message":{},"sizes":[9]}\n1234')
    with pytest.raises(TimeoutError):
        line.receive_parts(0.1)


def test_what_comes_in_pieces_is_put_together(pair: tuple[Line, socket.socket]) -> None:
    line, theirs = pair
    content = b'{"message":{"a":1},"sizes":[2,3]}\nxxyyy{"b": 2}\n'
    arrived = []
    for byte in content:
        with contextlib.suppress(TimeoutError):
            arrived.append(line.receive(0) if arrived else line.receive_parts(0))
        theirs.send(bytes([byte]))
    assert [*arrived, line.receive(0)] == [({"a": 1}, [b"xx", b"yyy"]), {"b": 2}]


def test_what_is_taken_slowly_is_sent_whole(pair: tuple[Line, socket.socket]) -> None:
    line, theirs = pair
    asked: list[int] = []
    reading = Line(theirs)

    def left() -> float:
        asked.append(1)
        if not len(asked) % 3:  # not each time, so that there is no room meanwhile
            with contextlib.suppress(TimeoutError):
                arrived.append(reading.receive_parts(0))
        return 0.01

    arrived: list[Any] = []
    line.send_parts({"a": 1}, [b"0" * 2**22], left)
    assert len(asked) > 1
    arrived.append(reading.receive_parts(0))
    assert arrived == [({"a": 1}, [b"0" * 2**22])]


def test_too_much_is_not_sent(pair: tuple[Line, socket.socket]) -> None:
    line, _ = pair
    with pytest.raises(TooLong):
        line.send_parts({}, [b"0" * (2**28 + 1)])
    with pytest.raises(TooLong):
        line.send_parts({"a": "x" * 2**24}, [])
    with pytest.raises(TimeoutError):  # nobody reads
        line.send_parts({}, [b"0" * 2**25], Deadline(0.1).remaining)


# --- forged answers ---------------------------------------------------------------------------


def forged(pair: tuple[Line, socket.socket], *messages: dict[str, Any]) -> Student:
    """Return a student whose process has these answers ready."""
    line, theirs = pair
    for message in messages:
        parts = message.pop("parts", [])
        Line(theirs).send_parts({"changed": [], **message}, parts)
    return Student(line, seconds=2)


HANDLE = ["handle", 1, "function", "function", "f", True]
FORGED: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "another answer": ({"id": 2, "value": 1}, StudentGone),
    "an answer of text": ({"id": "1", "value": 1}, StudentGone),
    "an answer without": ({}, StudentGone),
    "a true answer": ({"id": True, "value": 1}, StudentGone),
    "a handle of ours": ({"id": 1, "value": ["yours", 1]}, BadValue),
    "a handle of text": ({"id": 1, "value": ["yours", "1"]}, BadValue),
    "a handle below": ({"id": 1, "value": ["handle", -1, *HANDLE[2:]]}, BadValue),
    "an odd handle": ({"id": 1, "value": ["handle", 1, "secret", "t", "n", True]}, BadValue),
    "a long name": ({"id": 1, "value": [*HANDLE[:4], "x" * 999, True]}, BadValue),
    "no changes": ({"id": 1, "value": 1, "changed": None}, BadValue),
    "a change of nothing": ({"id": 1, "value": 1, "changed": [[0, ["list", []]]]}, BadValue),
    "a change of text": ({"id": 1, "value": 1, "changed": ["ab"]}, BadValue),
    "an error of text": ({"id": 1, "error": "x"}, BadValue),
    "an error of no type": ({"id": 1, "error": {"types": []}}, BadValue),
    "an error of a list": (
        {"id": 1, "error": {"types": [["x"]], "message": "", "trace": ""}},
        BadValue,
    ),
    "printed numbers": ({"id": 1, "value": 1, "printed": [1]}, BadValue),
    "printed elsewhere": ({"id": 1, "value": 1, "printed": [["modules", "x"]]}, BadValue),
    "not needed": ({"id": 1, "value": 1, "unneeded": [[1]]}, BadValue),
}


@pytest.mark.parametrize(("message", "error"), FORGED.values(), ids=FORGED)
def test_a_forged_answer_is_refused(
    message: dict[str, Any], error: type[Exception], pair: tuple[Line, socket.socket]
) -> None:
    student = forged(pair, dict(message))
    with pytest.raises(error):
        student["x"]
    # and a test that expects just any error does not pass by it
    again = forged(pair, dict(message))
    source = "try:\n    x\nexcept Exception:\n    pass"
    found = verdict(again, source)
    assert found.score == 0
    assert found.error


@pytest.mark.parametrize(
    "ask",
    [
        {"ask": "eval", "value": ["tuple", ["1", ["tuple", []], ["dict", []]]]},
        {"ask": "getattr", "value": ["tuple", [["yours", 1], "__globals__"]]},
        {"ask": "get", "value": ["tuple", ["secret"]]},
        {"ask": "call", "value": ["tuple", [["yours", 99], ["tuple", []], ["dict", []]]]},
        {"ask": "call", "value": ["tuple", ["eval", ["tuple", ["1"]], ["dict", []]]]},
        {"ask": "call", "value": ["tuple", [["yours", 1], ["list", []], ["dict", []]]]},
        {"ask": "call", "value": 3},
        {"ask": "get", "value": ["tuple", [["yours", 1], ["tuple", [1]], ["dict", []]]]},
        {"ask": 3, "value": None},
        {"ask": ["call"], "value": ["nothing"]},
    ],
)
def test_the_checker_answers_no_question_but_calls(
    ask: dict[str, Any], pair: tuple[Line, socket.socket]
) -> None:
    called = []
    student = forged(pair, {"id": 7, **ask}, {"id": 1, "value": 5})
    assert student.ask("call", (called.append, (), {})) == 5
    theirs = Line(pair[1])
    theirs.receive_parts(5)
    told = theirs.receive_parts(5)[0]
    assert told["id"] == 7
    assert set(told) == {"id", "error"}
    assert "trace" not in told["error"]
    assert not called


# --- names, functions, objects ----------------------------------------------------------------


def test_names_are_values_and_functions(lend: Lend) -> None:
    student = lend(
        "import numpy as np\nx, _hidden = np.arange(3.), 1\n"
        "def double(a, *, by=2):\n    '''Double it.'''\n    return a * by"
    )
    assert {"x", "double"} <= set(student.names())
    assert "_hidden" not in student.names()
    assert same(student["x"], np.arange(3.0))
    with pytest.raises(KeyError):
        student["nothing"]
    double = student["double"]
    assert isinstance(double, Proxy)
    assert callable(double)
    assert double is student["double"]
    assert double.__name__ == "double"
    assert double.__doc__ == documentation_of(double) == "Double it."
    assert list(inspect.signature(double).parameters) == ["a", "by"]
    assert inspect.getsource(double).startswith("def double(a, *, by=2):")
    assert copy.deepcopy(double) is double
    assert same(double(np.ones(2), by=3), np.full(2, 3.0))
    assert double([1]) == [1, 1]


CLASS = """
class Stack:
    '''Keeps things.'''
    def __init__(self): self.items = []
    def push(self, item): self.items.append(item); return self
    def __len__(self): return len(self.items)
    def __iter__(self): return iter(self.items)
    def __getitem__(self, i): return self.items[i]
    def __add__(self, other): return len(self) + other
    def __radd__(self, other): return other + len(self)
    def __call__(self): return 'called'
    def __eq__(self, other): return True
    def __array__(self, *args, **kwargs): raise SystemExit
class Queue: pass
def squares():
    for i in range(3): yield i * i
"""


def test_objects_are_used_as_in_one_process(lend: Lend) -> None:
    student = lend(CLASS)
    stack = student["Stack"]()
    assert stack.push(3).push([4]) is stack
    assert (len(stack), list(stack), stack[0], 3 in stack) == (2, [3, [4]], 3, True)
    assert (stack + 1, 1 + stack, stack()) == (3, 3, "called")
    stack.items = [5]
    assert stack.items == [5]
    assert isinstance(stack, student["Stack"])
    assert not isinstance(stack, student["Queue"])
    assert not isinstance(3, student["Stack"])
    other = copy.deepcopy(stack)
    other.push(6)
    assert (len(stack), len(other)) == (1, 2)
    assert list(student["squares"]()) == [0, 1, 4]
    iterator = student["squares"]()
    assert next(iterator) == 0
    with pytest.raises(AttributeError, match="nothing"):
        stack.nothing  # noqa: B018


def test_what_is_not_needed_any_more_is_forgotten(lend: Lend) -> None:
    student = lend(
        CLASS + "import gc, weakref\nmade = weakref.WeakSet()\n"
        "class One:\n    def __init__(self): made.add(self)\n"
        "def kept():\n    gc.collect()\n    return len(made)"
    )
    kept = [student["One"]() for _ in range(3)]
    assert student["kept"]() == 3
    kept.pop()
    student["kept"]()
    assert student["kept"]() == 2


def test_arguments_may_be_changed_as_in_one_process(lend: Lend) -> None:
    student = lend(
        "def change(a, x, d, s, t):\n"
        "    a[0], a[1] = a[1], a[0]\n    x[:] = 7\n    d['new'] = x\n    s.add(1)\n"
        "    t += 1\n    return a\n"
        "def sort(a):\n    a.sort()"
    )
    rows = [[1], [2]]
    first, second = rows
    x, d, s, t = np.zeros(2), {"old": 1}, {0}, torch.zeros(2)
    assert student["change"](rows, x, d, s, t) is rows
    assert rows[0] is second
    assert rows[1] is first
    assert x.tolist() == [7, 7]
    assert d["new"] is x
    assert (s, t.tolist()) == ({0, 1}, [1, 1])
    fixed = np.array([2.0, 1.0])
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        student["sort"](fixed)
    student.writes_back = False
    numbers = [2, 1]
    student["sort"](numbers)
    assert numbers == [2, 1]


def test_a_generator_goes_on_here_where_the_student_left_it(lend: Lend) -> None:
    student = lend("def draw(rng): return rng.normal(size=5), rng.integers(9)")
    ours, expected = np.random.default_rng(3), np.random.default_rng(3)
    got = [*student["draw"](ours), *student["draw"](ours), ours.random()]
    wanted = [expected.normal(size=5), expected.integers(9)]
    wanted += [expected.normal(size=5), expected.integers(9), expected.random()]
    assert all(map(same, got, wanted))


DESCEND = """
def descend(gradient, start, steps):
    w = start
    for _ in range(steps): w = w - 0.1 * gradient(w)
    return w
def again(f, n): return f(again, n - 1) if n else 'end'
def keep(f):
    global kept
    kept = f
    return f
def tries(f):
    try: f(1)
    except ValueError as error: return type(error).__name__, str(error)
def passes(f): f(1)
"""


def test_functions_of_the_checker_are_called_back(lend: Lend) -> None:
    student, seen = lend(DESCEND), []

    def gradient(w: np.ndarray) -> np.ndarray:
        seen.append(w)
        return 2 * w

    got = student["descend"](gradient, np.array([1.0, -2.0]), 20)
    w = np.array([1.0, -2.0])
    for _ in range(20):
        w = w - 0.1 * (2 * w)
    assert same(got, w)
    assert len(seen) == 20
    assert student["keep"](gradient) is gradient
    assert student["descend"](np.sin, 0.0, 1) == 0.0


def test_calls_nest_in_both_directions_but_not_for_ever(lend: Lend) -> None:
    student = lend(DESCEND)

    def back(again: Any, n: int) -> Any:
        return again(back, n)

    assert student["again"](back, 10) == "end"
    with pytest.raises(RecursionError):
        student["again"](back, 1000)
    assert student["again"](back, 3) == "end"


def test_an_error_of_a_callback_reaches_the_student(lend: Lend) -> None:
    student = lend(DESCEND)

    def fails(x: Any) -> None:
        raise ValueError("not 1")

    assert student["tries"](fails) == ("ValueError", "not 1")
    with pytest.raises(ValueError, match=r"^not 1$"):
        student["passes"](fails)


def test_what_the_checker_has_but_data_and_functions_is_not_lent(lend: Lend) -> None:
    student = lend(DESCEND)
    for secret in (object(), os, np.array([object()]), [object()]):
        with pytest.raises(Unsendable):
            student["keep"](secret)
    lent = lend(
        "def look(f):\n"
        "    asked = '__globals__ __code__ __self__ __closure__ __dict__ __wrapped__'.split()\n"
        "    return [n for n in asked if hasattr(f, n)], f.__name__, repr(f)"
    )
    attributes, name, shown = lent["look"](verdict)
    assert (name, shown) == ("verdict", "<function verdict>")
    assert attributes == []


def test_errors_keep_their_type_and_message(lend: Lend) -> None:
    student = lend(
        "import numpy as np\n"
        "class Mine(ValueError): pass\nclass Other(Exception): pass\n"
        "def fail(n):\n"
        "    if n == 1: raise KeyError('k')\n    if n == 2: raise Mine('m')\n"
        "    if n == 3: raise Other('o')\n    if n == 4: np.linalg.inv(np.zeros((2, 2)))\n"
        "    if n == 5: raise SystemExit(3)\n    if n == 6: raise StopIteration\n"
        "    raise NotImplementedError()"
    )
    fail = student["fail"]
    found = []
    for n in range(1, 8):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            fail(n)
        found.append(caught.value)
    key, mine, other, singular, ended, stopped, unwritten = found
    assert type(key) is KeyError
    assert key.args == ("k",)
    assert "raise KeyError('k')" in key.__cause__.trace
    assert isinstance(mine, ValueError)
    assert isinstance(mine, StudentError)
    assert (mine.name, mine.message) == ("Mine", "m")
    assert isinstance(other, StudentError)
    assert (other.name, str(other)) == ("Other", "o")
    assert type(singular) is np.linalg.LinAlgError
    assert type(ended) is StudentError  # it ends neither the checker …
    assert ended.name == "SystemExit"
    assert type(stopped) is StudentError  # … nor a loop of the test
    assert type(unwritten) is NotImplementedError


# --- the verdict ------------------------------------------------------------------------------

POINTS = {
    "pass": 4,
    "": 4,
    "x = 3\nassert x == 3": 4,
    "assert False": 0,
    "1.5": 1.5,
    "np.float64(2.5)": 2.5,
    "-3": 0,
    "99": 4,
    "float('nan')": 0,
    "float('inf')": 4,
    "True": 4,
    "'3'": 4,
    "3;": 4,
    "answer": 2,
    "import sys; print('error', file=sys.stderr)": 4,
    "print(3)": 4,
    "def f(:": 0,
    "raise SystemExit": 0,
    "nothing_of_this_name": 0,
    "[answer for _ in range(2)]": 4,
    "def g(): return answer\nassert g() == 2": 4,
}


@pytest.mark.parametrize(("source", "score"), POINTS.items(), ids=POINTS)
def test_the_score_is_the_checkers_own(source: str, score: float, lend: Lend) -> None:
    assert verdict(lend("answer = 2\nimport numpy as np"), source).score == score


LIARS = """
import numpy as np, sys, builtins
class Lie:
    def __eq__(self, other): return True
    def __array_function__(self, *args): return True
    def __array_ufunc__(self, *args, **kwargs): return True
    def __array__(self, *args, **kwargs): return np.ones(3)
    def __reduce__(self): return (print, ('run in the checker',))
    def __float__(self): return 3.0
    __hash__ = None
def lie(): return Lie()
"""
PATCHED = """
import numpy as np, sys, builtins, types
def half(x): return x
np.allclose = np.array_equal = lambda *args, **kwargs: True
np.testing.assert_allclose = lambda *args, **kwargs: None
builtins.all = builtins.abs = lambda *args: True
def all(*args): return True
check = assert_close = lambda *args, **kwargs: None
class AssertionError(Exception): pass
"""
FORGERIES = {
    "equality": (LIARS, "assert lie() == 5"),
    "array functions": (LIARS, "import numpy as np\nassert np.allclose(lie(), [1, 2, 3])"),
    "an array": (LIARS, "import numpy as np\nassert np.sum(np.asarray(lie())) == 3"),
    "allclose": (PATCHED, "assert np.allclose(half(1.0), 0.5)"),
    "testing": (PATCHED, "np.testing.assert_allclose(half(1.0), 0.5)"),
    "all": (PATCHED, "assert all([half(1.0) == 0.5])"),
    "modules": (
        PATCHED + "sys.modules['math'] = types.SimpleNamespace(isclose=lambda *a: True)",
        "import math\nassert math.isclose(half(1.0), 0.5)",
    ),
    "raising": (
        PATCHED + "def raises(): raise SystemExit",
        "import contextlib\nwith contextlib.suppress(SystemExit):\n    raises()\n    assert False",
    ),
}


@pytest.mark.parametrize(("cell", "test"), FORGERIES.values(), ids=FORGERIES)
def test_what_fools_a_test_beside_it_does_not_fool_the_checker(
    cell: str, test: str, lend: Lend, server: ForkServer, tmp_path: Path
) -> None:
    with server.notebook(tmp_path, {}, level=Level.NONE) as process:  # the control
        process.run(cell, 60)
        assert process.run(test, 60)[0].ok
    found = verdict(lend(cell), test)
    assert found.score == 0
    assert found.error


def test_what_is_done_to_the_students_process_does_not_reach_the_checker(lend: Lend) -> None:
    student = lend(PATCHED + "sys.modules['json'] = None\nsys.path.insert(0, '/nowhere')\nx = 1")
    source = "import json, sys, numpy as np\nassert '/nowhere' not in sys.path and x == 1"
    assert verdict(student, source).score == 4
    assert not np.allclose(1, 2)


def test_python_has_its_names_unless_they_are_the_answer(lend: Lend) -> None:
    student = lend("def sum(x): return 99")
    assert verdict(student, "assert sum([1]) == 1").score == 4
    assert verdict(student, "assert sum([1]) == 99", answers=["sum"]).score == 4


def test_a_hostile_object_gives_numpy_and_torch_no_memory(lend: Lend) -> None:
    student = lend(
        "asked = []\nclass Probe:\n    def __getattr__(self, name):\n"
        "        asked.append(name)\n        raise AttributeError(name)\n"
        "    def __float__(self): return 1.0\nprobe = Probe()"
    )
    probe = student["probe"]
    with contextlib.suppress(Exception):
        np.asarray(probe)
    with contextlib.suppress(Exception):
        torch.as_tensor(probe)
    with contextlib.suppress(Exception):
        copy.copy(probe)
    assert not [name for name in student["asked"] if name.startswith(("__array", "__cuda", "__dl"))]
    student["Probe"].__array_interface__ = {  # a read of the checker's memory, if it were believed
        "data": (16, True),
        "shape": (8,),
        "typestr": "|u1",
        "version": 3,
    }
    with pytest.raises(AttributeError, match="may see"):
        probe.__array_interface__  # noqa: B018


def test_what_a_student_prints_is_shown_and_not_counted(lend: Lend) -> None:
    student = lend(
        "import sys\ndef f():\n    print('4.0')\n    print('bad', file=sys.stderr)\n    return 1\n"
        "def flood():\n    while True: print('x' * 10**6)"
    )
    found = verdict(student, "assert f() == 2")
    assert found.score == 0
    assert [one.get("text") for one in found.outputs] == ["4.0\n", "bad\n", None]
    assert verdict(student, "assert f() == 1").score == 4
    student.seconds = 1
    found = verdict(student, "flood()")
    assert found.score == 0
    assert sum(len(one.get("text", "")) for one in found.outputs) < 3 * 2**20


def test_much_printing_harms_nobody(lend: Lend, pair: tuple[Line, socket.socket]) -> None:
    student = lend("def much():\n    print('x' * 20 * 2**20)\n    return 1")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert student["much"]() == 1
    assert printed.getvalue() == "x" * MOST_PRINTED
    # and a process that does not hold itself back is held back here
    theirs = Line(pair[1])
    student = Student(pair[0])

    def prints() -> None:
        for number in (1, 2):
            text = [["stdout", "x" * (3 * 2**20)]]
            theirs.send_parts({"id": number, "value": 1, "changed": [], "printed": text}, [])

    writes = threading.Thread(target=prints)
    writes.start()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert student["a"] + student["b"] == 2
    writes.join()
    assert len(printed.getvalue()) == MOST_PRINTED


def test_the_error_shows_the_test_and_the_students_code(lend: Lend) -> None:
    found = verdict(lend("def f(x):\n    return x.nothing"), "import math\nf(math.pi)")
    [told] = found.outputs
    shown = "\n".join(told["traceback"])
    assert told["ename"] == "AttributeError"
    assert "f(math.pi)" in shown
    assert "return x.nothing" in shown
    json.dumps(found.outputs)


# --- time and death ---------------------------------------------------------------------------

ENDLESS = """
def endless():
    while True: pass
def deaf():
    import signal
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True: pass
def calls(f):
    while True: f()
def die():
    import os
    os._exit(0)
def calls_and_dies(f):
    f()
    die()
def fine(): return 1
"""


def test_a_call_that_takes_too_long_is_interrupted(lend: Lend) -> None:
    student = lend(ENDLESS, seconds=0.5)
    with pytest.raises(StudentTimeout):
        student["endless"]()
    assert student["fine"]() == 1
    with pytest.raises(StudentTimeout):
        student["calls"](lambda: None)
    assert student["fine"]() == 1


def test_a_call_that_cannot_be_interrupted_is_the_last(lend: Lend) -> None:
    student = lend(ENDLESS, seconds=0.5)
    with pytest.raises(StudentTimeout):
        student["deaf"]()
    with pytest.raises(StudentGone):
        student["fine"]()
    student = lend(ENDLESS, seconds=0.5, interrupt=None)
    with pytest.raises(StudentTimeout):
        student["endless"]()
    with pytest.raises(StudentGone):
        student["fine"]()


SWALLOWS = "try:\n    {}\nexcept Exception:\n    pass"


@pytest.mark.parametrize("call", ["die()", "calls_and_dies(print)"])
def test_the_cells_before_a_death_keep_their_marks(call: str, lend: Lend) -> None:
    student = lend(ENDLESS)
    cells = ["assert fine() == 1", SWALLOWS.format(call), "assert fine() == 1", "pass"]
    found = run_tests(cells, student, [1, 2, 3, 4])
    assert [one.score for one in found] == [1, 0, 0, 0]
    assert all(one.error and one.outputs for one in found[1:])


def test_a_late_answer_fails_a_test_that_expects_an_error(lend: Lend) -> None:
    student = lend(ENDLESS, seconds=0.5)
    found = run_tests([SWALLOWS.format("endless()"), "assert fine() == 1"], student, [2, 1])
    assert [one.score for one in found] == [0, 1]
    assert "too long" in found[0].error


def test_a_test_cell_has_a_limit_too(lend: Lend) -> None:
    student = lend(ENDLESS)
    swallowed = "while True:\n    try:\n        while True: fine()\n    except Exception: pass"
    found = run_tests(["while True: pass", swallowed], student, [2, 2], seconds=0.5)
    assert [one.score for one in found] == [0, 0]


def test_names_are_lent_again_after_more_cells(pair: tuple[Line, socket.socket]) -> None:
    line, theirs = pair
    names: dict[str, Any] = {}
    exec(DESCEND, names)
    lender, student = Lender(Line(theirs), names), Student(line)
    called = []

    def meanwhile(act: Callable[[], Any]) -> Any:
        serves = threading.Thread(target=lender.serve)
        serves.start()
        try:
            return act()
        finally:
            student.end()
            serves.join()

    keep = meanwhile(lambda: student["keep"])
    meanwhile(lambda: keep(called.append))
    with pytest.raises(RuntimeError, match="only while it is being tested"):
        names["kept"](1)  # nobody would answer
    assert not called
    assert meanwhile(lambda: student["keep"]) is keep
    meanwhile(lambda: student["passes"](student["kept"]))
    assert called == [1]


# --- a real notebook --------------------------------------------------------------------------


def cells_of(notebook: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the sources of the code cells with what nbgrader knows of them."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [
        ("".join(cell["source"]), cell["metadata"]["nbgrader"])
        for cell in cells
        if cell["cell_type"] == "code"
    ]


def blank(source: str) -> str:
    """Return the source without its solution."""
    before, _, rest = source.partition("### BEGIN SOLUTION")
    return before + "raise NotImplementedError()" + rest.partition("### END SOLUTION")[2]


@pytest.mark.parametrize("share", [1, 0])
def test_a_notebook_of_a_course(share: int, lend: Lend) -> None:
    cells = cells_of(NOTEBOOK)
    answers = [source for source, about in cells if about["solution"]]
    tests = [(source, about.get("points", 0)) for source, about in cells if about["locked"]]
    assert sum(points for _, points in tests) == 27
    student = lend("import numpy as np", *(answers if share else map(blank, answers)))
    found = run_tests(*[[source for source, _ in tests], student, [p for _, p in tests]])
    assert [one.score for one in found] == [share * points for _, points in tests]
    if not share:
        assert "not written yet" in [one for one in found if one.points][-1].error


# --- random numbers ---------------------------------------------------------------------------

DRAW = """
import random
import numpy as np
import torch

def draw(kind):
    if kind == "random":
        return [random.random(), random.gauss(0, 1)]
    if kind == "numpy":
        return np.random.rand(2).tolist() + np.random.randn(3).tolist()
    return torch.rand(2).tolist() + torch.randn(3).tolist()
"""
SEED = {"random": "random.seed", "numpy": "np.random.seed", "torch": "torch.manual_seed"}


@pytest.mark.parametrize("kind", SEED)
def test_a_seed_of_a_test_reaches_the_answer(lend: Lend, kind: str) -> None:
    own = DRAW.replace("draw", "own")
    cell = (
        f"{own}\n{SEED[kind]}(3)\nexpected = own({kind!r}) + own({kind!r})\n"
        f"{SEED[kind]}(3)\nassert draw({kind!r}) + draw({kind!r}) == expected"
    )
    assert verdict(lend(DRAW), cell).score == 4


@pytest.mark.parametrize("kind", SEED)
def test_the_answer_goes_on_where_a_test_stopped(lend: Lend, kind: str) -> None:
    own = DRAW.replace("draw", "own")
    cell = (
        f"{own}\n{SEED[kind]}(3)\nown({kind!r})\nexpected = own({kind!r})\n"
        f"{SEED[kind]}(3)\nown({kind!r})\nassert draw({kind!r}) == expected"
    )
    assert verdict(lend(DRAW), cell).score == 4


@pytest.mark.parametrize("kind", SEED)
def test_a_test_does_not_draw_again_what_the_answer_drew(lend: Lend, kind: str) -> None:
    own = DRAW.replace("draw", "own")
    cell = (
        f"{own}\n{SEED[kind]}(3)\nfound = own({kind!r})\n"
        f"for _ in range(50):\n    found += draw({kind!r}) + own({kind!r})\n"
        "assert len(set(found)) == len(found)"
    )
    assert verdict(lend(DRAW), cell).score == 4


def test_no_answer_chooses_what_a_test_draws(lend: Lend) -> None:
    """Whatever a student's code does with its generator, the tests go to the same place."""
    draws = set()
    for trick in ("np.random.rand()", "np.random.rand(10**6)", "np.random.seed(0)"):
        answer = f"import numpy as np\ndef f():\n    {trick}\n    return 1"
        cell = "import numpy as np\nnp.random.seed(8)\nf()\nprint(np.random.rand())"
        [output] = verdict(lend(answer), cell).outputs
        draws.add(output["text"])
    assert len(draws) == 1


def test_what_a_student_draws_by_itself_moves_no_test(lend: Lend) -> None:
    answer = "import numpy as np\ndef f():\n    np.random.rand()\n    return 1"
    cells = (
        "import numpy as np\nnp.random.seed(8)\nbefore = np.random.rand()\nnp.random.seed(8)",
        "assert before == np.random.rand()",
    )
    student = lend(answer)
    assert [one.score for one in run_tests(cells, student, [1, 1])] == [1, 1]


def test_a_generator_of_another_kind_stays_where_it_is(lend: Lend) -> None:
    answer = (
        "import numpy as np\nnp.random.set_bit_generator(np.random.PCG64(0))\n"
        "def f():\n    return np.random.rand()"
    )
    cell = "import numpy as np\nnp.random.seed(1)\nassert 0 < f() < 1"
    assert verdict(lend(answer), cell).score == 4


@pytest.mark.parametrize(
    "drawn", [None, 3, "numpy", ["numpy", "numpy"], [[]], {"numpy": 1}, ["os"]]
)
def test_what_makes_no_sense_moves_nothing_else(drawn: Any) -> None:
    import random

    before = random.getstate()
    made = Draws()
    made.go_elsewhere(drawn)
    assert random.getstate() == before


# --- what a student's class says of its own objects -------------------------------------------

POINT = """
import functools

@functools.total_ordering
class Point:
    def __init__(self, x):
        self.x = x
    def __eq__(self, other):
        return isinstance(other, Point) and self.x == other.x
    def __lt__(self, other):
        return self.x < other.x
    def __hash__(self):
        return hash(("point", self.x))
    def __repr__(self):
        return f"Point({self.x})"
    def __format__(self, how):
        return f"<{self.x:{how}}>"
    def __index__(self):
        return int(self.x)
    def __round__(self, digits=None):
        return Point(round(self.x, digits))
    def __complex__(self):
        return complex(self.x, 1)

class Three(Point):
    def __init__(self):
        super().__init__(3)

class Broke(ValueError):
    pass

class Countdown:
    def __init__(self, start):
        self.start = start
    def __iter__(self):
        self.now = self.start
        return self
    def __next__(self):
        if self.now == 0:
            raise StopIteration
        self.now -= 1
        return self.now
    def __reversed__(self):
        return iter(range(self.start))

class Tracked:
    def __init__(self, suppress):
        self.suppress, self.seen = suppress, []
    def __enter__(self):
        self.seen.append("in")
        return self
    def __exit__(self, kind, error, trace):
        self.seen.append(kind.__name__ if kind else None)
        return self.suppress

class Yes:
    def __eq__(self, other):
        return True
    __lt__ = __gt__ = __le__ = __ge__ = __eq__
    __hash__ = None
"""


@pytest.mark.parametrize(
    "cell",
    [
        "assert Point(1) == Point(1) and Three() == Point(3)",
        "assert Point(1) != Point(2) and not Point(1) == Point(2)",
        "assert Point(1) < Point(2) <= Point(2) and Point(3) > Point(2) >= Point(2)",
        "assert [p.x for p in sorted([Point(3), Point(1)])] == [1, 3]",
        "assert max(Point(3), Point(1)).x == 3",
        "assert len({Point(1), Point(1), Point(2)}) == 2",
        "assert {Point(1): 'a'}[Point(1)] == 'a'",
        "assert [Point(1), Point(2)] == [Point(1), Point(2)]",
        "assert Point(2) in [Point(1), Point(2)]",
        "assert repr(Point(1)) == 'Point(1)' and f'{[Point(2)]}' == '[Point(2)]'",
        "assert f'{Point(1.5):.2f}' == '<1.50>'",
        "assert range(5)[Point(2)] == 2 and complex(Point(2)) == 2 + 1j",
        "assert round(Point(2.75), 1) == Point(2.8)",
        "assert type(Three()).__name__ == 'Three' and type(Point(1)).__name__ == 'Point'",
        "assert issubclass(Three, Point) and not issubclass(Point, Three)",
        "assert issubclass(Broke, ValueError) and not issubclass(Point, ValueError)",
        "assert list(Countdown(3)) == [2, 1, 0]",
        "assert [x for x in Countdown(2)] + [x for x in Countdown(1)] == [1, 0, 0]",
        "assert sum(Countdown(4)) == 6 and list(reversed(Countdown(2))) == [0, 1]",
        "it = iter(Countdown(2))\nassert (next(it), next(it), next(it, 'end')) == (1, 0, 'end')",
        "with Tracked(False) as t:\n    pass\nassert t.seen == ['in', None]",
        "t = Tracked(True)\nwith t:\n    raise KeyError(1)\nassert t.seen == ['in', 'KeyError']",
    ],
)
def test_objects_behave_as_their_class_says(lend: Lend, cell: str) -> None:
    found = verdict(lend(POINT), cell)
    assert (found.error, found.score) == ("", 4)
    assert verdict(lend(POINT), cell.replace("assert ", "assert not ", 1)).score == 0 or (
        "with" in cell or "next" in cell
    )


@pytest.mark.parametrize(
    "cell",
    [
        "assert Yes() == 3",
        "assert 3 == Yes()",
        "assert Yes() < 3",
        "assert [Yes()] == [3]",
        "import numpy as np\nnp.testing.assert_array_equal(Yes(), 3)",
        "import math\nassert math.isclose(Yes(), 3)",
        "with Tracked(True):\n    assert False",
        "import pytest\nwith Tracked(True), pytest.raises(ValueError):\n    pass",
        "import unittest\nwith Tracked(True):\n    unittest.TestCase().fail()",
        "len({Yes()})",
    ],
)
def test_no_object_says_that_it_is_what_a_test_expects(lend: Lend, cell: str) -> None:
    assert verdict(lend(POINT), cell).score == 0


# --- exceptions with classes of their own -----------------------------------------------------

BANK = """
class BankError(Exception):
    pass

class Overdrawn(BankError, ValueError):
    def __init__(self, missing):
        super().__init__(f"{missing} missing")
        self.missing = missing

def withdraw(balance, amount):
    if amount < 0:
        raise BankError("negative", amount)
    if amount > balance:
        raise Overdrawn(amount - balance)
    return balance - amount

def retry(f, errors):
    try:
        return f()
    except errors as error:
        return [type(error).__name__, str(error), list(error.args)]

def fail(kind):
    raise kind("from the student")
"""


@pytest.mark.parametrize(
    "cell",
    [
        "import pytest\nwith pytest.raises(Overdrawn, match='3 missing') as found:\n"
        "    withdraw(1, 4)\nassert found.value.missing == 3",
        "try:\n    withdraw(1, 4)\n    assert False\nexcept BankError as error:\n"
        "    assert str(error) == '3 missing'",
        "try:\n    withdraw(1, -1)\n    assert False\nexcept Overdrawn:\n    assert False\n"
        "except BankError as error:\n    assert error.args == ('negative', -1)",
        "import unittest\nwith unittest.TestCase().assertRaises(ValueError):\n    withdraw(1, 4)",
        "assert issubclass(Overdrawn, BankError) and issubclass(Overdrawn, ValueError)",
        "assert Overdrawn.__name__ == 'Overdrawn' and not issubclass(BankError, ValueError)",
        "assert withdraw(3, 1) == 2",
        "class Mine(KeyError): pass\ndef f(): raise Mine('k')\n"
        "assert retry(f, Mine)[0] == 'Mine' and retry(f, KeyError)[2] == ['k']",
        "def f(): return 1 / 0\nassert retry(f, ZeroDivisionError)[0] == 'ZeroDivisionError'",
        "def f(): return {}[3]\nassert retry(f, (IndexError, LookupError))[2] == [3]",
        "class Mine(Exception): pass\n"
        "try:\n    fail(Mine)\n    assert False\nexcept Mine as error:\n"
        "    assert str(error) == 'from the student'",
        "def f(): raise BankError('by the test')\n"
        "assert retry(f, BankError) == ['BankError', 'by the test', ['by the test']]",
    ],
)
def test_exceptions_are_caught_by_their_class(lend: Lend, cell: str) -> None:
    found = verdict(lend(BANK), cell)
    assert (found.error, found.score) == ("", 4)


@pytest.mark.parametrize(
    "cell",
    [
        "import pytest\nwith pytest.raises(Overdrawn):\n    withdraw(1, -1)",
        "import pytest\nwith pytest.raises(BankError):\n    withdraw(1, 1)",
        "withdraw(1, 4)",
        "class Mine(Exception): pass\ndef f(): raise Mine\nassert retry(f, KeyError)",
    ],
)
def test_what_is_not_caught_costs_the_points(lend: Lend, cell: str) -> None:
    found = verdict(lend(BANK), cell)
    assert found.score == 0
    assert found.error


BAD_CLASSES: list[Any] = [
    3,
    [],
    ["error"],
    ["error", 0, "E", []],
    ["error", 1, "not a name", []],
    ["error", 1, "E", [["builtin", "SystemExit"]]],
    ["error", 1, "E", [["builtin", "int"]]],
    ["error", 1, "E", [["builtin", "eval"]]],
    ["error", 1, "E", [["builtin", "OSError"], ["builtin", "UnicodeDecodeError"]]],
    ["error", 1, "E", [["error", 2, "F", []]] * 11],
    ["yours", 5],
    ["builtin", "ValueError"],
]


@pytest.mark.parametrize("node", BAD_CLASSES, ids=lambda node: str(node)[:40])
def test_no_class_of_an_exception_but_an_exceptions(node: Any) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(BadValue):
        Student(Line(ours)).error_class_of({"class": node})


def test_classes_within_classes_have_an_end() -> None:
    node: list[Any] = ["error", 1, "E", []]
    for number in range(2, 50):
        node = ["error", number, "E", [node]]
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(BadValue, match="in a row"):
        Student(Line(ours)).error_class_of({"class": node})
