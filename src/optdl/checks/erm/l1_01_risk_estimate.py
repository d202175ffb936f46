"""An estimate of the risk of a fixed model, and the standard deviation of the estimate."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.erm import risk_estimate
from optdl.objectives import line, pinball, squared_error


@answer_to("L1-01", risk_estimate, parts=("estimate", "deviation"))
def exercise(loss, model, theta, x, y):
    losses = loss(model(x, theta), y)
    return np.mean(losses), np.std(losses) / np.sqrt(len(y))


@exercise.cases
def _(rng):
    for loss, low, high in ((pinball, 2, 5), (squared_error, 3, 9), (pinball, 12, 30)):
        m = int(rng.integers(low, high))
        theta, x = rng.normal(size=2).round(1), rng.normal(size=m).round(1)
        y = line(x, theta) + rng.uniform(0.2, 0.9, size=m).round(2) * rng.choice([-1, 1], size=m)
        yield {"loss": loss, "model": line, "theta": theta, "x": x, "y": y}


@exercise.fact("four copies of the sample keep the estimate and halve the deviation")
def _(estimate, rng):
    theta, x, y = rng.normal(size=2), rng.normal(size=7), rng.normal(size=7)
    once = estimate(pinball, line, theta, x, y)
    copies = estimate(pinball, line, theta, np.tile(x, 4), np.tile(y, 4))
    return np.allclose(copies, [once[0], once[1] / 2])


exercise.help(r"""
1. Of which random quantity is the risk the expected value, and how many of its values do you have?
2. The mean of $m$ independent losses is unbiased. Its variance is that of one loss, divided by $m$.
3. Keep the $m$ losses in a variable. Return its mean, and its standard deviation over $\sqrt m$.
you pass label and prediction in the wrong order; it is L(f(x, θ), y)
    loss(model(x, theta), y) → loss(y, model(x, theta))
you take the loss of the mean prediction and label; take the mean of the losses
    np.mean(losses) → loss(np.mean(model(x, theta)), np.mean(y))
your variance divides by m − 1; the task asks for the divisor m
    np.std(losses) → np.std(losses, ddof=1)
you use √(J(1 − J)/m), which holds for losses 0 and 1 only; use their standard deviation over √m
    np.std(losses) → np.sqrt(np.mean(losses) * (1 - np.mean(losses)))
you pass the parameters before the input; it is f(x, θ)
    model(x, theta) → model(theta, x)
    with `(theta, x)`
you take the mean square of the losses for their variance, which is measured from their mean
    np.std(losses) → np.sqrt(np.mean(losses**2))
""")
