"""Exercises of labs: a driver does something with an answer, and returns what came of it."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from optdl.checks.compare import disagreement
from optdl.checks.exercise import Exercise, Function
from optdl.labs.drivers.follow import steps
from optdl.observation import observe


def driver(
    reference: Function, parts: Any, closed: str = "", **options: Any
) -> Callable[[Function], Exercise]:
    """Make an exercise of its driver, as a decorator; its key is told by the name of its file.

    What would be the answer is ``closed``, with semicolons between the names: see ``steps``.
    """
    lab, _, name = reference.__module__.rpartition("lab_")[2].partition("_")
    made = steps(*closed.split("; ")) if closed else steps()
    return lambda use: Exercise(
        f"LAB-{lab}:{name}", reference, use=made(use), parts=parts, **options
    )


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
