"""Optimizers of torch that take the steps of this package, or of torch in other coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from optdl.optimizers.base import Optimizer

__all__ = ["Rotated", "Stepped", "Together", "hidden_matrices"]


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
        super().__init__(parameters, {"lr": opt.rate(1)})
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


class Together(torch.optim.Optimizer):
    """Several optimizers, each with parameters of its own, that step as one (Source: F-19).

    >>> a, b = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1))
    >>> optimizer = Together(torch.optim.SGD([a], lr=1.0), torch.optim.SGD([b], lr=0.5))
    >>> (a + b).backward()
    >>> optimizer.step(), a.item(), b.item()
    (None, 0.0, 0.5)
    """

    def __init__(self, *optimizers: torch.optim.Optimizer) -> None:
        super().__init__([group for each in optimizers for group in each.param_groups], {})
        self.optimizers = optimizers

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Let each of them take its step."""
        for each in self.optimizers:
            each.step()


def hidden_matrices(model: torch.nn.Module) -> tuple[list[Tensor], list[Tensor]]:
    """Return the matrices between the first and the last one, and all other parameters.

    The order is that in which the model names them. Muon takes the first list, AdamW the other:
    vectors, and the first and the last layer. Source: F-19.

    >>> from optdl.networks import fully_connected
    >>> hidden, rest = hidden_matrices(fully_connected((64, 32, 16, 10), seed=0))
    >>> [tuple(p.shape) for p in hidden], len(rest)
    ([(16, 32)], 5)
    """
    matrices: list[Tensor] = [p for p in model.parameters() if p.ndim == 2]
    inside = {id(p) for p in matrices[1:-1]}
    return matrices[1:-1], [p for p in model.parameters() if id(p) not in inside]


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
