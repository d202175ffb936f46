"""Call the function again: a second time, with another value of an argument, with a generator."""

from functools import partial
from itertools import compress
from typing import Any

import numpy as np

from optdl.checks.diagnoses.evidence import TRIED, Evidence, put
from optdl.observation import generators


def state(evidence: Evidence) -> str:
    """Recognize a function that gives another answer when it is called a second time."""
    cases = evidence.cases[:4]
    given = [one.value for one in evidence.exercise.outcomes(evidence.function, cases * 2)]
    for one, first, again in zip(evidence.tried, given, given[len(cases) :], strict=False):
        # a generator, for example, never agrees
        if not evidence.agree(first, first):
            return ""
        if not (evidence.agree(first, again) and evidence.agree(first, one.got.value)):
            return (
                "your function gives another answer to the same call when it is called again: does "
                "it keep something, in a default argument or a name outside, or draw numbers of "
                "its own?"
            )
    return ""


def drawn(evidence: Evidence) -> str:
    """Recognize a function that does not draw from its generator, or draws other numbers."""
    if not all(one.right.states for one in evidence.tried):
        return ""
    states = [
        (generators(one.case.values()), [*one.right.states], [*one.got.states])
        for one in evidence.tried
    ]
    wrong = compress(states, evidence.wrong_cases)
    drawing = [(right, got) for before, right, got in wrong if right != before]
    if not drawing or any(got == right for right, got in drawing):
        return ""
    if all(got == before for before, _, got in states):
        return "your function does not draw from `rng`, the generator that it is given"
    return (
        "your function draws from `rng` in another way than the task says: with another "
        "method, or more or fewer numbers"
    )


def ignored(evidence: Evidence) -> str:
    """Name arguments that matter to the right answer in each wrong case, and never to yours."""
    names = [name for name in evidence.arguments if _never_matters(evidence, name)]
    if not 1 <= len(names) <= 2:
        return ""
    depends = "does not depend" if len(names) == 1 else "depends neither"
    some = " nor on ".join(f"`{name}`" for name in names)
    return f"{TRIED}your answer {depends} on {some}, and has to"


def _never_matters(evidence: Evidence, name: str) -> bool:
    matters = False
    for one, is_wrong in zip(evidence.tried, evidence.wrong_cases, strict=True):
        matters_here = False
        for number, other in enumerate(_others(one.case.get(name))):
            change = partial(put, name, other)
            right = evidence.right(one, f"{name} {number}", change)
            if right is not None:
                new = evidence.again(one, change)
                if new is None or not evidence.agree(one.got.value, new):
                    return False
                matters_here = matters_here or not evidence.agree(one.right.value, right)
        if not matters_here and is_wrong:
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
        return [0.125 * value, value + 0.125, 8 * value, -8 * value, value[::-1]]
    return []
