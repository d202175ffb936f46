"""Every exercise: its reference passes, each usual mistake fails and is named, here and elsewhere.

Of the seeds and of the mistakes every third one is tried in another process, as a grader's are.
Each exercise has one seed for its mistakes, whose cases they share.
"""

import inspect
import re

import numpy as np
import pytest
from test_checks import Stub, outcome

from optdl.checks import exercises, lab_exercises

LABS = lab_exercises()
ALL = exercises() | LABS
SEEDS = (0, 7, 123)

each_exercise = pytest.mark.parametrize("exercise", ALL.values(), ids=ALL)


@each_exercise
def test_reference_passes_in_both_processes(exercise):
    # the answer that mistakes edit, here, and the reference as a student's process gives it
    here, elsewhere = exercise._answer, Stub(exercise.reference)
    for seed, answer in zip(SEEDS, (here, elsewhere, here), strict=True):
        assert outcome(exercise.key, answer, seed=seed, properties=True) == "right"


@each_exercise
def test_each_mistake_fails_and_is_named(exercise):
    unnamed = {}
    seed = SEEDS[[*ALL].index(exercise.key) % 3]
    for number, mistake in enumerate(exercise.misconceptions):
        function = mistake.function if number % 3 else Stub(mistake.function)
        text = outcome(exercise.key, function, seed=seed)
        if f"Likely cause: {mistake.hint}" not in text:
            unnamed[mistake.hint] = text
    assert unnamed == {}


@each_exercise
def test_exercise_has_the_agreed_form(exercise):
    file = f"src/{exercise.block.replace('.', '/')}.py"
    row, own = re.match(r"([\w-]+)(?:.*:(.+))?", exercise.key).groups()
    names = [f"{row.lower().replace('-', '_')}_{name}.py" for name in (own, exercise.name) if name]
    assert file.endswith((*names,)), f"{file} has the key {exercise.key}: call it {names[0]}"
    assert exercise.properties, f"{file}: hidden tests need a fact, `@exercise.fact`"
    assert exercise.misconceptions, f"{file}: add a mistake to `exercise.help`"
    by_driver = exercise.key in LABS and exercise.use is not None
    used = exercise.use if by_driver else exercise.reference
    names = list(inspect.signature(used).parameters)[by_driver:]
    for case in exercise.draw(np.random.default_rng(0)):
        assert list(case) == names[: len(case)] or names == ["arguments"]
