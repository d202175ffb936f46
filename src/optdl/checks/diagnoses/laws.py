"""Facts that hold for the right answer and not for this one: its properties, and how it scales."""

import io
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from optdl.checks.diagnoses.evidence import Evidence, leaves, near, numbers
from optdl.checks.exercise import Exercise, Function
from optdl.observation import silence

FACTORS = {
    "is multiplied by 8": 8.0,
    "is multiplied by 4": 4.0,
    "doubles": 2.0,
    "is multiplied by √2": 2**0.5,
    "stays the same": 1.0,
    "is divided by √2": 2**-0.5,
    "is halved": 0.5,
    "is divided by 4": 0.25,
    "is divided by 8": 0.125,
}


Form = tuple[str, Callable[[np.ndarray], bool]]
"""A form, and whether an array has it."""

FORMS: tuple[Form, ...] = (
    ("is finite in these cases", lambda a: bool(np.isfinite(a.astype(float)).all())),
    ("adds up to 1", lambda a: a.size > 1 and near(a.sum(), 1.0)),
    ("has only zeros in these cases", lambda a: a.size > 1 and not a.any()),
    ("has entries that add up to 0", lambda a: a.size > 1 and near(a.sum(), 0.0)),
)
SIGNS: tuple[Form, ...] = (("is never negative in these cases", lambda a: bool((a >= 0).all())),)


def form(evidence: Evidence, forms: tuple[Form, ...] = FORMS) -> str:
    """Name a form that the right numbers have in every case and those got have not."""
    for part in evidence.wrong:
        for text, holds in forms:
            rights = [pair.right for pair in part.pairs] + _many(evidence.exercise, part.name)
            if all(map(holds, rights)) and not all(holds(pair.got) for pair in part.pairs):
                name = f"`{part.name}`" if part.name else "the right answer"
                return f"{name} {text}; yours is not so"
    return ""


@lru_cache(maxsize=8)
def _many(exercise: Exercise, name: str) -> list[np.ndarray]:
    """Return the right values of a part in so many cases that their form is no accident."""
    drawn = [case for seed in range(8) for case in exercise.draw(np.random.default_rng(seed))]
    rights = exercise.outcomes(exercise.reference, drawn)
    found = [leaves(exercise.parts, right.value)[name] for right in rights]
    return [numbers(value, value)[0] for value in found]


def scaling(evidence: Evidence) -> str:
    """Name an argument in which the right answer scales otherwise than this one."""
    for name in evidence.names:
        value = evidence.cases[0][name]
        if isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
            right = _scales(evidence, name, evidence.exercise.reference, evidence.expected)
            got = right and _scales(evidence, name, evidence.function, evidence.got)
            if right != got:
                yours = f"yours {got}" if got else "yours does otherwise"
                return f"when `{name}` is doubled, the right answer {right}; {yours}"
    return ""


def _scales(evidence: Evidence, name: str, function: Function, values: Sequence[Any]) -> str:
    """Return what becomes of all answers when an argument is doubled, or an empty string."""
    possible = set(FACTORS)
    cases = [{**case, name: 2 * np.asarray(case[name])[()]} for case in evidence.cases]
    for value, doubled in zip(values, evidence.tried(function, cases), strict=True):
        if doubled is None:
            return ""
        possible = {text for text in possible if _times(FACTORS[text], value, doubled)}
    return possible.pop() if len(possible) == 1 else ""


def _times(factor: float, value: Any, other: Any) -> bool:
    try:
        return near(factor * np.asarray(value, float), np.asarray(other, float))
    except (ValueError, TypeError):
        return False


def claim(evidence: Evidence) -> str:
    """Return the first property of the exercise that this function does not have."""
    for fact in evidence.exercise.properties:
        try:
            with silence(io.StringIO()):
                held = fact.holds(evidence.function, np.random.default_rng(0))
        except Exception:  # what an answer cannot do says nothing of this fact
            continue
        if not held:
            return f"your function does not satisfy this: {fact.claim}"
    return ""
