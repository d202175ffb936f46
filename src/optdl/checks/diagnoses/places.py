"""Say where an answer is wrong: in which part, row, entries, or for which arguments."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np

from optdl.checks.diagnoses.evidence import Evidence, Pair, Part, differing, kind, listed, near
from optdl.checks.exercise import Case
from optdl.checks.report import show


def parts(evidence: Evidence) -> str:
    """Name the parts that are right, and those that are not."""
    if not evidence.parts or not evidence.parts[0].name:
        return ""
    wrong = [part.name for part in evidence.wrong]
    right = [part.name for part in evidence.parts if part.name not in wrong]
    if not right or not wrong:
        return ""
    more = f"; {listed(wrong)} are not" if len(wrong) > 1 else ""
    return f"{listed(right)} {_verb(right)} right{more}"


def _verb(names: list[str]) -> str:
    return "are" if len(names) > 1 else "is"


def rows(part: Part) -> str:
    """Name the first row that differs, when it is the same one in every case."""
    if any(pair.right.ndim < 2 or len(pair.right) < 3 for pair in part.pairs):
        return ""
    if not part.same_shape:
        return ""
    first = {_first_wrong_row(pair) for pair in part.pairs} - {None}
    if len(first) != 1 or not (row := first.pop()):
        return ""
    before = "row 0 is right" if row == 1 else f"rows 0 to {row - 1} are right"
    return f"{before} in every case; row {row} is the first that differs"


def _first_wrong_row(pair: Pair) -> int | None:
    wrong = differing(pair.right, pair.got)
    rows = wrong.reshape(len(wrong), -1).any(axis=1)
    return int(rows.argmax()) if rows.any() else None


PATTERNS: tuple[tuple[str, Callable[[tuple[int, ...]], Any]], ...] = (
    ("only the first row differs", lambda shape: _index(shape, 0) == 0),
    ("only the last row differs", lambda shape: _index(shape, 0) == shape[0] - 1),
    ("only the first column differs", lambda shape: _index(shape, 1) == 0),
    ("only the last column differs", lambda shape: _index(shape, 1) == shape[1] - 1),
    ("only the diagonal differs", lambda shape: _offset(shape) == 0),
    ("only entries below the diagonal differ", lambda shape: _offset(shape) < 0),
    ("only entries above the diagonal differ", lambda shape: _offset(shape) > 0),
    ("only entries off the diagonal differ", lambda shape: _offset(shape) != 0),
    (
        "only the last row and the last column differ",
        lambda s: (_index(s, 0) == s[0] - 1) | (_index(s, 1) == s[1] - 1),
    ),
    (
        "only the first row and the first column differ",
        lambda s: (_index(s, 0) == 0) | (_index(s, 1) == 0),
    ),
)
ALONE: tuple[tuple[str, int, int], ...] = (
    ("the first column is right; the others differ", 1, 0),
    ("the first row is right; the others differ", 0, 0),
    ("the last column is right; the others differ", 1, -1),
    ("the last row is right; the others differ", 0, -1),
)
"""Which row or column is right while every other one has a wrong entry: its axis and position."""


def _index(shape: tuple[int, ...], axis: int) -> np.ndarray:
    return np.indices(shape)[axis]


def _offset(shape: tuple[int, ...]) -> np.ndarray:
    """Return how far each entry lies above the diagonal, which a path of 4 by 3 numbers has not."""
    if len(set(shape)) > 1:
        raise IndexError("only a square array has a diagonal")
    return _index(shape, 1) - _index(shape, 0)


def pattern(part: Part) -> str:
    """Name the rows, columns or entries to which the mistake is confined."""
    wrong = [pair for pair in part.pairs if not near(pair.right, pair.got)]
    if not part.same_shape or any(pair.right.ndim not in (1, 2) for pair in wrong):
        return ""
    # in a single row or column most places are all there are: such cases refute, and show nothing
    if sum(min(pair.right.shape, default=0) >= 2 for pair in wrong) < 2:
        return ""
    tried = [(text, partial(_confined, places=places)) for text, places in PATTERNS]
    tried += [(text, partial(_is_alone, axis=axis, position=at)) for text, axis, at in ALONE]
    for text, holds in tried:
        if all(map(holds, wrong)):
            return text.replace("row", "entry") if wrong[0].right.ndim == 1 else text
    return ""


def _is_alone(pair: Pair, axis: int, position: int) -> bool:
    """Return whether one row or column is right, and every other one is wrong somewhere."""
    if axis >= pair.right.ndim:
        return False
    wrong = np.moveaxis(differing(pair.right, pair.got), axis, 0)
    lines = np.array([line.any() for line in wrong])
    others = np.delete(lines, position)
    return bool(not lines[position] and others.all() and others.size)


def positions(part: Part) -> str:
    """Name the entries of a sequence that differ, when they are the same in every wrong case."""
    wrong = [pair for pair in part.pairs if not near(pair.right, pair.got)]
    if len(wrong) < 2 or not part.same_shape or any(pair.right.ndim != 1 for pair in wrong):
        return ""
    [first, *others] = [differing(pair.right, pair.got) for pair in wrong]
    where = np.flatnonzero(first)
    if len(where) > min(3, len(first) - 1) or not all(
        np.array_equal(where, np.flatnonzero(one)) for one in others
    ):
        return ""
    if len(where) == 1:
        return f"only entry {where[0]} differs, counted from 0"
    *before, last = map(str, where)
    return f"only entries {', '.join(before)} and {last} differ, counted from 0"


def _confined(pair: Pair, places: Callable[[tuple[int, ...]], Any]) -> bool:
    """Return whether some entries in these places differ, and none outside them."""
    wrong = differing(pair.right, pair.got)
    try:
        inside = np.broadcast_to(places(pair.right.shape), wrong.shape)
    except IndexError:
        return False
    return bool(wrong[inside].any() and not wrong[~inside].any())


def signs(part: Part, pair: Pair) -> Iterator[tuple[str, np.ndarray]]:
    """Yield entrywise conditions on arrays of the shape of the answer."""
    arrays = {f"`{k}`": v for k, v in pair.case.items() if _matches(v, pair.right)}
    for name, array in {**arrays, "the expected number": pair.right}.items():
        yield f"{name} is negative", array < 0
        yield f"{name} is positive", array > 0
        yield f"{name} is 0", array == 0


def _matches(value: Any, right: np.ndarray) -> bool:
    return isinstance(value, np.ndarray) and value.shape == right.shape and value.dtype.kind in "if"


def entries(part: Part) -> str:
    """Say which entries are wrong, by the sign or the size of an argument there."""
    if not part.same_shape:
        return ""
    shown = [dict(signs(part, pair)) for pair in part.pairs if pair.right.ndim]
    if len(shown) != len(part.pairs) or not shown:
        return ""
    wrong = np.concatenate([differing(pair.right, pair.got).ravel() for pair in part.pairs])
    if min(wrong.sum(), (~wrong).sum()) < 4:
        return ""
    for text in shown[0]:
        if all(text in one for one in shown):
            where = np.concatenate([np.ravel(one[text]) for one in shown])
            if np.array_equal(where, wrong):
                return f"it differs exactly where {text}"
    return _beyond(part, wrong)


def _beyond(part: Part, wrong: np.ndarray) -> str:
    """Say which entries are wrong, when those of an argument are larger or smaller there."""
    for name in part.pairs[0].case:
        if not all(_matches(pair.case.get(name), pair.right) for pair in part.pairs):
            continue
        values = np.concatenate([pair.case[name].ravel() for pair in part.pairs])
        if values[wrong].max() < values[~wrong].min():
            return f"it differs exactly where `{name}` is {values[wrong].max():.4g} or less"
        if values[wrong].min() > values[~wrong].max():
            return f"it differs exactly where `{name}` is {values[wrong].min():.4g} or more"
    return ""


def arguments(evidence: Evidence) -> str:
    """Say which calls are wrong, when one condition on the arguments tells them from the others."""
    answers = zip(evidence.expected, evidence.got, strict=True)
    wrong = [not evidence.agree(right, got) for right, got in answers]
    if min(sum(wrong), len(wrong) - sum(wrong)) < 2:
        return ""
    told = [dict(conditions(case)) for case in evidence.cases]
    if all(len({_sizes(case) for case in one}) >= 2 for one in _divided(evidence, wrong)):
        # with fewer sizes, some relation between them fits any mistake
        sized = [dict(_of_rows(case)) for case in evidence.cases]
        told = [one | two for one, two in zip(told, sized, strict=True)]
    if len({_sizes(case) for case in evidence.cases}) >= 5:
        related = [dict(_of_numbers(case)) for case in evidence.cases]
        told = [one | two for one, two in zip(told, related, strict=True)]
    found = [
        text
        for text in told[0]
        if all(text in one for one in told) and [one[text] for one in told] == wrong
    ]
    return f"your answer is wrong exactly when {found[0]}, right otherwise" if found else ""


def branch(evidence: Evidence) -> str:
    """Name the special value, such as that of a branch, that is right wherever the answer errs."""
    answers = list(zip(evidence.expected, evidence.got, strict=True))
    wrong = [right for right, got in answers if not evidence.agree(right, got)]
    if len(wrong) < 2 or not all(map(_is_special, wrong)) or len(set(wrong)) > 1:
        return ""
    if not any(right != wrong[0] for right in evidence.expected):
        return ""
    return f"in every case that differs, the right answer is {show(wrong[0])}"


def _is_special(right: Any) -> bool:
    is_number = isinstance(right, int | float)
    return isinstance(right, str) or (is_number and (right in (-1, 0, 1) or np.isinf(right)))


def _divided(evidence: Evidence, wrong: list[bool]) -> tuple[list[Case], list[Case]]:
    """Return the cases that are wrong, and those that are right."""
    pairs = list(zip(evidence.cases, wrong, strict=True))
    return [case for case, is_wrong in pairs if is_wrong], [case for case, bad in pairs if not bad]


def conditions(case: Case) -> Iterator[tuple[str, bool]]:
    """Yield conditions on the arguments of a call, and whether they hold."""
    for name, value in case.items():
        yield f"`{name}` is None", value is None
        yield f"`{name}` is not None", value is not None
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield f"`{name}` is negative", value < 0
            yield f"`{name}` is 0", value == 0
        if isinstance(value, bool):
            yield from ((f"`{name}` is {flag}", value is flag) for flag in (True, False))
        elif isinstance(value, str):
            yield from ((f"`{name}` is {w!r}", value == w) for w in ("relu", "tanh", "sigmoid"))
            yield from ((f"`{name}` is not {w!r}", value != w) for w in ("relu", "tanh", "sigmoid"))


def _of_rows(case: Case) -> Iterator[tuple[str, bool]]:
    for name, value in case.items():
        if isinstance(value, np.ndarray) and value.ndim == 2:
            yield f"`{name}` has one row", len(value) == 1
            yield f"`{name}` has more than one row", len(value) > 1
        if isinstance(value, tuple) and len(value) == 2 and all(type(a) is int for a in value):
            yield f"`{name}` has two different entries", value[0] != value[1]


def _of_numbers(case: Case) -> Iterator[tuple[str, bool]]:
    whole = {name: value for name, value in case.items() if type(value) is int}
    for (left, a), (right, b) in permutations(whole.items(), 2):
        yield f"`{left}` > `{right}`", a > b
        yield f"`{left}` ≥ `{right}`", a >= b
    for (left, a), (right, b) in permutations(whole.items(), 2):
        if b:
            yield f"`{right}` does not divide `{left}`", a % b != 0
            yield f"`{right}` divides `{left}`", a % b == 0


def _sizes(case: Case) -> tuple[Any, ...]:
    """Return the whole numbers of a call and the shapes of its arrays."""
    return tuple(size for value in case.values() if (size := kind(value)) is not None)
