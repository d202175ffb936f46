"""Optimizers of torch that take the steps of this package, or of torch in other coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
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

    def __init__(self, parameters: Iterable[Any], opt: Optimizer) -> None:
        super().__init__(parameters, {"lr": opt.rate(1)})
        self.opt = opt

    def __getstate__(self) -> dict[str, Any]:
        # torch's own leaves out all but groups and state, also in a deep copy
        return super().__getstate__() | {"opt": self.opt}

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Take a step with the gradients of the interim points, at the rate of each group."""
        loss = closure and torch.enable_grad()(closure)()
        for group in self.param_groups:
            # a schedule of the method counts the steps by itself
            opt = self.opt if callable(self.opt.lr) else replace(self.opt, lr=group["lr"])
            for leaf in group["params"]:
                if leaf.grad is not None:
                    self._move(leaf, opt)
        return loss

    def _move(self, leaf: Tensor, opt: Optimizer) -> None:
        at = leaf.detach()
        kept = self.state[leaf] or {"theta": at.clone()} | opt.init(at)._asdict()
        theta, memory = kept["theta"], opt.memory(*list(kept.values())[1:])
        # nothing, unless others have moved the parameter: a constraint, or BNP
        theta = theta + (at - opt.interim(theta, memory))
        theta, memory = opt.step(theta, memory, lambda _: leaf.grad)
        leaf.copy_(opt.interim(theta, memory))
        self.state[leaf] = {"theta": theta} | memory._asdict()


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
        for each in optimizers:
            self.state.update(each.state)
        self.__setstate__({})

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"optimizers": self.optimizers}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over groups and state, which the optimizers share, also those of a file."""
        super().__setstate__(state)
        groups = iter(self.param_groups)
        for each in self.optimizers:
            each.param_groups, each.state = [next(groups) for _ in each.param_groups], self.state

    def step(self, closure: Any = None) -> Any:
        """Let each of them take its step."""
        loss = closure and torch.enable_grad()(closure)()
        for each in self.optimizers:
            each.step()
        return loss


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
        self.leaves, self.Q = [p for group in self.param_groups for p in group["params"]], Q
        self.z = torch.nn.Parameter(Q.T @ parameters_to_vector(self.leaves).detach())
        self.method = method([self.z])

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Take a step of the method with the gradient Qᵀg."""
        loss = closure and torch.enable_grad()(closure)()
        # nothing, unless others have moved the parameters
        self.z.add_(self.Q.T @ (parameters_to_vector(self.leaves) - self.Q @ self.z))
        self.z.grad = self.Q.T @ torch.cat([leaf.grad.flatten() for leaf in self.leaves])
        self.method.step()
        vector_to_parameters(self.Q @ self.z, self.leaves)
        return loss

    def state_dict(self) -> Any:
        """Refuse: a state without z and the memory of the method would resume another run."""
        raise NotImplementedError("save z, and method.state_dict(), in the place of the state")
