"""Say where an answer is wrong: in which part, row, entries, or for which arguments."""

from functools import partial
from inspect import Parameter, signature
from itertools import chain, compress
from typing import Any

import numpy as np

from optdl.checks.diagnoses.evidence import (
    Evidence,
    Pair,
    Part,
    Tried,
    arrays,
    differing,
    flat,
    is_numeric,
    listed,
    near,
    ratio,
)
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


def shapes(evidence: Evidence) -> str:
    """Name the later parts that have other shapes than expected: the first wrong part is shown."""
    found = [part.name for part in evidence.wrong[1:] if not part.same_shape]
    return f"{listed(found)} differ{'s' * (len(found) == 1)} in shape, too" if found else ""


def shape(evidence: Evidence) -> str:
    """Say how the shape of the first wrong part differs, if it is in every case in one way."""
    part = next((part for part in evidence.wrong if not part.same_shape), None)
    shapes = {(pair.right.shape, pair.got.shape) for pair in part.pairs} if part else set()
    if part is None or evidence.unlike or len(shapes) < 2:
        return ""
    name = f"`{part.name}`" if part.name else "your answer"
    if all(right[::-1] == got for right, got in shapes):
        return f"in every case {name} has the shape of the transposed one"
    if not all(right and got and right[1:] == got[1:] for right, got in shapes):
        return ""
    numbers = {got[0] - right[0] for right, got in shapes}
    if len(numbers) > 1:
        return ""
    [number], rows = numbers, "row" if len(part.pairs[0].right.shape) > 1 else "value"
    count = f"{abs(number)} {rows}s" if abs(number) > 1 else f"one {rows}"
    return f"in every case {name} has {count} too {'many' if number > 0 else 'few'}"


def rows(part: Part) -> str:
    """Name the rows that are right in every case, and how the first wrong one differs."""
    pairs = part.wrong_pairs
    rows = [len(pair.right) if pair.right.ndim > 1 else 0 for pair in part.pairs]
    if min(rows) < 2 or max(rows) < 3 or not part.same_shape or part.rights.dtype == bool:
        return ""
    firsts = [int(np.argwhere(differing(*pair[:2]))[0, 0]) for pair in pairs]
    row, how = min(firsts, default=0), _step(part, firsts)
    before = "row 0 is right" if row == 1 else f"rows 0 to {row - 1} are right"
    before += " in every case"
    if row and len({*firsts}) == 1:
        return f"{before}; row {row} is the first that differs{how and ': the step to it ' + how}"
    later = f"{before}; later ones differ{how and ': the first wrong step ' + how}"
    return later if row > 1 or (row and how) else ""


def _step(part: Part, firsts: list[int]) -> str:
    """Return how the first wrong step of a path differs, which begins with an argument."""
    pairs = part.wrong_pairs
    two = [[a[row] - a[row - 1] for a in pair[:2]] for pair, row in zip(pairs, firsts, strict=True)]
    for pair in pairs:
        arrays = [value for value in pair.one.case.values() if isinstance(value, np.ndarray)]
        if not any(near(array, pair.right[0]) for array in arrays):
            return ""
    if sum(np.count_nonzero(right) > 1 for right, _ in two) < 2:
        return ""
    ratios = [ratio(right.ravel(), got.ravel()) for right, got in two]
    if all(number and number > 0 for number in ratios):
        return "has the right direction, but another length"
    same_signs = all((np.sign(right) == np.sign(got)).all() for right, got in two)
    if same_signs and sum(right.size for right, _ in two) > 6:
        return "has the right signs, but other sizes"
    return ""


def lines(part: Part) -> str:
    """Tell by what each row or column, or the whole, differs: by a factor or a term of its own."""
    pairs = part.wrong_pairs
    dimensions = {pair.right.ndim for pair in pairs}
    if not part.same_shape or len(dimensions) != 1 or part.rights.dtype == bool:
        return ""
    [number] = dimensions
    for axis in (None, *range(number if number > 1 else 0)):
        over = None if axis is None else tuple({*range(number)} - {axis})
        counts = [1 if axis is None else pair.right.shape[axis] for pair in pairs]
        several = (np.count_nonzero(p.right) >= 2 * n for p, n in zip(pairs, counts, strict=True))
        if sum(several) < 2:
            continue
        name, end = "it is", ", by a number that changes from call to call"
        if axis is not None:
            in_rows = "each row is" if axis == 0 else "each column is"
            name, end = in_rows if number == 2 else f"for each index along axis {axis} it is", ""
        if all(near(_scaled(pair, over), pair.got) for pair in pairs):
            return f"{name} a multiple of the expected one{end}"
        # a few entries that are moved alike are an accident
        long = axis is not None or sum(pair.right.size > 3 for pair in pairs) > 1
        if long and all(near(_shifted(pair, over), pair.got) for pair in pairs):
            return f"{name} the expected one plus a number{end.removeprefix(', by a number')}"
    return ""


def _scaled(pair: Pair, over: tuple[int, ...] | None) -> np.ndarray:
    with np.errstate(all="ignore"):
        factors = np.sum(pair.right * pair.got, axis=over, keepdims=True) / np.sum(
            pair.right**2, axis=over, keepdims=True
        )
    return np.asarray(pair.right * np.where(np.isfinite(factors), factors, 0))


def _shifted(pair: Pair, over: tuple[int, ...] | None) -> np.ndarray:
    return pair.right + np.mean(pair.got - pair.right, axis=over, keepdims=True)


def first_row(part: Part) -> str:
    """Tell that already the first row differs, and only by a factor."""
    pairs = part.wrong_pairs
    if not part.same_shape or any(p.right.ndim < 2 or not len(p.right) for p in part.pairs):
        return ""
    rows = [(pair.right[0].ravel(), pair.got[0].ravel()) for pair in pairs]
    several = sum(np.count_nonzero(right) > 1 for right, _ in rows) > 1
    found = [not near(*row) and ratio(*row) for row in rows]
    return "row 0 is a multiple of the expected one" if several and all(found) else ""


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
    wrong = [differing(*pair[:2]) for pair in pairs]
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
    # a case in which a wrong part holds no numbers tells nothing of it
    compared = [{id(pair.one) for pair in part.pairs} for part in evidence.wrong]
    kept = [all(id(one) in some for some in compared) for one in evidence.tried]
    wrong = [*compress(evidence.wrong_cases, kept)]
    if min(sum(wrong), len(wrong) - sum(wrong)) < 2:
        return ""
    parameters = signature(evidence.exercise.reference).parameters.values()
    defaults = {one.name: one.default for one in parameters if one.default is not Parameter.empty}
    tried = [*compress(evidence.tried, kept)]
    cases = [flat(one.case) for one in tried]
    given = {name: [name in case for case in cases] for name in defaults}
    optional = [name for name, found in given.items() if any(found) and not all(found)]
    # that a case has an option may be an accident
    doubtful = [name for name in optional if not _matters(evidence, name, tried, wrong)]
    telling = [name for name in optional if name not in doubtful]
    calls = [(case, _less(defaults | case, doubtful)) for case in cases]
    nones = [name for name in calls[0][1] if any(case.get(name, 0) is None for _, case in calls)]
    told = [
        _conditions(case)
        | {f"`{name}` is not None": case.get(name) is not None for name in nones}
        | {f"`{name}` is left out": name not in own for name in telling}
        | {f"`{name}` is given": name in own for name in telling}
        for own, case in calls
    ]
    texts = dict.fromkeys(chain.from_iterable(told))
    holds = {text: [one.get(text, False) for one in told] for text in texts}
    for is_wrong, where, other in ((True, "wrong", "right"), (False, "right", "wrong")):
        for text, found in holds.items():
            if found == [differs == is_wrong for differs in wrong]:
                exactly = f"your answer is {where} exactly when {text}, {other} otherwise"
                return f"in the cases tried {exactly}"
    return ""


def _matters(evidence: Evidence, name: str, tried: list[Tried], wrong: list[bool]) -> bool:
    """Return whether wrong calls are right with an option of a right one, or the reverse."""

    def turned(is_wrong: bool) -> bool:
        other = tried[wrong.index(not is_wrong)]
        text, change = f"{name} as in {other.drawn}", partial(_as_in, other.case, name)
        for one in compress(tried, [differs == is_wrong for differs in wrong]):
            right = evidence.right(one, text, change)
            if right is None or evidence.agree(right, evidence.again(one, change)) != is_wrong:
                return False
        return True

    return turned(True) or turned(False)


def _as_in(other: Case, name: str, case: Case) -> Case:
    """Return a call with an option as another call has it, which may be in a dict of options."""
    if name in case or name in other:
        return _less(case, [name]) if name not in other else {**case, name: other[name]}
    return {
        key: _less(value, [name])
        | {own: item for own, item in other.get(key, {}).items() if own == name}
        if isinstance(value, dict)
        else value
        for key, value in case.items()
    }


def _less(case: Case, names: list[str]) -> Case:
    return {name: value for name, value in case.items() if name not in names}


def branch(evidence: Evidence) -> str:
    """Name the special value, such as that of a branch, that is right wherever the answer errs."""
    expected = [one.right.value for one in evidence.tried]
    wrong = [*compress(expected, evidence.wrong_cases)]
    if len(wrong) < 2 or not all(map(_is_special, wrong)) or len(set(wrong)) > 1:
        return ""
    others = any(right != wrong[0] for right in expected)
    return f"in every case that differs, the right answer is {show(wrong[0])}" if others else ""


def argument(evidence: Evidence) -> str:
    """Name the argument that is to be returned as it is wherever the answer errs."""
    for name in evidence.arguments:
        found = [
            isinstance(one.case[name], float | list | tuple | np.ndarray)
            and evidence.agree(one.right.value, one.case[name])
            for one in evidence.tried
        ]
        is_told = not all(found) and all(compress(found, evidence.wrong_cases))
        if is_told and sum(evidence.wrong_cases) >= 2:
            return f"in every case that differs, the right answer is `{name}` as it is"
    return ""


def size(evidence: Evidence) -> str:
    """Say how large the wrong numbers of the answer, or of a part, are beside the right ones."""
    for part in evidence.wrong if all(part.same_shape for part in evidence.wrong) else ():
        at = [differing(*pair[:2]) for pair in part.wrong_pairs]
        right, got = (
            np.concatenate([pair[k][some] for pair, some in zip(part.wrong_pairs, at, strict=True)])
            for k in (0, 1)
        )
        if len(np.unique(right)) < 3:  # such as truths
            continue
        name, above = f"`{part.name}`" if part.name else "your answer", got > right
        if right.size > 3 and above.all() == above.any():
            return f"wherever it differs, {name} is too {'large' if above.all() else 'small'}"
        ratios = got[right != 0] / right[right != 0]
        if ratios.size > 3 and np.isfinite(ratios).all():
            times = f"{min(ratios):.3g} to {max(ratios):.3g} times".replace("-", "−")
            return f"wherever it differs, {name} is {times} the expected one"
    return ""


def _is_special(right: Any) -> bool:
    is_number = isinstance(right, int | float)
    return isinstance(right, str) or (is_number and (right in (-1, 0, 1) or np.isinf(right)))


def _conditions(case: Case) -> dict[str, bool]:
    """Return conditions on the arguments of a call, and whether they hold."""
    found: dict[str, bool] = {}
    for name, value in case.items():
        found[f"`{name}` is None"] = value is None
        if isinstance(value, bool):
            found |= {f"`{name}` is True": value, f"`{name}` is False": not value}
        elif isinstance(value, int | float):
            found[f"`{name}` is 0"] = value == 0
        elif isinstance(value, str) and value:  # none is where a driver does nothing special
            found[f"`{name}` is {value!r}"] = True
        elif isinstance(value, tuple) and len(value) == 2 and {*map(type, value)} == {int}:
            found[f"`{name}` has two different entries"] = value[0] != value[1]
        elif isinstance(value, list) or (isinstance(value, np.ndarray) and value.ndim):
            found |= _conditions_of_entries(name, value)
    return found


SPECIAL = (
    ("nan", np.isnan),
    ("infinite", np.isinf),
    ("not finite", lambda array: ~np.isfinite(array)),
)


def _conditions_of_entries(name: str, value: Any) -> dict[str, bool]:
    """Return conditions on the entries of an array, or of a list of numbers or arrays."""
    if not len(value) or not is_numeric([*value]):
        return {}
    found: dict[str, bool] = {}
    for text, holds in SPECIAL:
        special = [any(holds(one).any() for one in arrays([item])) for item in value]
        found[f"`{name}[0]` is {text}"] = special[0]
        found[f"`{name}` has entries that are {text}"] = any(special)
    if isinstance(value, np.ndarray) and value.ndim == 2 and near(value, value.T):
        rank = np.linalg.matrix_rank(value, tol=1e-12 * np.abs(value).max())
        found[f"`{name}` is singular up to rounding"] = rank < len(value)
    return found


FACTS = (rows, pattern, lines, first_row)
