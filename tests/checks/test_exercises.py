"""Every exercise: its reference passes, each usual mistake fails and is named, here and elsewhere.

A mistake of NumPy is checked in both processes, and says the same; one of PyTorch takes longer, and
every second one is in another process.
"""

import inspect

import numpy as np
import pytest
from test_checks import Stub, held, outcome

from optdl.checks import exercises, lab_exercises

LABS = lab_exercises()
ALL = exercises() | LABS
SEEDS = (0, 7, 123)

each_exercise = pytest.mark.parametrize("exercise", ALL.values(), ids=ALL)


@each_exercise
def test_reference_passes_in_both_processes(exercise):
    for seed in SEEDS:
        for answer in (exercise.reference, Stub(exercise.reference)):
            assert outcome(exercise.key, answer, seed=seed, properties=True) == "right"


@each_exercise
def test_each_mistake_fails_and_is_named(exercise):
    unnamed = {}
    for number, mistake in enumerate(exercise.misconceptions):
        seed, function = SEEDS[number % 3], mistake.function
        is_lab = exercise.key in LABS
        text = outcome(
            exercise.key, Stub(function) if is_lab and number % 2 else function, seed=seed
        )
        if f"Likely cause: {mistake.hint}" not in text:
            unnamed[mistake.hint] = text
        if not is_lab:
            assert outcome(exercise.key, Stub(function), seed=seed) == text
            for fact in exercise.properties:
                assert held(fact, Stub(function)) == held(fact, function)
    assert unnamed == {}


@each_exercise
def test_exercise_has_the_agreed_form(exercise):
    assert exercise.properties, "hidden tests need at least one fact"
    hints = [mistake.hint for mistake in exercise.misconceptions]
    assert len(set(hints)) == len(hints) >= 1
    by_driver = exercise.key in LABS and exercise.use is not None
    used = exercise.use if by_driver else exercise.reference
    names = list(inspect.signature(used).parameters)[by_driver:]
    for case in exercise.draw(np.random.default_rng(0)):
        assert list(case) == names[: len(case)] or names == ["arguments"]
    if exercise.key not in LABS:
        for mistake in exercise.misconceptions:
            assert list(inspect.signature(mistake.function).parameters) == names
