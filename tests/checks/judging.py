"""Say in what a function differs from the reference of an exercise."""

import contextlib
import copy
import io
import warnings
import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import config

from optdl.checks import exercises
from optdl.checks.compare import disagreement
from optdl.checks.exercise import Case, Exercise, Function

SEEDS = range(20)
"""The seeds of the cases that a function must fail on at least once to count as wrong."""


class Outcome(NamedTuple):
    """What a call gives: a value, or an error; and the argument that it changed in place."""

    value: Any = None
    error: Exception | None = None
    changed: str = ""


def call(function: Function, case: Case) -> Outcome:
    """Call with copies of the arguments, by position, as the checks do."""
    arguments = copy.deepcopy(case)
    try:
        with quiet():
            value = function(*arguments.values())
    except Exception as error:
        return Outcome(error=error)
    changed = (name for name, before in case.items() if _changed(before, arguments[name]))
    return Outcome(value, changed=next(changed, ""))


@cache
def cases(key: str, seed: int) -> tuple[tuple[Case, Any], ...]:
    """Return the calls of an exercise with the values of the reference."""
    exercise = exercises()[key]
    rng = np.random.default_rng([seed, zlib.crc32(key.encode())])
    calls = list(exercise.draw(rng))
    return tuple((case, call(exercise.reference, case).value) for case in calls)


def difference(key: str, function: Function, seeds: Iterable[int] = SEEDS) -> str | None:
    """Return in words the first difference to the reference, or None when there is none."""
    exercise, function = exercises()[key], fresh(function)
    for seed in seeds:
        for case, expected in cases(key, seed):
            if reason := _reason(exercise, expected, call(function, case)):
                return reason
    return None


def alike(key: str, left: Function, right: Function, seed: int = 0) -> bool:
    """Return whether two functions have the same outcome in every case of a seed."""
    exercise, left, right = exercises()[key], fresh(left), fresh(right)
    return all(_same(exercise, call(left, case), call(right, case)) for case, _ in cases(key, seed))


def raises(key: str, function: Function, seed: int = 0) -> bool:
    """Return whether a function raises an error in every case of a seed."""
    function = fresh(function)
    return all(call(function, case).error for case, _ in cases(key, seed))


def fresh(function: Function) -> Function:
    """Return a copy of a function that has not been called."""
    if not isinstance(function, FunctionType):
        return function
    defaults = copy.deepcopy(function.__defaults__)
    return FunctionType(
        function.__code__, function.__globals__, function.__name__, defaults, function.__closure__
    )


def unpacked(answer: Function, *arguments: Any) -> tuple[Any, Any]:
    """Return the two parts of what an answer gives, the second by the name count; a driver."""
    left, right = answer(*arguments)
    return left, right["count"]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Drop what is printed and warnings, and check no annotations, as in a student's notebook."""
    disabled = config.jaxtyping_disable
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config.update("jaxtyping_disable", True)
        try:
            yield
        finally:
            config.update("jaxtyping_disable", disabled)


def _reason(exercise: Exercise, expected: Any, outcome: Outcome) -> str | None:
    if outcome.error is not None:
        return f"raises {type(outcome.error).__name__}: {outcome.error}"
    if outcome.changed:
        return f"changes the argument {outcome.changed} in place"
    return disagreement(expected, outcome.value, exercise.rtol, exercise.atol)


def _same(exercise: Exercise, left: Outcome, right: Outcome) -> bool:
    if left.error is not None or right.error is not None:
        return type(left.error) is type(right.error)
    if left.changed != right.changed:
        return False
    return disagreement(left.value, right.value, exercise.rtol, exercise.atol) is None


def _changed(before: Any, after: Any) -> bool:
    return isinstance(before, np.ndarray) and not np.array_equal(before, after)
