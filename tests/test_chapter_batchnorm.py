"""What the chapter on batch normalization says in words about its own figures and examples."""

import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from optdl.batchnorm import batchnorm_backward, batchnorm_forward
from optdl.records import Record

RESULTS = Path(__file__).parent.parent / "experiments/results/fig3"
X = np.array([[0.0], [0.0], [4.0], [4.0]])


def test_the_transform_by_hand() -> None:
    y, cache = batchnorm_forward(X, np.array([3.0]), np.array([1.0]), eps=0.0)
    assert y.ravel().tolist() == [-2, -2, 4, 4]
    assert cache.normalized.ravel().tolist() == [-1, -1, 1, 1]
    again, _ = batchnorm_forward(X, np.array([2.0]), np.array([2.0]), eps=0.0)
    np.testing.assert_array_equal(again, X)


def test_the_gradient_by_hand() -> None:
    _, cache = batchnorm_forward(X, np.ones(1), np.zeros(1), eps=0.0)
    grad_x, _, _ = batchnorm_backward(np.eye(4)[:, :1], cache)
    assert grad_x.ravel() == pytest.approx([0.25, -0.25, 0, 0], abs=1e-15)


def test_the_variances_of_all_minibatches_of_two() -> None:
    batches = np.array([*product((0, 2), repeat=2)])
    assert batches.var(axis=1).tolist() == [0, 1, 1, 0]


def test_how_long_the_start_of_an_average_lasts() -> None:
    for rho, steps in ((0.9, 29), (0.99, 299)):
        assert math.ceil(math.log(0.05) / math.log(rho)) == steps
        assert rho**steps < 0.05 < rho ** (steps - 1)
    assert [round(5 * (1 - rho**10), 2) for rho in (0.9, 0.99)] == [3.26, 0.48]


def test_two_examples_normalized_in_two_ways() -> None:
    x = torch.tensor([[1.0, 5.0], [3.0, 7.0]], dtype=torch.float64)
    over_examples = torch.nn.functional.batch_norm(x, None, None, training=True, eps=1e-12)
    over_features = torch.nn.functional.layer_norm(x, (2,), eps=1e-12)
    assert over_examples[0].tolist() == pytest.approx([-1, -1], abs=1e-9)
    assert over_features[0].tolist() == pytest.approx([-1, 1], abs=1e-9)


def test_what_the_lag_of_the_averages_costs() -> None:
    cost = {}
    for name in ("raw-0.01", "standardized-0.1"):
        records = [
            Record.load(RESULTS / f"cifar10-fc3-60-bn-{name}-{seed}.json") for seed in range(5)
        ]
        lagging, anew = (
            np.array([record.curves[curve][-1] for record in records])
            for curve in ("test_error", "recomputed_error")
        )
        cost[name] = 100 * (lagging.mean() - anew.mean())
    assert round(cost["raw-0.01"], 1) == 3.4
    assert abs(cost["standardized-0.1"]) < 0.1
