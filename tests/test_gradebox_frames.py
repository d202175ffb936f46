"""Frames, series and indices of pandas arrive as what they are, and nothing else does."""

from typing import Any

import pandas as pd
import pytest
from test_gradebox_proxy import Lend, bad_kind, lend, server, there

from gradebox.codec.encoding import BadValue, Decoder

__all__ = ["lend", "server"]  # fixtures

pytestmark = pytest.mark.xdist_group("gradebox")

DATES = pd.DatetimeIndex(["2026-01-01", "2026-01-02"]).tz_localize("Europe/Berlin")
FRAME = pd.DataFrame(
    {
        "a": [1.5, None],
        "text": ["x", None],
        "kind": pd.Categorical(["u", "v"], ["v", "u"], ordered=True),
        "count": pd.array([1, None], "Int64"),
        "flag": pd.array([True, None], "boolean"),
        "when": DATES,
        "plain": DATES.tz_localize(None),
        "lasts": pd.to_timedelta([1, 2], "s"),
        "lists": [[1], {"b": 2}],
    },
    index=pd.Index(["r", "s"], name="row"),
)
MANY = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["letter", None])


@pytest.mark.parametrize(
    "value",
    [
        FRAME,
        FRAME.T,
        pd.DataFrame(),
        pd.DataFrame({"x": [1, 2]}, index=MANY),
        pd.DataFrame([[1, 2]], columns=["same", "same"]),
        pd.DataFrame([[1, 2]], columns=MANY),
    ],
    ids=["kinds", "turned", "empty", "levels", "same names", "levels of columns"],
)
def test_a_frame_arrives_as_it_is(value: Any) -> None:
    pd.testing.assert_frame_equal(there(value), value)


@pytest.mark.parametrize("name", FRAME.columns)
def test_a_series_and_its_values_arrive_as_they_are(name: str) -> None:
    pd.testing.assert_series_equal(there(FRAME[name]), FRAME[name])
    first = FRAME[name].iloc[0]
    assert there(first) == first


def test_indices_and_what_is_missing_arrive() -> None:
    for index in (pd.RangeIndex(2, 9, 3, name="n"), MANY, DATES, pd.Index([1.5, 2])):
        pd.testing.assert_index_equal(there(index), index)
    assert there(pd.NA) is pd.NA
    assert there(pd.NaT) is pd.NaT


def test_a_frame_changes_in_place(lend: Lend) -> None:
    student = lend(
        "import pandas as pd\nkept = pd.DataFrame({'a': [1]})\n"
        "def add(frame): frame['b'] = frame['a'] + 1\n"
        "def drop(frame): frame.drop(index=[0], inplace=True)\n"
        "def first(): return kept['a'].iloc[0]"
    )
    frame = pd.DataFrame({"a": [1, 2]})
    student["add"](frame)
    student["drop"](frame)
    pd.testing.assert_frame_equal(frame, pd.DataFrame({"a": [2], "b": [3]}, index=[1]))
    student["kept"].loc[0, "a"] = 7
    assert student["first"]() == 7


RANGE = ["index", "range", [None], [0, 1, 1]]
TEXT = ["str", ["x"], None]


@pytest.mark.parametrize(
    "node",
    [
        ["frame", RANGE, RANGE],
        ["frame", RANGE, RANGE, []],
        ["frame", RANGE, ["list", []], [TEXT]],
        ["series", None, RANGE, 3],
        ["series", None, RANGE, ["object", ["x"], None]],
        ["series", None, RANGE, ["str", ["x", "y"], None]],
        ["series", None, RANGE, ["Int64", ["x"], None]],
        ["series", None, RANGE, ["category", ["x"], None]],
        ["series", None, RANGE, ["category", ["x"], [["x", "x"], False]]],
        ["series", None, RANGE, ["datetime64[ns, Nowhere/Land]", ["list", []], None]],
        ["series", ["list", []], RANGE, TEXT],
        ["index", "range", [], [0, 1, 1]],
        ["index", "range", [None], [0, 1, 0]],
        ["index", "range", [None], [0, 1, True]],
        ["index", "many", [None], [3]],
        ["index", "one", [], TEXT],
        ["index", "other", [None], TEXT],
        ["nothing", "inf"],
        ["moment", "Timestamp", "0", "s", None],
        ["moment", "Period", 0, "s", None],
        ["moment", "Timestamp", 2**70, "s", None],
        ["moment", "Timestamp", 0, "Y", None],
        ["moment", "Timestamp", 0, "s", "Nowhere/Land"],
    ],
    ids=str,
)
def test_what_no_honest_process_sends_is_refused(node: Any) -> None:
    with pytest.raises(BadValue):
        Decoder([], bad_kind).decode(node)
