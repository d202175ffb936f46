"""Every exercise: its reference passes, each usual mistake fails and is named, here and elsewhere.

References pass in both processes with all seeds, facts included. Of the mistakes every third one is
in another process, where a NumPy exercise says the same.
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
    right = exercise.reference
    for seed in SEEDS:
        for answer in (right, Stub(right)) if seed or exercise.key not in LABS else (right,):
            assert outcome(exercise.key, answer, seed=seed, properties=True) == "right"


@each_exercise
def test_each_mistake_fails_and_is_named(exercise):
    unnamed = {}
    for number, mistake in enumerate(exercise.misconceptions):
        seed, function, elsewhere = SEEDS[number % 3], mistake.function, not number % 3
        is_lab = exercise.key in LABS
        text = outcome(
            exercise.key, Stub(function) if is_lab and elsewhere else function, seed=seed
        )
        if f"Likely cause: {mistake.hint}" not in text:
            unnamed[mistake.hint] = text
        if elsewhere and not is_lab:
            assert outcome(exercise.key, Stub(function), seed=seed) == text
            for fact in exercise.properties:
                assert held(fact, Stub(function)) == held(fact, function)
    assert unnamed == {}


@each_exercise
def test_exercise_has_the_agreed_form(exercise):
    assert exercise.properties, "hidden tests need at least one fact"
    assert exercise.misconceptions
    by_driver = exercise.key in LABS and exercise.use is not None
    used = exercise.use if by_driver else exercise.reference
    names = list(inspect.signature(used).parameters)[by_driver:]
    for case in exercise.draw(np.random.default_rng(0)):
        assert list(case) == names[: len(case)] or names == ["arguments"]
    if exercise.key not in LABS:
        for mistake in exercise.misconceptions:
            assert list(inspect.signature(mistake.function).parameters) == names
