"""What the record of the lab's runs has to hold."""

import numpy as np

from optdl.checks.labs.records import RecordCheck
from optdl.labs.digits import accuracy, dense, loaded, standardized
from optdl.labs.dropout import EPOCHS, LAB, RATES, WIDTHS, curves


def _evaluate(weights):
    """Return the accuracy of weights, in the order of the layers, on the validation examples."""
    model = dense(WIDTHS, 0)
    named = dict(zip(model.state_dict(), weights.values(), strict=True))
    return accuracy(loaded(model, named), *standardized()[2:])


def _best_epoch(record):
    """Return the epoch, from 1 on, with the smallest validation loss without dropout."""
    return float(1 + np.argmin(curves(record)["p = 0"]["validation"]))


def _best_rate(record):
    """Return the rate with the smallest validation loss after the last epoch."""
    losses = curves(record)
    return min(RATES, key=lambda p: losses[f"p = {p:g}"]["validation"][-1])


def _gap(record):
    """Return by how much the last validation loss without dropout exceeds the training loss."""
    losses = curves(record)["p = 0"]
    return losses["validation"][-1] - losses["training"][-1]


RECORD = RecordCheck(
    key="LAB-4:record",
    lab=LAB,
    predictions={
        "p": ("one of the rates " + ", ".join(map(str, RATES)), RATES.__contains__),
        "epoch": (f"a whole number from 1 to {EPOCHS}", range(1, EPOCHS + 1).__contains__),
    },
    evaluate=_evaluate,
    level=0.7,
    readings={
        "epoch": ("the epoch with the smallest validation loss without dropout", _best_epoch),
        "gap": (
            "the validation loss minus the training loss after the last epoch, without dropout "
            "and without early stopping",
            _gap,
        ),
        "p": ("the rate with the smallest validation loss after the last epoch", _best_rate),
    },
    steps=2,
)
