"""References that only the exercises on optimizers need, against torch and other oracles."""

from typing import Any

import numpy as np
import torch

from optdl.checks.optimizers.f_05_decoupled_sgd import decoupled_sgd
from optdl.checks.optimizers.f_13_polar_iterates import polar_iterates
from optdl.checks.optimizers.f_18_lion import lion
from optdl.checks.optimizers.l1_24_averaged_sgd import averaged_sgd
from optdl.checks.optimizers.l1_30_centered_rmsprop import centered_rmsprop
from optdl.checks.optimizers.l2_06_amsgrad import amsgrad
from optdl.objectives import example_gradient
from optdl.optimizers import Adam, Lion, run

H = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 4.0]])
START = np.array([1.0, -2.0, 0.5])


def gradient(theta: np.ndarray) -> np.ndarray:
    return H @ theta + np.sin(theta)


def steps_of_torch(kind: Any, rates: list[float], **settings: Any) -> np.ndarray:
    """Return the path of an optimizer of torch whose learning rate is set before each step."""
    theta = torch.tensor(START, requires_grad=True)
    optimizer, path = kind([theta], lr=1.0, **settings), [START]
    for lr in rates:
        optimizer.param_groups[0]["lr"] = lr
        theta.grad = torch.tensor(gradient(theta.detach().numpy()))
        optimizer.step()
        path.append(theta.detach().numpy().copy())
    return np.array(path)


def test_decoupled_sgd_without_decay_matches_torch_momentum() -> None:
    rates = [0.1, 0.2, 0.05, 0.05, 0.0, 0.1]
    expected = steps_of_torch(torch.optim.SGD, rates, momentum=0.9)
    np.testing.assert_allclose(decoupled_sgd(gradient, START, rates, 0.9, 0.0), expected)


def test_centered_rmsprop_without_guard_matches_torch() -> None:
    expected = steps_of_torch(torch.optim.RMSprop, [0.01] * 6, alpha=0.8, eps=0, centered=True)
    path = centered_rmsprop(gradient, START, 0.01, 0.8, 0.0, 0.0, 6)
    np.testing.assert_allclose(path, expected)


def test_amsgrad_matches_adam_while_gradients_grow() -> None:
    def uphill(theta: np.ndarray) -> np.ndarray:
        return -np.array([2.0, 1.0, 4.0]) * theta

    adam = run(Adam(0.1, 0.9, 0.9), uphill, START, 8)
    np.testing.assert_allclose(amsgrad(uphill, START, 0.1, 0.9, 0.9, 1e-8, 8), adam, rtol=1e-6)
    shrinking = run(Adam(0.01, 0.0, 0.5), lambda theta: theta, np.ones(1), 200)
    ours = amsgrad(lambda theta: theta, np.ones(1), 0.01, 0.0, 0.5, 1e-8, 200)
    assert abs(shrinking[-1, 0]) < 0.1 < ours[-1, 0]


def test_lion_matches_the_package() -> None:
    expected = run(Lion(0.05, 0.8, 0.95, 0.1), gradient, START, 40)
    np.testing.assert_allclose(lion(gradient, START, 0.05, 0.8, 0.95, 0.1, 40), expected)


def test_polar_iterates_end_at_the_nearest_orthogonal_matrix(rng: np.random.Generator) -> None:
    matrix = rng.normal(size=(4, 4))
    Q = polar_iterates(matrix, 60)[-1]
    np.testing.assert_allclose(Q @ Q.T, np.eye(4), atol=1e-10)
    np.testing.assert_allclose(Q.T @ matrix, matrix.T @ Q, atol=1e-10)  # the other factor
    assert np.linalg.eigvalsh((Q.T @ matrix + matrix.T @ Q) / 2).min() > 0


def test_averages_of_sgd_scatter_less_than_its_iterates(rng: np.random.Generator) -> None:
    ends = []
    for _ in range(60):
        batches = list(rng.normal(size=(300, 2, 3)))
        path = averaged_sgd(example_gradient, np.zeros(2), batches, 0.1, 0.1, 50)
        alone = averaged_sgd(example_gradient, np.zeros(2), batches, 0.1, 0.1, 400)
        ends.append((path[-1], alone[-1]))
    averaged, iterate = np.mean(np.square(ends), axis=(0, 2))
    assert averaged < iterate / 4
