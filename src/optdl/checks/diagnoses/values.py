"""Entry by entry: a sign, precision, rounding, or a function of the right number."""

from collections.abc import Callable

import numpy as np

from optdl.checks.diagnoses.evidence import Pair, Part, near

CLOSE = 1e-3
NOT_EXACT = (
    "is close but not exact: is something rounded or approximated, in float32, or a small number "
    "added?"
)
Change = Callable[[np.ndarray], np.ndarray]

SIGN: tuple[tuple[str, Change], ...] = (
    ("has the opposite sign", np.negative),
    ("has no signs: it is the absolute value of the expected one", np.abs),
)
FUNCTIONS: tuple[tuple[str, Change], ...] = (
    ("is the square of the expected one", np.square),
    ("is the root of the expected one", np.sqrt),
    ("is one over the expected one", np.reciprocal),
    ("is one over the root of the expected one", lambda x: 1 / np.sqrt(x)),
    ("is 1 minus the expected one", lambda x: 1 - x),
    ("is the exponential of the expected one", np.exp),
    ("is the logarithm of the expected one", np.log),
    ("is the third power of the expected one", lambda x: x**3),
    ("has its negative numbers cut off at 0", lambda x: np.maximum(x, 0)),
    ("is cut off at 1", lambda x: np.minimum(x, 1)),
)


def precision(part: Part) -> str:
    """Recognize single precision, whole numbers, and rounding."""
    if not part.same_shape or not _informative(part):
        return ""
    if all(_is_array_of_integers(pair) for pair in part.pairs) and not _whole(part):
        return "is an array of integers, which cuts the decimals off: make it one of floats"
    if part.maps(np.trunc):
        return "has lost its decimals: is there an array of integers, `int` or `//` in it?"
    for digits in range(13):
        if all(_rounded(pair, digits) for pair in part.pairs):
            return f"is rounded to {digits} decimals; do not round"
    if all(_close(pair) for pair in part.pairs) and _is_single(part):
        return "is in single precision (float32): compute in float64"
    return ""


def _rounded(pair: Pair, digits: int) -> bool:
    """Return whether the numbers got have so many decimals, and are the nearest such ones."""
    return near(pair.right.round(digits), pair.got) and bool(
        np.allclose(pair.got, pair.got.round(digits), rtol=1e-15, atol=1e-15, equal_nan=True)
    )


WHOLE: tuple[tuple[str, Change], ...] = (
    ("is not rounded; round it up", lambda x: np.ceil(x - 1e-12)),
    ("is not rounded; round it down", lambda x: np.floor(x + 1e-12)),
    ("is not rounded; round it to the nearest whole number", np.round),
)


def whole(part: Part) -> str:
    """Recognize numbers that only lack the rounding to whole ones."""
    if not part.same_shape or not _informative(part) or not _whole(part):
        return ""
    for text, change in WHOLE:
        if all(near(pair.right, change(pair.got.astype(float))) for pair in part.pairs):
            return text
    return ""


def close(part: Part) -> str:
    """Recognize numbers that are right to a few digits."""
    if part.same_shape and _informative(part) and all(_close(pair) for pair in part.pairs):
        return NOT_EXACT
    return ""


def _is_array_of_integers(pair: Pair) -> bool:
    """Tell an array that can hold no decimals from a single number that happens to have none."""
    return pair.got.ndim > 0 and pair.got.dtype.kind == "i"


def _whole(part: Part) -> bool:
    return all(near(pair.right, np.round(pair.right)) for pair in part.pairs)


def _is_single(part: Part) -> bool:
    return all(pair.got.dtype == np.float32 for pair in part.pairs)


def _close(pair: Pair) -> bool:
    right, got = np.asarray(pair.right, float), np.asarray(pair.got, float)
    if not np.isfinite(right).all() or not np.isfinite(got).all():
        return near(right, got)
    return bool(np.allclose(got, right, rtol=CLOSE, atol=1e-6 * np.abs(right).max(initial=0)))


def sign(part: Part) -> str:
    """Recognize the opposite sign, of all numbers or of those that differ."""
    return _first(part, SIGN)


def function(part: Part) -> str:
    """Recognize a square, a root, a logarithm and the like of the right number."""
    return _first(part, FUNCTIONS)


def _first(part: Part, changes: tuple[tuple[str, Change], ...]) -> str:
    if not part.same_shape or not _informative(part):
        return ""
    for text, change in changes:
        if part.maps(change):
            return text
    return ""


def _informative(part: Part) -> bool:
    """Return whether there are two numbers other than 0, so that chance explains nothing."""
    shown = np.concatenate([np.ravel(pair.right) for pair in part.pairs])
    finite = shown[np.isfinite(shown.astype(float))]
    return len(np.unique(finite[finite != 0])) >= 2


def nothing(part: Part) -> str:
    """Recognize numbers that are all 0, all one number, or not a number."""
    gots = [pair.got for pair in part.pairs]
    if any(np.isnan(got.astype(float)).any() for got in gots) and _expects_numbers(part):
        return "has entries that are nan: is there 0/0, ∞ − ∞, or the root or log of a negative?"
    if not _informative(part) or not all(got.size for got in gots) or _is_fixed(part):
        return ""
    constant = gots[0].flat[0]
    if all(near(np.full(got.shape, constant), got) for got in gots):
        return f"is always {constant:.6g}, whatever the arguments are"
    return ""


def _is_fixed(part: Part) -> bool:
    """Return whether the right numbers are the same, whatever the arguments are."""
    return all(near(part.pairs[0].right, pair.right) for pair in part.pairs)


def _expects_numbers(part: Part) -> bool:
    return all(not np.isnan(pair.right.astype(float)).any() for pair in part.pairs)
