"""What the chapter on dropout says in words about its own figures and examples."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from chapters import text
from scipy.special import softmax

from optdl.records import Record

ROOT = Path(__file__).resolve().parents[2]
RATES = (0.0, 0.25, 0.5, 0.75, 0.95)


def says(page: str, *parts: str) -> None:
    """Make sure that a page still says what a test is about."""
    for part in parts:
        assert part in text("dropout", page), f"{page} no longer says: {part}"


def recorded(name: str) -> dict[float, np.ndarray]:
    """Return a curve of each rate: (seed, epoch)."""
    kept = Record.load(ROOT / "experiments/results/recorded/dropout-digits.json").curves
    return {
        p: np.array([kept[f"p = {p:g}, seed {seed}: {name}"] for seed in range(8)]) for p in RATES
    }


def test_dropout_is_slower_at_first_and_overfits_less() -> None:
    says("effects", "After 4 epochs it is lower without dropout", "after 60 with dropout")
    plain, half = (recorded("validation_loss")[p] for p in (0.0, 0.5))
    assert (plain[:, 3] < half[:, 3]).all()
    assert (plain[:, -1] > half[:, -1]).all()
    says("index", "The curve of A lies below that of B throughout")
    plain, half = (recorded("train_loss")[p].mean(axis=0) for p in (0.0, 0.5))
    assert (plain < half).all()


def test_the_network_with_dropout_learns_fewer_of_the_wrong_labels() -> None:
    says("effects", "Later it learns fewer of the wrong labels")
    wrong = {p: error[:, -1] for p, error in recorded("wrong_error").items()}
    assert (wrong[0.0] < wrong[0.5]).all()


def test_half_of_the_lead_remains_when_all_networks_are_stopped_by_one_rule() -> None:
    validation, test = recorded("validation_error"), recorded("test_error")
    stopped = {p: np.take_along_axis(test[p], validation[p].argmin(1)[:, None], 1) for p in RATES}
    late, lead = (test[0.0] - test[0.5])[:, -1].mean(), (stopped[0.0] - stopped[0.5]).mean()
    says("effects", "about half of the effect was early stopping")
    assert 0.4 < lead / late < 0.6
    says("effects", "the stopped error is larger than without dropout in every seed")
    assert (stopped[0.95] > stopped[0.0]).all()


def test_dropout_on_the_inputs_of_a_linear_model_is_a_penalty() -> None:
    """Sum over all masks of the worked example, and of a random one."""
    rng = np.random.default_rng(0)
    for x, y, w, p in (
        (np.array([[1.0, 2.0]]), np.array([4.0]), np.array([2.0, 1.0]), 0.5),
        (rng.normal(size=(3, 4)), rng.normal(size=3), rng.normal(size=4), 0.3),
    ):
        mean = 0.0
        for kept in product((0, 1), repeat=len(w)):
            chance = np.prod([1 - p if one else p for one in kept])
            mean += float(chance * np.mean((x * kept / (1 - p) @ w - y) ** 2)) / 2
        penalty = p / (2 * (1 - p)) * np.mean(x**2, axis=0) @ w**2
        assert mean == pytest.approx(np.mean((x @ w - y) ** 2) / 2 + penalty, rel=1e-12)
    assert [(z - 4) ** 2 / 2 for z in (0, 4, 4, 8)] == [8, 0, 0, 8]  # the four masks by hand


def test_the_worked_mask_never_keeps_the_sum() -> None:
    says("mask", "The sums are 30 and 18. They differ for every $u$")
    x = np.array([3.0, 6.0, 9.0, 12.0])
    sums = [x @ kept / (1 - 1 / 3) for kept in product((0, 1), repeat=4)]
    assert min(abs(total - x.sum()) for total in sums) == pytest.approx(1.5)
    assert x @ (1, 0, 1, 0) / (1 - 1 / 3) == pytest.approx(18)
    chances = [
        (2 / 3) ** sum(kept) * (1 / 3) ** (4 - sum(kept)) for kept in product((0, 1), repeat=4)
    ]
    assert np.dot(chances, sums) == pytest.approx(x.sum())


def test_the_worked_ensemble_of_four_subnetworks() -> None:
    scores = np.array([[2.0, 0.0], [0.0, 4.0]]) @ np.array([*product((0, 1), repeat=2)]).T
    assert scores.T.tolist() == [[0, 0], [0, 4], [2, 0], [2, 4]]
    assert softmax(scores.mean(axis=1)).round(3).tolist() == [0.269, 0.731]


def test_the_relative_noise_of_a_sum_falls_with_its_length() -> None:
    says("mask", "gives $n = 400$")
    rng = np.random.default_rng(0)
    for p, n, deviation in ((0.2, 1, 0.5), (0.2, 16, 0.125), (0.8, 400, 0.1)):
        sums = ((rng.random((20_000, n)) >= p) / (1 - p)).sum(axis=1)
        assert sums.std() / sums.mean() == pytest.approx(deviation, rel=0.03)
