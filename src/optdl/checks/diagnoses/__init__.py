"""General diagnoses: what explains a wrong answer that no known misconception explains.

``cause`` says what kind of mistake explains the answers in all cases; ``facts`` says where they
are wrong. Whatever is said is true in every case that was compared. Both lists go from the most
specific diagnosis to the least.
"""

from collections.abc import Callable, Iterator

from optdl.checks.diagnoses import (
    calls,
    factors,
    inputs,
    laws,
    loops,
    order,
    places,
    swapped,
    values,
)
from optdl.checks.diagnoses.evidence import Evidence, Part, listed

OfAnswer = Callable[[Evidence], str]
OfPart = Callable[[Part], str]

RAISING = False
"""Whether an error in a diagnosis is raised: in tests it is, before a student it is not."""

CAUSES: tuple[tuple[OfPart, ...] | OfAnswer, ...] = (
    calls.state,
    calls.untouched,
    swapped.swapped,
    (
        values.nothing,
        order.copied,
        values.precision,
        values.sign,
        order.order,
        order.shape,
        factors.factor,
        factors.term,
        factors.argument,
        values.whole,
        values.close,
    ),
    inputs.hard_coded,
    inputs.other_call,
    loops.turns,
    (values.function,),
    calls.generator,
    calls.ignored,
)
"""Diagnoses of the whole answer, and groups of diagnoses that each part is put to."""

LAWS: tuple[OfAnswer | tuple[OfPart, ...], ...] = (
    laws.form,
    laws.scaling,
    laws.claim,
    laws.signs,
    (factors.multiple,),
)

FACTS: tuple[OfPart, ...] = (places.entries, places.rows, places.pattern, places.positions)


def cause(evidence: Evidence) -> str:
    """Return the first diagnosis that explains all answers, or an empty string."""
    for diagnosis in CAUSES:
        if found := _said(diagnosis, evidence):
            return found
    return ""


def _said(diagnosis: tuple[OfPart, ...] | OfAnswer, evidence: Evidence) -> str:
    """Return what a diagnosis says; an answer that it cannot handle is no reason to fail."""
    try:
        return diagnosis(evidence) if callable(diagnosis) else _of_parts(diagnosis, evidence)
    except Exception:
        if RAISING:
            raise
        return ""


def _of_parts(group: tuple[OfPart, ...], evidence: Evidence) -> str:
    """Return what the diagnoses of a group say about the wrong parts, parts alike together."""
    said: dict[str, list[str]] = {}
    for part in evidence.wrong:
        if found := _of_part(group, part):
            scope, text = found
            said.setdefault(f"{scope}{{}} {text}", []).append(part.name)
    half = len(evidence.wrong) / 2  # where most parts are far off, one that is near says nothing
    return "; ".join(
        _sentence(text, names)
        for text, names in said.items()
        if len(names) >= half or not text.endswith(values.NOT_EXACT)
    )


def _sentence(text: str, names: list[str]) -> str:
    each = "each of " if len(names) > 1 else ""
    return text.replace("{}", each + listed(names) if names[0] else "your answer", 1)


def _of_part(group: tuple[OfPart, ...], part: Part) -> tuple[str, str] | None:
    """Return what a group says about a part, and whether it is about all of it."""
    if not part.differs:  # every change that changes next to nothing would explain it
        group = tuple(diagnosis for diagnosis in group if diagnosis is values.close)
    for narrowed in part.where_wrong():
        for diagnosis in group:
            if text := diagnosis(narrowed):
                return narrowed.scope, text
    return None


def parts(evidence: Evidence) -> list[str]:
    """Return which parts are right, if some are and others are not."""
    told = _said(places.parts, evidence)
    return [told] if told else []


def facts(evidence: Evidence) -> Iterator[str]:
    """Yield where the answer is wrong: parts, rows, entries, calls."""
    yield from parts(evidence)
    for part in evidence.wrong:
        if told := next(filter(None, (fact(part) for fact in FACTS)), ""):
            yield f"in `{part.name}`, {told}" if part.name else told
            break
    if told := _said(places.arguments, evidence) or _said(places.branch, evidence):
        yield told


def last(evidence: Evidence) -> list[str]:
    """Return a fact that holds for the right answer and not for this one, if one is found."""
    if not evidence.wrong or not all(part.same_shape for part in evidence.wrong):
        return []
    return list(filter(None, (_said(law, evidence) for law in LAWS)))[:1]
