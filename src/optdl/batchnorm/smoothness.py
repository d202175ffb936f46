"""What a step changes: the loss, its gradient, the units' weight vectors and their outputs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

__all__ = ["AlongStep", "AlongStepHook", "MeanShiftHook", "WeightVectorHook", "loss_along_step"]

Loss = Callable[[Tensor, Tensor], Tensor]


class AlongStep(NamedTuple):
    """The loss and the change of its gradient after steps of several lengths (Source: L2-15)."""

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
    and then after ``every`` steps more; the curves are ``loss 0.1`` and ``change 0.1`` for the rate
    0.1, and so on for all ``rates`` of :func:`loss_along_step`.

    >>> hook = AlongStepHook(torch.ones(4, 2), torch.zeros(4, dtype=torch.long), [0.1], every=8)
    """

    def __init__(self, x: Tensor, y: Tensor, rates: Sequence[float], every: int) -> None:
        self.x, self.y, self.rates, self.every = x, y, list(rates), every

    def after_step(self, state: Any) -> None:
        """Measure, if it is time."""
        if state.step % self.every == 1 % self.every:
            along = loss_along_step(state.model, self.x, self.y, self.rates)
            for rate, loss, change in zip(self.rates, *along, strict=True):
                state.append(**{f"loss {rate:g}": loss, f"change {rate:g}": change})


class MeanShiftHook:
    r"""Measure how far a step moves the means of what the last layer of a network reads.

    A hook for ``optdl.training.train`` and an ``nn.Sequential``. With :math:`\mu_j` and
    :math:`\sigma_j`, the mean and the standard deviation of the j-th of n features on the examples
    x, before and after a step,

    .. math:: \frac1n\sum_{j=1}^n \frac{\lvert\mu_j' - \mu_j\rvert}{\sigma_j' + 10^{-3}}.

    The curve ``moved`` is its mean over the steps 1 + k · ``every`` of an epoch, without the very
    first step. Layers act as in training, with the statistics of x. Raises ValueError where
    ``every`` is less than 2. Source: L1-41.

    >>> from optdl.training import State
    >>> model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Identity())
    >>> hook = MeanShiftHook(torch.tensor([[0.0], [2.0]]), every=8)
    >>> state = State(model, torch.optim.SGD(model.parameters()), {})
    >>> for state.step, weight in ((8, 1.0), (9, 2.0)):  # the mean is 1, then 2 = σ / √2
    ...     _ = nn.init.constant_(model[0].weight, weight)
    ...     hook.after_step(state)
    >>> hook.after_epoch(state)
    >>> [round(moved, 3) for moved in state.curves["moved"]]
    [0.353]
    """

    def __init__(self, x: Tensor, every: int) -> None:
        if every < 2:
            raise ValueError(f"every step needs the one before it: expected 2 or more, got {every}")
        self.x, self.every = x, every
        self.before: Tensor | None = None
        self.moved: list[float] = []

    @torch.no_grad()
    def after_step(self, state: Any) -> None:
        """Compute the means, and compare them with those of the step before."""
        phase = state.step % self.every
        if phase > 1:
            return
        values = copy.deepcopy(state.model)[:-1](self.x)  # whose averages may change
        mean = values.mean(0)
        if phase == 1 and self.before is not None:
            deviation = values.std(0) + 1e-3
            self.moved.append(((mean - self.before).abs() / deviation).mean().item())
        self.before = mean

    def after_epoch(self, state: Any) -> None:
        """Record the mean of the epoch."""
        state.append(moved=np.mean(self.moved))
        self.moved.clear()


class WeightVectorHook:
    """Follow length and direction of the weight vectors of dense units in training (Source: P-08).

    A hook for ``optdl.training.train``, with two kinds of curves. ``turned K`` is the angle to the
    start in degrees after each epoch, mean over the units of the K-th dense layer. ``longer`` is by
    how many percent a step with this ``rate``, along the gradient on the examples x and y, would
    lengthen the vectors with their bias in all dense layers but the last; it is measured after step
    1, and then after ``every`` steps more.

    >>> hook = WeightVectorHook(torch.ones(4, 2), torch.zeros(4, dtype=torch.long), 1.0, every=8)
    """

    def __init__(self, x: Tensor, y: Tensor, rate: float, every: int) -> None:
        self.x, self.y, self.rate, self.every = x, y, rate, every
        self.start: list[Tensor] = []

    def after_backward(self, state: Any) -> None:
        """Remember the vectors before the first step."""
        self.start = self.start or [layer.weight.detach().clone() for layer in _dense(state.model)]

    def after_step(self, state: Any) -> None:
        """Measure the lengths, if it is time."""
        if state.step % self.every != 1 % self.every:
            return
        model = copy.deepcopy(state.model)  # whose averages and gradients may change
        loss = nn.functional.cross_entropy(model(self.x), self.y)
        growth = []
        for layer in _dense(model)[:-1]:
            pair = layer.weight, layer.bias
            rows = torch.column_stack(pair)
            slopes = torch.column_stack(torch.autograd.grad(loss, pair, retain_graph=True))
            growth.append((rows - self.rate * slopes).norm(dim=1) / rows.norm(dim=1) - 1)
        state.append(longer=100 * torch.cat(growth).mean().item())

    def after_epoch(self, state: Any) -> None:
        """Measure the angles."""
        for number, layer in enumerate(_dense(state.model)):
            cosines = torch.cosine_similarity(self.start[number], layer.weight, dim=1)
            turned = cosines.clamp(max=1).arccos().rad2deg().mean().item()
            state.append(**{f"turned {number + 1}": turned})


def _dense(model: nn.Module) -> list[nn.Linear]:
    return [layer for layer in model.modules() if isinstance(layer, nn.Linear)]


def _norm(parts: Sequence[Tensor]) -> Tensor:
    return torch.stack([part.square().sum() for part in parts]).sum().sqrt()
