"""The lab on BNP: its references against the course's own BNP, and what its run is to show."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import optdl.bnp
from optdl.checks import check
from optdl.checks.bnp.lab_5_bnp import BNP
from optdl.checks.bnp.lab_5_input_statistics import input_statistics
from optdl.checks.bnp.lab_5_precondition import precondition
from optdl.checks.bnp.lab_5_train import train
from optdl.checks.bnp.lab_record import RECORD as JUDGED
from optdl.labs import LabRecord, seed_of
from optdl.labs.bnp import (
    EVERY,
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
from tools import answers, notebooks

pytestmark = [pytest.mark.row("LAB-5"), pytest.mark.xdist_group("labs")]

FOLDER = Path(__file__).parents[2] / "solutions" / "bnp"
PARTS = {"BNP": BNP, "train": train}


@pytest.fixture(scope="module")
def record() -> LabRecord:
    return LabRecord.load(FOLDER / "record.json")


@pytest.fixture(scope="module")
def solution() -> dict[str, Any]:
    """Return what the answer cells of the notebook define."""
    names: dict[str, Any] = {"torch": torch, "nn": nn}
    for cell in notebooks.read(FOLDER / "lab.ipynb").cells:
        if cell.metadata.get("nbgrader", {}).get("solution") and cell.cell_type == "code":
            exec(answers.right(cell.source), names)
    return names


# --- the references ---------------------------------------------------------------------------


def test_preconditioned_gradients_match_matrix_product() -> None:
    """PPᵀ/q², with P = UD as a matrix, times the gradient."""
    torch.manual_seed(0)
    weight, bias = torch.randn(3, 5).double(), torch.randn(3).double()
    mean, var = torch.randn(5).double(), torch.rand(5).double() + 0.1
    smoothed = (var + 0.01 * var.max() + 1e-4).sqrt().numpy()
    U, D = optdl.bnp.preconditioner(mean.numpy(), smoothed)
    stacked = np.column_stack([bias.numpy(), weight.numpy()])
    expected = stacked @ U @ D @ D @ U.T / (5 / 2)
    precondition(weight, bias, mean, var, 2)
    np.testing.assert_allclose(weight.numpy(), expected[:, 1:], rtol=1e-12)
    np.testing.assert_allclose(bias.numpy(), expected[:, 0], rtol=1e-11)


def test_input_statistics_match_numpy() -> None:
    torch.manual_seed(0)
    first, second = nn.Linear(4, 3), nn.Linear(3, 2)
    model, x = nn.Sequential(nn.Sequential(first, nn.ReLU()), second), torch.randn(6, 4)
    found = input_statistics(model, x)
    h = first(x).relu().detach().numpy()
    for (mean, var), read in zip(found, (x.numpy(), h), strict=True):
        np.testing.assert_allclose(mean.numpy(), read.mean(axis=0), atol=1e-6)
        np.testing.assert_allclose(var.numpy(), read.var(axis=0), atol=1e-6)
    assert not first._forward_pre_hooks


def test_training_matches_the_courses_own_bnp() -> None:
    """Also where the network is tested in between, and where a run is resumed."""
    x, y, _, _ = examples("raw")
    weights = []
    for kind in (BNP, optdl.bnp.BNP):
        model = network(3).double()
        bnp: Any = kind(model, rho=0.9)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.5)
        for rows in range(0, 80, 8):
            batch = x[rows : rows + 8].double(), y[rows : rows + 8]
            train(model, optimizer, bnp, [batch])
            with torch.no_grad():
                model.eval()(x[:5].double())
        weights.append([value.detach() for value in model.parameters()])
    for ours, expected in zip(*weights, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-12)


def test_identity_preconditioner_gives_plain_step() -> None:
    """With μ = 0, σ² = 1 and no floor P is the identity, and q² is 1 for a large minibatch."""
    layer = nn.Linear(3, 2)
    x = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
    bnp = BNP(layer, rho=1.0, eps1=0.0, eps2=0.0)
    layer(x).square().mean().backward()
    assert layer.weight.grad is not None
    before = layer.weight.grad.clone()
    bnp.step()
    torch.testing.assert_close(layer.weight.grad, before)


@pytest.mark.parametrize("name", ["precondition", "input_statistics", "BNP", "train"])
def test_notebook_solutions_pass_the_checks(solution: dict[str, Any], name: str) -> None:
    check(f"LAB-5:{name.lower()}", solution[name], seed=3, properties=True)


# --- the run ----------------------------------------------------------------------------------


def test_recorded_weights_determine_their_inputs(record: LabRecord) -> None:
    """On other inputs than those of its training a network does worse."""
    for setting in (LAB.settings[9], LAB.settings[26], LAB.settings[21]):
        _, model = experiment(PARTS, setting, seed_of(record.user), 60)
        reached = accuracy(model, setting["inputs"])
        assert JUDGED.evaluate(model.state_dict()) == pytest.approx(reached)
        [other] = {*INPUTS} - {setting["inputs"]}
        assert accuracy(model, other) < reached


def test_short_run_is_prefix_of_long_run(record: LabRecord) -> None:
    for setting in (LAB.settings[10], LAB.settings[30]):
        run = record.find(setting)
        assert run is not None
        curves, _ = experiment(PARTS, setting, seed_of(record.user), EVERY)
        assert curves["loss"] == pytest.approx(run.curves["loss"][:EVERY], rel=1e-3)
        assert curves["training loss"] == pytest.approx(run.curves["training loss"][:1], rel=1e-3)


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
