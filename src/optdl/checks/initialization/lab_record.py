"""What the record of the lab's runs has to hold."""

from optdl.labs.digits import accuracy, loaded, standardized
from optdl.labs.initialization import DEPTH, LAB, curves_by_start, deviations, network
from optdl.labs.judging import RecordCheck


def _first(of_layers):
    """Return the first hidden layer, from 1 on, for which something holds; 0 without one."""
    return next((layer for layer, holds in enumerate(of_layers, 1) if holds), 0)


def _factor(start):
    def find(record):
        first, *_, last = deviations(record)[start]
        return float((last / first) ** (1 / (DEPTH - 1)))

    what = "the fourteenth root of the factor from layer 1 to layer 15 in the deviation of "
    return what + start, find


RECORD = RecordCheck(
    lab=LAB,
    evaluate=lambda weights: accuracy(loaded(network(), weights), *standardized()[2:]),
    level=0.75,
    readings={
        "vanished": (
            "the first hidden layer in which the deviation of `small` is below 0.001",
            lambda record: _first(value < 1e-3 for value in deviations(record)["small"]),
        ),
        "dead": (
            "the first hidden layer of `damaged` whose deviation is zero",
            lambda record: _first(one == 1 for one in curves_by_start(record)["damaged"]["dead"]),
        ),
    }
    | {f"{name} factor": _factor(name) for name in ("small", "Glorot")},
)
