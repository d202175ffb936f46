"""Say where an answer is wrong: in which part, row, entries, or for which arguments."""

from inspect import Parameter, signature
from itertools import chain, compress
from typing import Any

import numpy as np

from optdl.checks.diagnoses.evidence import (
    Evidence,
    Pair,
    Part,
    arrays,
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


def rows(part: Part) -> str:
    """Name the rows that are right in every case, and how the first wrong one differs."""
    rows = [len(pair.right) if pair.right.ndim > 1 else 0 for pair in part.pairs]
    if min(rows) < 2 or max(rows) < 3 or not part.same_shape or part.rights.dtype == bool:
        return ""
    firsts = [int(np.argwhere(wrong)[0, 0]) for wrong in part.differing]
    row, how = min(firsts, default=0), _step(part, firsts)
    before = "row 0 is right" if row == 1 else f"rows 0 to {row - 1} are right"
    before = f"wherever it differs, {before}"
    if row and len({*firsts}) == 1:
        return f"{before}, and row {row} is not{how and ': the step to it ' + how}"
    return f"{before}{how and '; the first wrong step ' + how}" if row > 1 or (row and how) else ""


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
    factors = np.where(factors == 0, np.inf, factors)  # zeros are a multiple of anything
    return np.asarray(pair.right * np.where(np.isnan(factors), 0, factors))


def _shifted(pair: Pair, over: tuple[int, ...] | None) -> np.ndarray:
    return pair.right + np.mean(pair.got - pair.right, axis=over, keepdims=True)


ALONE: tuple[tuple[str, int, int], ...] = (
    ("only the first column is right", 1, 0),
    ("only the first row is right", 0, 0),
    ("only the last row is right", 0, -1),
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
    for text, axis, position in ALONE:
        if all(_is_alone(array, axis, position) for array in part.differing):
            text = text.replace("row", "entry") if pairs[0].right.ndim == 1 else text
            return f"wherever it differs, {text}"
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
    ids = [*map(id, evidence.tried)]
    kept = [*map(set(ids).intersection(*compared).__contains__, ids)]
    wrong = [*compress(evidence.wrong_cases, kept)]
    if min(sum(wrong), len(wrong) - sum(wrong)) < 2:
        return ""
    parameters = signature(evidence.exercise.reference).parameters.values()
    defaults = {one.name: one.default for one in parameters if one.default is not Parameter.empty}
    cases = [defaults | flat(one.case) for one in compress(evidence.tried, kept)]
    told = [
        _conditions(case) | {f"`{name}` is not None": case[name] is not None for name in case}
        for case in cases
    ]
    texts = dict.fromkeys(chain.from_iterable(told))
    holds = {text: [one.get(text, False) for one in told] for text in texts}
    for is_wrong, where, other in ((True, "wrong", "right"), (False, "right", "wrong")):
        for text, found in holds.items():
            # that few rows are right, as they mostly are, says nothing
            is_told = is_wrong or not text.startswith("`len(")
            if is_told and found == [differs == is_wrong for differs in wrong]:
                return f"your answer is {where} exactly when {text}, {other} otherwise"
    return ""


def branch(evidence: Evidence) -> str:
    """Name the special value, or the two, as of a branch, that are right where the answer errs."""
    cases = zip(evidence.tried, evidence.wrong_cases, strict=True)
    found = {"answer": [(one.right.value, wrong) for one, wrong in cases]}
    for part in filter(lambda part: part.name, evidence.wrong):
        found[f"`{part.name}`"] = [(pair.right, not near(*pair[:2])) for pair in part.pairs]
    for name, pairs in found.items():
        special = {_special(right) for right, wrong in pairs if wrong}
        few = len(special) == 1 or (len(special) == 2 and not special <= {-1, 0, 1})
        others = {_special(right) for right, _ in pairs} - special
        if few and others and None not in special and sum(wrong for _, wrong in pairs) >= 2:
            either = " or ".join(sorted(map(show, special)))
            return f"wherever it differs, the right {name} is {either}"
    return ""


def size(evidence: Evidence) -> str:
    """Say how large the wrong numbers of the answer, or of a part, are beside the right ones."""
    wrong = sorted(evidence.wrong, key=lambda part: -len(part.wrong_pairs))
    for part in wrong if all(part.same_shape for part in wrong) else ():
        entries = [*zip(part.wrong_pairs, part.differing, strict=True)]
        right, got = (np.concatenate([pair[k][at] for pair, at in entries]) for k in (0, 1))
        if len(np.unique(right)) < 3:  # such as truths
            continue
        name, above = f"`{part.name}`" if part.name else "your answer", got > right
        name = f"what is in {name}" if evidence.exercise.use else name  # often several numbers
        if right.size > 3 and above.all() == above.any():
            sizes = np.abs(got - right)
            by = f" by {sizes[0]:g}" if np.ptp(sizes) <= 1e-9 * sizes.min() else ""
            return f"wherever it differs, {name} is too {'large' if above.all() else 'small'}{by}"
        ratios = got / right if right.all() else np.empty(0)
        various = ratios.size > 3 and np.isfinite(ratios).all()
        low, high = (min(ratios), max(ratios)) if various else (0, 0)
        if 0 < low < 0.99 * high < 10 * low and not low < 1 < high:
            share = f"{low:.3g} to {high:.3g}".replace("-", "−")
            return f"wherever it differs, {name} is {share} times the expected one"
    return ""


def _special(right: Any) -> Any:
    """Return a text, or the number such as 0 that an answer is in every entry, or None."""
    values = np.unique(right).tolist() if isinstance(right, np.ndarray) else [right]
    is_number = len(values) == 1 and values[0] in (-1, 0, 1, np.inf, -np.inf)
    return values[0] if is_number or isinstance(right, str) else None


def _conditions(case: Case) -> dict[str, bool]:
    """Return conditions on the arguments of a call, and whether they hold."""
    found: dict[str, bool] = {}
    for name, value in case.items():
        found[f"`{name}` is None"] = value is None
        if isinstance(value, bool):
            found |= {f"`{name}` is True": value, f"`{name}` is False": not value}
        elif isinstance(value, int | float):
            found |= {f"`{name}` is 0": value == 0, f"`{name}` is 1": value == 1}
        elif isinstance(value, str) and value:  # none is where a driver does nothing special
            found[f"`{name}` is {value!r}"] = True
        elif isinstance(value, tuple) and len(value) == 2 and {*map(type, value)} == {int}:
            found[f"`{name}` has two different entries"] = value[0] != value[1]
        elif isinstance(value, list) or (isinstance(value, np.ndarray) and value.ndim):
            found |= {f"`len({name})` is {n}": len(value) == n for n in (1, 2)}
            found |= _conditions_of_entries(name, value)
    return found


def _conditions_of_entries(name: str, value: Any) -> dict[str, bool]:
    """Return conditions on the entries of an array, or of a list of numbers or arrays."""
    if not len(value) or not is_numeric(value):
        return {}
    first, every = (
        np.concatenate([[0], *map(np.ravel, arrays(some))]) for some in ([value[0]], value)
    )
    found: dict[str, bool] = {}
    for text, holds in (("nan", np.isnan), ("infinite", np.isinf)):
        found[f"`{name}[0]` is {text}"] = bool(holds(first).any())
        found[f"`{name}` has entries that are {text}"] = bool(holds(every).any())
    return found


FACTS = (rows, pattern, lines)
