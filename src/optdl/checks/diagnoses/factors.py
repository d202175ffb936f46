"""Name the factor or the term by which an answer differs: a constant, a size, an argument."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from optdl.checks.diagnoses.evidence import Pair, Part, differing, near

FORMS: tuple[tuple[str, Callable[[np.ndarray], Any]], ...] = (
    ("{0}", lambda s: s),
    ("1/{0}", lambda s: 1 / s),
    ("√{0}", np.sqrt),
    ("1/√{0}", lambda s: 1 / np.sqrt(s)),
    ("{0}²", np.square),
    ("1/{0}²", lambda s: 1 / s**2),
    ("(1 − {0})", lambda s: 1 - s),
    ("1/(1 − {0})", lambda s: 1 / (1 - s)),
    ("({0} − 1)/{0}", lambda s: (s - 1) / s),
    ("{0}/({0} − 1)", lambda s: s / (s - 1)),
    ("({0} − 1)", lambda s: s - 1),
    ("1/({0} − 1)", lambda s: 1 / (s - 1)),
    ("(1 − {0})/{0}", lambda s: (1 - s) / s),
    ("{0}/(1 − {0})", lambda s: s / (1 - s)),
    ("(1 − {0})²", lambda s: (1 - s) ** 2),
)
BEFORE = {"": 1.0, "−": -1.0, "2 · ": 2.0, "½ · ": 0.5}


def _one(
    values: str, text: Callable[[float], str], fewest: int = 2, is_of_all: bool = False
) -> Callable[[Part], str]:
    """Return what words a condition has for the ratio or difference that is one in all cases.

    At least so many right numbers that differ have to be explained. In some of the cases or entries
    a number is an accident, where only one ``is_of_all`` counts.
    """

    def words(part: Part) -> str:
        found = getattr(part, values)
        if is_of_all and part.scope:
            return ""
        alike = len(np.unique(part.rights)) >= fewest and found
        # relative to the first: among ratios of 1e-12 all are near in size
        alike = alike and near(np.ones(len(found)), np.array(found) / (found[0] or 1.0))
        return text(found[0]) if alike else ""

    return words


OPERATIONS: tuple[tuple[str, Callable[[np.ndarray, np.ndarray], np.ndarray]], ...] = (
    ("the argument `{}` itself", lambda right, a: 0 * right + a),
    ("the expected one divided by `{}`", lambda right, a: right / a),
    ("the expected one plus `{}`", lambda right, a: right + a),
    ("the expected one minus `{}`", lambda right, a: right - a),
    ("the expected one minus twice `{}`", lambda right, a: right - 2 * a),
    ("the expected one divided by the square of `{}`", lambda right, a: right / a**2),
)
"""How an argument can be missing, or be there once too often."""


def _operand(part: Part) -> str:
    """Return the argument, as it is or with one entry for each row, that makes the difference."""
    if not part.same_shape or part.rights.size < 3:
        return ""
    both = product(part.hardest[0].one.case, (False, True))
    fitting = [one for one in both if _entries(part.hardest[0], *one) is not None]
    with np.errstate(all="ignore"):
        for text, change in OPERATIONS if fitting else ():
            for one in fitting:
                for pair in part.hardest:
                    entries = _entries(pair, *one)
                    if entries is None or not near(change(pair.right, entries), pair.got):
                        break
                else:
                    # of another shape, it is there again and again
                    alone = np.shape(pair.one.case[one[0]]) == pair.right.shape
                    line = f", in each {'column' if one[1] else 'row'}"
                    is_part = one[0] == part.name and "argument" not in text
                    text = text.replace("`", "the argument `", 1) if is_part else text
                    return text.format(one[0]) + line * (text.endswith("itself") and not alone)
    return ""


def _entries(pair: Pair, name: str, as_column: bool) -> np.ndarray | None:
    """Return an argument as it can stand beside each entry, if it can."""
    value = pair.one.case.get(name)
    if not isinstance(value, np.ndarray) or not value.ndim or value.dtype.kind not in "iuf":
        return None
    value = value[:, None] if as_column else value
    try:
        shape = np.broadcast_shapes(value.shape, pair.right.shape)
    except ValueError:
        return None
    return value if shape == pair.right.shape else None


CONSTANTS = {"": 1.0, "ln 2": np.log(2), "1/ln 2": 1 / np.log(2), "log₁₀ 2": np.log10(2)}


def fraction(ratio: float) -> str:
    """Return a number as the words before "the expected one", or an empty string.

    Examples
    --------
    >>> fraction(0.5), fraction(1.5), fraction(0.123), fraction(1.5**0.5)
    ('half', '3/2 times', '', '√(3/2) times')
    """
    if name := {2.0: "twice", 0.5: "half"}.get(round(ratio, 9)):
        return name
    for name, value in CONSTANTS.items():
        share = Fraction(ratio / value).limit_denominator(12)
        if 0 < abs(share.numerator) <= 100 and near(float(share) * value, ratio):
            number = "" if share == 1 else str(share).replace("-", "−")
            return " · ".join(filter(None, (number, name))) + " times" * (number + name != "")
    share = Fraction(ratio**2).limit_denominator(12)
    if ratio > 0 and 0 < share.numerator <= 100 and near(np.sqrt(float(share)), ratio):
        return f"√({share}) times"
    return ""


def _symbol(part: Part, values: list[float]) -> str:
    """Return the name of a size or a scalar argument that gives all values."""
    if len({round(value, 9) for value in values}) < 2:
        return ""
    names = [*part.symbols]
    columns = np.array([*part.symbols.values()]).reshape(-1, len(values))
    with np.errstate(all="ignore"):
        rows = np.concatenate([form(columns) for _, form in FORMS])
        for before, share in BEFORE.items():
            fits = ~differing(share * rows, np.broadcast_to(values, rows.shape)).any(axis=1)
            if fits.any():
                form, name = divmod(int(fits.argmax()), len(names))
                return before + FORMS[form][0].format(names[name])
    return ""


def _term(part: Part) -> str:
    """Return the term that is added, or subtracted, with its sign in words."""
    symbol = _symbol(part, part.differences)
    return f"minus {symbol[1:]}" if symbol.startswith("−") else symbol and f"plus {symbol}"


PART: tuple[tuple[str, Callable[[Part], str]], ...] = (
    ("is {} the expected one", _one("ratios", fraction)),
    ("is {} times the expected one", lambda part: _symbol(part, part.ratios)),
    ("is always {} times the expected one", _one("ratios", "{:.6g}".format, is_of_all=True)),
    (
        "is the expected one {}",
        _one(
            "differences",
            lambda term: f"{'+' if term > 0 else '−'} {abs(term):.6g}" if term else "",
            fewest=3,
            is_of_all=True,
        ),
    ),
    ("is the expected one {}", _term),
    ("is {}", _operand),
)
