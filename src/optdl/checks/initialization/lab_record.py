"""What the record of the lab's runs has to hold."""

from optdl.checks.labs.records import RecordCheck
from optdl.labs.digits import accuracy, loaded, standardized
from optdl.labs.initialization import DEPTH, GAINS, LAB, curves_by_start, deviations, network


def _vanished(record):
    values = deviations(record)["small"]
    return next((layer for layer, value in enumerate(values, 1) if value < 1e-3), 0)


def _dead(record):
    shares = curves_by_start(record)["damaged"]["dead"]
    return next((layer for layer, share in enumerate(shares, 1) if share == 1), 0)


def _factor(start):
    def find(record):
        first, *_, last = deviations(record)[start]
        return float((last / first) ** (1 / (DEPTH - 1)))

    return find


_PER_LAYER = "the fourteenth root of the factor from layer 1 to layer 15 in the deviation of {}"

RECORD = RecordCheck(
    key="LAB-2:record",
    lab=LAB,
    predictions={
        "vanished": (
            f"the number of a hidden layer, from 1 to {DEPTH}",
            range(1, DEPTH + 1).__contains__,
        ),
        "trained": (
            f"a number of networks, from 0 to {len(GAINS)}",
            range(len(GAINS) + 1).__contains__,
        ),
    },
    evaluate=lambda weights: accuracy(loaded(network(), weights), *standardized()[2:]),
    level=0.75,
    readings={
        "vanished": (
            "the first hidden layer in which the deviation of `small` is below 0.001",
            _vanished,
        ),
        "dead": ("the first hidden layer of `damaged` whose deviation is zero", _dead),
    }
    | {f"{name} factor": (_PER_LAYER.format(name), _factor(name)) for name in ("small", "Glorot")},
)
