"""Exercises of labs: a driver does something with an answer, and returns what came of it."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from optdl.checks.compare import disagreement
from optdl.checks.exercise import Exercise, Function
from optdl.labs.drivers.follow import steps
from optdl.observation import observe


def driver(
    key: str, reference: Function, closed: str = "", **options: Any
) -> Callable[[Function], Exercise]:
    """Make an exercise of its driver, as a decorator.

    What would be the answer is ``closed``, with semicolons between the names: see ``steps``.
    """
    made = steps(*closed.split("; ")) if closed else steps()
    return lambda use: Exercise(key, reference, use=made(use), **options)


def agrees(
    use: Function,
    answer: Any,
    oracle: Any,
    case: Iterable[Any],
    parts: slice = slice(None),
    rtol: float = 1e-9,
    atol: float = 1e-12,
) -> bool:
    """Return whether an answer does the same as an oracle, for which nothing is closed."""
    case = [*case]
    expected = partial(use, closed=())(oracle, *case)[parts]
    return disagreement(expected, observe(use, answer, *case)[parts], rtol, atol) is None
