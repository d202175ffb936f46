"""The lab on batch normalization: its runs, and what its record shows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from optdl.checks.batchnorm.lab_3_evaluate import evaluate
from optdl.checks.batchnorm.lab_3_module import BatchNorm
from optdl.checks.batchnorm.lab_3_network import Network
from optdl.checks.batchnorm.lab_3_recalibrate import recalibrate
from optdl.checks.batchnorm.lab_record import RECORD
from optdl.labs import LabRecord, seed_of
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


@pytest.fixture(scope="module")
def record() -> LabRecord:
    """Return the record of the solution."""
    return LabRecord.load(SOLUTION / "record.json")


def test_all_sizes_see_the_same_examples():
    first = torch.cat([x for x, _ in batches(1, 64, EXAMPLES // 64)])
    for size in SIZES[1:]:
        assert torch.equal(first, torch.cat([x for x, _ in batches(1, size, EXAMPLES // size)]))
    assert len(first) == EXAMPLES == examples_seen()[-1]


@pytest.mark.parametrize("setting", LAB.settings, ids=str)
def test_record_start_is_reproduced(record, setting):
    run = record.find(setting)
    curves, _ = LAB.experiment(PARTS, setting, seed_of(record.user), 6)
    np.testing.assert_allclose(run.curves["loss"][:6], curves["loss"], rtol=1e-3)
    assert len(run.curves["loss"]) == EXAMPLES // setting["size"]
    assert len(run.curves["accuracy"]) == len(examples_seen())


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

    with pytest.raises(RecordError, match="does not compute the statistics of your BatchNorm anew"):
        LAB.experiment(
            PARTS | {"recalibrate": of_torch}, {"size": 64, "normalized": True}, 1, steps
        )


def test_record_is_small():
    assert (SOLUTION / "record.json").stat().st_size < 300_000


def test_record_answers_the_question(record):
    first = {size: accuracies(record, size) for size in SIZES}
    gains = {
        size: found["computed anew"][0] - found["running averages"][0]
        for size, found in first.items()
    }
    assert gains[64] > 0.2 > gains[8] > gains[2]
    last = {name: values[-1] for name, values in first[2].items()}
    assert last["computed anew"] < last["no normalization"] - 0.1
    assert abs(last["computed anew"] - last["running averages"]) < 0.05
    losses = {name: values[-1] for name, values in mean_losses(record, 2).items()}
    assert losses["batch normalization"] > 1.5
    assert losses["no normalization"] < 0.2


def test_solution_read_the_numbers_of_its_record(record):
    notebook = json.loads((SOLUTION / "lab.ipynb").read_text(encoding="utf-8"))
    cells = {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}
    names: dict = {}
    for name in ("reading", "predictions", "user"):
        exec(cells[f"batchnorm-lab-{name}"], names)
    expected = {name: find(record) for name, (_, find) in RECORD.readings.items()}
    assert names["reading"]() == pytest.approx(expected, rel=1e-3)
    assert names["predictions"]() == record.predictions
    assert names["user"]() == record.user


@pytest.mark.parametrize("normalized", [False, True])
def test_network_has_the_layers_of_the_paper(normalized):
    layers = Network((3, 4, 5, 2), BatchNorm if normalized else None).layers
    hidden = ["Linear", "BatchNorm", "ReLU"] if normalized else ["Linear", "ReLU"]
    assert [type(one).__name__ for one in layers] == [*hidden, *hidden, "Linear"]
    biases = [one.bias is not None for one in layers if isinstance(one, nn.Linear)]
    assert biases == [not normalized, not normalized, True]  # β stands for the others
