"""Call the function again: a second time, with another value of an argument, with a generator."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from optdl.checks.diagnoses.evidence import Evidence
from optdl.checks.exercise import Case
from optdl.observation import generators, generators_after, observe


def state(evidence: Evidence) -> str:
    """Recognize a function that gives another answer when it is called a second time."""
    twice = [case for case in evidence.cases for _ in range(2)]
    values = evidence.tried(evidence.function, twice)
    for first, again in zip(values[::2], values[1::2], strict=True):
        if first is None or again is None:
            return ""
        if not evidence.agree(first, first):
            return ""  # a generator, for example, never agrees
        if not evidence.agree(first, again):
            return (
                "your function gives another answer to the same call when it is called again: does "
                "it keep something, in a default argument or a name outside, or draw numbers of "
                "its own?"
            )
    return ""


def untouched(evidence: Evidence) -> str:
    """Recognize a function that leaves the generator alone that it is given."""
    states = _states(evidence, evidence.cases)
    drawing = any(right != before for before, right, _ in states)
    if drawing and all(got == before for before, _, got in states):
        return "your function does not draw from `rng`, the generator that it is given"
    return ""


def generator(evidence: Evidence) -> str:
    """Recognize a function that draws other numbers from the generator wherever it is wrong."""
    answers = zip(evidence.cases, evidence.expected, evidence.got, strict=True)
    wrong = [case for case, right, got in answers if not evidence.agree(right, got)]
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
    cases = [case for case in cases if generators(case)]
    exercise = evidence.exercise
    rights = generators_after(exercise.reference, exercise.use, cases)
    gots = observe(generators_after, evidence.function, exercise.use, cases) if cases else []
    before = map(generators, cases)
    return [
        (state, right, got)
        for state, right, got in zip(before, rights, gots, strict=True)
        if right is not None and got is not None
    ]


def ignored(evidence: Evidence) -> str:
    """Name an argument that changes the right answer, and never yours.

    It has to matter in each case that fails: what is wrong without it has another cause.
    """
    names = [name for name in evidence.arguments if _never_matters(evidence, name)]
    if len(names) != 1:
        return ""
    return f"your answer does not depend on `{names[0]}`, and has to"


def _never_matters(evidence: Evidence, name: str) -> bool:
    matters = False
    for case, right, got in zip(evidence.cases, evidence.expected, evidence.got, strict=True):
        matters_here = False
        others = [{**case, name: changed} for changed in _others(case.get(name))]
        new_rights = evidence.tried(evidence.exercise.reference, others)
        new_gots = evidence.tried(evidence.function, others)
        for new_right, new_got in zip(new_rights, new_gots, strict=True):
            if new_right is None:
                continue
            if new_got is None or not evidence.agree(got, new_got):
                return False
            matters_here = matters_here or not evidence.agree(right, new_right)
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
        return [value + 1, value + 2, value // 2, value // 8]
    if isinstance(value, float):
        return [0.75 * value, 0.5 * value, 8 * value, -value]
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return [1.25 * value, value + 0.125, 8 * value, -8 * value, value[::-1]]
    return []
