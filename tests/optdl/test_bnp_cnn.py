"""Convolutions as matrix products, against autograd and the paper's example and bound."""

import numpy as np
import pytest
import torch
from oracles import assert_close
from torch.nn import functional

from optdl import bnp, bnp_cnn, data
from optdl.bnp_cnn import channel_statistics, convolution_matrix, exact_column_statistics


def digits(count):
    """Return real images, 8 × 8, with one channel."""
    return data.load("digits").x_train[:count].astype(np.float64).reshape(-1, 1, 8, 8)


@pytest.mark.row("P-22")
@pytest.mark.parametrize("pool", [False, True])
def test_conv_hessian_matches_autograd(rng, pool):
    """The rest of the network: tanh, pooling perhaps, a dense layer, cross-entropy."""
    n, c, r, s, k, classes = 3, 2, 4, 4, 3, 3
    h = torch.from_numpy(rng.normal(0.5, size=(n, c, r, s)))
    dense = torch.from_numpy(rng.normal(size=(classes, 4 if pool else r * s)))
    y = torch.tensor([0, 2, 1])

    def loss(a, y):
        """Return the mean loss from the channel's output."""
        hidden = torch.tanh(a)
        hidden = functional.avg_pool2d(hidden, 2) if pool else hidden
        return functional.cross_entropy(hidden.flatten(1) @ dense.T, y)

    def of_weights(w):
        kernel = w[1:].reshape(1, c, k, k)
        return loss(functional.conv2d(h, kernel, w[:1], padding=1), y)

    w = torch.from_numpy(0.2 * rng.normal(size=1 + c * k**2))
    expected = torch.autograd.functional.hessian(of_weights, w)
    output = functional.conv2d(h, w[1:].reshape(1, c, k, k), w[:1], padding=1)
    curvatures = [
        torch.autograd.functional.hessian(
            lambda v, j=j: loss(v.reshape(1, 1, r, s), y[j : j + 1]), output[j].flatten()
        )
        for j in range(n)
    ]
    blocks = torch.stack(curvatures).numpy()
    assert_close(bnp_cnn.conv_layer_hessian(h.numpy(), k, blocks), expected.numpy())
    alone = bnp_cnn.conv_layer_hessian(h.numpy(), k, blocks * np.eye(r * s))
    assert np.abs(alone - expected.numpy()).max() > 0.01, "pixels must meet in the loss"


@pytest.mark.row("P-23", "P-24")
def test_exact_statistics_center_columns_channel_statistics_nearly(rng):
    h, k = rng.normal([[[0.5]], [[3.5]]], size=(2, 2, 16, 16)), 3
    H = bnp.extended_activations(convolution_matrix(h, k))
    mean, var = exact_column_statistics(h, k)
    exact = H @ np.linalg.multi_dot(bnp.preconditioner(mean, np.sqrt(var)))
    assert_close(exact.mean(axis=0), np.eye(19)[0], 1e-10)
    mean, var = channel_statistics(h)
    near = H @ np.linalg.multi_dot(bnp_cnn.preconditioner_conv(mean, np.sqrt(var), k))
    bound = np.repeat(bnp_cnn.statistics_bound(h, k) / np.sqrt(var), k**2)
    assert np.all(np.abs(near.mean(axis=0) - np.eye(19)[0])[1:] <= bound)
    assert np.linalg.cond(near) < np.linalg.cond(H)


@pytest.mark.row("P-24")
def test_preconditioned_norm_is_bounded_for_sums_and_means(rng):
    for r, h in [(8, digits(8)), (16, digits(8).repeat(2, 2).repeat(2, 3)),
                 (5, rng.normal(size=(3, 2, 5, 5)))]:  # fmt: skip
        mean, var = channel_statistics(h)
        std = np.sqrt(bnp.smoothed_variance(var))
        P = np.linalg.multi_dot(bnp_cnn.preconditioner_conv(mean, std, 3))
        for S, low, high in (
            (np.eye(r * r), r * r, np.inf),  # a loss that adds up over positions
            (np.full((r * r, r * r), r**-4.0), 1, 1 + 9 * h.shape[1]),  # of the mean
        ):
            hessian = bnp_cnn.conv_layer_hessian(h, 3, np.stack([S] * len(h)))
            largest = bnp_cnn.preconditioned_norm(h, 3, hessian)
            assert largest == pytest.approx(np.linalg.norm(P.T @ hessian @ P, 2))
            assert low <= largest <= high


@pytest.mark.row("P-24")
def test_curvatures_behind_relu_match_autograd(rng):
    outputs, dense = rng.normal(size=(3, 6)), rng.normal(size=(4, 6))

    def loss(a):
        return functional.cross_entropy(a.relu() @ torch.from_numpy(dense).T, torch.tensor(2))

    for a, block in zip(outputs, bnp_cnn.relu_curvatures(outputs, dense), strict=True):
        expected = torch.autograd.functional.hessian(loss, torch.from_numpy(a))
        assert_close(block, expected.numpy())
