"""The right numbers in another order or shape: transposed, shifted, collected without a copy."""

from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np

from optdl.checks.diagnoses.evidence import Pair, Part, near


def copied(part: Part) -> str:
    """Recognize a path all of whose rows are equal, as when one array is appended each time."""
    if not part.same_shape or any(pair.right.ndim < 2 for pair in part.pairs):
        return ""
    if not all(_still(pair.got) for pair in part.pairs) or any(
        _still(pair.right) for pair in part.pairs
    ):
        return ""
    if part.obeys(lambda pair: np.broadcast_to(pair.right[0], pair.right.shape)):
        return "has its first row in every row: nothing ever moves"
    if part.obeys(lambda pair: np.broadcast_to(pair.right[-1], pair.right.shape)):
        return (
            "has the last row in every row: the same array is appended each time; append a "
            "copy of it"
        )
    return (
        "has all rows equal: is the same array appended each time, changed in place? Append a copy"
    )


def _still(path: np.ndarray) -> bool:
    return len(path) >= 3 and near(np.broadcast_to(path[0], path.shape), path)


ORDERS: tuple[tuple[str, Callable[[np.ndarray], Any]], ...] = (
    ("is transposed", lambda right: right.T if right.ndim > 1 else None),
    ("has its rows in the opposite order", lambda right: right[::-1] if right.ndim else None),
    ("has its columns in the opposite order", lambda x: x[:, ::-1] if x.ndim > 1 else None),
    ("is one row late: row k stands in row k + 1", lambda right: _late(right)),
    ("is one row early: row k + 1 stands in row k", lambda right: _early(right)),
    ("is right, and sorted: leave the entries where they belong", lambda x: _sorted(x)),
    (
        "is right, and sorted from large to small: leave the entries where they belong",
        lambda right: _sorted(right, -1),
    ),
)


def _late(right: np.ndarray) -> Any:
    return np.roll(right, 1, axis=0) if right.ndim and len(right) > 2 else None


def _early(right: np.ndarray) -> Any:
    return np.roll(right, -1, axis=0) if right.ndim and len(right) > 2 else None


def _sorted(right: np.ndarray, step: int = 1) -> Any:
    return np.sort(right)[::step] if right.ndim == 1 and right.size > 1 else None


def shifted(part: Part) -> str:
    """Recognize numbers in the places of their neighbors, apart from those at the ends."""
    late = [_moved(pair, slice(1, None), slice(None, -1)) for pair in part.pairs]
    early = [_moved(pair, slice(None, -1), slice(1, None)) for pair in part.pairs]
    if not part.same_shape:
        return ""
    if all(late):
        return "is one row late: row k has what belongs into row k − 1"
    return "is one row early: row k has what belongs into row k + 1" if all(early) else ""


def _moved(pair: Pair, got: slice, right: slice) -> bool:
    if pair.right.ndim < 1 or len(pair.right) < 3 or pair.got.shape != pair.right.shape:
        return False
    part = pair.right[right]
    return near(part, pair.got[got]) and not _still(pair.right)


def order(part: Part) -> str:
    """Recognize the right numbers in another order."""
    for text, change in ORDERS:
        if part.maps(change):
            return text
    if text := shifted(part) or _turned(part):
        return text
    if part.same_shape and all(_permuted(pair) for pair in part.pairs):
        return "has the right numbers in another order"
    return ""


def _turned(part: Part) -> str:
    """Recognize an array of three axes or more whose axes are in another order."""
    ndim = part.pairs[0].right.ndim
    if ndim < 3 or any(pair.right.ndim != ndim for pair in part.pairs):
        return ""
    for axes in permutations(range(ndim)):
        if part.maps(partial(np.transpose, axes=axes)):
            return f"has its axes in another order: it is np.transpose(expected, {axes})"
    return ""


def _permuted(pair: Pair) -> bool:
    """Return whether the entries are the same but for their order, and not few and alike."""
    right, got = (np.sort(np.ravel(array)) for array in (pair.right, pair.got))
    various = len(np.unique(right.round(9))) > min(3, len(right) - 1)
    return near(right, got) and various and (near(pair.right, pair.got) or len(right) >= 2)


SHAPES: tuple[tuple[str, Callable[[Pair], bool]], ...] = (
    ("has the right numbers in another shape", lambda p: near(p.right.ravel(), p.got.ravel())),
    (
        "lacks the last row; the others are right",
        lambda p: len(p.got) == len(p.right) - 1 and near(p.right[:-1], p.got),
    ),
    (
        "lacks the first row; the others are right",
        lambda p: len(p.got) == len(p.right) - 1 and near(p.right[1:], p.got),
    ),
    ("has one row too many, the first", lambda p: near(p.right, p.got[1:])),
    ("has one row too many, the last", lambda p: near(p.right, p.got[:-1])),
    (
        "is the largest of the entries that are expected",
        lambda p: _folds(np.max, p.right, p.got),
    ),
    ("is the last row of the expected one alone", lambda p: near(p.right[-1], p.got)),
    ("is the first row of the expected one alone", lambda p: near(p.right[0], p.got)),
    ("is one entry alone: it has to be all of them", lambda p: near(p.right.ravel()[-1], p.got)),
    ("has the terms of a sum: add them up", lambda p: _folds(np.sum, p.got, p.right)),
    ("has the terms of a mean: average them", lambda p: _folds(np.mean, p.got, p.right)),
    ("is the sum of the entries that are expected", lambda p: _folds(np.sum, p.right, p.got)),
    ("is the mean of the entries that are expected", lambda p: _folds(np.mean, p.right, p.got)),
)


def shape(part: Part) -> str:
    """Recognize the right numbers in a wrong shape: a row too few, terms not added up."""
    if all(pair.right.shape == pair.got.shape or _is_constant(pair.right) for pair in part.pairs):
        return ""
    for text, holds in SHAPES:
        if all(_safely(holds, pair) for pair in part.pairs):
            return text
    return ""


def _is_constant(array: np.ndarray) -> bool:
    return array.size > 1 and bool((array == array.flat[0]).all())


def _safely(holds: Callable[[Pair], bool], pair: Pair) -> bool:
    try:
        return bool(holds(pair))
    except (IndexError, ValueError, TypeError):
        return False


def _folds(fold: Callable[..., Any], terms: np.ndarray, total: np.ndarray) -> bool:
    """Return whether a sum or mean of terms, over all or over one axis, gives a total."""
    axes = [None, *range(terms.ndim)]
    return terms.size > 1 and any(near(fold(terms, axis=axis), total) for axis in axes)
