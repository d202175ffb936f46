"""Every answer of the yardstick is wrong, and the checks help with nearly all of them."""

import itertools
import signal
from collections.abc import Iterator

import pytest
from wrong_answers import TOPICS, answers, judging, mutants, report

from optdl.checks import diagnoses
from optdl.checks.exercise import Function


def written(topic: str) -> list[tuple[str, Function]]:
    """Return the wrong answers of a topic that were written by hand."""
    return [(key, function) for key, wrong in answers(topic).items() for function in wrong]


@pytest.mark.parametrize("topic", TOPICS)
def test_each_wrong_answer_says_its_mistake_in_one_line(topic: str) -> None:
    for _, function in written(topic):
        assert function.__doc__
        assert "\n" not in function.__doc__
        assert function.__module__.endswith(f".{topic}")


@pytest.mark.parametrize("topic", TOPICS)
def test_each_wrong_answer_differs_from_the_reference(topic: str) -> None:
    right = [
        f"{key} {function.__name__}"
        for key, function in written(topic)
        if judging.difference(key, function) is None
    ]
    assert not right, f"these are right in all cases: {', '.join(right)}"


@pytest.mark.parametrize("topic", TOPICS)
def test_no_two_wrong_answers_of_an_exercise_are_alike(topic: str) -> None:
    alike = [
        f"{key} {left.__name__} {right.__name__}"
        for key, wrong in answers(topic).items()
        for left, right in itertools.combinations(wrong, 2)
        if judging.alike(key, left, right)
    ]
    assert not alike, f"these give the same values: {', '.join(alike)}"


def test_state_does_not_survive_a_fresh_copy() -> None:
    def counting(calls: list[int] = []) -> int:  # noqa: B006
        calls.append(1)
        return len(calls)

    assert [counting(), counting()] == [1, 2]
    first, second = judging.fresh(counting), judging.fresh(counting)
    assert [first(), first(), second()] == [3, 4, 3]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no such timer on Windows")
def test_a_mutant_that_never_ends_is_given_up() -> None:
    def endless() -> None:
        while True:
            pass

    with pytest.raises(mutants.TooLong), mutants.limited(0.05):
        judging.call(endless, {})


# --- what the checks say

FLOORS = {"written": (0.72, 0.97), "mutants": (0.55, 0.97)}
"""For each kind the share of answers that are named or explained, and with those located."""


@pytest.fixture(scope="module")
def results() -> Iterator[list[report.Result]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diagnoses, "RAISING", True)
        yield list(report.results())


@pytest.mark.slow
@pytest.mark.parametrize("kind", FLOORS)
def test_the_checks_say_what_is_wrong_with_most_wrong_answers(
    results: list[report.Result], kind: str
) -> None:
    verdicts = [result.verdict for result in results if result.kind == kind]
    explained = sum(verdict in ("named", "explained") for verdict in verdicts)
    helped = explained + verdicts.count("located")
    least_explained, least_helped = FLOORS[kind]
    assert explained >= least_explained * len(verdicts)
    assert helped >= least_helped * len(verdicts)


@pytest.mark.slow
def test_no_wrong_answer_passes_the_hidden_checks(results: list[report.Result]) -> None:
    assert [result.label for result in results if result.verdict == "missed"] == []
    assert len([result for result in results if result.verdict == "late"]) <= 2


@pytest.mark.slow
def test_a_message_says_first_what_is_wrong(results: list[report.Result]) -> None:
    for result in results:
        if result.verdict not in ("late", "missed"):
            assert result.message.splitlines()[1].startswith("Why: "), result.label


def test_the_report_has_a_table_of_each_kind() -> None:
    found = [
        report.Result("erm", "written", "L1-07", "a", verdict, "") for verdict in report.VERDICTS
    ]
    assert report.table(found, "written").splitlines()[-1].split() == ["all", *"111111", "6"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Why: 3 of 4 values differ.", "bare"),
        ("Why: the second of 3 parts in `y`: the values differ.", "bare"),
        ("Why: the values differ. `y` is right.", "located"),
        ("Why: expected shape (2,), got shape (3,).", "explained"),
        ("Why: the values differ.\nLikely cause: your answer is transposed.", "explained"),
        (
            "Why: the values differ.\n"
            "Likely cause: you return the variance of the mean; take its square root.",
            "named",
        ),
    ],
)
def test_the_verdict_on_a_message(text: str, expected: str) -> None:
    assert report.verdict("L1-07", text) == expected
