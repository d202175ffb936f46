"""Print what the checks say about the wrong answers.

Run it with ``cd tests/checks && python -m wrong_answers.report``.
Each answer has one verdict:

- ``named``: the message has the hint of a known misconception;
- ``explained``: it has another likely cause, or a reason that is no comparison of values, such as
  the line of an error, the shape that is expected, or the argument that was changed;
- ``located``: it says which part, row or inputs are wrong, and nothing about the cause;
- ``bare``: it says that values differ;
- ``late``: the visible check passes, a hidden one fails;
- ``missed``: the hidden checks pass too.

``--list bare missed`` lists answers, ``--sample 100`` prints messages to judge by eye.
"""

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from optdl.checks import CheckFailed, check, exercises
from optdl.checks.exercise import Function
from wrong_answers import TOPICS, answers, judging, mutants

VERDICTS = ("named", "explained", "located", "bare", "late", "missed")
PART = r"(the [^:]* parts( in [^:]*)?: |at key '\w+': |`[^`]+`: )*"
BARE = re.compile(rf"^Why: {PART}(\d+ of \d+|the) values differ\.$", re.M)
LOCATED = re.compile(r"^Why: .*values? differ\b", re.M)
CAUSE = re.compile(r"^Likely cause: (.*)$", re.M)


class Result(NamedTuple):
    """What the checks say about one wrong answer."""

    topic: str
    kind: str
    key: str
    label: str
    verdict: str
    message: str


def results(topics: Iterable[str] = TOPICS) -> Iterator[Result]:
    """Yield the result of each answer that was written by hand, and of each mutant."""
    for topic in topics:
        for key, wrong in answers(topic).items():
            for function in wrong:
                label = f"{function.__name__}: {function.__doc__}"
                yield Result(topic, "written", key, label, *judge(key, function))
            for mutant in mutants.mutants(key):
                yield Result(topic, "mutants", key, mutant.label, *judge(key, mutant.function))


def judge(key: str, function: Function) -> tuple[str, str]:
    """Return the verdict on an answer, and the message of the first check that fails."""
    function = judging.fresh(function)
    if visible := message(key, function):
        return verdict(key, visible), visible
    hidden = message(key, function, 7, True) or message(key, function, 123)
    return ("late", hidden) if hidden else ("missed", "")


def message(key: str, function: Function, seed: int = 0, properties: bool = False) -> str:
    """Return what a check says, or an empty string when it passes."""
    try:
        with judging.quiet(), mutants.limited(20 * mutants.SECONDS):
            check(key, function, seed=seed, properties=properties)
    except CheckFailed as failure:
        return str(failure)
    return ""


def verdict(key: str, text: str) -> str:
    """Return in which way a message of a visible check helps."""
    cause = CAUSE.search(text)
    hints = [mistake.hint.rstrip(".") for mistake in exercises()[key].misconceptions]
    if cause and cause[1].rstrip(".") in hints:
        return "named"
    if cause:
        return "explained"
    if BARE.search(text):
        return "bare"
    return "located" if LOCATED.search(text) else "explained"


def table(results_: list[Result], kind: str) -> str:
    """Return the number of verdicts, topic by topic and in all."""
    chosen = [result for result in results_ if result.kind == kind]
    lines = [f"{kind:16}" + "".join(f"{name:>11}" for name in VERDICTS) + "        all"]
    for topic in dict.fromkeys(result.topic for result in chosen):
        lines += [_row(topic, [result for result in chosen if result.topic == topic])]
    return "\n".join([*lines, _row("all", chosen)])


def _row(name: str, chosen: list[Result]) -> str:
    counts = Counter(result.verdict for result in chosen)
    columns = "".join(f"{counts[verdict]:11}" for verdict in VERDICTS)
    return f"{name:16}{columns}{len(chosen):11}"


def main() -> None:
    """Print the tables, and the answers that were asked for."""
    parser = argparse.ArgumentParser(description="What the checks say about wrong answers.")
    parser.add_argument("topics", nargs="*", default=TOPICS)
    parser.add_argument("--list", nargs="+", default=(), choices=VERDICTS, help="list these")
    parser.add_argument("--sample", type=int, default=0, help="print messages drawn by chance")
    options = parser.parse_args()
    results_ = list(results(options.topics))
    print(*(table(results_, kind) for kind in ("written", "mutants")), sep="\n\n")
    for result in results_:
        if result.verdict in options.list:
            print(
                f"\n{result.verdict}: {result.kind} {result.key} {result.label}\n{result.message}"
            )
    for index in np.random.default_rng(0).permutation(len(results_))[: options.sample]:
        result = results_[index]
        print(f"\n--- {result.verdict}: {result.key} {result.label}\n{result.message}")


if __name__ == "__main__":
    main()
