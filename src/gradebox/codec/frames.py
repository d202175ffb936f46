"""Frames, series and indices of pandas as plain data.

Columns of numbers and times go as arrays; those of pandas' own types go value by value, with the
name of the type. All else of pandas, such as a group, is an object of the student's.
"""

import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gradebox.codec.encoding import Decoder, Encoder, Node

_KIND = re.compile(
    r"str|string|boolean|U?Int(?:8|16|32|64)|Float(?:32|64)|category|"
    r"datetime64\[(?:s|ms|us|ns), [A-Za-z0-9_+:/-]{1,40}\]"
)
"""The types of columns that are no arrays of NumPy's, by their names."""


def is_of_pandas(value: Any) -> bool:
    """Return whether a value is a frame, a series, an index or a point in time of pandas'."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not hasattr(pandas, "DataFrame"):  # it is being imported
        return False
    kinds = (pandas.DataFrame, pandas.Series, pandas.Timestamp, pandas.Timedelta)
    return (
        type(value) in kinds
        or (
            isinstance(value, pandas.Index) and type(value).__module__.partition(".")[0] == "pandas"
        )
        or value is pandas.NA
        or value is pandas.NaT
    )


def write(encoder: "Encoder", value: Any, depth: int) -> "Node":
    """Return the node of anything of pandas' that is data."""
    pandas = sys.modules["pandas"]
    if value is pandas.NA or value is pandas.NaT:
        return ["nothing", "NA" if value is pandas.NA else "NaT"]
    if isinstance(value, pandas.Timestamp | pandas.Timedelta):
        zone = str(value.tz) if getattr(value, "tz", None) is not None else None
        return ["moment", type(value).__name__, int(value.asm8.view("i8")), value.unit, zone]
    if isinstance(value, pandas.Index):
        return _write_index(encoder, value, depth)
    encoder.note(value)
    index = _write_index(encoder, value.index, depth + 1)
    if isinstance(value, pandas.Series):
        name = encoder.encode(value.name, depth + 1)
        return ["series", name, index, _write_values(encoder, value, depth)]
    columns = _write_index(encoder, value.columns, depth + 1)
    positions = range(value.shape[1])
    series = [_write_values(encoder, value.iloc[:, position], depth) for position in positions]
    return ["frame", index, columns, series]


def _write_index(encoder: "Encoder", value: Any, depth: int) -> "Node":
    pandas = sys.modules["pandas"]
    names = encoder.each(list(value.names), depth)
    if isinstance(value, pandas.RangeIndex):
        return ["index", "range", names, [value.start, value.stop, value.step]]
    if isinstance(value, pandas.MultiIndex):
        return ["index", "many", names, encoder.each(value.tolist(), depth)]
    return ["index", "one", names, _write_values(encoder, value, depth)]


def _write_values(encoder: "Encoder", values: Any, depth: int) -> "Node":
    dtype = values.dtype
    if isinstance(dtype, np.dtype):
        return [None, encoder.encode(np.array(values.to_numpy()), depth + 1)]
    name = str(dtype)
    if not _KIND.fullmatch(name):
        return encoder.export(values.array)
    more: Any = None
    if name == "category":
        more = [encoder.each(dtype.categories.tolist(), depth), bool(dtype.ordered)]
    if name.startswith("datetime"):  # in UTC, as NumPy has them
        plain = np.array(values.array.tz_convert(None), dtype=f"M8[{dtype.unit}]")
        return [name, encoder.encode(plain, depth + 1), None]
    return [name, encoder.each(list(values.array), depth), more]


def _pandas() -> Any:
    try:
        import pandas  # type: ignore[import-untyped]
    except ImportError:
        raise ValueError("pandas is not installed here") from None
    return pandas


def _read_values(decoder: "Decoder", node: Any, depth: int) -> Any:
    pandas = _pandas()
    if type(node) is not list or len(node) not in (2, 3):
        raise ValueError("expected the values of a column")
    if node[0] is None:
        array = decoder.decode(node[1], depth + 1)
        if type(array) is not np.ndarray or array.ndim != 1:
            raise ValueError("expected a column")
        return array
    name, nodes, more = node
    if type(name) is not str or not _KIND.fullmatch(name):
        raise ValueError("expected the type of a column")
    if name.startswith("datetime"):
        array = decoder.decode(nodes, depth + 1)
        if type(array) is not np.ndarray or array.ndim != 1 or array.dtype.kind != "M":
            raise ValueError("expected a column of times")
        return pandas.DatetimeIndex(array).tz_localize("UTC").astype(name).array
    values = decoder.each(nodes, depth)
    if name == "category":
        if type(more) is not list or len(more) != 2 or type(more[1]) is not bool:
            raise ValueError("expected categories")
        kind = pandas.CategoricalDtype(decoder.each(more[0], depth), ordered=more[1])
        return pandas.Categorical(values, dtype=kind)
    return pandas.array(values, dtype=name)


def _read_index(decoder: "Decoder", node: Any, depth: int) -> Any:
    pandas = _pandas()
    if type(node) is not list or len(node) != 4 or node[0] != "index":
        raise ValueError("expected an index")
    _, kind, names, content = node
    names = decoder.each(names, depth)
    if kind == "range":
        if (
            type(content) is not list
            or [type(bound) for bound in content] != [int] * 3
            or not content[2]
        ):
            raise ValueError("expected the bounds of an index")
        return pandas.RangeIndex(*content, name=names[0])
    if kind == "many":
        items = decoder.each(content, depth)
        if not all(type(item) is tuple and len(item) == len(names) for item in items):
            raise ValueError("expected the items of an index of many levels")
        return pandas.MultiIndex.from_tuples(items, names=names)
    if kind != "one":
        raise ValueError("expected a kind of index")
    return pandas.Index(_read_values(decoder, content, depth), name=names[0])


def _read_series(decoder: "Decoder", node: list[Any], depth: int) -> Any:
    pandas = _pandas()
    _, name, index, values = node
    series = decoder.note(pandas.Series(dtype=object))
    rows = _read_index(decoder, index, depth + 1)
    name = decoder.decode(name, depth + 1)
    series._update_inplace(pandas.Series(_read_values(decoder, values, depth), index=rows))
    series.name = name
    return series


def _read_frame(decoder: "Decoder", node: list[Any], depth: int) -> Any:
    pandas = _pandas()
    _, index, columns, nodes = node
    frame = decoder.note(pandas.DataFrame())
    rows = _read_index(decoder, index, depth + 1)
    labels = _read_index(decoder, columns, depth + 1)
    if type(nodes) is not list or len(nodes) != len(labels):
        raise ValueError("expected a column for each label")
    series = {
        position: pandas.Series(_read_values(decoder, values, depth), index=rows)
        for position, values in enumerate(nodes)
    }
    fresh = pandas.DataFrame(series, index=rows)
    fresh.columns = labels
    frame._update_inplace(fresh)
    return frame


def _read_nothing(decoder: "Decoder", node: list[Any], depth: int) -> Any:
    _, name = node
    if name not in ("NA", "NaT"):
        raise ValueError("expected which value is missing")
    return getattr(_pandas(), name)


def _read_moment(decoder: "Decoder", node: list[Any], depth: int) -> Any:
    _, name, count, unit, zone = node
    if name not in ("Timestamp", "Timedelta") or type(count) is not int:
        raise ValueError("expected a point in time")
    if unit not in ("s", "ms", "us", "ns") or type(zone) not in (str, type(None)):
        raise ValueError("expected a unit and a zone")
    kind = "M8" if name == "Timestamp" else "m8"
    moment = getattr(_pandas(), name)(np.array(count, "i8").view(f"{kind}[{unit}]")[()])
    return moment if zone is None else moment.tz_localize("UTC").tz_convert(zone[:40])


def restored(target: Any, fresh: Any) -> Callable[[], None]:
    """Return an action that gives a frame or a series what another one holds."""
    if type(target) is not type(fresh):
        raise ValueError("expected a frame, or a series")

    def act() -> None:
        target._update_inplace(fresh)
        if fresh.ndim == 1:
            target.name = fresh.name

    return act


READERS: dict[str, Callable[["Decoder", list[Any], int], Any]] = {
    "frame": _read_frame,
    "series": _read_series,
    "index": _read_index,
    "nothing": _read_nothing,
    "moment": _read_moment,
}
