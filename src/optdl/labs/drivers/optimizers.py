"""Call a student's optimizers and training loop; what they do comes back as numbers.

The loss is a sum of squares, so that each path can be followed by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

__all__ = ["descend_quartic", "follow", "repeat", "trained"]

Weights = tuple[np.ndarray, ...]


def follow(
    kind: Any,
    start: Sequence[np.ndarray],
    options: dict[str, Any],
    rates: Sequence[float],
    saved: bool,
    zeroed: bool,
) -> Weights:
    """Return all parameters after each step; the last one never has a gradient.

    ``rates`` are set before each step, as a schedule does. ``saved`` puts the state into a new
    optimizer halfway. ``zeroed`` fills gradients with zeros where None would do.
    """
    theta = [nn.Parameter(torch.tensor(value)) for value in start]
    groups = [{"params": theta[:1]}, {"params": theta[1:]}]
    optimizer = kind(groups, lr=rates[0], **options)
    path = []
    for number, rate in enumerate(rates):
        if number and rate != rates[number - 1]:
            for group in optimizer.param_groups:
                group["lr"] = rate
        optimizer.zero_grad(set_to_none=not zeroed)
        _bowl(theta[:-1]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        path += [value.detach().numpy().copy() for value in theta]
        if saved and number == len(rates) // 2:
            state = optimizer.state_dict()
            optimizer = kind(groups, lr=rate, **options)
            optimizer.load_state_dict(state)
    return tuple(path)


def _bowl(theta: Sequence[Tensor]) -> Tensor:
    """Return the sum over all entries of (k + 1)/2 (θ - 1)² in the k-th parameter."""
    terms = [(k + 1) / 2 * (value - 1).square().sum() for k, value in enumerate(theta)]
    return torch.stack(terms).sum()


def descend_quartic(
    kind: Any, start: np.ndarray, rate: float, steps: int, options: dict[str, Any]
) -> np.ndarray:
    """Return a parameter after some steps on the sum of the fourth powers of its entries."""
    theta = nn.Parameter(torch.tensor(start))
    optimizer = kind([theta], lr=rate, **options)
    for _ in range(steps):
        optimizer.zero_grad()
        (theta**4).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return theta.detach().numpy()


def trained(
    function: Any, x: np.ndarray, y: np.ndarray, seed: int, momentum: float
) -> tuple[Any, ...]:
    """Return the losses, whether each is a float, and the weights, of a network with dropout.

    The network comes in evaluation mode, as one does that was tested before.
    """
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(x.shape[2], 5), nn.Tanh(), nn.Dropout(0.5), nn.Linear(5, 3))
    model = model.double().eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=momentum)
    batches = [
        (torch.tensor(inputs), torch.tensor(labels)) for inputs, labels in zip(x, y, strict=True)
    ]
    torch.manual_seed(seed + 1)
    losses = function(model, optimizer, batches)
    kinds = {type(loss).__name__ for loss in losses} if isinstance(losses, list) else {"no list"}
    numbers = [float(loss) for loss in losses] if "no list" not in kinds else losses
    return np.array(numbers, float), " and ".join(sorted(kinds)), _weights(model)


def repeat(function: Any, seed: int, steps: int) -> tuple[Any, ...]:
    """Train a network with no minibatch, then with one that comes again and again.

    Returns
    -------
    tuple
        What the function gives without minibatches, the weights before and after that, and the
        losses of the steps.
    """
    torch.manual_seed(seed)
    model = nn.Linear(4, 3)
    before = _weights(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    nothing, after = function(model, optimizer, []), _weights(model)
    batch = torch.eye(4)[:3], torch.arange(3)
    losses = function(model, optimizer, [batch] * steps)
    return nothing, before, after, [float(loss) for loss in losses]


def _weights(model: nn.Module) -> Weights:
    return tuple(value.detach().numpy().copy() for value in model.parameters())
