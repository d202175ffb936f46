"""Every exercise: the right answer is that of the library, each usual mistake fails and is named.

Of the seeds and of the mistakes every third one is tried in another process, as a grader's are.
Each exercise has one seed for its mistakes, whose cases they share.
"""

import inspect
import re

import numpy as np
import pytest
import torch
from test_checks import Stub, outcome
from torch.optim import SGD, RMSprop

from optdl.checks import exercises, hint, hints, lab_exercises
from optdl.optimizers import Adam, Lion, run

LABS = lab_exercises()
ALL = exercises() | LABS
SEEDS = (0, 7, 123)

each_exercise = pytest.mark.parametrize("exercise", ALL.values(), ids=ALL)


@pytest.mark.row("L1-03", "L1-05", "L1-06", "L1-07", "L1-09", "L1-10", "L1-12", "L1-14", "L1-15")
@pytest.mark.row("L1-16", "L1-17", "L1-18", "L1-19", "L1-20", "L1-21", "L1-22", "L1-23", "L1-33")
@pytest.mark.row("L1-34", "L1-35", "L1-36", "L2-01", "L2-10", "L2-11", "L2-13", "L2-14", "L2-16")
@pytest.mark.row("L2-17", "L2-18", "P-01", "P-03", "P-04", "P-05", "P-07", "P-08", "P-09", "P-11")
@pytest.mark.row("P-12", "P-14", "P-15", "P-17", "P-21", "P-23", "P-24", "P-25", "F-01", "F-03")
@pytest.mark.row("F-04", "F-11", "F-22", "F-26", "L1-01", "L1-11")
@each_exercise
def test_right_answer_passes_and_mistakes_are_named(exercise):
    # that the library's own obeys the facts, too, test_checks.py shows
    here, elsewhere = exercise._answer, Stub(exercise._answer)
    for seed, answer in zip(SEEDS, (here, elsewhere, here), strict=True):
        assert outcome(exercise.key, answer, seed=seed, properties=True) == "✓"
    unnamed = {}
    for number, mistake in enumerate(exercise.misconceptions):
        function = mistake.function if number % 3 else Stub(mistake.function)
        text = outcome(exercise.key, function, seed=SEEDS[[*ALL].index(exercise.key) % 3])
        if f"Likely cause: {mistake.hint}" not in text:
            unnamed[mistake.hint] = text
    assert unnamed == {}


@each_exercise
def test_block_has_the_agreed_form(exercise):
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
    texts = exercise.hints
    assert len(texts) in (2, 3), f"the block of {exercise.key} needs two or three hints"
    assert "?" in texts[0], f"the first hint of {exercise.key} is no question"
    assert max(map(len, texts)) <= 220
    lines = [line.strip() for line in inspect.getsource(exercise.reference).splitlines()]
    code = [line for line in lines if line.startswith("return ") and len(line) > 20]
    assert not [line for line in code if any(line[7:] in text for text in texts)]


def test_successive_calls_reveal_successive_hints(capsys, monkeypatch):
    monkeypatch.setattr(hints, "_TOLD", type(hints._TOLD)())
    told = []
    for _ in range(4):
        hint("L1-07")
        told.append(capsys.readouterr().out)
    for number, text in enumerate((0, 1, 2, 2)):
        assert f"Hint {text + 1} of 3" in told[number]
        assert ALL["L1-07"].hints[text] in told[number]
    assert [out.count('`hint("L1-07")`') for out in told] == [1, 1, 0, 0]


START, RATES = np.array([1.0, -2.0, 0.5]), [0.1, 0.2, 0.05, 0.05, 0.0, 0.1]


def gradient(theta):
    return np.array([2.0, 1.0, 4.0]) * theta + np.sin(theta[::-1])


def path_of_torch(kind, rates, **settings):
    """Return the path of an optimizer of torch whose learning rate is set before each step."""
    theta = torch.tensor(START, requires_grad=True)
    optimizer, path = kind([theta], **settings), [START]
    for lr in rates:
        optimizer.param_groups[0]["lr"] = lr
        theta.grad = torch.tensor(gradient(theta.detach().numpy()))
        optimizer.step()
        path.append(theta.detach().numpy().copy())
    return np.array(path)


@pytest.mark.parametrize(
    ("key", "settings", "expected"),
    [
        # without weight decay, without a guard
        ("F-05:decoupled", (RATES, 0.9, 0.0), path_of_torch(SGD, RATES, momentum=0.9)),
        (
            "L1-30, L1-31",
            (0.01, 0.8, 0.0, 0.0, 6),
            path_of_torch(RMSprop, [0.01] * 6, alpha=0.8, eps=0, centered=True),
        ),
        ("F-18", (0.05, 0.8, 0.95, 0.1, 40), Lion(0.05, 0.8, 0.95, 0.1)),
        ("L2-06", (0.1, 0.9, 0.9, 1e-8, 8), Adam(0.1, 0.9, 0.9)),
    ],
)
def test_reference_takes_the_steps_of_an_optimizer(key, settings, expected):
    # uphill gradients grow, where AMSGrad is Adam
    slope = (lambda theta: -gradient(theta)) if key == "L2-06" else gradient
    if not isinstance(expected, np.ndarray):
        expected = run(expected, slope, START, settings[-1])
    np.testing.assert_allclose(ALL[key].reference(slope, START, *settings), expected)
