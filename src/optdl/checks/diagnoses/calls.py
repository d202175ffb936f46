"""Call the function again: a second time, with another value of an argument, with a generator."""

from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np

from optdl.checks.diagnoses import values
from optdl.checks.diagnoses.evidence import Evidence, leaves, listed, near
from optdl.checks.exercise import Case
from optdl.observation import generators


def state(evidence: Evidence) -> str:
    """Recognize a function that gives another answer when it is called a second time."""
    twice = [case for case in evidence.cases for _ in range(2)]
    given = evidence.tried(evidence.function, twice)
    for first, again in zip(given, given, strict=True):
        # a generator, for example, never agrees
        if first is None or again is None or not evidence.agree(first, first):
            return ""
        if not evidence.agree(first, again):
            return (
                "your function gives another answer to the same call when it is called again: does "
                "it keep something, in a default argument or a name outside, or draw numbers of "
                "its own?"
            )
    return ""


def constant(evidence: Evidence) -> str:
    """Recognize a part that is one number, whatever the arguments are: other ones are tried."""
    found = {part.name: values.constant(part) for part in evidence.wrong}
    found = {name: number for name, number in found.items() if number is not None}
    cases = [
        {**case, name: other}
        for case in (evidence.cases if found else ())
        for name in evidence.arguments
        for other in _others(case[name])
    ]
    for got in evidence.tried(evidence.function, cases):
        parts = leaves(evidence.exercise.parts, got) if got is not None else {}
        for name in parts.keys() & found.keys():
            if not near(np.full(np.shape(parts[name]), found[name]), parts[name]):
                del found[name]
    return "; ".join(
        f"{listed([name]) if name else 'your answer'} is always {number:.6g}, whatever the "
        "arguments are"
        for name, number in found.items()
    )


def untouched(evidence: Evidence) -> str:
    """Recognize a function that leaves the generator alone that it is given."""
    states = _states(evidence, evidence.cases)
    drawing = any(right != before for before, right, _ in states)
    if drawing and all(got == before for before, _, got in states):
        return "your function does not draw from `rng`, the generator that it is given"
    return ""


def generator(evidence: Evidence) -> str:
    """Recognize a function that draws other numbers from the generator wherever it is wrong."""
    wrong = [*compress(evidence.cases, evidence.wrong_cases)]
    drawing = [(right, got) for before, right, got in _states(evidence, wrong) if right != before]
    if drawing and all(got != right for right, got in drawing):
        return (
            "your function draws from `rng` in another way than the task says: with another "
            "method, or more or fewer numbers"
        )
    return ""


def _states(
    evidence: Evidence, cases: Sequence[Case]
) -> list[tuple[list[str], list[str], list[str]]]:
    """Return the states of each case's generators before, after the reference, and after yours."""
    cases = [case for case in cases if generators(case.values())]
    rights = evidence.exercise.outcomes(evidence.exercise.reference, cases)
    gots = evidence.exercise.outcomes(evidence.function, cases)
    return [
        (generators(case.values()), [*right.states], [*got.states])
        for case, right, got in zip(cases, rights, gots, strict=True)
        if not right.is_error and not got.is_error
    ]


def ignored(evidence: Evidence) -> str:
    """Name an argument that changes the right answer, and never yours.

    It has to matter in each case that fails: what is wrong without it has another cause.
    """
    names = [name for name in evidence.arguments if _never_matters(evidence, name)]
    if len(names) != 1:
        return ""
    return f"in the cases tried your answer does not depend on `{names[0]}`, and has to"


def _never_matters(evidence: Evidence, name: str) -> bool:
    matters = False
    for case, right, got in zip(evidence.cases, evidence.expected, evidence.got, strict=True):
        others = [{**case, name: changed} for changed in _others(case.get(name))]
        rights = [*evidence.tried(evidence.exercise.reference, others)]
        valid = [other for other, new in zip(others, rights, strict=True) if new is not None]
        gots = evidence.tried(evidence.function, valid)
        if not all(new is not None and evidence.agree(got, new) for new in gots):
            return False
        matters_here = not all(new is None or evidence.agree(right, new) for new in rights)
        if not matters_here and not evidence.agree(right, got):
            return False
        matters = matters or matters_here
    return matters


def _others(value: Any) -> list[Any]:
    """Return other values of an argument, some of them far away.

    Smaller integers, too: beside a maximum, as in max(n/N, 1), larger ones change nothing.
    """
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value + 2, value // 2, value // 8, 1]
    if isinstance(value, float):
        return [0.75 * value, 0.5 * value, 8 * value, -value]
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return [1.25 * value, value + 0.125, 8 * value, -8 * value, value[::-1]]
    return []
