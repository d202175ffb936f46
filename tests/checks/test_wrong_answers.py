"""Mutants of the right answers: none passes the checks, and most are told what is wrong.

Of each exercise a few are drawn by a fixed seed that are wrong in some case.
"""

import contextlib
import re
import signal
import sys
import zlib
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
from test_checks import outcome

from optdl.checks import Exercise, Misconception, diagnoses, exercises, runner
from optdl.checks.exercise import Function
from optdl.checks.report import LIKELY_CAUSE, WHY

MAX_MUTANTS = 6
SECONDS = 2.0
"""Processor time that a mutant may take for a few cases."""

EXCHANGED = (
    " + | - ; * | / ; < | <= ; > | >= ; == | != ; is | is not ; and | or ;sum(|mean(;min(|max("
)
SWAPS = {" // ": " / ", " ** ": " * ", ".T": "", "not ": "", "minimum(": "maximum("}
for left, right in (pair.split("|") for pair in EXCHANGED.split(";")):
    SWAPS |= {left: right, right: left}
SWAPS = {re.escape(old): new for old, new in SWAPS.items()} | {
    r"(?<=[(\[, ])-(?=\w)": "",
    # a number is one larger, or an index; an axis or another argument by name is left out
    r"(?<![\w.])(\d+)(?![\w.])": r"\1 + 1",
    r"\[(\w+)\]": r"[\1 - 1]",
    r", \w+=[^(),=]+(?=[,)])": "",
    # two neighbors are exchanged, and a statement is left out
    r"\((\w+), (\w+)": r"(\2, \1",
    r"(?m)^( +)\w[\w, \[\]]* (?:.\S?)?= .*$": r"\1pass",
}
"""What an expression or a statement is mistaken for, by a pattern of its text."""

VALUES_DIFFER = re.compile(rf"^{WHY}.*values? differ\b", re.M)
PART = r"(the [^:]* parts( in [^:]*)?: |at key '\w+': |`[^`]+`: )*"
ONLY_VALUES_DIFFER = re.compile(rf"^{WHY}{PART}(\d+ of \d+|the) values differ\.$", re.M)


class TooLong(BaseException):
    """A mutant has used more processor time than it may; nothing else catches it."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def is_wrong(exercise: Exercise, function: Function) -> bool:
    tried = (runner._tried(exercise, function, seed) for seed in range(20))
    with contextlib.suppress(TooLong), limited(SECONDS):
        return any(runner._reason(exercise, *case[:3]) for cases in tried for case in cases)
    return False


def mutants(exercise: Exercise) -> Iterator[tuple[str, Function]]:
    """Yield mutants that are wrong in some case, with what was changed, in a random order."""
    text = Misconception("", exercise._answer).text(exercise.name)
    places = [(old, new) for pattern, new in SWAPS.items() for old in re.finditer(pattern, text)]
    for number in np.random.default_rng(zlib.crc32(text.encode())).permutation(len(places)):
        old, new = places[number]
        mutant = text[: old.start()] + old.expand(new) + text[old.end() :]
        names = {**vars(sys.modules[exercise._answer.__module__])}
        with contextlib.suppress(SyntaxError):
            exec(mutant, names)
            if is_wrong(exercise, names[exercise.name]):
                yield f"{exercise.key}: {old[0]} → {old.expand(new)}", names[exercise.name]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no such timer on Windows")
def test_checks_explain_most_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than half are given a cause, and nearly all at least a place."""
    monkeypatch.setattr(diagnoses, "RAISING", True)
    messages, late = [], []
    for exercise in exercises().values():
        for label, function in islice(mutants(exercise), MAX_MUTANTS):
            with limited(20 * SECONDS):
                messages.append(outcome(exercise.key, function))
                if messages[-1] == "right":
                    late.append(label)
                    more = {"seed": 7, "properties": True}, {"seed": 123}
                    assert {outcome(exercise.key, function, **one) for one in more} != {"right"}, (
                        label
                    )
    assert len(late) <= 2, late
    told = [message for message in messages if message != "right"]
    assert all(message.splitlines()[1].startswith(WHY) for message in told)
    caused = [LIKELY_CAUSE in text or not VALUES_DIFFER.search(text) for text in told]
    placed = [LIKELY_CAUSE in text or not ONLY_VALUES_DIFFER.search(text) for text in told]
    assert sum(caused) >= 0.55 * len(messages)
    assert sum(placed) >= 0.97 * len(messages)
