"""Which optimizers want the split form, and inside of its block: before a wrong step is taken."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Sequence
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from optdl.bnp.layers import Layer

LINEAR = (torch.optim.SGD, torch.optim.ASGD)
"""Optimizers that move θ linearly in the gradients: P·Opt(Pᵀg) and Opt(PPᵀg) are then the same."""


class Watch:
    """Looks at the optimizers that step on what BNP has made of the gradients of some layers."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers, self.warned, self.split, self.bad = layers, False, False, ""

    def begin(self, split: bool, bad: str = "") -> None:
        """Look at the optimizers that step from now on, in front of gradients of this form.

        ``bad`` says why no optimizer may step on them.
        """
        global _hook
        self.split, self.bad = split, bad
        _watching.add(self)
        if _hook is None:
            # a hook on all optimizers, since BNP is not told which one will step
            _hook = register_optimizer_step_pre_hook(_look)

    def end(self) -> None:
        """Look no more; the last one takes the hook with it."""
        global _hook
        _watching.discard(self)
        if _hook is not None and not _watching:
            _hook.remove()
            _hook = None

    def look(self, optimizer: torch.optim.Optimizer) -> None:
        """Refuse gradients of z outside of the block; warn of an optimizer that is not linear."""
        if self.bad:
            # a GradScaler that skips the step asks no optimizer, but for those that look themselves
            if getattr(optimizer, "found_inf", None) is None and self._moved(optimizer):
                raise FloatingPointError(self.bad)
        elif self.split:
            if any(layer.holds_used_gradient() for layer in self._moved(optimizer)):
                raise RuntimeError(
                    "optimizer.step() came after the block of bnp.split(), where the parameters "
                    "are no longer those of the gradients. Move it into the block: "
                    "with bnp.split(): optimizer.step()"
                )
        elif not (self.warned or isinstance(optimizer, LINEAR)) and self._moved(optimizer):
            self.warned = True
            name = type(optimizer).__name__
            warnings.warn(
                f"bnp.step() before {name}: only SGD and ASGD are known to be linear in the "
                f"gradient. {name} may undo the scaling, and break the balance of weight and bias. "
                "Right for any optimizer is the split form, without bnp.step(): "
                "with bnp.split(): optimizer.step()",
                UserWarning,
                stacklevel=4,
            )

    def _moved(self, optimizer: torch.optim.Optimizer) -> list[Layer]:
        """Return the layers whose weight an optimizer moves."""
        moved = {id(p) for group in optimizer.param_groups for p in group["params"]}
        return [layer for layer in self.layers if id(layer.module.weight) in moved]


_watching: weakref.WeakSet[Watch] = weakref.WeakSet()
_hook: Any = None


def _look(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    for watch in list(_watching):
        watch.look(optimizer)
