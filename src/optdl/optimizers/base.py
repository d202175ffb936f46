"""What all optimizers share: ``init`` and ``step``."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from optdl.optimizers.schedules import Schedule
from optdl.optimizers.trees import Array, Tree, require_gradient, tree_map, zeros
from optdl.optimizers.validation import Constants, require

__all__ = ["FirstOrder", "Optimizer"]

Gradient = Callable[[Tree], Tree]
"""θ ↦ ∇J(θ), a tree like θ."""

State = Any
"""A named tuple: ``t`` counts the steps taken, and each other field is a tree like θ."""


Steps = namedtuple("Steps", ["t"])
"""State of a method that remembers nothing but its number of steps."""


@dataclass(frozen=True)
class Optimizer(Constants):
    """What all methods share: a learning rate or a schedule, ``init``, and ``step``.

    The learning rate is η ≥ 0, or a schedule k ↦ η_k with k = 0 in the first step. Source: L1-24.
    """

    lr: float | Schedule

    memory: ClassVar[Callable[..., State]] = Steps

    def init(self, theta: Tree) -> State:
        """Return the state before the first step, in which every memory is zero."""
        names = self.memory._fields[1:]  # type: ignore[attr-defined]
        return self.memory(0, *(tree_map(zeros, theta) for _ in names))

    def interim(self, theta: Tree, state: State) -> Tree:
        """Return the point at which the method wants the gradient: here θ itself."""
        return theta

    def step(
        self, theta: Tree, state: State, grad: Gradient, *, check_finite: bool = True
    ) -> tuple[Tree, State]:
        """Take one step; return new parameters and a new state.

        A gradient that is not finite, or has another structure or shape than θ, raises ValueError;
        anything but arrays raises TypeError.

        Parameters
        ----------
        grad : callable
            θ ↦ gradient, a tree like θ. It is called once, at ``interim(theta, state)``.
        check_finite : bool
            Look for NaN and infinity in the gradient. On a GPU, a step without it does not wait.
        """
        raise NotImplementedError

    def rate(self, t: int) -> float:
        """Return the learning rate of step number t, which counts from 1."""
        if not callable(self.lr):
            return self.lr
        lr = float(self.lr(t - 1))
        require("lr", lr, f"lr({t - 1})")
        return lr


@dataclass(frozen=True)
class FirstOrder(Optimizer):
    """A method that steps each array of θ by itself, with its gradient and memory (Source: L1-24).

    A subclass names its ``memory``, a named tuple, and defines ``update``, the formula of one step.
    """

    update: ClassVar[Callable[..., tuple[Array, ...]]]
    """``update(t, theta, g, *memory)`` returns one array of θ and its memory after step t."""

    look_ahead: ClassVar[Callable[..., Array] | None] = None
    """``look_ahead(theta, *memory)`` returns where the gradient is wanted, if that is not θ."""

    def interim(self, theta: Tree, state: State) -> Tree:
        """Return the point at which the method wants the gradient: θ, or ``look_ahead`` of it."""
        return tree_map(self.look_ahead, theta, *state[1:]) if self.look_ahead else theta

    def step(
        self, theta: Tree, state: State, grad: Gradient, *, check_finite: bool = True
    ) -> tuple[Tree, State]:
        """Take one step; see :meth:`Optimizer.step`."""
        t = state.t + 1
        g = grad(self.interim(theta, state))
        require_gradient(theta, g, t, check_finite)
        trees = theta, g, *state[1:]
        new, *memory = tree_map(partial(self.update, t), *trees, results=len(state))
        return new, type(state)(t, *memory)
