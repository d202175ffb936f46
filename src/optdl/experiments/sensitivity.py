"""Networks of several seeds, trained one after another by any optimizer of chapter 4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from optdl.data import Examples
from optdl.networks import fully_connected
from optdl.optimizers import Optimizer
from optdl.training import order_seed

__all__ = ["validation_errors"]


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

    They are measured at θ, where Nesterov momentum takes its gradients elsewhere. A network whose
    scores are not finite has the error 1.

    Parameters
    ----------
    opt : Optimizer
        Any of ``optdl.optimizers``.
    hidden : sequence of int
        Widths of the hidden layers.

    Notes
    -----
    Source: F-07
    """
    curves = []
    for seed in seeds:
        network = fully_connected((train.x.shape[1], *hidden, classes), seed=seed)
        generator = torch.Generator().manual_seed(order_seed(seed))
        theta = [leaf.detach().clone() for leaf in network.parameters()]
        state, errors = opt.init(theta), []
        for _ in range(epochs):
            theta, state = _epoch(opt, network, theta, state, train, batch, generator)
            errors.append(_error(network, theta, validation))
        curves.append(errors)
    return curves


def _epoch(
    opt: Optimizer,
    network: nn.Module,
    theta: list[Tensor],
    state: Any,
    train: Examples,
    batch: int,
    generator: torch.Generator,
) -> tuple[list[Tensor], Any]:
    x, y = torch.from_numpy(train.x), torch.from_numpy(train.y)
    for rows in torch.split(torch.randperm(len(y), generator=generator), batch):

        def gradient(at: list[Tensor], rows: Tensor = rows) -> list[Tensor]:
            leaves = _placed(network, at)
            return list(torch.autograd.grad(cross_entropy(network(x[rows]), y[rows]), leaves))

        theta, state = opt.step(theta, state, gradient, check_finite=False)
    return theta, state


@torch.no_grad()
def _error(network: nn.Module, theta: list[Tensor], examples: Examples) -> float:
    _placed(network, theta)
    scores = network(torch.from_numpy(examples.x))
    if not scores.isfinite().all():
        return 1.0
    return (scores.argmax(1) != torch.from_numpy(examples.y)).double().mean().item()


@torch.no_grad()
def _placed(network: nn.Module, theta: list[Tensor]) -> list[nn.Parameter]:
    """Return the parameters of the network, to which these values were given."""
    leaves = list(network.parameters())
    for leaf, value in zip(leaves, theta, strict=True):
        leaf.copy_(value)
    return leaves
