"""What a preconditioner does to the Hessian of one output unit, while a network trains."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from optdl.bnp import BNP, batch_statistics, layer_hessian, preconditioner, smoothed_variance
from optdl.conditioning import condition_number
from optdl.hooks import Hook, State

__all__ = ["STATISTICS", "LastUnitConditioning"]

EPS1 = (1e-2, 0.0)
EPS2 = 1e-4
STATISTICS = ("running", "minibatch")
"""Of which mean and variance P is made: the averages that the step used, or its own rows'."""


class LastUnitConditioning(Hook):
    r"""Measure the conditioning of the first output unit, after steps of BNP.

    The Hessian :math:`\hat H^T S\hat H` of its bias and weights, over the minibatch of the step:
    ``hessian`` is its condition number, ``rank`` the rank of :math:`\hat H`. With P of the
    running or the minibatch's statistics, ε₁ = 10⁻² or 0, and ε₂ = 10⁻⁴, ``running P 0.01`` is
    the condition number of :math:`P^T\hat H^T S\hat HP` and ``running D 0.01`` that of D. The curve
    ``watched_step`` counts the steps.

    Parameters
    ----------
    model : Module
        The network, whose last dense layer is preconditioned and gives the scores.
    bnp : BNP
        A hook that comes earlier.
    every : int
        Steps from one measurement to the next; the first is after step 1.

    Notes
    -----
    Source: P-18
    """

    def __init__(self, model: nn.Module, bnp: BNP, every: int) -> None:
        self.bnp, self.every = bnp, every
        dense = [(name, m) for name, m in model.named_modules() if isinstance(m, nn.Linear)]
        self.name, last = dense[-1]
        last.register_forward_hook(self._keep)

    def _keep(self, layer: nn.Module, inputs: tuple[Any, ...], scores: torch.Tensor) -> None:
        if layer.training:
            self.inputs, self.scores = inputs[0].detach(), scores.detach()

    def after_step(self, state: State) -> None:
        """Add to the curves."""
        if (state.step - 1) % self.every == 0:
            for name, value in {"watched_step": state.step, **self._measured()}.items():
                state.curves.setdefault(name, []).append(value)

    def _measured(self) -> dict[str, float]:
        H = self.inputs.double().cpu().numpy()
        p = self.scores.double().softmax(1)[:, 0].cpu().numpy()
        hessian = layer_hessian(H, p * (1 - p))
        rank = np.linalg.matrix_rank(np.column_stack([np.ones(len(H)), H]))
        measured = {"hessian": condition_number(hessian), "rank": float(rank)}
        kept = self.bnp.state_dict()[self.name]
        running = tuple(kept[key].flatten().double().cpu().numpy() for key in ("mean", "var"))
        for name, (mean, var) in zip(STATISTICS, (running, batch_statistics(H)), strict=True):
            for eps1 in EPS1:
                U, D = preconditioner(mean, np.sqrt(smoothed_variance(var, eps1, EPS2)))
                measured[f"{name} P {eps1:g}"] = condition_number((U @ D).T @ hessian @ U @ D)
                measured[f"{name} D {eps1:g}"] = condition_number(D)
        return {name: float(f"{value:.4g}") for name, value in measured.items()}
