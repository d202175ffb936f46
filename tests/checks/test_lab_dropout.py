"""The lab on dropout against torch's own modules, and what its question relies on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from optdl.checks.dropout.lab_4_fit import fit
from optdl.checks.dropout.lab_4_network import with_dropout
from optdl.checks.dropout.lab_4_passes import monte_carlo
from optdl.checks.dropout.lab_4_stopping import EarlyStopping
from optdl.labs import LabRecord, Run
from optdl.labs import dropout as lab
from optdl.labs.records import RecordError

pytestmark = pytest.mark.row("LAB-4")

ROOT = Path(__file__).parents[2]
PARTS = {
    "with_dropout": with_dropout,
    "EarlyStopping": EarlyStopping,
    "fit": fit,
    "monte_carlo": monte_carlo,
}


@pytest.fixture(scope="module")
def record() -> LabRecord:
    return LabRecord.load(ROOT / "solutions" / "dropout" / "record.json")


def found(record: LabRecord, **setting: Any) -> Run:
    run = record.find(setting)
    assert run is not None
    return run


# --- The layer ------------------------------------------------------------------------------


def test_layers_leave_the_global_generator_alone() -> None:
    plain = lab.network(0)
    before = torch.get_rng_state()
    with_dropout(plain, 0.5, 0)(torch.ones(3, 64))
    assert torch.equal(torch.get_rng_state(), before)


# --- The loop and the passes --------------------------------------------------------------------


def test_loop_without_dropout_matches_momentum() -> None:
    """One linear layer, whose gradient is written out in NumPy."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(7, 3)), rng.integers(0, 2, size=7)
    model = nn.Linear(3, 2, bias=False).double()
    W, velocity = model.weight.detach().numpy().copy(), np.zeros((2, 3))
    data = (torch.tensor(x), torch.tensor(y))
    orders = torch.Generator().manual_seed(2)
    losses, checked = fit(model, data, data, 3, 0.1, 3, torch.Generator().manual_seed(2))

    def slope(rows: np.ndarray) -> tuple[float, np.ndarray]:
        scores = np.exp(x[rows] @ W.T)
        share = scores / scores.sum(axis=1, keepdims=True)
        loss = -np.log(share[np.arange(len(rows)), y[rows]]).sum()
        return loss, (share - np.eye(2)[y[rows]]).T @ x[rows] / len(rows)

    for epoch in range(3):
        total = 0.0
        order = torch.randperm(7, generator=orders).numpy()
        for rows in (order[:3], order[3:6], order[6:]):
            loss, gradient = slope(rows)
            velocity = 0.9 * velocity + gradient
            W = W - 0.1 * velocity
            total += loss
        assert losses[epoch] == pytest.approx(total / 7, rel=1e-12)
        assert checked[epoch] == pytest.approx(slope(np.arange(7))[0] / 7, rel=1e-12)
    np.testing.assert_allclose(model.weight.detach(), W, rtol=1e-12)


# --- The run ------------------------------------------------------------------------------------


def test_one_fifth_of_labels_is_replaced() -> None:
    replaced = []
    x, y, _, _ = lab.optimizers.examples()
    known = {row.numpy().tobytes(): label for row, label in zip(x, y, strict=True)}
    for seed in range(20):
        (rows, labels), (_, right) = lab.examples(seed)
        assert len(labels) == 200
        assert len(right) == 288
        before = torch.stack([known[row.numpy().tobytes()] for row in rows])
        replaced.append(float((labels != before).float().mean()))
    assert np.mean(replaced) == pytest.approx(0.18, abs=0.025)  # one in ten draws the right label


def test_inactive_dropout_stops_the_run() -> None:
    def only_of_torch(model: Any, x: torch.Tensor, passes: int) -> tuple[torch.Tensor, ...]:
        switched = [one.train() for one in model.eval().modules() if isinstance(one, nn.Dropout)]
        assert not switched
        found = torch.stack([model(x) for _ in range(passes)]).softmax(dim=2)
        return found.mean(dim=0), found.std(dim=0)

    parts = PARTS | {"monte_carlo": only_of_torch}
    lab.experiment(parts, {"p": 0.0}, 1, 1)
    with pytest.raises(RecordError, match="`monte_carlo` does not switch on your Dropout"):
        lab.experiment(parts, {"p": 0.2}, 1, 1)


def test_network_without_dropout_overfits(record: LabRecord) -> None:
    plain = lab.curves(record)["p = 0"]
    best = min(plain["validation"])
    assert plain["validation"].index(best) < 40
    assert plain["validation"][-1] > 1.1 * best
    assert plain["training"][-1] < 0.05


def test_dropout_improves_the_best_validation_loss(
    record: LabRecord,
) -> None:
    best = {name: min(losses["validation"]) for name, losses in lab.curves(record).items()}
    assert best["p = 0, early stopping"] == best["p = 0"]
    assert max(best["p = 0.2"], best["p = 0.5"]) < 0.9 * best["p = 0"]
    stopped = found(record, p=0.0, patience=10).curves["validation"]
    assert len(stopped) == stopped.index(min(stopped)) + 1 + 10


def test_largest_dropout_keeps_training_above_validation_loss(
    record: LabRecord,
) -> None:
    losses = lab.curves(record)["p = 0.8"]
    above = [t > v for t, v in zip(losses["training"], losses["validation"], strict=True)]
    assert sum(above) >= 110


def test_passes_disagree_more_on_wrong_predictions(record: LabRecord) -> None:
    right, wrong = found(record, p=0.5).curves["spread"]
    assert right < wrong
    assert found(record, p=0.0).curves["spread"] == pytest.approx([0, 0], abs=1e-6)
    assert lab.results(record).count("\n") == 5
