"""Name the factor or the term by which an answer differs: a constant, a size, an argument."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from optdl.checks.diagnoses.evidence import Pair, Part, near
from optdl.checks.exercise import Case

CONSTANTS = {
    "π": np.pi,
    "ln 2": np.log(2),
    "(ln 2)²": np.log(2) ** 2,
    "√2": np.sqrt(2),
    "√3": np.sqrt(3),
    "e": np.e,
}
FORMS: tuple[tuple[str, Callable[[float], float]], ...] = (
    ("{0}", lambda s: s),
    ("1/{0}", lambda s: 1 / s),
    ("√{0}", np.sqrt),
    ("1/√{0}", lambda s: 1 / np.sqrt(s)),
    ("{0}²", np.square),
    ("1/{0}²", lambda s: 1 / s**2),
    ("(1 − {0})", lambda s: 1 - s),
    ("1/(1 − {0})", lambda s: 1 / (1 - s)),
    ("(1 + {0})", lambda s: 1 + s),
    ("({0} − 1)/{0}", lambda s: (s - 1) / s),
    ("{0}/({0} − 1)", lambda s: s / (s - 1)),
    ("({0} − 1)", lambda s: s - 1),
    ("{0}/(1 − {0})", lambda s: s / (1 - s)),
    ("(1 − {0})²", lambda s: (1 - s) ** 2),
)
BEFORE = {"": 1.0, "−": -1.0, "2 · ": 2.0, "½ · ": 0.5}


def factor(part: Part) -> str:
    """Name the factor between the numbers got and the expected ones."""
    ratios = _each(_ratio, part)
    if not _enough(part, ratios):
        return ""
    if _constant(ratios) and (name := fraction(ratios[0])):
        return f"is {name} the expected one"
    if name := _symbol(part, ratios):
        return f"is {name} times the expected one"
    if _constant(ratios):
        return f"is always {ratios[0]:.6g} times the expected one"
    return ""


def multiple(part: Part) -> str:
    """Recognize a factor without a name that is one number for all entries of a case."""
    ratios = _each(_ratio, part)
    wrong = [pair.right for pair in part.pairs if not near(pair.right, pair.got)]
    several = sum(np.count_nonzero(right) >= 2 for right in wrong)
    if several < 2 or not ratios:
        return ""
    return "is a multiple of the expected one, by a number that changes from call to call"


def term(part: Part) -> str:
    """Name a constant that is added to the expected numbers."""
    terms = _each(_difference, part)
    if not _enough(part, terms):
        return ""
    if _constant(terms) and terms[0]:
        return f"is the expected one {'+' if terms[0] > 0 else '−'} {abs(terms[0]):.6g}"
    name = _symbol(part, terms)
    return f"is the expected one plus {name}" if name else ""


def argument(part: Part) -> str:
    """Name an argument that the answer lacks, or has once too often; entry by entry."""
    if not part.same_shape or sum(pair.right.size for pair in part.pairs) < 3:
        return ""
    for name in part.pairs[0].case:
        for text, change in OPERATIONS:
            if part.obeys(partial(_operate, change, name)):
                return text.format(f"`{name}`")
    return ""


OPERATIONS: tuple[tuple[str, Callable[[np.ndarray, np.ndarray], np.ndarray]], ...] = (
    ("is the argument {0} itself", lambda right, a: a),
    ("is the expected one times {0}", lambda right, a: right * a),
    ("is the expected one divided by {0}", lambda right, a: right / a),
    ("is the expected one plus {0}", lambda right, a: right + a),
    ("is the expected one minus {0}", lambda right, a: right - a),
    ("is {0} minus the expected one", lambda right, a: a - right),
    ("is the expected one plus twice {0}", lambda right, a: right + 2 * a),
    ("is the expected one minus twice {0}", lambda right, a: right - 2 * a),
    ("is the expected one times the square of {0}", lambda right, a: right * a**2),
    ("is the expected one divided by the square of {0}", lambda right, a: right / a**2),
    ("is the expected one times the root of {0}", lambda right, a: right * np.sqrt(a)),
    ("is the expected one divided by the root of {0}", lambda right, a: right / np.sqrt(a)),
)


def _operate(change: Callable[..., np.ndarray], name: str, pair: Pair) -> Any:
    """Apply an operation with an argument as it is, or with one entry for each row."""
    value = pair.case.get(name)
    if not isinstance(value, np.ndarray) or not value.ndim or value.dtype.kind not in "iuf":
        return None
    for shaped in (value, value[:, None]):
        if _fits(shaped, pair.right):
            changed = change(pair.right, shaped)
            if near(changed, pair.got):
                return changed
    return None


def _fits(value: np.ndarray, right: np.ndarray) -> bool:
    try:
        return np.broadcast_shapes(value.shape, right.shape) == right.shape
    except ValueError:
        return False


def _ratio(pair: Pair) -> float | None:
    """Return the number that multiplies every expected entry, if there is one."""
    right, got = (np.ravel(array).astype(float) for array in (pair.right, pair.got))
    if not right.any() or not got.any() or not np.isfinite([right, got]).all():
        return None
    ratio = float(right @ got / (right @ right))
    return ratio if near(ratio * right, got) else None


def _difference(pair: Pair) -> float | None:
    right, got = (np.ravel(array).astype(float) for array in (pair.right, pair.got))
    if not right.size or not np.isfinite([right, got]).all():
        return None
    difference = float(np.mean(got - right))
    return difference if near(right + difference, got) else None


def _each(measure: Callable[[Pair], float | None], part: Part) -> list[float]:
    """Return a number for each case; none at all when a case has none."""
    found = [measure(pair) for pair in part.pairs] if part.same_shape else []
    return [] if None in found else [value for value in found if value is not None]


def _enough(part: Part, values: list[float]) -> bool:
    """Return whether there is a value for each case, and enough numbers to trust them.

    Between 0.3 and 0.8 there is a factor of 8/3, and it explains nothing.
    """
    shown = np.concatenate([np.ravel(pair.right) for pair in part.pairs])
    various = np.unique(np.abs(shown[shown != 0]).round(9))
    return bool(len(various) >= 2 and len(values) >= 2)


def _constant(values: list[Any]) -> bool:
    return near(np.full(len(values), values[0]), np.array(values))


def fraction(ratio: float) -> str:
    """Return a number as the words before "the expected one", or an empty string.

    Examples
    --------
    >>> fraction(0.5), fraction(1.5), fraction(np.pi), fraction(0.123), fraction(1.5**0.5)
    ('half', '3/2 times', 'π times', '', '√(3/2) times')
    """
    if name := {2.0: "twice", 0.5: "half"}.get(round(ratio, 9)):
        return name
    for name, value in {"": 1.0, **CONSTANTS}.items():
        for turned, text in ((value, name), (1 / value, f"1/{name}" if name else "")):
            share = Fraction(ratio / turned).limit_denominator(12)
            if 0 < abs(share.numerator) <= 100 and near(float(share) * turned, ratio):
                number = str(share).replace("-", "−")
                shown = [one for one in (number, text) if one and one != "1"]
                return f"{' · '.join(shown)} times" if shown else ""
    share = Fraction(ratio**2).limit_denominator(12)
    if ratio > 0 and share.numerator <= 100 and near(np.sqrt(float(share)), ratio):
        return f"√({share}) times"
    return ""


def _symbol(part: Part, values: list[Any]) -> str:
    """Return the name of a size or a scalar argument that gives all values."""
    if len({round(value, 9) for value in values}) < 2:
        return ""
    known = [dict(symbols(pair.case)) for pair in part.pairs]
    for before, share in BEFORE.items():
        for text, form in FORMS:
            for name in known[0]:
                if all(name in one for one in known) and _formed(form, share, name, known, values):
                    return before + text.format(name)
    return ""


def _formed(
    form: Callable[[float], float],
    share: float,
    name: str,
    known: list[dict[str, float]],
    values: list[float],
) -> bool:
    """Return whether a multiple of a form of a size or argument gives all values."""
    with np.errstate(all="ignore"):
        return near(np.array([share * form(one[name]) for one in known]), np.array(values))


def symbols(case: Case) -> Iterator[tuple[str, float]]:
    """Yield the scalar arguments of a call, and the sizes and norms of the others, by name."""
    for name, value in case.items():
        if isinstance(value, int | float | np.number) and not isinstance(value, bool):
            yield f"`{name}`", np.float64(value)
    for name, value in case.items():
        if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim):
            yield f"`len({name})`", np.float64(len(value))
        if isinstance(value, np.ndarray):
            for axis in range(1, value.ndim):
                yield f"`{name}.shape[{axis}]`", np.float64(value.shape[axis])
            yield f"`{name}.size`", np.float64(value.size)
            if value.ndim == 1 and value.dtype.kind == "f":
                yield f"‖`{name}`‖", np.float64(np.linalg.norm(value))
