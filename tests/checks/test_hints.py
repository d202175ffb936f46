"""Hints lead from a question to nearly the line, and none is the answer."""

import inspect

import pytest

from optdl.checks import Exercise, exercises, hint, hints, lab_exercises

COURSE = {**exercises(), **lab_exercises()}


@pytest.mark.parametrize("exercise", COURSE.values(), ids=COURSE)
def test_hints_begin_with_question_and_hide_answer(exercise: Exercise) -> None:
    texts = exercise.hints
    assert len(texts) in (2, 3), f"the block of {exercise.key} needs two or three hints"
    assert "?" in texts[0], f"the first hint of {exercise.key} is no question"
    assert max(map(len, texts)) <= 220
    lines = [line.strip() for line in inspect.getsource(exercise.reference).splitlines()]
    code = [line for line in lines if line.startswith("return ") and len(line) > 20]
    assert not [line for line in code if any(line[7:] in text for text in texts)]


def test_successive_calls_reveal_successive_hints(capsys, monkeypatch) -> None:
    monkeypatch.setattr(hints, "_TOLD", type(hints._TOLD)())
    told = []
    for _ in range(4):
        hint("L1-07")
        told.append(capsys.readouterr().out)
    texts = exercises()["L1-07"].hints
    for number, text in ((0, 0), (1, 1), (2, 2), (3, 2)):
        assert f"Hint {text + 1} of 3" in told[number]
        assert texts[text] in told[number]
    assert [out.count('`hint("L1-07")`') for out in told] == [1, 1, 0, 0]
