"""What single experiments measure or change during training: hooks of ``optdl.training.train``."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from optdl.bnp import BNP, batch_statistics, layer_hessian, preconditioner, smoothed_variance
from optdl.bnp.layers import Layer
from optdl.conditioning import condition_number
from optdl.training import Hook, State

__all__ = ["Averages", "LastUnitConditioning", "PartOfP"]


class PartOfP(BNP):
    r"""BNP with a part of P alone, which tells where a gain comes from.

    ``center``: :math:`P = \tfrac1{qs}U` with one number s for all features, the root of their
    mean variance. ``scale``: :math:`P = \tfrac1q D` about zero, with the mean squares in the place
    of the variances. ``rate``: neither, :math:`P = \tfrac1{qs}` for the weights and
    :math:`\tfrac1q` for the bias, so that nothing but a rate for each layer is left.
    """

    def __init__(self, model: nn.Module, part: str, **constants: Any) -> None:
        super().__init__(model, **constants)
        self.part = part
        self._running: list[tuple[torch.Tensor, torch.Tensor]] = []

    def _update(self) -> list[Layer]:
        """Take the passes into the running statistics; show the layers a part of them."""
        for layer, own in zip(self._layers, self._running, strict=False):
            layer.mean, layer.var = own
        ran = super()._update()
        self._running = [(layer.mean, layer.var) for layer in self._layers]
        for layer in self._layers:
            if self.part != "center":
                layer.mean, layer.var = torch.zeros_like(layer.mean), layer.var + layer.mean**2
            if self.part != "scale":
                layer.var = layer.var.mean(1, keepdim=True).expand_as(layer.var)
        return ran


class Averages(BNP):
    """The running averages of BNP alone: the gradients stay as they are."""

    def _update(self) -> list[Layer]:
        super()._update()
        return []


class LastUnitConditioning(Hook):
    r"""Measure the conditioning of the first output unit, after steps of a method. Source: P-18.

    The Hessian :math:`\hat H^T S\hat H` of its bias and weights, over the minibatch of the step:
    ``hessian`` is its condition number, ``rank`` the rank of :math:`\hat H`. With P of the running
    averages of ``bnp``, an earlier hook, or of these rows' own statistics, ε₁ = 10⁻² or 0, and
    ε₂ = 10⁻⁴, ``running P 0.01`` is the condition number of :math:`P^T\hat H^T S\hat HP` and
    ``running D 0.01`` that of D; over ``examples``, ``examples hessian``. Steps: ``watched_step``.
    """

    def __init__(self, model: nn.Module, bnp: BNP, examples: Tensor, every: int) -> None:
        self.model, self.bnp, self.examples, self.every = model, bnp, examples, every
        dense = [(name, m) for name, m in model.named_modules() if isinstance(m, nn.Linear)]
        self.name, last = dense[-1]
        last.register_forward_hook(self._capture)

    def _capture(self, layer: nn.Module, inputs: tuple[Any, ...], scores: Tensor) -> None:
        self.inputs, self.scores = inputs[0].detach(), scores.detach()

    @torch.no_grad()
    def after_step(self, state: State) -> None:
        """Add to the curves."""
        if (state.step - 1) % self.every == 0:
            state.append(watched_step=state.step, **self._measured(""))
            self.model.eval()(self.examples)
            self.model.train()
            state.append(**self._measured("examples "))

    def _measured(self, prefix: str) -> dict[str, float]:
        H = self.inputs.double().cpu().numpy()
        p = self.scores.double().softmax(1)[:, 0].cpu().numpy()
        hessian = layer_hessian(H, p * (1 - p))
        rank = float(np.linalg.matrix_rank(np.column_stack([np.ones(len(H)), H])))
        measured = {"hessian": condition_number(hessian), "rank": rank}
        averages = self.bnp.state_dict()[self.name]
        running = tuple(averages[key].flatten().double().cpu().numpy() for key in ("mean", "var"))
        for name, (mean, var) in {"running": running, "own": batch_statistics(H)}.items():
            for eps1 in (1e-2, 0.0):
                U, D = preconditioner(mean, np.sqrt(smoothed_variance(var, eps1, 1e-4)))
                measured[f"{name} P {eps1:g}"] = condition_number((U @ D).T @ hessian @ U @ D)
                measured[f"{name} D {eps1:g}"] = condition_number(D)
        return {prefix + name: float(f"{value:.4g}") for name, value in measured.items()}
