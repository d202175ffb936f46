"""Compare with the right answer to another call: an argument negated, exchanged or hard-coded.

Or with a part of it: a loop that leaves out some of its turns, parts in each other's places.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial, update_wrapper
from inspect import Parameter, signature
from itertools import combinations
from typing import Any

import numpy as np

from optdl.checks.diagnoses.evidence import Evidence, listed, near, numbers, put
from optdl.checks.exercise import Case
from optdl.observation import observe, source_of


def _wrapper(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return what makes of a function one whose values are changed."""
    return lambda function: update_wrapper(lambda *some: change(function(*some)), function)


Change = Callable[[Case], Case]
Changes = dict[str, Callable[[Any], Any]]
"""What may be computed from an argument, the simplest first."""

NUMBER: Changes = {
    "−{0}": lambda a: -a,
    "2 · {0}": lambda a: 2 * a,
    "{0}/2": lambda a: a / 2,
    "{0} + 1": lambda a: a + 1,
    "√{0}": lambda a: a**0.5,
    "1/{0}": lambda a: 1 / a,
    "0": lambda a: 0 * a,
    "1": lambda a: 0 * a + 1,
}
ARRAY: Changes = {
    "−{0}": np.negative,
    "0": np.zeros_like,
    "1": np.ones_like,
    "√{0}": np.sqrt,
    "1/{0}": lambda a: 1 / a,
    "2 · {0}": lambda a: 2 * a,
    "{0}/2": lambda a: a / 2,
    "{0} minus its mean over axis 0": lambda a: a - a.mean(axis=0),
    "the mean of {0}, in every entry,": lambda a: np.full_like(a, a.mean()),
}
CALLED: Changes = {
    "−{0}": np.negative,
    "2 · {0}": lambda g: 2 * g,
    "{0}/2": lambda g: g / 2,
}
CHANGES: tuple[tuple[Any, Changes], ...] = (
    (bool, {"not {0}": lambda a: not a}),
    (int, {text: NUMBER[text] for text in ("2 · {0}", "{0} + 1", "1")}),
    (float, NUMBER),
    (np.ndarray, ARRAY),
    (list, {"{0} without its last item": lambda a: a[:-1]}),
    (Callable, {text: _wrapper(change) for text, change in CALLED.items()}),
)
"""By the type of the argument."""
USUAL = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0)


def hard_coded(evidence: Evidence) -> str:
    """Name the one value of an argument for which the answer is right, whatever is given."""
    for name in evidence.arguments if _differ(evidence) else ():
        fitting = [
            value
            for value in _fixed(evidence, name)
            if _explains(evidence, f"{name} = {value!r}", partial(put, name, value))
        ]
        if len(fitting) == 1 and fitting != [1]:  # 1 is no constant, but a factor that is missing
            [value] = fitting
            return f"your answer is right only for `{name}` = {value!r}; let it depend on `{name}`"
    return ""


def other_call(evidence: Evidence) -> str:
    """Return the change of the arguments for which the answer would be right."""
    for text, change in _changes(evidence) if _differ(evidence) else ():
        if _explains(evidence, text, change):
            names = listed([part.name for part in evidence.wrong if part.name])
            verb = "are" if len(evidence.wrong) > 1 else "is"
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
    kinds = {name: [_kind(case[name]) for case in evidence.cases] for name in evidence.names}
    for left, right in combinations(evidence.names, 2):
        if kinds[left] == kinds[right] and None not in kinds[left]:
            yield f"`{left}` and `{right}` exchanged", partial(_exchanged, left, right)
    for name in evidence.names:
        value = next((case[name] for case in evidence.cases if case[name] is not None), None)
        changes = next((changes for kind, changes in CHANGES if isinstance(value, kind)), {})
        # what is odd in all cases, such as the size of a kernel, may mean nothing where it is even
        sizes = [case[name] for case in evidence.cases]
        is_odd = all(type(size) is int and size % 2 for size in sizes) and len({*sizes}) > 1
        for text, change in {"1": NUMBER["1"]}.items() if is_odd else changes.items():
            place = f"{text.format(f'`{name}`')} in place of `{name}`"
            sign = ": is a sign wrong?" if text == "−{0}" else ""
            yield place + sign, partial(_changed, change, name)


def _exchanged(left: str, right: str, case: Case) -> Case:
    return {**case, left: case[right], right: case[left]}


def _changed(change: Callable[[Any], Any], name: str, case: Case) -> Case:
    """Change one value; one that cannot be changed, such as None, stays as it is."""
    try:
        with np.errstate(all="ignore"):
            return {**case, name: change(case[name])}
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
    usual = USUAL if kinds == {float} else ()
    known = () if default is Parameter.empty else (default,)
    found = [*known, *usual] if len({*map(str, values)}) > 1 or usual else []
    return [*dict.fromkeys(found + (values if kinds == {str} else []))]


PARTS: tuple[tuple[str, slice, str], ...] = (
    ("[:1]", slice(1), "does `return` stand inside the loop?"),
    ("[-1:]", slice(-1, None), "does each turn of the loop overwrite the one before?"),
    ("[:-1]", slice(-1), "does the loop end too early?"),
    ("[1:]", slice(1, None), "does the loop begin too late?"),
)


def turns(evidence: Evidence) -> str:
    """Name the examples for which alone the answer would be right."""
    for names in _together(evidence) if sum(evidence.wrong_cases) >= 2 else ():
        for text, part, question in PARTS:
            some, change = listed([name + text for name in names]), partial(_sliced, names, part)
            if _differ(evidence) and _explains(evidence, some, change):
                text = f"your answer is what is right for {some} in place of {listed(names)}"
                code = observe(source_of, evidence.function)
                loops = not code or re.search(r"\b(for|while)\b", code)
                return f"{text}: {question}" if loops else text
    return ""


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
            some = "" if len(wrong) == len(two) else " in the cases that differ"
            return f"`{left.name}` and `{right.name}` are exchanged{some}{order}"
    return ""
