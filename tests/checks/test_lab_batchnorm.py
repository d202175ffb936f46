"""The lab on batch normalization: its references against torch, and what its record shows."""

from __future__ import annotations

import copy
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
    WIDTHS,
    accuracies,
    batches,
    examples,
    examples_seen,
    initialize,
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


# --- The module -------------------------------------------------------------------------------


@pytest.mark.parametrize("momentum", [0.1, 0.7, None])
@pytest.mark.parametrize(
    ("theirs", "shape"), [(nn.BatchNorm1d, (6, 3)), (nn.BatchNorm2d, (2, 3, 4, 5))]
)
def test_module_matches_torch(theirs, shape, momentum):
    torch.manual_seed(0)
    pair = [one(3, momentum=momentum, eps=0.01).double() for one in (BatchNorm, theirs)]
    x = torch.randn(5, *shape, dtype=torch.double) * 3 + 2
    gradients = []
    for layer in pair:
        inputs = x.clone().requires_grad_()
        sum((layer(one) ** 3).sum() for one in inputs).backward()
        gradients.append((inputs.grad, layer.weight.grad, layer.bias.grad))
        layer.eval()
    for ours, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-11, atol=1e-11)
    ours, expected = (layer.state_dict() for layer in pair)
    assert list(ours) == list(expected)
    for name, value in expected.items():
        torch.testing.assert_close(ours[name], value, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(pair[0](x[0]), pair[1](x[0]), rtol=1e-12, atol=1e-12)


def test_state_goes_both_ways():
    torch.manual_seed(0)
    theirs, ours = nn.BatchNorm1d(4), BatchNorm(4)
    x = torch.randn(7, 4) + 3
    theirs(x)
    ours.load_state_dict(theirs.state_dict())
    torch.testing.assert_close(ours.eval()(x), theirs.eval()(x))
    nn.BatchNorm1d(4).load_state_dict(ours.state_dict())


def test_module_on_paper():
    # mean 2, biased variance 4, unbiased 16/3; half of each goes into the averages
    layer = BatchNorm(1, momentum=0.5, eps=0.0)
    y = layer(torch.tensor([[0.0], [0.0], [4.0], [4.0]]))
    assert y.detach().ravel().tolist() == [-1, -1, 1, 1]
    assert layer.running_mean.tolist() == [1]
    torch.testing.assert_close(layer.running_var, torch.tensor([0.5 + 8 / 3]))


def test_buffers_follow_the_module():
    layer = BatchNorm(2).double()
    assert layer.running_var.dtype is torch.double
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]
    assert not any(one.requires_grad for one in layer.buffers())


# --- The network, its test, and its statistics ------------------------------------------------


@pytest.mark.parametrize("normalized", [False, True])
def test_network_matches_torchs_layers(normalized):
    ours = Network((3, 4, 5, 2), BatchNorm if normalized else None)
    kinds = [type(one).__name__ for one in ours.layers]
    hidden = ["Linear", "BatchNorm", "ReLU"] if normalized else ["Linear", "ReLU"]
    assert kinds == [*hidden, *hidden, "Linear"]
    biases = [one.bias is not None for one in ours.layers if isinstance(one, nn.Linear)]
    assert biases == [not normalized, not normalized, True]


def test_training_matches_torchs_normalization():
    found = []
    for kind in (BatchNorm, nn.BatchNorm1d):
        model = Network(WIDTHS, kind, momentum=0.01)
        initialize(model, seed=3)
        found.append(model.fit(batches(seed=4, size=8, steps=20), lr=0.04))
    np.testing.assert_allclose(*found, rtol=1e-3)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("size", [1, 7, 288])
def test_evaluate_does_not_depend_on_the_size(size, training):
    model = Network(WIDTHS, BatchNorm).train(training)
    initialize(model, seed=5)
    _, _, x, y = examples()
    before = copy.deepcopy(model.state_dict())
    loss, accuracy = evaluate(model, x, y, size)
    assert model.training == training
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    scores = model.eval()(x).detach()
    assert loss == pytest.approx(nn.functional.cross_entropy(scores, y).item(), rel=1e-5)
    assert accuracy == pytest.approx((scores.argmax(1) == y).double().mean().item())


@pytest.mark.parametrize("training", [True, False])
def test_recalibrate_matches_torchs_update_bn(training):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.BatchNorm1d(4))
    x = torch.randn(30, 3) + 1
    for _ in range(3):
        model(x)
    theirs = copy.deepcopy(model.train(training))
    torch.optim.swa_utils.update_bn(torch.split(x, 8), theirs)
    recalibrate(model, torch.split(x, 8))
    for ours, expected in zip(
        model.state_dict().values(), theirs.state_dict().values(), strict=True
    ):
        torch.testing.assert_close(ours, expected)
    assert model[1].momentum == 0.1
    assert model.training == model[3].training == training


# --- The run ----------------------------------------------------------------------------------


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
    assert names["reading"]() == expected
    assert names["predictions"]() == record.predictions
    assert names["user"]() == record.user
