"""Values of the standard library's types, and arrays of NumPy's rarer kinds, as plain data.

Each type has a writer, which makes a node, and a reader, which builds the value anew from exact
types: see :mod:`gradebox.codec.encoding`, which puts them beside those of its own.
"""

import datetime
import gc
import re
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path, PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gradebox.codec.encoding import Decoder, Encoder, Node

Writer = Callable[["Encoder", Any, int], "Node"]
Reader = Callable[["Decoder", list[Any], int], Any]

_FACTORIES = {kind.__name__: kind for kind in (int, float, str, bool, list, dict, set, tuple)}
_NUMBER = re.compile(r"-?(?:\d+(?:\.\d+)?(?:E[+-]?\d{1,9})?|Infinity|s?NaN\d{0,9})", re.IGNORECASE)


class Misfit(ValueError):
    """A node does not have the form of its kind."""


def _one_of(value: Any, *kinds: type) -> Any:
    if type(value) not in kinds:
        raise Misfit(f"expected {' or '.join(kind.__name__ for kind in kinds)}")
    return value


def _fields(node: list[Any], *kinds: tuple[type, ...]) -> list[Any]:
    """Return what follows the kind of a node, each of one of some types."""
    if len(node) != len(kinds) + 1:
        raise Misfit(f"expected {len(kinds)} fields, got {len(node) - 1}")
    return [_one_of(value, *some) for value, some in zip(node[1:], kinds, strict=True)]


# --- containers -------------------------------------------------------------------------------


def _pairs(encoder: "Encoder", value: Any, depth: int) -> list["Node"]:
    return [encoder.each(pair, depth) for pair in value.items()]


def _fill(decoder: "Decoder", target: Any, pairs: list[Any], depth: int) -> Any:
    """Put pairs into a mapping, which has been numbered before them."""
    for pair in pairs:
        if type(pair) is not list or len(pair) != 2:
            raise Misfit("expected a key and a value")
        key, item = decoder.each(pair, depth)
        target[key] = item
    return target


def _write_mapping(encoder: "Encoder", value: Any, depth: int) -> "Node":
    encoder.note(value)
    return [type(value).__name__, _pairs(encoder, value, depth)]


def _mapping(kind: type) -> Reader:
    def read(decoder: "Decoder", node: list[Any], depth: int) -> Any:
        return _fill(decoder, decoder.note(kind()), _fields(node, (list,))[0], depth)

    return read


def _write_defaultdict(encoder: "Encoder", value: Any, depth: int) -> "Node":
    encoder.note(value)
    default_factory = value.default_factory
    name = getattr(default_factory, "__name__", "")
    is_builtin = name in _FACTORIES and _FACTORIES[name] is default_factory
    factory = name if is_builtin else encoder.encode(default_factory, depth + 1)
    return ["defaultdict", factory, _pairs(encoder, value, depth)]


def _read_defaultdict(decoder: "Decoder", node: list[Any], depth: int) -> Any:
    factory, pairs = _fields(node, (str, list, type(None)), (list,))
    value: Any = decoder.note(defaultdict())
    if isinstance(factory, str):
        if factory not in _FACTORIES:
            raise Misfit("expected the name of a type")
        value.default_factory = _FACTORIES[factory]
    else:
        value.default_factory = decoder.decode(factory, depth + 1)
    return _fill(decoder, value, pairs, depth)


def _write_deque(encoder: "Encoder", value: Any, depth: int) -> "Node":
    encoder.note(value)
    return ["deque", encoder.each(value, depth), value.maxlen]


def _read_deque(decoder: "Decoder", node: list[Any], depth: int) -> Any:
    items, longest = _fields(node, (list,), (int, type(None)))
    if longest is not None and not len(items) <= longest < 2**31:
        raise Misfit("expected the greatest length of a deque")
    value: deque[Any] = decoder.note(deque(maxlen=longest))
    value.extend(decoder.each(items, depth))
    return value


def _write_namespace(encoder: "Encoder", value: Any, depth: int) -> "Node":
    encoder.note(value)
    return ["namespace", _pairs(encoder, vars(value), depth)]


def _read_namespace(decoder: "Decoder", node: list[Any], depth: int) -> Any:
    value = decoder.note(SimpleNamespace())
    pairs = _fill(decoder, {}, _fields(node, (list,))[0], depth)
    if not all(type(name) is str for name in pairs):
        raise Misfit("expected the names of attributes")
    vars(value).update(pairs)
    return value


_VIEWS = {"keys": type({}.keys()), "values": type({}.values()), "items": type({}.items())}


def _write_view(encoder: "Encoder", value: Any, depth: int) -> "Node":
    name = next(name for name, kind in _VIEWS.items() if type(value) is kind)
    [viewed] = gc.get_referents(value)  # nothing else leads from a view to its dict
    return ["view", name, encoder.encode(viewed, depth + 1, 2)]


def _read_view(decoder: "Decoder", node: list[Any], depth: int) -> Any:
    name, viewed = _fields(node, (str,), (list,))
    if name not in _VIEWS:
        raise Misfit("expected the view of a dict")
    return getattr(dict, name)(_one_of(decoder.decode(viewed, depth + 1), dict))


# --- functions --------------------------------------------------------------------------------


def _write_partial(encoder: "Encoder", value: Any, depth: int) -> "Node":
    if not encoder.lends:  # a test's own may hold what it expects
        return encoder.export(value)
    return ["partial", *encoder.each((value.func, value.args, value.keywords), depth)]


def _read_partial(decoder: "Decoder", node: list[Any], depth: int) -> Any:
    function, args, keywords = decoder.each(node[1:], depth)
    if not callable(function) or any(type(name) is not str for name in keywords):
        raise Misfit("expected a function and its arguments")
    return partial(function, *_one_of(args, tuple), **_one_of(keywords, dict))


# --- numbers, times, paths --------------------------------------------------------------------


def _write_fraction(encoder: "Encoder", value: Any, depth: int) -> "Node":
    return ["Fraction", *encoder.each((value.numerator, value.denominator), depth)]


def _read_fraction(decoder: "Decoder", node: list[Any], depth: int) -> Fraction:
    above, below = decoder.each(node[1:], depth)
    if type(above) is not int or type(below) is not int or below < 1:
        raise Misfit("expected a numerator and a denominator")
    return Fraction(above, below)


def _read_decimal(decoder: "Decoder", node: list[Any], depth: int) -> Decimal:
    [text] = _fields(node, (str,))
    if len(text) > 100_000 or not _NUMBER.fullmatch(text):
        raise Misfit("expected a decimal number")
    return Decimal(text)


def _write_time(encoder: "Encoder", value: Any, depth: int) -> "Node":
    zone = getattr(value, "tzinfo", None)
    if zone is not None and type(zone) is not datetime.timezone:
        return encoder.export(value)
    return [type(value).__name__, value.isoformat(), getattr(value, "fold", 0)]


def _time(kind: Any) -> Reader:
    def read(decoder: "Decoder", node: list[Any], depth: int) -> Any:
        text, fold = _fields(node, (str,), (int,))
        if len(text) > 60 or fold not in (0, 1):
            raise Misfit("expected a time")
        value = kind.fromisoformat(text)
        return value.replace(fold=1) if fold else value

    return read


def _write_duration(encoder: "Encoder", value: Any, depth: int) -> "Node":
    return ["timedelta", value.days, value.seconds, value.microseconds]


def _read_duration(decoder: "Decoder", node: list[Any], depth: int) -> datetime.timedelta:
    days, seconds, microseconds = _fields(node, (int,), (int,), (int,))
    return datetime.timedelta(days, seconds, microseconds)


def _write_zone(encoder: "Encoder", value: Any, depth: int) -> "Node":
    return ["timezone", encoder.encode(value.utcoffset(None), depth + 1)]


def _read_zone(decoder: "Decoder", node: list[Any], depth: int) -> datetime.timezone:
    [offset] = decoder.each(node[1:], depth)
    return datetime.timezone(_one_of(offset, datetime.timedelta))


_PATHS = {"path": Path, "posix": PurePosixPath, "windows": PureWindowsPath}


def _write_path(encoder: "Encoder", value: Any, depth: int) -> "Node":
    pure = {PurePosixPath: "posix", PureWindowsPath: "windows"}
    return ["path", pure.get(type(value), "path"), str(value)]


def _read_path(decoder: "Decoder", node: list[Any], depth: int) -> Any:
    name, text = _fields(node, (str,), (str,))
    if name not in _PATHS or len(text) > 10_000:
        raise Misfit("expected a path")
    return _PATHS[name](text)


# --- arrays -----------------------------------------------------------------------------------


def _write_masked(encoder: "Encoder", value: Any, depth: int) -> "Node":
    mask = np.ma.getmask(value)
    parts = (np.asarray(value.data), None if mask is np.ma.nomask else np.asarray(mask))
    return ["masked", *encoder.each(parts, depth)]


def _read_masked(decoder: "Decoder", node: list[Any], depth: int) -> Any:
    data, mask = decoder.each(node[1:], depth)
    _one_of(data, np.ndarray)
    if mask is not None and (_one_of(mask, np.ndarray).shape, mask.dtype.kind) != (data.shape, "b"):
        raise Misfit("expected a mask of the shape of the array")
    return np.ma.MaskedArray(data, np.ma.nomask if mask is None else mask)


def write_structured(encoder: "Encoder", value: Any, depth: int) -> "Node":
    """Return the node of an array with fields, each an array of its own."""
    names = list(value.dtype.names)
    fields = [np.ascontiguousarray(value[name]) for name in names]
    return ["structured", list(value.shape), names, encoder.each(fields, depth)]


def _read_structured(decoder: "Decoder", node: list[Any], depth: int) -> Any:
    lengths, names, nodes = _fields(node, (list,), (list,), (list,))
    shape = decoder.shape(lengths)
    fields = decoder.each(nodes, depth)
    for name, field in zip(names, fields, strict=True):
        _one_of(name, str)
        if _one_of(field, np.ndarray).shape[: len(shape)] != shape or field.dtype.hasobject:
            raise Misfit("expected fields of the shape of the array")
    kinds = [
        (name, field.dtype, field.shape[len(shape) :])
        for name, field in zip(names, fields, strict=True)
    ]
    array = np.zeros(shape, kinds)
    for name, field in zip(names, fields, strict=True):
        array[name] = field
    return array


def write_objects(encoder: "Encoder", value: Any, depth: int) -> "Node":
    """Return the node of an array of objects."""
    return ["objects", list(value.shape), encoder.each(value.ravel().tolist(), depth)]


def _read_objects(decoder: "Decoder", node: list[Any], depth: int) -> Any:
    lengths, nodes = _fields(node, (list,), (list,))
    shape = decoder.shape(lengths)
    array = np.empty(len(nodes), object)
    array[:] = [None] * len(nodes)
    for number, item in enumerate(decoder.each(nodes, depth)):
        array[number] = item
    return array.reshape(shape)


_SPARSE = frozenset(
    f"{layout}_{kind}"
    for layout in ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")
    for kind in ("array", "matrix")
)


def write_sparse(encoder: "Encoder", value: Any, depth: int) -> "Node":
    """Return the node of a sparse matrix of SciPy's: where it has entries, and which."""
    name = type(value).__name__
    if name not in _SPARSE or len(value.shape) != 2:
        return encoder.export(value)
    coordinates = value.tocoo()
    parts = [
        np.ascontiguousarray(array)
        for array in (coordinates.data, coordinates.row, coordinates.col)
    ]
    return ["sparse", name, list(value.shape), *encoder.each(parts, depth)]


def _read_sparse(decoder: "Decoder", node: list[Any], depth: int) -> Any:
    from scipy import sparse

    _, name, lengths, *nodes = node
    if name not in _SPARSE or type(lengths) is not list or len(lengths) != 2:
        raise Misfit("expected a kind of sparse matrix and its shape")
    if not all(type(length) is int and 0 <= length < 2**31 for length in lengths):
        raise Misfit("expected the shape of a sparse matrix")
    data, rows, columns = decoder.each(nodes, depth)
    kinds = [_one_of(array, np.ndarray).dtype.kind for array in (data, rows, columns)]
    if kinds[0] not in "biufc" or not set(kinds[1:]) <= {"i"} or {data.ndim, rows.ndim} != {1}:
        raise Misfit("expected numbers and where they are")
    if name.startswith(("bsr", "dia", "lil")) and lengths[0] * lengths[1] > 2**26:
        raise Misfit("expected a smaller matrix")
    matrix = sparse.coo_array((data, (rows, columns)), shape=tuple(lengths))
    kind = getattr(sparse, name)
    return kind(matrix) if name != "coo_array" else matrix


WRITERS: dict[type, Writer] = {
    Counter: _write_mapping,
    OrderedDict: _write_mapping,
    defaultdict: _write_defaultdict,
    deque: _write_deque,
    SimpleNamespace: _write_namespace,
    **dict.fromkeys(_VIEWS.values(), _write_view),
    partial: _write_partial,
    Fraction: _write_fraction,
    Decimal: lambda encoder, value, depth: ["Decimal", str(value)],
    **dict.fromkeys((datetime.datetime, datetime.date, datetime.time), _write_time),
    datetime.timedelta: _write_duration,
    datetime.timezone: _write_zone,
    **dict.fromkeys((PosixPath, WindowsPath, PurePosixPath, PureWindowsPath), _write_path),
    np.ma.MaskedArray: _write_masked,
}
"""For values of exactly these types."""

READERS: dict[str, Reader] = {
    "Counter": _mapping(Counter),
    "OrderedDict": _mapping(OrderedDict),
    "defaultdict": _read_defaultdict,
    "deque": _read_deque,
    "namespace": _read_namespace,
    "view": _read_view,
    "partial": _read_partial,
    "Fraction": _read_fraction,
    "Decimal": _read_decimal,
    "datetime": _time(datetime.datetime),
    "date": _time(datetime.date),
    "time": _time(datetime.time),
    "timedelta": _read_duration,
    "timezone": _read_zone,
    "path": _read_path,
    "masked": _read_masked,
    "structured": _read_structured,
    "objects": _read_objects,
    "sparse": _read_sparse,
}
