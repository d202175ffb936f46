"""Recognize a loop that leaves out some of its turns: the right answer to some of the examples."""

from collections import defaultdict

import numpy as np

from optdl.checks.diagnoses.evidence import Evidence, listed

PARTS: tuple[tuple[str, slice, str], ...] = (
    ("[:1]", slice(1), "does `return` stand inside the loop?"),
    ("[-1:]", slice(-1, None), "does each turn of the loop overwrite the one before?"),
    ("[:-1]", slice(-1), "does the loop end too early?"),
    ("[1:]", slice(1, None), "does the loop begin too late?"),
)


def turns(evidence: Evidence) -> str:
    """Name the examples for which alone the answer would be right."""
    answers = list(zip(evidence.expected, evidence.got, strict=True))
    if sum(not evidence.agree(right, got) for right, got in answers) < 2:
        return ""
    for names in _together(evidence):
        for text, part, question in PARTS:
            if _explains(evidence, names, part):
                some = listed([name + text for name in names])
                place = f"{some} in place of {listed(names)}"
                return f"your answer is what is right for {place}: {question}"
    return ""


def _together(evidence: Evidence) -> list[list[str]]:
    """Return the names of arguments that have one length in every case, such as x and y."""
    groups = defaultdict(list)
    for name in evidence.names:
        values = [case[name] for case in evidence.cases]
        if all(isinstance(value, list | tuple) or np.ndim(value) for value in values):
            groups[tuple(map(len, values))].append(name)
    return [names for lengths, names in groups.items() if max(lengths) > 1]


def _explains(evidence: Evidence, names: list[str], part: slice) -> bool:
    cases = [{**case, **{name: case[name][part] for name in names}} for case in evidence.cases]
    rights = evidence.tried(evidence.exercise.reference, cases)
    pairs = zip(rights, evidence.got, strict=True)
    return all(right is not None and evidence.agree(right, got) for right, got in pairs)
