"""What one part of an answer has to do with the right one: values, order, shape, a factor."""

from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np

from optdl.checks.diagnoses import factors
from optdl.checks.diagnoses.evidence import Pair, Part, near

Row = tuple[str, Callable[[Part], bool | str]]
"""A sentence, and when it is true of a part; words that the condition returns stand for ``{}``."""

NOT_EXACT = (
    "is close but not exact: is something rounded or approximated, in float32, or a small number "
    "added?"
)
IN_OTHER_ORDER = "has the right numbers in another order"


def _mapped(change: Callable[[np.ndarray], Any]) -> Callable[[Part], bool]:
    """Return whether a change of the right numbers gives those got in every case."""
    return lambda part: part.informative and part.obeys(change)


def _of_all(holds: Callable[[Pair], Any]) -> Callable[[Part], bool]:
    return lambda part: part.informative and all(map(holds, part.pairs))


def _is_nan(part: Part) -> bool:
    # in every case that is wrong: elsewhere it explains nothing
    got = [np.isnan(pair.got.astype(float)).any() for pair in part.wrong_pairs]
    return all(got) and bool(got) and not np.isnan(part.rights.astype(float)).any()


def _copied(part: Part) -> bool:
    """Recognize paths whose rows are all the last one, as when one array is appended each time."""
    return _stays(part) and all(near(pair.right[-1], pair.got[-1]) for pair in part.pairs)


def _stays(part: Part) -> bool:
    return part.same_shape and all(_still(p.got) and not _still(p.right) for p in part.pairs)


def _still(path: np.ndarray) -> bool:
    return path.ndim >= 2 and len(path) >= 3 and near(np.broadcast_to(path[0], path.shape), path)


def is_level(part: Part) -> bool:
    """Tell vectors that hold one number again and again, where the expected ones do not."""
    long = [[len(np.unique(a)) for a in pair[:2]] for pair in part.pairs if pair.right.size > 2]
    alike = len(long) > 1 and all(right > 1 == got for right, got in long) and not _is_nan(part)
    return alike and part.same_shape and part.has_places and part.rights.dtype != bool


def _constant(part: Part) -> str:
    """Return the one number that a part is; of the wrong cases alone only a zero is no accident."""
    number = part.constant
    if number is None or (part.scope and number):
        return ""
    # one number that is no more than a rounding error is another one in each call
    text = "0 up to rounding" if number and near(0.0, number) else f"{number + 0.0:.6g}"
    return text if part.scope else f"{text} in all cases tried"


def _of_integers(part: Part) -> bool:
    """Tell arrays that can hold no decimals from single numbers that happen to have none."""
    integers = all(pair.got.ndim > 0 and pair.got.dtype.kind == "i" for pair in part.pairs)
    whole = near(part.rights, np.round(part.rights))
    return part.same_shape and part.informative and integers and not whole


def _decimals(part: Part) -> str:
    """Return how many decimals all numbers have, if they are the nearest such ones."""
    got = np.concatenate([np.ravel(pair.got) for pair in part.pairs])
    for digits in range(13) if part.informative else ():
        if np.allclose(got, got.round(digits), 1e-15, 1e-15, True):
            return f"{digits}" if part.obeys(partial(np.round, decimals=digits)) else ""
    return ""


def _close(pair: Pair) -> bool:
    right, got = pair.right.astype(float), pair.got.astype(float)
    if right.shape != got.shape or not np.isfinite(right).all() or not np.isfinite(got).all():
        return near(right, got)
    return np.allclose(got, right, rtol=1e-3, atol=1e-6 * np.abs(right).max(initial=0))


def _axes(part: Part) -> str:
    """Return the other order of three axes or more."""
    ndim = part.pairs[0].right.ndim
    if ndim < 3 or any(pair.right.ndim != ndim for pair in part.pairs):
        return ""
    orders = permutations(range(ndim))
    return next((str(o) for o in orders if part.obeys(partial(np.transpose, axes=o))), "")


def _shifted(of_got: slice, of_right: slice) -> Callable[[Part], bool]:
    """Recognize paths that are one row late or early, in cases enough that do not stand still."""

    def moves(pair: Pair) -> bool:
        return pair.right.ndim > 0 and len(np.unique(pair.right, axis=0)) >= 3

    def holds(part: Part) -> bool:
        if not (part.same_shape and part.has_places):
            return False
        paths = [(pair.right, pair.got) for pair in part.hardest if pair.right.ndim]
        alike = all(near(right[of_right], got[of_got]) for right, got in paths)
        return alike and sum(map(moves, part.pairs)) >= 2

    return holds


def _permuted(pair: Pair) -> bool:
    """Return whether the entries are the same but for their order, and not few and alike."""
    right, got = (np.sort(np.ravel(array)).astype(float) for array in pair[:2])
    various = len(np.unique(right.round(9))) > min(3, len(right) - 1)
    return near(right, got) and various and (near(pair.right, pair.got) or len(right) >= 2)


def _shaped(holds: Callable[[np.ndarray, np.ndarray], Any]) -> Callable[[Part], bool]:
    """Return whether something holds in every case, and a shape is wrong in one that shows it."""

    def safely(pair: Pair) -> bool:
        try:
            return bool(holds(pair.right, pair.got))
        except (IndexError, ValueError, TypeError):
            return False

    return lambda part: (
        not part.same_shape
        and any(p.right.shape != p.got.shape and _tells(p.right) for p in part.pairs)
        and all(map(safely, part.pairs))
    )


def _rows(of_right: Any, of_got: Any) -> Callable[[Part], bool]:
    return _shaped(lambda right, got: near(right[of_right], got[of_got]))


def _reduced(part: Part, of_right: bool) -> str:
    """Return what makes one number of an array: of the expected one, or of that got."""
    two = [(p.right, p.got) if of_right else (p.got, p.right) for p in part.pairs]
    # a number that is alone, or among others like it, is their sum, mean and largest at once
    various = sum(len(np.unique(array.astype(float).round(9))) >= 2 for array, _ in two)
    if various < 2 or any(number.ndim or not array.size for array, number in two):
        return ""
    for name, reduce in REDUCTIONS.items():
        if all(near(reduce(array), number) for array, number in two):
            return name
    return ""


REDUCTIONS: dict[str, Any] = {"sum": np.sum, "mean": np.mean, "largest": np.max, "smallest": np.min}


def _tells(array: np.ndarray) -> bool:
    return array.size == 1 or len(np.unique(array)) > 1


PART: tuple[Row, ...] = (
    ("has entries that are nan: 0/0, 0 · ∞, ∞ − ∞, the root or log of a negative?", _is_nan),
    ("is {}", _constant),
    ("has all rows equal: is one and the same array appended each time? Append a copy", _copied),
    ("has all rows equal", _stays),
    ("has only whole numbers: is it an array of integers, or is a `/` missing?", _of_integers),
    (
        "has lost its decimals: is there an array of integers, `int` or `//` in it?",
        lambda part: part.constant is None and _mapped(np.trunc)(part),
    ),
    (
        "is no whole number; round it up to the next one",
        _of_all(lambda pair: near(pair.right, np.ceil(pair.got)) and pair.got.dtype.kind == "f"),
    ),
    ("is rounded to {} decimals; do not round", _decimals),
    (
        "is in single precision (float32): compute in float64",
        _of_all(lambda pair: pair.got.dtype == np.float32 and _close(pair)),
    ),
    ("has the opposite sign", _mapped(np.negative)),
    ("has 0 wherever the expected one is negative", _mapped(partial(np.maximum, 0))),
    ("is transposed", lambda part: part.obeys(lambda a: a.T if a.ndim > 1 else None)),
    (
        "has its rows in the opposite order",
        lambda part: part.has_places and part.obeys(lambda a: a[::-1] if a.ndim else None),
    ),
    ("has its axes in another order: it is np.transpose(expected, {})", _axes),
    ("has in each row what is right for the row before", _shifted(slice(1, None), slice(-1))),
    ("has in each row what is right for the next row", _shifted(slice(-1), slice(1, None))),
    (
        IN_OTHER_ORDER,
        lambda part: part.same_shape and all(map(_permuted, part.pairs)),
    ),
    (
        "has the right numbers in another shape",
        _shaped(lambda right, got: near(right.ravel(), got.ravel())),
    ),
    ("lacks the last row, and has the others", _rows(slice(-1), ...)),
    ("lacks the first row, and has the others", _rows(slice(1, None), ...)),
    ("lacks the first column, and has the others", _rows(np.s_[:, 1:], ...)),
    ("has a last row too many, and the right others", _rows(..., slice(-1))),
    ("has a first row too many, and the right others", _rows(..., slice(1, None))),
    ("is the last row of the expected one alone", _rows(-1, ...)),
    ("is the {} of the entries that are expected", partial(_reduced, of_right=True)),
    ("has several entries, of which the {} is expected", partial(_reduced, of_right=False)),
    *factors.PART,
    (NOT_EXACT, _of_all(_close)),
)
"""From the most specific to the least."""

FUNCTION: tuple[Row, ...] = (
    ("is the square of the expected one", _mapped(np.square)),
    ("is the root of the expected one", _mapped(np.sqrt)),
    ("is one over the expected one", _mapped(np.reciprocal)),
    ("has 1 wherever the expected one is larger", _mapped(partial(np.minimum, 1))),
    ("has all entries equal", is_level),
)
"""Functions of the right number, which explain little where another call does."""


def first(table: tuple[Row, ...], part: Part) -> str:
    """Return the first sentence that is true of a part, or of its wrong cases or entries alone."""
    if not part.wrong_pairs:  # every change that changes next to nothing would explain it
        table = tuple(row for row in table if row[0] == NOT_EXACT)
    for narrowed in part.narrowed:
        for sentence, condition in table:
            if found := condition(narrowed):
                if narrowed.pairs[0].right.ndim == 1:
                    sentence = sentence.replace("rows", "entries").replace("row", "entry")
                return f"{narrowed.scope}{{}} {sentence.format(found)}"
    return ""
