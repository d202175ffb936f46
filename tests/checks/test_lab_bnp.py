"""The lab on BNP: its references against the course's own BNP, and what its run is to show."""

import math
from pathlib import Path

import pytest
import torch

from optdl.checks.bnp.lab_5_bnp import BNP
from optdl.checks.bnp.lab_5_train import train
from optdl.checks.bnp.lab_record import RECORD as JUDGED
from optdl.labs import LabRecord, seed_of
from optdl.labs.bnp import (
    INPUTS,
    LAB,
    METHODS,
    STEPS,
    accuracy,
    best_curves,
    best_rates,
    examples,
    experiment,
    last_loss,
    network,
)

pytestmark = [pytest.mark.row("LAB-5"), pytest.mark.xdist_group("labs")]

FOLDER = Path(__file__).parents[2] / "solutions" / "bnp"
PARTS = {"BNP": BNP, "train": train}


@pytest.fixture(scope="module")
def record() -> LabRecord:
    return LabRecord.load(FOLDER / "record.json")


# --- the run ----------------------------------------------------------------------------------


def test_recorded_weights_determine_their_inputs(record: LabRecord) -> None:
    """On other inputs than those of its training a network does worse."""
    for setting in (LAB.settings[9], LAB.settings[26], LAB.settings[21]):
        _, model = experiment(PARTS, setting, seed_of(record.user), 60)
        reached = accuracy(model, setting["inputs"])
        assert JUDGED.evaluate(model.state_dict()) == pytest.approx(reached)
        [other] = {*INPUTS} - {setting["inputs"]}
        assert accuracy(model, other) < reached


def test_record_supports_the_answer(record: LabRecord) -> None:
    raw, standardized = (
        {name: last_loss(losses) for name, losses in best_curves(record, inputs).items()}
        for inputs in INPUTS
    )
    assert tuple(raw) == tuple(standardized) == METHODS
    assert raw["SGD"] / raw["BNP"] > 3  # a large gain on raw pixels,
    assert raw["BNP hidden"] > 2 * raw["BNP"]  # most of it from the first layer,
    assert standardized["SGD"] < 1.5 * raw["BNP"]  # which standardizing replaces
    assert 1.2 < standardized["SGD"] / standardized["BNP"] < 2.5
    assert standardized["BNP hidden"] == pytest.approx(standardized["BNP"], rel=0.2)
    assert standardized["BN"] == pytest.approx(raw["BN"], rel=0.2)
    rates = [best_rates(record, inputs) for inputs in INPUTS]
    assert all(one["BNP"] > one["SGD"] for one in rates)


def test_hidden_layers_only_leave_first_gradient_plain() -> None:
    """``model[1:]`` holds the same layers as the network."""
    model = network(0)
    BNP(model[1:])
    assert [len(layer._forward_pre_hooks) for layer in model] == [0, 0, 1, 0, 1]


def test_standardized_pixels_have_zero_mean_and_bounded_deviation() -> None:
    x, _, validation, _ = examples("standardized")
    torch.testing.assert_close(x.mean(dim=0), torch.zeros(64), atol=1e-5, rtol=0)
    assert float(x.std(dim=0).max()) < 1
    assert float(validation.mean()) == pytest.approx(0, abs=0.1)
    with pytest.raises(ValueError, match="raw, standardized"):
        examples("whitened")


def test_diverged_run_is_left_out(record: LabRecord) -> None:
    assert all(len(run.curves["loss"]) == STEPS for run in record.runs)
    [best] = [one for one in record.runs if one.setting == LAB.settings[3 * 4 + 2]]
    kept, best.curves["training loss"] = best.curves["training loss"], [0.001, 0.001]
    try:
        assert best_rates(record, "raw")["BNP hidden"] != best.setting["lr"]
    finally:
        best.curves["training loss"] = kept
    assert math.isclose(best_rates(record, "raw")["BNP hidden"], best.setting["lr"])
