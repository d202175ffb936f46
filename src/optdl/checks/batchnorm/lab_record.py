"""What the record of the lab's runs has to hold."""

from functools import partial

from torch import nn

from optdl.checks.batchnorm.lab_3_network import Network
from optdl.labs.batchnorm import LAB, WIDTHS, accuracies, examples_seen, mean_losses
from optdl.labs.digits import accuracy, loaded, pixels
from optdl.labs.judging import RecordCheck


def _evaluate(weights):
    """Return the accuracy of weights on the validation examples, in PyTorch's own modules."""
    is_normalized = "layers.1.running_mean" in weights
    model = Network(WIDTHS, nn.BatchNorm1d if is_normalized else None)
    return accuracy(loaded(model, weights), *pixels()[2:])


def _first_above(name, record):
    """Return after how many examples a curve of size 64 exceeds 0.8."""
    found = zip(examples_seen(), accuracies(record, 64)[name], strict=True)
    return next((seen for seen, accuracy in found if accuracy > 0.8), 0)


def _first(record, name):
    return accuracies(record, 64)[name][0]


_NUMBER = "after how many examples the accuracy at 64 first exceeds 0.8 (0 if it never does), with "

RECORD = RecordCheck(
    lab=LAB,
    evaluate=_evaluate,
    level=0.84,
    readings={
        "averages": (f"{_NUMBER}running averages", partial(_first_above, "running averages")),
        "anew": (f"{_NUMBER}statistics computed anew", partial(_first_above, "computed anew")),
        "gain": (
            "the accuracy at 64 after 512 examples, anew minus running averages",
            lambda record: _first(record, "computed anew") - _first(record, "running averages"),
        ),
        "loss": (
            "the last training loss with batch normalization at size 2",
            lambda record: mean_losses(record, 2)["batch normalization"][-1],
        ),
    },
)
