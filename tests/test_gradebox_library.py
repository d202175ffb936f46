"""Values of the standard library's types arrive as what they are, and nothing else does."""

import datetime
import os
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_gradebox_proxy import Lend, bad_kind, lend, server, there, verdict

from gradebox.codec.encoding import BadValue, Decoder

__all__ = ["lend", "server"]  # fixtures

pytestmark = pytest.mark.xdist_group("gradebox")

ZONE = datetime.timezone(datetime.timedelta(hours=-3, minutes=-30))
EXAMPLES = [
    Counter("abracadabra"),
    OrderedDict(b=1, a=2),
    deque([1, "two"], maxlen=5),
    deque(),
    SimpleNamespace(x=1, inner=SimpleNamespace(y=[2])),
    Fraction(-7, 3),
    Decimal("1.50"),
    Decimal("-Infinity"),
    datetime.date(2026, 2, 28),
    datetime.time(12, 30, 0, 5),
    datetime.datetime(2026, 2, 28, 1, 2, 3, tzinfo=ZONE),
    datetime.datetime(2026, 2, 28, 1, 2, fold=1),
    datetime.timedelta(days=-1, microseconds=3),
    ZONE,
    Path("a/b.txt"),
    PurePosixPath("/a"),
    PureWindowsPath("c:/a"),
    {"a": 1}.keys(),
    {"a": (1, 2)}.items(),
]


@pytest.mark.parametrize("value", EXAMPLES, ids=lambda value: f"{type(value).__name__} {value}")
def test_a_value_arrives_as_what_it_is(value: Any) -> None:
    arrived = there(value)
    assert type(arrived) is type(value)
    assert arrived == value
    assert repr(arrived) == repr(value)


def test_what_equality_does_not_show_arrives_too() -> None:
    assert there(deque([1], maxlen=3)).maxlen == 3
    assert list(there({"a": 1, "b": 2}.values())) == [1, 2]
    made = there(defaultdict(list, a=[1]))
    assert (made["new"], dict(made)) == ([], {"a": [1], "new": []})
    assert there(defaultdict(None)).default_factory is None
    assert there(Decimal("sNaN1")).is_snan()
    assert there(datetime.datetime(2026, 1, 1, fold=1)).fold == 1


@given(st.decimals() | st.fractions() | st.datetimes() | st.dates() | st.times() | st.timedeltas())
def test_numbers_and_times_arrive_to_the_last_digit(value: Any) -> None:
    arrived = there(value)
    assert type(arrived) is type(value)
    assert repr(arrived) == repr(value)


def test_masked_arrays() -> None:
    for mask in ([True, False, True], np.ma.nomask):
        value = np.ma.MaskedArray([1.0, np.nan, 3.0], mask=mask)
        arrived = there(value)
        assert type(arrived) is np.ma.MaskedArray
        np.testing.assert_array_equal(arrived.data, value.data)
        np.testing.assert_array_equal(np.ma.getmaskarray(arrived), np.ma.getmaskarray(value))


def test_structured_arrays_and_arrays_of_objects() -> None:
    kinds = [("name", "U8"), ("age", "<i4"), ("at", "<f8", (2,))]
    value = np.array([("ada", 36, (1, 2)), ("ben", 7, (3, 4))], dtype=kinds)
    arrived = there(value)
    assert arrived.dtype.names == value.dtype.names
    assert (arrived == value).all()
    objects = np.array([[1, "two"], [None, [3]]], dtype=object)
    arrived = there(objects)
    assert arrived.dtype == object
    assert arrived.tolist() == objects.tolist()


BAD: list[list[Any]] = [
    ["Counter"],
    ["Counter", {}],
    ["Counter", [[1]]],
    ["Counter", [[["list", []], 1]]],
    ["defaultdict", "eval", []],
    ["deque", [1, 2], 1],
    ["deque", [], -1],
    ["deque", [], 2**40],
    ["namespace", [[1, 2]]],
    ["view", "pop", []],
    ["view", "items", [1]],
    ["view", "keys", [["list", []]]],
    ["Fraction", 1, 0],
    ["Fraction", 1.5, 2],
    ["Decimal", "one"],
    ["Decimal", "1" * 200_000],
    ["Decimal", 1],
    ["date", "2026-02-30", 0],
    ["datetime", "x" * 100, 0],
    ["datetime", "2026-02-01", 7],
    ["timedelta", 10**12, 0, 0],
    ["timedelta", 1.0, 0, 0],
    ["timezone", 3],
    ["timezone", ["timedelta", 4, 0, 0]],
    ["path", "zip", "a"],
    ["path", "path", 3],
    ["masked", 1, None],
    ["masked", ["objects", [1], [1]], ["objects", [2], [1, 2]]],
    ["structured", [2], ["a"], [1]],
    ["structured", [2], ["a", "b"], []],
    ["structured", [2**40], [], []],
    ["objects", [3], [1]],
    ["objects", [-1], []],
]


@pytest.mark.parametrize("node", BAD, ids=lambda node: str(node)[:40])
def test_what_no_honest_process_sends_is_refused(node: list[Any]) -> None:
    with pytest.raises(BadValue):
        Decoder([], bad_kind).decode(node)


def test_a_function_may_change_what_it_is_given(lend: Lend) -> None:
    answer = (
        "def change(a, b, c, d):\n"
        "    a.update('xx'); b.appendleft(0); c.z = 3; d['new'].append(1)\n"
        "    return a"
    )
    cell = (
        "from collections import Counter, defaultdict, deque\n"
        "from types import SimpleNamespace\n"
        "a, b, c, d = Counter('x'), deque([1], 2), SimpleNamespace(y=1), defaultdict(list)\n"
        "assert change(a, b, c, d) == Counter('xxx')\n"
        "assert (a['x'], list(b), dict(d)) == (3, [0, 1], {'new': [1]})\n"
        "assert c == SimpleNamespace(y=1, z=3)"
    )
    assert verdict(lend(answer), cell).error == ""


def test_a_path_is_no_way_into_the_tests_files(lend: Lend) -> None:
    """It is a name, and what is read there is read by the process that has it."""
    answer = "from pathlib import Path\ndef place():\n    return Path('x.txt')"
    assert verdict(lend(answer), "assert str(place()) == 'x.txt'").score == 4
    assert not os.path.exists("x.txt")  # noqa: PTH110
