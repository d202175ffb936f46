"""What the record of the lab's runs has to hold."""

import numpy as np

from optdl.labs.digits import accuracy, dense, loaded, standardized
from optdl.labs.dropout import LAB, RATES, WIDTHS, curves
from optdl.labs.judging import RecordCheck


def _evaluate(weights):
    """Return the accuracy of weights, in the order of the layers, on the validation examples."""
    model = dense(WIDTHS, 0)
    named = dict(zip(model.state_dict(), weights.values(), strict=True))
    return accuracy(loaded(model, named), *standardized()[2:])


def _validation(record, p=0.0):
    return curves(record)[f"p = {p:g}"]["validation"]


RECORD = RecordCheck(
    lab=LAB,
    evaluate=_evaluate,
    level=0.7,
    readings={
        "epoch": (
            "the epoch with the smallest validation loss without dropout",
            lambda record: float(1 + np.argmin(_validation(record))),
        ),
        "gap": (
            "the validation loss minus the training loss after the last epoch, without dropout "
            "and without early stopping",
            lambda record: _validation(record)[-1] - curves(record)["p = 0"]["training"][-1],
        ),
        "p": (
            "the rate with the smallest validation loss after the last epoch",
            lambda record: min(RATES, key=lambda p: _validation(record, p)[-1]),
        ),
    },
    steps=2,
)
