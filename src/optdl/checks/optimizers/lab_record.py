"""What the record of the lab's runs has to hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from optdl.checks.labs.records import RecordCheck
from optdl.labs.optimizers import LAB, RATES, accuracy, final_losses, network


def _is_rate(value: Any) -> bool:
    return value in RATES


def _evaluate(weights: Mapping[str, Tensor]) -> float:
    """Return the accuracy of weights on the validation examples."""
    model = network(0)
    model.load_state_dict(dict(weights))
    return accuracy(model)


def _best(name: str) -> Callable[[Any], float]:
    def find(record: Any) -> float:
        losses = final_losses(record)[name]
        return min(losses, key=lambda rate: losses[rate])

    return find


_ASKED = "one of the rates " + ", ".join(map(str, RATES))


RECORD = RecordCheck(
    key="LAB-1:record",
    lab=LAB,
    predictions={"SGD": (_ASKED, _is_rate), "AdamW": (_ASKED, _is_rate)},
    evaluate=_evaluate,
    level=0.88,
    readings={
        "SGD": (
            "the rate at which the mean of the last 20 losses of SGD is smallest",
            _best("SGD"),
        ),
        "AdamW": (
            "the rate at which the mean of the last 20 losses of AdamW is smallest",
            _best("AdamW"),
        ),
    },
)
