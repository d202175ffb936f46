"""Compare with the right answer to another call: an argument negated, exchanged, hard-coded or cut.

Or with a part of it in another one's place.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial, update_wrapper
from inspect import signature
from itertools import combinations
from typing import Any

import numpy as np

from optdl.checks.diagnoses.evidence import Evidence, changed, listed, near, numbers, put
from optdl.checks.diagnoses.values import is_level
from optdl.checks.exercise import Case
from optdl.observation import observe, source_of


def _of_values(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return what makes of a function one whose values are changed."""
    return lambda function: update_wrapper(lambda *some: change(function(*some)), function)


Change = Callable[[Case], Case]
Changes = dict[str, Callable[[Any], Any]]
"""What may be computed from an argument, the simplest first."""

VALUES: Changes = {"−{0}": np.negative, "2 · {0}": lambda g: 2 * g, "{0}/2": lambda g: g / 2}
ONE: Changes = {"1": lambda a: 0 * a + 1}
NUMBERS: Changes = {
    **VALUES,
    "√{0}": lambda a: a**0.5,
    "1/{0}": lambda a: 1 / a,
    "0": lambda a: 0 * a,
    **ONE,
}
CHANGES: tuple[tuple[Any, Changes], ...] = (
    (bool, {"not {0}": lambda a: not a}),
    (int, {"{0} + 1": lambda a: a + 1, "{0} − 1": lambda a: a - 1, **ONE}),
    (float, NUMBERS),
    (
        np.ndarray,
        {
            **NUMBERS,
            "{0} minus its mean over axis 0": lambda a: a - a.mean(axis=0),
            "the mean of {0}, in every entry,": lambda a: np.full_like(a, a.mean()),
        },
    ),
    (Callable, {text: _of_values(change) for text, change in VALUES.items()}),
)
"""By the type of the argument."""
USUAL = (0, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999)


PARTS: tuple[tuple[str, slice, str], ...] = (
    ("[:1]", slice(1), "does a loop end in its first turn, with `return`?"),
    ("[-1:]", slice(-1, None), "does each turn of a loop overwrite the one before?"),
    ("[:-1]", slice(-1), "does a loop end too early?"),
    ("[1:]", slice(1, None), "does a loop begin too late?"),
)
"""Of arguments that have one length, the rows for which alone an answer may be right."""


def other_call(evidence: Evidence) -> str:
    """Return the change of the arguments for which the answer would be right."""
    alike = any(map(is_level, evidence.wrong))
    for text, change in _changes(evidence) if _differ(evidence) else ():
        # one number again and again tells of an argument that is fixed, and of no other change
        if not (alike and " = " not in text) and _explains(evidence, text, change):
            names = listed([part.name for part in evidence.wrong if part.name])
            verb = "are" if len(evidence.wrong) > 1 else "is"
            code = observe(source_of, evidence.function)
            sliced = "|".join(re.findall(r"`(\w+)`", text))
            if code and not re.search(rf"\b(while|for\b.*\b({sliced}))\b", code):
                # no loop over them to ask about
                text = text.partition(": does ")[0]
            return f"{f'{names} {verb}' if names else 'your answer is'} what is right for {text}"
    return ""


def _differ(evidence: Evidence) -> bool:
    """Return whether every wrong part has numbers further from the right ones than by rounding."""
    return bool(evidence.wrong and not evidence.unlike) and all(
        part.wrong_pairs and any(pair.got.size for pair in part.pairs) for part in evidence.wrong
    )


def _explains(evidence: Evidence, text: str, change: Change) -> bool:
    """Return whether the right answers to the changed calls are the values got."""
    for part in evidence.wrong:
        for _, got, one in part.hardest:
            try:
                value = evidence.leaves(evidence.right(one, text, change))[part.name]
                if not near(numbers(value, value)[0], got):
                    return False
            except (ValueError, TypeError):
                return False
    return True


def _changes(evidence: Evidence) -> Iterator[tuple[str, Change]]:
    """Yield changes of the arguments, the simplest first."""
    for name in evidence.arguments:
        for fixed in _fixed(evidence, name):
            yield f"`{name}` = {fixed!r}", partial(put, name, fixed)
    for left, right in combinations(evidence.names, 2):
        kinds = [_kind(evidence.cases[0][name]) for name in (left, right)]
        if kinds[0] == kinds[1] is not None:
            yield f"`{left}` and `{right}` exchanged", partial(_exchanged, left, right)
    # whole numbers first: half the rate may lead where one step less does
    for name in sorted(evidence.names, key=lambda name: type(evidence.cases[0][name]) is not int):
        value = next((case[name] for case in evidence.cases if case[name] is not None), None)
        changes = next((changes for kind, changes in CHANGES if isinstance(value, kind)), {})
        for text, change in changes.items():
            place = f"{text.format(f'`{name}`')} in place of `{name}`"
            sign = ": is a sign wrong?" if text == "−{0}" else ""
            yield place + sign, partial(_changed, name, change)
    for names in _together(evidence) if sum(evidence.wrong_cases) >= 2 else ():
        for text, part, question in PARTS:
            some = listed([name + text for name in names])
            place = f"{some} in place of {listed(names)}: {question}"
            yield place, partial(_sliced, names, part)


def _exchanged(left: str, right: str, case: Case) -> Case:
    return {**case, left: case[right], right: case[left]}


def _changed(name: str, change: Callable[[Any], Any], case: Case) -> Case:
    """Change one value; one that cannot be changed, such as None, stays as it is."""
    try:
        with np.errstate(all="ignore"):
            return changed(name, change, case)
    except (TypeError, ValueError, ZeroDivisionError, IndexError, AttributeError):
        return case


def _kind(value: Any) -> tuple[type, tuple[int, ...]] | None:
    """Return the type and shape of numbers, in which two arguments that are exchanged agree."""
    return (type(value), np.shape(value)) if isinstance(value, int | float | np.ndarray) else None


def _fixed(evidence: Evidence, name: str) -> list[Any]:
    """Return values that may stand in the code in place of an argument."""
    values = [case[name] for case in evidence.cases]
    default = signature(evidence.exercise.reference).parameters[name].default
    kinds = {*map(type, values)}
    found = [*USUAL] if kinds == {float} else values if kinds == {str} else []
    is_various = kinds == {float} or len({*map(str, values)}) > 1
    return [*dict.fromkeys(found + [default] * (type(default) in kinds and is_various))]


def _sliced(names: list[str], part: slice, case: Case) -> Case:
    return {**case, **{name: case[name][part] for name in names}}


def _together(evidence: Evidence) -> list[list[str]]:
    """Return the names of arguments that have one length in every case, such as x and y."""
    groups = defaultdict(list)
    for name in evidence.names:
        values = [case[name] for case in evidence.cases]
        if all(isinstance(value, list | tuple) or np.ndim(value) for value in values):
            groups[tuple(map(len, values))].append(name)
    return [names for lengths, names in groups.items() if max(lengths) > 1]


def swapped(evidence: Evidence) -> str:
    """Recognize parts that are exchanged."""
    names = ", ".join(part.name for part in evidence.parts)
    order = "" if evidence.exercise.use else f"; the order is {names}"  # else a driver's parts
    for left, right in combinations(evidence.wrong, 2):
        two = list(zip(left.pairs, right.pairs, strict=True))
        wrong = [(a, b) for a, b in two if not (near(*a[:2]) and near(*b[:2]))]
        crossed = all(near(b.right, a.got) and near(a.right, b.got) for a, b in wrong)
        if len(wrong) >= 2 and crossed:
            some = "" if len(wrong) == len(two) else " where they differ"
            return f"`{left.name}` and `{right.name}` are exchanged{some}{order}"
    return ""
