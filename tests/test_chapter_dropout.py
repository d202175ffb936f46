"""What the chapter on dropout says in words about its own figures and examples."""

import re
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

from optdl.data import Examples, load
from optdl.dropout import DropoutCurves, train_with_dropout

TEXT = re.sub(r"\s+", " ", (Path(__file__).parent.parent / "book/dropout.md").read_text("utf-8"))


def says(*parts: str) -> None:
    """Make sure that the chapter still says what a test is about."""
    for part in parts:
        assert part in TEXT, f"the chapter no longer says: {part}"


def few_digits(seed: int) -> tuple[Examples, Examples]:
    """Return the chapter's 300 training examples, a tenth with random labels, and the rest."""
    digits = load("digits")
    split = digits.split(len(digits.y_train) - 300, seed=seed)
    rng = np.random.default_rng(seed)
    noisy = rng.random(300) < 0.1
    labels = np.where(noisy, rng.integers(10, size=300), split.train.y)
    return Examples(split.train.x, labels), split.validation


@cache
def trained(p: float, seed: int) -> DropoutCurves:
    """Return the curves of one training of the chapter."""
    return train_with_dropout(*few_digits(seed), p, seed)


def test_dropout_is_slower_at_first_and_overfits_less() -> None:
    plain, dropped = ([trained(p, seed) for seed in range(5)] for p in (0.0, 0.5))
    validation = [np.array([run.validation_loss for run in runs]) for runs in (plain, dropped)]
    training = [np.array([run.train_loss for run in runs]) for runs in (plain, dropped)]
    means = [loss.mean(axis=0) for loss in validation]
    assert (means[0][1:19] < means[1][1:19]).all()
    assert (means[0][21:] > means[1][21:]).all()  # "lower from epoch 21 on"
    assert (validation[0][:, -1] > validation[1][:, -1]).all()  # "in each of the five seeds"
    assert (training[0].mean(axis=0)[1:] < training[1].mean(axis=0)[1:]).all()
    says("training loss is 0.19 against 0.23", "on average 0.293 against 0.355")
    assert [round(loss[:, -1].mean(), 2) for loss in training] == [0.19, 0.23]
    assert [loss[-1] for loss in means] == pytest.approx([0.355, 0.293], abs=0.002)
    says("labels of the 1138 validation examples remain correct")
    assert len(few_digits(0)[1]) == 1138


def test_the_difference_in_training_loss_is_that_of_the_wrong_labels() -> None:
    losses: dict[float, np.ndarray] = {}
    for p in (0.0, 0.5):
        rows = []
        for seed in range(5):
            examples, _ = few_digits(seed)
            digits = load("digits")
            truth = digits.split(len(digits.y_train) - 300, seed=seed).train.y
            for part in (examples.y == truth, examples.y != truth):
                there = Examples(examples.x[part], examples.y[part])
                curves = train_with_dropout(examples, there, p, seed)
                rows.append([curves.validation_loss[-1], curves.validation_error[-1]])
        losses[p] = np.reshape(rows, (5, 2, 2))
    predicted = [1 - losses[p][:, 1, 1].mean() for p in losses]
    says("it predicts 46 % of the wrong labels, and 24 % with dropout")
    assert predicted == pytest.approx([0.46, 0.24], abs=0.02)
    says("on the examples with correct labels the loss is 0.10 for both")
    right = [losses[p][:, 0, 0] for p in losses]
    assert [round(each.mean(), 2) for each in right] == [0.10, 0.10]
    says("validation is above it by 0.25 without dropout and by 0.19 with it")
    ends = [np.mean([trained(p, seed).validation_loss[-1] for seed in range(5)]) for p in losses]
    gaps = [end - each.mean() for end, each in zip(ends, right, strict=True)]
    assert gaps == pytest.approx([0.25, 0.19], abs=0.005)


def test_the_error_after_60_epochs_by_rate() -> None:
    runs = {p: [trained(p, seed) for seed in range(3)] for p in (0.0, 0.25, 0.5, 0.75, 0.95)}
    errors = {p: [100 * run.validation_error[-1] for run in of] for p, of in runs.items()}
    means = {p: np.mean(of) for p, of in errors.items()}
    middle = [means[p] for p in (0.25, 0.5, 0.75)]
    says("from 0.25 to 0.75 the mean error is 7.2 to 8.7 %, against 10.4 % without dropout")
    assert [min(middle), max(middle)] == pytest.approx([7.2, 8.7], abs=0.15)
    says(
        "the error falls from $p=0$ to 0.25, and again to 0.5", "by only 3 of the 1138 examples in"
    )
    says("At $p = 0.95$ the error is higher than without dropout in each seed")
    wrong = np.array([errors[p] for p in runs]) * 1138 / 100
    assert (wrong[0] > wrong[1]).all()
    assert (wrong[1] > wrong[2]).all()
    assert (wrong[4] > wrong[0]).all()
    np.testing.assert_allclose(wrong[2] - wrong[3], 3, atol=1e-9)
    says("12.1 % against 10.4 %", "training loss is still 0.87 after 60 epochs")
    assert [means[p] for p in (0.0, 0.95)] == pytest.approx([10.4, 12.1], abs=0.15)
    assert np.mean([run.train_loss[-1] for run in runs[0.95]]) == pytest.approx(0.87, abs=0.005)


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
    says("The sums are 30 and 18. Here they differ for every $u$")
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
    rng = np.random.default_rng(0)
    for n in (1, 16):
        sums = ((rng.random((200_000, n)) >= 0.2) / 0.8).sum(axis=1)
        assert sums.std() / sums.mean() == pytest.approx(np.sqrt(0.2 / (0.8 * n)), rel=0.02)
