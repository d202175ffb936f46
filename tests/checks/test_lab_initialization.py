"""The lab on initialization: its references against torch, NumPy and closed forms; its record."""

import copy
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from optdl.checks.initialization.lab_2_initialize import initialize
from optdl.checks.initialization.lab_2_mend import mend
from optdl.checks.initialization.lab_2_ratios import update_ratios
from optdl.checks.initialization.lab_2_statistics import activation_statistics
from optdl.checks.initialization.lab_record import RECORD as JUDGED
from optdl.initialization import layer_outputs
from optdl.labs import LabRecord, seed_of
from optdl.labs import initialization as lab

RECORD = Path(__file__).resolve().parents[2] / "solutions" / "initialization"
PARTS = {
    "initialize": initialize,
    "activation_statistics": activation_statistics,
    "update_ratios": update_ratios,
    "mend": mend,
}


def seeded(seed=3):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def record():
    return LabRecord.load(RECORD / "record.json")


@pytest.fixture
def curves(record):
    return lab.curves_by_start(record)


# --- The references ---------------------------------------------------------------------------


@pytest.mark.row("LAB-2")
@pytest.mark.parametrize(("gain", "nonlinearity"), [(2**0.5, "relu"), (1.0, "linear")])
def test_initial_weights_match_torch(gain, nonlinearity):
    model = nn.Sequential(nn.Conv2d(4, 6, (3, 2), groups=2), nn.Flatten(), nn.Linear(24, 5))
    initialize(model, gain, seeded())
    generator = seeded()
    for layer in (model[0], model[2]):
        expected = torch.empty_like(layer.weight)
        nn.init.kaiming_normal_(expected, nonlinearity=nonlinearity, generator=generator)
        torch.testing.assert_close(layer.weight.detach(), expected, rtol=1e-6, atol=0)
        assert not layer.bias.any()


@pytest.mark.row("LAB-2")
def test_unit_gain_is_glorot_for_equal_widths():
    model = nn.Sequential(nn.Linear(300, 300))
    initialize(model, lab.GAINS["Glorot"], seeded())
    expected = nn.init.xavier_normal_(torch.empty(300, 300), generator=seeded())
    torch.testing.assert_close(model[0].weight.detach(), expected, rtol=1e-6, atol=0)


@pytest.mark.row("LAB-2")
def test_small_gain_matches_torchs_default_variance():
    torch.manual_seed(0)
    default = nn.Linear(400, 400).weight.var().item()
    assert default == pytest.approx(lab.GAINS["small"] ** 2 / 400, rel=0.02)


@pytest.mark.row("LAB-2")
def test_hooks_match_a_pass_by_hand():
    model = lab.network()
    initialize(model, 1.0, seeded())
    found = activation_statistics(model, lab.sample())
    h = lab.sample().double().numpy()
    assert list(found) == [str(2 * number + 1) for number in range(lab.DEPTH)]
    for number in range(lab.DEPTH):
        layer = model[2 * number]
        h = np.maximum(h @ layer.weight.detach().double().numpy().T, 0)
        measured = found[str(2 * number + 1)]
        expected = (h.mean(), h.std(), (h == 0).all(axis=0).mean())
        np.testing.assert_allclose(list(measured.values()), expected, rtol=1e-4)
    assert not any(module._forward_hooks for module in model.modules())
    assert model.training


@pytest.mark.row("LAB-2")
def test_update_ratio_matches_weights_of_a_twin():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).double()
    initialize(model, 1.0, seeded())
    twin, before = copy.deepcopy(model), copy.deepcopy(model)
    x, y = torch.randn(5, 3, generator=seeded(), dtype=torch.float64), torch.tensor([0, 1, 1, 0, 1])
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    ratios = update_ratios(model, adam, x, y)
    loss = nn.functional.cross_entropy(twin(x), y)
    for old, new, g in zip(
        before.parameters(),
        model.parameters(),
        torch.autograd.grad(loss, list(twin.parameters())),
        strict=True,
    ):
        # the first step of Adam has no history: rate times g / (|g| + eps)
        torch.testing.assert_close(new, old - 0.01 * g / (g.abs() + 1e-8), rtol=1e-12, atol=1e-14)
    for name in ("0.weight", "2.weight"):
        old, new = (m.get_parameter(name).detach().numpy() for m in (before, model))
        assert ratios[name] == pytest.approx(np.linalg.norm(new - old) / np.linalg.norm(old))
    assert set(ratios) == {"0.weight", "2.weight"}


@pytest.mark.row("LAB-2")
@pytest.mark.parametrize("seed", range(5))
def test_mended_layers_have_unit_deviation(seed):
    model = lab.network()
    initialize(model, lab.GAINS["damaged"], seeded(seed))
    healthy = copy.deepcopy(model)
    small, dead, equal = lab.damage(model, seed)
    outputs = layer_outputs(model, lab.sample())
    assert not outputs[str(2 * dead - 1)].any()
    assert outputs[str(2 * dead - 3)].any()
    mend(model, lab.sample(), seeded(seed + 1))
    mended = layer_outputs(model, lab.sample())
    for number in range(lab.DEPTH + 1):
        assert mended[str(2 * number)].std() == pytest.approx(1, rel=1e-4)
        ratio = model[2 * number].weight / healthy[2 * number].weight
        same = torch.allclose(ratio, ratio[0, 0].expand_as(ratio), rtol=1e-4)
        assert same == (number + 1 != equal), "all layers but that of equal weights are scaled"
    assert len({small, dead, equal}) == 3
    assert min(small, dead, equal) > 1


# --- The record -------------------------------------------------------------------------------


@pytest.mark.row("LAB-2")
def test_dead_layer_is_the_damaged_one(record, curves):
    _, dead, _ = lab.damage(lab.network(), seed_of(record.user))
    assert JUDGED.readings["dead"][1](record) == dead
    assert curves["damaged"]["deviation"][dead - 1 :] == [0] * (lab.DEPTH - dead + 1)
    assert min(curves["damaged"]["deviation"][: dead - 1]) > 0


@pytest.mark.row("LAB-2")
@pytest.mark.parametrize("start", ["small", "Glorot", "He"])
def test_deviation_per_layer_changes_as_predicted(curves, start):
    values = curves[start]["deviation"]
    factor = (values[-1] / values[0]) ** (1 / (lab.DEPTH - 1))
    assert factor == pytest.approx(lab.GAINS[start] / 2**0.5, rel=0.1)


@pytest.mark.row("LAB-2")
def test_small_weights_vanish_at_predicted_depth(record, curves):
    first = curves["small"]["deviation"][0]
    predicted = 1 + math.ceil(math.log(1e-3 / first) / math.log(lab.GAINS["small"] / 2**0.5))
    assert abs(JUDGED.readings["vanished"][1](record) - predicted) <= 1


@pytest.mark.row("LAB-2")
def test_only_he_and_mended_networks_learn(curves):
    accuracies = {start: found["accuracy"][0] for start, found in curves.items()}
    assert min(accuracies["He"], accuracies["mended"]) > 0.8
    assert max(accuracies["small"], accuracies["damaged"]) < 0.2
    for start in ("small", "damaged"):
        assert np.mean(curves[start]["loss"]) == pytest.approx(math.log(10), abs=0.01)
    assert max(curves["small"]["ratio"]) < 1e-7
    assert curves["damaged"]["ratio"] == [0] * (lab.DEPTH + 1)
    assert all(1e-4 < ratio < 1e-1 for ratio in curves["mended"]["ratio"] + curves["He"]["ratio"])
