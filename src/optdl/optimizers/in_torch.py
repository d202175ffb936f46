"""Optimizers of torch that take the steps of this package, or of torch in other coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from optdl.optimizers.base import Optimizer

__all__ = ["Rotated", "Stepped"]


class Stepped(torch.optim.Optimizer):
    """One of the course's optimizers as one of torch, whose parameters are the interim points.

    >>> from optdl.optimizers.momentum import Momentum
    >>> theta = torch.nn.Parameter(torch.ones(1))
    >>> optimizer = Stepped([theta], Momentum(lr=0.5))
    >>> theta.sum().backward()
    >>> optimizer.step(), theta.item()
    (None, 0.5)
    """

    def __init__(self, parameters: Iterable[Tensor], opt: Optimizer) -> None:
        super().__init__(parameters, {"lr": opt.lr})
        self.opt, self.leaves = opt, self.param_groups[0]["params"]
        self.theta = [leaf.detach().clone() for leaf in self.leaves]
        self.memory = opt.init(self.theta)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Take a step with the gradients of the interim points."""
        g = [leaf.grad for leaf in self.leaves]
        self.theta, self.memory = self.opt.step(self.theta, self.memory, lambda theta: g)
        for leaf, ahead in zip(self.leaves, self.opt.interim(self.theta, self.memory), strict=True):
            leaf.copy_(ahead)


class Rotated(torch.optim.Optimizer):
    """An optimizer that moves z in turned coordinates θ = Qz, Q orthogonal (Source: F-03).

    ``method`` makes it of a list of parameters.

    >>> theta = torch.nn.Parameter(torch.zeros(2))
    >>> optimizer = Rotated([theta], lambda z: torch.optim.SGD(z, lr=1.0), -torch.eye(2))
    >>> theta.sum().backward()
    >>> optimizer.step(), theta.tolist()
    (None, [-1.0, -1.0])
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        method: Callable[[list[Tensor]], torch.optim.Optimizer],
        Q: Tensor,
    ) -> None:
        super().__init__(parameters, {})
        self.leaves, self.Q = self.param_groups[0]["params"], Q
        self.z = torch.nn.Parameter(Q.T @ parameters_to_vector(self.leaves).detach())
        self.method = method([self.z])

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Take a step of the method with the gradient Qᵀg."""
        self.z.grad = self.Q.T @ torch.cat([leaf.grad.flatten() for leaf in self.leaves])
        self.method.step()
        vector_to_parameters(self.Q @ self.z, self.leaves)
