"""Parts of the answer in each other's places."""

from collections.abc import Sequence
from itertools import combinations, permutations

from optdl.checks.diagnoses.evidence import Evidence, Part, near


def swapped(evidence: Evidence) -> str:
    """Recognize parts that are exchanged, or one that stands in the place of another."""
    names = ", ".join(part.name for part in evidence.parts)
    for left, right in combinations(evidence.wrong, 2):
        wrong = _wrong_cases(left, right)
        if _stands_for(left, right, wrong) and _stands_for(right, left, wrong):
            some = "" if len(wrong) == len(left.pairs) else " in the cases that differ"
            return f"`{left.name}` and `{right.name}` are exchanged{some}; the order is {names}"
    for left, right in permutations(evidence.parts, 2):
        if left in evidence.wrong and _stands_for(left, right, range(len(left.pairs))):
            return f"`{left.name}` is what `{right.name}` should be"
    return ""


def _wrong_cases(left: Part, right: Part) -> list[int]:
    """Return the numbers of the cases in which one of two parts is wrong."""
    pairs = enumerate(zip(left.pairs, right.pairs, strict=True))
    return [number for number, two in pairs if not all(near(one.right, one.got) for one in two)]


def _stands_for(left: Part, right: Part, cases: Sequence[int]) -> bool:
    """Return whether the values got for one part are those expected for another."""
    enough = len(cases) >= 2
    return enough and all(near(right.pairs[i].right, left.pairs[i].got) for i in cases)
