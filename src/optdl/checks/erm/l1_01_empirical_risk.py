"""The empirical risk of a model: its mean loss over a sample."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.erm import empirical_risk
from optdl.objectives import line, pinball, squared_error

exercise = Exercise("L1-01", empirical_risk)


@exercise.answer
def _(loss, model, theta, x, y):
    return np.mean(loss(model(x, theta), y))


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for loss, m in ((squared_error, 2), (pinball, 3), (pinball, 8), (squared_error, 30)):
        theta, x = rng.normal(size=2).round(1), rng.normal(size=m).round(1)
        y = line(x, theta) + rng.uniform(0.5, 2, size=m).round(1) * rng.choice([-1, 1], size=m)
        yield {"loss": loss, "model": line, "theta": theta, "x": x, "y": y}


@exercise.fact("a second copy of the data changes nothing")
def _(risk: Function, rng: np.random.Generator) -> bool:
    theta, x, y = rng.normal(size=2), rng.normal(size=7), rng.normal(size=7)
    twice = risk(pinball, line, theta, np.tile(x, 2), np.tile(y, 2))
    return bool(np.isclose(twice, risk(pinball, line, theta, x, y)))


@exercise.fact("parts of a sample average by their sizes")
def _(risk: Function, rng: np.random.Generator) -> bool:
    theta, x, y = rng.normal(size=2), rng.normal(size=8), rng.normal(size=8)
    first, rest = (risk(pinball, line, theta, x[i], y[i]) for i in (slice(3), slice(3, 8)))
    return bool(np.isclose(risk(pinball, line, theta, x, y), (3 * first + 5 * rest) / 8))


exercise.mistake(
    "you pass label and prediction in the wrong order; it is L(f(x, θ), y)",
    ("loss(model(x, theta), y)", "loss(y, model(x, theta))"),
)

exercise.mistake(
    "you return the loss of the worst example; the risk is the mean over all", ("mean", "max")
)

exercise.mistake(
    "you compute the squared error whatever the loss is; call `loss`",
    ("loss(model(x, theta), y)", "(model(x, theta) - y) ** 2"),
)

exercise.mistake(
    "you take the loss of the mean prediction; take the mean of the losses",
    ("np.mean(loss(model(x, theta), y))", "loss(np.mean(model(x, theta)), np.mean(y))"),
)
