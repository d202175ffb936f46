"""Say where an answer is wrong: in which part, row, entries, or for which arguments."""

from collections.abc import Iterator
from inspect import signature
from itertools import compress
from typing import Any

import numpy as np

from optdl.checks.diagnoses.evidence import Evidence, Part, differing, listed
from optdl.checks.exercise import Case
from optdl.checks.report import show


def parts(evidence: Evidence) -> str:
    """Name the parts that are right, and those that are not."""
    if not evidence.parts or not evidence.parts[0].name:
        return ""
    wrong = [part.name for part in evidence.wrong]
    right = [part.name for part in evidence.parts if part.name not in wrong]
    if not right or not wrong or len(listed(right)) > 80:
        return ""
    more = f"; {listed(wrong)} are not" if len(wrong) > 1 and len(listed(wrong)) <= 80 else ""
    return f"{listed(right)} {'are' if len(right) > 1 else 'is'} right{more}"


def rows(part: Part) -> str:
    """Name the first row that differs, when it is the same one in every case."""
    if any(p.right.ndim < 2 or len(p.right) < 3 for p in part.pairs) or not part.same_shape:
        return ""
    first = {int(np.argwhere(differing(*pair[1:]))[0, 0]) for pair in part.wrong_pairs}
    if len(first) != 1 or not (row := first.pop()):
        return ""
    before = "row 0 is right" if row == 1 else f"rows 0 to {row - 1} are right"
    return f"{before} in every case; row {row} is the first that differs"


ALONE: tuple[tuple[str, int, int], ...] = (
    ("the first column is right; the others differ", 1, 0),
    ("the first row is right; the others differ", 0, 0),
    ("the last row is right; the others differ", 0, -1),
)
"""Which row or column is right while every other one has a wrong entry: its axis and position."""


def pattern(part: Part) -> str:
    """Name the row, column or entry that alone is right."""
    pairs = part.wrong_pairs
    if not part.same_shape or any(pair.right.ndim not in (1, 2) for pair in pairs):
        return ""
    # in a single row or column most places are all there are: such cases refute, and show nothing
    if sum(min(pair.right.shape, default=0) >= 2 for pair in pairs) < 2:
        return ""
    wrong = [differing(*pair[1:]) for pair in pairs]
    for text, axis, position in ALONE:
        if all(_is_alone(array, axis, position) for array in wrong):
            return text.replace("row", "entry") if wrong[0].ndim == 1 else text
    return ""


def _is_alone(wrong: np.ndarray, axis: int, position: int) -> bool:
    """Return whether one row or column is right, and every other one is wrong somewhere."""
    if axis >= wrong.ndim:
        return False
    lines = np.asarray(wrong.any(axis=1 - axis) if wrong.ndim == 2 else wrong)
    others = np.delete(lines, position)
    return bool(not lines[position] and others.all() and others.size)


def arguments(evidence: Evidence) -> str:
    """Say which calls are wrong, when one condition on the arguments tells them from the others."""
    wrong = evidence.wrong_cases
    if min(sum(wrong), len(wrong) - sum(wrong)) < 2:
        return ""
    known = signature(evidence.exercise.reference).parameters
    told = [
        dict(_conditions(case)) | {f"`{name}` is left out": name not in case for name in known}
        for case in evidence.cases
    ]
    texts = dict.fromkeys(text for one in told for text in one)
    holds = {text: [one.get(text, False) for one in told] for text in texts}
    for is_wrong, where, other in ((True, "wrong", "right"), (False, "right", "wrong")):
        for text, found in holds.items():
            if found == [differs == is_wrong for differs in wrong]:
                return f"your answer is {where} exactly when {text}, {other} otherwise"
    return ""


def branch(evidence: Evidence) -> str:
    """Name the special value, such as that of a branch, that is right wherever the answer errs."""
    wrong = [*compress(evidence.expected, evidence.wrong_cases)]
    if len(wrong) < 2 or not all(map(_is_special, wrong)) or len(set(wrong)) > 1:
        return ""
    others = any(right != wrong[0] for right in evidence.expected)
    return f"in every case that differs, the right answer is {show(wrong[0])}" if others else ""


def _is_special(right: Any) -> bool:
    is_number = isinstance(right, int | float)
    return isinstance(right, str) or (is_number and (right in (-1, 0, 1) or np.isinf(right)))


def _conditions(case: Case) -> Iterator[tuple[str, bool]]:
    """Yield conditions on the arguments of a call, and whether they hold."""
    for name, value in case.items():
        yield f"`{name}` is None", value is None
        yield f"`{name}` is not None", value is not None
        if isinstance(value, bool):
            yield from ((f"`{name}` is {flag}", value is flag) for flag in (True, False))
        elif isinstance(value, int | float):
            yield f"`{name}` is 0", value == 0
        elif isinstance(value, str) and value:  # none is where a driver does nothing special
            yield f"`{name}` is {value!r}", True
        elif isinstance(value, tuple) and len(value) == 2 and {*map(type, value)} == {int}:
            yield f"`{name}` has two different entries", value[0] != value[1]


FACTS = (rows, pattern)
