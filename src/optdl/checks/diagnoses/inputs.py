"""Compare with the right answer to another call: an argument negated, exchanged or hard-coded."""

from collections.abc import Callable, Iterator
from functools import partial, update_wrapper
from inspect import Parameter, signature
from itertools import combinations
from typing import Any

import numpy as np

from optdl.checks.diagnoses.evidence import Evidence, Part, leaves, listed, near, numbers
from optdl.checks.exercise import Case

Change = Callable[[Case], Case]

NUMBER: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("−{0}", lambda a: -a),
    ("1 − {0}", lambda a: 1 - a),
    ("2 · {0}", lambda a: 2 * a),
    ("{0}/2", lambda a: a / 2),
    ("{0} + 1", lambda a: a + 1),
    ("{0} − 1", lambda a: a - 1),
    ("{0}²", lambda a: a**2),
    ("√{0}", lambda a: a**0.5),
    ("1/{0}", lambda a: 1 / a),
    ("0", lambda a: 0 * a),
    ("1", lambda a: 0 * a + 1),
)
WHOLE = ("{0} + 1", "{0} − 1", "2 · {0}", "1")
ARRAY: tuple[tuple[str, Callable[[np.ndarray], Any]], ...] = (
    ("−{0}", np.negative),
    ("{0}.T", lambda a: a.T if a.ndim == 2 and a.shape[0] == a.shape[1] else None),
    ("0", np.zeros_like),
    ("1", np.ones_like),
    ("|{0}|", np.abs),
    ("{0}²", np.square),
    ("√{0}", np.sqrt),
    ("1/{0}", lambda a: 1 / a),
    ("2 · {0}", lambda a: 2 * a),
    ("{0}/2", lambda a: a / 2),
    ("{0}[::-1]", lambda a: a[::-1]),
    ("{0}, cut to whole numbers,", np.trunc),
    ("{0} minus its mean", lambda a: a - a.mean(axis=0)),
    ("the mean of {0}, in every entry,", lambda a: np.full_like(a, a.mean())),
    ("the first entry of {0}, in every entry,", lambda a: np.full_like(a, a.flat[0])),
    ("the diagonal of {0}", lambda a: np.diag(np.diag(a)) if a.ndim == 2 else None),
)
LIST: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("{0} without its last item", lambda a: a[:-1]),
    ("{0} without its first item", lambda a: a[1:]),
    ("{0}[::-1]", lambda a: a[::-1]),
)
CALLED: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("−{0}", np.negative),
    ("the absolute value of {0}", np.abs),
    ("2 · {0}", lambda g: 2 * g),
    ("{0}/2", lambda g: g / 2),
    ("the mean of {0} over its entries", lambda g: np.mean(g) + 0 * np.asarray(g)),
    ("{0} divided by its length", lambda g: g / np.linalg.norm(g)),
    ("the diagonal of {0}", lambda H: np.diag(np.diag(H))),
)
USUAL = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0)


def hard_coded(evidence: Evidence) -> str:
    """Name the one value of an argument for which the answer is right, whatever is given."""
    for name in evidence.arguments if _differ(evidence) else ():
        fitting = [
            value
            for value in _fixed(evidence, name)
            if all(_explains(evidence, part, _set(name, value)) for part in evidence.wrong)
        ]
        if len(fitting) == 1 and fitting != [1]:  # 1 is no constant, but a factor that is missing
            [value] = fitting
            return f"your answer is right only for `{name}` = {value!r}; let it depend on `{name}`"
    return ""


def _differ(evidence: Evidence) -> bool:
    """Return whether every wrong part has numbers further from the right ones than by rounding."""
    return bool(evidence.wrong) and all(
        part.differs and any(pair.got.size for pair in part.pairs) for part in evidence.wrong
    )


def _set(name: str, value: Any) -> Change:
    return lambda case: {**case, name: value}


def other_call(evidence: Evidence) -> str:
    """Return the change of the arguments for which the answer would be right."""
    for text, change in _changes(evidence) if _differ(evidence) else ():
        if all(_explains(evidence, part, change) for part in evidence.wrong):
            names = listed([part.name for part in evidence.wrong if part.name])
            verb = "are" if len(evidence.wrong) > 1 else "is"
            return f"{f'{names} {verb}' if names else 'your answer is'} what is right for {text}"
    return ""


def _explains(evidence: Evidence, part: Part, change: Change) -> bool:
    """Return whether the right answers to the changed calls are the values got."""
    # the cases that are wrong as they stand decide soonest
    pairs = sorted(part.pairs, key=lambda pair: near(pair.right, pair.got))
    return all(_gives(evidence, part.name, change(pair.case), pair.got) for pair in pairs)


def _gives(evidence: Evidence, name: str, case: Case, got: np.ndarray) -> bool:
    [right] = evidence.tried(evidence.exercise.reference, [case])
    if right is None:
        return False
    try:
        with np.errstate(all="ignore"):
            return near(*numbers(leaves(evidence.exercise.parts, right)[name], got))
    except (ValueError, TypeError):
        return False


def _changes(evidence: Evidence) -> Iterator[tuple[str, Change]]:
    """Yield changes of the arguments, the simplest first."""
    for left, right in combinations(evidence.names, 2):
        if _alike(evidence, left, right):
            yield f"`{left}` and `{right}` exchanged", _exchange(left, right)
    for name in evidence.names:
        for text, change in _of_one(evidence, name):
            place = f"{text.format(f'`{name}`')} in place of `{name}`"
            sign = ": is a sign wrong?" if text == "−{0}" else ""
            yield place + sign, _replace(name, change)


def _exchange(left: str, right: str) -> Change:
    return lambda case: {**case, left: case[right], right: case[left]}


def _replace(name: str, change: Callable[[Any], Any]) -> Change:
    return lambda case: {**case, name: _changed(change, case[name])}


def _changed(change: Callable[[Any], Any], value: Any) -> Any:
    """Return a changed value; one that cannot be changed, such as None, stays as it is."""
    try:
        with np.errstate(all="ignore"):
            return change(value)
    except (TypeError, ValueError, ZeroDivisionError, IndexError, AttributeError):
        return value


def _alike(evidence: Evidence, left: str, right: str) -> bool:
    """Return whether two arguments can stand for each other in every case."""
    return all(
        type(case[left]) is type(case[right])
        and np.shape(case[left]) == np.shape(case[right])
        and isinstance(case[left], int | float | np.ndarray)
        for case in evidence.cases
    )


def _of_one(evidence: Evidence, name: str) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    value = next((case[name] for case in evidence.cases if case[name] is not None), None)
    if isinstance(value, bool):
        yield "not {0}", lambda a: not a
    elif isinstance(value, int):
        yield from (change for change in NUMBER if change[0] in WHOLE)
    elif isinstance(value, float):
        yield from NUMBER
    elif isinstance(value, np.ndarray):
        yield from ARRAY
    elif isinstance(value, list):
        yield from LIST
    elif callable(value):
        yield from ((text, partial(_wrapped, change)) for text, change in CALLED)


def _wrapped(change: Callable[[Any], Any], function: Any) -> Any:
    """Return a function whose values are changed."""
    return update_wrapper(lambda *some: change(function(*some)), function)


def _fixed(evidence: Evidence, name: str) -> Iterator[Any]:
    """Yield values that may stand in the code in place of an argument."""
    values = [case[name] for case in evidence.cases]
    default = signature(evidence.exercise.reference).parameters[name].default
    usual = USUAL if all(isinstance(value, float) for value in values) else ()
    known = () if default is Parameter.empty else (default,)
    if len(set(map(str, values))) > 1 or usual:
        yield from dict.fromkeys((*known, *usual))
    if all(isinstance(value, str) for value in values):
        yield from dict.fromkeys(values)
