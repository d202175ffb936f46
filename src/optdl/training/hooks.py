"""What may act between the steps of training: hooks, what they see, and a schedule of rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import SupportsFloat

import torch
from torch import Tensor, nn

__all__ = ["Hook", "Schedule", "State"]

EVENTS = ("after_backward", "after_step", "after_epoch")
"""The methods of a hook, in the order in which they are called."""


@dataclass
class State:
    """What a hook sees, and where it leaves its word.

    Parameters
    ----------
    model, optimizer
        What is in training.
    curves : dict
        Names to one number per epoch so far. A hook may add curves of its own.
    epoch, step : int
        Counted from 1; steps are counted through all epochs.
    loss : float or tensor
        Loss of the present minibatch, before its step. On a GPU it is a tensor: ``float`` reads
        it, and waits for the device.
    stop : str or None
        Set it to a reason, and training ends after the present step and its measurements.
    """

    model: nn.Module
    optimizer: torch.optim.Optimizer
    curves: dict[str, list[float]]
    epoch: int = 0
    step: int = 0
    loss: float | Tensor = math.nan
    stop: str | None = None

    def append(self, **values: SupportsFloat) -> None:
        """Append one number to each of these curves."""
        for name, value in values.items():
            self.curves.setdefault(name, []).append(float(value))


class Hook:
    """Something to do at the joints of training. All methods do nothing until overridden.

    An object need not inherit from this class: one of the three methods is enough. What a hook
    remembers is part of a checkpoint if it has ``state_dict`` and ``load_state_dict``.
    """

    def after_backward(self, state: State) -> None:
        """Act when the gradients are there and the parameters have not moved."""

    def after_step(self, state: State) -> None:
        """Act when the optimizer has moved the parameters."""

    def after_epoch(self, state: State) -> None:
        """Act when the epoch has been measured."""


class Schedule(Hook):
    """A learning rate that warms up step by step and is divided by ten at some epochs.

    Source: P-27, P-28

    Parameters
    ----------
    optimizer : Optimizer
        Its rates, one for each group of parameters, are those after the warm-up; the hook sets
        them to those of the first step.
    steps, decay
        Steps in an epoch; and after how many epochs the rate is divided by ten.
    warmup, start, linear
        Steps of the warm-up, 0 for none; the rate at which it begins; and whether the rate rises
        linearly from there, or jumps at the end.

    Examples
    --------
    >>> sgd = torch.optim.SGD([torch.zeros(1)], lr=0.1)
    >>> schedule = Schedule(sgd, steps=10, decay=(2,), warmup=4, start=0.02)
    >>> [round(schedule.rate(step), 3) for step in (0, 2, 4, 19, 20)]
    [0.02, 0.06, 0.1, 0.1, 0.01]
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        steps: int,
        decay: Sequence[float] = (),
        warmup: float = 0,
        start: float = 0.01,
        linear: bool = True,
    ) -> None:
        self.full = [float(group["lr"]) for group in optimizer.param_groups]
        self.steps, self.decay = steps, tuple(decay)
        self.warmup, self.start, self.linear = warmup, start, linear
        self._set(optimizer, 0)

    def rate(self, step: int, group: int = 0) -> float:
        """Return the rate of a step, counted from 0, in one of the groups of parameters."""
        full = self.full[group]
        if step < self.warmup:
            return self.start + self.linear * step / self.warmup * (full - self.start)
        return full / 10 ** sum(step >= self.steps * epoch for epoch in self.decay)

    def after_step(self, state: State) -> None:
        """Set the rate of the next step."""
        # from the step alone, so that a checkpoint needs no more than the optimizer's own rates
        self._set(state.optimizer, state.step)

    def _set(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        for number, group in enumerate(optimizer.param_groups):
            rate = self.rate(step, number)
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)  # a CUDA graph reads it where it lies
            else:
                group["lr"] = rate
