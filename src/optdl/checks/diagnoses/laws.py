"""Facts that hold for the right answer and not for this one, and where this one is right, too."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from optdl.checks.diagnoses.evidence import (
    NEAR,
    Evidence,
    Tried,
    changed,
    leaves,
    near,
    numbers,
    ratio,
)
from optdl.checks.exercise import Case, Exercise
from optdl.objectives import times

CLAIM = "your function does not satisfy this: "

FACTORS = {
    8.0: "is multiplied by 8",
    4.0: "is multiplied by 4",
    2.0: "doubles",
    2**0.5: "is multiplied by √2",
    1.0: "stays the same",
    2**-0.5: "is divided by √2",
    0.5: "is halved",
    0.25: "is divided by 4",
    0.125: "is divided by 8",
}

FORMS: tuple[tuple[str, Callable[[np.ndarray], bool]], ...] = (
    ("is finite", lambda a: bool(np.isfinite(a.astype(float)).all())),
    ("adds up to 1", lambda a: a.size > 1 and near(a.sum(), 1.0)),
    ("is 0 in every entry", lambda a: a.size > 1 and not a.any()),
    ("has entries that add up to 0", lambda a: a.size > 1 and near(a.sum(), 0.0)),
)


def form(evidence: Evidence) -> str:
    """Name a form that the right numbers have in every case and those got have not."""
    for part in evidence.wrong:
        for text, holds in FORMS:
            gots = [holds(pair.got) for pair in part.wrong_pairs]
            if not gots or any(gots) or not all(holds(pair.right) for pair in part.pairs):
                continue
            if all(map(holds, _many(evidence.exercise, part.name))):
                name = f"`{part.name}`" if part.name else "the right answer"
                return f"{name} {text}, unlike yours"
    return ""


@lru_cache(maxsize=8)
def _many(exercise: Exercise, name: str) -> list[np.ndarray]:
    """Return the right values of a part in so many cases that their form is no accident."""
    drawn = [case for seed in range(8) for case in exercise.draw(np.random.default_rng(seed))]
    rights = exercise.outcomes(exercise.reference, drawn)
    found = [leaves(exercise.parts, right.value)[name] for right in rights]
    return [numbers(value, value)[0] for value in found]


Neutral = tuple[tuple[str, type, Callable[[Any], Any]], ...]

ZERO: Neutral = (
    ("`{}` were 0", float, lambda a: 0.0),
    ("every entry of `{}` were 0", np.ndarray, np.zeros_like),
)
SPECIAL: Neutral = (
    ("`{}` were 1", int, lambda a: 1),
    ("no entry of `{}` were negative", np.ndarray, np.abs),
    ("all entries of `{}` were equal", np.ndarray, lambda a: np.full_like(a, a.ravel()[:1].sum())),
    ("every entry of `{}` were 1", np.ndarray, np.ones_like),
)
"""What an argument of a type may be, so that it plays no part, or a smaller one."""


def neutral(evidence: Evidence, table: Neutral) -> str:
    """Name an argument whose use is in doubt: the answer is right where it is special."""
    seldom = 2 * sum(evidence.wrong_cases) < len(evidence.cases)  # most are right unchanged
    for name in () if seldom else evidence.arguments:
        kinds = {type(case[name]) for case in evidence.cases}
        for text, kind, special in table:
            if kinds != {kind}:
                continue
            where, change = text.format(name), partial(changed, name, special)
            if not _is_counted(evidence, name) and _is_right(evidence, where, change):
                return f"your answer would be right if {where}"
    return ""


def _is_counted(evidence: Evidence, name: str) -> bool:
    """Return whether an argument is the number of rows, or of those behind the first."""
    pairs = evidence.wrong[0].pairs if evidence.wrong else ()
    counts = ((pair.right.shape[:1], pair.one.case[name]) for pair in pairs)
    return all(type(n) is int and rows in ((n,), (n + 1,)) for rows, n in counts)


def _is_right(evidence: Evidence, text: str, change: Callable[[Case], Case]) -> bool:
    """Return whether an answer is right in cases, most of which no constant or argument answers."""
    silent = 0
    for one in evidence.tried:
        right = evidence.right(one, text, change)
        if right is None or 2 * silent >= len(evidence.tried):
            return False
        if not evidence.agree(right, evidence.again(one, change)):
            return False
        found, given = evidence.leaves(right), [*change(one.case).values()]
        values = [numbers(found[part.name], found[part.name])[0] for part in evidence.wrong]
        silent += not all(_tells(value, given) for value in values)
    return 2 * silent < len(evidence.tried)


def _tells(right: np.ndarray, given: list[Any]) -> bool:
    """Return whether a value is neither one number or row alone nor an argument."""
    if not right.size or not np.isfinite(right.astype(float)).all():
        return False
    if right.size == 1 and right.item() in (-1, 0, 1):
        return False
    first = right[0] if right.ndim and len(right) > 1 else right.flat[0]
    alike = right.size > 1 and (right == first).all()
    for value in given:
        alike = alike or (isinstance(value, np.ndarray | float) and np.array_equal(right, value))
    return not alike


def scaling(evidence: Evidence) -> str:
    """Name an argument in which the right answer scales otherwise than this one."""
    for name in evidence.names:
        value = evidence.cases[0][name]
        is_array = isinstance(value, np.ndarray) and value.dtype.kind == "f"
        if isinstance(value, float) or callable(value) or is_array:
            change = partial(changed, name, _doubled)
            right = partial(evidence.right, text=f"2 {name}", change=change)
            rights = _scales(evidence, "right", right)
            gots = rights and _scales(evidence, "got", partial(evidence.again, change=change))
            for part, text in rights.items():
                got = gots.get(part, f"{'is' if text.startswith('is') else 'does'} not always")
                if text and got not in ("", text):
                    whose = f"`{part}`" if part else "answer"
                    return f"when `{name}` is doubled, the right {whose} {text}; yours {got}"
    return ""


def _scales(evidence: Evidence, whose: str, doubled: Callable[[Tried], Any]) -> dict[str, str]:
    """Return what becomes of each wrong part in all cases when an argument is doubled.

    Of zeros alone, which are doubled zeros as well, it is nothing. A number that is the same in all
    cases, such as a count, is no quantity.
    """
    wrong = [part for part in evidence.wrong if len(np.unique(part.rights)) > 2]
    found: dict[str, set[str]] = {part.name: set() for part in wrong}
    for one in evidence.tried:
        if (value := doubled(one)) is None:
            return {}
        before, after = evidence.leaves(getattr(one, whose).value), evidence.leaves(value)
        for part in [*found]:
            right, got = numbers(before[part], after[part])
            is_finite = np.isfinite(np.append(right, got)).all()
            if is_finite and (right.any() or got.any()):  # zeros tell nothing
                found[part].add(_times(right, got))
            if "" in found[part] or len(found[part]) > 1:
                del found[part]
        if not found:
            return {}
    return {part: next(iter(texts), "") for part, texts in found.items()}


def _doubled(value: Any) -> Any:
    return None if value is None else partial(times, 2, value) if callable(value) else 2 * value


def _times(before: np.ndarray, after: np.ndarray) -> str:
    number = ratio(before.ravel(), after.ravel()) if before.shape == after.shape else None
    for factor, text in FACTORS.items():
        if number and abs(number / factor - 1) < NEAR:
            return text
    return ""


def claim(evidence: Evidence) -> str:
    """Return the first property of the exercise that this function does not have."""
    # a fact about values, which compares all of them, says nothing of a type
    for fact in evidence.exercise.properties if any(evidence.wrong_cases) else ():
        try:
            held = bool(fact.holds(evidence.function, np.random.default_rng(0)))
        except Exception:  # what an answer cannot do says nothing of this fact
            continue
        if not held:
            return f"{CLAIM}{fact.claim}"
    return ""
