"""Call the function again: a second time, with another value of an argument, with a generator."""

import copy
from typing import Any

import numpy as np

from optdl.checks.diagnoses.evidence import Evidence
from optdl.checks.exercise import Case


def state(evidence: Evidence) -> str:
    """Recognize a function that gives another answer when it is called a second time."""
    for case in evidence.cases:
        first = evidence.tried(evidence.function, case)
        again = evidence.tried(evidence.function, case)
        if first is None or again is None:
            return ""
        if not evidence.agree(first, again):
            return (
                "your function gives another answer to the same call when it is called again: does "
                "it keep something, in a default argument or a name outside, or draw numbers of "
                "its own?"
            )
    return ""


def untouched(evidence: Evidence) -> str:
    """Recognize a function that leaves the generator alone that it is given."""
    drawing = _drawing(evidence)
    if drawing and all(got == before for before, _, got in drawing):
        return "your function does not draw from `rng`, the generator that it is given"
    return ""


def generator(evidence: Evidence) -> str:
    """Recognize a function that draws other numbers from the generator."""
    drawing = _drawing(evidence)
    if drawing and all(got != right for _, right, got in drawing):
        return (
            "your function draws from `rng` in another way than the task says: with another "
            "method, or more or fewer numbers"
        )
    return ""


def _drawing(evidence: Evidence) -> list[tuple[str, str, str]]:
    """Return the states of the generator in the cases in which the reference draws."""
    states = [_states(evidence, case) for case in evidence.cases]
    return [one for one in states if one and one[0] != one[1]]


def _states(evidence: Evidence, case: Case) -> tuple[str, str, str] | None:
    """Return the state of the generator before, after the reference and after the answer."""
    name = next((n for n, v in case.items() if isinstance(v, np.random.Generator)), "")
    if not name:
        return None
    found = [str(case[name].bit_generator.state)]
    for function in (evidence.exercise.reference, evidence.function):
        rng = copy.deepcopy(case[name])
        # the copy that is drawn from has to be the one that is looked at
        try:
            function(*{**copy.deepcopy(case), name: rng}.values())
        except Exception:
            return None
        found.append(str(rng.bit_generator.state))
    return found[0], found[1], found[2]


def ignored(evidence: Evidence) -> str:
    """Name an argument that changes the right answer, and never yours."""
    names = [name for name in evidence.names if _never_matters(evidence, name)]
    if len(names) != 1:
        return ""
    return f"your answer does not depend on `{names[0]}`, and has to"


def _never_matters(evidence: Evidence, name: str) -> bool:
    mattered = False
    for case, right, got in zip(evidence.cases, evidence.expected, evidence.got, strict=True):
        for changed in _others(case.get(name)):
            other = {**case, name: changed}
            new_right = evidence.tried(evidence.exercise.reference, other)
            new_got = evidence.tried(evidence.function, other)
            if new_right is None or new_got is None or not evidence.agree(got, new_got):
                return False
            mattered = mattered or not evidence.agree(right, new_right)
    return mattered


def _others(value: Any) -> list[Any]:
    """Return other values of an argument."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value + 2]
    if isinstance(value, float):
        return [0.75 * value, 0.5 * value]
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return [1.25 * value, value + 0.125]
    return []
