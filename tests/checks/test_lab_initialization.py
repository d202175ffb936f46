"""The lab on initialization: what its record shows, against the theory."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from optdl.checks.initialization.lab_record import RECORD as JUDGED
from optdl.labs import LabRecord, seed_of
from optdl.labs import initialization as lab

RECORD = Path(__file__).resolve().parents[2] / "solutions" / "initialization"

pytestmark = pytest.mark.row("LAB-2")


@pytest.fixture
def record():
    return LabRecord.load(RECORD / "record.json")


@pytest.fixture
def curves(record):
    return lab.curves_by_start(record)


def test_small_gain_matches_torchs_default_variance():
    torch.manual_seed(0)
    default = nn.Linear(400, 400).weight.var().item()
    assert default == pytest.approx(lab.GAINS["small"] ** 2 / 400, rel=0.02)


def test_dead_layer_is_the_damaged_one(record, curves):
    _, dead, _ = lab.damage(lab.network(), seed_of(record.user))
    assert JUDGED.readings["dead"][1](record) == dead
    assert curves["damaged"]["deviation"][dead - 1 :] == [0] * (lab.DEPTH - dead + 1)
    assert min(curves["damaged"]["deviation"][: dead - 1]) > 0


@pytest.mark.parametrize("start", ["small", "Glorot", "He"])
def test_deviation_per_layer_changes_as_predicted(curves, start):
    values = curves[start]["deviation"]
    factor = (values[-1] / values[0]) ** (1 / (lab.DEPTH - 1))
    assert factor == pytest.approx(lab.GAINS[start] / 2**0.5, rel=0.1)


def test_small_weights_vanish_at_predicted_depth(record, curves):
    first = curves["small"]["deviation"][0]
    predicted = 1 + math.ceil(math.log(1e-3 / first) / math.log(lab.GAINS["small"] / 2**0.5))
    assert abs(JUDGED.readings["vanished"][1](record) - predicted) <= 1


def test_only_he_and_mended_networks_learn(curves):
    accuracies = {start: found["accuracy"][0] for start, found in curves.items()}
    assert min(accuracies["He"], accuracies["mended"]) > 0.8
    assert max(accuracies["small"], accuracies["damaged"]) < 0.2
    for start in ("small", "damaged"):
        assert np.mean(curves[start]["loss"]) == pytest.approx(math.log(10), abs=0.01)
    assert max(curves["small"]["ratio"]) < 1e-7
    assert curves["damaged"]["ratio"] == [0] * (lab.DEPTH + 1)
    assert all(1e-4 < ratio < 1e-1 for ratio in curves["mended"]["ratio"] + curves["He"]["ratio"])
