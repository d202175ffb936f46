"""Networks of several seeds, trained side by side by any optimizer of chapter 4."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from optdl.data import Examples
from optdl.networks import fully_connected
from optdl.optimizers import Optimizer
from optdl.training import order_seed

__all__ = ["members", "scores", "validation_errors"]


def members(widths: Sequence[int], seeds: Sequence[int]) -> list[Tensor]:
    """Return weights (s, n, o) and biases (s, 1, o), layer by layer, with Glorot's weights."""
    models = [fully_connected(widths, seed=seed) for seed in seeds]
    return [
        torch.stack([leaf.detach().T if leaf.ndim == 2 else leaf.detach()[None] for leaf in leaves])
        for leaves in zip(*(model.parameters() for model in models), strict=True)
    ]


def scores(theta: Sequence[Tensor], x: Tensor) -> Tensor:
    """Return the (s, N, c) scores of every member for its own (s, N, n) examples."""
    for weight, bias in zip(theta[:-2:2], theta[1:-2:2], strict=True):
        x = torch.baddbmm(bias, x, weight).relu()
    return torch.baddbmm(theta[-1], x, theta[-2])


def validation_errors(
    opt: Optimizer,
    train: Examples,
    validation: Examples,
    hidden: Sequence[int],
    classes: int,
    *,
    seeds: Sequence[int],
    epochs: int,
    batch: int,
) -> list[list[float]]:
    """Train a network of each seed, and return its validation errors, one for each epoch.

    A member whose parameters are no longer finite has the error 1 from then on.

    Parameters
    ----------
    opt : Optimizer
        Any of ``optdl.optimizers``. It steps the parameters of all members at once, and is given
        the gradient of the sum of their losses: each member's own.
    hidden : sequence of int
        Widths of the hidden layers.

    Notes
    -----
    Source: F-07
    """
    theta = members((train.x.shape[1], *hidden, classes), seeds)
    state = opt.init(theta)
    x, y = torch.from_numpy(train.x), torch.from_numpy(train.y)
    generators = [torch.Generator().manual_seed(order_seed(seed)) for seed in seeds]
    errors: list[list[float]] = []
    for _ in range(epochs):
        order = torch.stack([torch.randperm(len(y), generator=g) for g in generators])
        for rows in torch.split(order, batch, dim=1):
            gradient = partial(_gradient, x=x[rows], y=y[rows])
            theta, state = opt.step(theta, state, gradient, check_finite=False, in_place=True)
        errors.append(_errors(theta, validation))
    return np.array(errors).T.tolist()


def _gradient(theta: Sequence[Tensor], x: Tensor, y: Tensor) -> list[Tensor]:
    """Return the gradient of the sum of the members' mean losses."""
    leaves = [leaf.detach().requires_grad_() for leaf in theta]
    mean = functional.cross_entropy(scores(leaves, x).flatten(0, 1), y.flatten())
    return list(torch.autograd.grad(mean * len(y), leaves))


@torch.no_grad()
def _errors(theta: Sequence[Tensor], examples: Examples) -> list[float]:
    x, y = torch.from_numpy(examples.x), torch.from_numpy(examples.y)
    found = scores(theta, x.expand(len(theta[0]), *x.shape))
    wrong = (found.argmax(2) != y).double().mean(1)
    return torch.where(found.isfinite().all(2).all(1), wrong, 1.0).tolist()
