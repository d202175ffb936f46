"""What the record of the lab's runs has to hold."""

from optdl.checks.labs.records import RecordCheck
from optdl.labs.bnp_cnn import (
    LAB,
    LEVEL,
    METHODS,
    SMALL,
    accuracy,
    epochs_until,
    examples,
    mean_losses,
    network,
)


def _evaluate(weights):
    """Return the accuracy of weights on the validation digits, for the network that they fit."""
    _, _, x, y = examples(SMALL)
    for setting in LAB.settings:
        model = network(setting["network"], setting["method"], 0)
        shapes = {name: one.shape for name, one in model.state_dict().items()}
        if shapes == {name: one.shape for name, one in weights.items()}:
            model.load_state_dict(dict(weights))
            return accuracy(model, x, y)
    return 0.0


def _first_below(kind, method):
    return lambda record: epochs_until(mean_losses(record, kind).get(method, []))


_ASKED = "one of " + ", ".join(METHODS)


RECORD = RecordCheck(
    key="LAB-6:record",
    lab=LAB,
    predictions=dict.fromkeys(("first", "last"), (_ASKED, METHODS.__contains__)),
    evaluate=_evaluate,
    level=0.9,
    readings={
        prefix + method: (
            f"the first epoch in which the mean loss of {kind} with {method} is below {LEVEL}, "
            "or 0 if there is none",
            _first_below(kind, method),
        )
        for prefix, kind, methods in (
            ("", "ResNet-8", METHODS),
            ("small CNN, ", "small CNN", ("BN", "BNP")),
        )
        for method in methods
    },
)
