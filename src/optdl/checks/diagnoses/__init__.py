"""General diagnoses: what explains a wrong answer that no known misconception explains.

A cause is a kind of mistake that explains the answers in all cases; a fact says where they are
wrong. Whatever is said is true in every case that was compared. The tables go from the most
specific diagnosis to the least.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from optdl.checks.diagnoses import calls, inputs, laws, places, values
from optdl.checks.diagnoses.evidence import TRIED, WHERE, Evidence, Part, listed

Diagnosis = Callable[[Evidence], str] | tuple[values.Row, ...]
"""Of the whole answer, or a table that each wrong part is put to."""

RAISING = False
"""Whether an error in a diagnosis is raised: in tests it is, before a student it is not."""

CAUSES: tuple[Diagnosis, ...] = (
    calls.state,
    calls.drawn,
    inputs.swapped,
    values.PART,
    inputs.other_call,
    values.FUNCTION,
    calls.ignored,
)

FACTS: tuple[Diagnosis, ...] = (
    places.arguments,
    places.branch,
    partial(laws.neutral, table=laws.ZERO),
    laws.form,
    laws.scaling,
    laws.claim,
    partial(laws.neutral, table=laws.SPECIAL),
    places.shapes,
)


def explained(evidence: Evidence) -> tuple[list[str], str]:
    """Return facts about an answer, and what explains it, or an empty string."""
    told = [_said(places.parts, evidence)]
    cause = _first(CAUSES, evidence)
    if evidence.unlike:  # what explains other parts is no cause of all
        told, cause = [*told, cause], ""
    if WHERE in cause:
        told += [_said(places.arguments, evidence)]
    if not cause:
        told += [next(filter(None, map(_place, evidence.wrong)), "")]
        told += [_first(FACTS, evidence)]
        told += [] if any(told[1:]) else [_said(places.size, evidence)]
    claims = [text for text in told if text.startswith(laws.CLAIM)]
    tried = "; ".join(text.replace(TRIED, "") for text in told if text and text not in claims)
    return [TRIED + tried] * bool(tried) + claims, cause


def _place(part: Part) -> str:
    told = next(filter(None, (_said(fact, part) for fact in places.FACTS)), "")
    return f"in `{part.name}`, {told}" if told and part.name else told


def _first(diagnoses: tuple[Diagnosis, ...], evidence: Evidence) -> str:
    return next(filter(None, (_said(diagnosis, evidence) for diagnosis in diagnoses)), "")


def _said(diagnosis: Diagnosis | Callable[[Part], str], evidence: Any) -> str:
    """Return what a diagnosis says; an answer that it cannot handle is no reason to fail."""
    try:
        return diagnosis(evidence) if callable(diagnosis) else _of_parts(diagnosis, evidence)
    except Exception:
        if RAISING:
            raise
        return ""


def _of_parts(table: tuple[values.Row, ...], evidence: Evidence) -> str:
    """Return what a table says about the wrong parts, parts alike together."""
    said: dict[str, list[str]] = {}
    for part in evidence.wrong:
        if text := values.first(table, part):
            said.setdefault(text, []).append(part.name)
    # beside parts that are far off, one that is near or only in another order says nothing
    count = len(evidence.wrong)
    fewest = {values.NOT_EXACT: count / 2, values.IN_OTHER_ORDER: count}
    return "; ".join(
        _sentence(text, names)
        for text, names in said.items()
        if all(len(names) >= few for end, few in fewest.items() if text.endswith(end))
    )


def _sentence(text: str, names: list[str]) -> str:
    each = "each of " if len(names) > 1 else ""
    return text.replace("{}", each + listed(names) if names[0] else "your answer", 1)
