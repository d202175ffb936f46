"""Call a student's optimizers and training loop; what they do comes back as numbers.

The loss is a sum of squares, so that each path can be followed by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

__all__ = ["GROUPED", "RESUMED", "ZEROED", "descend_quartic", "follow", "repeat", "trained"]

Weights = tuple[np.ndarray, ...]

GROUPED = "group 2 has the default settings, and half the learning rate"
RESUMED = "the state is saved halfway, and loaded by a new optimizer"
ZEROED = "gradients are cleared to zeros, not to None, and are zero in the last step"


def follow(
    kind: Any,
    start: Sequence[np.ndarray],
    options: dict[str, Any],
    rates: Sequence[float],
    event: str,
) -> tuple[Any, ...]:
    """Return parameters after the first and the last step, and whether the gradients stay.

    ``start`` has weights, biases, a parameter of a second group, and one that never has a gradient
    and stands between the first two. ``rates`` are set before each step, as a schedule does.

    Parameters
    ----------
    kind : type
        The student's optimizer.
    start : sequence of arrays
        The parameters at the start, of any shapes.
    options : dict
        Further arguments of the optimizer.
    rates : sequence of float
        The learning rate of each step.
    event : str
        :data:`GROUPED`, :data:`RESUMED`, :data:`ZEROED`, or anything else for none.

    Returns
    -------
    first, last : tuples of arrays
        The parameters after the first step and after the last one.
    unused : array
        The parameter without a gradient, which is to stay.
    kept : bool
        Whether no step has changed a gradient.
    """
    *theta, unused = [nn.Parameter(torch.tensor(value)) for value in start]
    groups: list[dict[str, Any]] = [
        {"params": [theta[0], unused, theta[1]]},
        {"params": theta[2:]},
    ]
    if event == GROUPED:
        groups, options = [groups[0] | options, groups[1] | {"lr": rates[0] / 2}], {}
    optimizer = kind(groups, lr=rates[0], **options)
    path, kept = [], True
    for number, rate in enumerate(rates):
        if number and rate != rates[number - 1]:
            for group in optimizer.param_groups:
                group["lr"] *= rate / rates[number - 1]
        optimizer.zero_grad(set_to_none=event != ZEROED)
        if event != ZEROED or number < len(rates) - 1:
            _bowl(theta).backward()  # type: ignore[no-untyped-call]
        before = [p.grad.clone() for p in theta if p.grad is not None]
        optimizer.step()
        after = [p.grad for p in theta if p.grad is not None]
        kept &= len(after) == len(before) and all(map(torch.equal, before, after))
        path.append(tuple(value.detach().numpy().copy() for value in theta))
        if event == RESUMED and number == len(rates) // 2:
            state = optimizer.state_dict()
            optimizer = kind(groups, lr=rate, **options)
            optimizer.load_state_dict(state)
    return path[0], path[-1], unused.detach().numpy(), kept


def _bowl(theta: Sequence[Tensor]) -> Tensor:
    """Return the sum over all entries of (k + 1)/2 (θ - 1)² in the k-th parameter."""
    terms = [(k + 1) / 2 * (value - 1).square().sum() for k, value in enumerate(theta)]
    return torch.stack(terms).sum()


def descend_quartic(
    kind: Any, start: np.ndarray, rate: float, steps: int, options: dict[str, Any]
) -> np.ndarray:
    """Return a parameter after some steps on the sum of the fourth powers of its entries.

    Parameters
    ----------
    kind : type
        The student's optimizer.
    start : array
        The parameter at the start.
    rate : float
        The learning rate.
    steps : int
        How many steps are taken.
    options : dict
        Further arguments of the optimizer.

    Returns
    -------
    theta : array of the shape of start
        The parameter at the end.
    """
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
    """Return whether losses are a list, and floats; passes for each loss; the losses; the weights.

    The network has dropout, and comes in evaluation mode, as one does that was tested before.

    Parameters
    ----------
    function : callable
        The student's loop; ``function(model, optimizer, batches)`` returns losses.
    x, y : (t, m, n) and (t, m) arrays
        t minibatches, with labels 0 to 2.
    seed : int
        Draws the weights, and the masks of the dropout.
    momentum : float
        That of SGD.

    Returns
    -------
    is_list, are_floats : bool
        Whether the losses are a list, and each of them is of the type float.
    passes : float
        Forward passes for each minibatch.
    first : float
        The first loss; nan if there is none.
    later : array
        The other losses.
    weights : tuple of arrays
        The parameters at the end.
    """
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(x.shape[2], 5), nn.Tanh(), nn.Dropout(0.5), nn.Linear(5, 3))
    model = model.double().eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=momentum)
    pairs = zip(x, y, strict=True)
    batches = [(torch.tensor(inputs), torch.tensor(labels)) for inputs, labels in pairs]
    torch.manual_seed(seed + 1)
    passes: list[int] = []
    model.register_forward_hook(lambda *_: passes.append(1))
    losses = function(model, optimizer, batches)
    items = [*losses] if isinstance(losses, Iterable) else [losses][losses is None :]
    first, *later = [*map(float, items)] or [np.nan]
    kinds = isinstance(losses, list), all(isinstance(loss, float) for loss in items)
    return *kinds, len(passes) / len(batches), first, np.array(later), _weights(model)


def repeat(function: Any, seed: int, steps: int) -> tuple[Any, ...]:
    """Train a network with no minibatch, then with one that comes again and again.

    Parameters
    ----------
    function : callable
        The student's loop, as in :func:`trained`.
    seed : int
        Draws the weights.
    steps : int
        How often the minibatch comes.

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
    nothing, after = [*function(model, optimizer, [])], _weights(model)
    batch = torch.eye(4)[:3], torch.arange(3)
    losses = function(model, optimizer, [batch] * steps)
    return nothing, before, after, [float(loss) for loss in losses]


def _weights(model: nn.Module) -> Weights:
    return tuple(value.detach().numpy().copy() for value in model.parameters())
