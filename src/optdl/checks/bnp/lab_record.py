"""What the record of the lab's runs has to hold."""

from functools import partial
from math import nan

from optdl.labs.bnp import EVERY, INPUTS, LAB, STEPS, WIDTHS, best_curves, examples, last_loss
from optdl.labs.digits import accuracy, dense, loaded
from optdl.labs.judging import RecordCheck

LEVEL = 0.3
"""A training loss; the readings are the steps after which it is first below."""


def _evaluate(weights):
    """Return the accuracy on the inputs of the training; on the other ones weights do worse."""
    normalized = any(name.endswith("running_mean") for name in weights)
    model = loaded(dense(WIDTHS, 0, normalized=normalized), weights)
    return max(accuracy(model, *examples(inputs)[2:]) for inputs in INPUTS)


def _steps(name, inputs, record):
    losses = best_curves(record, inputs).get(name, [])
    return next((EVERY * k for k, loss in enumerate(losses, 1) if loss < LEVEL), STEPS)


def _factor(inputs, record):
    last = {name: last_loss(losses) for name, losses in best_curves(record, inputs).items()}
    return last.get("SGD", nan) / last.get("BNP", nan)


RECORD = RecordCheck(
    lab=LAB,
    evaluate=_evaluate,
    level=0.8,
    readings={
        f"{name}, {inputs}": (
            f"the step at which the line of {name} on {inputs} pixels is first below {LEVEL}",
            partial(_steps, name, inputs),
        )
        for inputs in INPUTS
        for name in ("SGD", "BNP")
    }
    | {
        f"factor, {inputs}": (
            f"the last loss of SGD divided by that of BNP, on {inputs} pixels",
            partial(_factor, inputs),
        )
        for inputs in INPUTS
    },
)
