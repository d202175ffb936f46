"""Facts that hold for the right answer and not for this one: its properties, and how it scales."""

import io
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from optdl.checks.diagnoses.evidence import Evidence, Part, leaves, near, numbers
from optdl.checks.exercise import Exercise
from optdl.observation import silence

SEEDS = 8
"""So many times new cases are drawn before a form counts as that of every right answer."""

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


def form(evidence: Evidence) -> str:
    """Name a form that the right numbers have in every case and those got have not."""
    return _first_form(evidence, FORMS)


def signs(evidence: Evidence) -> str:
    """Name the sign that the right numbers have in every case and those got have not."""
    return _first_form(evidence, SIGNS)


def _first_form(
    evidence: Evidence, forms: tuple[tuple[str, Callable[[np.ndarray], bool]], ...]
) -> str:
    for part in evidence.wrong:
        for text, holds in forms:
            rights = [holds(right) for right in _expected(evidence, part)]
            if all(rights) and not all(holds(pair.got) for pair in part.pairs):
                name = f"`{part.name}`" if part.name else "the right answer"
                return f"{name} {text}; yours is not so"
    return ""


def _expected(evidence: Evidence, part: Part) -> Iterator[np.ndarray]:
    """Yield the right values of a part in these cases and in many others."""
    yield from (pair.right for pair in part.pairs)
    for right in _many(evidence.exercise):
        found = leaves(evidence.exercise.parts, right)[part.name]
        yield numbers(found, found)[0]


@lru_cache(maxsize=4)
def _many(exercise: Exercise) -> list[Any]:
    """Return the right values of an exercise in many cases."""
    drawn = [case for seed in range(SEEDS) for case in exercise.draw(np.random.default_rng(seed))]
    return [given.value for given in exercise.outcomes(exercise.reference, drawn)]


def _matrix(array: np.ndarray) -> bool:
    return array.ndim == 2 and min(array.shape) > 1


FORMS: tuple[tuple[str, Callable[[np.ndarray], bool]], ...] = (
    ("is finite in these cases", lambda a: bool(np.isfinite(a.astype(float)).all())),
    ("is 0 everywhere", lambda a: a.dtype.kind != "b" and a.size > 0 and not a.any()),
    ("is symmetric", lambda a: a.ndim == 2 and a.shape[0] == a.shape[1] and near(a, a.T)),
    ("adds up to 1", lambda a: a.size > 1 and near(a.sum(), 1.0)),
    ("has rows that add up to 1", lambda a: _matrix(a) and near(a.sum(1), np.ones(len(a)))),
    ("has columns whose mean is 0", lambda a: _matrix(a) and near(a.mean(0), np.zeros(a.shape[1]))),
    ("has entries that add up to 0", lambda a: a.size > 1 and near(a.sum(), 0.0)),
)
SIGNS: tuple[tuple[str, Callable[[np.ndarray], bool]], ...] = (
    ("is never negative in these cases", lambda a: bool((a >= 0).all())),
    ("is never positive in these cases", lambda a: bool((a <= 0).all())),
    ("consists of whole numbers in these cases", lambda a: near(a, np.round(a))),
)


def scaling(evidence: Evidence) -> str:
    """Name an argument in which the right answer scales otherwise than this one."""
    for name in evidence.names:
        value = evidence.cases[0][name]
        if isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
            right, got = (_scales(evidence, name, which) for which in ("reference", "function"))
            if right and right != got:
                yours = f"yours {got}" if got else "yours does otherwise"
                return f"when `{name}` is doubled, the right answer {right}; {yours}"
    return ""


def _scales(evidence: Evidence, name: str, which: str) -> str:
    """Return what becomes of all answers when an argument is doubled, or an empty string."""
    function = evidence.exercise.reference if which == "reference" else evidence.function
    values = evidence.expected if which == "reference" else evidence.got
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
