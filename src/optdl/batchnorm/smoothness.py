"""How much the loss and its gradient change along one step against the gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

__all__ = ["AlongStep", "AlongStepHook", "loss_along_step"]

Loss = Callable[[Tensor, Tensor], Tensor]


class AlongStep(NamedTuple):
    """The loss and the change of its gradient after steps of several lengths."""

    loss: Float[Tensor, " k"]
    """J(θ − ηg) for each learning rate η."""
    change: Float[Tensor, " k"]
    """‖∇J(θ − ηg) − g‖ / ‖g‖ for each learning rate η."""


def loss_along_step(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    rates: Sequence[float],
    loss: Loss = nn.functional.cross_entropy,
) -> AlongStep:
    r"""Return the loss and the change of the gradient along a step of gradient descent.

    With g = ∇J(θ), the gradient for these examples, it computes for each learning rate η

    .. math:: J(\theta - \eta g) \qquad\text{and}\qquad
        \frac{\lVert \nabla J(\theta - \eta g) - g\rVert}{\lVert g\rVert}.

    The second number divided by η is at most the largest curvature along the step: on a quadratic
    it is :math:`\lVert Hg\rVert / \lVert g\rVert`. Source: L2-15.

    In training mode, batch normalization takes its statistics from x. The model and its buffers
    stay as they are. ``loss`` maps scores and labels to the mean loss. The result has both numbers
    for each of the k ``rates``.

    >>> model = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.ones_(model.weight)
    >>> x, y = torch.ones(1, 1), torch.zeros(1, 1)  # J = w², with g = 2 at w = 1
    >>> loss_along_step(model, x, y, [0.0, 0.5, 1.0], nn.functional.mse_loss)
    AlongStep(loss=tensor([1., 0., 1.]), change=tensor([0., 1., 2.]))
    """
    start = {name: p.detach() for name, p in model.named_parameters()}
    buffers = {name: b.clone() for name, b in model.named_buffers()}

    def gradient(theta: dict[str, Tensor]) -> tuple[Tensor, list[Tensor]]:
        leaves = {name: p.clone().requires_grad_() for name, p in theta.items()}
        value = loss(functional_call(model, {**leaves, **buffers}, (x,)), y)
        return value.detach(), list(torch.autograd.grad(value, list(leaves.values())))

    _, g = gradient(start)
    losses, changes = [], []
    for rate in rates:
        ahead = {name: p - rate * d for (name, p), d in zip(start.items(), g, strict=True)}
        value, h = gradient(ahead)
        losses.append(value)
        changes.append(_norm([b - a for a, b in zip(g, h, strict=True)]) / _norm(g))
    return AlongStep(torch.stack(losses), torch.stack(changes))


class AlongStepHook:
    """Measure the loss along the gradient every few steps of a training (Source: L2-15).

    A hook for ``optdl.training.train``. It is measured on the examples x and y, first after step 1
    and then after ``every`` steps more; ``results`` has an :class:`AlongStep` for each measurement.
    The ``rates`` are those of :func:`loss_along_step`.

    >>> hook = AlongStepHook(torch.ones(4, 2), torch.zeros(4, dtype=torch.long), [0.1], every=8)
    >>> hook.results
    []
    """

    def __init__(self, x: Tensor, y: Tensor, rates: Sequence[float], every: int) -> None:
        self.x, self.y, self.rates, self.every = x, y, list(rates), every
        self.results: list[AlongStep] = []

    def after_step(self, state: Any) -> None:
        """Measure, if it is time."""
        if state.step % self.every == 1 % self.every:
            self.results.append(loss_along_step(state.model, self.x, self.y, self.rates))


def _norm(parts: Sequence[Tensor]) -> Tensor:
    return torch.stack([part.square().sum() for part in parts]).sum().sqrt()
