"""Which optimizers want the split form: a warning before the first wrong step."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

LINEAR = (torch.optim.SGD, torch.optim.ASGD)
"""Optimizers that move θ linearly in the gradients: P·Opt(Pᵀg) and Opt(PPᵀg) are then the same."""


class Watch:
    """Looks at the optimizers that step after a plain step of BNP, and warns once.

    Parameters
    ----------
    modules : sequence of nn.Module
        The layers whose gradients BNP transforms.
    """

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        self.modules, self.warned = modules, False

    def begin(self) -> None:
        """Look at the optimizers that step from now on."""
        global _hook
        if self.warned:
            return
        _watching.add(self)
        if _hook is None:
            _hook = register_optimizer_step_pre_hook(_look)

    def end(self) -> None:
        """Look no more; the last one takes the hook with it."""
        global _hook
        _watching.discard(self)
        if _hook is not None and not _watching:
            _hook.remove()
            _hook = None

    def look(self, optimizer: torch.optim.Optimizer) -> None:
        """Warn where this optimizer moves the layers."""
        moved = {id(p) for group in optimizer.param_groups for p in group["params"]}
        if self.warned or not any(id(module.weight) in moved for module in self.modules):
            return
        self.warned = True
        self.end()
        name = type(optimizer).__name__
        warnings.warn(
            f"bnp.step() before {name}: only SGD and ASGD are known to be linear in the gradient. "
            f"{name} may undo the scaling, and break the balance of weight and bias. Right for any "
            "optimizer is the split form, without bnp.step(): with bnp.split(): optimizer.step()",
            UserWarning,
            stacklevel=4,
        )


_watching: weakref.WeakSet[Watch] = weakref.WeakSet()
_hook: Any = None


def _look(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    if not isinstance(optimizer, LINEAR):
        for watch in list(_watching):
            watch.look(optimizer)
