"""Mutants of the model solutions: none passes the checks, and most are told what is wrong."""

import re
import signal

import mutants
import pytest

from optdl.checks import CheckFailed, check, diagnoses
from optdl.checks.catalog import blocks
from optdl.observation import outcomes

VALUES_DIFFER = re.compile(r"^Why: .*values? differ\b", re.M)
PART = r"(the [^:]* parts( in [^:]*)?: |at key '\w+': |`[^`]+`: )*"
ONLY_VALUES_DIFFER = re.compile(rf"^Why: {PART}(\d+ of \d+|the) values differ\.$", re.M)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no such timer on Windows")
def test_endless_mutant_is_stopped() -> None:
    def endless() -> None:
        while True:
            pass

    with pytest.raises(mutants.TooLong), mutants.limited(0.05):
        outcomes(endless, None, [{}])


def message_of(mutant: mutants.Mutant, seed: int = 0, hidden: bool = False) -> str:
    """Return what a check says, or an empty string when it passes."""
    try:
        with mutants.quiet(), mutants.limited(20 * mutants.SECONDS):
            check(mutant.key, mutant.function, seed=seed, properties=hidden)
    except CheckFailed as failure:
        return str(failure)
    return ""


@pytest.mark.slow
def test_checks_explain_most_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than half are given a cause, and nearly all at least a place."""
    monkeypatch.setattr(diagnoses, "RAISING", True)
    every = [
        m
        for topic in mutants.COURSE.topics()
        for key in blocks(topic)
        for m in mutants.mutants(key)
    ]
    messages = {mutant: message_of(mutant) for mutant in every}
    late = [mutant for mutant, message in messages.items() if not message]
    missed = [m for m in late if not message_of(m, 7, True) and not message_of(m, 123)]
    assert not missed, "\n".join(f"{mutant.key} {mutant.label}" for mutant in missed)
    assert len(late) <= 2
    told = [message for message in messages.values() if message]
    assert all(message.splitlines()[1].startswith("Why: ") for message in told)
    caused = ["Likely cause: " in text or not VALUES_DIFFER.search(text) for text in told]
    placed = [has_cause or not ONLY_VALUES_DIFFER.search(text)
              for has_cause, text in zip(caused, told, strict=True)]  # fmt: skip
    assert sum(caused) >= 0.55 * len(every)
    assert sum(placed) >= 0.97 * len(every)
