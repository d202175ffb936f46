"""What the record of the lab's runs has to hold."""

from functools import partial

from optdl.labs import bnp_cnn as lab
from optdl.labs.digits import accuracy, loaded
from optdl.labs.judging import RecordCheck


def _evaluate(weights):
    """Return the accuracy of weights on the validation digits, for the network that they fit."""
    shapes = {name: one.shape for name, one in weights.items()}
    for setting in lab.LAB.settings:
        model = lab.network(setting["network"], setting["method"], 0)
        if shapes == {name: one.shape for name, one in model.state_dict().items()}:
            return accuracy(loaded(model, weights), *lab.digits()[2:])
    return 0.0


def _first_below(kind, method, record):
    return lab.epochs_until(lab.mean_losses(record, kind).get(method, []))


RECORD = RecordCheck(
    lab=lab.LAB,
    evaluate=_evaluate,
    level=0.9,
    readings={
        prefix + method: (
            f"the first epoch in which the mean loss of {kind} with {method} is below {lab.LEVEL}, "
            "or 0 if there is none",
            partial(_first_below, kind, method),
        )
        for prefix, kind, methods in (
            ("", "ResNet-8", lab.METHODS),
            ("small CNN, ", "small CNN", ("BN", "BNP")),
        )
        for method in methods
    },
)
