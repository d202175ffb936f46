"""The lab on batch normalization: its runs, and what its record shows."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from optdl.checks.batchnorm.lab_3_evaluate import evaluate
from optdl.checks.batchnorm.lab_3_module import BatchNorm
from optdl.checks.batchnorm.lab_3_network import Network
from optdl.checks.batchnorm.lab_3_recalibrate import recalibrate
from optdl.labs import LabRecord
from optdl.labs.batchnorm import (
    EXAMPLES,
    LAB,
    SIZES,
    accuracies,
    batches,
    examples_seen,
    mean_losses,
)
from optdl.labs.records import RecordError

SOLUTION = Path(__file__).parents[2] / "solutions" / "batchnorm"
PARTS = {
    "BatchNorm": BatchNorm,
    "Network": Network,
    "evaluate": evaluate,
    "recalibrate": recalibrate,
}

pytestmark = pytest.mark.row("LAB-3")


def test_all_sizes_see_the_same_examples():
    first = torch.cat([x for x, _ in batches(1, 64, EXAMPLES // 64)])
    for size in SIZES[1:]:
        assert torch.equal(first, torch.cat([x for x, _ in batches(1, size, EXAMPLES // size)]))
    assert len(first) == EXAMPLES == examples_seen()[-1]


def test_testing_does_not_affect_training():
    setting = {"size": 64, "normalized": True}
    tested, _ = LAB.experiment(PARTS, setting, 1, None)
    untested, _ = LAB.experiment(PARTS, setting, 1, EXAMPLES // 64)
    # 80 steps in either case; the second call tests nowhere
    assert tested["loss"] == untested["loss"]
    assert len(tested["accuracy"]) == 10
    assert untested["accuracy"] == []


@pytest.mark.parametrize("steps", [3, None])
def test_normalization_unknown_to_recalibrate_stops_the_run(steps):
    def of_torch(model, batches):
        assert not any(isinstance(one, nn.BatchNorm1d) for one in model.modules())

    parts, setting = PARTS | {"recalibrate": of_torch}, {"size": 64, "normalized": True}
    with pytest.raises(RecordError, match="does not compute the statistics of your BatchNorm anew"):
        LAB.experiment(parts, setting, 1, steps)


def test_record_answers_the_question():
    record = LabRecord.load(SOLUTION / "record.json")
    curves = {size: accuracies(record, size) for size in SIZES}
    first = {size: {name: found[0] for name, found in curves[size].items()} for size in SIZES}
    gains = [first[size]["computed anew"] - first[size]["running averages"] for size in SIZES]
    assert gains[0] > 0.2 > gains[1] > gains[2]
    last = {name: values[-1] for name, values in curves[2].items()}
    assert last["computed anew"] < last["no normalization"] - 0.1
    assert abs(last["computed anew"] - last["running averages"]) < 0.05
    losses = {name: values[-1] for name, values in mean_losses(record, 2).items()}
    assert losses["batch normalization"] > 1.5
    assert losses["no normalization"] < 0.2


@pytest.mark.parametrize("normalized", [False, True])
def test_network_has_the_layers_of_the_paper(normalized):
    layers = Network((3, 4, 5, 2), BatchNorm if normalized else None).layers
    hidden = ["Linear", "BatchNorm", "ReLU"] if normalized else ["Linear", "ReLU"]
    assert [type(one).__name__ for one in layers] == [*hidden, *hidden, "Linear"]
    biases = [one.bias is not None for one in layers if isinstance(one, nn.Linear)]
    assert biases == [not normalized, not normalized, True]  # β stands for the others
